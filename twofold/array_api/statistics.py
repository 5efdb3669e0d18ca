"""Statistics over axes, running sums, and tests of all elements."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.array_api.functions import functions
from twofold.dtypes import DType, int64, uint64
from twofold.errors import ArgumentError

Tensor = _core.Tensor
Axes = int | tuple[int, ...] | None


def _accumulated(x: Tensor, dtype: DType | None) -> DType:
    """The dtype that sums and products come in: integers in 64 bits, all others in their own."""
    return dtype or {"i": int64, "b": int64, "u": uint64}.get(x.dtype.kind, x.dtype)


def sum(x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """The sum over ``axis`` (None: over all)."""
    wanted = _accumulated(x, dtype)
    return functions.sum(x.to(wanted), axis=axis, keepdims=keepdims).to(wanted)


def prod(x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """The product over ``axis`` (None: over all)."""
    wanted = _accumulated(x, dtype)
    return functions.prod(x.to(wanted), axis=axis, keepdims=keepdims).to(wanted)


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest element over ``axis`` (None: over all)."""
    return functions.amax(x, axis=axis, keepdims=keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest element over ``axis`` (None: over all)."""
    return functions.amin(x, axis=axis, keepdims=keepdims)


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The average over ``axis`` (None: over all)."""
    return functions.mean(x, axis=axis, keepdims=keepdims)


def std(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation over ``axis`` (None: over all)."""
    return functions.std(x, axis=axis, correction=correction, keepdims=keepdims)


def var(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance over ``axis`` (None: over all)."""
    return functions.var(x, axis=axis, correction=correction, keepdims=keepdims)


def _cumulative(
    function: Any, first: int, x: Tensor, axis: int | None, dtype: DType | None, include_initial: bool
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(f"an array with {x.ndim} axes", "Name the axis to run along.")
        axis = 0
    wanted = _accumulated(x, dtype)
    made = function(x.to(wanted), axis).to(wanted)
    if not include_initial:
        return made
    shape = [1 if k == axis % x.ndim else size for k, size in enumerate(x.shape)]
    return functions.cat([functions.full(shape, first, dtype=made.dtype), made], axis)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False
) -> Tensor:
    """Sums of the elements up to each position along ``axis``; ``include_initial`` puts a 0 in front."""
    return _cumulative(functions.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False
) -> Tensor:
    """Products of the elements up to each position along ``axis``; ``include_initial`` puts a 1 in front."""
    return _cumulative(functions.cumprod, 1, x, axis, dtype, include_initial)


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether all elements over ``axis`` (None: of all axes) are true."""
    return functions.all(functions.ne(x, 0), axis, keepdims)


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether any element over ``axis`` (None: of all axes) is true."""
    return functions.any(functions.ne(x, 0), axis, keepdims)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The ``n``-th differences of neighbours along ``axis``."""
    return functions.diff(x, n, axis, prepend, append)
