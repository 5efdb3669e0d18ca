"""Gradients of tables that were looked up with ``sparse=True``: ``.grad`` shows the rows that are not zero.

The gradient itself is kept as that of any table is, which takes memory for the whole table only where something reads
it whole; optimisers work on that.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from twofold import _core

Tensor = _core.Tensor


def sparse_gradient(gradient: Tensor) -> Any:
    """What ``.grad`` of a table is: the gradient by its rows, changes of which are changes of the gradient."""
    return import_module("twofold.sparse.gradients").RowGradient(gradient)
