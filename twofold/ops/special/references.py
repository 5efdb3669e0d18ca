"""Values of special functions by NumPy in extended precision, slowly, for the tests and the tables of errors.

They use other formulas than the generated code: series, continued fractions and integrals along paths on which the
trapezoidal rule converges fast. Formulas of NIST's Digital Library of Mathematical Functions (DLMF), dlmf.nist.gov.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy

Wide = numpy.longdouble
PI = 4 * numpy.arctan(Wide(1))
EULER = Wide("0.57721566490153286060651209008240243")
_BERNOULLI = [
    Wide(above) / Wide(below)
    for above, below in (
        (1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798),
        (-174611, 330), (854513, 138), (-236364091, 2730),
    )
]  # fmt: skip


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` on operands in extended precision, without warnings."""

    def made(*operands: Any) -> Any:
        with numpy.errstate(all="ignore"):
            return function(*[numpy.asarray(x, Wide) for x in operands])

    return made


def _fraction(x: Any, term: Callable[[int], tuple[Any, Any]], count: int) -> Any:
    """The continued fraction b(0) + a(1) / (b(1) + a(2) / (b(2) + ...)) of ``term(k) = (a(k), b(k))``."""
    result = term(count)[1] + 0 * x
    for k in range(count, 0, -1):
        result = term(k - 1)[1] + term(k)[0] / result
    return result


def _same(some: Any, others: Any) -> bool:
    """Whether a further step changed nothing."""
    return bool(numpy.array_equal(some, others, equal_nan=True))


# Error functions


def _erf_series(x: Any) -> Any:
    """DLMF 7.6.2."""
    total = term = x
    for k in range(1, 130):
        term = term * (2 * x * x) / (2 * k + 1)
        before, total = total, total + term
        if _same(before, total):
            break
    return total * numpy.exp(-x * x) * 2 / numpy.sqrt(PI)


def _erfcx_positive(x: Any) -> Any:
    """DLMF 7.9.1 from 2 on."""
    near = numpy.minimum(x, 2)
    result = numpy.exp(near * near) * (1 - _erf_series(near))
    if not (x < 2).all():
        safe = numpy.maximum(x, 2)
        far = 1 / _fraction(safe, lambda k: (Wide(k) / 2, safe), 220) / numpy.sqrt(PI)
        result = numpy.where(x < 2, result, far)
    return numpy.where(numpy.isinf(x), 0, result)


@wide
def erf(x: Any) -> Any:
    """The error function."""
    near = numpy.clip(x, -1, 1)
    return numpy.where(
        numpy.isnan(x), x, numpy.where(abs(x) < 1, _erf_series(near), numpy.sign(x) - _signed_tail(x))
    )


def _signed_tail(x: Any) -> Any:
    return numpy.copysign(numpy.exp(-x * x) * _erfcx_positive(abs(x)), x)


@wide
def erfc(x: Any) -> Any:
    """1 - erf(x)."""
    tail = numpy.exp(-x * x) * _erfcx_positive(abs(x))
    return numpy.where(abs(x) < 1, 1 - _erf_series(numpy.clip(x, -1, 1)), numpy.where(x < 0, 2 - tail, tail))


@wide
def erfcx(x: Any) -> Any:
    """exp(x**2) erfc(x)."""
    scaled = _erfcx_positive(abs(x))
    return numpy.where(x < 0, 2 * numpy.exp(x * x) - scaled, scaled)


@wide
def ndtr(x: Any) -> Any:
    """The normal distribution."""
    return erfc(-x / numpy.sqrt(Wide(2))) / 2


@wide
def log_ndtr(x: Any) -> Any:
    """log(ndtr(x))."""
    below = numpy.log(_erfcx_positive(abs(x) / numpy.sqrt(Wide(2))) / 2) - x * x / 2
    return numpy.where(x < 0, below, numpy.log1p(-erfc(x / numpy.sqrt(Wide(2))) / 2))


def _erfc_inverse(t: Any) -> Any:
    """The y >= 0 with erfc(y) = t for t in (0, 1]: Halley's steps from an estimate by S. Winitzki."""
    logarithm = numpy.log(t * (2 - t))
    a = Wide(0.147)
    half = 2 / (PI * a) + logarithm / 2
    y = numpy.sqrt(numpy.maximum(numpy.sqrt(half * half - logarithm / a) - half, 0))
    for _ in range(8):
        step = (t * numpy.exp(y * y) - _erfcx_positive(y)) * numpy.sqrt(PI) / 2
        before, y = y, numpy.maximum(y - step / (1 + y * step), 0)
        if _same(before, y):
            break
    return y


def _erf_inverse_central(x: Any) -> Any:
    """The same near 0, through the error function itself."""
    y = x * numpy.sqrt(PI) / 2
    for _ in range(8):
        step = (_erf_series(y) - x) * numpy.exp(y * y) * numpy.sqrt(PI) / 2
        before, y = y, y - step / (1 + y * step)
        if _same(before, y):
            break
    return y


@wide
def erfinv(x: Any) -> Any:
    """The inverse of erf."""
    a = abs(x)
    outer = numpy.copysign(_erfc_inverse(numpy.where(a < 1, 1 - a, 0.5)), x)
    result = numpy.where(a < 0.5, _erf_inverse_central(numpy.clip(x, -0.5, 0.5)), outer)
    result = numpy.where(a == 1, numpy.copysign(numpy.inf, x), result)
    return numpy.where(a <= 1, result, numpy.nan)


@wide
def ndtri(p: Any) -> Any:
    """The inverse of ndtr."""
    inner = (p > 0) & (p < 1)
    small = numpy.where(inner, numpy.minimum(p, 1 - p), 0.25)
    outer = numpy.copysign(_erfc_inverse(2 * small), p - Wide(0.5))
    central = _erf_inverse_central(numpy.clip(2 * p - 1, -0.5, 0.5))
    result = numpy.where(abs(p - Wide(0.5)) < 0.25, central, outer) * numpy.sqrt(Wide(2))
    result = numpy.where(p == 0, -numpy.inf, numpy.where(p == 1, numpy.inf, result))
    return numpy.where((p >= 0) & (p <= 1), result, numpy.nan)


# Gamma functions


@functools.cache
def _zeta_whole(s: int) -> Any:
    return zeta(Wide(s), Wide(1))


def _lgamma_one(z: Any) -> Any:
    """log(gamma(1 + z)) for |z| <= 1/2, DLMF 5.7.3."""
    total = -EULER * z
    for k in range(70, 1, -1):
        total = total + _zeta_whole(k) * (-z) ** k / k
    return total


def _stirling(x: Any, shift: int = 40) -> Any:
    """log(gamma(x)) for x > 0 from that of x + shift, DLMF 5.11.1."""
    z = x + shift
    total = (z - Wide(0.5)) * numpy.log(z) - z + numpy.log(2 * PI) / 2
    for j, number in enumerate(_BERNOULLI, 1):
        total = total + number / (2 * j * (2 * j - 1)) / z ** (2 * j - 1)
    for k in range(shift):
        total = total - numpy.log(x + k)
    return total


def _lgamma_positive(x: Any) -> Any:
    far = numpy.where(x > 60, _stirling(x, 0), _stirling(numpy.minimum(x, 60)))
    far = numpy.where(numpy.isinf(x), x, far)
    below = _lgamma_one(numpy.clip(x, 0, 0.5)) - numpy.log(x)
    one = _lgamma_one(numpy.clip(x - 1, -0.5, 0.5))
    two = _lgamma_one(numpy.clip(x - 2, -0.5, 0.5)) + numpy.log1p(numpy.clip(x - 2, -0.5, 0.5))
    return numpy.where(x < 0.5, below, numpy.where(x < 1.5, one, numpy.where(x < 2.5, two, far)))


@wide
def lgamma(x: Any) -> Any:
    """log(|gamma(x)|)."""
    a = abs(x)
    sine = abs(numpy.sin(PI * (a - numpy.rint(a))))
    reflected = numpy.log(PI / a) - numpy.log(sine) - _lgamma_positive(a)
    result = numpy.where(x > 0, _lgamma_positive(a), reflected)
    return numpy.where(numpy.isinf(x) | ((x <= 0) & (x == numpy.floor(x))), numpy.inf, result)


def _digamma_positive(x: Any) -> Any:
    """DLMF 5.11.2, from x + 40."""
    z = x + 40
    total = numpy.log(z) - 1 / (2 * z)
    for j, number in enumerate(_BERNOULLI, 1):
        total = total - number / (2 * j) / z ** (2 * j)
    for k in range(40):
        total = total - 1 / (x + k)
    return numpy.where(numpy.isinf(x), x, total)


@wide
def digamma(x: Any) -> Any:
    """The logarithmic derivative of the gamma function."""
    offset = x - numpy.rint(x)
    reflected = _digamma_positive(1 - x) - PI * numpy.cos(PI * offset) / numpy.sin(PI * offset)
    result = numpy.where(x > 0, _digamma_positive(abs(x)), reflected)
    result = numpy.where((x < 0) & (x == numpy.floor(x)), numpy.nan, result)
    return numpy.where(x == 0, numpy.copysign(numpy.inf, -x), result)


@wide
def zeta(s: Any, q: Any) -> Any:
    """The zeta function of Hurwitz, DLMF 25.11.5; for q < 0 and whole s the sum starts at q."""
    most = int(max(0, -numpy.floor(numpy.nanmin(q[numpy.isfinite(q)], initial=0))))
    count = 30 + min(most, 200)
    total = numpy.zeros(numpy.broadcast_shapes(s.shape, q.shape), Wide)
    for k in range(count):
        total = total + (q + k) ** -s
    z = q + count
    last = z**-s
    rest = z * last / (s - 1) + last / 2
    term = s * last / z
    for j, number in enumerate(_BERNOULLI, 1):
        rest = rest + number / Wide(math.factorial(2 * j)) * term
        term = term * (s + 2 * j - 1) * (s + 2 * j) / (z * z)
    result = total + numpy.where(last == 0, 0, rest)
    result = numpy.where((q < 0) & (s != numpy.floor(s)), numpy.nan, result)
    result = numpy.where((q <= 0) & (q == numpy.floor(q)), numpy.inf, result)
    result = numpy.where(s > 1, result, numpy.where(s == 1, numpy.inf, numpy.nan))
    return numpy.where(numpy.isnan(q), numpy.nan, result)


def _lower_and_upper(a: Any, x: Any) -> tuple[Any, Any]:
    """P by DLMF 8.11.4, Q by 8.9.2, each from the other where it converges badly."""
    factor = numpy.exp(a * numpy.log(x) - x - _lgamma_positive(a))
    total, term = 1 / a, 1 / a
    for k in range(1, 700):
        term = term * x / (a + k)
        total = total + term
    series = factor * total
    safe = numpy.maximum(x, 1)
    fraction = factor / _fraction(safe, lambda k: (-k * (k - a), safe - a + 2 * k + 1), 500)
    below = (x <= 1) | (x < a + 1)
    upper = numpy.where((x <= 1) & (a < 1), _upper_small(a, numpy.minimum(x, 1)), 1 - series)
    return numpy.where(below, series, 1 - fraction), numpy.where(below, upper, fraction)


def _upper_small(a: Any, x: Any) -> Any:
    """Q for small operands, where P is near 1, DLMF 8.7.3."""
    logarithm = numpy.where(a < 0.5, _lgamma_one(numpy.minimum(a, 0.5)), _lgamma_positive(a + 1))
    power = numpy.expm1(a * numpy.log(x) - logarithm)
    total = term = numpy.zeros_like(a * x) + 1
    total = total * 0
    for n in range(1, 40):
        term = term * -x / n
        total = total + term / (a + n)
    return -power - (power + 1) * a * total


def _at_limits(a: Any, x: Any, inner: Any, upper: bool) -> Any:
    none, every = (1, 0) if upper else (0, 1)
    result = numpy.where((x == 0) | numpy.isinf(a), none, inner)
    result = numpy.where((a == 0) | numpy.isinf(x), every, result)
    wrong = ((a == 0) & (x == 0)) | (numpy.isinf(a) & numpy.isinf(x)) | ~((a >= 0) & (x >= 0))
    return numpy.where(wrong, numpy.nan, result)


@wide
def igamma(a: Any, x: Any) -> Any:
    """The regularised lower incomplete gamma function."""
    return _at_limits(a, x, _lower_and_upper(a, x)[0], False)


@wide
def igammac(a: Any, x: Any) -> Any:
    """The regularised upper incomplete gamma function."""
    return _at_limits(a, x, _lower_and_upper(a, x)[1], True)
