"""The regularised incomplete gamma functions P and Q; float32 by way of float64.

Where a is large and x near it by N. Temme's uniform expansion (DLMF 8.12), else P by its power series (8.11.4) for
x <= a, Q by its continued fraction (8.9.2) above, or for small x by the series of 8.7.3.
"""

from __future__ import annotations

from twofold.compiler.lower.control import Control
from twofold.compiler.lower.math import pairs
from twofold.compiler.lower.math.core import DOUBLE, INFINITY, NAN, PI, horner, wide
from twofold.compiler.lower.math.error import erfc
from twofold.compiler.lower.math.exponential import exp_rounded, expm1
from twofold.compiler.lower.math.gamma import lgamma_near, lgamma_positive, stirling_rest
from twofold.compiler.lower.math.logarithm import log, log_of_pair, log_pair
from twofold.compiler.lower.math.pairs import Pair
from twofold.compiler.lower.math.tables import TEMME
from twofold.compiler.lower.values import Val

_SERIES_TERMS = 140
_FRACTION_TERMS = 140
_SMALL_TERMS = 24


def _distance(b: Control, a: Val, x: Val) -> tuple[Pair, Pair]:
    """(mu, log(1 + mu)) with x = a (1 + mu)."""
    mu = pairs.divide(b, pairs.two_sum(b, x, b.neg(a)), (a, b.const(0.0, DOUBLE.dtype)))
    return mu, log_of_pair(b, pairs.add(b, mu, (1.0, 0.0)))


def _factor(b: Control, a: Val, x: Val) -> Val:
    """x**a exp(-x) / gamma(a + 1)."""
    zero = b.const(0.0, DOUBLE.dtype)
    mu, logarithm = _distance(b, a, x)
    difference = pairs.add(b, logarithm, (b.neg(mu[0]), b.neg(mu[1])))
    large = pairs.multiply(b, difference, (a, zero))
    large = pairs.add(b, large, (b.neg(stirling_rest(b, a)), zero))
    plain = pairs.multiply(b, log_pair(b, x), (a, zero))
    plain = pairs.add(b, plain, (b.neg(x), zero))
    excess = b.select(b.cmp("lt", a, 2.0), lgamma_near(b, a), lgamma_positive(b, b.add(a, 1.0)))
    plain = pairs.add(b, plain, (b.neg(excess), zero))
    # where x vanishes beside a, 1 + mu has no digits
    big = b.and_(b.cmp("ge", a, 8.0), b.cmp("gt", x, b.mul(a, 1e-10)))
    value = exp_rounded(b, b.select(big, large[0], plain[0]), b.select(big, large[1], plain[1]))
    return b.select(big, b.div(value, b.sqrt(b.mul(a, 2 * PI))), value)


def _lower_series(b: Control, a: Val, x: Val, factor: Val) -> Val:
    """P as factor (1 + x / (a + 1) + x**2 / ((a + 1) (a + 2)) + ...)."""
    one = b.add(b.sub(a, a), 1.0)
    loop = b.loop(0, _SERIES_TERMS, carry=[one, one, a])
    with loop as (_, (sum_, term, position)):
        position = b.add(position, 1.0)
        term = b.mul(term, b.div(x, position))
        b.loop_next([b.add(sum_, term), term, position])
    return b.mul(factor, loop.results[0])


def _upper_fraction(b: Control, a: Val, x: Val, factor: Val) -> Val:
    """Q as a factor / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a ...))), from the far end."""
    start = b.add(b.sub(x, a), 2.0 * _FRACTION_TERMS + 1.0)
    loop = b.loop(0, _FRACTION_TERMS, carry=[start, b.add(b.sub(a, a), float(_FRACTION_TERMS))])
    with loop as (_, (fraction, k)):
        front = b.add(b.sub(x, a), b.sub(b.add(k, k), 1.0))
        fraction = b.sub(front, b.div(b.mul(k, b.sub(k, a)), fraction))
        b.loop_next([fraction, b.sub(k, 1.0)])
    return b.div(b.mul(factor, a), loop.results[0])


def _upper_small(b: Control, a: Val, x: Val) -> Val:
    """Q for x up to about 1 as 1 - x**a / gamma(a + 1) - x**a / gamma(a) sum of (-x)**n / (n! (a + n))."""
    one = b.add(b.sub(a, a), 1.0)
    loop = b.loop(0, _SMALL_TERMS, carry=[b.sub(one, one), one, one])
    with loop as (_, (sum_, term, k)):
        term = b.mul(term, b.div(b.neg(x), k))
        b.loop_next([b.add(sum_, b.div(term, b.add(a, k))), term, b.add(k, 1.0)])
    exponent = b.sub(b.mul(a, log(b, x)), lgamma_near(b, a))
    power = expm1(b, exponent)
    return b.neg(b.fma(b.mul(b.add(power, 1.0), a), loop.results[0], power))


def _uniform(b: Control, a: Val, x: Val, upper: bool) -> Val:
    """Temme's expansion: half an error function and a correction in powers of eta and 1 / a."""
    mu, logarithm = _distance(b, a, x)
    half_square, low = pairs.add(b, mu, (b.neg(logarithm[0]), b.neg(logarithm[1])))
    half_square = b.maximum(b.add(half_square, low), 0.0)
    eta = b.copysign(b.sqrt(b.add(half_square, half_square)), mu[0])
    inverse = b.div(1.0, a)
    sum_ = horner(b, TEMME[-1], eta)
    for row in reversed(TEMME[:-1]):
        sum_ = b.fma(sum_, inverse, horner(b, row, eta))
    exponent = b.neg(b.mul(a, half_square))
    rest = b.mul(b.div(exp_rounded(b, exponent, b.sub(exponent, exponent)), b.sqrt(b.mul(a, 2 * PI))), sum_)
    argument = b.mul(eta, b.sqrt(b.mul(a, 0.5)))
    tail = b.mul(erfc(b, argument if upper else b.neg(argument)), 0.5)
    return b.add(tail, rest) if upper else b.sub(tail, rest)


def _regularised(b: Control, a: Val, x: Val, upper: bool) -> Val:
    inner_a = b.select(b.and_(b.cmp("gt", a, 0.0), b.cmp("lt", a, INFINITY)), a, 1.0)
    inner_x = b.select(b.and_(b.cmp("gt", x, 0.0), b.cmp("lt", x, INFINITY)), x, 1.0)
    near = b.cmp("lt", b.abs(b.sub(inner_x, inner_a)), b.mul(inner_a, 0.3))
    uniform = b.and_(near, b.cmp("gt", inner_a, 20.0))
    below = b.or_(b.cmp("le", inner_x, 1.0), b.cmp("le", inner_x, inner_a))
    factor = _factor(b, inner_a, inner_x)
    p = _lower_series(b, inner_a, inner_x, factor)
    q = _upper_fraction(b, inner_a, inner_x, factor)
    # where Q is small against P the difference would lose its digits
    small = b.and_(b.cmp("le", inner_x, 1.1), b.cmp("lt", inner_a, b.maximum(inner_x, 0.5)))
    q = b.select(small, _upper_small(b, inner_a, inner_x), q)
    if upper:
        plain = b.select(b.and_(below, b.not_(small)), b.sub(1.0, p), q)
    else:
        plain = b.select(below, p, b.sub(1.0, q))
    result = b.select(uniform, _uniform(b, inner_a, inner_x, upper), plain)
    return _limits(b, a, x, result, upper)


def _limits(b: Control, a: Val, x: Val, result: Val, upper: bool) -> Val:
    """The values where a or x is 0 or infinite, and NaN where they are negative or undefined."""
    none, all_ = (1.0, 0.0) if upper else (0.0, 1.0)
    result = b.select(b.or_(b.cmp("eq", x, 0.0), b.cmp("eq", a, INFINITY)), none, result)
    result = b.select(b.or_(b.cmp("eq", a, 0.0), b.cmp("eq", x, INFINITY)), all_, result)
    both = b.or_(
        b.and_(b.cmp("eq", a, 0.0), b.cmp("eq", x, 0.0)),
        b.and_(b.cmp("eq", a, INFINITY), b.cmp("eq", x, INFINITY)),
    )
    undefined = b.or_(both, b.not_(b.and_(b.cmp("ge", a, 0.0), b.cmp("ge", x, 0.0))))
    return b.select(undefined, NAN, result)


@wide
def igamma(b: Control, a: Val, x: Val) -> Val:
    """The regularised lower incomplete gamma function P(a, x)."""
    return _regularised(b, a, x, False)


@wide
def igammac(b: Control, a: Val, x: Val) -> Val:
    """The regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    return _regularised(b, a, x, True)
