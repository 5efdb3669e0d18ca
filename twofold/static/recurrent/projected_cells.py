"""Cells around cells that project inputs or outputs, embed symbols, or remember their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.static import initializers, math, nn
from twofold.static.arrays import shape_ops
from twofold.static.nn.embeddings import embedding_lookup
from twofold.static.nn.normalization import moments
from twofold.static.recurrent.rnn_cell import (
    LSTM_OPTIONS,
    LSTMCell,
    LSTMStateTuple,
    RNNCell,
    Wrapper,
    last_size,
    taking,
)
from twofold.static.variables.variable_scope import get_variable


def linear(
    args: Any, output_size: int, bias: bool, bias_initializer: Any = None, kernel_initializer: Any = None
) -> Any:
    """``args @ kernel + bias`` with variables in the present scope; several matrices are joined."""
    inputs = shape_ops.concat(args, 1) if isinstance(args, (list, tuple)) else args
    sizes = [last_size("linear", inputs.get_shape()), output_size]
    kernel = get_variable("kernel", sizes, inputs.dtype, kernel_initializer)
    made = math.matmul(inputs, kernel)
    if not bias:
        return made
    first = bias_initializer or initializers.zeros_initializer()
    return nn.bias_add(made, get_variable("bias", [output_size], inputs.dtype, first))


class OutputProjectionWrapper(Wrapper):
    """A cell whose outputs are projected to ``output_size``."""

    def __init__(
        self, cell: RNNCell, output_size: int, activation: Any = None, reuse: bool | None = None
    ) -> None:
        super().__init__(cell)
        self._size, self._function, self._reuse = output_size, activation, reuse

    @property
    def output_size(self) -> Any:
        return self._size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        output, new = self._cell(inputs, state)
        made = linear(output, self._size, True)
        return made if self._function is None else self._function(made), new


class InputProjectionWrapper(Wrapper):
    """A cell whose inputs are projected to ``num_proj`` features first."""

    def __init__(self, cell: RNNCell, num_proj: int, activation: Any = None, input_size: Any = None) -> None:
        super().__init__(cell)
        self._size, self._function = num_proj, activation

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        made = linear(inputs, self._size, True)
        return self._cell(made if self._function is None else self._function(made), state)


class EmbeddingWrapper(Wrapper):
    """A cell of symbols: their rows of a variable ``embedding`` are its inputs."""

    def __init__(
        self,
        cell: RNNCell,
        embedding_classes: int,
        embedding_size: int,
        initializer: Callable[..., Any] | None = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(cell)
        self._sizes, self._initializer, self._reuse = [embedding_classes, embedding_size], initializer, reuse

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        first = self._initializer or initializers.random_uniform_initializer(-(3**0.5), 3**0.5)
        table = get_variable("embedding", self._sizes, initializer=first)
        return self._cell(embedding_lookup(table, shape_ops.reshape(inputs, [-1])), state)


class LayerNormal:
    """What cells with normalised gates share; ``_given`` has ``layer_norm``, ``norm_gain`` and ``norm_shift``."""

    _is_layer = False

    _given: Any

    def _normal(self, value: Any, name: str) -> Any:
        given = self._given
        if not given.layer_norm:
            return value
        gain, shift = (
            get_variable(
                f"{name}/{own}", [given.num_units], initializer=initializers.constant_initializer(first)
            )
            for own, first in (("gamma", given.norm_gain), ("beta", given.norm_shift))
        )
        mean, variance = moments(value, [1], keep_dims=True)
        return nn.batch_normalization(value, mean, variance, shift, gain, 1e-12)


class LayerNormLSTMCell(LayerNormal, LSTMCell):
    """``LSTMCell`` whose gates and memory are normalised with ``layer_norm``."""

    __init__ = taking(
        "num_units, use_peepholes=False, cell_clip=None, initializer=None, num_proj=None, proj_clip=None, "
        "forget_bias=1.0, activation=None, layer_norm=False, norm_gain=1.0, norm_shift=0.0, reuse=None",
        LSTM_OPTIONS,
    )

    def _gates(self, inputs: Any, output: Any) -> Sequence[Any]:
        if not self._given.layer_norm:
            return super()._gates(inputs, output)
        gates = math.matmul(shape_ops.concat([inputs, output], 1), self._kernel)
        names = ("input", "transform", "forget", "output")
        return [self._normal(one, name) for one, name in zip(shape_ops.split(gates, 4, 1), names)]


class LayerNormBasicLSTMCell(LayerNormal, RNNCell):
    """Long short-term memory with normalised gates and memory, and dropout of the candidate (Ba et al., 2016)."""

    __init__ = taking(
        "num_units, forget_bias=1.0, input_size=None, activation=None, layer_norm=True, norm_gain=1.0, norm_shift=0.0, "
        "dropout_keep_prob=1.0, dropout_prob_seed=None, reuse=None"
    )

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._given.num_units, self._given.num_units)

    @property
    def output_size(self) -> Any:
        return self._given.num_units

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        memory, hidden = state
        function = self._given.activation or math.tanh
        given = shape_ops.concat([inputs, hidden], 1)
        kernel = get_variable(
            "kernel", [last_size("LayerNormBasicLSTMCell", given.get_shape()), 4 * self._given.num_units]
        )
        gates = math.matmul(given, kernel)
        if not self._given.layer_norm:
            bias = get_variable(
                "bias", [4 * self._given.num_units], initializer=initializers.zeros_initializer()
            )
            gates = nn.bias_add(gates, bias)
        parts = zip(shape_ops.split(gates, 4, 1), ("input", "transform", "forget", "output"), strict=True)
        into, candidate, forget, out = (self._normal(one, name) for one, name in parts)
        candidate = function(candidate)
        if not isinstance(self._given.dropout_keep_prob, (int, float)) or self._given.dropout_keep_prob < 1:
            candidate = nn.dropout(
                candidate, self._given.dropout_keep_prob, seed=self._given.dropout_prob_seed
            )
        memory = memory * math.sigmoid(forget + self._given.forget_bias) + math.sigmoid(into) * candidate
        memory = self._normal(memory, "state")
        hidden = function(memory) * math.sigmoid(out)
        return hidden, LSTMStateTuple(memory, hidden)
