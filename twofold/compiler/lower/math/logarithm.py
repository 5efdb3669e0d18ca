"""Logarithms, inverse hyperbolic functions and powers.

Bounds in units in the last place, found by sweeps against twice the precision:
log 0.9, log1p 1.7, softplus 1.8, the others 0.51 (float32); log 1, log1p 1.4, softplus 2, the others 0.8 (float64).
logaddexp and logaddexp2 are within 2 units of float64 of their larger operand or of 1, as results may cancel.
"""

from __future__ import annotations

from twofold.compiler.lower.control import Control
from twofold.compiler.lower.math import pairs, single
from twofold.compiler.lower.math.core import (
    DOUBLE,
    INFINITY,
    LN_2,
    LOG2_E,
    NAN,
    SINGLE,
    Format,
    format_of,
    function,
    horner,
    wide,
    with_single,
)
from twofold.compiler.lower.math.exponential import exp, exp_rounded
from twofold.compiler.lower.math.pairs import Pair
from twofold.compiler.lower.math.tables import LOG_TAIL
from twofold.compiler.lower.values import Val

# minimax fit of (log(1 + f) - f) / f**2 on |f| <= 1/3, relative to log(1 + f)
_LOG_SINGLE = (
    -0.5, 0.33333215, -0.24999797, 0.20010467, -0.16680507, 0.1400473, -0.121838495, 0.13990648, -0.1289414,
)  # fmt: skip
# minimax fit of (log((1 + s) / (1 - s)) - 2 s) / s**3 in s**2, on |s| <= 0.21; scheme of fdlibm's e_log.c
_LOG_DOUBLE = (
    0.6666666666666652,
    0.40000000000110003,
    0.28571428543705524,
    0.2222222558704098,
    0.18181593029124946,
    0.1539335683962964,
    0.1313793332438922,
    0.140715662357092,
)
# bit patterns of 2/3 and sqrt(1/2): where the significand is cut, so that it lies around 1
_CUT_SINGLE = 0x3F2AAAAB
_CUT_DOUBLE = 0x3FE6A09E667F3BCD


def _scaled_log1p(b: Control, fmt: Format, f: Val, k: Val) -> Val:
    """k log 2 + log(1 + f) for small ``f`` and an integer vector ``k``."""
    factor = b.cast(k, fmt.dtype)
    square = b.mul(f, f)
    if fmt is SINGLE:
        low = b.fma(factor, fmt.ln2_low, b.mul(square, horner(b, _LOG_SINGLE, f)))
        return b.fma(factor, fmt.ln2_high, b.add(f, low))
    s = b.div(f, b.add(f, 2.0))
    z = b.mul(s, s)
    rest = b.mul(z, horner(b, _LOG_DOUBLE, z))
    half = b.mul(square, 0.5)
    tail = b.fma(s, b.add(half, rest), b.mul(factor, fmt.ln2_low))
    return b.fma(factor, fmt.ln2_high, b.sub(f, b.sub(half, tail)))


def _split(b: Control, fmt: Format, x: Val) -> tuple[Val, Val]:
    """(k, bits of m) with x = 2**k m and m around 1, for positive normal ``x``."""
    cut = _CUT_SINGLE if fmt is SINGLE else _CUT_DOUBLE
    bits = b.bitcast(x, fmt.bits)
    k = b.shr(b.sub(bits, cut), fmt.mantissa)
    return k, b.sub(bits, b.shl(k, fmt.mantissa))


@function
def log(b: Control, x: Val) -> Val:
    """The natural logarithm."""
    fmt = format_of(x)
    tiny = b.cmp("lt", x, fmt.smallest_normal)
    k, bits = _split(b, fmt, b.select(tiny, b.mul(x, 2.0**fmt.bias_shift), x))
    k = b.select(tiny, b.sub(k, fmt.bias_shift), k)
    result = _scaled_log1p(b, fmt, b.sub(b.bitcast(bits, fmt.dtype), 1.0), k)
    result = b.select(b.cmp("lt", x, INFINITY), result, x)
    result = b.select(b.cmp("eq", x, 0.0), -INFINITY, result)
    return b.select(b.cmp("lt", x, 0.0), NAN, result)


@function
def log1p(b: Control, x: Val) -> Val:
    """log(1 + x) without cancellation."""
    fmt, argument = format_of(x), x
    # the square of a tiny argument, which is its own result, would be slow: it underflows
    tiny = b.cmp("lt", b.abs(x), 2.0**-60)
    x = b.select(tiny, 0.0, x)
    k, _ = _split(b, fmt, b.add(x, 1.0))
    shift = b.shl(k, fmt.mantissa)
    # x / 2**k and 2**-k are exact, so (x + 1) / 2**k - 1 is rounded once where it matters
    scaled = b.bitcast(b.sub(b.bitcast(x, fmt.bits), shift), fmt.dtype)
    unit = b.bitcast(b.sub(fmt.one, shift), fmt.dtype)
    unit = b.select(b.cmp("gt", k, 2 * fmt.mantissa), 0.0, unit)
    result = _scaled_log1p(b, fmt, b.add(scaled, b.sub(unit, 1.0)), k)
    result = b.select(b.cmp("lt", x, INFINITY), result, x)
    result = b.select(b.cmp("eq", x, -1.0), -INFINITY, result)
    result = b.copysign(b.select(b.cmp("lt", x, -1.0), NAN, result), x)
    return b.select(tiny, argument, result)


def log_pair(b: Control, x: Val) -> Pair:
    """log(x) of float64 to about 64 bits, with its infinities.

    x = 2**k m with m around 1, and log m = 2 s + 2/3 s**3 + ... for s = (m - 1) / (m + 1).
    """
    tiny = b.cmp("lt", x, DOUBLE.smallest_normal)
    k, bits = _split(b, DOUBLE, b.select(tiny, b.mul(x, 2.0**DOUBLE.bias_shift), x))
    k = b.cast(b.select(tiny, b.sub(k, DOUBLE.bias_shift), k), DOUBLE.dtype)
    f = b.sub(b.bitcast(bits, DOUBLE.dtype), 1.0)
    s = pairs.divide(b, (f, 0.0), pairs.quick_sum(b, 2.0, f))
    z = pairs.multiply(b, s, s)
    tail = b.fma(z[0], horner(b, LOG_TAIL, z[0]), pairs.TWO_THIRDS[1])
    cubic = pairs.quick_sum(b, pairs.TWO_THIRDS[0], tail)
    rest = pairs.multiply(b, s, pairs.multiply(b, z, cubic))
    whole = pairs.two_product(b, k, pairs.LN_2[0])
    whole = pairs.quick_sum(b, whole[0], b.fma(k, pairs.LN_2[1], whole[1]))
    high, low = pairs.add(b, pairs.add(b, whole, (b.add(s[0], s[0]), b.add(s[1], s[1]))), rest)
    edge = b.select(b.cmp("lt", x, 0.0), NAN, b.select(b.cmp("eq", x, 0.0), -INFINITY, x))
    plain = b.and_(b.cmp("gt", x, 0.0), b.cmp("lt", x, INFINITY))
    return b.select(plain, high, edge), b.select(plain, low, 0.0)


def log_of_pair(b: Control, x: Pair) -> Pair:
    """log of a positive pair to about 57 bits; ``x`` may be 1 and a small number."""
    high, low = log_pair(b, x[0])
    return pairs.quick_sum(b, high, b.add(low, b.div(x[1], x[0])))


def _scaled_log(b: Control, x: Val, factor: tuple[float, float]) -> Val:
    high, low = log_pair(b, x)
    scaled = pairs.rounded(b, pairs.multiply(b, (high, low), factor))
    return b.select(b.cmp("lt", b.abs(high), INFINITY), scaled, high)


@with_single(single.log2)
def log2(b: Control, x: Val) -> Val:
    """The logarithm to base 2."""
    return _scaled_log(b, x, pairs.LOG2_E)


@with_single(single.log10)
def log10(b: Control, x: Val) -> Val:
    """The logarithm to base 10."""
    return _scaled_log(b, x, pairs.LOG10_E)


@function
def softplus(b: Control, x: Val) -> Val:
    """log(1 + exp(x)), right in both tails."""
    return b.add(b.maximum(x, 0.0), log1p(b, exp(b, b.neg(b.abs(x)))))


def _larger_and_distance(b: Control, x: Val, y: Val) -> tuple[Val, Val]:
    """max(x, y), and -|x - y|, which is 0 for equal infinities."""
    return b.maximum(x, y), b.select(b.cmp("eq", x, y), 0.0, b.neg(b.abs(b.sub(x, y))))


@wide
def logaddexp(b: Control, x: Val, y: Val) -> Val:
    """log(exp(x) + exp(y))."""
    larger, distance = _larger_and_distance(b, x, y)
    return b.add(larger, log1p(b, exp(b, distance)))


@wide
def logaddexp2(b: Control, x: Val, y: Val) -> Val:
    """log2(2**x + 2**y)."""
    larger, distance = _larger_and_distance(b, x, y)
    return b.add(larger, b.mul(log1p(b, exp(b, b.mul(distance, LN_2))), LOG2_E))


def _with_ln_2(b: Control, x: Pair, where: Val) -> Val:
    """x, and log(2) more where ``where`` is true, as one float."""
    return b.select(where, pairs.rounded(b, pairs.add(b, x, pairs.LN_2)), pairs.rounded(b, x))


@wide
def asinh(b: Control, x: Val) -> Val:
    """The inverse hyperbolic sine: log(1 + a + a**2 / (1 + sqrt(1 + a**2))) with the sign of ``x``."""
    a = b.abs(x)
    big = b.cmp("gt", a, 2.0**500)
    side = b.select(big, 1.0, a)
    square = b.mul(side, side)
    quotient = b.div(square, b.add(b.sqrt(b.add(square, 1.0)), 1.0))
    high, low = pairs.two_sum(b, side, quotient)
    one, error = pairs.two_sum(b, 1.0, high)
    argument = b.select(big, a, one)
    logarithm = log_of_pair(b, (argument, b.select(big, 0.0, b.add(error, low))))
    result = _with_ln_2(b, logarithm, big)
    result = b.select(b.cmp("lt", a, INFINITY), result, a)
    return b.copysign(b.select(b.cmp("lt", a, 1e-8), a, result), x)


@wide
def acosh(b: Control, x: Val) -> Val:
    """The inverse hyperbolic cosine: log(1 + t + sqrt(t (t + 2))) for t = x - 1."""
    big = b.cmp("gt", x, 2.0**500)
    t = b.select(big, 1.0, b.sub(x, 1.0))
    root = pairs.square_root(b, pairs.multiply(b, (t, b.const(0.0, DOUBLE.dtype)), pairs.two_sum(b, t, 2.0)))
    one, error = pairs.two_sum(b, 1.0, t)
    high, low = pairs.add(b, (one, error), root)
    logarithm = log_of_pair(b, (b.select(big, x, high), b.select(big, 0.0, low)))
    result = b.select(b.cmp("lt", x, INFINITY), _with_ln_2(b, logarithm, big), x)
    return b.select(b.cmp("lt", x, 1.0), NAN, result)


@wide
def atanh(b: Control, x: Val) -> Val:
    """The inverse hyperbolic tangent: log(1 + 2 a / (1 - a)) / 2 with the sign of ``x``."""
    a = b.abs(x)
    inside = b.cmp("lt", a, 1.0)
    side = b.select(inside, a, 0.5)
    quotient = pairs.divide(b, (b.add(side, side), 0.0), pairs.two_sum(b, 1.0, b.neg(side)))
    logarithm = pairs.rounded(b, log_of_pair(b, pairs.add(b, quotient, (1.0, 0.0))))
    result = b.select(b.cmp("lt", a, 1e-8), a, b.mul(logarithm, 0.5))
    outside = b.select(b.cmp("eq", a, 1.0), INFINITY, b.select(b.is_nan(a), a, NAN))
    return b.copysign(b.select(inside, result, outside), x)


@wide
def hypot(b: Control, x: Val, y: Val) -> Val:
    """sqrt(x**2 + y**2) without overflow; as in C, an infinite side outweighs a NaN."""
    x, y = b.abs(x), b.abs(y)
    large = b.maximum(x, y)
    up, down = b.cmp("lt", large, 2.0**-400), b.cmp("gt", large, 2.0**400)
    scale = b.select(up, 2.0**600, b.select(down, 2.0**-600, b.const(1.0, DOUBLE.dtype)))
    back = b.select(up, 2.0**-600, b.select(down, 2.0**600, b.const(1.0, DOUBLE.dtype)))
    x, y = b.mul(x, scale), b.mul(y, scale)
    square = pairs.add(b, pairs.two_product(b, x, x), pairs.two_product(b, y, y))
    length = b.mul(pairs.rounded(b, pairs.square_root(b, square)), back)
    infinite = b.or_(b.cmp("eq", x, INFINITY), b.cmp("eq", y, INFINITY))
    return b.select(infinite, INFINITY, length)


def pow_double(b: Control, x: Val, y: Val) -> Val:
    """|x|**y of float64, as exp(y log |x|) in pairs."""
    high, low = log_pair(b, b.abs(x))
    exponent, error = pairs.two_product(b, y, high)
    return exp_rounded(b, exponent, b.fma(y, low, error))


def _with_special_cases(b: Control, x: Val, y: Val, magnitude: Val) -> Val:
    """x**y of |x|**y, with the special cases of C99 annex F."""
    whole = b.cmp("eq", b.trunc(y), y)
    half = b.mul(y, 0.5)
    odd = b.and_(whole, b.cmp("ne", b.trunc(half), half))
    negative = b.cmp("lt", b.bitcast(x, format_of(x).bits), 0)
    result = b.select(b.and_(odd, negative), b.neg(magnitude), magnitude)
    defined = b.or_(whole, b.or_(b.cmp("ge", x, 0.0), b.cmp("eq", x, -INFINITY)))
    result = b.select(b.or_(defined, b.is_nan(x)), result, NAN)
    reciprocal = b.and_(b.cmp("eq", x, -1.0), b.cmp("eq", b.abs(y), INFINITY))
    one = b.or_(b.or_(b.cmp("eq", y, 0.0), b.cmp("eq", x, 1.0)), reciprocal)
    return b.select(one, 1.0, result)


@with_single(lambda b, x, y: _with_special_cases(b, x, y, single.power(b, x, y)))
def pow_(b: Control, x: Val, y: Val) -> Val:
    """x**y."""
    return _with_special_cases(b, x, y, pow_double(b, x, y))
