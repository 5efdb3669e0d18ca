"""Long short-term memories with other gates, and recurrent cells that multiply their state element by element."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import float32
from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.static import initializers, math, nn, random
from twofold.static.arrays import selection, shape_ops
from twofold.static.autodiff.clipping import clip_by_value
from twofold.static.recurrent.projected_cells import LayerNormal, linear
from twofold.static.recurrent.rnn_cell import (
    LSTMCell,
    LSTMStateTuple,
    OneState,
    RNNCell,
    last_size,
    taking,
)
from twofold.static.variables.variable_scope import get_variable, get_variable_scope, variable_scope


class CoupledInputForgetGateLSTMCell(LayerNormal, LSTMCell):
    """A long short-term memory that reads as much as it forgets (Greff et al., 2015)."""

    __init__ = taking(
        "num_units, use_peepholes=False, initializer=None, num_proj=None, proj_clip=None, num_unit_shards=1, "
        "num_proj_shards=1, forget_bias=1.0, state_is_tuple=True, activation=None, reuse=None, layer_norm=False, "
        "norm_gain=1.0, norm_shift=0.0"
    )

    def build(self, inputs_shape: Any) -> None:
        units = self._given.num_units
        width = last_size(type(self).__name__, inputs_shape) + self.output_size
        self._kernel = self.add_variable("W_0", [width, 3 * units])
        self._bias = self.add_variable("B", [3 * units], initializer=initializers.zeros_initializer())

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        given, units = self._given, self._given.num_units
        memory, output = (
            state if given.state_is_tuple else shape_ops.split(state, [units, self.output_size], 1)
        )
        gates = math.matmul(shape_ops.concat([inputs, output], 1), self._kernel)
        gates = gates if given.layer_norm else nn.bias_add(gates, self._bias)
        names = ("transform", "forget", "output")
        parts = zip(shape_ops.split(gates, 3, 1), names, strict=True)
        candidate, forget, out = (self._normal(one, name) for one, name in parts)
        forget = forget + given.forget_bias
        if given.use_peepholes:
            forgets, outs = (self.add_variable(f"W_{gate}_diag", [units]) for gate in "FO")
            forget = forget + forgets * memory
        kept = math.sigmoid(forget)
        memory = self._normal(kept * memory + (1 - kept) * given.activation(candidate), "state")
        if given.use_peepholes:
            out = out + outs * memory
        output = math.sigmoid(out) * given.activation(memory)
        if given.num_proj:
            output = math.matmul(output, self.add_variable("W_P_0", [units, given.num_proj]))
            if given.proj_clip is not None:
                output = clip_by_value(output, -given.proj_clip, given.proj_clip)
        new = LSTMStateTuple(memory, output)
        return output, new if given.state_is_tuple else shape_ops.concat(list(new), 1)


class GLSTMCell(RNNCell):
    """A long short-term memory in groups that do not read each other's units (Kuchaiev and Ginsburg, 2017)."""

    __init__ = taking(
        "num_units, initializer=None, num_proj=None, number_of_groups=1, forget_bias=1.0, activation=None, reuse=None"
    )

    def _begin(self) -> None:
        self._given.activation = self._given.activation or math.tanh
        for name in ("num_units", "num_proj"):
            self._need_groups(name, getattr(self._given, name) or 0)

    def _need_groups(self, what: str, size: int) -> None:
        if size % self._given.number_of_groups:
            fix = "Give a number of groups that divides it."
            raise failed(
                "GLSTMCell", ArgumentError(f"{what} {size} in {self._given.number_of_groups} groups", fix)
            )

    @property
    def output_size(self) -> Any:
        return self._given.num_proj or self._given.num_units

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._given.num_units, self.output_size)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        given, count = self._given, self._given.number_of_groups
        memory, output = state
        self._need_groups("the last axis of inputs", last_size("GLSTMCell", inputs.get_shape()))
        with variable_scope(get_variable_scope(), initializer=given.initializer):
            made = []
            for group, parts in enumerate(zip(*(shape_ops.split(one, count, 1) for one in (inputs, output)))):
                with variable_scope(f"group{group}"):
                    wide = linear(shape_ops.concat(parts, 1), 4 * given.num_units // count, False)
                made.append(shape_ops.split(wide, 4, 1))
            zeros = initializers.zeros_initializer()
            into, candidate, forget, out = (
                nn.bias_add(
                    shape_ops.concat(gates, 1),
                    get_variable(f"bias_{letter}", [given.num_units], initializer=zeros),
                )
                for gates, letter in zip(zip(*made), "ijfo", strict=True)
            )
        memory = math.sigmoid(forget + given.forget_bias) * memory + math.sigmoid(into) * math.tanh(candidate)
        output = math.sigmoid(out) * given.activation(memory)
        if given.num_proj:
            with variable_scope("projection"):
                output = linear(output, given.num_proj, False)
        return output, LSTMStateTuple(memory, output)


class PhasedLSTMCell(RNNCell):
    """A long short-term memory whose units open for a part of their own period (Neil et al., 2016).

    Inputs are (times, features): times (batch, 1) of any floating dtype.
    """

    __init__ = taking(
        "num_units, use_peepholes=False, leak=0.001, ratio_on=0.1, trainable_ratio_on=True, period_init_min=1.0, "
        "period_init_max=1000.0, reuse=None"
    )

    @property
    def output_size(self) -> Any:
        return self._given.num_units

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._given.num_units, self._given.num_units)

    def _openness(self, time: Any) -> Any:
        given = self._given

        def periods(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            ends = numpy.log(given.period_init_min), numpy.log(given.period_init_max)
            return math.exp(random.random_uniform(shape, *ends))

        period = get_variable("period", [given.num_units], initializer=periods)

        def phases(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            return random.random_uniform(shape) * period.initial_value

        phase = get_variable("phase", [given.num_units], initializer=phases)
        first = initializers.constant_initializer(given.ratio_on)
        options = {"initializer": first, "trainable": given.trainable_ratio_on}
        ratio = get_variable("ratio_on", [given.num_units], **options)
        cycle, shifted = math.cast(period, time.dtype), time - math.cast(phase, time.dtype)
        within = math.stop_gradient(math.mod(shifted, cycle) - shifted) + shifted
        share = math.cast(within / cycle, float32)
        rising = 2 * share / ratio
        open_ = selection.where(share < ratio, 2 - rising, given.leak * share)
        return selection.where(share < 0.5 * ratio, rising, open_)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        units, peeps = self._given.num_units, self._given.use_peepholes
        (memory, hidden), (time, x) = state, inputs

        def gates(scope: str, seen: list[Any], size: int) -> Any:
            with variable_scope(scope):
                return linear(seen, size, True)

        both = math.sigmoid(gates("mask_gates", [x, hidden, *[memory] * peeps], 2 * units))
        into, forget = shape_ops.split(both, 2, 1)
        new = memory * forget + into * math.tanh(gates("new_input", [x, hidden], units))
        out = math.sigmoid(gates("output_gate", [x, hidden, *[new] * peeps], units))
        share = self._openness(time)
        after = share * math.tanh(new) * out + (1 - share) * hidden
        return after, LSTMStateTuple(share * new + (1 - share) * memory, after)


class SRUCell(OneState):
    """The simple recurrent unit (Lei et al., 2017); its state is its memory."""

    __init__ = taking("num_units, activation=None, reuse=None, name=None, dtype=None")

    def build(self, inputs_shape: Any) -> None:
        units = self._given.num_units
        self._kernel = self.add_variable("kernel", [last_size("SRUCell", inputs_shape), 4 * units])
        self._bias = self.add_variable("bias", [2 * units], initializer=initializers.zeros_initializer())

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        new, forget, reset, highway = shape_ops.split(math.matmul(inputs, self._kernel), 4, 1)
        gates = math.sigmoid(nn.bias_add(shape_ops.concat([forget, reset], 1), self._bias))
        forget, reset = shape_ops.split(gates, 2, 1)
        memory = forget * state + (1.0 - forget) * new
        return reset * self._given.activation(memory) + (1.0 - reset) * highway, memory


class IndRNNCell(OneState):
    """A recurrent network each of whose units reads only its own state (Li et al., 2018)."""

    __init__ = taking("num_units, activation=None, reuse=None, name=None, dtype=None")

    def build(self, inputs_shape: Any) -> None:
        units = self._given.num_units
        own = initializers.random_uniform_initializer(-1, 1)
        self._kernel = self.add_variable("kernel_w", [last_size("IndRNNCell", inputs_shape), units])
        self._recurrent = self.add_variable("kernel_u", [1, units], initializer=own)
        self._bias = self.add_variable("bias", [units], initializer=initializers.zeros_initializer())

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        given = math.matmul(inputs, self._kernel) + state * self._recurrent
        output = self._given.activation(nn.bias_add(given, self._bias))
        return output, output
