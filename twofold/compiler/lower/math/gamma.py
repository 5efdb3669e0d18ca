"""The gamma function's logarithm and derivatives, and the zeta function of Hurwitz; float32 by way of float64.

Formulas of NIST's Digital Library of Mathematical Functions (DLMF), dlmf.nist.gov.
"""

from __future__ import annotations

from twofold.compiler.lower.control import Control
from twofold.compiler.lower.emitter import Operand
from twofold.compiler.lower.math import pairs
from twofold.compiler.lower.math.core import DOUBLE, INFINITY, NAN, PI, horner, quotient, wide
from twofold.compiler.lower.math.logarithm import log, log_pair, pow_double
from twofold.compiler.lower.math.tables import (
    BERNOULLI,
    DIGAMMA_FAR,
    DIGAMMA_MIDDLE,
    DIGAMMA_MIDDLE_BELOW,
    DIGAMMA_NEAR,
    DIGAMMA_NEAR_BELOW,
    LGAMMA_FAR,
    LGAMMA_MIDDLE,
    LGAMMA_MIDDLE_BELOW,
    LGAMMA_NEAR,
    LGAMMA_NEAR_BELOW,
)
from twofold.compiler.lower.math.trigonometric import sine_of_turns
from twofold.compiler.lower.values import Val

_HALF_LOG_2_PI = (float.fromhex("0x1.d67f1c864beb5p-1"), float.fromhex("-0x1.65b5a1b7ff5dfp-55"))
_LOG_PI = 1.1447298858494002
_DIGAMMA_ROOT = (float.fromhex("0x1.762d86356be3fp+0"), float.fromhex("0x1.b86a722197829p-54"))
_TERMS = 10
"""How many terms of the zeta function are added one by one."""


def lgamma_near(b: Control, excess: Val) -> Val:
    """log(gamma(1 + excess)) for -1/2 <= excess <= 2."""
    rest = quotient(b, LGAMMA_NEAR, LGAMMA_NEAR_BELOW, b.add(excess, 0.5))
    return b.mul(b.mul(excess, b.sub(excess, 1.0)), rest)


def stirling_rest(b: Control, a: Val) -> Val:
    """What Stirling's formula leaves of log(gamma(a)) for a >= 8, DLMF 5.11.1."""
    inverse = b.div(1.0, a)
    return b.mul(inverse, horner(b, LGAMMA_FAR, b.mul(inverse, inverse)))


def lgamma_positive(b: Control, a: Val) -> Val:
    """log(gamma(a)) for a >= 0."""
    tiny = b.cmp("lt", a, 0.5)
    near = lgamma_near(b, b.select(tiny, a, b.sub(a, 1.0)))
    near = b.select(tiny, b.sub(near, log(b, a)), near)
    middle = quotient(b, LGAMMA_MIDDLE, LGAMMA_MIDDLE_BELOW, b.sub(a, 3.0))
    logarithm = log_pair(b, a)
    whole = pairs.multiply(b, logarithm, pairs.two_sum(b, a, -0.5))
    whole = pairs.add(b, whole, (b.neg(a), b.const(0.0, DOUBLE.dtype)))
    whole = pairs.add(b, whole, _HALF_LOG_2_PI)
    far = b.add(whole[0], b.add(whole[1], stirling_rest(b, a)))
    huge = b.mul(a, b.sub(logarithm[0], 1.0))
    far = b.select(b.cmp("gt", a, 1e30), huge, far)
    return b.select(b.cmp("lt", a, 3.0), near, b.select(b.cmp("lt", a, 8.0), middle, far))


@wide
def lgamma(b: Control, x: Val) -> Val:
    """log(|gamma(x)|); below 0 by reflection, DLMF 5.5.3, where it loses digits near its zeros."""
    a = b.abs(x)
    positive = lgamma_positive(b, a)
    sine = b.abs(sine_of_turns(b, a))
    reflected = b.sub(b.sub(_LOG_PI, log(b, b.mul(a, sine))), positive)
    # tiny negative numbers: the product above loses digits, the function is -log|x|
    reflected = b.select(b.cmp("lt", a, 1e-20), positive, reflected)
    result = b.select(b.cmp("lt", x, 0.0), reflected, positive)
    pole = b.or_(b.and_(b.cmp("le", x, 0.0), b.cmp("eq", b.floor(x), x)), b.cmp("eq", a, INFINITY))
    # of 1 a positive zero
    return b.select(pole, INFINITY, b.add(result, 0.0))


@wide
def digamma(b: Control, x: Val) -> Val:
    """The logarithmic derivative of the gamma function; below 0 by reflection, DLMF 5.5.4."""
    negative = b.cmp("lt", x, 0.0)
    a = b.select(negative, b.sub(1.0, x), x)
    below = b.cmp("lt", a, 1.0)
    shifted = b.select(below, b.add(a, 1.0), a)
    from_root = b.sub(b.sub(shifted, _DIGAMMA_ROOT[0]), _DIGAMMA_ROOT[1])
    near = b.mul(from_root, quotient(b, DIGAMMA_NEAR, DIGAMMA_NEAR_BELOW, b.sub(shifted, 1.0)))
    near = b.select(below, b.sub(near, b.div(1.0, a)), near)
    middle = quotient(b, DIGAMMA_MIDDLE, DIGAMMA_MIDDLE_BELOW, b.sub(a, 3.0))
    inverse = b.div(1.0, a)
    square = b.mul(inverse, inverse)
    far = b.sub(log(b, a), b.fma(inverse, 0.5, b.mul(square, horner(b, DIGAMMA_FAR, square))))
    result = b.select(b.cmp("lt", a, 3.0), near, b.select(b.cmp("lt", a, 10.0), middle, far))
    cotangent = b.div(sine_of_turns(b, x, 1), sine_of_turns(b, x))
    result = b.select(negative, b.fma(cotangent, -PI, result), result)
    pole = b.and_(negative, b.cmp("eq", b.floor(x), x))
    result = b.select(pole, NAN, result)
    return b.select(b.cmp("eq", x, 0.0), b.copysign(INFINITY, b.neg(x)), result)


def _zeta_positive(b: Control, s: Val, q: Val) -> Val:
    """The sum of (q + k)**-s over k >= 0 for s > 1 and q > 0: ten terms, then Euler and Maclaurin, DLMF 25.11.5."""
    power = b.neg(s)
    start = [pow_double(b, q, power), q]
    loop = b.loop(1, _TERMS, carry=start)
    with loop as (_, (sum_, position)):
        position = b.add(position, 1.0)
        b.loop_next([b.add(sum_, pow_double(b, position, power)), position])
    sum_, position = loop.results
    end = b.add(position, 1.0)
    last = pow_double(b, end, power)
    # where the last power has lost its digits, the integral may still have all of its own
    vanishing = b.cmp("lt", last, 1e-290)
    integral = b.select(vanishing, pow_double(b, end, b.sub(1.0, s)), b.mul(end, last))
    integral = b.div(integral, b.sub(s, 1.0))
    tail = b.add(integral, b.mul(last, 0.5))
    term = b.mul(last, b.div(s, end))
    inverse = b.div(1.0, b.mul(end, end))
    for j, coefficient in enumerate(BERNOULLI):
        tail = b.fma(term, coefficient, tail)
        term = b.mul(b.mul(term, b.mul(b.add(s, 2.0 * j + 1.0), b.add(s, 2.0 * j + 2.0))), inverse)
    return b.add(sum_, b.select(vanishing, integral, tail))


def _zeta_negative(b: Control, s: Val, q: Val) -> Val:
    """The same for q < 0 and a whole s: the sum over all integers less that above 0, (q + k)**-s = +-(-q - k)**-s."""
    fraction = b.sub(q, b.floor(q))
    above = _zeta_positive(b, s, fraction)
    below = b.sub(_zeta_positive(b, s, b.sub(1.0, fraction)), _zeta_positive(b, s, b.sub(1.0, q)))
    half = b.mul(s, 0.5)
    odd = b.cmp("ne", b.floor(half), half)
    return b.add(above, b.select(odd, b.neg(below), below))


@wide
def zeta(b: Control, s: Val, q: Val) -> Val:
    """The zeta function of Hurwitz; NaN for s < 1, and for q < 0 unless s is whole."""
    negative = b.cmp("lt", q, 0.0)
    one: Operand = b.const(1.0, DOUBLE.dtype)
    result = _zeta_positive(b, s, b.select(negative, one, q))
    branch = b.if_(b.any_lane(negative))
    with branch:
        reflected = _zeta_negative(b, s, b.select(negative, q, -0.5))
        branch.give([b.select(negative, reflected, result)])
    with branch.else_():
        branch.give([result])
    result = branch.results[0]
    result = b.select(b.and_(negative, b.cmp("ne", b.floor(s), s)), NAN, result)
    result = b.select(b.and_(b.cmp("le", q, 0.0), b.cmp("eq", b.floor(q), q)), INFINITY, result)
    result = b.select(b.cmp("eq", s, 1.0), INFINITY, b.select(b.cmp("lt", s, 1.0), NAN, result))
    at_infinity = b.select(b.cmp("gt", q, 1.0), 0.0, b.select(b.cmp("eq", q, 1.0), q, INFINITY))
    result = b.select(b.cmp("eq", s, INFINITY), at_infinity, result)
    return b.select(b.or_(b.is_nan(s), b.is_nan(q)), NAN, result)
