"""The exponential function and its relatives.

Bounds in units in the last place, found by sweeps against twice the precision:
exp 1, expm1 1.5, tanh 1.4, sigmoid 2.3, the others 0.51 (float32);
exp 1.1, expm1 2, tanh 1.2, sigmoid 2.4, the others 0.8 (float64).
"""

from __future__ import annotations

from twofold.compiler.lower import target
from twofold.compiler.lower.control import Control
from twofold.compiler.lower.math import pairs, single
from twofold.compiler.lower.math.core import (
    DOUBLE,
    LOG2_E,
    SINGLE,
    Format,
    clamp,
    format_of,
    function,
    horner,
    quotient,
    scale_exponent,
    with_single,
)
from twofold.compiler.lower.math.pairs import Pair
from twofold.compiler.lower.math.tables import SINH, TANH, TANH_BELOW
from twofold.compiler.lower.values import LANES, Val

# minimax fits of (exp(r) - 1 - r) / r**2 on |r| <= log(2) / 2, relative to exp(r) - 1
EXP_SINGLE = (0.5, 0.16666666, 0.041666493, 0.008333544, 0.0013932362, 0.0001976347)
EXP_DOUBLE = (
    0.5,
    0.16666666666666666,
    0.041666666666666664,
    0.008333333333334332,
    0.0013888888888888595,
    0.0001984126983775282,
    2.4801587312479535e-05,
    2.755732465703046e-06,
    2.755728725054414e-07,
    2.5048269457137362e-08,
    2.090986776729533e-09,
    1.7084893187801747e-10,
)
_SUBNORMAL_BITS = 149.0  # the smallest subnormal number of float32 is 2**-149
_SUBNORMAL_BELOW = -87.0  # exp(x) may be subnormal below
_LIFT = 64.0
# minimax fit of (tanh(x) - x) / x**3 in x**2 on |x| <= 0.65
_TANH_SINGLE = (-0.33333328, 0.13333113, -0.053935457, 0.021640798, -0.008034159, 0.0020161956)


def _reduce(b: Control, fmt: Format, x: Val, rest: Val | None = None) -> tuple[Val, Val]:
    """(n + magic, exp(r) - 1) with x + rest = n log 2 + r, |r| <= log(2) / 2, and n an integer.

    ``rest`` holds digits below the last place of ``x``. Adding the magic number, 1.5 * 2**mantissa, rounds to the
    nearest integer and leaves it in the low bits.
    """
    shifted = b.fma(x, LOG2_E, fmt.round_magic)
    whole = b.sub(shifted, fmt.round_magic)
    r = b.fma(whole, -fmt.ln2_high, x)
    r = b.fma(whole, -fmt.ln2_low, r)
    if rest is not None:
        r = b.add(r, rest)
    q = horner(b, EXP_SINGLE if fmt is SINGLE else EXP_DOUBLE, r)
    return shifted, b.fma(b.mul(r, r), q, r)


def _integer(b: Control, fmt: Format, shifted: Val) -> Val:
    """The n of ``shifted`` = n + magic as an integer."""
    magic = b.bitcast(b.const(fmt.round_magic, fmt.dtype, shifted.lanes), fmt.bits)
    return b.sub(b.bitcast(shifted, fmt.bits), magic)


@function
def exp(b: Control, x: Val) -> Val:
    """exp(x), right down to subnormal results."""
    fmt = format_of(x)
    low, high, zero = (-104.0, 89.0, -103.98) if fmt is SINGLE else (-746.0, 710.0, -745.14)
    shifted, p = _reduce(b, fmt, clamp(b, x, low, high))
    p = b.add(p, 1.0)
    if _scales(p):
        return _scaled(b, p, b.sub(shifted, fmt.round_magic), b.cmp("lt", x, _SUBNORMAL_BELOW))
    # a product that underflows takes Intel's processors some 150 cycles, even one that rounds to 0
    vanishes = b.cmp("lt", x, zero)
    first, second = _powers(b, fmt, _integer(b, fmt, shifted))
    return b.mul(b.mul(p, first), b.select(vanishes, 0.0, second))


def _scales(x: Val) -> bool:
    return x.dtype is SINGLE.dtype and x.lanes == LANES and target.scales_by_powers()


def _scaled(b: Control, p: Val, n: Val, perhaps: Val) -> Val:
    """p * 2**n of float32; few vectors have lanes in ``perhaps``, whose results may be subnormal.

    A product that rounds to a subnormal number takes Intel's processors 150 cycles. The bits of such a number are the
    integer nearest to p * 2**(n + 149), which is at most 2**23.
    """
    branch = b.if_(b.any_lane(perhaps))
    with branch:
        lifted = b.scale(p, b.select(perhaps, b.add(n, _LIFT), n))
        small = b.and_(perhaps, b.cmp("lt", lifted, 2.0**_LIFT * SINGLE.smallest_normal))
        back = b.select(perhaps, b.const(-_LIFT, SINGLE.dtype, p.lanes), 0.0)
        scaled = b.scale(lifted, b.select(small, _SUBNORMAL_BITS - _LIFT, back))
        magic = b.const(2.0**SINGLE.mantissa, SINGLE.dtype, p.lanes)
        bits = b.sub(b.bitcast(b.add(scaled, magic), SINGLE.bits), b.bitcast(magic, SINGLE.bits))
        branch.give([b.select(small, b.bitcast(bits, SINGLE.dtype), scaled)])
    with branch.else_():
        branch.give([b.scale(p, n)])
    (result,) = branch.results
    return result


def _powers(b: Control, fmt: Format, n: Val) -> tuple[Val, Val]:
    """Two factors whose product is 2**n, which itself may be out of range at both ends."""
    half = b.shr(n, 1)
    return scale_exponent(b, fmt, half), scale_exponent(b, fmt, b.sub(n, half))


def _times_power(b: Control, fmt: Format, x: Val, n: Val) -> Val:
    """x * 2**n; only the last product rounds."""
    first, second = _powers(b, fmt, n)
    return b.mul(b.mul(x, first), second)


def exp_times(b: Control, x: Val, rest: Val, factor: Val, least: float) -> Val:
    """factor * exp(x + rest) for -746 <= x <= 0 and a factor up to 1, right down to subnormal results.

    The factor joins before 1 is added to exp(r) - 1, which spares a rounding. Below ``least`` the result rounds to 0.
    """
    fmt = format_of(x)
    shifted, p = _reduce(b, fmt, x, rest)
    p = b.fma(p, factor, factor)
    if _scales(p):
        n = b.sub(shifted, fmt.round_magic)
        return _scaled(b, p, n, b.cmp("lt", n, -60.0))
    vanishes = b.cmp("lt", x, least)
    # by way of a larger power, as that of the smallest results has no normal exponent
    raised = 64 if fmt is SINGLE else 512
    n = b.add(_integer(b, fmt, shifted), raised)
    last = b.select(vanishes, 0.0, b.const(0.5**raised, fmt.dtype, x.lanes))
    return b.mul(b.mul(p, scale_exponent(b, fmt, n)), last)


def exp_bounded(b: Control, x: Val) -> Val:
    """exp(x) for |x| < 80, where neither 2**n nor the result leaves the normal range."""
    fmt = format_of(x)
    shifted, p = _reduce(b, fmt, x)
    p = b.add(p, 1.0)
    if _scales(p):
        return b.scale(p, b.sub(shifted, fmt.round_magic))
    return b.mul(p, scale_exponent(b, fmt, _integer(b, fmt, shifted)))


@function
def expm1(b: Control, x: Val) -> Val:
    """exp(x) - 1 without cancellation."""
    fmt = format_of(x)
    low, high = (-40.0, 89.0) if fmt is SINGLE else (-60.0, 710.0)
    shifted, p = _reduce(b, fmt, clamp(b, x, low, high))
    n = _integer(b, fmt, shifted)
    # half of 2**n, which for the largest n is not finite
    scale = scale_exponent(b, fmt, b.sub(n, 1))
    half = b.fma(p, scale, b.sub(scale, 0.5))
    result = b.select(b.cmp("eq", n, 0), p, b.add(half, half))
    return b.copysign(result, x)


@function
def sigmoid(b: Control, x: Val) -> Val:
    """1 / (1 + exp(-x)), with its subnormal tail."""
    e = exp(b, b.neg(b.abs(x)))
    result = b.div(b.select(b.cmp("lt", x, 0.0), e, 1.0), b.add(e, 1.0))
    return result


@function
def tanh(b: Control, x: Val) -> Val:
    """The hyperbolic tangent."""
    fmt = format_of(x)
    magnitude = b.abs(x)
    if fmt is SINGLE:
        e = exp_bounded(b, clamp(b, b.add(magnitude, magnitude), None, 20.0))
        large = b.sub(1.0, b.div(2.0, b.add(e, 1.0)))
        square = b.mul(x, x)
        small = b.fma(b.mul(square, magnitude), horner(b, _TANH_SINGLE, square), magnitude)
        result = b.select(b.cmp("lt", magnitude, 0.65), small, large)
    else:
        square = b.mul(x, x)
        small = b.fma(b.mul(square, magnitude), quotient(b, TANH, TANH_BELOW, square), magnitude)
        e = exp(b, clamp(b, b.add(magnitude, magnitude), None, 40.0))
        large = b.sub(1.0, b.div(2.0, b.add(e, 1.0)))
        result = b.select(b.cmp("lt", magnitude, 1.0), small, large)
    return b.copysign(result, x)


def _nearest_multiple(b: Control, x: Val) -> tuple[Val, Val]:
    """The integer nearest to ``x``, as float64 and as an integer vector."""
    shifted = b.add(x, DOUBLE.round_magic)
    magic = b.bitcast(b.const(DOUBLE.round_magic, DOUBLE.dtype, x.lanes), DOUBLE.bits)
    return b.sub(shifted, DOUBLE.round_magic), b.sub(b.bitcast(shifted, DOUBLE.bits), magic)


def _exp_reduced(b: Control, r: Pair) -> Pair:
    """exp(r) of float64 to about 57 bits, for |r| <= log(2) / 2."""
    q = horner(b, EXP_DOUBLE, r[0])
    high, low = pairs.quick_sum(b, 1.0, r[0])
    return pairs.quick_sum(b, high, b.add(low, b.fma(b.mul(r[0], r[0]), q, r[1])))


def exp_pair(b: Control, x: Val, rest: Val | float = 0.0) -> tuple[Val, Pair]:
    """(n, p) with exp(x + rest) = 2**n p in float64, for |x| <= 800 and small ``rest``."""
    whole, n = _nearest_multiple(b, b.mul(x, LOG2_E))
    r = b.fma(whole, -DOUBLE.ln2_high, x)
    correction = b.fma(whole, -DOUBLE.ln2_low, rest)
    return n, _exp_reduced(b, pairs.quick_sum(b, r, correction))


def exp_rounded(b: Control, x: Val, rest: Val) -> Val:
    """exp(x + rest) in float64 with an error below 0.6 units, for any ``x``; ``rest`` is below its last place."""
    inside = b.cmp("lt", b.abs(x), 800.0)
    n, p = exp_pair(b, clamp(b, x, -746.0, 710.0), b.select(inside, rest, 0.0))
    return _times_power(b, DOUBLE, pairs.rounded(b, p), n)


@with_single(single.exp2)
def exp2(b: Control, x: Val) -> Val:
    """2**x."""
    whole, n = _nearest_multiple(b, clamp(b, x, -1076.0, 1025.0))
    r = pairs.two_product(b, b.sub(clamp(b, x, -1076.0, 1025.0), whole), pairs.LN_2[0])
    return _times_power(b, DOUBLE, pairs.rounded(b, _exp_reduced(b, r)), n)


def _halves(b: Control, x: Val) -> tuple[Pair, Pair]:
    """exp(|x|) / 4 and exp(-|x|) / 4 as pairs; quarters, as the first may be twice too large for the format."""
    a = clamp(b, b.abs(x), None, 710.6)
    found = []
    for value in (a, b.neg(a)):
        n, (high, low) = exp_pair(b, value)
        exponent = b.sub(n, 2)
        scale = scale_exponent(b, DOUBLE, b.select(b.cmp("lt", exponent, -1000), -1000, exponent))
        found.append((b.mul(high, scale), b.mul(low, scale)))
    return found[0], found[1]


@with_single(single.sinh)
def sinh(b: Control, x: Val) -> Val:
    """The hyperbolic sine."""
    square = b.mul(x, x)
    small = b.fma(b.mul(square, x), horner(b, SINH, square), x)
    grown, shrunk = _halves(b, x)
    high, low = pairs.add(b, grown, (b.neg(shrunk[0]), b.neg(shrunk[1])))
    large = b.mul(b.add(high, low), 2.0)
    return b.copysign(b.select(b.cmp("lt", b.abs(x), 1.0), small, large), x)


@with_single(single.cosh)
def cosh(b: Control, x: Val) -> Val:
    """The hyperbolic cosine."""
    high, low = pairs.add(b, *_halves(b, x))
    return b.mul(b.add(high, low), 2.0)
