"""The formulas of recurrent cells, each written once: for nodes, and for the registers of a kernel.

A cell takes, per gate, what the input contributes (``x``) and what the state before contributes (``s``), and
the states before (the first is the hidden state). It gives what is kept of a step: the gates, then the new
states. Its gradient takes the cotangents of the new states, what was kept and the states before, and gives

* the cotangents of ``s``, gate by gate,
* those of ``x`` that differ from them, by gate,
* for each state before, its cotangent apart from what flows through ``s`` (None: nothing).

``m`` holds the element-wise functions: ``ops`` for nodes, ``LaneFunctions`` for registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.ir.op import REGISTRY, ElementwiseOp

Values = Sequence[Any]


class Lane:
    """A register with the operators of a node."""

    __slots__ = ("b", "value")

    def __init__(self, b: Any, value: Any) -> None:
        self.b = b
        self.value = value

    def __add__(self, other: Any) -> Lane:
        return Lane(self.b, self.b.add(self.value, plain(other)))

    def __sub__(self, other: Any) -> Lane:
        return Lane(self.b, self.b.sub(self.value, plain(other)))

    def __rsub__(self, other: float) -> Lane:
        return Lane(self.b, self.b.sub(other, self.value))

    def __mul__(self, other: Any) -> Lane:
        return Lane(self.b, self.b.mul(self.value, plain(other)))

    def __le__(self, other: Any) -> Lane:
        return Lane(self.b, self.b.cmp("le", self.value, plain(other)))


def plain(x: Any) -> Any:
    """The register of a ``Lane``; a number as it is."""
    return x.value if isinstance(x, Lane) else x


class LaneFunctions:
    """Element-wise operations on ``Lane``, by their entries' own code."""

    def __init__(self, b: Any) -> None:
        self.b = b

    def __getattr__(self, name: str) -> Any:
        op = REGISTRY[name]
        assert isinstance(op, ElementwiseOp)

        def function(*values: Any) -> Lane:
            given = [plain(value) for value in values]
            return Lane(self.b, op.lower(self.b, (), None, *given))

        return function


class Cell:
    """Sizes and formulas of one kind of cell."""

    name: str
    gates: int = 1
    states: int = 1
    kept: int = 1
    """Parts of a step that are kept: at least the gates, the states last."""
    own: tuple[int, ...] = ()
    """Gates whose ``x`` has a cotangent of its own."""

    def step(self, m: Any, x: Values, s: Values, before: Values) -> Values:
        """What is kept of a step."""
        raise NotImplementedError

    def gradient(
        self, m: Any, cotangents: Values, kept: Values, before: Values
    ) -> tuple[Values, Values, Values]:
        """Cotangents of ``s``, of ``x`` where they differ, and of the states before."""
        raise NotImplementedError


class LSTM(Cell):
    """``c' = f * c + i * g``, ``h' = o * tanh(c')`` with sigmoid gates i, f, o and ``g = tanh(...)``.

    Source: Hochreiter, Schmidhuber, Long Short-Term Memory, 1997; the forget gate: Gers et al. 2000.
    """

    name, gates, states, kept = "lstm", 4, 2, 6

    def step(self, m: Any, x: Values, s: Values, before: Values) -> Values:
        i, f, o = (m.sigmoid(x[k] + s[k]) for k in (0, 1, 3))
        g = m.tanh(x[2] + s[2])
        c = f * before[1] + i * g
        return i, f, g, o, o * m.tanh(c), c

    def gradient(
        self, m: Any, cotangents: Values, kept: Values, before: Values
    ) -> tuple[Values, Values, Values]:
        i, f, g, o, _, c = kept
        dh, dc = cotangents
        bent = m.tanh(c)
        dc = dc + dh * o * (1.0 - bent * bent)
        gates = (
            dc * g * (i * (1.0 - i)),
            dc * before[1] * (f * (1.0 - f)),
            dc * i * (1.0 - g * g),
            dh * bent * (o * (1.0 - o)),
        )
        return gates, (), (None, dc * f)


class GRU(Cell):
    """``h' = n + z * (h - n)`` with ``n = tanh(x + r * s)`` and sigmoid gates r, z.

    Source: Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014; the reset gate acts
    behind the product, as in PyTorch.
    """

    name, gates, kept, own = "gru", 3, 5, (2,)

    def step(self, m: Any, x: Values, s: Values, before: Values) -> Values:
        r, z = m.sigmoid(x[0] + s[0]), m.sigmoid(x[1] + s[1])
        n = m.tanh(x[2] + r * s[2])
        return r, z, n, s[2], n + z * (before[0] - n)

    def gradient(
        self, m: Any, cotangents: Values, kept: Values, before: Values
    ) -> tuple[Values, Values, Values]:
        r, z, n, s, _ = kept
        (dh,) = cotangents
        dn = dh * (1.0 - z) * (1.0 - n * n)
        dz = dh * (before[0] - n) * (z * (1.0 - z))
        return (dn * s * (r * (1.0 - r)), dz, dn * r), (dn,), (dh * z,)


class Tanh(Cell):
    """``h' = tanh(x + s)``. Source: Elman, Finding Structure in Time, 1990."""

    name = "rnn_tanh"

    def step(self, m: Any, x: Values, s: Values, before: Values) -> Values:
        return (m.tanh(x[0] + s[0]),)

    def gradient(
        self, m: Any, cotangents: Values, kept: Values, before: Values
    ) -> tuple[Values, Values, Values]:
        return (cotangents[0] * (1.0 - kept[0] * kept[0]),), (), (None,)


class ReLU(Cell):
    """``h' = max(x + s, 0)``."""

    name = "rnn_relu"

    def step(self, m: Any, x: Values, s: Values, before: Values) -> Values:
        return (m.relu(x[0] + s[0]),)

    def gradient(
        self, m: Any, cotangents: Values, kept: Values, before: Values
    ) -> tuple[Values, Values, Values]:
        return (m.where(kept[0] <= 0.0, 0.0, cotangents[0]),), (), (None,)


CELLS: dict[str, Cell] = {cell.name: cell for cell in (LSTM(), GRU(), Tanh(), ReLU())}
"""Every kind of cell by its name."""
