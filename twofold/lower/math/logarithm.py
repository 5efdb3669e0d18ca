"""Logarithms, inverse hyperbolic functions and powers.

Bounds in units in the last place, found by sweeps against twice the precision:
log 0.9, log1p 1.7, softplus 1.8, the others 0.51 (float32);
log 1, log1p 1.4, softplus 2, the others by the C library (float64).
logaddexp is within 2 units of its larger operand or of 1, as its result may cancel to anything smaller.
"""

from __future__ import annotations

from twofold import dtypes
from twofold.lower.control import Control
from twofold.lower.math.core import (
    INFINITY,
    LN_2,
    LOG2_E,
    NAN,
    SINGLE,
    Format,
    format_of,
    function,
    horner,
    single_in_double,
    wide,
)
from twofold.lower.math.exponential import exp
from twofold.lower.values import Val

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
_LOG10_E = 0.4342944819032518


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
    fmt = format_of(x)
    k, _ = _split(b, fmt, b.add(x, 1.0))
    shift = b.shl(k, fmt.mantissa)
    # x / 2**k and 2**-k are exact, so (x + 1) / 2**k - 1 is rounded once where it matters
    scaled = b.bitcast(b.sub(b.bitcast(x, fmt.bits), shift), fmt.dtype)
    unit = b.bitcast(b.sub(fmt.one, shift), fmt.dtype)
    unit = b.select(b.cmp("gt", k, 2 * fmt.mantissa), 0.0, unit)
    result = _scaled_log1p(b, fmt, b.add(scaled, b.sub(unit, 1.0)), k)
    result = b.select(b.cmp("lt", x, INFINITY), result, x)
    result = b.select(b.cmp("eq", x, -1.0), -INFINITY, result)
    return b.copysign(b.select(b.cmp("lt", x, -1.0), NAN, result), x)


@single_in_double("log2")
def _log2(b: Control, x: Val) -> Val:
    return b.mul(log(b, x), LOG2_E)


@single_in_double("log10")
def _log10(b: Control, x: Val) -> Val:
    return b.mul(log(b, x), _LOG10_E)


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


@single_in_double("asinh")
def _asinh(b: Control, x: Val) -> Val:
    a = b.abs(x)
    square = b.mul(a, a)
    sum_ = b.add(a, b.div(square, b.add(b.sqrt(b.add(square, 1.0)), 1.0)))
    return b.copysign(log1p(b, b.select(b.cmp("eq", a, INFINITY), a, sum_)), x)


@single_in_double("acosh")
def _acosh(b: Control, x: Val) -> Val:
    t = b.sub(x, 1.0)
    root = b.sqrt(b.mul(t, b.add(t, 2.0)))
    return b.select(b.cmp("lt", x, 1.0), NAN, log1p(b, b.add(t, root)))


@single_in_double("atanh")
def _atanh(b: Control, x: Val) -> Val:
    a = b.abs(x)
    return b.copysign(b.mul(log1p(b, b.div(b.add(a, a), b.sub(1.0, a))), 0.5), x)


@single_in_double("hypot")
def _hypot(b: Control, x: Val, y: Val) -> Val:
    x, y = b.abs(x), b.abs(y)
    infinite = b.or_(b.cmp("eq", x, INFINITY), b.cmp("eq", y, INFINITY))
    return b.select(infinite, INFINITY, b.sqrt(b.fma(x, x, b.mul(y, y))))


@single_in_double("pow")
def _pow(b: Control, x: Val, y: Val) -> Val:
    """x**y with the special cases of C99 annex F; float64 is more than enough for a float32 result."""
    magnitude = exp(b, b.mul(y, log(b, b.abs(x))))
    whole = b.cmp("eq", b.trunc(y), y)
    half = b.mul(y, 0.5)
    odd = b.and_(whole, b.cmp("ne", b.trunc(half), half))
    negative = b.cmp("lt", b.bitcast(x, dtypes.int64), 0)
    result = b.select(b.and_(odd, negative), b.neg(magnitude), magnitude)
    defined = b.or_(whole, b.or_(b.cmp("ge", x, 0.0), b.cmp("eq", x, -INFINITY)))
    result = b.select(b.or_(defined, b.is_nan(x)), result, NAN)
    reciprocal = b.and_(b.cmp("eq", x, -1.0), b.cmp("eq", b.abs(y), INFINITY))
    one = b.or_(b.or_(b.cmp("eq", y, 0.0), b.cmp("eq", x, 1.0)), reciprocal)
    return b.select(one, 1.0, result)
