"""Gradients of tables that were looked up with ``sparse=True``: ``.grad`` shows the rows that are not zero.

The gradient itself is kept as that of any table is, which takes memory for the whole table only where something reads
it whole; optimisers work on that.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from twofold import _core

Tensor = _core.Tensor
_used = [False]


def note_lookup(table: Any, sparse: bool) -> None:
    """Note how a table was looked up last."""
    if not sparse and not _used[0]:
        return
    _core.not_by_types()
    if sparse and not _used[0]:
        _used[0] = True
        _core.forget_calls_by_types()
    if isinstance(table, Tensor):
        table._sparse_grad = sparse


def sparse_gradient(gradient: Tensor) -> Any:
    """What ``.grad`` of a table is: the gradient by its rows, changes of which are changes of the gradient."""
    return import_module("twofold.sparse.gradients").RowGradient(gradient)
