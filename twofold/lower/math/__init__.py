"""Elementary functions with stated error bounds, the same code for one lane and sixteen."""

from __future__ import annotations

from twofold.lower.control import Control
from twofold.lower.emitter import Operand
from twofold.lower.values import Val


def apply(b: Control, name: str, x: Val, y: Operand | None = None) -> Val:
    """Emit the function ``name`` of ``x`` (and ``y``)."""
    raise KeyError(name)
