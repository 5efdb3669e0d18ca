"""Tables of the public functions, which modules of operations fill in when they are imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold import index
from twofold.lazy import Registry, by_name

GROUPS = [
    (module, group.split(",")) for module, groups in index.FUNCTIONS.items() for group in groups.split()
]
"""Each public function by its module and all its names, written as in ``twofold.index``."""

FUNCTIONS: Registry[Callable[..., Any]] = Registry(
    {name: module for module, names in GROUPS for name in names if name[0] not in ".!"}
)
"""Every public function by name (aliases included); ``special.erf`` stands in the module ``twofold.special``."""

METHODS: Registry[Callable[..., Any]] = Registry(
    {name[1:]: module for module, names in GROUPS for name in names if name[0] == "."}
)
"""Every public method and operator by name; the tensor comes first (reflected operators are swapped)."""

BY_CALL: dict[Callable[..., Any], Any] = {}
"""Entries by their public functions, as far as they are imported."""

LIBRARIES = by_name(index.LIBRARIES)
"""The library that computes for a public function, by the function's first name."""

INPLACE: dict[Callable[..., Any], str] = {}
"""Public functions that are no operations, whose methods also have an in-place form: of ``"value"`` or ``"shape"``."""
