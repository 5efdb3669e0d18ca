"""Keywords under other names than those of the parameters."""

from __future__ import annotations

import functools
import inspect
from typing import Any

_ALIASES = {
    "axis": ("dim",),
    "keepdims": ("keepdim",),
    "x": ("input",),
    "a": ("input",),
    "x1": ("input",),
    "x2": ("other",),
    "split_size": ("split_size_or_sections",),
    "src": ("source",),
}
"""Names that PyTorch takes in place of a parameter's: those of NumPy, and those of its own methods."""


@functools.lru_cache(1024)
def renamed_keywords(function: Any, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """``names`` with those in place of which ``function`` has a parameter of another name; None if there are none.

    >>> renamed_keywords(lambda input, dim: input, ("axis",))
    ('dim',)
    """
    taken = inspect.signature(function).parameters
    found = [
        next((name for name in _ALIASES.get(given, ()) if name in taken and name not in names), given)
        if given not in taken
        else given
        for given in names
    ]
    return tuple(found) if found != list(names) and len(set(found)) == len(found) else None
