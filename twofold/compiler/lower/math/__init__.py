"""Elementary functions with stated error bounds, the same code for one lane and sixteen."""

from __future__ import annotations

from twofold.compiler.lower.control import Control
from twofold.compiler.lower.emitter import Operand
from twofold.compiler.lower.math.core import FUNCTIONS
from twofold.compiler.lower.values import Val

__all__ = ["FUNCTIONS", "apply"]


def apply(b: Control, name: str, x: Val, y: Operand | None = None) -> Val:
    """Emit the function ``name`` of ``x`` (and ``y``).

    Raises KeyError for an unknown name, TypeError for operands that are not float32 or float64.

    >>> from twofold import dtypes
    >>> b = Control()
    >>> apply(b, "tanh", b.const(0.5, dtypes.float32, 16)).dtype
    twofold.float32
    """
    if y is None:
        return FUNCTIONS[name](b, x)
    return FUNCTIONS[name](b, *b._unify((x, y)))
