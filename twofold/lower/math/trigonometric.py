"""Trigonometric functions and their inverses.

The argument is reduced by multiples of pi/2: with three constants (Cody and Waite) while the multiple is
small, else with the bits of 2/pi that matter (Payne and Hanek, 1983), so sin, cos and tan hold for every
float32; float64 calls the C library beyond 2**30.

Bounds in units in the last place: sin and cos 1.6 (both formats), the others 0.51 (float32); the others call
the C library (float64).
"""

from __future__ import annotations

from twofold import dtypes
from twofold.lower.control import Control
from twofold.lower.emitter import Operand
from twofold.lower.math.core import (
    INFINITY,
    NAN,
    PI,
    SINGLE,
    Format,
    format_of,
    function,
    horner,
    single_in_double,
)
from twofold.lower.values import Val

# minimax fits of (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4 in r**2 on |r| <= pi / 4
_SIN_SINGLE = (-0.16666654, 0.008332108, -0.00019508234)
_COS_SINGLE = (0.041666646, -0.0013887298, 2.4430088e-05)
_SIN_DOUBLE = (
    -0.16666666666666627,
    0.008333333333321072,
    -0.0001984126982870156,
    2.7557313299718705e-06,
    -2.505069563801061e-08,
    1.5893121539421225e-10,
)
_COS_DOUBLE = (
    0.04166666666666658,
    -0.0013888888888871024,
    2.48015872875881e-05,
    -2.755731381496605e-07,
    2.087565133301614e-09,
    -1.135597108931456e-11,
)
# minimax fits of (atan(t) - t) / t**3 on |t| <= 0.4143 and (asin(t) - t) / t**3 on |t| <= 0.5, in t**2
_ATAN = (
    -0.3333333333333015,
    0.19999999999087967,
    -0.14285714195127944,
    0.1111110664667165,
    -0.09090782227119304,
    0.07690065431231319,
    -0.06641094530240646,
    0.05692392242949307,
    -0.04358654292323471,
    0.021254271274983822,
)
_ASIN = (
    0.16666666666442312,
    0.07500000042830846,
    0.044642828892826024,
    0.030382863811139367,
    0.022355055938842492,
    0.01754803232154081,
    0.01255724195533753,
    0.01791291254176296,
    -0.007305838283179865,
    0.03151033294088143,
)

# pi / 2 as a sum of three numbers of the format
_HALF_PI_SINGLE = tuple(map(float.fromhex, ("0x1.921fb6p+0", "-0x1.777a5cp-25", "-0x1.ee59dap-50")))
_HALF_PI_DOUBLE = tuple(
    map(float.fromhex, ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110"))
)
_TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
_LARGEST_SINGLE = 2.0**15
_LARGEST_DOUBLE = 2.0**30
# the leading bits of 2/pi: entry i is floor(2**(8 i + 8) * 2/pi) modulo 2**32
_TWO_OVER_PI_BITS = (
    0xA2, 0xA2F9, 0xA2F983, 0xA2F9836E, 0xF9836E4E, 0x836E4E44, 0x6E4E4415, 0x4E441529,
    0x441529FC, 0x1529FC27, 0x29FC2757, 0xFC2757D1, 0x2757D1F5, 0x57D1F534, 0xD1F534DD, 0xF534DDC0,
    0x34DDC0DB, 0xDDC0DB62, 0xC0DB6295, 0xDB629599, 0x6295993C, 0x95993C43, 0x993C4390, 0x3C439041,
)  # fmt: skip


def _reduce_near(b: Control, fmt: Format, x: Val) -> tuple[Val, Val]:
    """(r, q) with x = q pi/2 + r and |r| <= pi/4, for moderate ``x``; q modulo 2**31 as an integer."""
    shifted = b.fma(x, _TWO_OVER_PI, fmt.round_magic)
    whole = b.sub(shifted, fmt.round_magic)
    r = x
    for part in _HALF_PI_SINGLE if fmt is SINGLE else _HALF_PI_DOUBLE:
        r = b.fma(whole, -part, r)
    return r, b.bitcast(shifted, fmt.bits)


def _load_bits(b: Control, table: Val, position: Val) -> Val:
    index = b.cast(position, dtypes.int64)
    if index.lanes == 1:
        return b.load(table, index, dtypes.uint32)
    return b.load_indices(table, index, dtypes.uint32)


def _reduce_far(b: Control, x: Val) -> tuple[Val, Val]:
    """(r in float64, q) as above for any float32 above 1, by a product with the bits of 2/pi that matter."""
    bits = b.bitcast(x, dtypes.uint32)
    table = b.table(_TWO_OVER_PI_BITS, dtypes.uint32)
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


def _reduce_single(b: Control, x: Val) -> tuple[Val, Val]:
    r, q = _reduce_near(b, SINGLE, x)
    far = b.cmp("gt", b.abs(x), _LARGEST_SINGLE)
    branch = b.if_(b.any_lane(far))
    with branch:
        far_r, far_q = _reduce_far(b, x)
        branch.give([b.select(far, b.cast(far_r, dtypes.float32), r), b.select(far, far_q, q)])
    with branch.else_():
        branch.give([r, q])
    return branch.results[0], branch.results[1]


def _sine(b: Control, fmt: Format, r: Val, q: Val) -> Val:
    """sin(q pi/2 + r) for reduced ``r``."""
    square = b.mul(r, r)
    odd = horner(b, _SIN_SINGLE if fmt is SINGLE else _SIN_DOUBLE, square)
    odd = b.fma(b.mul(square, r), odd, r)
    even = horner(b, _COS_SINGLE if fmt is SINGLE else _COS_DOUBLE, square)
    # 1 - r**2 / 2 is rounded; what was lost comes back with the small terms
    half = b.mul(square, 0.5)
    head = b.sub(1.0, half)
    lost = b.sub(b.sub(1.0, head), half)
    even = b.add(head, b.fma(b.mul(square, square), even, lost))
    result = b.select(b.cmp("ne", b.and_(q, 1), 0), even, odd)
    return b.select(b.cmp("ne", b.and_(q, 2), 0), b.neg(result), result)


def _sine_double(b: Control, x: Val, turn: int) -> Val:
    r, q = _reduce_near(b, format_of(x), x)
    near = _sine(b, format_of(x), r, b.add(q, turn))
    far = b.cmp("gt", b.abs(x), _LARGEST_DOUBLE)
    branch = b.if_(b.any_lane(far))
    with branch:
        branch.give([b.select(far, b.call_library("cos" if turn else "sin", x), near)])
    with branch.else_():
        branch.give([near])
    return branch.results[0]


@function
def sin(b: Control, x: Val) -> Val:
    """The sine."""
    if format_of(x) is not SINGLE:
        result = _sine_double(b, x, 0)
    else:
        result = _sine(b, SINGLE, *_reduce_single(b, x))
    return b.select(b.cmp("eq", x, 0.0), x, result)


@function
def cos(b: Control, x: Val) -> Val:
    """The cosine."""
    if format_of(x) is not SINGLE:
        return _sine_double(b, x, 1)
    r, q = _reduce_single(b, x)
    return _sine(b, SINGLE, r, b.add(q, 1))


@function
def tan(b: Control, x: Val) -> Val:
    """The tangent."""
    if format_of(x) is not SINGLE:
        return b.call_library("tan", x)
    far = b.cmp("gt", b.abs(x), _LARGEST_DOUBLE)
    branch = b.if_(b.any_lane(far))
    near_r, wide_q = _reduce_near(b, format_of(b.cast(x, dtypes.float64)), b.cast(x, dtypes.float64))
    near_q = b.cast(wide_q, dtypes.int32)
    with branch:
        far_r, far_q = _reduce_far(b, x)
        branch.give([b.select(far, far_r, near_r), b.select(far, far_q, near_q)])
    with branch.else_():
        branch.give([near_r, near_q])
    r, q = branch.results
    square = b.mul(r, r)
    sine = b.fma(b.mul(square, r), horner(b, _SIN_DOUBLE, square), r)
    cosine = b.fma(b.mul(square, square), horner(b, _COS_DOUBLE, square), b.fma(square, -0.5, 1.0))
    odd = b.cmp("ne", b.and_(q, 1), 0)
    quotient = b.div(b.select(odd, cosine, sine), b.select(odd, b.neg(sine), cosine))
    return b.select(b.cmp("eq", x, 0.0), x, b.cast(quotient, dtypes.float32))


def _atan_of_quotient(b: Control, low: Val, high: Val) -> Val:
    """atan(low / high) for 0 <= low <= high, by atan(t) = pi/4 + atan((t - 1) / (t + 1)) above tan(pi/8)."""
    upper = b.cmp("gt", low, b.mul(high, 0.41421356237309503))
    t = b.div(b.select(upper, b.sub(low, high), low), b.select(upper, b.add(low, high), high))
    square = b.mul(t, t)
    angle = b.fma(b.mul(square, t), horner(b, _ATAN, square), t)
    return b.select(upper, b.add(angle, PI / 4), angle)


@single_in_double("atan")
def _atan(b: Control, x: Val) -> Val:
    a = b.abs(x)
    steep = b.cmp("gt", a, 1.0)
    one: Operand = b.const(1.0, dtypes.float64)
    angle = _atan_of_quotient(b, b.select(steep, one, a), b.select(steep, a, one))
    angle = b.select(steep, b.sub(PI / 2, angle), angle)
    return b.copysign(b.select(b.cmp("eq", a, INFINITY), PI / 2, angle), x)


@single_in_double("atan2")
def _atan2(b: Control, y: Val, x: Val) -> Val:
    """The angle of the point (x, y), with the special cases of C99 annex F."""
    a, c = b.abs(y), b.abs(x)
    steep = b.cmp("gt", a, c)
    low, high = b.select(steep, c, a), b.select(steep, a, c)
    # 0 / 0 counts as 0, infinity / infinity as 1, finite / infinity as 0
    both = b.cmp("eq", low, INFINITY)
    far = b.cmp("eq", high, INFINITY)
    low = b.select(far, b.select(both, 1.0, b.mul(low, 0.0)), low)
    high = b.select(b.or_(far, b.cmp("eq", high, 0.0)), 1.0, high)
    angle = _atan_of_quotient(b, low, high)
    angle = b.select(steep, b.sub(PI / 2, angle), angle)
    left = b.cmp("lt", b.bitcast(x, dtypes.int64), 0)
    angle = b.copysign(b.select(left, b.sub(PI, angle), angle), y)
    return b.select(b.or_(b.is_nan(x), b.is_nan(y)), NAN, angle)


def _asin_parts(b: Control, a: Val) -> tuple[Val, Val]:
    """(p, large): where a <= 1/2, p = asin(a), else p = asin(sqrt((1 - a) / 2)), half of the complement."""
    large = b.cmp("gt", a, 0.5)
    square = b.select(large, b.mul(b.sub(1.0, a), 0.5), b.mul(a, a))
    t = b.select(large, b.sqrt(square), a)
    return b.fma(b.mul(square, t), horner(b, _ASIN, square), t), large


@single_in_double("asin")
def _asin(b: Control, x: Val) -> Val:
    p, large = _asin_parts(b, b.abs(x))
    return b.copysign(b.select(large, b.fma(p, -2.0, PI / 2), p), x)


@single_in_double("acos")
def _acos(b: Control, x: Val) -> Val:
    p, large = _asin_parts(b, b.abs(x))
    positive = b.cmp("gt", x, 0.0)
    outer = b.select(positive, b.add(p, p), b.fma(p, -2.0, PI))
    return b.select(large, outer, b.sub(PI / 2, b.copysign(p, x)))
