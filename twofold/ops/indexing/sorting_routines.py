"""Orders of the elements along the last axis of NumPy arrays: stable, NaN as the largest, at the speed of ``sort``.

NumPy's fast sorts are not stable, and what is stable is ten times slower. So elements become unsigned integers of the
same order, with the position below them where there is room: no two are equal, and any sort of them is stable.
"""

from __future__ import annotations

from typing import Any

import numpy

from twofold.ops.host_threads import over_rows

Array = Any

_POSITIONS = 32  # bits of a position
_NANOSECONDS = {"sort": 10, "argsort": 40, "partition": 3}
_PARTS = 64  # of a long row
_LONG = 8192  # elements
_FEW = 256  # elements of a row for each one that is wanted


def _rows(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1])


def _unsigned(x: Array) -> Array:
    """Unsigned integers in the order of the elements: both zeros equal, all NaNs equal and the largest."""
    size = 8 * x.dtype.itemsize
    unsigned = numpy.dtype(f"u{x.dtype.itemsize}")
    if x.dtype.kind in "bu":
        return x.view(numpy.uint8) if x.dtype.kind == "b" else x
    sign = unsigned.type(1 << (size - 1))
    if x.dtype.kind == "i":
        return x.view(unsigned) ^ sign
    number = x + x.dtype.type(0)  # of -0.0 makes 0.0
    missing = numpy.isnan(number)
    if missing.any():
        number[missing] = numpy.nan
    bits = number.view(f"i{x.dtype.itemsize}")
    return bits.view(unsigned) ^ ((bits >> (size - 1)).view(unsigned) | sign)


def _positions_of_packed(keys: Array) -> Array:
    """The order of keys below 2**32, by a sort of keys with their positions."""
    packed = keys.astype(numpy.uint64)
    packed <<= numpy.uint64(_POSITIONS)
    packed |= numpy.arange(keys.shape[-1], dtype=numpy.uint64)
    packed.sort(-1)
    packed &= numpy.uint64((1 << _POSITIONS) - 1)
    return packed.view(numpy.int64)


def _wide_order(keys: Array) -> Array:
    """The order of 64-bit keys: equal ones, which any sort may exchange, are put in order by a second one."""
    order = numpy.argsort(keys, -1)
    ordered = numpy.take_along_axis(keys, order, -1)
    differs = ordered[..., 1:] != ordered[..., :-1]
    if differs.all():
        return order
    packed = numpy.zeros(keys.shape, numpy.uint64)
    numpy.cumsum(differs, -1, out=packed[..., 1:])
    packed <<= numpy.uint64(_POSITIONS)
    packed |= order.astype(numpy.uint64)
    packed.sort(-1)
    packed &= numpy.uint64((1 << _POSITIONS) - 1)
    return packed.view(numpy.int64)


def _order(x: Array, descending: bool) -> Array:
    if x.dtype == numpy.float64 and not numpy.isnan(x.max()):
        return _wide_order(-x if descending else x)
    keys = _unsigned(x)
    if descending:
        keys = ~keys
    if keys.dtype.itemsize <= 2 or x.shape[-1] >> _POSITIONS:
        return numpy.argsort(keys, -1, kind="stable").astype(numpy.int64, copy=False)
    if keys.dtype.itemsize == 4:
        return _positions_of_packed(keys)
    low, high = keys.min(), keys.max()
    return _positions_of_packed(keys - low) if int(high) - int(low) < 1 << _POSITIONS else _wide_order(keys)


def order(x: Array, descending: bool = False) -> Array:
    """The positions of the elements in order along the last axis; equal elements keep theirs."""
    if not x.size:
        return numpy.zeros(x.shape, numpy.int64)
    rows = _rows(numpy.ascontiguousarray(x))
    found = over_rows(lambda part: _order(part, descending), [rows], _NANOSECONDS["argsort"] * x.size)
    return found.reshape(x.shape)


def _ordered(x: Array, descending: bool) -> Array:
    found = numpy.sort(x, -1)
    if descending:
        found = found[..., ::-1]
    if x.dtype.kind == "f":
        for alike in (lambda array: array == 0, numpy.isnan):
            _keep_order(x, found, alike)
    return found


def _keep_order(x: Array, found: Array, alike: Any) -> None:
    """Put elements that are ``alike``, but not in their bits, in the order that they came in."""
    given = x[alike(x)]
    if given.size and (given.view(f"u{x.dtype.itemsize}") != given[:1].view(f"u{x.dtype.itemsize}")).any():
        # each row has as many of them before and after
        found[alike(found)] = given


def ordered(x: Array, descending: bool = False) -> Array:
    """The elements in order along the last axis, with the bits of ``take_along_axis(x, order(x))``."""
    if not x.size:
        return x.copy()
    rows = _rows(numpy.ascontiguousarray(x))
    found = over_rows(lambda part: _ordered(part, descending), [rows], _NANOSECONDS["sort"] * x.size)
    return found.reshape(x.shape)


def _last(x: Array, count: int, descending: bool) -> Array:
    """The last of the first ``count`` elements of each row, by a column."""
    at = x.shape[-1] - count if descending else count - 1
    return numpy.partition(x, at, -1)[..., at : at + 1]


def _first_of_long(x: Array, count: int, descending: bool) -> Array:
    """As ``_first``: of a long row only what the first element of each of its columns leaves possible."""
    size = x.shape[-1]
    parts = x[:, : size - size % _PARTS].reshape(len(x), _PARTS, -1)
    bound = _last(parts.max(1) if descending else parts.min(1), count, descending)
    found = []
    for row, limit in zip(x, bound, strict=True):
        possible = numpy.flatnonzero(row >= limit if descending else row <= limit)
        if possible.size <= _LONG // _FEW * count:
            found.append(possible[_order(row[possible], descending)[:count]])
        else:
            found.append(_divided(row[None], count, descending)[0])
    return numpy.stack(found)


def _divided(x: Array, count: int, descending: bool) -> Array:
    """As ``_first``: what lies before the last of those wanted, and as many of its equals as are missing."""
    last = _last(x, count, descending)
    chosen = x >= last if descending else x <= last
    surplus = numpy.count_nonzero(chosen, -1) - count
    for row in numpy.flatnonzero(surplus):
        equal = numpy.flatnonzero(x[row] == last[row])
        chosen[row, equal[len(equal) - surplus[row] :]] = False
    positions = numpy.flatnonzero(chosen).reshape(len(x), count) % x.shape[-1]
    kept = numpy.take_along_axis(x, positions, -1)
    return numpy.take_along_axis(positions, _order(kept, descending), -1)


def _first(x: Array, count: int, descending: bool) -> Array:
    """As ``first`` of rows."""
    if x.dtype.kind == "b" or (x.dtype.kind == "f" and numpy.isnan(x.max())):
        x = _unsigned(x)
    is_long = x.shape[-1] >= max(_LONG, _FEW * count)
    return (_first_of_long if is_long else _divided)(x, count, descending)


def first(x: Array, count: int, descending: bool = False) -> Array:
    """The first ``count`` positions of ``order``."""
    if not count or not x.size:
        return numpy.zeros((*x.shape[:-1], count), numpy.int64)
    if 4 * count >= x.shape[-1]:
        return order(x, descending)[..., :count]
    rows = _rows(numpy.ascontiguousarray(x))
    function = lambda part: _first(part, count, descending)
    return over_rows(function, [rows], _NANOSECONDS["partition"] * x.size).reshape(*x.shape[:-1], count)
