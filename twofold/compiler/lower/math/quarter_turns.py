"""Reduction of angles by multiples of pi/2.

With three constants (W. Cody and W. Waite, "Software manual for the elementary functions", 1980) while the multiple
is small, else with the bits of 2/pi that matter (M. Payne and R. Hanek, "Radian reduction for trigonometric
functions", 1983), so for every float32 and float64.
"""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.control import Control
from twofold.compiler.lower.math import pairs
from twofold.compiler.lower.math.core import DOUBLE, INFINITY, NAN, PI, SINGLE
from twofold.compiler.lower.math.pairs import Pair
from twofold.compiler.lower.values import Val

# pi / 2 as a sum of three numbers of the format
_HALF_PI_SINGLE = tuple(map(float.fromhex, ("0x1.921fb6p+0", "-0x1.777a5cp-25", "-0x1.ee59dap-50")))
_HALF_PI_DOUBLE = tuple(
    map(float.fromhex, ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110"))
)
_TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
LARGEST_SINGLE = 2.0**15
LARGEST_DOUBLE = 2.0**30
# 2/pi, the point before the first digit
_DIGITS = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1921C"
    "FE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980F"
    "EF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D08"
    "5603",
    16,
)
_COUNT = 1168


def _words(count: int) -> tuple[int, ...]:
    """Entry i is floor(2**(8 i + 8) * 2/pi) modulo 2**32."""
    return tuple(_DIGITS >> (_COUNT - 8 * i - 8) & 0xFFFFFFFF for i in range(count))


def _near_single(b: Control, x: Val) -> tuple[Val, Val]:
    """(r, q) with x = q pi/2 + r and |r| <= pi/4, for moderate ``x``; q modulo 2**31 as an integer."""
    shifted = b.fma(x, _TWO_OVER_PI, SINGLE.round_magic)
    whole = b.sub(shifted, SINGLE.round_magic)
    r = x
    for part in _HALF_PI_SINGLE:
        r = b.fma(whole, -part, r)
    return r, b.bitcast(shifted, SINGLE.bits)


def _load_bits(b: Control, table: Val, position: Val) -> Val:
    index = b.cast(position, dtypes.int64)
    if index.lanes == 1:
        return b.load(table, index, dtypes.uint32)
    return b.load_indices(table, index, dtypes.uint32)


def _far_single(b: Control, x: Val) -> tuple[Val, Val]:
    """(r in float64, q) as above for any float32 above 1, by a product with the bits of 2/pi that matter."""
    bits = b.bitcast(x, dtypes.uint32)
    table = b.table(_words(24), dtypes.uint32)
    first = b.and_(b.shr(bits, 26), 15)
    significand = b.or_(b.and_(bits, 0x7FFFFF), 0x800000)
    significand = b.shl(significand, b.and_(b.shr(bits, 23), 7))
    wide = b.cast(significand, dtypes.uint64)
    words = [b.cast(_load_bits(b, table, b.add(first, k)), dtypes.uint64) for k in (0, 4, 8)]
    # a fixed-point number with two bits before the point; what is above is a multiple of 2 pi
    top, middle, low = (b.mul(wide, word) for word in words)
    product = b.add(b.add(b.shl(top, 32), middle), b.shr(low, 32))
    q = b.shr(b.add(product, 1 << 61), 62)
    rest = b.bitcast(b.sub(product, b.shl(q, 62)), dtypes.int64)
    r = b.mul(b.cast(rest, dtypes.float64), PI * 2.0**-63)
    r = b.select(b.cmp("eq", b.abs(x), INFINITY), NAN, r)
    negative = b.cmp("lt", x, 0.0)
    quarter = b.cast(q, dtypes.int32)
    return b.select(negative, b.neg(r), r), b.select(negative, b.neg(quarter), quarter)


def reduce_single(b: Control, x: Val) -> tuple[Val, Val]:
    """(r, q) with x = q pi/2 + r and |r| <= pi/4, for every float32 ``x``; q modulo 4 as an int32."""
    r, q = _near_single(b, x)
    far = b.cmp("gt", b.abs(x), LARGEST_SINGLE)
    branch = b.if_(b.any_lane(far))
    with branch:
        far_r, far_q = _far_single(b, x)
        branch.give([b.select(far, b.cast(far_r, dtypes.float32), r), b.select(far, far_q, q)])
    with branch.else_():
        branch.give([r, q])
    return branch.results[0], branch.results[1]


def reduce_single_in_double(b: Control, x: Val) -> tuple[Val, Val]:
    """(r in float64, q) as of ``reduce_single``, ``r`` to about 46 bits, of moderate ``x``; q as an int64."""
    wide = b.cast(x, dtypes.float64)
    shifted = b.fma(wide, _TWO_OVER_PI, DOUBLE.round_magic)
    whole = b.neg(b.sub(shifted, DOUBLE.round_magic))
    r = b.fma(whole, _HALF_PI_DOUBLE[1], b.fma(whole, _HALF_PI_DOUBLE[0], wide))
    q = b.bitcast(shifted, DOUBLE.bits)
    far = b.cmp("gt", b.abs(x), LARGEST_DOUBLE)
    branch = b.if_(b.any_lane(far))
    with branch:
        far_r, far_q = _far_single(b, x)
        branch.give([b.select(far, far_r, r), b.select(far, b.cast(far_q, dtypes.int64), q)])
    with branch.else_():
        branch.give([r, q])
    return branch.results[0], branch.results[1]


def _near_double(b: Control, x: Val) -> tuple[Pair, Val]:
    shifted = b.fma(x, _TWO_OVER_PI, DOUBLE.round_magic)
    whole = b.neg(b.sub(shifted, DOUBLE.round_magic))
    first, second, third = _HALF_PI_DOUBLE
    product, error = pairs.two_product(b, whole, first)
    # the two nearly cancel, so their sum is exact
    high, low = pairs.two_sum(b, b.add(x, product), error)
    product, error = pairs.two_product(b, whole, second)
    r = pairs.add(b, (high, low), (product, b.fma(whole, third, error)))
    return r, b.bitcast(shifted, DOUBLE.bits)


def _columns(b: Control, x: Val) -> list[Val]:
    """|x| * 2/pi * 2**126 modulo 2**128 as columns of 32 bits, lowest first, with carries still in them."""
    bits = b.bitcast(x, dtypes.uint64)
    table = b.table(_words(145), dtypes.uint32)
    # |x| = M 2**e with e - 2 = 8 g + h, g >= -3, 0 <= h < 8; the words are multiplied by M 2**h, below 2**60
    shift = b.sub(b.and_(b.shr(bits, 52), 0x7FF), 1075 + 2 - 24)
    first = b.shr(shift, 3)
    significand = b.or_(b.and_(bits, (1 << 52) - 1), 1 << 52)
    significand = b.shl(significand, b.and_(shift, 7))
    halves = [b.and_(significand, 0xFFFFFFFF), b.shr(significand, 32)]
    words = {j: b.cast(_load_bits(b, table, b.add(first, 12 - 4 * j)), dtypes.uint64) for j in range(-2, 4)}
    columns = [b.const(0, dtypes.uint64, bits.lanes)] * 4
    for j, word in words.items():
        for position, half in enumerate(halves):
            product, at = b.mul(half, word), position + j
            if -1 <= at < 3:
                columns[at + 1] = b.add(columns[at + 1], b.shr(product, 32))
            if 0 <= at < 4:
                columns[at] = b.add(columns[at], b.and_(product, 0xFFFFFFFF))
    return columns


def _far_double(b: Control, x: Val) -> tuple[Pair, Val]:
    """As ``_near_double`` for |x| above 2**30; infinities and NaN give NaN."""
    columns = _columns(b, x)
    for k in range(3):
        columns[k + 1] = b.add(columns[k + 1], b.shr(columns[k], 32))
    high = b.or_(b.shl(columns[3], 32), b.and_(columns[2], 0xFFFFFFFF))
    low = b.or_(b.shl(columns[1], 32), b.and_(columns[0], 0xFFFFFFFF))
    q = b.shr(b.add(high, 1 << 61), 62)
    rest = b.bitcast(b.sub(high, b.shl(q, 62)), dtypes.int64)
    upper = b.shl(b.shr(rest, 20), 20)
    parts = [b.cast(upper, dtypes.float64), b.cast(b.sub(rest, upper), dtypes.float64)]
    tail = b.mul(b.cast(low, dtypes.float64), 2.0**-64)
    turned = pairs.add(b, pairs.two_sum(b, parts[0], parts[1]), (tail, b.sub(tail, tail)))
    r = pairs.multiply(b, turned, (PI * 2.0**-63, _HALF_PI_DOUBLE[1] * 2.0**-62))
    finite = b.cmp("lt", b.abs(x), INFINITY)
    negative = b.cmp("lt", x, 0.0)
    r = (b.select(finite, r[0], NAN), b.select(finite, r[1], 0.0))
    quarter = b.bitcast(q, dtypes.int64)
    signed = (b.select(negative, b.neg(r[0]), r[0]), b.select(negative, b.neg(r[1]), r[1]))
    return signed, b.select(negative, b.neg(quarter), quarter)


def reduce_double(b: Control, x: Val) -> tuple[Pair, Val]:
    """(r, q) with x = q pi/2 + r and |r| <= pi/4, for every float64 ``x``; q modulo 4 as an int64."""
    near, q = _near_double(b, x)
    far = b.not_(b.cmp("le", b.abs(x), LARGEST_DOUBLE))
    branch = b.if_(b.any_lane(far))
    with branch:
        found, far_q = _far_double(b, b.select(far, x, 2.0**40))
        both = [b.select(far, found[k], near[k]) for k in (0, 1)]
        branch.give([*both, b.select(far, far_q, q)])
    with branch.else_():
        branch.give([*near, q])
    high, low, q = branch.results
    return (high, low), q
