"""Gamma variates as logarithms, and their gradient for the shape of the distribution."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import float64
from twofold.ops.base import apply, composite, convert, iota, ops
from twofold.ops.random.distributions import values_samples
from twofold.ops.samples import Sample

_RANGES = {24: (-2.5, 3.6), 40: (-3.0, 4.0)}
"""Where the points of the integral lie, by their number."""


def _log_gamma_slope(alpha: Any, logarithm: Any, points: int) -> Any:
    """How log(x) changes with alpha where the gamma distribution function stays: the implicit derivative.

    ``d log(x) / d alpha = -(dF / d alpha) / (x f(x))``, as an integral over the tail on the side of x where the
    density falls. With c = digamma(alpha) - log(x) it is for x <= alpha that of
    ``exp(-alpha s + x (1 - exp(-s))) (c + s)`` over s > 0, else of ``(1 + v)**(alpha - 1) exp(-x v) (log(1 + v) - c)``
    over v > 0, by the double exponential formula for half the line; 24 points give six digits, 40 nine.

    Sources: Figurnov, Mohamed and Mnih, Implicit Reparameterization Gradients, 2018, eq. 7; Takahasi and Mori, Double
    Exponential Formulas for Numerical Integration, 1974.
    """
    low, high = _RANGES[points]
    step = (high - low) / (points - 1)
    t = convert(iota((points,)), float64) * step + low
    position, alpha, logarithm = (
        ops.exp(t - ops.exp(-t)),
        ops.unsqueeze(alpha, -1),
        ops.unsqueeze(logarithm, -1),
    )
    weight = position * (1.0 + ops.exp(-t)) * step
    x = ops.exp(logarithm)
    distance = ops.abs(alpha - x)
    width = 2.0 / (distance + ops.sqrt(distance * distance + 2.0 * x))
    s, below, c = width * position, x <= alpha, ops.digamma(alpha) - logarithm
    grown = ops.log1p(s)
    exponent = ops.where(below, -alpha * s - x * ops.expm1(-s), (alpha - 1.0) * grown - x * s)
    factor = ops.where(below, c + s, grown - c)
    return ops.sum(ops.exp(exponent) * factor * weight * width, -1)


@composite
class log_gamma_slope:
    """The implicit derivative of the logarithm of a gamma variate for its shape ``alpha``, in float64."""

    functions = ()
    methods = ()
    signature = "alpha, logarithm"
    samples = lambda: [
        Sample(
            (points,),
            (numpy.array([0.02, 0.7, 3.0, 50.0]), numpy.array([-30.0, 0.2, 1.5, 3.8])),
            (float64,) * 2,
        )
        for points in _RANGES
    ]
    compute = _log_gamma_slope


@composite
class random_log_gamma_variate:
    """Logarithms of gamma variates of shape ``alpha`` and rate 1 in float64, which small shapes do not underflow.

    Its gradient is the implicit one of the module's ``log_gamma_slope``.
    """

    functions = ()
    methods = ()
    signature = "alpha, key, counter"
    samples = lambda: values_samples((0.02, 0.4, 1.0, 9.0, 400.0))
    compute = lambda alpha, key, counter: apply("random_log_gamma", convert(alpha, float64), key, counter)

    @staticmethod
    def vjp(ct: Any, y: Any, alpha: Any, key: Any, counter: Any) -> tuple[Any, None, None]:
        points = 40 if alpha.dtype is float64 else 24
        slope = apply("log_gamma_slope", convert(alpha, float64), y, attrs=(points,))
        return (convert(ct * slope, alpha.dtype), None, None)


def sample_log_gamma(alpha: Any, key: Any, counter: Any) -> Any:
    """Bind ``random_log_gamma_variate``; the result is float64."""
    return apply("random_log_gamma_variate", alpha, key, counter)
