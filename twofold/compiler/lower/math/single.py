"""Functions of float32 that are computed in float64: short fits, whose errors vanish where the result is rounded.

The largest error is below 0.51 units in the last place. Divisions and roots of float64 take many cycles, so they are
those of float32 with a step of Newton's method.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.compiler.lower.control import Control
from twofold.compiler.lower.math import quarter_turns
from twofold.compiler.lower.math.core import DOUBLE, INFINITY, LOG2_E, NAN, PI, SINGLE, clamp, horner
from twofold.compiler.lower.math.tables import (
    ASIN_SHORT,
    ATAN_SHORT,
    EXP2_SHORT,
    LOG2_SHORT,
    SINH,
    TAN_SHORT,
)
from twofold.compiler.lower.values import Val

_ROOT_OF_HALF = 0x3F3504F3  # the bits of sqrt(1/2)
_LOG10_2 = 0.3010299956639812


def _wide(b: Control, x: Val) -> Val:
    return b.cast(x, DOUBLE.dtype)


def _rounded(b: Control, x: Val) -> Val:
    return b.cast(x, SINGLE.dtype)


def _two_chains(b: Control, coefficients: Sequence[float], x: Val) -> Val:
    """As ``horner``, with even and odd powers apart, which wait for each other half as long."""
    square = b.mul(x, x)
    return b.fma(horner(b, coefficients[1::2], square), x, horner(b, coefficients[::2], square))


def _reciprocal(b: Control, x: Val) -> Val:
    """1 / x to about 46 bits, of a float64 within the range of float32."""
    near = _wide(b, b.div(1.0, _rounded(b, x)))
    return b.fma(b.fma(b.neg(x), near, 1.0), near, near)


def _log2(b: Control, x: Val) -> Val:
    """log2(x) in float64 of a float32 that is not negative."""
    tiny = b.cmp("lt", x, SINGLE.smallest_normal)
    bits = b.bitcast(b.select(tiny, b.mul(x, 2.0**SINGLE.bias_shift), x), SINGLE.bits)
    k = b.shr(b.sub(bits, _ROOT_OF_HALF), SINGLE.mantissa)
    significand = b.bitcast(b.sub(bits, b.shl(k, SINGLE.mantissa)), SINGLE.dtype)
    whole = b.cast(b.select(tiny, b.sub(k, SINGLE.bias_shift), k), SINGLE.dtype)
    # of 0 and of infinity the significand is 1
    whole = b.select(b.cmp("lt", x, INFINITY), whole, x)
    whole = b.select(b.cmp("eq", x, 0.0), -INFINITY, whole)
    f = b.sub(_wide(b, significand), 1.0)
    return b.fma(f, _two_chains(b, LOG2_SHORT, f), _wide(b, whole))


def _exp2(b: Control, x: Val) -> Val:
    """2**x in float64, with its exponent as far as float32 needs it."""
    x = clamp(b, x, -160.0, 140.0)
    shifted = b.add(x, DOUBLE.round_magic)
    p = horner(b, EXP2_SHORT, b.sub(x, b.sub(shifted, DOUBLE.round_magic)))
    # the low bits of ``shifted`` are the whole part
    exponent = b.shl(b.bitcast(shifted, DOUBLE.bits), DOUBLE.mantissa)
    return b.bitcast(b.add(b.bitcast(p, DOUBLE.bits), exponent), DOUBLE.dtype)


def exp2(b: Control, x: Val) -> Val:
    """2**x."""
    return _rounded(b, _exp2(b, _wide(b, x)))


def log2(b: Control, x: Val) -> Val:
    """The logarithm to base 2."""
    return b.select(b.cmp("lt", x, 0.0), NAN, _rounded(b, _log2(b, x)))


def log10(b: Control, x: Val) -> Val:
    """The logarithm to base 10."""
    return b.select(b.cmp("lt", x, 0.0), NAN, _rounded(b, b.mul(_log2(b, x), _LOG10_2)))


def power(b: Control, x: Val, y: Val) -> Val:
    """|x|**y, not yet with the special cases of C99."""
    return _rounded(b, _exp2(b, b.mul(_wide(b, y), _log2(b, b.abs(x)))))


def _grown_and_shrunk(b: Control, x: Val) -> tuple[Val, Val]:
    """exp(|x|) / 2 and exp(-|x|) / 2 in float64."""
    grown = _exp2(b, b.mul(b.abs(_wide(b, x)), LOG2_E))
    return b.mul(grown, 0.5), b.mul(_reciprocal(b, grown), 0.5)


def sinh(b: Control, x: Val) -> Val:
    """The hyperbolic sine."""
    wide = b.abs(_wide(b, x))
    square = b.mul(wide, wide)
    small = b.fma(b.mul(square, wide), horner(b, SINH[:4], square), wide)
    grown, shrunk = _grown_and_shrunk(b, x)
    result = b.select(b.cmp("lt", wide, 0.5), small, b.sub(grown, shrunk))
    return b.copysign(_rounded(b, result), x)


def cosh(b: Control, x: Val) -> Val:
    """The hyperbolic cosine."""
    return _rounded(b, b.add(*_grown_and_shrunk(b, x)))


def tan(b: Control, x: Val) -> Val:
    """The tangent."""
    r, q = quarter_turns.reduce_single_in_double(b, x)
    tangent = b.mul(r, horner(b, TAN_SHORT, b.mul(r, r)))
    result = b.select(b.cmp("ne", b.and_(q, 1), 0), b.neg(_reciprocal(b, tangent)), tangent)
    return b.select(b.cmp("eq", x, 0.0), x, _rounded(b, result))


def _atan(b: Control, t: Val) -> Val:
    """atan(t) in float64 for 0 <= t <= 1."""
    return b.mul(t, _two_chains(b, ATAN_SHORT, b.mul(t, t)))


def atan(b: Control, x: Val) -> Val:
    """The inverse tangent."""
    a = b.abs(_wide(b, x))
    steep = b.cmp("gt", a, 1.0)
    angle = _atan(b, b.select(steep, _reciprocal(b, clamp(b, a, None, 2.0**60)), a))
    return b.copysign(_rounded(b, b.select(steep, b.sub(PI / 2, angle), angle)), x)


def atan2(b: Control, y: Val, x: Val) -> Val:
    """The angle of the point (x, y), with the special cases of C99 annex F."""
    a, c = b.abs(y), b.abs(x)
    steep = b.cmp("gt", a, c)
    low, high = b.select(steep, c, a), b.select(steep, a, c)
    # 0 / 0 counts as 0, infinity / infinity as 1, finite / infinity as 0
    both = b.cmp("eq", low, INFINITY)
    high = b.select(b.or_(both, b.cmp("eq", high, 0.0)), 1.0, high)
    angle = _atan(b, b.div(_wide(b, b.select(both, 1.0, low)), _wide(b, high)))
    angle = b.select(steep, b.sub(PI / 2, angle), angle)
    left = b.cmp("lt", b.bitcast(x, SINGLE.bits), 0)
    result = b.copysign(_rounded(b, b.select(left, b.sub(PI, angle), angle)), y)
    return b.select(b.or_(b.is_nan(x), b.is_nan(y)), NAN, result)


def _asin_parts(b: Control, x: Val) -> tuple[Val, Val]:
    """(p, large) in float64: where a = |x| <= 1/2, p = asin(a), else p = asin(sqrt((1 - a) / 2))."""
    a = b.abs(x)
    large = b.cmp("gt", a, 0.5)
    half = b.mul(b.sub(1.0, a), 0.5)
    near = b.sqrt(half)
    root, square = _wide(b, near), _wide(b, half)
    slope = b.div(0.5, b.select(b.cmp("eq", near, 0.0), 1.0, near))
    root = b.fma(b.fma(b.neg(root), root, square), _wide(b, slope), root)
    t = b.select(large, root, _wide(b, a))
    return b.mul(t, horner(b, ASIN_SHORT, b.select(large, square, b.mul(t, t)))), large


def asin(b: Control, x: Val) -> Val:
    """The inverse sine."""
    p, large = _asin_parts(b, x)
    return b.copysign(_rounded(b, b.select(large, b.fma(p, -2.0, PI / 2), p)), x)


def acos(b: Control, x: Val) -> Val:
    """The inverse cosine."""
    p, large = _asin_parts(b, x)
    negative = b.cmp("lt", x, 0.0)
    signed = b.select(negative, b.neg(p), p)
    outer = b.fma(signed, 2.0, b.select(negative, PI, b.const(0.0, DOUBLE.dtype)))
    return _rounded(b, b.select(large, outer, b.sub(PI / 2, signed)))
