"""Bessel functions of orders 0 and 1 and the Airy function; float32 by way of float64.

Near 0 a polynomial in the square (times what is not smooth there), further out the asymptotic form with fitted factors
(NIST's Digital Library of Mathematical Functions, 9.7 and 10.17 to 10.40). Between the zeros that are divided out,
errors are relative to the amplitude, not to the value.
"""

from __future__ import annotations

from twofold.compiler.lower.control import Control
from twofold.compiler.lower.math import pairs, tables
from twofold.compiler.lower.math.core import DOUBLE, INFINITY, NAN, PI, clamp, horner, quotient, wide
from twofold.compiler.lower.math.exponential import exp, exp_rounded
from twofold.compiler.lower.math.logarithm import log
from twofold.compiler.lower.math.trigonometric import cos, sin
from twofold.compiler.lower.values import Val

_TWO_OVER_PI = 2 / PI
_SQRT_HALF = 0.7071067811865476
_SQRT_PI = 1.772453850905516
# squares of the first two zeros of J0 and J1
_ROOTS = (
    (
        (float.fromhex("0x1.721fb80462bbbp+2"), float.fromhex("0x1.db60c816c15d3p-52")),
        (float.fromhex("0x1.e78a4a621dd6fp+4"), float.fromhex("-0x1.10d7c5048826bp-52")),
    ),
    (
        (float.fromhex("0x1.d5d2b4189822cp+3"), float.fromhex("-0x1.c6a0d245172bap-54")),
        (float.fromhex("0x1.89bf66072a432p+5"), float.fromhex("0x1.25355661cb79cp-51")),
    ),
)
_NEAR_I = 12.0
_NEAR_J = 8.0


def _i_near(b: Control, order: int, a: Val) -> Val:
    """I of 0 <= a <= 12."""
    y = b.mul(b.mul(a, 0.5), b.mul(a, 0.5))
    series = b.fma(y, horner(b, tables.I1_NEAR if order else tables.I0_NEAR, y), 1.0)
    return b.mul(series, b.mul(a, 0.5)) if order else series


def _i_far(b: Control, order: int, a: Val) -> Val:
    """exp(-a) I for a >= 12."""
    at = b.sub(b.div(1.0, a), 1 / 24)
    return b.div(horner(b, tables.I1_FAR if order else tables.I0_FAR, at), b.sqrt(a))


def _i(b: Control, order: int, x: Val, scaled: bool) -> Val:
    a = b.abs(x)
    near, far = _i_near(b, order, clamp(b, a, None, _NEAR_I)), _i_far(b, order, a)
    if scaled:
        near = b.mul(near, exp(b, b.neg(clamp(b, a, None, _NEAR_I))))
    else:
        # in two steps, as exp(a) overflows before the result
        half = exp(b, b.mul(a, 0.5))
        far = b.mul(b.mul(far, half), half)
        far = b.select(b.cmp("eq", a, INFINITY), a, far)
    result = b.select(b.cmp("lt", a, _NEAR_I), near, far)
    result = b.select(b.is_nan(x), x, result)
    return b.copysign(result, x) if order else result


@wide
def bessel_i0(b: Control, x: Val) -> Val:
    """The modified Bessel function of the first kind, order 0."""
    return _i(b, 0, x, False)


@wide
def bessel_i0e(b: Control, x: Val) -> Val:
    """exp(-|x|) I0(x)."""
    return _i(b, 0, x, True)


@wide
def bessel_i1(b: Control, x: Val) -> Val:
    """The modified Bessel function of the first kind, order 1."""
    return _i(b, 1, x, False)


@wide
def bessel_i1e(b: Control, x: Val) -> Val:
    """exp(-|x|) I1(x)."""
    return _i(b, 1, x, True)


def _k(b: Control, order: int, x: Val, scaled: bool) -> Val:
    """K, of 0 infinite, below 0 not defined."""
    a = clamp(b, x, None, 1.0)
    square = b.mul(a, a)
    growing = b.mul(log(b, a), _i_near(b, order, a))
    if order:
        near = b.add(b.div(1.0, a), b.fma(a, horner(b, tables.K1_NEAR, square), growing))
        above, below = tables.K1_FAR, tables.K1_FAR_BELOW
    else:
        near = b.sub(horner(b, tables.K0_NEAR, square), growing)
        above, below = tables.K0_FAR, tables.K0_FAR_BELOW
    far = b.div(quotient(b, above, below, b.div(1.0, x)), b.sqrt(x))
    if scaled:
        near = b.mul(near, exp(b, a))
    else:
        half = exp(b, b.mul(x, -0.5))
        far = b.mul(b.mul(far, half), half)
    result = b.select(b.cmp("gt", x, 1.0), far, near)
    result = b.select(b.cmp("eq", x, 0.0), INFINITY, result)
    return b.select(b.cmp("lt", x, 0.0), NAN, result)


@wide
def bessel_k0(b: Control, x: Val) -> Val:
    """The modified Bessel function of the second kind, order 0."""
    return _k(b, 0, x, False)


@wide
def bessel_k0e(b: Control, x: Val) -> Val:
    """exp(x) K0(x)."""
    return _k(b, 0, x, True)


@wide
def bessel_k1(b: Control, x: Val) -> Val:
    """The modified Bessel function of the second kind, order 1."""
    return _k(b, 1, x, False)


@wide
def bessel_k1e(b: Control, x: Val) -> Val:
    """exp(x) K1(x)."""
    return _k(b, 1, x, True)


def _j_near(b: Control, order: int, a: Val) -> Val:
    """J of 0 <= a <= 8."""
    square, lost = pairs.two_product(b, a, a)
    result = horner(b, tables.J1_NEAR if order else tables.J0_NEAR, b.sub(square, 32.0))
    for high, low in _ROOTS[order]:
        result = b.mul(result, b.add(b.sub(square, high), b.sub(lost, low)))
    return b.mul(result, a) if order else result


def _hankel(b: Control, order: int, a: Val) -> tuple[Val, Val]:
    """(J, Y) for a >= 8, from their common modulus and phase."""
    inverse = b.div(1.0, a)
    z = b.mul(inverse, inverse)
    if order:
        p = quotient(b, tables.P1_FAR, tables.P1_FAR_BELOW, z)
        q = quotient(b, tables.Q1_FAR, tables.Q1_FAR_BELOW, z)
    else:
        p = quotient(b, tables.P0_FAR, tables.P0_FAR_BELOW, z)
        q = quotient(b, tables.Q0_FAR, tables.Q0_FAR_BELOW, z)
    q = b.mul(q, inverse)
    sine, cosine = sin(b, a), cos(b, a)
    # sine and cosine of a - pi/4, or a - 3 pi/4, times the square root of 2
    even, odd = b.add(cosine, sine), b.sub(sine, cosine)
    if order:
        even, odd = odd, b.neg(even)
    size = b.mul(b.sqrt(b.mul(inverse, _TWO_OVER_PI)), _SQRT_HALF)
    j = b.sub(b.mul(p, even), b.mul(q, odd))
    y = b.add(b.mul(p, odd), b.mul(q, even))
    infinite = b.cmp("eq", a, INFINITY)
    return b.select(infinite, 0.0, b.mul(size, j)), b.select(infinite, 0.0, b.mul(size, y))


def _j(b: Control, order: int, x: Val) -> Val:
    a = b.abs(x)
    near = _j_near(b, order, clamp(b, a, None, _NEAR_J))
    result = b.select(b.cmp("lt", a, _NEAR_J), near, _hankel(b, order, a)[0])
    result = b.select(b.is_nan(x), x, result)
    if not order:
        return result
    return b.select(b.cmp("lt", b.bitcast(x, DOUBLE.bits), 0), b.neg(result), result)


@wide
def bessel_j0(b: Control, x: Val) -> Val:
    """The Bessel function of the first kind, order 0."""
    return _j(b, 0, x)


@wide
def bessel_j1(b: Control, x: Val) -> Val:
    """The Bessel function of the first kind, order 1."""
    return _j(b, 1, x)


def _y(b: Control, order: int, x: Val) -> Val:
    """Y, of 0 minus infinity, below 0 not defined."""
    a = clamp(b, x, None, _NEAR_J)
    at = b.sub(b.mul(a, a), 32.0)
    growing = b.mul(log(b, a), _j_near(b, order, a))
    if order:
        near = b.mul(a, horner(b, tables.Y1_NEAR, at))
        near = b.fma(b.sub(growing, b.div(1.0, a)), _TWO_OVER_PI, near)
    else:
        near = b.fma(growing, _TWO_OVER_PI, horner(b, tables.Y0_NEAR, at))
    result = b.select(b.cmp("lt", x, _NEAR_J), near, _hankel(b, order, x)[1])
    result = b.select(b.cmp("eq", x, 0.0), -INFINITY, result)
    return b.select(b.cmp("lt", x, 0.0), NAN, b.select(b.is_nan(x), x, result))


@wide
def bessel_y0(b: Control, x: Val) -> Val:
    """The Bessel function of the second kind, order 0."""
    return _y(b, 0, x)


@wide
def bessel_y1(b: Control, x: Val) -> Val:
    """The Bessel function of the second kind, order 1."""
    return _y(b, 1, x)


def _airy_angle(b: Control, a: Val) -> tuple[Val, Val]:
    """2/3 a**(3/2) as a pair."""
    root = pairs.square_root(b, (a, b.const(0.0, DOUBLE.dtype)))
    cubed = pairs.multiply(b, root, (a, 0.0))
    return pairs.multiply(b, cubed, pairs.TWO_THIRDS)


@wide
def airy_ai(b: Control, x: Val) -> Val:
    """The Airy function Ai."""
    a = clamp(b, b.abs(x), 2.25, 1e100)
    high, low = _airy_angle(b, a)
    inverse = b.div(1.0, high)
    size = b.div(1.0, b.mul(b.sqrt(b.sqrt(a)), _SQRT_PI))
    decay = exp_rounded(b, b.neg(high), b.neg(low))
    right = b.mul(quotient(b, tables.AIRY_RIGHT, tables.AIRY_RIGHT_BELOW, inverse), b.mul(decay, 0.5))
    z = b.mul(inverse, inverse)
    p = quotient(b, tables.AIRY_LEFT_P, tables.AIRY_LEFT_P_BELOW, z)
    q = b.mul(quotient(b, tables.AIRY_LEFT_Q, tables.AIRY_LEFT_Q_BELOW, z), inverse)
    sine, cosine, low_sine, low_cosine = sin(b, high), cos(b, high), sin(b, low), cos(b, low)
    turned = (
        b.fma(low_sine, cosine, b.mul(low_cosine, sine)),
        b.fma(b.neg(low_sine), sine, b.mul(low_cosine, cosine)),
    )
    even, odd = b.add(turned[0], turned[1]), b.sub(turned[1], turned[0])
    left = b.mul(b.sub(b.mul(even, p), b.mul(odd, q)), _SQRT_HALF)
    far = b.mul(size, b.select(b.cmp("gt", x, 0.0), right, left))
    far = b.select(b.cmp("eq", b.abs(x), INFINITY), 0.0, far)
    near = horner(b, tables.AIRY_NEAR, clamp(b, x, -2.25, 2.25))
    return b.select(b.cmp("gt", b.abs(x), 2.25), far, near)
