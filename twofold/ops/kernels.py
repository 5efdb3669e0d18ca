"""Pieces of kernels that custom operations share: runs of sixteen lanes, index checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.dtypes import DType, int64
from twofold.ir.sizes import maximum

LANES = 16
_LOWEST = -(2**31)


def grain(enough: int, size: int) -> int:
    """How many work items of a ``size`` are ``enough`` for a thread, at least one; over symbols nothing is decided.

    >>> grain(4096, 100), grain(4096, 5000), grain(4096, 0)
    (40, 1, 4096)
    """
    found: int = maximum(1, enough // maximum(size, 1))
    return found


def index_error_code(index: int) -> int:
    """The kernel's return code for an index outside its axis: ``1 + index + 2**31``, clamped to 32 bits.

    >>> index_of_error_code(index_error_code(-7))
    -7
    """
    return 1 + min(max(index, _LOWEST), -_LOWEST - 1) - _LOWEST


def index_of_error_code(code: int) -> int:
    """The offending index (or the nearest 32-bit integer) from a kernel's return code."""
    return code - 1 + _LOWEST


def run(b: Any, count: Any, body: Callable[[Any, int, Any], None]) -> None:
    """Emit ``body(first element, lanes, mask)`` over ``count`` elements, the last few masked."""
    whole = b.and_(count, -LANES)
    with b.loop(0, whole, LANES) as j:
        body(j, LANES, None)
    rest = b.sub(count, whole)
    with b.if_(b.cmp("gt", rest, 0)):
        body(whole, LANES, b.lane_mask(rest))


def copy(b: Any, dtype: DType, target: Any, target_at: Any, source: Any, source_at: Any, count: Any) -> None:
    """Emit a copy of ``count`` adjacent elements."""

    def body(j: Any, lanes: int, mask: Any) -> None:
        value = b.load(source, b.add(source_at, j), dtype, lanes, mask=mask)
        b.store(target, b.add(target_at, j), value, mask=mask)

    run(b, count, body)


def fill(b: Any, dtype: DType, target: Any, target_at: Any, value: Any, count: Any) -> None:
    """Emit ``count`` adjacent stores of one scalar."""
    lanes_value = b.splat(value)
    run(b, count, lambda j, lanes, mask: b.store(target, b.add(target_at, j), lanes_value, mask=mask))


def fill_large(
    b: Any, dtype: DType, target: Any, target_at: Any, value: Any, count: Any, streams: Any
) -> None:
    """The same, where ``streams`` is true past the caches: vectors then begin where the memory's do."""
    lanes_value = b.splat(value)
    ahead = b.sub(b.begin_of_vector(target, b.add(target_at, LANES - 1), dtype), target_at)
    first = b.minimum(ahead, count)
    whole = b.add(first, b.and_(b.sub(count, first), -LANES))
    with b.if_(b.cmp("gt", first, 0)):
        b.store(target, target_at, lanes_value, mask=b.lane_mask(first))
    with b.loop(first, whole, LANES) as j:
        branch = b.if_(streams)
        with branch:
            b.store(target, b.add(target_at, j), lanes_value, nontemporal=True)
        with branch.else_():
            b.store(target, b.add(target_at, j), lanes_value)
    with b.if_(b.cmp("lt", whole, count)):
        b.store(target, b.add(target_at, whole), lanes_value, mask=b.lane_mask(b.sub(count, whole)))


def fail(b: Any, index: Any) -> None:
    """Emit the end of the kernel with the code of ``index_error_code`` (use inside ``if_``)."""
    low = b.const(_LOWEST, int64)
    clamped = b.minimum(b.maximum(index, low), b.const(-_LOWEST - 1, int64))
    b.fail(b.add(b.sub(clamped, low), 1))


def checked_index(b: Any, index: Any, size: Any, wraps: bool = True) -> Any:
    """Emit an index counted from the front; outside its axis the kernel fails, without ``wraps`` below 0, too."""
    outside = b.or_(b.cmp("lt", index, b.neg(size) if wraps else 0), b.cmp("ge", index, size))
    with b.if_(outside):
        fail(b, index)
    return b.select(b.cmp("lt", index, 0), b.add(index, size), index) if wraps else index


def checked_indices(b: Any, indices: Any, size: Any, mask: Any, wraps: bool = True) -> Any:
    """Emit sixteen indices as `checked_index` does one; lanes outside ``mask``, if there is one, hold anything."""
    outside = b.or_(b.cmp("lt", indices, b.neg(size) if wraps else 0), b.cmp("ge", indices, size))
    if mask is not None:
        outside = b.and_(outside, mask)
    with b.if_(b.any_lane(outside)):
        fail(b, b.extract(indices, b.trailing_zeros(b.lane_bits(outside))))
    return b.select(b.cmp("lt", indices, 0), b.add(indices, size), indices) if wraps else indices


def split(b: Any, number: Any, parts: Any) -> tuple[Any, Any]:
    """Emit quotient and rest of indices that are not negative."""
    quotient = b.idiv(number, parts)
    return quotient, b.sub(number, b.mul(quotient, parts))


def clamp(b: Any, value: Any, low: Any, high: Any) -> Any:
    """Emit ``value`` limited to ``low … high`` (integers; ``low`` wins when they cross)."""
    return b.maximum(b.minimum(value, high), low)
