"""Recurrent cells that make their variables: ``tf.nn.rnn_cell``.

A cell maps ``(inputs, state)`` to ``(output, new state)``; ``tf.nn.dynamic_rnn`` and its kin apply it step by step.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from twofold.dtypes import float32
from twofold.errors import ArgumentError, ShapeError
from twofold.runtime.calls import failed
from twofold.runtime.pytree import flatten, unflatten
from twofold.static import initializers, math, nn
from twofold.static.api.op_functions import as_dtype, convert_to_tensor, refuse, snake_case
from twofold.static.api.signatures import REQUIRED, parameters, with_parameters
from twofold.static.arrays import creation, shape_ops
from twofold.static.autodiff.clipping import clip_by_value
from twofold.static.graph.graph import describe, get_default_graph
from twofold.static.graph.scopes import device as placed
from twofold.static.graph.tensor_shape import TensorShape, shape_of_sizes
from twofold.static.random import random_uniform
from twofold.static.variables.variable_scope import (
    VariableScope,
    get_variable,
    get_variable_scope,
    variable_scope,
)


class LSTMStateTuple(NamedTuple):
    """Memory ``c`` and output ``h`` of a long short-term memory."""

    c: Any
    h: Any


class RNNCell:
    """What all cells share; a subclass gives ``state_size``, ``output_size`` and ``call(inputs, state)``.

    >>> import twofold.static as tf
    >>> class Sum(tf.nn.rnn_cell.RNNCell):
    ...     state_size = output_size = 2
    ...     def call(self, inputs, state):
    ...         return inputs + state, inputs + state
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     outputs, last = tf.nn.dynamic_rnn(Sum(), tf.ones([1, 3, 2]), dtype=tf.float32)
    ...     print(session.run(last))
    [[3. 3.]]
    """

    _is_layer = False

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: Any = None, _reuse: bool | None = None
    ) -> None:
        self.trainable, self.dtype = trainable, dtype
        self._name, self._reuse = name, _reuse

    def _begin(self) -> None:
        """Check and convert what ``taking`` has kept."""

    _given: Any = None

    def __getattr__(self, name: str) -> Any:
        """What ``taking`` has kept, under the name that subclasses know it by, such as ``_num_units``."""
        if name.startswith("_") and name[1:] in getattr(self._given, "__dict__", ()):
            return getattr(self._given, name[1:])
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") and name[1:] in getattr(self._given, "__dict__", ()):
            setattr(self._given, name[1:], value)
        else:
            object.__setattr__(self, name, value)

    _name: str | None = None
    _reuse: bool | None = None
    _scope: VariableScope | None = None
    built = False

    @property
    def name(self) -> str:
        """The name of the cell's variable scope, unless another is given with the first call."""
        return self._name or snake_case(type(self).__name__)

    @property
    def state_size(self) -> Any:
        """Sizes of the state: an integer, a shape, or a nested structure of them."""
        raise NotImplementedError(f"{type(self).__name__} does not say its state_size. Define the property.")

    @property
    def output_size(self) -> Any:
        """Size of the output, as ``state_size``."""
        raise NotImplementedError(f"{type(self).__name__} does not say its output_size. Define the property.")

    def build(self, inputs_shape: Any) -> None:
        """Make the variables, before the first ``call``."""

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output and the new state."""
        raise NotImplementedError(
            f"{type(self).__name__} does not say what it computes. Define call(inputs, state)."
        )

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """``call`` in the cell's variable scope, which is that of its first call."""
        if scope is not None or self._is_layer:
            return self._called(inputs, state, scope)
        # As in TensorFlow, another cell of this kind that is called in the same scope has the same name there.
        with variable_scope(get_variable_scope(), auxiliary_name_scope=False):
            return self._called(inputs, state, None)

    def _called(self, inputs: Any, state: Any, scope: Any) -> tuple[Any, Any]:
        if self._scope is None:
            first = scope if scope is not None or not self._reuse else self.name
            with variable_scope(first, self.name) as self._scope:
                pass
        with variable_scope(self._scope, reuse=self.built or self._reuse or None):
            if not self.built:
                first = convert_to_tensor(flatten(inputs, "inputs")[0][0])
                self.build(shape_of_sizes(first.type_.shape))
            found = self.call(inputs, state)
        self.built = True
        return found

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros for a batch of a size, or of several axes."""
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            return _zero_state_tensors(self.state_size, batch_size, dtype)

    def add_variable(
        self, name: str, shape: Any, dtype: Any = None, initializer: Any = None, **more: Any
    ) -> Any:
        """A variable of the cell."""
        kind = dtype or self.dtype or float32
        more.setdefault("trainable", self.trainable)
        return get_variable(name, shape, kind, initializer, **more)

    add_weight = add_variable

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A cell of its own, with the variables that this one has made."""
        made = memo[id(self)] = copy.copy(self)
        made.__dict__ = {name: _copied(value, memo) for name, value in self.__dict__.items()}
        return made

    @property
    def variables(self) -> list[Any]:
        """The cell's variables."""
        return [] if self._scope is None else self._scope.global_variables()

    @property
    def trainable_variables(self) -> list[Any]:
        """Those of them that are trained."""
        return [] if self._scope is None else self._scope.trainable_variables()

    weights, trainable_weights = variables, trainable_variables


class LayerRNNCell(RNNCell):
    """A cell that is a layer, whose variables it makes in ``build``: another one in the same scope has another name."""

    _is_layer = True


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    """Cells copied, alone or in a list; anything else as it is."""
    if isinstance(value, list):
        return [_copied(one, memo) for one in value]
    return copy.deepcopy(value, memo) if isinstance(value, RNNCell) else value


def _map_sizes(sizes: Any, function: Callable[[list[int]], Any]) -> Any:
    """``function`` of each shape in a nested structure of sizes."""
    values, _, structure = flatten(sizes, "state_size")
    return unflatten(structure, [function([int(size) for size in TensorShape(value)]) for value in values])


def _zero_state_tensors(state_size: Any, batch_size: Any, dtype: Any) -> Any:
    """Zeros of the sizes of a state for a batch; cells of programs call it by this name, which TensorFlow has."""
    kind = as_dtype(dtype)
    batch = batch_size if isinstance(batch_size, (list, tuple)) else [batch_size]
    return _map_sizes(state_size, lambda size: creation.zeros([*batch, *size], kind))


def _activation(given: Any, usual: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An activation, which may be given by its name."""
    if isinstance(given, str):
        return getattr(nn, given)
    return usual if given is None else given


def last_size(what: str, shape: Any) -> int:
    """The last size of inputs; raises ShapeError where it is unknown."""
    size = TensorShape(shape)[-1].value if TensorShape(shape).ndims else None
    if size is None:
        fix = "Give the placeholder that size."
        raise failed(
            what, ShapeError(f"the last axis of inputs of shape {TensorShape(shape)} is unknown", fix)
        )
    return int(size)


def taking(own: str, beside: str = "") -> Callable[..., None]:
    """The ``__init__`` of a cell with its ``own`` parameters and those of all, which are kept in ``_given``.

    ``beside`` are parameters that it has not: they are kept with their defaults.
    """

    def initialize(self: RNNCell, trainable: bool, _reuse: bool | None, **given: Any) -> None:
        reuse = given.pop("reuse", None)
        shared = given.pop("name", None), given.pop("dtype", None)
        RNNCell.__init__(self, trainable, *shared, _reuse=_reuse if reuse is None else reuse)
        if given.get("num_units") is not None:
            given["num_units"] = int(given["num_units"])
        self._given = SimpleNamespace(**{**parameters(beside), **given})
        self._begin()

    behind = {"trainable": True, "_reuse": None}
    return with_parameters(initialize, {"self": REQUIRED, **parameters(own), **behind})


class OneState(LayerRNNCell):
    """A cell whose state is its output, of ``num_units`` numbers."""

    def _begin(self) -> None:
        self._given.activation = _activation(self._given.activation, math.tanh)

    @property
    def state_size(self) -> Any:
        return self._given.num_units

    @property
    def output_size(self) -> Any:
        return self._given.num_units


class BasicRNNCell(OneState):
    """``tanh([inputs, state] @ kernel + bias)``, which is output and state."""

    __init__ = taking("num_units, activation=None, reuse=None, name=None, dtype=None")

    def build(self, inputs_shape: Any) -> None:
        self._kernel = self.add_variable(
            "kernel",
            [last_size(type(self).__name__, inputs_shape) + self._given.num_units, self._given.num_units],
        )
        self._bias = self.add_variable(
            "bias", [self._given.num_units], initializer=initializers.zeros_initializer()
        )

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        gates = math.matmul(shape_ops.concat([inputs, state], 1), self._kernel)
        output = self._given.activation(nn.bias_add(gates, self._bias))
        return output, output


class GRUCell(OneState):
    """The gated recurrent unit of Cho et al. 2014, with the reset gate before the product."""

    _names: Sequence[str] = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")

    __init__ = taking(
        "num_units, activation=None, reuse=None, kernel_initializer=None, bias_initializer=None, name=None, dtype=None"
    )

    def build(self, inputs_shape: Any) -> None:
        units, width = (
            self._given.num_units,
            last_size(type(self).__name__, inputs_shape) + self._given.num_units,
        )
        kernel, bias = self._given.kernel_initializer, self._given.bias_initializer
        self._gate_kernel = self.add_variable(self._names[0], [width, 2 * units], initializer=kernel)
        ones, zeros = initializers.constant_initializer(1.0), initializers.zeros_initializer()
        self._gate_bias = self.add_variable(self._names[1], [2 * units], initializer=bias or ones)
        self._kernel = self.add_variable(self._names[2], [width, units], initializer=kernel)
        self._bias = self.add_variable(self._names[3], [units], initializer=bias or zeros)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        gates = nn.bias_add(
            math.matmul(shape_ops.concat([inputs, state], 1), self._gate_kernel), self._gate_bias
        )
        reset, update = shape_ops.split(math.sigmoid(gates), 2, 1)
        given = shape_ops.concat([inputs, reset * state], 1)
        candidate = self._given.activation(nn.bias_add(math.matmul(given, self._kernel), self._bias))
        new = update * state + (1.0 - update) * candidate
        return new, new


LSTM_OPTIONS = (
    "use_peepholes=False, cell_clip=None, initializer=None, num_proj=None, proj_clip=None, num_unit_shards=None, "
    "num_proj_shards=None, forget_bias=1.0, state_is_tuple=True, activation=None"
)


class LSTMCell(LayerRNNCell):
    """Long short-term memory (Hochreiter and Schmidhuber 1997; Gers et al. 1999), optionally projected.

    With ``use_peepholes`` the gates see the memory, ``cell_clip`` limits it; ``num_proj`` is the size that the
    output is projected to, within ``proj_clip``.
    """

    __init__ = taking(f"num_units, {LSTM_OPTIONS}, reuse=None, name=None, dtype=None")

    def _begin(self) -> None:
        for name in ("num_unit_shards", "num_proj_shards"):
            shards = getattr(self._given, name)
            refuse("LSTMCell", **{name: None if shards == 1 else shards})
        self._given.activation = _activation(self._given.activation, math.tanh)

    @property
    def output_size(self) -> Any:
        return self._given.num_proj or self._given.num_units

    @property
    def state_size(self) -> Any:
        if self._given.state_is_tuple:
            return LSTMStateTuple(self._given.num_units, self.output_size)
        return self._given.num_units + self.output_size

    def build(self, inputs_shape: Any) -> None:
        units, first = self._given.num_units, self._given.initializer
        width = last_size(type(self).__name__, inputs_shape) + self.output_size
        self._kernel = self.add_variable("kernel", [width, 4 * units], initializer=first)
        self._bias = self.add_variable("bias", [4 * units], initializer=initializers.zeros_initializer())
        if self._given.use_peepholes:
            names = ("w_f_diag", "w_i_diag", "w_o_diag")
            self._peepholes = [self.add_variable(name, [units], initializer=first) for name in names]
        if self._given.num_proj:
            shape = [units, self._given.num_proj]
            self._projection = self.add_variable("projection/kernel", shape, initializer=first)

    def _gates(self, inputs: Any, output: Any) -> Sequence[Any]:
        """What opens the input, the candidate, what opens memory and output, before their activations."""
        gates = math.matmul(shape_ops.concat([inputs, output], 1), self._kernel)
        return shape_ops.split(nn.bias_add(gates, self._bias), 4, 1)

    def _normal(self, value: Any, name: str) -> Any:
        """A gate or the memory, which only some cells normalise."""
        return value

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        sizes = [self._given.num_units, self.output_size]
        memory, output = state if self._given.state_is_tuple else shape_ops.split(state, sizes, 1)
        into, candidate, forget, out = self._gates(inputs, output)
        forget = forget + self._given.forget_bias
        if self._given.use_peepholes:
            forget, into = forget + self._peepholes[0] * memory, into + self._peepholes[1] * memory
        memory = math.sigmoid(forget) * memory + math.sigmoid(into) * self._given.activation(candidate)
        memory = self._normal(memory, "state")
        if self._given.cell_clip is not None:
            memory = clip_by_value(memory, -self._given.cell_clip, self._given.cell_clip)
        if self._given.use_peepholes:
            out = out + self._peepholes[2] * memory
        output = math.sigmoid(out) * self._given.activation(memory)
        if self._given.num_proj:
            output = math.matmul(output, self._projection)
            if self._given.proj_clip is not None:
                output = clip_by_value(output, -self._given.proj_clip, self._given.proj_clip)
        if self._given.state_is_tuple:
            return output, LSTMStateTuple(memory, output)
        return output, shape_ops.concat([memory, output], 1)


class BasicLSTMCell(LSTMCell):
    """Long short-term memory without options."""

    __init__ = taking(
        "num_units, forget_bias=1.0, state_is_tuple=True, activation=None, reuse=None, name=None, dtype=None",
        LSTM_OPTIONS,
    )


class MultiRNNCell(RNNCell):
    """Cells above each other: each reads the output of the one below; the state is the tuple of theirs."""

    def __init__(self, cells: Sequence[RNNCell], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not isinstance(cells, (list, tuple)) or not cells:
            what = f"cells are {cells!r}"
            raise failed("MultiRNNCell", ArgumentError(what, "Give a list of at least one cell."))
        self._cells, self._state_is_tuple = list(cells), state_is_tuple

    @property
    def state_size(self) -> Any:
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros for a batch."""
        if not self._state_is_tuple:
            return super().zero_state(batch_size, dtype)
        with get_default_graph().name_scope("MultiRNNCellZeroState"):
            return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        if not self._state_is_tuple:
            state = shape_ops.split(state, [cell.state_size for cell in self._cells], 1)
        if len(state) != len(self._cells):
            what = f"{len(state)} states for {len(self._cells)} cells"
            raise failed("MultiRNNCell", ArgumentError(what, "Give one state for each cell."))
        new = []
        for k, (cell, own) in enumerate(zip(self._cells, state)):
            with variable_scope(f"cell_{k}"):
                inputs, made = cell(inputs, own)
            new.append(made)
        return inputs, tuple(new) if self._state_is_tuple else shape_ops.concat(new, 1)


class Wrapper(RNNCell):
    """A cell around another one, without variables of its own."""

    def __init__(self, cell: RNNCell) -> None:
        super().__init__()
        self._cell = cell

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros for a batch."""
        return self._cell.zero_state(batch_size, dtype)

    @property
    def variables(self) -> list[Any]:
        return self._cell.variables

    @property
    def trainable_variables(self) -> list[Any]:
        return self._cell.trainable_variables

    weights, trainable_weights = variables, trainable_variables


class DropoutWrapper(Wrapper):
    """A cell whose inputs, outputs and states are dropped at random, anew in each step.

    Of an LSTM's state only the output ``h`` is dropped. With ``variational_recurrent`` (Gal and Ghahramani, 2016) all
    steps and rows of a run share one mask, of ``dtype``; ``input_size`` is then the size of inputs that are dropped.
    Raises ValueError for a probability outside 0 to 1, ArgumentError for a filter of states.
    """

    def __init__(
        self,
        cell: RNNCell,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Any = None,
    ) -> None:
        super().__init__(cell)
        if dropout_state_filter_visitor is not None:
            what = "filters of states are not offered"
            raise failed("DropoutWrapper", ArgumentError(what, "Leave the argument out."))
        self._kept = input_keep_prob, output_keep_prob, state_keep_prob
        for name, kept in zip(("input", "output", "state"), self._kept):
            if isinstance(kept, (int, float)) and not 0 <= kept <= 1:
                what = f"{name}_keep_prob is {kept}"
                raise failed("DropoutWrapper", ArgumentError(what, "Give a probability between 0 and 1."))
        self._seed = seed
        self._noises = self._drawn(input_size, dtype) if variational_recurrent else (None,) * 3

    def _drawn(self, input_size: Any, dtype: Any) -> tuple[Any, Any, Any]:
        """The noise of the masks of inputs, outputs and states, for all steps of a run."""
        if dtype is None or (input_size is None and self._drops(self._kept[0])):
            what = "variational_recurrent is chosen without dtype or without the input_size of inputs that are dropped"
            raise failed("DropoutWrapper", ArgumentError(what, "Give both."))

        def noise(sizes: Any, kept: Any) -> Any:
            if not self._drops(kept):
                return None
            return _map_sizes(sizes, lambda shape: random_uniform([1, *shape], dtype=dtype, seed=self._seed))

        inputs, outputs, states = self._kept
        sizes = self._cell.output_size, self._cell.state_size
        return noise(input_size, inputs), noise(sizes[0], outputs), noise(sizes[1], states)

    @staticmethod
    def _drops(kept: Any) -> bool:
        return not (isinstance(kept, (int, float)) and kept == 1)

    def _dropped(self, value: Any, kept: Any, noise: Any) -> Any:
        if not self._drops(kept):
            return value
        if noise is None:
            return nn.dropout(value, kept, seed=self._seed)
        return value / kept * math.floor(noise + kept)

    def _dropped_state(self, state: Any, noise: Any) -> Any:
        if isinstance(state, LSTMStateTuple):
            own = None if noise is None else noise.h
            return LSTMStateTuple(state.c, self._dropped(state.h, self._kept[2], own))
        if isinstance(state, (list, tuple)):
            noises = [None] * len(state) if noise is None else noise
            return type(state)(self._dropped_state(*pair) for pair in zip(state, noises))
        return self._dropped(state, self._kept[2], noise)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """The cell's output and new state, dropped."""
        output, new = self._cell(self._dropped(inputs, self._kept[0], self._noises[0]), state, scope)
        return self._dropped(output, self._kept[1], self._noises[1]), self._dropped_state(
            new, self._noises[2]
        )


class ResidualWrapper(Wrapper):
    """A cell whose inputs are added to its outputs, or combined with them by ``residual_fn(inputs, outputs)``."""

    def __init__(self, cell: RNNCell, residual_fn: Callable[[Any, Any], Any] | None = None) -> None:
        super().__init__(cell)
        self._function = residual_fn or math.add

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """The combined output and the cell's new state."""
        output, new = self._cell(inputs, state, scope)
        a, b = convert_to_tensor(inputs), convert_to_tensor(output)
        if self._function is math.add and not a.get_shape().is_compatible_with(b.get_shape()):
            what = f"inputs {describe(a)} and outputs {describe(b)} differ in shape"
            raise failed("ResidualWrapper", ShapeError(what, "Give a residual_fn that combines them."))
        return self._function(inputs, output), new


class DeviceWrapper(Wrapper):
    """A cell declared in ``tf.device(device)``."""

    def __init__(self, cell: RNNCell, device: Any) -> None:
        super().__init__(cell)
        self._device = device

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """The cell's output and new state."""
        with placed(self._device):
            return self._cell(inputs, state, scope)
