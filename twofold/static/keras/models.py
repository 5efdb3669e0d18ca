"""Models of layers: ``tf.keras.Model`` (by inputs and outputs, or by ``call``) and ``Sequential``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from twofold.lazy import attach as _attach
from twofold.runtime.pytree import flatten, unflatten
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype
from twofold.static.arrays import creation
from twofold.static.arrays.shape_ops import placeholder
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import operation_of
from twofold.static.keras.base_layer import Call, Layer, call_of
from twofold.static.keras.named import CustomObjectScope
from twofold.static.keras.state import unique_name
from twofold.static.keras.training import Trained
from twofold.static.variables.variable import Variable

if TYPE_CHECKING:
    from twofold.static.keras.configs import clone_model as clone_model
    from twofold.static.keras.configs import model_from_config as model_from_config
    from twofold.static.keras.configs import model_from_json as model_from_json
    from twofold.static.keras.saving import load_model as load_model
    from twofold.static.keras.saving import save_model as save_model

__getattr__, __dir__ = _attach(__name__)


def Input(
    shape: Sequence[int | None] | None = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: Any = "float32",
    sparse: bool = False,
    tensor: Any = None,
    batch_shape: Sequence[int | None] | None = None,
) -> Any:
    """A placeholder for batches of elements of ``shape``; where operations are computed at once, zeros in its place.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     print(tf.keras.Input([3]).shape)
    (?, 3)
    """
    if sparse:
        raise ValueError(f"Input: sparse is not offered, at {here()}. Use tf.sparse_placeholder.")
    if tensor is not None:
        return tensor
    if shape is None and batch_shape is None:
        raise ValueError(f"Input: there is no shape, at {here()}. Give shape or batch_shape.")
    sizes = list(batch_shape) if batch_shape is not None else [batch_size, *(shape or ())]
    if at_once():
        return creation.zeros([1 if size is None else size for size in sizes], as_dtype(dtype or "float32"))
    return placeholder(as_dtype(dtype or "float32"), sizes, name=name or unique_name("input", 1))


class InputLayer(Layer):
    """What a model begins with: the shape of its input."""

    def __init__(
        self,
        input_shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = None,
        sparse: bool = False,
        **options: Any,
    ) -> None:
        if sparse:
            raise ValueError(f"InputLayer: sparse is not offered, at {here()}. Use tf.sparse_placeholder.")
        super().__init__(input_shape=input_shape, batch_size=batch_size, dtype=dtype, **options)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer."""
        dtype = "float32" if self.dtype is None else self.dtype.name
        shape = self.batch_input_shape
        return {"batch_input_shape": shape, "dtype": dtype, "sparse": False, "name": self.name}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The layer of a configuration; what is not set there may be unknown here."""
        known = ("batch_input_shape", "dtype", "name")
        return cls(**{key: value for key, value in config.items() if key in known or value})

    @classmethod
    def of(cls, tensor: Any) -> InputLayer:
        """What stands for an input of a model among its layers."""
        name = tensor.op.name if getattr(tensor, "_is_symbolic", False) else None
        made = cls(batch_input_shape=tensor.get_shape().as_list(), dtype=tensor.dtype, name=name)
        made._calls.append(Call(made, tensor, {}, tensor))
        return made


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _calls_between(inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[list[Call], list[Layer]]:
    """The calls of layers that lead from inputs to outputs, in their order; their layers as the outputs reach them."""
    seen = {id(tensor) for tensor in inputs}
    reached: dict[int, Layer] = {}
    found: dict[int, Call] = {}
    waiting = [(tensor, False) for tensor in reversed(outputs)]
    while waiting:
        tensor, done = waiting.pop()
        call = call_of(tensor)
        if done:
            if call is not None:
                found[id(call)] = call
            continue
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        if call is not None:
            reached.setdefault(id(call.layer), call.layer)
        waiting.append((tensor, True))
        before = flatten(call.inputs, "inputs")[0] if call is not None else _before(tensor)
        waiting += [(one, False) for one in reversed(before)]
    return list(found.values()), list(reached.values())


def _by_depth(inputs: Sequence[Any], steps: Sequence[Call], reached: Sequence[Layer]) -> list[Layer]:
    """The layers as Keras orders them: by the longest way to an output, then as the outputs reach them."""
    ends = {id(tensor): InputLayer.of(tensor) for tensor in inputs}
    depths: dict[int, int] = dict.fromkeys((id(layer) for layer in ends.values()), 0)
    of_calls: dict[int, int] = {}
    for step in reversed(steps):
        depth = max(of_calls.get(id(step), 0), depths.get(id(step.layer), 0))
        depths[id(step.layer)] = depth
        waiting = list(flatten(step.inputs, "inputs")[0])
        while waiting:
            tensor = waiting.pop()
            call = call_of(tensor)
            if id(tensor) in ends:
                layer = id(ends[id(tensor)])
                depths[layer] = max(depths[layer], depth + 1)
            elif call is not None:
                of_calls[id(call)] = max(of_calls.get(id(call), 0), depth + 1)
            else:
                waiting += _before(tensor)
    return sorted([*ends.values(), *reached], key=lambda layer: -depths[id(layer)])


def _before(tensor: Any) -> Sequence[Any]:
    if at_once() or not hasattr(tensor, "_is_symbolic") or not tensor._is_symbolic:
        return ()
    return [one for one in operation_of(tensor).inputs if hasattr(one, "type_")]


class Model(Trained, Layer):
    """Layers that are trained together.

    Either of the tensors that layers lead from and to, ``Model(inputs, outputs)``, or a subclass with ``call(inputs)``
    whose attributes are the layers.

    >>> import numpy
    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session():
    ...     x = tf.keras.Input([2])
    ...     model = tf.keras.Model(x, tf.keras.layers.Dense(1, kernel_initializer="ones")(x))
    ...     model.compile("sgd", "mse")
    ...     print(model.predict(numpy.array([[1.0, 2.0]])))
    [[3.]]
    """

    def __init__(self, *args: Any, inputs: Any = None, outputs: Any = None, name: str | None = None) -> None:
        given = dict(zip(("inputs", "outputs", "name"), args))
        super().__init__(name=given.get("name", name))
        self.inputs: list[Any] | None = None
        self.outputs: list[Any] | None = None
        if "inputs" in given or inputs is not None:
            self._connect(given.get("inputs", inputs), given.get("outputs", outputs))

    def _connect(self, inputs: Any, outputs: Any) -> None:
        self._given, self._made = inputs, outputs
        self.inputs, self.outputs = _list(inputs), flatten(outputs, "outputs")[0]
        self._steps, reached = _calls_between(self.inputs, self.outputs)
        self._layers = _by_depth(self.inputs, self._steps, reached)
        self.built = True

    @property
    def layers(self) -> list[Layer]:
        """The layers, in the order of their calls or attributes."""
        return self._sublayers()

    def _sublayers(self) -> list[Layer]:
        return self._layers if self.inputs is not None else super()._sublayers()

    @property
    def weights(self) -> list[Variable]:  # type: ignore[override]
        """All variables, layer by layer."""
        found = {id(one): one for layer in self._sublayers() for one in layer.weights}
        found |= {id(one): one for one in self._own}
        return list(found.values())

    variables = weights

    @property
    def input(self) -> Any:
        """The input of the model, or the list of them."""
        return (
            super().input if self.inputs is None else self.inputs[0] if len(self.inputs) == 1 else self.inputs
        )

    @property
    def output(self) -> Any:
        """The output of the model, or the list of them."""
        if self.outputs is None:
            return super().output
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """The layer of a name, or at an index; raises ValueError for a name that none has."""
        if index is not None:
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError(
            f"No such layer: {name}, at {here()}. There are {[layer.name for layer in self.layers]}."
        )

    def call(self, inputs: Any) -> Any:
        """What the layers make of other inputs."""
        if self.inputs is None:
            raise NotImplementedError(f"{type(self).__name__} has no call(inputs), at {here()}. Define it.")
        values = {id(old): new for old, new in zip(self.inputs, _list(inputs), strict=True)}
        for step in self._steps:
            given, _, structure = flatten(step.inputs, "inputs")
            missing = [one for one in given if id(one) not in values]
            if any(_leads_from(one, values) for one in missing):
                what = f"layer {step.layer.name} takes what an operation makes of layers' outputs"
                raise ValueError(f"{self.name}: {what}, at {here()}. Put the operation into a Lambda layer.")
            made = step.layer(
                unflatten(structure, [values.get(id(one), one) for one in given]), **step.options
            )
            values |= {id(old): new for old, new in zip(flatten(step.outputs, "")[0], flatten(made, "")[0])}
        found, _, structure = flatten(self._made, "outputs")
        if any(id(one) not in values for one in found):
            what = "an output is what an operation makes of layers' outputs"
            raise ValueError(f"{self.name}: {what}, at {here()}. Put the operation into a Lambda layer.")
        return unflatten(structure, [values[id(one)] for one in found])

    def get_config(self) -> dict[str, Any]:
        """The layers and how they are connected; raises NotImplementedError for a model by ``call``."""
        if self.inputs is None or type(self).call is not Model.call:
            what = f"{type(self).__name__} is a model by call, whose layers nothing describes"
            raise NotImplementedError(f"{what}, at {here()}. Use save_weights.")
        found: dict[str, Any] = _configs().graph_config(self)
        return found

    @classmethod
    def from_config(cls, config: Any, custom_objects: Any = None) -> Any:
        """The model of a configuration, with first values."""
        with CustomObjectScope(custom_objects or {}):
            return _configs().graph_from_config(cls, config)

    def to_json(self, **options: Any) -> str:
        """The configuration as JSON, from which ``model_from_json`` makes the model; ``options`` of ``json.dumps``."""
        return json.dumps(_configs().model_message(self), **options)

    def summary(
        self, line_length: int | None = None, positions: Any = None, print_fn: Callable[[str], Any] = print
    ) -> None:
        """Print a table of the layers, the shapes of their outputs and how many numbers they hold."""
        row = "{:<29}{:<26}{:<10}".format
        rule = "_" * 65
        print_fn(
            f'Model: "{self.name}"\n{rule}\n{row("Layer (type)", "Output Shape", "Param #")}\n{"=" * 65}'
        )
        for layer in self.layers:
            shape = str(layer.output_shape) if layer._calls else "?"
            print_fn(f"{row(f'{layer.name} ({type(layer).__name__})', shape, layer.count_params())}\n{rule}")
        total = self.count_params()
        trained = sum(int(one.get_shape().num_elements() or 0) for one in self.trainable_weights)
        lines = {"Total": total, "Trainable": trained, "Non-trainable": total - trained}
        print_fn("\n".join(f"{name} params: {count:,}" for name, count in lines.items()))


def _leads_from(tensor: Any, values: dict[int, Any]) -> bool:
    """Whether operations outside of layers lead from one of the values to a tensor."""
    waiting, seen = [tensor], set()
    while waiting:
        one = waiting.pop()
        if id(one) in values:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            waiting += _before(one)
    return False


@example(
    "model = tf.keras.Sequential([tf.keras.layers.Dense(3, input_shape=(2,)), tf.keras.layers.Dense(1)])",
    "print([variable.name for variable in model.weights])",
    "['dense/kernel:0', 'dense/bias:0', 'dense_1/kernel:0', 'dense_1/bias:0']",
)
class Sequential(Model):
    """Layers one after the other; with the shape of the first one's input, or built by what it is given first."""

    def __init__(self, layers: Sequence[Layer] | None = None, name: str | None = None) -> None:
        super().__init__(name=name)
        self._stack: list[Layer] = []
        for layer in layers or ():
            self.add(layer)

    @property
    def layers(self) -> list[Layer]:
        """The layers."""
        return [layer for layer in self._stack if not isinstance(layer, InputLayer)]

    def _sublayers(self) -> list[Layer]:
        return self._stack

    def add(self, layer: Layer) -> None:
        """Put a layer at the end."""
        if not isinstance(layer, Layer):
            raise TypeError(f"Sequential: {layer!r} is no layer, at {here()}. Give one of tf.keras.layers.")
        self._stack.append(layer)
        if self.outputs is not None:
            self._grow(layer)
        elif len(self._stack) == 1 and (shape := _first_shape(layer)) is not None:
            dtype = layer.dtype or "float32"
            self.inputs = self.outputs = [Input(batch_shape=shape, dtype=dtype, name=f"{layer.name}_input")]
            self._grow(layer)

    def pop(self) -> None:
        """Take the last layer away."""
        self._stack.pop()
        if self.inputs is not None:
            rest, self.outputs = self._stack, self.inputs
            for layer in rest:
                self.outputs = [layer._calls[0].outputs]

    def _grow(self, layer: Layer) -> None:
        assert self.outputs is not None
        if not isinstance(layer, InputLayer):
            self.outputs = [layer(self.outputs[0])]

    def get_config(self) -> dict[str, Any]:
        """The layers."""
        found: dict[str, Any] = _configs().stack_config(self)
        return found

    @classmethod
    def from_config(cls, config: Any, custom_objects: Any = None) -> Any:
        """The stack of a configuration, with first values."""
        with CustomObjectScope(custom_objects or {}):
            return _configs().stack_from_config(cls, config)

    def call(self, inputs: Any) -> Any:
        made = inputs
        for layer in self.layers:
            made = layer(made)
        return made


def _configs() -> Any:
    return import_module("twofold.static.keras.configs")


def _first_shape(layer: Layer) -> Any:
    """The shape of batches that the first layer is given, where it is known."""
    if layer.batch_input_shape is not None:
        return layer.batch_input_shape
    inputs = getattr(layer, "inputs", None)
    return None if inputs is None else tuple(inputs[0].get_shape().as_list())
