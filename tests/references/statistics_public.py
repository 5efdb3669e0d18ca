"""References of the public reductions, order statistics and histograms."""

from __future__ import annotations

import math
from typing import Any

import numpy
import scipy.integrate
import scipy.spatial.distance
import scipy.special
import scipy.stats
from array_entries import bin_counts, median_index, mode_of, running_index
from declare import call, complexes, each_line, integers, normal, public, uniform

NAN = numpy.array([[1.0, numpy.nan, 3.0, -2.0], [numpy.nan, 5.0, 0.5, 4.0], [7.0, 1.5, -1.0, 2.5]])

# Extremes


def _extreme(largest: bool) -> Any:
    def rule(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, numpy.ndarray):
            chosen = x > dim if largest else x < dim
            return numpy.where(chosen | numpy.isnan(x), x, dim + 0 * x)
        if dim is None:
            return numpy.array(sorted(x.reshape(-1).tolist())[-1 if largest else 0])

        def position(line: Any) -> list[int]:
            values = line.tolist()
            for k, value in enumerate(values):
                if value != value:
                    return [k]
            return [values.index(sorted(values)[-1 if largest else 0])]

        positions = each_line(position, x, dim)
        found = numpy.take_along_axis(x, positions, dim), positions
        return found if keepdim else tuple(one.squeeze(dim) for one in found)

    return rule


EXTREMES = lambda: [
    call(normal(3, 4)),
    call(normal(3, 4), 0),
    call(normal(3, 4), dim=-1, keepdim=True),
    call(NAN, 1),
    call(numpy.array([2.0, 5.0, 5.0, 1.0]), 0),
    call(normal(3, 4), normal(4)),
    call(integers(-5, 5, 3, 4)),
]
public("max", _extreme(True), EXTREMES)
public("min", _extreme(False), EXTREMES)


def _aminmax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        found = min(x.reshape(-1).tolist()), max(x.reshape(-1).tolist())
        return tuple(numpy.array(one).reshape((1,) * x.ndim if keepdim else ()) for one in found)
    found = tuple(each_line(lambda line, rule=rule: [rule(line.tolist())], x, dim) for rule in (min, max))
    return found if keepdim else tuple(one.squeeze(dim) for one in found)


public(
    "aminmax",
    _aminmax,
    lambda: [call(normal(3, 4)), call(normal(3, 4), dim=0), call(normal(3, 4), dim=1, keepdim=True)],
)


def _running(largest: bool) -> Any:
    def rule(x: Any, dim: int) -> Any:
        positions = each_line(lambda line: running_index(line, largest), x, dim)
        return numpy.take_along_axis(x, positions, dim), positions

    return rule


public(
    "cummax",
    _running(True),
    lambda: [call(normal(3, 7), 1), call(integers(0, 4, 9), 0), call(normal(4, 2), -2)],
)
public(
    "cummin",
    _running(False),
    lambda: [call(normal(3, 7), 1), call(integers(0, 4, 9), 0), call(normal(4, 2), -2)],
)

# Order statistics


def _median(ignore: bool) -> Any:
    def rule(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return x.reshape(-1)[median_index(x.reshape(-1), ignore)]
        positions = each_line(lambda line: [median_index(line, ignore)], x, dim)
        found = numpy.take_along_axis(x, positions, dim), positions
        return found if keepdim else tuple(one.squeeze(dim) for one in found)

    return rule


MEDIANS = lambda: [
    call(normal(3, 4)),
    call(NAN),
    call(NAN, 1),
    call(normal(3, 5), dim=0, keepdim=True),
    call(integers(0, 9, 7), 0),
]
public("median", _median(False), MEDIANS)
public("nanmedian", _median(True), MEDIANS)


def _mode(x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    found = (
        each_line(lambda line: [mode_of(line)[0]], x, dim),
        each_line(lambda line: [mode_of(line)[1]], x, dim),
    )
    return found if keepdim else tuple(one.squeeze(dim) for one in found)


public("mode", _mode, lambda: [call(integers(0, 3, 4, 9)), call(integers(0, 3, 9, 2), 0, True)])


def _quantile(ignore: bool) -> Any:
    def rule(x: Any, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear") -> Any:
        function = numpy.nanquantile if ignore else numpy.quantile
        return function(x, q, dim, keepdims=keepdim, method=interpolation)

    return rule


QUANTILES = lambda: (
    [
        call(normal(3, 4), 0.3),
        call(normal(3, 4), numpy.array([0.0, 0.25, 1.0]), 1),
        call(normal(3, 4), numpy.array([0.1, 0.9]), dim=0, keepdim=True),
        call(normal(3, 4), 0.5, keepdim=True),
        call(NAN, 0.4, 1),
    ]
    + [call(normal(9), 0.37, interpolation=how) for how in ("lower", "higher", "midpoint", "nearest")]
)
public("quantile", _quantile(False), QUANTILES)
public("nanquantile", _quantile(True), QUANTILES)

# Sums and moments


def _total(x: Any, dim: Any, keepdim: bool) -> Any:
    """Exact sums, rounded once."""
    axes = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else dim
    axes = tuple(axis % x.ndim for axis in axes)
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    found = numpy.zeros(shape)
    for at in numpy.ndindex(*shape):
        part = x[tuple(slice(None) if axis in axes else k for axis, k in enumerate(at))]
        found[at] = math.fsum(part.reshape(-1).tolist())
    return found if keepdim else found.squeeze(axes)


def _nansum(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _total(numpy.where(numpy.isnan(x), 0, x), dim, keepdim)


def _nanmean(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _nansum(x, dim, keepdim) / _total((~numpy.isnan(x)).astype(float), dim, keepdim)


WITH_NAN = lambda: [call(NAN), call(NAN, 0), call(NAN, dim=1, keepdim=True), call(normal(2, 3, 4), (0, 2))]
public("nansum", _nansum, WITH_NAN)
public("nanmean", _nanmean, WITH_NAN)


def _moments(power: float) -> Any:
    def rule(
        x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = 1
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if unbiased is not None:
            correction = int(unbiased)
        count = _total(numpy.ones(x.shape), dim, True)
        mean = _total(x, dim, True) / count
        spread = _total((x - mean) ** 2, dim, keepdim)
        count = count if keepdim else _total(numpy.ones(x.shape), dim, False)
        mean = mean if keepdim else _total(x, dim, False) / count
        return (spread / (count - correction)) ** power, mean

    return rule


MOMENTS = lambda: [
    call(normal(3, 4)),
    call(normal(3, 4), 1),
    call(normal(2, 3, 4), (0, 2), keepdim=True),
    call(normal(3, 4), 0, False),
    call(normal(3, 4), dim=1, correction=2),
    call(normal(3, 4), False),
]
public("var_mean", _moments(1.0), MOMENTS)
public("std_mean", _moments(0.5), MOMENTS)
public(
    "cov",
    lambda x, correction=1, fweights=None, aweights=None: numpy.cov(
        x, ddof=correction, fweights=fweights, aweights=aweights
    ),
    lambda: [
        call(normal(3, 7)),
        call(normal(7)),
        call(normal(2, 5), correction=0),
        call(normal(2, 5), fweights=numpy.array([1, 2, 1, 3, 1])),
        call(normal(2, 5), aweights=uniform(0.5, 2, 5)),
        call(complexes(2, 5)),
    ],
)
public(
    "corrcoef",
    lambda x: (
        numpy.array([[scipy.stats.pearsonr(a, b)[0] for a in x] for b in x])
        if x.ndim > 1
        else numpy.array(1.0)
    ),
    lambda: [call(normal(3, 7)), call(normal(7))],
)


def _histc(x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    low, high = (x.min(), x.max()) if min == max else (min, max)
    return bin_counts(x, bins, float(low), float(high))


public(
    "histc",
    _histc,
    lambda: [
        call(normal(50)),
        call(normal(5, 9), 7),
        call(normal(50), bins=5, min=-1, max=1),
        call(normal(9), 3, -2, 2),
        call(normal(9), 3, 1, 1),
    ],
)


def _histogram(x: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    flat = weight.reshape(-1) if weight is not None else None
    counts, edges = numpy.histogram(x.reshape(-1), bins, range, density, flat)
    return counts.astype(float), edges


public(
    "histogram",
    _histogram,
    lambda: [
        call(normal(30), 5),
        call(normal(30), 4, range=(-1.0, 2.0)),
        call(normal(30), numpy.array([-2.0, -0.5, 0.0, 3.0])),
        call(normal(30), 4, weight=uniform(0, 2, 30)),
        call(normal(30), 4, density=True),
    ],
)


def _histogramdd(x: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    limits = None if range is None else list(zip(range[::2], range[1::2]))
    counts, edges = numpy.histogramdd(x, bins, limits, density, weight)
    return counts, list(edges)


public(
    "histogramdd",
    _histogramdd,
    lambda: [
        call(normal(30, 2), [3, 4]),
        call(normal(30, 2), [2, 2], range=[-1.0, 1.0, -2.0, 2.0]),
        call(normal(30, 2), [3, 2], weight=uniform(0, 2, 30), density=True),
        call(normal(30, 2), [numpy.array([-3.0, 0.0, 3.0]), numpy.array([-3.0, 1.0, 3.0])]),
    ],
)
