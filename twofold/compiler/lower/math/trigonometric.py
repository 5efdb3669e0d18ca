"""Sine, cosine and tangent, for every float32 and float64.

Bounds in units in the last place: sin and cos 1.6, tan 0.51 (float32); 0.9 (float64).
"""

from __future__ import annotations

from twofold.compiler.lower.control import Control
from twofold.compiler.lower.math import pairs, single
from twofold.compiler.lower.math.core import DOUBLE, SINGLE, format_of, function, horner, with_single
from twofold.compiler.lower.math.pairs import Pair
from twofold.compiler.lower.math.quarter_turns import reduce_double, reduce_single
from twofold.compiler.lower.values import Val

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


def _sine_single(b: Control, r: Val, q: Val) -> Val:
    """sin(q pi/2 + r) in float32 for reduced ``r``."""
    square = b.mul(r, r)
    odd = horner(b, _SIN_SINGLE, square)
    odd = b.fma(b.mul(square, r), odd, r)
    even = horner(b, _COS_SINGLE, square)
    # 1 - r**2 / 2 is rounded; what was lost comes back with the small terms
    half = b.mul(square, 0.5)
    head = b.sub(1.0, half)
    lost = b.sub(b.sub(1.0, head), half)
    even = b.add(head, b.fma(b.mul(square, square), even, lost))
    result = b.select(b.cmp("ne", b.and_(q, 1), 0), even, odd)
    return b.select(b.cmp("ne", b.and_(q, 2), 0), b.neg(result), result)


def _sine_and_cosine(b: Control, r: Pair) -> tuple[Pair, Pair]:
    """sin(r) and cos(r) of a reduced float64 pair, to about 57 bits."""
    x, rest = r
    square, lost_square = pairs.two_product(b, x, x)
    odd = b.fma(b.mul(square, x), horner(b, _SIN_DOUBLE, square), b.fma(rest, b.mul(square, -0.5), rest))
    half = b.mul(square, 0.5)
    head = b.sub(1.0, half)
    lost = b.sub(b.sub(1.0, head), half)
    even = b.fma(b.mul(square, square), horner(b, _COS_DOUBLE, square), lost)
    even = b.sub(even, b.fma(x, rest, b.mul(lost_square, 0.5)))
    return pairs.quick_sum(b, x, odd), pairs.quick_sum(b, head, even)


def _sine_double(b: Control, x: Val, turn: int) -> Val:
    r, q = reduce_double(b, x)
    sine, cosine = _sine_and_cosine(b, r)
    q = b.add(q, turn)
    result = b.select(b.cmp("ne", b.and_(q, 1), 0), cosine[0], sine[0])
    return b.select(b.cmp("ne", b.and_(q, 2), 0), b.neg(result), result)


@function
def sin(b: Control, x: Val) -> Val:
    """The sine."""
    if format_of(x) is SINGLE:
        result = _sine_single(b, *reduce_single(b, x))
    else:
        result = _sine_double(b, x, 0)
    return b.select(b.cmp("eq", x, 0.0), x, result)


@function
def cos(b: Control, x: Val) -> Val:
    """The cosine."""
    if format_of(x) is not SINGLE:
        return _sine_double(b, x, 1)
    r, q = reduce_single(b, x)
    return _sine_single(b, r, b.add(q, 1))


def sine_of_turns(b: Control, x: Val, turn: int = 0) -> Val:
    """sin(pi x) in float64; with ``turn`` 1, cos(pi x). Multiples of 1/2 give exact results."""
    twice = b.add(x, x)
    whole = b.rint(twice)
    half_turns = b.mul(b.sub(twice, whole), 0.5)
    r = pairs.multiply(
        b, (half_turns, b.const(0.0, DOUBLE.dtype)), (2 * pairs.HALF_PI[0], 2 * pairs.HALF_PI[1])
    )
    sine, cosine = _sine_and_cosine(b, r)
    # beyond 2**54 every number is a multiple of 4
    q = b.cast(b.sub(whole, b.mul(b.floor(b.mul(whole, 0.25)), 4.0)), DOUBLE.bits)
    q = b.add(q, turn)
    result = b.select(b.cmp("ne", b.and_(q, 1), 0), cosine[0], sine[0])
    return b.select(b.cmp("ne", b.and_(q, 2), 0), b.neg(result), result)


@with_single(single.tan)
def tan(b: Control, x: Val) -> Val:
    """The tangent."""
    r, q = reduce_double(b, x)
    sine, cosine = _sine_and_cosine(b, r)
    odd = b.cmp("ne", b.and_(q, 1), 0)
    above = [b.select(odd, cosine[k], sine[k]) for k in (0, 1)]
    below = [b.select(odd, b.neg(sine[k]), cosine[k]) for k in (0, 1)]
    result = pairs.rounded(b, pairs.divide(b, (above[0], above[1]), (below[0], below[1])))
    return b.select(b.cmp("eq", x, 0.0), x, result)
