"""Differences, slopes and integrals along an axis, by finite differences and the trapezoidal rule."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from twofold.dtypes import bool_
from twofold.errors import ArgumentError, ShapeError
from twofold.ops.base import apply, normalize_axis, ops, public
from twofold.ops.shape import shapes
from twofold.ops.shape.movement import slice_axis


def _ends(x: Any, axis: int, left: int = 1, right: int = 1) -> tuple[Any, Any]:
    """The elements after the first ``left``, and those before the last ``right``."""
    size = x.shape[axis]
    return slice_axis(x, axis, left, size - left), slice_axis(x, axis, 0, size - right)


@public(methods=("diff",))
def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Each element minus the one before it along ``dim``, ``n`` times; of bools whether they differ.

    ``prepend`` and ``append`` are joined to the input first. Raises ShapeError for a scalar.

    >>> import twofold as torch
    >>> torch.diff(torch.tensor([1, 4, 9, 16]))
    tensor([3, 5, 7])
    """
    if not len(input.shape):
        raise ShapeError("differences of a scalar", "Use a tensor with at least one axis.")
    if n < 0:
        raise ArgumentError(f"differences {n} times", "Use 0 or more.")
    axis = normalize_axis(dim, len(input.shape))
    if n == 0:
        return ops.copied(input)
    parts = [x for x in (prepend, input, append) if x is not None]
    x = ops.concatenate(parts, axis) if len(parts) > 1 else input
    for _ in range(min(n, x.shape[axis])):
        later, earlier = _ends(x, axis)
        x = ops.not_equal(later, earlier) if x.dtype is bool_ else ops.subtract(later, earlier)
    return x


def _areas(y: Any, x: Any, dx: Any, dim: int) -> tuple[Any, int]:
    """The areas between neighbours along an axis."""
    axis = normalize_axis(dim, len(y.shape))
    if not len(y.shape):
        raise ShapeError("an integral over a scalar", "Use a tensor with at least one axis.")
    if not y.shape[axis]:
        return _real(y), axis
    later, earlier = _ends(_real(y), axis)
    means = ops.divide(ops.add(later, earlier), 2.0)
    if x is None:
        return ops.multiply(means, dx), axis
    if len(x.shape) == 1 and x.shape[0] != y.shape[axis]:
        raise ShapeError(f"{x.shape[0]} points for {y.shape[axis]} values", "Give one point per value.")
    points = x if len(x.shape) != 1 else ops.reshape(x, (-1, *[1] * (len(y.shape) - axis - 1)))
    position = axis - len(y.shape) + len(points.shape)
    if position >= 0 and points.shape[position] != 1:
        return ops.multiply(means, ops.diff(_real(points), 1, position)), axis
    return ops.multiply(means, ops.subtract(points, points)), axis


def _real(x: Any) -> Any:
    """Integers as floating-point numbers: a sum of two of them may be none of their dtype."""
    return x if x.dtype.kind in "fc" else ops.divide(x, 1)


@public("trapezoid", "trapz")
def trapezoid(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """The integral of ``y`` along ``dim`` by the trapezoidal rule, at the points ``x`` or ``dx`` apart.

    >>> import twofold as torch
    >>> torch.trapezoid(torch.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    areas, axis = _areas(y, x, dx, dim)
    return ops.sum(areas, axis)


@public()
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """The integrals of ``y`` along ``dim`` up to each position but the first, by the trapezoidal rule.

    >>> import twofold as torch
    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 3.0, 5.0]))
    tensor([2., 6.])
    """
    areas, axis = _areas(y, x, dx, dim)
    return ops.cumsum(areas, axis)


def _spacings(spacing: Any, axes: Sequence[int]) -> list[Any]:
    """One distance or vector of coordinates per axis."""
    if spacing is None:
        spacing = 1
    if isinstance(spacing, (int, float)) or (hasattr(spacing, "shape") and not len(spacing.shape)):
        return [spacing] * len(axes)
    given = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing]
    if len(given) != len(axes):
        raise ArgumentError(f"{len(given)} spacings for {len(axes)} axes", "Give one per axis.")
    return given


@public()
def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> list[Any]:
    """The slope along each of ``dim`` (default: all), by central differences inside and one-sided ones at the ends.

    ``spacing`` is a distance, or one distance or vector of coordinates per axis. Differences at the ends are of
    first or second order, as ``edge_order`` says. Source: Fornberg 1988, Generation of Finite Difference Formulas on
    Arbitrarily Spaced Grids.

    >>> import twofold as torch
    >>> torch.gradient(torch.tensor([0.0, 1.0, 4.0, 9.0]))
    [tensor([1., 2., 4., 5.])]
    """
    if edge_order not in (1, 2):
        raise ArgumentError(f"edge_order {edge_order}", "Use 1 or 2.")
    axes = shapes.many_axes(dim, len(input.shape))
    for axis in axes:
        if input.shape[axis] <= edge_order:
            what = f"size {input.shape[axis]} of axis {axis} for edge_order {edge_order}"
            raise ShapeError(what, f"Use an axis with at least {edge_order + 1} elements.")
    x = input if input.dtype.kind in "fc" else ops.divide(input, 1)
    distances = _spacings(spacing, axes)
    return [_slope(x, axis, step, edge_order) for axis, step in zip(axes, distances, strict=True)]


def _slope(x: Any, axis: int, spacing: Any, order: int) -> Any:
    """The slope along one axis."""
    size = x.shape[axis]
    line = (size - 1, *[1] * (len(x.shape) - axis - 1))
    uniform = not (hasattr(spacing, "shape") and len(spacing.shape))
    if not uniform:
        if prod(spacing.shape) != size:
            raise ShapeError(f"{prod(spacing.shape)} coordinates for size {size}", "Give one per element.")
        steps = ops.reshape(ops.diff(spacing), line)
    else:
        steps = ops.broadcast_to(apply("full", spacing, attrs=((), x.dtype)), line)
        steps = ops.cast(steps, x.dtype)

    def part(value: Any, start: int, count: int) -> Any:
        return slice_axis(value, len(value.shape) - (len(x.shape) - axis), start, count)

    slopes = ops.divide(ops.diff(x, 1, axis), steps)
    pieces = [_edge(slopes, steps, part, 0, order)]
    if size > 2 and uniform:  # in one difference: the element between may be infinite
        later, earlier = _ends(x, axis, 2, 2)
        pieces.append(ops.divide(ops.divide(ops.subtract(later, earlier), part(steps, 0, 1)), 2))
    elif size > 2:
        before, after = part(steps, 0, size - 2), part(steps, 1, size - 2)
        # the weighted mean of both slopes: each counts by the distance on the other side
        left, right = part(slopes, 0, size - 2), part(slopes, 1, size - 2)
        weighted = ops.add(ops.multiply(left, after), ops.multiply(right, before))
        pieces.append(ops.divide(weighted, ops.add(before, after)))
    pieces.append(_edge(slopes, steps, part, size - 2, order))
    return ops.concatenate(pieces, axis)


def _edge(slopes: Any, steps: Any, part: Any, position: int, order: int) -> Any:
    """The slope at an end, from the two slopes next to it for the second order."""
    outer = part(slopes, position, 1)
    if order == 1:
        return outer
    beside = position + (1 if position == 0 else -1)
    near, far = part(steps, position, 1), part(steps, beside, 1)
    change = ops.multiply(ops.subtract(outer, part(slopes, beside, 1)), ops.divide(near, ops.add(near, far)))
    return ops.add(outer, change)
