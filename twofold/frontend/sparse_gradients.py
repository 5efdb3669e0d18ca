"""Which tables were looked up with ``sparse=True``: gradients are dense, but some optimisers ask."""

from __future__ import annotations

import weakref
from typing import Any

from twofold import _core

_tables: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""The tables by their identity: tensors compare element by element."""


def note_lookup(table: Any, sparse: bool) -> None:
    """Remember how a table was looked up last."""
    if sparse or _tables:
        _core.not_by_types()
    if sparse:
        if not _tables:
            _core.forget_calls_by_types()
        _tables[id(table)] = table
    else:
        _tables.pop(id(table), None)


def looked_up_sparsely(table: Any) -> bool:
    """Whether the last look-up in ``table`` asked for sparse gradients."""
    return _tables.get(id(table)) is table
