"""Calls of operations computed at once, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core


def computed(op: Any, attrs: tuple[Any, ...], operands: Sequence[Any], location: int = 0) -> Any:
    """What an operation gives for these operands, at once; ``location`` is that of the program's call, if any."""
    outside = _core.declare_at(location or _core.forced_location())
    before = _core.set_eager(True)
    try:
        with _core.GradientMode(False):
            result = _core.record(op, attrs, operands)
            result._realise()
    finally:
        _core.set_eager(before)
        _core.declare_at(outside)
    return result
