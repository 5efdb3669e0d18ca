"""Tensors in nested containers: what functions and modules return."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from twofold import _core

Tensor = _core.Tensor


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All tensors in nested tuples, lists and dictionaries, also those that expressions of dynet stand for."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(getattr(value, "_tensor", None), Tensor):  # an expression of dynet
        yield value._tensor
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
