"""Sums and means without NaN, covariance and correlation, histograms of several variables."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import tensor_type
from twofold.ops.base import Host, apply, convert, host, ops, public, strong
from twofold.ops.examples import example
from twofold.ops.linear_algebra.matrices import conjugate


def _without_nan(input: Any) -> Any:
    return ops.where(ops.isnan(input), ops.zeros_like(input), input) if input.dtype.kind == "f" else input


@public(methods=("nansum",))
def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum over ``dim`` (default: all) of the elements that are not NaN.

    >>> import twofold as torch
    >>> torch.nansum(torch.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """
    return ops.sum(_without_nan(input), dim or None if dim == () else dim, keepdim, dtype=dtype)


@public(methods=("nanmean",))
def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The average over ``dim`` (default: all) of the elements that are not NaN; NaN where there are none.

    >>> import twofold as torch
    >>> torch.nanmean(torch.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5000)
    """
    if input.dtype.kind != "f":
        raise DTypeError(f"takes floating dtypes, not {input.dtype.name}", "Cast with .to(float32) first.")
    value = input if dtype is None else ops.cast(input, dtype)
    count = ops.sum(ops.logical_not(ops.isnan(value)), dim, keepdim)
    return ops.divide(ops.nansum(value, dim, keepdim), count)


nansum.empty_dim_is_all = nanmean.empty_dim_is_all = True  # type: ignore[attr-defined]


def _observation_weights(name: str, weights: Any, count: int) -> None:
    if weights is not None and tuple(weights.shape) != (count,):
        raise ShapeError(
            f"{name} of shape {tuple(weights.shape)} for {count} observations", "Give one per column."
        )


@public(methods=("cov",))
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance matrix of variables (rows) from observations (columns), over their number - ``correction``.

    ``fweights`` counts each observation several times, ``aweights`` weighs it.

    >>> import twofold as torch
    >>> torch.cov(torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]))
    tensor([[1., 2.],
            [2., 4.]])
    """
    if len(input.shape) > 2:
        raise ShapeError(
            f"observations with {len(input.shape)} axes", "Use (variables, observations) or a vector."
        )
    x = input if input.dtype.kind in "fc" else input * 1.0
    rows = ops.reshape(x, (1, prod(x.shape))) if len(x.shape) < 2 else x
    count = rows.shape[1]
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        _observation_weights(name, weights, count)
    if fweights is not None and fweights.dtype.kind not in "iu":
        raise DTypeError(f"fweights of {fweights.dtype.name}", "Use integers.")
    given = [
        w if w.dtype.kind == "f" else ops.cast(w, x.dtype.real) for w in (fweights, aweights) if w is not None
    ]
    if not given:
        centered = ops.subtract(rows, ops.mean(rows, 1, True))
        divisor: Any = max(count - correction, 0)
        matrix = ops.divide(ops.matmul(centered, ops.transpose(conjugate(centered), 0, 1)), float(divisor))
    else:
        w = given[0] if len(given) == 1 else ops.multiply(*given)
        total = ops.sum(w)
        centered = ops.subtract(rows, ops.divide(ops.sum(ops.multiply(rows, w), 1, True), total))
        excess: Any = correction
        if aweights is not None and correction:
            excess = ops.multiply(ops.divide(ops.sum(ops.multiply(w, given[-1])), total), float(correction))
        divisor = ops.maximum(ops.subtract(total, excess), 0)
        matrix = ops.matmul(centered, ops.transpose(ops.multiply(conjugate(centered), w), 0, 1))
        matrix = ops.divide(matrix, divisor)
    return matrix if len(input.shape) == 2 and rows.shape[0] != 1 else ops.squeeze(matrix)


@public(methods=("corrcoef",))
def corrcoef(input: Any) -> Any:
    """The correlation coefficients of variables (rows) from observations (columns), within -1 and 1.

    >>> import twofold as torch
    >>> torch.corrcoef(torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if len(input.shape) > 2:
        raise ShapeError(
            f"observations with {len(input.shape)} axes", "Use (variables, observations) or a vector."
        )
    matrix = ops.cov(input)
    if not len(matrix.shape):
        return ops.divide(matrix, matrix)
    deviations = ops.sqrt(ops.diagonal(matrix))
    scaled = ops.divide(ops.divide(matrix, ops.unsqueeze(deviations, 1)), ops.unsqueeze(deviations, 0))
    if scaled.dtype.kind == "c":
        return ops.complex(ops.clip(ops.real(scaled), -1, 1), ops.clip(ops.imag(scaled), -1, 1))
    return ops.clip(scaled, -1, 1)


@host
class grid_counts(Host):
    """The weights of points that fall into the cells of a grid, whose last edges are included.

    Inputs ``(points [count, axes], weights, edges of each axis...)``.
    """

    functions = ()
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        points = strong(inputs[0])
        if inputs[1].shape != points.shape[:1]:
            raise ShapeError(
                f"weights of shape {tuple(inputs[1].shape)} for {points.shape[0]} points",
                "Give one weight for each point.",
            )
        for line in inputs[2:]:
            if line.ndim != 1 or line.shape[0] < 2:
                raise ShapeError(
                    f"edges of shape {tuple(line.shape)}", "Give a vector of at least two edges."
                )
        values = [convert(node, points.dtype.compute) for node in inputs]
        shape = tuple(node.shape[0] - 1 for node in inputs[2:])
        return make_node(self, attrs, tuple(values), tensor_type(values[0].dtype, shape))

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        points, weights, *edges = arrays
        positions = []
        inside = numpy.ones(len(points), bool)
        for axis, line in enumerate(edges):
            x = points[:, axis]
            position = numpy.searchsorted(line, x, "right") - 1
            positions.append(numpy.where(x == line[-1], len(line) - 2, position))
            inside &= (x >= line[0]) & (x <= line[-1])
        result = numpy.zeros([len(line) - 1 for line in edges], points.dtype)
        numpy.add.at(result, tuple(position[inside] for position in positions), weights[inside])
        return result

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs, *arrays)

    def samples(self) -> Sequence[Any]:
        line = numpy.array([-1.0, 0.0, 0.5, 1.0], numpy.float32)
        return [example((), (9, 1), (9,), line), example((), (9, 2), (9,), line, line[:2])]


def _edges(points: Any, axis: int, bins: Any, limits: Sequence[float] | None) -> Any:
    """The edges of the bins of one axis."""
    if hasattr(bins, "shape"):
        return ops.copied(bins)
    if bins < 1:
        raise ArgumentError(f"{bins} bins", "Use at least one.")
    dtype = points.dtype
    if limits is not None:
        low, high = limits
        if low > high:
            raise ArgumentError(f"the range from {low} to {high}", "Give the smaller end first.")
        if low == high:
            low, high = low - 0.5, high + 0.5
        return apply("linspace", float(low), float(high), attrs=(int(bins) + 1, True, dtype))
    if not points.shape[0]:
        return apply("linspace", 0.0, 1.0, attrs=(int(bins) + 1, True, dtype))
    column = ops.select(points, 1, axis)
    ends = ops.amin(column), ops.amax(column)
    half = ops.multiply(ops.cast(ops.equal(*ends), dtype), 0.5)
    ends = ops.subtract(ends[0], half), ops.add(ends[1], half)
    return apply("linspace", *ends, attrs=(int(bins) + 1, True, dtype))


def _histogram(
    points: Any, bins: Sequence[Any], limits: Any, weight: Any, density: bool
) -> tuple[Any, list[Any]]:
    pairs = [None] * len(bins) if limits is None else list(zip(limits[::2], limits[1::2], strict=True))
    edges = [
        _edges(points, axis, line, pair) for axis, (line, pair) in enumerate(zip(bins, pairs, strict=True))
    ]
    weights = (
        apply("full", 1.0, attrs=((points.shape[0],), points.dtype)) if weight is None else ops.ravel(weight)
    )
    counts = apply("grid_counts", points, weights, *edges)
    if density:
        total = ops.sum(counts)
        for axis, line in enumerate(edges):
            counts = ops.divide(counts, ops.reshape(ops.diff(line), (-1, *[1] * (len(edges) - axis - 1))))
        counts = ops.divide(counts, total)
    return counts, edges


class Histogram(NamedTuple):
    """Result of ``histogram``; of ``histogramdd``, with a list of edges."""

    hist: Any
    bin_edges: Any


@public(methods=("histogram",))
def histogram(
    input: Any, bins: Any, *, range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> Histogram:
    """How many elements (or which sum of ``weight``) fall into each bin, and the edges of the bins.

    ``bins`` is their number, from ``range`` or from the smallest to the largest element, or a vector of edges.
    With ``density`` the integral is 1.

    >>> import twofold as torch
    >>> torch.histogram(torch.tensor([0.0, 1.0, 1.5, 4.0]), 2)
    Histogram(hist=tensor([3., 1.]), bin_edges=tensor([0., 2., 4.]))
    """
    points = ops.reshape(input, (-1, 1)) if prod(input.shape) else ops.reshape(input, (0, 1))
    counts, edges = _histogram(points, [bins], range, weight, density)
    return Histogram(counts, edges[0])


@public("histogramdd")
def histogramdd(
    input: Any, bins: Any, range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> Histogram:
    """How many points, the rows of the last axis, fall into each cell of a grid, and the edges along each axis.

    >>> import twofold as torch
    >>> counts, edges = torch.histogramdd(torch.tensor([[0.0, 0.0], [1.0, 2.0], [1.0, 1.5]]), (2, 2))
    >>> counts
    tensor([[1., 0.],
            [0., 2.]])
    """
    size = input.shape[-1]
    points = ops.reshape(input, (prod(input.shape[:-1]), size))
    lines = list(bins) if isinstance(bins, (tuple, list)) else [bins] * size
    if len(lines) != size:
        raise ArgumentError(
            f"bins for {len(lines)} axes of {size}", "Give one number or vector of edges per axis."
        )
    return Histogram(*_histogram(points, lines, range, weight, density))
