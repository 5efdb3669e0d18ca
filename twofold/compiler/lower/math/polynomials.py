"""Orthogonal polynomials by their recurrences (DLMF table 18.9.1), the degree a number of each element.

Degrees count without their fractions; below 0 the value is 0, above ``LARGEST_DEGREE`` NaN.
"""

from __future__ import annotations

from collections.abc import Callable

from twofold import dtypes
from twofold.compiler.lower.control import Control
from twofold.compiler.lower.emitter import Operand
from twofold.compiler.lower.math.core import DOUBLE, NAN, wide
from twofold.compiler.lower.math.inverse_trigonometric import acos
from twofold.compiler.lower.math.trigonometric import cos, sin
from twofold.compiler.lower.values import Val

LARGEST_DEGREE = 1 << 24
_CLOSED_FORM_FROM = 64

Step = Callable[[Val, Val, Val], Val]
"""Of (k, P(k - 1), P(k)) the next, P(k + 1)."""


def _largest_lane(b: Control, n: Val) -> Val:
    return n if n.lanes == 1 else b.reduce_lanes("max", n)


def _recurrence(b: Control, n: Val, first: Val, step: Step) -> Val:
    """P(n) from P(0) = 1 and P(1) = ``first``; ``n`` is an int64 of at most ``LARGEST_DEGREE``."""
    one = b.splat(b.const(1.0, DOUBLE.dtype), first.lanes) if first.lanes > 1 else b.const(1.0, DOUBLE.dtype)
    loop = b.loop(1, _largest_lane(b, n), carry=[one, first])
    with loop as (k, (before, now)):
        after = step(b.cast(k, DOUBLE.dtype), before, now)
        going = b.cmp("lt", b.splat(k, n.lanes) if n.lanes > 1 else k, n)
        b.loop_next([b.select(going, now, before), b.select(going, after, now)])
    result = b.select(b.cmp("eq", n, 0), 1.0, loop.results[1])
    return b.select(b.cmp("lt", n, 0), 0.0, result)


def _polynomial(b: Control, n: Val, first: Val, step: Step, largest: int = LARGEST_DEGREE) -> Val:
    degree = b.maximum(b.trunc(n), -1.0)
    fine = b.cmp("le", degree, float(largest))
    result = _recurrence(b, b.cast(b.select(fine, degree, 0.0), dtypes.int64), first, step)
    return b.select(fine, result, NAN)


def _chebyshev(b: Control, x: Val, n: Val, first: Val, closed: Callable[[Val, Val], Val]) -> Val:
    """Inside (-1, 1) by the ``closed`` form in (angle, n) above degree 64, else by the recurrence."""
    degree = b.trunc(n)
    inside = b.and_(b.cmp("lt", b.abs(x), 1.0), b.cmp("gt", degree, float(_CLOSED_FORM_FROM)))
    twice = b.add(x, x)
    short = b.select(inside, 0.0, degree)
    found = _polynomial(b, short, first, lambda _, before, now: b.sub(b.mul(twice, now), before))
    return b.select(inside, closed(acos_double(b, x), degree), found)


def acos_double(b: Control, x: Val) -> Val:
    """The inverse cosine of float64, 1 for what is outside [-1, 1]."""
    return acos(b, b.select(b.cmp("le", b.abs(x), 1.0), x, 0.5))


def _plus_half(b: Control, n: Val) -> Val:
    return b.add(n, 0.5)


@wide
def chebyshev_t(b: Control, x: Val, n: Val) -> Val:
    """Chebyshev's polynomial of the first kind: cos(n a) of x = cos(a)."""
    return _chebyshev(b, x, n, x, lambda a, n: cos(b, b.mul(a, n)))


@wide
def chebyshev_u(b: Control, x: Val, n: Val) -> Val:
    """Of the second kind: sin((n + 1) a) / sin(a)."""
    return _chebyshev(b, x, n, b.add(x, x), lambda a, n: b.div(sin(b, b.mul(a, b.add(n, 1.0))), sin(b, a)))


@wide
def chebyshev_v(b: Control, x: Val, n: Val) -> Val:
    """Of the third kind: cos((n + 1/2) a) / cos(a / 2)."""
    first = b.sub(b.add(x, x), 1.0)
    return _chebyshev(
        b, x, n, first, lambda a, n: b.div(cos(b, b.mul(a, _plus_half(b, n))), cos(b, b.mul(a, 0.5)))
    )


@wide
def chebyshev_w(b: Control, x: Val, n: Val) -> Val:
    """Of the fourth kind: sin((n + 1/2) a) / sin(a / 2)."""
    first = b.add(b.add(x, x), 1.0)
    return _chebyshev(
        b, x, n, first, lambda a, n: b.div(sin(b, b.mul(a, _plus_half(b, n))), sin(b, b.mul(a, 0.5)))
    )


@wide
def hermite_h(b: Control, x: Val, n: Val) -> Val:
    """Hermite's polynomial of the physicists; from degree 513 on NaN, as it leaves the range of float64."""
    twice = b.add(x, x)
    step: Step = lambda k, before, now: b.sub(b.mul(twice, now), b.mul(b.add(k, k), before))
    return _polynomial(b, n, twice, step, 512)


@wide
def hermite_he(b: Control, x: Val, n: Val) -> Val:
    """Hermite's polynomial of the probabilists; from degree 513 on NaN, as it leaves the range of float64."""
    step: Step = lambda k, before, now: b.sub(b.mul(x, now), b.mul(k, before))
    return _polynomial(b, n, x, step, 512)


@wide
def laguerre_l(b: Control, x: Val, n: Val) -> Val:
    """Laguerre's polynomial."""
    rest = b.sub(1.0, x)

    def step(k: Val, before: Val, now: Val) -> Val:
        share: Operand = b.mul(b.add(b.add(k, k), rest), now)
        return b.div(b.sub(share, b.mul(k, before)), b.add(k, 1.0))

    return _polynomial(b, n, rest, step)


@wide
def legendre_p(b: Control, x: Val, n: Val) -> Val:
    """Legendre's polynomial."""

    def step(k: Val, before: Val, now: Val) -> Val:
        share = b.mul(b.mul(b.add(b.add(k, k), 1.0), x), now)
        return b.div(b.sub(share, b.mul(k, before)), b.add(k, 1.0))

    return _polynomial(b, n, x, step)
