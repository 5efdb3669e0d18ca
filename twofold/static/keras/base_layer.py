"""The base of Keras's layers: variables that the first call makes, and how layers are connected."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import numpy

from twofold.runtime.pytree import flatten
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype, convert_to_tensor, snake_case
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.context import at_once
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.keras.named import ACTIVATIONS, INITIALIZERS, REGULARIZERS, found_in
from twofold.static.keras.state import get_session, learning_phase, phase, settings, unique_name
from twofold.static.variables.variable import Variable, assign
from twofold.static.variables.variable_scope import VariableScope, get_variable, variable_scope


class Call(NamedTuple):
    """A call of a layer: what it was given and what it made."""

    layer: Layer
    inputs: Any
    options: dict[str, Any]
    outputs: Any


def mask_of(tensor: Any) -> Any:
    """The mask of a tensor that a layer made, of bools that are false where steps do not count; or None."""
    return getattr(tensor, "_keras_mask", None)


def call_of(tensor: Any) -> Call | None:
    """The call of the layer that made a tensor; None for any other tensor."""
    return getattr(tensor, "keras_call", None)


class Layer:
    """Base of layers: a subclass has ``call(inputs)`` and in ``build(input_shape)`` makes variables by ``add_weight``.

    Args:
        trainable: whether optimisers change its variables.
        name: a unique name after the class unless given.
        dtype: of its variables.
        input_shape: of one element, where the layer is the first of a model; ``batch_input_shape`` with the batch,
            ``input_dim`` for vectors.

    >>> import numpy
    >>> import twofold.static as tf
    >>> class Scale(tf.keras.layers.Layer):
    ...     def build(self, input_shape):
    ...         self.factor = self.add_weight("factor", [int(input_shape[-1])], initializer="ones")
    ...     def call(self, inputs):
    ...         return inputs * self.factor
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     layer = Scale()
    ...     y = layer(tf.constant([[1.0, 2.0]]))
    ...     session.run(tf.global_variables_initializer())
    ...     print(session.run(y), layer.factor.name)
    [[1. 2.]] scale/factor:0
    """

    takes_training = takes_mask = False
    supports_masking = False
    """Whether the mask of the input is that of the output, too."""

    def __init_subclass__(cls) -> None:
        if "call" in vars(cls):
            taken = inspect.signature(cls.call).parameters
            cls.takes_training, cls.takes_mask = "training" in taken, "mask" in taken

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        input_shape: Sequence[int | None] | None = None,
        batch_input_shape: Sequence[int | None] | None = None,
        input_dim: int | None = None,
        batch_size: int | None = None,
    ) -> None:
        if input_dim is not None:
            input_shape = [input_dim]
        if batch_input_shape is None and input_shape is not None:
            batch_input_shape = [batch_size, *input_shape]
        self.batch_input_shape = None if batch_input_shape is None else tuple(batch_input_shape)
        self.trainable, self.built = trainable, False
        self.dtype = None if dtype is None else as_dtype(dtype)
        self.name = name or unique_name(snake_case(type(self).__name__))
        self._scope: VariableScope | None = None
        self._own: list[Variable] = []
        self._updates: list[Any] = []
        self._state_updates: list[Any] = []
        self._losses: list[Any] = []
        self._calls: list[Call] = []

    @property
    def trainable(self) -> bool:
        """Whether optimisers change the variables; set, it is that of all layers inside, too."""
        return bool(vars(self).get("_trainable", True))

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = value
        for layer in self._sublayers() if "_calls" in vars(self) else ():
            layer.trainable = value

    def build(self, input_shape: Any) -> None:
        """Make the variables; the first call does this."""

    def call(self, inputs: Any) -> Any:
        """What the layer makes of its inputs."""
        return inputs

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs, by the inputs and theirs: bools that are false where steps do not count."""
        return mask if self.supports_masking else None

    def add_weight(
        self,
        name: str | None = None,
        shape: Any = (),
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Any = None,
        use_resource: bool | None = None,
    ) -> Variable:
        """A variable of this layer."""
        first = as_initializer(initializer)
        options = {
            "trainable": trainable is not False,
            "constraint": constraint,
            "use_resource": use_resource,
        }
        regularizer = found_in(REGULARIZERS, "regularizer", regularizer)
        sizes = [int(size or 0) for size in TensorShape(shape).as_list()]
        return get_variable(
            name or "weight", sizes, dtype or self.dtype or settings.floatx, first, regularizer, **options
        )

    add_variable = add_weight

    def add_loss(self, losses: Any) -> None:
        """Add tensors to what ``Model.fit`` makes small."""
        self._losses += list(losses) if isinstance(losses, (list, tuple)) else [losses]

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Add operations that run with each step of training; ``inputs``, which they may depend on, change nothing."""
        self._updates += list(updates) if isinstance(updates, (list, tuple)) else [updates]

    def __call__(self, inputs: Any, *args: Any, training: Any = None, **options: Any) -> Any:
        """What ``call`` makes of ``inputs``."""
        given = _tensors(inputs)
        masks = options["mask"] if options.get("mask") is not None else _masks(given)
        with phase(training), self._collecting(), self._in_scope():
            if not self.built:
                self.build(_shapes(given))
                self.built = True
            more = (
                {"training": learning_phase() if training is None else training}
                if self.takes_training
                else {}
            )
            if self.takes_mask and masks is not None:
                more["mask"] = masks
            made = self.call(given, *args, **{**options, **more})
        self._set_masks(given, made, masks)
        self._calls.append(Call(self, given, options, made))
        for tensor in flatten(made, "outputs")[0]:
            if hasattr(tensor, "type_"):
                tensor.keras_call = self._calls[-1]
        return made

    def _set_masks(self, inputs: Any, outputs: Any, masks: Any) -> None:
        """Let the outputs have their masks; those that layers inside gave them stay."""
        tensors = [one for one in flatten(outputs, "outputs")[0] if hasattr(one, "type_")]
        if any(mask_of(one) is not None for one in tensors):
            return
        made = self.compute_mask(inputs, masks)
        found = made if isinstance(made, (list, tuple)) else [made] * (1 if made is not None else 0)
        for tensor, mask in zip(tensors, found):
            if mask is not None:
                tensor._keras_mask = mask

    @contextmanager
    def _in_scope(self) -> Iterator[None]:
        if self._scope is None:
            with variable_scope(None, self.name) as made:
                pass
            self._scope = VariableScope(made.name, False, None, made.dtype)
            self._scope.original_name_scope = made.original_name_scope
        with variable_scope(self._scope):
            yield

    @contextmanager
    def _collecting(self) -> Iterator[None]:
        """Inside, the layer keeps what is put in collections; updates and losses leave these, as in Keras."""
        graph = get_default_graph()
        start = len(graph.get_collection_ref(GraphKeys.GLOBAL_VARIABLES))
        taken = {GraphKeys.UPDATE_OPS: self._updates, GraphKeys.REGULARIZATION_LOSSES: self._losses}
        before = {key: len(graph.get_collection_ref(key)) for key in taken}
        yield
        inner = {id(variable) for layer in self._sublayers() for variable in layer.weights}
        new = graph.get_collection_ref(GraphKeys.GLOBAL_VARIABLES)[start:]
        self._own += [variable for variable in new if id(variable) not in inner]
        for key, kept in taken.items():
            collection = graph.get_collection_ref(key)
            kept += collection[before[key] :]
            del collection[before[key] :]

    def _sublayers(self) -> list[Layer]:
        """Layers among the attributes, alone or in lists and dicts."""
        found: dict[int, Layer] = {}
        for value in vars(self).values():
            items = (
                value.values()
                if isinstance(value, dict)
                else value
                if isinstance(value, (list, tuple))
                else [value]
            )
            found |= {id(item): item for item in items if isinstance(item, Layer) and item is not self}
        return list(found.values())

    def _all(self, what: str) -> list[Any]:
        found = {id(item): item for layer in self._sublayers() for item in getattr(layer, what)}
        return list(found.values())

    @property
    def weights(self) -> list[Variable]:
        """All variables, those that are trained first."""
        return [*self.trainable_weights, *self.non_trainable_weights]

    @property
    def trainable_weights(self) -> list[Variable]:
        """The variables that are trained."""
        if not self.trainable:
            return []
        return [*[one for one in self._own if one.trainable], *self._all("trainable_weights")]

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """The variables that are not."""
        own = [one for one in self._own if not (one.trainable and self.trainable)]
        return [*own, *self._all("non_trainable_weights" if self.trainable else "weights")]

    variables = weights
    trainable_variables, non_trainable_variables = trainable_weights, non_trainable_weights

    @property
    def losses(self) -> list[Any]:
        """What regularizers and ``add_loss`` gave."""
        return [*self._losses, *self._all("losses")]

    @property
    def updates(self) -> list[Any]:
        """Operations to run with each step of training, such as those of moving averages."""
        return [*self._updates, *self._all("updates")]

    @property
    def state_updates(self) -> list[Any]:
        """Operations by which stateful layers keep their states, to run with each batch."""
        return [*self._state_updates, *self._all("state_updates")]

    @property
    def input(self) -> Any:
        """What the layer was called with first."""
        return self._first().inputs

    @property
    def output(self) -> Any:
        """What the layer made in its first call."""
        return self._first().outputs

    @property
    def input_shape(self) -> Any:
        """The shape of ``input``, as a tuple with None for unknown sizes; a list of those of several."""
        found = self.input
        shapes = [tuple(one.get_shape().as_list()) for one in flatten(found, "input")[0]]
        return shapes if isinstance(found, list) and len(shapes) > 1 else shapes[0]

    @property
    def output_shape(self) -> Any:
        """The shape of ``output``, as a tuple with None for unknown sizes; a list of those of several."""
        shapes = [tuple(one.get_shape().as_list()) for one in flatten(self.output, "output")[0]]
        return shapes if isinstance(self.output, (list, tuple)) and len(shapes) > 1 else shapes[0]

    def _first(self) -> Call:
        if not self._calls:
            raise AttributeError(f"layer {self.name} was never called, at {here()}. Call it first.")
        return self._calls[0]

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer; a subclass with arguments of its own adds them.

        Raises NotImplementedError where a subclass that needs more does not.
        """
        own = inspect.signature(type(self).__init__).parameters.values()
        base = inspect.signature(Layer.__init__).parameters
        fixed = [one for one in own if one.kind is not one.VAR_KEYWORD and one.kind is not one.VAR_POSITIONAL]
        missing = [one.name for one in fixed if one.name not in base and one.default is one.empty]
        if missing and "get_config" not in vars(type(self)) and type(self).get_config is Layer.get_config:
            what = f"{type(self).__name__} has arguments of its own, {', '.join(missing)}"
            raise NotImplementedError(f"{what}, at {here()}. Let its get_config return them.")
        return self._base_config()

    def _base_config(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "trainable": self.trainable}
        if self.batch_input_shape is not None:
            found["batch_input_shape"] = self.batch_input_shape
        if self.dtype is not None:
            found["dtype"] = self.dtype.name
        return found

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The layer of these arguments."""
        return cls(**config)

    def count_params(self) -> int:
        """How many numbers the variables hold."""
        return sum(variable.shape.num_elements() or 0 for variable in self.weights)

    def get_weights(self) -> list[numpy.ndarray]:
        """The values of all variables."""
        return [value_of(variable) for variable in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set all variables; raises ValueError where number or shapes differ."""
        own = self.weights
        shapes = [list(numpy.shape(value)) for value in weights]
        if shapes != [variable.shape.as_list() for variable in own]:
            wanted = [variable.shape.as_list() for variable in own]
            raise ValueError(f"set_weights: shapes {shapes} for {self.name} with {wanted}, at {here()}.")
        for variable, value in zip(own, weights):
            put_value(variable, value)


def made_from(config: Any, custom_objects: Any = None) -> Any:
    """The layer of a dict of ``class_name`` and ``config``."""
    return import_module("twofold.static.keras.configs").deserialize(config, custom_objects)


def as_initializer(identifier: Any) -> Any:
    """An initializer from what a layer is given: an object, a class or a name."""
    found = found_in(INITIALIZERS, "initializer", identifier)
    return found() if isinstance(identifier, (str, type)) else found


def as_activation(identifier: Any) -> Any:
    """A function from what a layer is given: a function or a name."""
    return found_in(ACTIVATIONS, "activation function", identifier)


def put_value(variable: Variable, value: Any) -> None:
    """Set a variable of models."""
    if at_once():
        assign(variable, value)
    else:
        variable.load(value, get_session())


def value_of(variable: Variable) -> numpy.ndarray:
    """The value of a variable of models."""
    return variable.numpy() if at_once() else get_session().run(variable)


def _tensors(inputs: Any) -> Any:
    if isinstance(inputs, (list, tuple)):
        return [_tensors(one) for one in inputs]
    return convert_to_tensor(inputs)


def _masks(inputs: Any) -> Any:
    """The masks of inputs in their structure; None where there are none."""
    if isinstance(inputs, list):
        found = [_masks(one) for one in inputs]
        return None if all(one is None for one in found) else found
    return mask_of(inputs)


def _shapes(inputs: Any) -> Any:
    if isinstance(inputs, list):
        return [_shapes(one) for one in inputs]
    return inputs.get_shape()
