"""References of entries that order, count, choose and transform, each written in another way than the entry."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy
import scipy.linalg
import scipy.special
from declare import each_line, entry, entry_identity

Found = Iterator[tuple[Any, Any]]


@entry("chosen_indices")
def _chosen(n: int, r: int, repeated: bool) -> Any:
    def allowed(positions: tuple[int, ...]) -> bool:
        return all(a <= b if repeated else a < b for a, b in itertools.pairwise(positions))

    found = [positions for positions in itertools.product(range(n), repeat=r) if allowed(positions)]
    return numpy.array(found, numpy.int64).reshape(-1, r)


@entry("combinations")
def _combinations(x: Any, r: int, repeated: bool) -> Any:
    return x[_chosen(len(x), r, repeated)]


def triangle(rows: int, columns: int, offset: int, upper: bool) -> Any:
    """Rows and columns of the elements of a triangle, in row-major order."""
    positions = [
        (row, column)
        for row, column in itertools.product(range(rows), range(columns))
        if (column - row >= offset if upper else column - row <= offset)
    ]
    return numpy.array(positions, numpy.int64).reshape(-1, 2).T


@entry("triangle_indices")
def _triangle_positions(rows: int, columns: int, offset: int, upper: bool) -> Any:
    return triangle(rows, columns, offset, upper)


@entry("tril_indices")
def _tril(rows: int, columns: int, offset: int, dtype: Any) -> Any:
    return triangle(rows, columns, offset, False).astype(dtype.numpy)


@entry("triu_indices")
def _triu(rows: int, columns: int, offset: int, dtype: Any) -> Any:
    return triangle(rows, columns, offset, True).astype(dtype.numpy)


# Fourier transforms, by the matrix of the transform


SCALES = {
    "backward": lambda n, forward: 1.0 if forward else 1 / n,
    "forward": lambda n, forward: 1 / n if forward else 1.0,
    "ortho": lambda n, forward: n**-0.5,
}


def transform(x: Any, axes: tuple[int, ...], forward: bool, norm: str) -> Any:
    """The discrete Fourier transform along ``axes`` by its matrix."""
    found = numpy.asarray(x, complex)
    for axis in axes:
        size = found.shape[axis]
        matrix = scipy.linalg.dft(size) if forward else scipy.linalg.dft(size).conj()
        matrix = matrix * SCALES[norm or "backward"](size, forward)
        found = numpy.moveaxis(numpy.tensordot(matrix, found, (1, axis)), 0, axis)
    return found


@entry("complex_transform")
def _complex_transform(x: Any, axes: tuple[int, ...], forward: bool, norm: str) -> Any:
    return transform(x, axes, forward, norm)


@entry("half_transform")
def _half_transform(x: Any, axes: tuple[int, ...], norm: str) -> Any:
    (axis,) = axes
    return numpy.take(transform(x, axes, True, norm), range(x.shape[axis] // 2 + 1), axis)


def mirrored(half: Any, axis: int, size: int) -> Any:
    """The whole transform of which ``half`` is the first half, as a real signal has it."""
    moved = numpy.moveaxis(half, axis, -1)[..., : size // 2 + 1].copy()
    moved[..., 0] = moved[..., 0].real
    if size % 2 == 0:
        moved[..., -1] = moved[..., -1].real
    rest = moved[..., 1 : (size + 1) // 2][..., ::-1].conj()
    return numpy.moveaxis(numpy.concatenate([moved, rest], -1), -1, axis)


@entry("real_transform")
def _real_transform(x: Any, axes: tuple[int, ...], norm: str, size: int) -> Any:
    return transform(mirrored(x, axes[0], size), axes, False, norm).real


# Order


def order_of(line: Any, descending: bool = False) -> list[int]:
    """A stable order by Python's sort; NaN counts as the largest."""

    def key(position: int) -> tuple[bool, float]:
        value = line[position]
        return (False, 0.0) if value != value else (True, -value)

    if descending:
        return sorted(range(len(line)), key=key)
    return sorted(range(len(line)), key=lambda position: (line[position] != line[position], line[position]))


@entry("argsort")
def _argsort(x: Any, axis: int, descending: bool) -> Any:
    return each_line(lambda line: order_of(line.tolist(), descending), x, axis)


@entry("ordered_values")
def _ordered_values(x: Any, axis: int, descending: bool) -> Any:
    return each_line(lambda line: [line[k] for k in order_of(line.tolist(), descending)], x, axis)


@entry("leading_indices")
def _leading_positions(x: Any, axis: int, count: int, descending: bool) -> Any:
    positions = each_line(lambda line: order_of(line.tolist(), descending)[:count], x, axis)
    return positions.astype(numpy.int64)


def mode_of(line: Any) -> tuple[Any, int]:
    """The most frequent value, the smallest of several, and where it is last."""
    counts = Counter(line.tolist())
    value = min(counts, key=lambda one: (-counts[one], one))
    return value, max(k for k, one in enumerate(line.tolist()) if one == value)


@entry("mode_index")
def _mode_position(x: Any, axis: int) -> Any:
    return each_line(lambda line: [mode_of(line)[1]], x, axis)


def median_index(line: Any, ignore: bool) -> int:
    """Where the lower median is in a stable order; a NaN wins unless NaN is ignored."""
    order = order_of(line.tolist())
    count = int(numpy.isnan(line).sum()) if line.dtype.kind == "f" else 0
    if count and not ignore:
        return order[len(line) - count]
    return order[max((len(line) - 1 - count) // 2, 0)]


@entry("median_index")
def _median_position(x: Any, axis: int, ignore: bool) -> Any:
    return each_line(lambda line: [median_index(line, ignore)], x, axis)


@entry("whole_median")
def _whole_median(x: Any, ignore: bool) -> Any:
    return x.reshape(-1)[median_index(x.reshape(-1), ignore)]


@entry("quantiles")
def _quantiles(x: Any, q: Any, how: str, ignore: bool) -> Any:
    found = (numpy.nanquantile if ignore else numpy.quantile)(x, q, -1, method=how)
    return numpy.moveaxis(found, 0, -1)


def running_index(line: Any, largest: bool) -> list[int]:
    """For each prefix, the last place of its extreme element."""
    found, best = [], 0
    for k, value in enumerate(line):
        if value >= line[best] if largest else value <= line[best]:
            best = k
        found.append(best)
    return found


@entry("cummax_indices")
def _cummax_positions(x: Any, axis: int) -> Any:
    return each_line(lambda line: running_index(line, True), x, axis) if x.ndim else numpy.array(0)


@entry("cummin_indices")
def _cummin_places(x: Any, axis: int) -> Any:
    return each_line(lambda line: running_index(line, False), x, axis) if x.ndim else numpy.array(0)


@entry("select_extreme")
def _select_extreme(x: Any, axis: int, keep: bool, largest: bool) -> Any:
    found = each_line(lambda line: sorted(line.tolist())[-1 if largest else 0], x, axis)
    return numpy.expand_dims(found, axis) if keep else found


@entry("order_of_keys")
def _order_of_keys(keys: Any) -> Any:
    bits = max(len(keys) - 1, 0).bit_length()
    numbers = [int(key) >> bits for key in keys]
    return numpy.array(sorted(range(len(keys)), key=lambda k: (numbers[k], k)), numpy.int64)


def position_in(line: Any, value: float, right: bool) -> int:
    """How many elements stand before a value; NaN counts as the largest."""
    if math.isnan(value):
        return len(line) if right else sum(not math.isnan(one) for one in line)
    return sum(one <= value if right else one < value for one in line)


@entry("searchsorted_indices")
def _sorted_indices(rows: Any, values: Any, right: bool) -> Any:
    found = [[position_in(row, value, right) for value in line] for row, line in zip(rows, values)]
    return numpy.array(found, numpy.int64)


@entry("searchsorted")
def _searchsorted(rows: Any, values: Any, right: bool, dtype: Any) -> Any:
    lines = numpy.broadcast_to(rows, (*values.shape[:-1], rows.shape[-1]))
    return _sorted_indices(lines, values, right).astype(dtype.numpy)


@entry("isin_mask")
def _members(x: Any, tests: Any, invert: bool) -> Any:
    known = set(tests.reshape(-1).tolist())
    return numpy.vectorize(lambda value: (value in known) != invert, otypes=[bool])(x)


# Counts


def bin_counts(x: Any, bins: int, low: float, high: float) -> Any:
    """How many elements lie in each of equal bins, of which the last includes its end."""
    edges = [low + (high - low) * k / bins for k in range(bins)] + [high]
    found = numpy.zeros(bins)
    for value in x.reshape(-1).tolist():
        for k in range(bins):
            last = k == bins - 1
            if edges[k] <= value and (value <= edges[k + 1] if last else value < edges[k + 1]):
                found[k] += 1
    return found


@entry("bin_counts")
def _bin_counts(x: Any, low: Any, high: Any, bins: int) -> Any:
    return bin_counts(x, bins, float(low), float(high)).astype(x.dtype)


@entry("grid_counts")
def _grid_counts(points: Any, weights: Any, *edges: Any) -> Any:
    return numpy.histogramdd(points, list(edges), weights=weights)[0]


@entry("bit_parity")
def _bit_parity(x: Any, axes: tuple[int, ...]) -> Any:
    wide = x if x.dtype.kind == "f" else x.astype(numpy.int64)
    bits = numpy.frombuffer(wide.tobytes(), numpy.uint64).reshape(x.shape)
    found = numpy.zeros([size for axis, size in enumerate(x.shape) if axis not in axes], numpy.uint64)
    for at in numpy.ndindex(*x.shape):
        kept = tuple(position for axis, position in enumerate(at) if axis not in axes)
        found[kept] = int(found[kept]) ^ int(bits[at])
    return found


@entry_identity("checked_weights")
def _checked_weights(found: Any, weights: Any, needed: int) -> Found:
    yield found, weights.astype(float)


@entry_identity("covering")
def _covering(found: Any, total: Any) -> Found:
    yield found, total


# Element by element


@entry("selu")
def _selu(x: Any) -> Any:
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return scale * numpy.where(x > 0, x, alpha * numpy.expm1(x))


@entry("gelu")
def _gelu(x: Any, approximate: str) -> Any:
    if approximate == "none":
        return x * scipy.special.ndtr(x)
    return 0.5 * x * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# New arrays


@entry("block_diag")
def _block_diag(*matrices: Any) -> Any:
    return scipy.linalg.block_diag(*matrices)


@entry("diag_embed")
def _diag_embed(x: Any, offset: int, first: int, second: int) -> Any:
    count = x.shape[-1]
    size = count + abs(offset)
    matrices = numpy.zeros((*x.shape[:-1], size, size), x.dtype)
    for k in range(count):
        matrices[..., k + max(-offset, 0), k + max(offset, 0)] = x[..., k]
    return numpy.moveaxis(matrices, (-2, -1), (first, second))


@entry("full")
def _full(value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return numpy.full(shape, value).astype(dtype.numpy)


@entry("zeros")
def _zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    return numpy.full(shape, 0, dtype.numpy)


@entry("ones")
def _ones(shape: tuple[int, ...], dtype: Any) -> Any:
    return numpy.full(shape, 1, dtype.numpy)


@entry("zeros_like")
def _zeros_like(x: Any, dtype: Any) -> Any:
    return numpy.full(x.shape, 0, dtype.numpy)


@entry("ones_like")
def _ones_like(x: Any, dtype: Any) -> Any:
    return numpy.full(x.shape, 1, dtype.numpy)


@entry("full_like")
def _full_like(x: Any, value: Any, dtype: Any) -> Any:
    return numpy.full(x.shape, value).astype(dtype.numpy)


@entry("arange")
def _arange(start: Any, step: Any, count: int, dtype: Any) -> Any:
    return numpy.array([start + k * step for k in range(count)]).astype(dtype.numpy)


@entry("linspace")
def _linspace(start: Any, end: Any, count: int, endpoint: bool, dtype: Any) -> Any:
    return numpy.linspace(start, end, count, endpoint).astype(dtype.numpy)


@entry("logspace")
def _logspace(start: Any, end: Any, base: Any, count: int, dtype: Any) -> Any:
    return numpy.power(base, numpy.linspace(start, end, count)).astype(dtype.numpy)


@entry("eye")
def _eye(rows: int, columns: int, offset: int, dtype: Any) -> Any:
    found = numpy.zeros((rows, columns), dtype.numpy)
    for row in range(rows):
        if 0 <= row + offset < columns:
            found[row, row + offset] = 1
    return found


@entry("iota")
def _iota(shape: tuple[int, ...]) -> Any:
    return numpy.arange(math.prod(shape)).reshape(shape)
