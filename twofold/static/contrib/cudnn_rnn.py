"""Recurrent layers over whole sequences, named as graphics processors have them: ``tf.contrib.cudnn_rnn``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.dtypes import float32
from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static import initializers, math, nn
from twofold.static.api.op_functions import as_dtype, convert_to_tensor, snake_case
from twofold.static.arrays import shape_ops
from twofold.static.contrib.cells import LSTMBlockCell
from twofold.static.control_flow.conditional import cond
from twofold.static.graph.docstrings import example
from twofold.static.python.positions import enter
from twofold.static.recurrent.rnn import bidirectional_dynamic_rnn, dynamic_rnn
from twofold.static.recurrent.rnn_cell import (
    LSTM_OPTIONS,
    BasicRNNCell,
    LSTMStateTuple,
    OneState,
    last_size,
    taking,
)
from twofold.static.variables.variable_scope import VariableScope, variable_scope

CUDNN_RNN_UNIDIRECTION, CUDNN_RNN_BIDIRECTION = "unidirectional", "bidirectional"
CUDNN_INPUT_LINEAR_MODE, CUDNN_INPUT_SKIP_MODE = "linear_input", "skip_input"


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """Long short-term memory without anything added to the forget gate: a step of ``CudnnLSTM``."""

    __init__ = taking(
        "num_units, reuse=None, name='cudnn_compatible_lstm_cell'",
        f"{LSTM_OPTIONS.replace('forget_bias=1.0', 'forget_bias=0.0')}, use_peephole=False",
    )


class CudnnCompatibleGRUCell(OneState):
    """The gated recurrent unit with the reset gate behind the product: a step of ``CudnnGRU``."""

    __init__ = taking(
        "num_units, reuse=None, kernel_initializer=None, name='cudnn_compatible_gru_cell'", "activation=None"
    )

    def build(self, inputs_shape: Any) -> None:
        units, width = self._given.num_units, last_size(type(self).__name__, inputs_shape)
        ones, zeros = initializers.ones_initializer(), initializers.zeros_initializer()
        parts: dict[str, tuple[int, int, Any]] = {"gates": (width + units, 2 * units, ones)}
        parts["candidate/input_projection"] = (width, units, zeros)
        parts["candidate/hidden_projection"] = (units, units, zeros)
        self._parts = [
            (
                self.add_variable(f"{name}/kernel", [rows, columns], None, self._given.kernel_initializer),
                self.add_variable(f"{name}/bias", [columns], None, first),
            )
            for name, (rows, columns, first) in parts.items()
        ]

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        def product(value: Any, part: int) -> Any:
            kernel, bias = self._parts[part]
            return nn.bias_add(math.matmul(value, kernel), bias)

        gates = math.sigmoid(product(shape_ops.concat([inputs, state], 1), 0))
        reset, update = shape_ops.split(gates, 2, 1)
        candidate = self._given.activation(product(inputs, 1) + reset * product(state, 2))
        new = (1.0 - update) * candidate + update * state
        return new, new


class _Layers:
    """``num_layers`` recurrent layers, each with the outputs of the one before it as inputs, time first.

    Args:
        num_layers: How many layers.
        num_units: The size of the state of each.
        input_mode: Must be "linear_input" (or "auto_select", which is that here).
        direction: "unidirectional", or "bidirectional", where outputs are those of both directions side by side.
        dropout: The share of the outputs between layers that is dropped while training.
        seed: Of what is dropped.
        dtype: Of the variables.
        kernel_initializer, bias_initializer: What the variables begin with; Glorot's uniform numbers and zeros.
        name: Of the variable scope.
    """

    _cell: Callable[..., Any]
    _states = 1

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: str = CUDNN_INPUT_LINEAR_MODE,
        direction: str = CUDNN_RNN_UNIDIRECTION,
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: Any = float32,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
    ) -> None:
        own, ways = type(self).__name__, (CUDNN_RNN_UNIDIRECTION, CUDNN_RNN_BIDIRECTION)
        if input_mode not in (CUDNN_INPUT_LINEAR_MODE, "auto_select"):
            raise ArgumentError(f"{own}: input_mode is {input_mode!r}, at {here()}", "Use 'linear_input'.")
        if direction not in ways:
            fix = f"Use {ways[0]!r} or {ways[1]!r}."
            raise ArgumentError(f"{own}: direction is {direction!r}, at {here()}", fix)
        self.num_layers, self.num_units, self.direction = int(num_layers), int(num_units), direction
        self.num_dirs = 1 + ways.index(direction)
        self._dropout, self._seed, self.dtype = dropout, seed, as_dtype(dtype)
        self._kernel, self._bias = kernel_initializer, bias_initializer or initializers.zeros_initializer()
        self.name, self._scope, self._cells = name or snake_case(own), None, []

    _scope: VariableScope | None
    _cells: list[list[Any]]

    @property
    def variables(self) -> list[Any]:
        """The variables of all layers."""
        return [variable for cells in self._cells for cell in cells for variable in cell.variables]

    trainable_variables = trainable_weights = weights = variables

    def state_shape(self, batch_size: Any) -> Any:
        """The shapes of the parts of the state."""
        return ([self.num_layers * self.num_dirs, batch_size, self.num_units],) * self._states

    def __call__(self, inputs: Any, initial_state: Any = None, training: Any = True) -> tuple[Any, Any]:
        """Outputs (time, batch, units of all directions), and the last states of all layers and directions.

        Args:
            inputs: A tensor (time, batch, channels).
            initial_state: The parts of the state, each (layers * directions, batch, units); zeros unless given.
            training: Whether outputs between layers are dropped: a bool, or a tensor of one.
        """
        outputs = convert_to_tensor(inputs, self.dtype)
        if not self._cells:
            self._make()
        given = [None] * self.num_layers
        if initial_state is not None:
            given = self._split(initial_state)
        last: list[Any] = []
        for number, (cells, state) in enumerate(zip(self._cells, given)):
            if number and self._dropout:
                outputs = self._dropped(outputs, training)
            outputs, states = self._run(cells, outputs, state)
            last += states
        parts = zip(*last) if self._states > 1 else [last]
        return outputs, tuple(shape_ops.stack(list(part)) for part in self._ordered(parts))

    call = __call__

    def _make(self) -> None:
        """The cells, in scopes with the names that TensorFlow's checkpoints have for them."""
        both = self.num_dirs == 2
        above = "stack_bidirectional_rnn" if both else "rnn/multi_rnn_cell"
        with variable_scope(self.name) as self._scope:
            for number in range(self.num_layers):
                cells = []
                for way in ("bidirectional_rnn/fw/", "bidirectional_rnn/bw/") if both else ("",):
                    cell = self._cell(self.num_units)
                    cell.add_variable = self._beginning(cell.add_variable)
                    with variable_scope(f"{above}/cell_{number}/{way}{cell.name}") as cell._scope:
                        pass
                    cells.append(cell)
                self._cells.append(cells)

    def _beginning(self, add: Callable[..., Any]) -> Callable[..., Any]:
        """``add_variable`` of a cell, with what this layer's variables begin with."""

        def added(name: str, shape: Any, dtype: Any = None, initializer: Any = None, **more: Any) -> Any:
            first = self._bias if name.endswith("bias") else self._kernel or initializer
            return add(name, shape, dtype or self.dtype, first, **more)

        return added

    def _run(self, cells: list[Any], inputs: Any, state: Any) -> tuple[Any, list[Any]]:
        if len(cells) == 1:
            begin = None if state is None else state[0]
            outputs, last = dynamic_rnn(cells[0], inputs, None, begin, self.dtype, time_major=True)
            return outputs, [last]
        (forward, backward), (first, second) = cells, (None, None) if state is None else state
        outputs, last = bidirectional_dynamic_rnn(
            forward, backward, inputs, None, first, second, self.dtype, time_major=True
        )
        return shape_ops.concat(outputs, 2), list(last)

    def _dropped(self, outputs: Any, training: Any) -> Any:
        def drop() -> Any:
            return nn.dropout(outputs, 1.0 - self._dropout, seed=self._seed)

        if isinstance(training, (bool, int)):
            return drop() if training else outputs
        return cond(training, drop, lambda: shape_ops.identity(outputs))

    def _split(self, state: Any) -> list[Any]:
        """The states of the directions of each layer."""
        given = state if isinstance(state, (list, tuple)) else [state]
        count = self.num_layers * self.num_dirs
        parts = [shape_ops.unstack(convert_to_tensor(one), count) for one in given]
        each = [self._joined(one) for one in zip(*parts)]
        return [each[k : k + self.num_dirs] for k in range(0, count, self.num_dirs)]

    def _joined(self, parts: Sequence[Any]) -> Any:
        """A cell's state from its parts in the order of this layer."""
        return parts[0]

    def _ordered(self, parts: Any) -> list[Any]:
        """The parts of a cell's state in the order of this layer."""
        return list(parts)


@example(
    "rnn = tf.contrib.cudnn_rnn.CudnnLSTM(2, 4, direction='bidirectional')",
    "outputs, (h, c) = rnn(tf.ones([5, 3, 2]))",
    "print(outputs.shape, h.shape, c.shape)",
    "(5, 3, 8) (4, 3, 4) (4, 3, 4)",
)
class CudnnLSTM(_Layers):
    __doc__ = f"Long short-term memory; the state is (h, c).\n\n    {_Layers.__doc__}"

    _cell, _states = CudnnCompatibleLSTMCell, 2

    def _joined(self, parts: Sequence[Any]) -> Any:
        return LSTMStateTuple(parts[1], parts[0])

    def _ordered(self, parts: Any) -> list[Any]:
        c, h = parts
        return [h, c]


@example(
    "outputs, (h,) = tf.contrib.cudnn_rnn.CudnnGRU(1, 4)(tf.ones([5, 3, 2]))",
    "print(outputs.shape, h.shape)",
    "(5, 3, 4) (1, 3, 4)",
)
class CudnnGRU(_Layers):
    __doc__ = f"Gated recurrent units; the state is (h,).\n\n    {_Layers.__doc__}"

    _cell = CudnnCompatibleGRUCell


class CudnnRNNTanh(_Layers):
    __doc__ = f"``tanh(x @ kernel + h @ kernel + bias)``; the state is (h,).\n\n    {_Layers.__doc__}"

    _cell = BasicRNNCell


class CudnnRNNRelu(_Layers):
    __doc__ = f"``relu(x @ kernel + h @ kernel + bias)``; the state is (h,).\n\n    {_Layers.__doc__}"

    @staticmethod
    def _cell(num_units: int) -> Any:
        return BasicRNNCell(num_units, nn.relu)


enter(__name__, {"python.layers.cudnn_rnn python.ops.cudnn_rnn_ops": "contrib.cudnn_rnn"})
