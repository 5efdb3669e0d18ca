"""Different elements, runs and frequencies: results whose shape depends on values, found on the host."""

from __future__ import annotations

from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import bfloat16, float64, int64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ops.base import apply, normalize_axis, ops, public
from twofold.ops.indexing import sorting_routines
from twofold.ops.indexing.masks import nonzero_rows

Tensor = _core.Tensor


def _lift(array: numpy.ndarray, like: Tensor | None = None) -> Tensor:
    """A tensor of an array, in the dtype of ``like`` where NumPy has none such."""
    made = _core.from_array(numpy.require(array, requirements="C"), False)
    return apply("cast", made, attrs=(bfloat16,)) if like is not None and like.dtype is bfloat16 else made


def _chosen(found: list[Any], inverse: bool, counts: bool) -> Any:
    """The results that were asked for: one alone, several as a tuple."""
    kept = [found[0]] + [part for part, wanted in zip(found[1:], (inverse, counts), strict=True) if wanted]
    return kept[0] if len(kept) == 1 else tuple(kept)


@public("unique", methods=("unique",))
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements in ascending order (along ``dim``: the different slices).

    With ``return_inverse`` also the position of each element among them, with ``return_counts`` how often each occurs.

    >>> import twofold as torch
    >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    array = input._read()
    axis = None if dim is None else normalize_axis(dim, len(input.shape))
    if axis is not None and array.ndim and 0 in array.shape[:axis] + array.shape[axis + 1 :]:
        raise ShapeError("different slices that have no elements", "Use a tensor that has some.")
    if axis is not None and not array.ndim:
        axis = None
    if axis is None and array.dtype.kind != "c":
        values, inverse, counts = _distinct(array.reshape(-1), return_inverse)
    else:
        values, inverse, counts = numpy.unique(
            array, return_inverse=True, return_counts=True, axis=axis, equal_nan=False
        )
    positions = inverse.reshape(array.shape if axis is None else (array.shape[axis],)).astype(numpy.int64)
    found = [_lift(values, input), _lift(positions), _lift(counts.astype(numpy.int64))]
    return _chosen(found, return_inverse, return_counts)


def _distinct(x: numpy.ndarray, inverse: bool) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """The different elements of a vector in order, which one each element is (if ``inverse``), and how often."""
    order = sorting_routines.order(x) if inverse else None
    ordered = sorting_routines.ordered(x) if order is None else x[order]
    starts = numpy.ones(len(x), bool)
    numpy.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    positions = numpy.zeros(len(x), numpy.int64)
    if order is not None:
        positions[order] = numpy.cumsum(starts) - 1
    counts = numpy.diff(numpy.append(numpy.flatnonzero(starts), len(x)))
    return ordered[starts], positions, counts


@public("unique_consecutive", methods=("unique_consecutive",))
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The first of each run of equal elements (along ``dim``: of equal slices).

    >>> import twofold as torch
    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    array = input._read()
    axis = None if dim is None or not array.ndim else normalize_axis(dim, array.ndim)
    lines = array.reshape(-1) if axis is None else numpy.moveaxis(array, axis, 0)
    length = len(lines)
    starts = numpy.ones(length, bool)
    differ = lines[1:] != lines[:-1]
    starts[1:] = differ if lines.ndim == 1 else differ.any(tuple(range(1, lines.ndim)))
    first = numpy.flatnonzero(starts)
    values = lines[first] if axis is None else numpy.moveaxis(lines[first], 0, axis)
    found = [_lift(values, input), None, None]
    if return_inverse:
        positions = numpy.cumsum(starts) - 1
        found[1] = _lift(positions.reshape(array.shape if axis is None else (length,)))
    if return_counts:
        found[2] = _lift(numpy.diff(numpy.append(first, length)))
    return _chosen(found, return_inverse, return_counts)


@public("bincount", methods=("bincount",))
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of the numbers 0, 1, ... occurs, or the sum of the ``weights`` where it does.

    Raises DTypeError for anything but integers, ArgumentError for negative ones.

    >>> import twofold as torch
    >>> torch.bincount(torch.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    if input.dtype.kind not in "iu":
        raise DTypeError(f"takes integers, not {input.dtype.name}", "Cast with .to(int64) first.")
    numbers = input._read()
    if numbers.ndim != 1 or numbers.min(initial=0) < 0:
        what = f"numbers of shape {numbers.shape}, the smallest {numbers.min(initial=0)}"
        raise ArgumentError(what, "Use a vector of numbers from 0.")
    if minlength < 0:
        raise ArgumentError(f"minlength {minlength}", "Use 0 or more.")
    if weights is not None and tuple(weights.shape) != numbers.shape:
        raise ShapeError(f"weights of shape {tuple(weights.shape)}", "Give one weight per number.")
    # where there are no numbers, PyTorch counts as if no weights were given
    if weights is None or not len(numbers):
        return _lift(numpy.bincount(numbers, minlength=minlength).astype(numpy.int64, copy=False))
    dtype = weights.dtype.numpy if weights.dtype.kind == "f" else float64.numpy
    sums = numpy.zeros(max(int(numbers.max()) + 1, minlength), dtype)
    numpy.add.at(sums, numbers, weights._read())
    return _lift(sums)


@public("nonzero_static", methods=("nonzero_static",))
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The positions of the first ``size`` elements that are not zero, one row each; missing rows hold ``fill_value``.

    >>> import twofold as torch
    >>> torch.nonzero_static(torch.tensor([0, 5, 7]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    if size < 0:
        raise ArgumentError(f"size {size}", "Use 0 or more.")
    array = input._read()
    rows = nonzero_rows(array)[:size]
    result = numpy.full((size, array.ndim), fill_value, numpy.int64)
    result[: len(rows)] = rows
    return _lift(result)


@public("unravel_index")
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """One position per axis of ``shape`` from positions in its row-major order.

    >>> import twofold as torch
    >>> torch.unravel_index(torch.tensor([5, 0]), (2, 3))
    (tensor([1, 0]), tensor([2, 0]))
    """
    if indices.dtype.kind not in "iu":
        raise DTypeError(f"takes integers, not {indices.dtype.name}", "Cast with .to(int64) first.")
    sizes = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    positions, rest = [], ops.cast(indices, int64)
    for size in reversed(sizes):
        if size < 1:
            raise ArgumentError(f"shape {sizes}", "Use positive sizes.")
        positions.append(ops.remainder(rest, size))
        rest = ops.floor_divide(rest, size)
    return tuple(reversed(positions))
