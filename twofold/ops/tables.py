"""Tables of the public functions, which modules of operations fill in when they are imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold import index
from twofold.lazy import Registry, by_name

_functions: dict[str, str] = {}
_methods: dict[str, str] = {}
for _module, _groups in index.FUNCTIONS.items():
    for _name in _groups.replace(",", " ").split():
        if _name[0] == ".":
            _methods[_name[1:]] = _module
        elif _name[0] != "!":
            _functions[_name] = _module

FUNCTIONS: Registry[Callable[..., Any]] = Registry(_functions)
"""Every public function by name (aliases included); ``special.erf`` stands in the module ``twofold.special``."""

METHODS: Registry[Callable[..., Any]] = Registry(_methods)
"""Every public method and operator by name; the tensor comes first (reflected operators are swapped)."""

BY_CALL: dict[Callable[..., Any], Any] = {}
"""Entries by their public functions, as far as they are imported."""

LIBRARIES = by_name(index.LIBRARIES)
"""The library that computes for a public function, by the function's first name."""

INPLACE: dict[Callable[..., Any], str] = {}
"""Public functions that are no operations, whose methods also have an in-place form: of ``"value"`` or ``"shape"``."""
