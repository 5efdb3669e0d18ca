"""Values of Bessel functions, the Airy function and orthogonal polynomials, as in ``references``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from twofold.ops.special.references import EULER, PI, Wide, wide

_TINY = 1e-20  # below it one term of a series is enough


def _path(x: Any) -> tuple[Any, Any]:
    """Steps and positions for the trapezoidal rule on exp(-x (cosh u - 1)) and the like, on a new last axis."""
    step = numpy.minimum(Wide(0.075), Wide(0.24) / numpy.sqrt(numpy.maximum(x, 1e-300)))
    # beyond these positions the factor is below exp(-60)
    reach = numpy.arcsinh(90 / numpy.maximum(x, 1e-300)) + 1
    reach = numpy.where(x > 60, 11 / numpy.sqrt(numpy.maximum(x, 60)), reach)
    count = int(numpy.ceil((reach / step).max(initial=1)))
    return step, step[..., None] * numpy.arange(-count, count + 1)


def _in_pieces(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``function`` of different numbers, some neighbours at a time, as each needs as many points as the worst."""

    def made(x: Any) -> Any:
        numbers, positions = numpy.unique(x, return_inverse=True)
        found = numpy.zeros_like(numbers)
        for k in range(0, numbers.size, 64):
            found[k : k + 64] = function(numbers[k : k + 64])
        return found[positions].reshape(numpy.shape(x))

    return made


def _hankel(order: Any, x: Any) -> Any:
    """H of x > 0 as J + i Y: DLMF 10.9.18 on the path of steepest descent, Im u = 2 atan(exp(Re u))."""
    step, u = _path(x)
    decay = numpy.exp(-x[..., None] * numpy.sinh(u) * numpy.tanh(u))
    turn = 2 * numpy.arctan(numpy.exp(u))
    grown = numpy.where(decay == 0, 0, decay * numpy.exp(numpy.where(decay == 0, 0, -order * u)))
    values = grown * numpy.exp(-1j * Wide(order) * turn) * (1 + 1j / numpy.cosh(u))
    return values.sum(-1) * step / (1j * PI) * (numpy.cos(x) + 1j * numpy.sin(x))


def _k_scaled(order: Any, x: Any) -> Any:
    """exp(x) K of x > 0, DLMF 10.32.9."""
    step, u = _path(x)
    half = numpy.sinh(u / 2)
    decay = numpy.exp(-2 * x[..., None] * half * half)
    grown = numpy.where(decay == 0, 0, decay * numpy.cosh(numpy.where(decay == 0, 0, order * u)))
    return grown.sum(-1) * step / 2


def _series(order: int, x: Any, sign: int, count: int = 60) -> Any:
    """J (sign -1) or I (sign 1) for small x, DLMF 10.2.2."""
    y = sign * x * x / 4
    total = term = (x / 2) ** order
    for k in range(1, count):
        term = term * y / (k * (k + order))
        total = total + term
    return total


def _i_scaled(order: int, x: Any) -> Any:
    """exp(-|x|) I: the series, from 30 on DLMF 10.40.1."""
    a = abs(x)
    near = _series(order, numpy.clip(x, -30, 30), 1, 120) * numpy.exp(-numpy.minimum(a, 30))
    z = numpy.maximum(a, 30)
    total = term = numpy.ones_like(z)
    for k in range(1, 40):
        term = -term * (4 * order * order - (2 * k - 1) ** 2) / (8 * k * z)
        total = total + term
    far = total / numpy.sqrt(2 * PI * z) * (numpy.copysign(1, x) if order else 1)
    result = numpy.where(a < 30, near, numpy.where(numpy.isinf(a), numpy.copysign(0, x) if order else 0, far))
    return numpy.where(numpy.isnan(x), x, result)


def bessel_i(order: int, scaled: bool) -> Callable[[Any], Any]:
    """I0 or I1, or exp(-|x|) times it."""

    @wide
    def function(x: Any) -> Any:
        value = _i_scaled(order, x)
        return value if scaled else value * numpy.exp(numpy.where(value == 0, 0, abs(x)))

    @wide
    def at_ends(x: Any) -> Any:
        infinite = numpy.copysign(numpy.inf, x) if order else numpy.inf
        return function(x) if scaled else numpy.where(numpy.isinf(x), infinite, function(x))

    return at_ends


def bessel_k(order: int, scaled: bool) -> Callable[[Any], Any]:
    """K0 or K1, or exp(x) times it."""

    @wide
    def function(x: Any) -> Any:
        inner = (x >= _TINY) & numpy.isfinite(x)
        value = _in_pieces(lambda x: _k_scaled(order, x))(numpy.where(inner, x, 1))
        value = numpy.where(x < _TINY, 1 / x if order else -numpy.log(x / 2) - EULER, value)
        value = value if scaled else value * numpy.exp(-x)
        value = numpy.where(x == numpy.inf, 0, numpy.where(x == 0, numpy.inf, value))
        return numpy.where(x >= 0, value, numpy.nan)

    return function


def bessel_j(order: int) -> Callable[[Any], Any]:
    """J0 or J1."""

    @wide
    def function(x: Any) -> Any:
        a = abs(x)
        far = _in_pieces(lambda x: _hankel(order, x).real)(numpy.where((a > 2) & numpy.isfinite(a), a, 2))
        far = far * (numpy.sign(x) if order else 1)
        result = numpy.where(a < 2, _series(order, numpy.clip(x, -2, 2), -1), far)
        return numpy.where(numpy.isinf(x), 0, numpy.where(numpy.isnan(x), x, result))

    return function


def bessel_y(order: int) -> Callable[[Any], Any]:
    """Y0 or Y1."""

    @wide
    def function(x: Any) -> Any:
        inner = (x >= _TINY) & numpy.isfinite(x)
        value = _in_pieces(lambda x: _hankel(order, x).imag)(numpy.where(inner, x, 1))
        tiny = -1 / x if order else numpy.log(x / 2) + EULER
        value = numpy.where(x < _TINY, tiny * 2 / PI, value)
        value = numpy.where(x == numpy.inf, 0, numpy.where(x == 0, -numpy.inf, value))
        return numpy.where(x >= 0, value, numpy.nan)

    return function


def _airy_left(a: Any) -> Any:
    """Ai(-a), DLMF 9.6.6 in terms of J and Y of order 1/3."""
    angle = 2 * a * numpy.sqrt(a) / 3
    h = _hankel(Wide(1) / 3, angle)
    return numpy.sqrt(a) / 3 * (h.real * Wide(1.5) - h.imag * numpy.sqrt(Wide(3)) / 2)


def _airy_right(a: Any) -> Any:
    """Ai(a), DLMF 9.6.2."""
    angle = 2 * a * numpy.sqrt(a) / 3
    return numpy.sqrt(a / 3) / PI * _k_scaled(Wide(1) / 3, angle) * numpy.exp(-angle)


@wide
def airy_ai(x: Any) -> Any:
    """The Airy function."""
    inner = numpy.isfinite(x) & (abs(x) > 1e-18)
    right = _in_pieces(_airy_right)(numpy.where(inner & (x > 0), x, 1))
    left = _in_pieces(_airy_left)(numpy.where(inner & (x < 0), -x, 1))
    result = numpy.where(x > 0, right, left)
    result = numpy.where(inner, result, Wide("0.355028053887817239260063186004183176"))
    return numpy.where(numpy.isinf(x), 0, numpy.where(numpy.isnan(x), x, result))


Step = Callable[[int, Any, Any, Any], Any]


def _recurrence(first: Callable[[Any], Any], step: Step, most: int) -> Callable[[Any, Any], Any]:
    """P(n) from P(0) = 1, P(1) = first(x) and P(k + 1) = step(k, x, P(k - 1), P(k))."""

    @wide
    def function(x: Any, n: Any) -> Any:
        degree = numpy.where(numpy.isnan(n), 0, numpy.clip(numpy.trunc(n), -1, most + 1))
        before, now = numpy.ones(numpy.broadcast_shapes(x.shape, n.shape), Wide), first(x) + 0 * degree
        found = numpy.where(degree < 0, 0, numpy.where(degree == 0, before, now))
        for k in range(1, int(min(degree.max(initial=0), most))):
            before, now = now, step(k, x, before, now)
            found = numpy.where(degree == k + 1, now, found)
        return numpy.where(degree <= most, numpy.where(numpy.isnan(n), n, found), numpy.nan)

    return function


def _twice(k: int, x: Any, before: Any, now: Any) -> Any:
    return 2 * x * now - before


chebyshev_t = _recurrence(lambda x: x, _twice, 600)
chebyshev_u = _recurrence(lambda x: 2 * x, _twice, 600)
chebyshev_v = _recurrence(lambda x: 2 * x - 1, _twice, 600)
chebyshev_w = _recurrence(lambda x: 2 * x + 1, _twice, 600)
hermite_h = _recurrence(lambda x: 2 * x, lambda k, x, before, now: 2 * x * now - 2 * k * before, 512)
hermite_he = _recurrence(lambda x: x, lambda k, x, before, now: x * now - k * before, 512)
laguerre_l = _recurrence(
    lambda x: 1 - x, lambda k, x, before, now: ((2 * k + 1 - x) * now - k * before) / (k + 1), 600
)
legendre_p = _recurrence(
    lambda x: x, lambda k, x, before, now: ((2 * k + 1) * x * now - k * before) / (k + 1), 600
)
