"""The error function and what is made of it: the normal distribution and its quantiles.

Bounds in units in the last place: erf 1.2, erfc 3.5, ndtr 5.8, its derivative 1.5, the others 0.51 (float32);
4 (float64).
"""

from __future__ import annotations

from twofold.compiler.lower.control import Control
from twofold.compiler.lower.math import pairs
from twofold.compiler.lower.math.core import (
    INFINITY,
    NAN,
    SINGLE,
    clamp,
    format_of,
    function,
    horner,
    quotient,
    wide,
)
from twofold.compiler.lower.math.exponential import exp_bounded, exp_rounded, exp_times
from twofold.compiler.lower.math.logarithm import log, log1p
from twofold.compiler.lower.math.tables import (
    ERF,
    ERFC,
    QUANTILE_CENTRE,
    QUANTILE_CENTRE_BELOW,
    QUANTILE_FAR_TAIL,
    QUANTILE_FAR_TAIL_BELOW,
    QUANTILE_TAIL,
    QUANTILE_TAIL_BELOW,
)
from twofold.compiler.lower.values import Val

# minimax fits: erf(x) / x - 1 in x**2 on |x| <= 0.93; log(erfc(t)) + t, without a constant, on [0.92, 4]
_ERF_SMALL = (0.12837915, -0.3761249, 0.11281731, -0.026762966, 0.004987352, -0.00059595786)
_ERF_LARGE = (
    -0.1286485, -0.6351512, -0.10623716, 0.023762407, -0.003642678, 0.00032287362, -1.12400585e-05,
)  # fmt: skip
# minimax fit of (1 + 2 t) exp(t**2) erfc(t) in (t - 2) / (t + 2) on [0.588, 10.1]; the form is that of M. Shepherd
# and J. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x**2) erfc x in 0 <= x < infinity", 1981
_ERFC_LARGE = (
    1.2769784, -0.092763685, -0.16603008, 0.16404563, -0.054224525,
    -0.0079705, 0.0087323105, 0.0009941291, -0.0013893095,
)  # fmt: skip
# minimax fit of (t + 1.7) exp(t**2 / 2) ndtr(-t) in 1 - 3.8 / (t + 1.7) on [0, 14.4], which gives 0.5 at 0
_NORMAL_TAIL = (
    0.61573225, -0.23145151, -0.013310476, 0.026139783, 0.00688094, -0.0028362893,
    -0.0024749672, -0.00039656248, 0.00038269203, 0.00024653578, 4.7220277e-05,
)  # fmt: skip
# where the argument of the float64 fit, (t - 3) / (t + 3), is 0
_ERFC_TURN = 3.0
_SQRT_HALF = 0.7071067811865476
_NORMAL_END = 14.4
_NORMAL_PEAK = 0.3989422804014327


def _erf_single(b: Control, x: Val) -> Val:
    square = b.mul(x, x)
    small = b.fma(x, horner(b, _ERF_SMALL, square), x)
    t = clamp(b, b.abs(x), None, 4.0)
    exponent = b.fma(t, horner(b, _ERF_LARGE, t), b.neg(t))
    large = b.sub(1.0, exp_bounded(b, exponent))
    return b.copysign(b.select(b.cmp("lt", t, 0.925), small, large), x)


def _scaled(b: Control, t: Val) -> Val:
    """exp(t**2) erfc(t) of float64 for t >= 0."""
    near = clamp(b, t, None, 1e18)
    fraction = horner(b, ERFC, b.div(b.sub(near, _ERFC_TURN), b.add(near, _ERFC_TURN)))
    # halved, as 2 t may overflow
    return b.div(b.mul(fraction, 0.5), b.add(t, 0.5))


def _erf_double(b: Control, x: Val) -> Val:
    square = b.mul(x, x)
    small = b.fma(x, horner(b, ERF, square), x)
    large = b.sub(1.0, _tail(b, clamp(b, b.abs(x), None, 7.0)))
    return b.copysign(b.select(b.cmp("lt", square, 1.0), small, large), x)


def _tail(b: Control, t: Val) -> Val:
    """erfc(t) of float64 for 0 <= t <= 27.3."""
    square, lost = pairs.two_product(b, t, t)
    return exp_times(b, b.neg(square), b.neg(lost), _scaled(b, t), -741.27)


@function
def erf(b: Control, x: Val) -> Val:
    """The error function."""
    return _erf_single(b, x) if format_of(x) is SINGLE else _erf_double(b, x)


def _erfc_single(b: Control, x: Val) -> Val:
    square = b.mul(x, x)
    small = b.sub(1.0, b.fma(x, horner(b, _ERF_SMALL, square), x))
    # beyond 10.055 the result rounds to zero
    t = clamp(b, b.abs(x), None, 10.1)
    scaled = horner(b, _ERFC_LARGE, b.div(b.sub(t, 2.0), b.add(t, 2.0)))
    negative = b.neg(b.mul(t, t))
    # the digits that the rounded square lost would be relative errors of the exponential
    lost = b.fma(b.neg(t), t, b.neg(negative))
    tail = exp_times(b, negative, lost, b.div(scaled, b.fma(t, 2.0, 1.0)), -101.1)
    large = b.select(b.cmp("lt", x, 0.0), b.sub(2.0, tail), tail)
    return b.select(b.cmp("lt", t, 0.6), small, large)


def _erfc_double(b: Control, x: Val) -> Val:
    small = b.sub(1.0, b.fma(x, horner(b, ERF, b.mul(x, x)), x))
    # beyond 27.23 the result rounds to zero
    tail = _tail(b, clamp(b, b.abs(x), None, 27.3))
    large = b.select(b.cmp("lt", x, 0.0), b.sub(2.0, tail), tail)
    return b.select(b.cmp("lt", b.abs(x), 0.25), small, large)


@function
def erfc(b: Control, x: Val) -> Val:
    """1 - erf(x), with all digits of its tail and the subnormal results at its end."""
    return _erfc_single(b, x) if format_of(x) is SINGLE else _erfc_double(b, x)


@wide
def erfcx(b: Control, x: Val) -> Val:
    """exp(x**2) erfc(x)."""
    scaled = _scaled(b, b.abs(x))
    square, lost = pairs.two_product(b, clamp(b, x, -30.0, 0.0), clamp(b, x, -30.0, 0.0))
    grown = exp_rounded(b, square, lost)
    return b.select(b.cmp("lt", x, 0.0), b.sub(b.add(grown, grown), scaled), scaled)


def _normal_tail(b: Control, u: Val) -> Val:
    """The probability that a standard normal number is above u >= 0, in float64."""
    near = clamp(b, u, None, 38.6)
    square, lost = pairs.two_product(b, near, near)
    half = b.mul(_scaled(b, b.mul(near, _SQRT_HALF)), 0.5)
    return exp_times(b, b.mul(square, -0.5), b.mul(lost, -0.5), half, -740.58)


def _half_square(b: Control, x: Val, most: float) -> tuple[Val, Val]:
    """-x**2 / 2 and its rounding error, with |x| limited to ``most``."""
    t = clamp(b, b.abs(x), None, most)
    return pairs.two_product(b, b.mul(t, -0.5), t)


def _ndtr_single(b: Control, x: Val) -> Val:
    # beyond 14.2 the tail rounds to zero
    t = clamp(b, b.abs(x), None, _NORMAL_END)
    near = b.div(1.0, b.add(t, 1.7))
    scaled = b.mul(horner(b, _NORMAL_TAIL, b.fma(near, -3.8, 1.0)), near)
    tail = exp_times(b, *_half_square(b, x, _NORMAL_END), scaled, -100.41)
    return b.select(b.cmp("gt", x, 0.0), b.sub(1.0, tail), tail)


@function
def ndtr(b: Control, x: Val) -> Val:
    """The probability that a standard normal number is below x."""
    if format_of(x) is SINGLE:
        return _ndtr_single(b, x)
    tail = _normal_tail(b, b.abs(x))
    return b.select(b.cmp("gt", x, 0.0), b.sub(1.0, tail), tail)


@function
def normal_density(b: Control, x: Val) -> Val:
    """The derivative of ndtr, which shares the exponential with it where both are computed."""
    most, least = (_NORMAL_END, -103.07) if format_of(x) is SINGLE else (38.6, -744.23)
    return exp_times(b, *_half_square(b, x, most), b.const(_NORMAL_PEAK, format_of(x).dtype, x.lanes), least)


@wide
def log_ndtr(b: Control, x: Val) -> Val:
    """log(ndtr(x))."""
    a = b.abs(x)
    below = b.fma(b.mul(a, -0.5), a, log(b, b.mul(_scaled(b, b.mul(a, _SQRT_HALF)), 0.5)))
    above = log1p(b, b.neg(_normal_tail(b, a)))
    return b.select(b.cmp("gt", x, 0.0), above, below)


def _quantile(b: Control, q: Val, tail: Val) -> Val:
    """The x below which a standard normal number is with probability 1/2 + q; ``tail`` is 1/2 - |q|.

    Fits on the regions of M. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988.
    """
    centre = b.sub(0.180625, b.mul(q, q))
    central = b.mul(q, quotient(b, QUANTILE_CENTRE, QUANTILE_CENTRE_BELOW, centre))
    r = b.sqrt(b.neg(log(b, tail)))
    near, far = b.sub(r, 1.6), b.sub(r, 5.0)
    outer = b.select(
        b.cmp("lt", r, 5.0),
        quotient(b, QUANTILE_TAIL, QUANTILE_TAIL_BELOW, near),
        quotient(b, QUANTILE_FAR_TAIL, QUANTILE_FAR_TAIL_BELOW, far),
    )
    outer = b.select(b.cmp("eq", tail, 0.0), INFINITY, outer)
    result = b.select(b.cmp("le", b.abs(q), 0.425), central, b.copysign(outer, q))
    return b.select(b.cmp("lt", tail, 0.0), NAN, result)


@wide
def ndtri(b: Control, p: Val) -> Val:
    """The inverse of ndtr."""
    upper = b.cmp("gt", p, 0.5)
    return _quantile(b, b.sub(p, 0.5), b.select(upper, b.sub(1.0, p), p))


@wide
def erfinv(b: Control, x: Val) -> Val:
    """The inverse of the error function."""
    result = b.mul(_quantile(b, b.mul(x, 0.5), b.mul(b.sub(1.0, b.abs(x)), 0.5)), _SQRT_HALF)
    # halving would lose digits of subnormal numbers
    small = b.cmp("lt", b.abs(x), 1e-300)
    return b.select(small, b.mul(x, 0.886226925452758), result)
