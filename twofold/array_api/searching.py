"""Searching, sorting and sets."""

from __future__ import annotations

from typing import Any, NamedTuple

from twofold import _core, dtypes
from twofold.array_api.functions import functions
from twofold.errors import ArgumentError
from twofold.frontend.creation import tensor

Tensor = _core.Tensor


class UniqueAll(NamedTuple):
    """Distinct elements, their first positions, where each element went, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct elements and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct elements and where each element went."""

    values: Tensor
    inverse_indices: Tensor


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first largest element along ``axis`` (None: of all)."""
    return functions.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first smallest element along ``axis`` (None: of all)."""
    return functions.argmin(x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero along ``axis`` (None: of all)."""
    return functions.count_nonzero(x, axis=axis, keepdims=keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The positions of the elements that are not zero, one array for each axis."""
    if not x.ndim:
        raise ArgumentError("an array without axes", "Use nonzero(reshape(x, (1,))).")
    return tuple(functions.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where each element of ``x2`` would be inserted into the sorted vector ``x1``."""
    return functions.searchsorted(x1, x2, side=side, sorter=sorter)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """``x1`` where ``condition`` is true, else ``x2``."""
    return functions.where(condition, x1, x2)


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The positions of the elements in order along ``axis``; equal elements keep their order."""
    return functions.argsort(x, axis, descending)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along ``axis``."""
    return functions.sort(x, axis, descending).values


def _distinct(x: Tensor) -> UniqueAll:
    """By a stable sort; NaNs differ from each other, so each counts once."""
    flat = functions.ravel(x)
    positions = functions.argsort(flat)
    ordered = functions.index_select(flat, 0, positions)
    size = flat.numel()
    start = functions.ones(size, dtype=dtypes.bool_)
    if size > 1:
        start[1:] = ordered[1:] != ordered[:-1]
    group = functions.cumsum(start.to(dtypes.int64), 0) - 1
    inverse = functions.zeros(size, dtype=dtypes.int64).scatter(0, positions, group)
    firsts = functions.nonzero(start).reshape(-1)
    ends = functions.cat([firsts[1:], tensor([size] if size else [], dtype=dtypes.int64)])
    return UniqueAll(ordered[firsts], positions[firsts], inverse.reshape(tuple(x.shape)), ends - firsts)


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements of ``x`` in order, with positions, inverse and counts."""
    return _distinct(x)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements of ``x`` in order and how often each occurs."""
    found = _distinct(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements of ``x`` in order and where each element went."""
    found = _distinct(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements of ``x`` in order."""
    return _distinct(x).values
