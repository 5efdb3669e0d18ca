"""Recurrent cells that only ``tf.contrib.rnn`` has."""

from __future__ import annotations

from typing import Any

from twofold.runtime.pytree import flatten
from twofold.static import initializers, math, nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import reordering, shape_ops
from twofold.static.graph.docstrings import example
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.nn import convolutions
from twofold.static.recurrent.projected_cells import linear
from twofold.static.recurrent.rnn import dynamic_rnn
from twofold.static.recurrent.rnn_cell import (
    LSTM_OPTIONS,
    GRUCell,
    LayerRNNCell,
    LSTMCell,
    LSTMStateTuple,
    OneState,
    RNNCell,
    Wrapper,
    last_size,
    taking,
)
from twofold.static.variables.variable_scope import variable_scope


class LSTMBlockCell(LSTMCell):
    """``LSTMCell`` under the name and with the parameters of TensorFlow's cell in one kernel."""

    __init__ = taking(
        "num_units, forget_bias=1.0, cell_clip=None, use_peephole=False, dtype=None, reuse=None, name='lstm_cell'",
        LSTM_OPTIONS,
    )

    def _begin(self) -> None:
        super()._begin()
        given = self._given
        given.use_peepholes = given.use_peephole
        given.cell_clip = None if given.cell_clip is None or given.cell_clip <= 0 else given.cell_clip


class GRUBlockCellV2(GRUCell):
    """``GRUCell`` under another name; ``cell_size`` is an older ``num_units``."""

    __init__ = taking(
        "num_units=None, cell_size=None, reuse=None, name='gru_cell'",
        "activation=None, kernel_initializer=None, bias_initializer=None",
    )

    def _begin(self) -> None:
        super()._begin()
        given = [size for size in (self._given.num_units, self._given.cell_size) if size is not None]
        if len(given) != 1:
            raise ValueError(f"{type(self).__name__}: give num_units, and not cell_size beside it.")
        self._given.num_units = int(given[0])


class GRUBlockCell(GRUBlockCellV2):
    """``GRUCell`` whose variables are ``w_ru``, ``b_ru``, ``w_c`` and ``b_c``."""

    _names = ("w_ru", "b_ru", "w_c", "b_c")


@example(
    "outputs, state = tf.contrib.rnn.LSTMBlockFusedCell(4)(tf.ones([5, 2, 3]), dtype=tf.float32)",
    "print(outputs.shape, state.h.shape)",
    "(5, 2, 4) (2, 4)",
)
class LSTMBlockFusedCell:
    """A long short-term memory over whole sequences, time first."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: bool | None = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        self._cell = LSTMBlockCell(num_units, forget_bias, cell_clip, use_peephole, dtype, name=name)
        self._name, self._reuse, self.num_units = name, reuse, num_units

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None
    ) -> tuple[Any, LSTMStateTuple]:
        """Outputs (time, batch, units) and the last state."""
        if self._cell._scope is None:
            with variable_scope(None, self._name, reuse=self._reuse) as self._cell._scope:
                pass
        kind = dtype or (convert_to_tensor(inputs).dtype if initial_state is None else None)
        return dynamic_rnn(self._cell, inputs, sequence_length, initial_state, kind, time_major=True)


@example(
    "cell = tf.contrib.rnn.TimeReversedFusedRNN(tf.contrib.rnn.LSTMBlockFusedCell(4))",
    "outputs, last = cell(tf.ones([5, 2, 3]), dtype=tf.float32)",
    "print(outputs.shape, last.h.shape)",
    "(5, 2, 4) (2, 4)",
)
class TimeReversedFusedRNN:
    """A cell over whole sequences, time first, that goes through each from its end; outputs keep their steps."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        **options: Any,
    ) -> tuple[Any, Any]:
        """Outputs (time, batch, units) and the state after the first step."""

        def reverse(value: Any) -> Any:
            if sequence_length is None:
                return shape_ops.reverse(value, [0])
            return reordering.reverse_sequence(value, sequence_length, seq_axis=0, batch_axis=1)

        given = convert_to_tensor(inputs)
        outputs, state = self._cell(reverse(given), initial_state, dtype, sequence_length, **options)
        return reverse(outputs), state


class NASCell(LayerRNNCell):
    """The cell that Zoph and Le found by search (2017) to replace the LSTM; ``num_proj`` projects its output."""

    __init__ = taking("num_units, num_proj=None, use_bias=False, reuse=None, name=None, dtype=None")

    @property
    def output_size(self) -> Any:
        return self._given.num_proj or self._given.num_units

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._given.num_units, self.output_size)

    def build(self, inputs_shape: Any) -> None:
        wide, features = 8 * self._given.num_units, last_size("NASCell", inputs_shape)
        self._recurrent = self.add_variable("recurrent_kernel", [self.output_size, wide])
        self._kernel = self.add_variable("kernel", [features, wide])
        if self._given.use_bias:
            self._bias = self.add_variable("bias", [wide], initializer=initializers.zeros_initializer())
        if self._given.num_proj:
            self._projection = self.add_variable(
                "projection_weights", [self._given.num_units, self._given.num_proj]
            )

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        memory, output = state
        recurrent = math.matmul(output, self._recurrent)
        if self._given.use_bias:
            recurrent = nn.bias_add(recurrent, self._bias)
        x = shape_ops.split(math.matmul(inputs, self._kernel), 8, 1)
        h = shape_ops.split(recurrent, 8, 1)
        sigmoid, tanh, relu = math.sigmoid, math.tanh, nn.relu
        first = tanh(sigmoid(x[0] + h[0]) * relu(x[1] + h[1]))
        second = tanh(sigmoid(x[2] + h[2]) + relu(x[3] * h[3]))
        third = tanh(tanh(x[4] + h[4]) * sigmoid(x[5] + h[5]))
        fourth = sigmoid(tanh(x[6] + h[6]) + sigmoid(x[7] + h[7]))
        memory = tanh(first + memory) * second
        output = tanh(memory * tanh(third + fourth))
        if self._given.num_proj:
            output = math.matmul(output, self._projection)
        return output, LSTMStateTuple(memory, output)


class UGRNNCell(OneState):
    """The update gate recurrent network of Collins et al. (2017)."""

    _is_layer = False

    __init__ = taking("num_units, initializer=None, forget_bias=1.0, activation=None, reuse=None")

    def build(self, inputs_shape: Any) -> None:
        width = last_size("UGRNNCell", inputs_shape) + self._given.num_units
        self._kernel = self.add_variable(
            "kernel", [width, 2 * self._given.num_units], None, self._given.initializer
        )
        self._bias = self.add_variable(
            "bias", [2 * self._given.num_units], None, initializers.zeros_initializer()
        )

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        made = nn.bias_add(math.matmul(shape_ops.concat([inputs, state], 1), self._kernel), self._bias)
        gate, candidate = shape_ops.split(made, 2, 1)
        gate = math.sigmoid(gate + self._given.forget_bias)
        new = gate * state + (1.0 - gate) * self._given.activation(candidate)
        return new, new


_CONVOLUTION = (
    "input_shape, output_channels, kernel_shape, use_bias=True, skip_connection=False, forget_bias=1.0, "
    "initializers=None"
)


class ConvLSTMCell(RNNCell):
    """A long short-term memory of images (Shi et al., 2015): its products are convolutions.

    ``skip_connection`` joins the inputs to the outputs.
    """

    __init__ = taking(f"conv_ndims, {_CONVOLUTION}, name='conv_lstm_cell'")

    def _begin(self) -> None:
        given = self._given
        image, kernel, ndims = given.input_shape, given.kernel_shape, given.conv_ndims
        if ndims != len(image) - 1 or ndims != len(kernel) or ndims not in (1, 2, 3):
            what = f"input_shape {image} and kernel_shape {kernel} for {ndims} axes"
            raise ValueError(
                f"ConvLSTMCell: {what}. Give the sizes of an image with channels, and of a kernel."
            )
        self._sizes, self._channels, self._kernel_shape = list(image), given.output_channels, list(kernel)

    @property
    def output_size(self) -> Any:
        more = self._sizes[-1] if self._given.skip_connection else 0
        return TensorShape([*self._sizes[:-1], self._channels + more])

    @property
    def state_size(self) -> Any:
        state = TensorShape([*self._sizes[:-1], self._channels])
        return LSTMStateTuple(state, state)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        memory, hidden = state
        wide = 4 * self._channels
        shape = [*self._kernel_shape, self._sizes[-1] + self._channels, wide]
        kernel = self.add_variable("kernel", shape, None, self._given.initializers)
        convolve = {1: convolutions.conv1d, 2: convolutions.conv2d, 3: convolutions.conv3d}[
            len(self._kernel_shape)
        ]
        step: Any = 1 if len(self._kernel_shape) == 1 else [1] * (len(self._kernel_shape) + 2)
        made = convolve(shape_ops.concat([inputs, hidden], -1), kernel, step, "SAME")
        if self._given.use_bias:
            made = made + self.add_variable("biases", [wide], None, initializers.zeros_initializer())
        into, candidate, forget, out = shape_ops.split(made, 4, -1)
        memory = math.sigmoid(forget + self._given.forget_bias) * memory + math.sigmoid(into) * math.tanh(
            candidate
        )
        output = hidden = math.tanh(memory) * math.sigmoid(out)
        if self._given.skip_connection:
            output = shape_ops.concat([output, inputs], -1)
        return output, LSTMStateTuple(memory, hidden)


def _of_dimensions(count: int) -> type[ConvLSTMCell]:
    members = {
        "__init__": taking(f"{_CONVOLUTION}, name='conv_{count}d_lstm_cell'", f"conv_ndims={count}"),
        "__doc__": f"``ConvLSTMCell`` of {count} dimensions.",
        "__module__": __name__,
    }
    return type(f"Conv{count}DLSTMCell", (ConvLSTMCell,), members)


Conv1DLSTMCell, Conv2DLSTMCell, Conv3DLSTMCell = (_of_dimensions(count) for count in (1, 2, 3))


class HighwayWrapper(Wrapper):
    """A cell whose output is mixed with its input by a gate of the input (Srivastava et al., 2015)."""

    def __init__(
        self, cell: RNNCell, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0
    ) -> None:
        super().__init__(cell)
        self._coupled, self._carry_bias = couple_carry_transform_gates, carry_bias_init

    def _gate(self, inputs: Any, name: str, bias: float) -> Any:
        size = last_size("HighwayWrapper", inputs.get_shape())
        weight = self.add_variable(f"{name}_w", [size, size])
        first = initializers.constant_initializer(bias)
        return math.sigmoid(
            nn.bias_add(math.matmul(inputs, weight), self.add_variable(f"{name}_b", [size], None, first))
        )

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """The mixed output and the cell's new state."""
        output, new = self._cell(inputs, state, scope)
        carry = self._gate(inputs, "carry", self._carry_bias)
        transform = 1 - carry if self._coupled else self._gate(inputs, "transform", -self._carry_bias)
        return inputs * carry + output * transform, new


class AttentionCellWrapper(Wrapper):
    """A cell that attends to its latest ``attn_length`` states (Bahdanau et al., 2014).

    The state is (that of the cell, the attention, the states looked at in a row), with ``state_is_tuple=False`` joined.
    """

    def __init__(
        self,
        cell: RNNCell,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(cell)
        self._reuse, self._tuple = reuse, state_is_tuple
        self._length, self._input = attn_length, input_size
        self._size = cell.output_size if attn_size is None else attn_size
        self._vector = self._size if attn_vec_size is None else attn_vec_size

    @property
    def output_size(self) -> Any:
        return self._size

    @property
    def state_size(self) -> Any:
        sizes = (self._cell.state_size, self._size, self._size * self._length)
        return sizes if self._tuple else sum(sizes)

    zero_state = RNNCell.zero_state

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        sizes = [self._cell.state_size, self._size, self._size * self._length]
        cell_state, attention, kept = state if self._tuple else shape_ops.split(state, sizes, 1)
        kept = shape_ops.reshape(kept, [-1, self._length, self._size])
        width = self._input or last_size("AttentionCellWrapper", inputs.get_shape())
        output, new = self._cell(linear(shape_ops.concat([inputs, attention], 1), width, True), cell_state)
        asked = shape_ops.concat(flatten(new, "state")[0], 1)
        with variable_scope("attention"):
            matrix = self.add_variable("attn_w", [1, 1, self._size, self._vector])
            vector = self.add_variable("attn_v", [self._vector])
            hidden = math.tensordot(kept, matrix[0, 0], 1)
            query = shape_ops.expand_dims(linear(asked, self._vector, True), 1)
            weights = nn.softmax(math.reduce_sum(vector * math.tanh(hidden + query), 2))
            found = math.reduce_sum(shape_ops.expand_dims(weights, 2) * kept, 1)
        with variable_scope("attn_output_projection"):
            made = linear(shape_ops.concat([output, found], 1), self._size, True)
        kept = shape_ops.concat([kept[:, 1:], shape_ops.expand_dims(made, 1)], 1)
        after = (new, found, shape_ops.reshape(kept, [-1, self._size * self._length]))
        return made, after if self._tuple else shape_ops.concat(list(after), 1)
