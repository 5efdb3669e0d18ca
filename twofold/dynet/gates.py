"""The parts of a vanilla LSTM as functions: its gates, its cell and its output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.dynet.elementwise import cmult, logistic, nobackprop, tanh
from twofold.dynet.expression import Expression
from twofold.dynet.graph import operation
from twofold.dynet.matrices import affine_transform
from twofold.dynet.noise import noise
from twofold.dynet.shapes import concatenate, pick_range

FORGET_BIAS = 1.0


def _gates(x: Any, h: Any, weights: Sequence[Any], weightnoise_std: float) -> Expression:
    wx, wh, b = (noise(w, weightnoise_std) for w in weights) if weightnoise_std else weights
    total = affine_transform([b, wx, x, wh, h])
    size = total.dim()[0][0] // 4
    i, f, o, g = (pick_range(total, k * size, (k + 1) * size) for k in range(4))
    return concatenate([logistic(i), logistic(f + FORGET_BIAS), logistic(o), tanh(g)])


def _masked(x: Expression, mask: Expression) -> Expression:
    return cmult(x, nobackprop(mask))


@operation
def vanilla_lstm_gates(
    x_t: Expression,
    h_tm1: Expression,
    Wx: Expression,
    Wh: Expression,
    b: Expression,
    weightnoise_std: float = 0.0,
) -> Expression:
    """The input, forget and output gates and the new cell, one after the other, of ``Wx * x_t + Wh * h_tm1 + b``.

    Args:
        x_t: The input.
        h_tm1: The output before, of ``h`` elements.
        Wx: Weights of the input, with ``4 * h`` rows.
        Wh: Weights of the output before, with ``4 * h`` rows.
        b: ``4 * h`` biases; those of the forget gate are raised by 1.
        weightnoise_std: The standard deviation of noise that is added to the weights and biases.

    >>> import twofold.dynet as dy
    >>> x, h = dy.inputVector([1, 2]), dy.zeros(1)
    >>> gates = dy.vanilla_lstm_gates(x, h, dy.zeros((4, 2)), dy.zeros((4, 1)), dy.zeros(4))
    >>> [round(one, 4) for one in gates.value()]
    [0.5, 0.7311, 0.5, 0.0]
    """
    return _gates(x_t, h_tm1, (Wx, Wh, b), weightnoise_std)


@operation
def vanilla_lstm_gates_concat(
    x_t: Sequence[Expression],
    h_tm1: Expression,
    Wx: Expression,
    Wh: Expression,
    b: Expression,
    weightnoise_std: float = 0.0,
) -> Expression:
    """``vanilla_lstm_gates`` of several inputs, which are concatenated."""
    return _gates(concatenate(list(x_t)), h_tm1, (Wx, Wh, b), weightnoise_std)


@operation
def vanilla_lstm_gates_dropout(
    x_t: Expression,
    h_tm1: Expression,
    Wx: Expression,
    Wh: Expression,
    b: Expression,
    dropout_mask_x: Expression,
    dropout_mask_h: Expression,
    weightnoise_std: float = 0.0,
) -> Expression:
    """``vanilla_lstm_gates`` of the input and the output before, each multiplied by a mask, which is a constant."""
    return _gates(_masked(x_t, dropout_mask_x), _masked(h_tm1, dropout_mask_h), (Wx, Wh, b), weightnoise_std)


@operation
def vanilla_lstm_gates_dropout_concat(
    x_t: Sequence[Expression],
    h_tm1: Expression,
    Wx: Expression,
    Wh: Expression,
    b: Expression,
    dropout_mask_x: Expression,
    dropout_mask_h: Expression,
    weightnoise_std: float = 0.0,
) -> Expression:
    """``vanilla_lstm_gates_dropout`` of several inputs, which are concatenated."""
    x = _masked(concatenate(list(x_t)), dropout_mask_x)
    return _gates(x, _masked(h_tm1, dropout_mask_h), (Wx, Wh, b), weightnoise_std)


@operation
def vanilla_lstm_c(c_tm1: Expression, gates_t: Expression) -> Expression:
    """The cell after the cell ``c_tm1``, by the gates of ``vanilla_lstm_gates``: ``i * g + f * c_tm1``."""
    size = c_tm1.dim()[0][0]
    i, f, g = (pick_range(gates_t, k * size, (k + 1) * size) for k in (0, 1, 3))
    return cmult(i, g) + cmult(f, c_tm1)


@operation
def vanilla_lstm_h(c_t: Expression, gates_t: Expression) -> Expression:
    """The output of a cell ``c_t``, by the gates of ``vanilla_lstm_gates``: ``o * tanh(c_t)``."""
    size = c_t.dim()[0][0]
    return cmult(pick_range(gates_t, 2 * size, 3 * size), tanh(c_t))
