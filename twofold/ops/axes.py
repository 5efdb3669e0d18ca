"""Axes as users give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.errors import ArgumentError, AxisError, DTypeError
from twofold.ir.sizes import index


def whole_number(value: Any, what: str) -> int:
    """``value`` as a Python integer; raises DTypeError for what is none, such as 2.0."""
    try:
        return index(value)
    except TypeError:
        shown = value if isinstance(value, (int, float, str)) else type(value).__name__
        raise DTypeError(f"{what} given as {shown!r}", "Use an integer.") from None


def normalize_axis(axis: int, ndim: int) -> int:
    """``axis`` counted from the front; raises AxisError outside ``[-ndim, ndim)``.

    >>> normalize_axis(-1, 3)
    2
    """
    axis = whole_number(axis, "an axis")
    if not -max(ndim, 1) <= axis < max(ndim, 1):
        fix = f"Use an axis from {-ndim} to {ndim - 1}" if ndim else "A 0-d tensor takes only axis 0 or -1"
        raise AxisError(f"axis {axis} is outside a tensor with {ndim} axes", fix + ".")
    return axis + max(ndim, 1) if axis < 0 else axis


def normalize_axes(axes: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """``axes`` sorted and counted from the front (None: all).

    Raises AxisError for an axis outside, ArgumentError for a repeated one.
    """
    if axes is None:
        return tuple(range(ndim))
    given = tuple(axes) if isinstance(axes, Sequence) and not isinstance(axes, str) else (axes,)
    found = sorted(normalize_axis(axis, ndim) for axis in given)
    if len(set(found)) != len(found):
        raise ArgumentError(f"an axis is named twice in {given}", "Name each axis once.")
    return tuple(found) if ndim else ()


def given_once(**given: Any) -> Any:
    """What was given under one of several names of a parameter, or None; raises ArgumentError where two were.

    >>> given_once(dim=None, axis=1)
    1
    """
    found = [name for name, value in given.items() if value is not None]
    if len(found) > 1:
        raise ArgumentError(f"{' and '.join(found)} were both given", "They say the same: give one of them.")
    return given[found[0]] if found else None
