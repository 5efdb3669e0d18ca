"""Inverse trigonometric functions, in float64 computed with pairs.

Bounds in units in the last place: 0.51 (float32), 0.8 (float64).
"""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.control import Control
from twofold.compiler.lower.emitter import Operand
from twofold.compiler.lower.math import pairs, single
from twofold.compiler.lower.math.core import DOUBLE, INFINITY, NAN, horner, quotient, with_single
from twofold.compiler.lower.math.pairs import HALF_PI, Pair
from twofold.compiler.lower.math.tables import ASIN, ASIN_BELOW, ATAN
from twofold.compiler.lower.values import Val

_PI = (2 * HALF_PI[0], 2 * HALF_PI[1])
_QUARTER_PI = (HALF_PI[0] / 2, HALF_PI[1] / 2)


def _less(b: Control, whole: tuple[float, float], part: Pair) -> Pair:
    """whole - part."""
    high, low = pairs.two_sum(b, whole[0], b.neg(part[0]))
    return pairs.quick_sum(b, high, b.add(low, b.sub(whole[1], part[1])))


def _choose(b: Control, condition: Val, x: Pair, y: Pair) -> Pair:
    return b.select(condition, x[0], y[0]), b.select(condition, x[1], y[1])


def _atan_of_quotient(b: Control, low: Val, high: Val) -> Pair:
    """atan(low / high) for 0 <= low <= high, by atan(t) = pi/4 + atan((t - 1) / (t + 1)) above tan(pi/8)."""
    upper = b.cmp("gt", low, b.mul(high, 0.41421356237309503))
    zero = b.const(0.0, DOUBLE.dtype)
    above = _choose(b, upper, pairs.two_sum(b, low, b.neg(high)), (low, zero))
    below = _choose(b, upper, pairs.two_sum(b, low, high), (high, zero))
    t, rest = pairs.divide(b, above, below)
    square = b.mul(t, t)
    angle = pairs.quick_sum(b, t, b.fma(b.mul(square, t), horner(b, ATAN, square), rest))
    return _choose(b, upper, pairs.add(b, angle, _QUARTER_PI), angle)


@with_single(single.atan)
def atan(b: Control, x: Val) -> Val:
    """The inverse tangent."""
    a = b.abs(x)
    steep = b.cmp("gt", a, 1.0)
    one: Operand = b.const(1.0, DOUBLE.dtype)
    angle = _atan_of_quotient(b, b.select(steep, one, a), b.select(steep, a, one))
    angle = _choose(b, steep, _less(b, HALF_PI, angle), angle)
    return b.copysign(b.select(b.cmp("eq", a, INFINITY), HALF_PI[0], pairs.rounded(b, angle)), x)


@with_single(single.atan2)
def atan2(b: Control, y: Val, x: Val) -> Val:
    """The angle of the point (x, y), with the special cases of C99 annex F."""
    a, c = b.abs(y), b.abs(x)
    steep = b.cmp("gt", a, c)
    low, high = b.select(steep, c, a), b.select(steep, a, c)
    # 0 / 0 counts as 0, infinity / infinity as 1, finite / infinity as 0
    both, far = b.cmp("eq", low, INFINITY), b.cmp("eq", high, INFINITY)
    low = b.select(far, b.select(both, 1.0, b.mul(low, 0.0)), low)
    high = b.select(b.or_(far, b.cmp("eq", high, 0.0)), 1.0, high)
    # away from both ends of the range, where sums overflow and errors of products vanish
    scale = b.select(b.cmp("gt", high, 2.0**900), b.const(2.0**-60, DOUBLE.dtype), 1.0)
    scale = b.select(b.cmp("lt", high, 2.0**-300), 2.0**400, scale)
    angle = _atan_of_quotient(b, b.mul(low, scale), b.mul(high, scale))
    angle = _choose(b, steep, _less(b, HALF_PI, angle), angle)
    left = b.cmp("lt", b.bitcast(x, dtypes.int64), 0)
    angle = _choose(b, left, _less(b, _PI, angle), angle)
    result = b.copysign(pairs.rounded(b, angle), y)
    return b.select(b.or_(b.is_nan(x), b.is_nan(y)), NAN, result)


def _asin_parts(b: Control, a: Val) -> tuple[Pair, Val]:
    """(p, large): where a <= 1/2, p = asin(a), else p = asin(sqrt((1 - a) / 2)), half of the complement."""
    large = b.cmp("gt", a, 0.5)
    half = b.mul(b.sub(1.0, a), 0.5)
    zero = b.const(0.0, DOUBLE.dtype)
    square = b.select(large, half, b.mul(a, a))
    t, rest = _choose(b, large, pairs.square_root(b, (half, zero)), (a, zero))
    tail = b.mul(b.mul(square, t), quotient(b, ASIN, ASIN_BELOW, square))
    return pairs.quick_sum(b, t, b.add(tail, rest)), large


def _double(b: Control, x: Pair) -> Pair:
    return b.add(x[0], x[0]), b.add(x[1], x[1])


@with_single(single.asin)
def asin(b: Control, x: Val) -> Val:
    """The inverse sine."""
    p, large = _asin_parts(b, b.abs(x))
    outer = _less(b, HALF_PI, _double(b, p))
    return b.copysign(pairs.rounded(b, _choose(b, large, outer, p)), x)


@with_single(single.acos)
def acos(b: Control, x: Val) -> Val:
    """The inverse cosine."""
    p, large = _asin_parts(b, b.abs(x))
    twice = _double(b, p)
    outer = _choose(b, b.cmp("gt", x, 0.0), twice, _less(b, _PI, twice))
    inner = _less(b, HALF_PI, (b.copysign(p[0], x), b.select(b.cmp("lt", x, 0.0), b.neg(p[1]), p[1])))
    return pairs.rounded(b, _choose(b, large, outer, inner))
