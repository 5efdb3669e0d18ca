"""Single steps of recurrent cells, as functions of PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from twofold.errors import ArgumentError, ShapeError
from twofold.ops.base import apply, composite, convert, ops, public, strong
from twofold.ops.examples import example
from twofold.ops.promotion import common_dtype
from twofold.ops.sequence.recurrent_formulas import CELLS
from twofold.ops.shape.movement import slice_axis


class CellState(NamedTuple):
    """The new hidden state and memory."""

    hidden: Any
    memory: Any


@composite
class recurrent_step:
    """One part of what a cell keeps of a step, by default a new state.

    Inputs ``(x, s, states before...)``: per gate, what the input and what the state contribute. Attributes
    ``(name of the cell, number of the part)``.
    """

    functions = ()

    def compute(x: Any, s: Any, *rest: Any) -> Any:
        *before, name, part = rest
        cell, hidden = CELLS[name], before[0].shape[-1]
        if x.shape[-1] != cell.gates * hidden or x.shape != s.shape or x.shape[:-1] != before[0].shape[:-1]:
            raise ShapeError(
                f"gates of shapes {x.shape} and {s.shape} for states of shape {before[0].shape}",
                f"Give weights of {cell.gates * hidden} rows, and inputs and states of one batch.",
            )
        wide = [convert(value, strong(value).dtype.compute) for value in (x, s, *before)]
        given, own = (
            [slice_axis(value, x.ndim - 1, k * hidden, hidden) for k in range(cell.gates)]
            for value in wide[:2]
        )
        # with one gate, states enter by their product alone; else autocast regions may give them another dtype
        types = [strong(value).type for value in ([x] if cell.gates == 1 else [x, *before])]
        return convert(cell.step(ops, given, own, wide[2:])[part], common_dtype(types)[0])

    samples = lambda: [
        example((name, cell.kept - cell.states + k), *[(3, cell.gates * 5)] * 2, *[(3, 5)] * cell.states)
        for name, cell in CELLS.items()
        for k in range(cell.states)
    ]

    def reference(x: Any, s: Any, *rest: Any) -> Any:
        *before, name, part = rest
        cell = CELLS[name]
        given, own = (numpy.split(value, cell.gates, -1) for value in (x, s))
        return cell.step(_NumpyFunctions, given, own, before)[part]


def _quarter(gates: Any, k: int) -> Any:
    hidden = gates.shape[-1] // 4
    return slice_axis(gates, gates.ndim - 1, k * hidden, hidden)


def _fitting(gates: Any, memory: Any) -> None:
    if gates.shape[-1] != 4 * memory.shape[-1]:
        raise ShapeError(
            f"gates of shape {gates.shape} for a memory of shape {memory.shape}",
            "Give four times as many gates as the memory has elements.",
        )


@composite
class lstm_first_memory:
    """The memory of a long short-term memory after its first input: ``sigmoid(i) * tanh(g)`` of gates i, f, o, g."""

    functions = ()

    compute = lambda gates: ops.sigmoid(_quarter(gates, 0)) * ops.tanh(_quarter(gates, 3))
    samples = lambda: [example((), (20,)), example((), (3, 20))]

    def reference(gates: Any) -> Any:
        i, _, _, g = numpy.split(gates, 4, -1)
        return _NumpyFunctions.sigmoid(i) * numpy.tanh(g)


@composite
class lstm_memory:
    """``sigmoid(f + forget_bias) * memory + sigmoid(i) * tanh(g)`` of gates i, f, o, g; the bias is an attribute."""

    functions = ()

    def compute(gates: Any, memory: Any, forget_bias: float) -> Any:
        _fitting(gates, memory)
        forget = _quarter(gates, 1)
        kept = ops.sigmoid(forget + forget_bias if forget_bias else forget) * memory
        return kept + ops.sigmoid(_quarter(gates, 0)) * ops.tanh(_quarter(gates, 3))

    samples = lambda: [example((1.0,), (20,), (5,)), example((0.0,), (3, 20), (3, 5))]

    def reference(gates: Any, memory: Any, forget_bias: float) -> Any:
        i, f, _, g = numpy.split(gates, 4, -1)
        kept = _NumpyFunctions.sigmoid(f + forget_bias) * memory
        return kept + _NumpyFunctions.sigmoid(i) * numpy.tanh(g)


@composite
class lstm_output:
    """``sigmoid(o) * tanh(memory)`` of gates i, f, o, g."""

    functions = ()

    def compute(gates: Any, memory: Any) -> Any:
        _fitting(gates, memory)
        return ops.sigmoid(_quarter(gates, 2)) * ops.tanh(memory)

    samples = lambda: [example((), (20,), (5,)), example((), (3, 20), (3, 5))]

    def reference(gates: Any, memory: Any) -> Any:
        return _NumpyFunctions.sigmoid(numpy.split(gates, 4, -1)[2]) * numpy.tanh(memory)


class _NumpyFunctions:
    sigmoid = staticmethod(lambda x: 1 / (1 + numpy.exp(-x)))
    tanh = numpy.tanh
    relu = staticmethod(lambda x: numpy.maximum(x, 0))


def _need(input: Any, states: Sequence[Any], w_ih: Any, w_hh: Any) -> None:
    """Raise unless input and states fit the weights."""
    hidden = states[0]
    if len(states) > 1 and states[1].shape != hidden.shape:
        raise ShapeError(
            f"hidden state {tuple(hidden.shape)} and memory {tuple(states[1].shape)} differ in shape",
            "Make them equal.",
        )
    if len(input.shape) != len(hidden.shape) or input.shape[:-1] != hidden.shape[:-1]:
        raise ShapeError(
            f"input {tuple(input.shape)} and state {tuple(hidden.shape)} differ in their batch",
            "Give both the same sizes but for the last.",
        )
    for what, value, weight in (("input", input, w_ih), ("hidden", hidden, w_hh)):
        if value.shape[-1] != weight.shape[1]:
            raise ShapeError(
                f"{what} has {value.shape[-1]} features, expected {weight.shape[1]}",
                f"Make its last axis {weight.shape[1]}.",
            )


def _parts(name: str, input: Any, states: Any, weights: Any) -> list[Any]:
    w_ih, w_hh, b_ih, b_hh = weights
    _need(input, states, w_ih, w_hh)
    values = (ops.linear(input, w_ih, b_ih), ops.linear(states[0], w_hh, b_hh), *states)
    cell = CELLS[name]
    first = cell.kept - cell.states
    return [apply("recurrent_step", *values, attrs=(name, first + k)) for k in range(cell.states)]


@public()
def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> CellState:
    """One step of a long short-term memory: the new hidden state and memory from ``hx = (h, c)``.

    ``i, f, o = sigmoid(...)``, ``g = tanh(...)``, ``c' = f * c + i * g``, ``h' = o * tanh(c')``, with weights
    of shape ``(4 * hidden, ...)`` in the order i, f, g, o. Raises RuntimeError where sizes do not fit.
    Source: Hochreiter, Schmidhuber, Long Short-Term Memory, 1997.

    >>> import twofold as torch
    >>> state = torch.zeros(2, 4), torch.zeros(2, 4)
    >>> h, c = torch.lstm_cell(torch.ones(2, 3), state, torch.ones(16, 3), torch.ones(16, 4))
    >>> h.shape
    twofold.Size([2, 4])
    """
    if len(hx) != 2:
        raise ArgumentError(f"hx holds {len(hx)} tensors", "Give (hidden state, memory).")
    return CellState(*_parts("lstm", input, tuple(hx), (w_ih, w_hh, b_ih, b_hh)))


def _simple(cell: str, name: str, text: str) -> None:
    def step(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        return _parts(cell, input, (hx,), (w_ih, w_hh, b_ih, b_hh))[0]

    step.__name__ = step.__qualname__ = name
    step.__doc__ = text
    public(name)(step)


_simple(
    "gru",
    "gru_cell",
    """One step of a gated recurrent unit: ``h' = (1 - z) * n + z * h``.

    ``r, z = sigmoid(...)``, ``n = tanh(x + r * s)``, with weights of shape ``(3 * hidden, ...)`` in the order
    r, z, n. Raises RuntimeError where sizes do not fit. Source: Cho et al. 2014, arXiv:1406.1078.

    >>> import twofold as torch
    >>> torch.gru_cell(torch.ones(2, 3), torch.zeros(2, 4), torch.ones(12, 3), torch.ones(12, 4)).shape
    twofold.Size([2, 4])
    """,
)
_simple(
    "rnn_tanh",
    "rnn_tanh_cell",
    """One step of a simple cell: ``h' = tanh(w_ih @ x + b_ih + w_hh @ h + b_hh)``.

    Raises RuntimeError where sizes do not fit. Source: Elman, Finding Structure in Time, 1990.

    >>> import twofold as torch
    >>> torch.rnn_tanh_cell(torch.ones(2, 3), torch.zeros(2, 4), torch.ones(4, 3), torch.ones(4, 4)).shape
    twofold.Size([2, 4])
    """,
)
_simple(
    "rnn_relu",
    "rnn_relu_cell",
    """One step of a simple cell: ``h' = max(w_ih @ x + b_ih + w_hh @ h + b_hh, 0)``.

    Raises RuntimeError where sizes do not fit.

    >>> import twofold as torch
    >>> torch.rnn_relu_cell(torch.ones(2, 3), torch.zeros(2, 4), torch.ones(4, 3), torch.ones(4, 4)).shape
    twofold.Size([2, 4])
    """,
)
