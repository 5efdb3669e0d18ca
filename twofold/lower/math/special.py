"""The error function, its inverse, and functions taken from the C library.

Bounds in units in the last place: erf 1.2, erfc 3.5, erfinv 0.51 (float32); the C library's own in float64.
"""

from __future__ import annotations

from twofold.lower.control import Control
from twofold.lower.math.core import (
    INFINITY,
    NAN,
    SINGLE,
    clamp,
    format_of,
    function,
    horner,
    in_double,
    library,
)
from twofold.lower.math.exponential import exp, exp_bounded, exp_times
from twofold.lower.math.logarithm import log
from twofold.lower.values import Val

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
# M. Giles, "Approximating the erfinv function", 2010: single precision, centre and tail, lowest power first
_ERFINV_CENTRE = (
    1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087,
    -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08,
)  # fmt: skip
_ERFINV_TAIL = (
    2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773,
    -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257,
)  # fmt: skip
_HALF_SQRT_PI = 0.886226925452758

for _name in ("lgamma", "tgamma", "cbrt"):
    library(_name)


@function
def erf(b: Control, x: Val) -> Val:
    """The error function."""
    if format_of(x) is not SINGLE:
        return b.call_library("erf", x)
    square = b.mul(x, x)
    small = b.fma(x, horner(b, _ERF_SMALL, square), x)
    t = clamp(b, b.abs(x), None, 4.0)
    exponent = b.fma(t, horner(b, _ERF_LARGE, t), b.neg(t))
    large = b.sub(1.0, exp_bounded(b, exponent))
    return b.copysign(b.select(b.cmp("lt", t, 0.925), small, large), x)


@function
def erfc(b: Control, x: Val) -> Val:
    """1 - erf(x), with all digits of its tail and the subnormal results at its end."""
    if format_of(x) is not SINGLE:
        return b.call_library("erfc", x)
    square = b.mul(x, x)
    small = b.sub(1.0, b.fma(x, horner(b, _ERF_SMALL, square), x))
    # beyond 10.06 the result rounds to zero
    t = clamp(b, b.abs(x), None, 10.1)
    scaled = horner(b, _ERFC_LARGE, b.div(b.sub(t, 2.0), b.add(t, 2.0)))
    negative = b.neg(b.mul(t, t))
    # the digits that the rounded square lost would be relative errors of the exponential
    lost = b.fma(b.neg(t), t, b.neg(negative))
    tail = exp_times(b, negative, lost, b.div(scaled, b.fma(t, 2.0, 1.0)))
    large = b.select(b.cmp("lt", x, 0.0), b.sub(2.0, tail), tail)
    return b.select(b.cmp("lt", t, 0.6), small, large)


def _erfinv_double(b: Control, x: Val) -> Val:
    a = b.abs(x)
    complement = b.sub(1.0, a)
    w = b.neg(log(b, b.mul(complement, b.add(a, 1.0))))
    root = b.sqrt(w)
    tail = horner(b, _ERFINV_TAIL, b.sub(root, 3.0))
    # the tail was fitted up to w = 17; beyond it the square root is the leading term
    tail = b.select(b.cmp("gt", w, 17.0), b.sub(root, 0.2), tail)
    y = b.mul(a, b.select(b.cmp("lt", w, 5.0), horner(b, _ERFINV_CENTRE, b.sub(w, 2.5)), tail))
    central = b.cmp("lt", a, 0.5)
    for _ in range(3):
        # Halley's step for erf(y) = a; near 1 through erfc, which does not cancel
        error = b.select(
            central, b.sub(b.call_library("erf", y), a), b.sub(complement, b.call_library("erfc", y))
        )
        step = b.mul(b.mul(error, _HALF_SQRT_PI), exp(b, b.mul(y, y)))
        y = b.sub(y, b.div(step, b.fma(y, step, 1.0)))
    y = b.select(b.cmp("eq", a, 1.0), INFINITY, y)
    return b.copysign(b.select(b.cmp("gt", a, 1.0), NAN, y), x)


@function
def erfinv(b: Control, x: Val) -> Val:
    """The inverse of the error function."""
    if format_of(x) is SINGLE:
        return in_double(b, _erfinv_double, x)
    return _erfinv_double(b, x)
