"""The error function and its relatives: normal distribution, quantiles, entropy, products with logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy

from twofold.ops.base import apply, elementwise, ops, to_float
from twofold.ops.elementwise.transcendental import MathFunction
from twofold.ops.samples import nonzero, reals
from twofold.ops.special import references

_ROOT_PI = math.sqrt(math.pi)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


@elementwise
class erf(MathFunction):
    """Error function: the integral of ``2 / sqrt(pi) * exp(-t**2)`` from 0 to ``input``.

    >>> import twofold as torch
    >>> torch.erf(torch.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.5205, 0.8427])
    """

    functions = ("erf", "special.erf")
    accuracy = (1.1, 1.0)
    vjp = lambda ct, y, x: (ct * (2 / _ROOT_PI) * ops.exp(-x * x),)
    reference = references.erf


@elementwise
class erfc(MathFunction):
    """``1 - erf(input)``, accurate where it is small.

    >>> import twofold as torch
    >>> torch.erfc(torch.tensor([0.0, 0.5, 5.0]))
    tensor([1.0000e+00, 4.7950e-01, 1.5375e-12])
    """

    functions = ("erfc", "special.erfc")
    accuracy = (3.6, 2.6)
    vjp = lambda ct, y, x: (ct * (-2 / _ROOT_PI) * ops.exp(-x * x),)
    reference = references.erfc


@elementwise
class erfcx(MathFunction):
    """``exp(input**2) * erfc(input)``, which neither overflows nor vanishes where ``input`` is large.

    >>> import twofold as torch
    >>> torch.special.erfcx(torch.tensor([0.0, 1.0, 100.0]))
    tensor([1.0000, 0.4276, 0.0056])
    """

    functions = ("special.erfcx",)
    accuracy = (0.51, 8.0)
    vjp = lambda ct, y, x: (ct * (2 * x * y - 2 / _ROOT_PI),)
    reference = references.erfcx


@elementwise
class erfinv(MathFunction):
    """Inverse of the error function: infinite at -1 and 1, NaN outside.

    >>> import twofold as torch
    >>> torch.erfinv(torch.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.4769,    inf])
    """

    functions = ("erfinv", "special.erfinv")
    accuracy = (0.51, 8.0)
    domain = (reals(-0.9, 0.9),)
    vjp = lambda ct, y, x: (ct * (_ROOT_PI / 2) * ops.exp(y * y),)
    reference = references.erfinv


@elementwise
class ndtr(MathFunction):
    """Probability that a standard normal number is at most ``input``.

    >>> import twofold as torch
    >>> torch.special.ndtr(torch.tensor([0.0, 1.96, -1.96]))
    tensor([0.5000, 0.9750, 0.0250])
    """

    functions = ("special.ndtr",)
    accuracy = (5.8, 8.0)
    vjp = lambda ct, y, x: (ct * apply("normal_density", x),)
    reference = references.ndtr


@elementwise
class normal_density(MathFunction):
    """Density of a standard normal number at ``input``, the derivative of ``ndtr``."""

    functions = ()
    accuracy = (1.8, 2.0)
    vjp = lambda ct, y, x: (-ct * y * x,)
    reference = lambda x: numpy.exp(x * x * -0.5) / _ROOT_TWO_PI


@elementwise
class log_ndtr(MathFunction):
    """Logarithm of ``ndtr(input)``, accurate in both tails.

    >>> import twofold as torch
    >>> torch.special.log_ndtr(torch.tensor([0.0, -20.0]))
    tensor([  -0.6931, -203.9172])
    """

    functions = ("special.log_ndtr",)
    accuracy = (0.51, 9.0)
    vjp = lambda ct, y, x: (ct * math.sqrt(2 / math.pi) / ops.erfcx(x * -math.sqrt(0.5)),)
    reference = references.log_ndtr


@elementwise
class ndtri(MathFunction):
    """The x with ``ndtr(x) = input``: infinite at 0 and 1, NaN outside.

    >>> import twofold as torch
    >>> torch.special.ndtri(torch.tensor([0.5, 0.975, 1.0]))
    tensor([0.0000, 1.9600,    inf])
    """

    functions = ("special.ndtri",)
    accuracy = (0.51, 11.0)
    domain = (reals(0.05, 0.95),)
    vjp = lambda ct, y, x: (ct * _ROOT_TWO_PI * ops.exp(y * y * 0.5),)
    reference = references.ndtri


def _lower_entr(b: Any, x: Any) -> Any:
    positive = b.mul(b.neg(x), b.math("log", x))
    outside = b.select(b.cmp("lt", x, 0.0), b.const(-math.inf, x.dtype), x)
    return b.select(b.cmp("gt", x, 0.0), positive, b.select(b.cmp("eq", x, 0.0), 0.0, outside))


@elementwise
class entr:
    """``-input * log(input)``, 0 at 0 and minus infinity below.

    >>> import twofold as torch
    >>> torch.special.entr(torch.tensor([0.0, 0.5, -1.0]))
    tensor([0.0000, 0.3466,   -inf])
    """

    functions = ("special.entr",)
    result_dtype = to_float
    accuracy = (1.8, 1.8)
    domain = (reals(0.1, 3),)
    vjp = lambda ct, y, x: (ct * (-ops.log(x) - 1),)
    lower = _lower_entr
    reference = lambda x: numpy.where(
        x > 0, -x * numpy.log(x), numpy.where(x < 0, -numpy.inf, numpy.where(x == 0, 0, x))
    )


def _masked_product(b: Any, x: Any, y: Any, logarithm: str) -> Any:
    product = b.select(b.cmp("eq", x, 0.0), 0.0, b.mul(x, b.math(logarithm, y)))
    return b.select(b.is_nan(y), y, product)


@elementwise
class xlogy:
    """``input * log(other)``; 0 where ``input`` is 0 and ``other`` is not NaN.

    >>> import twofold as torch
    >>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 3.0]))
    tensor([0.0000, 2.1972])
    """

    functions = ("xlogy", "special.xlogy")
    signature = "input, other"
    result_dtype = to_float
    accuracy = (1.9, 2.0)
    domain = (nonzero(-3, 3), reals(0.1, 3))
    vjp = lambda ct, y, a, b: (
        ops.where(ops.logical_and(ops.equal(a, 0), b <= 0), 0, ct * ops.log(b)),
        ct * a / b,
    )
    lower = lambda b, x, y: _masked_product(b, x, y, "log")
    reference = lambda x, y: numpy.where((x == 0) & ~numpy.isnan(y), 0, x * numpy.log(y))


@elementwise
class xlog1py:
    """``input * log(1 + other)``; 0 where ``input`` is 0 and ``other`` is not NaN.

    >>> import twofold as torch
    >>> torch.special.xlog1py(torch.tensor([0.0, 2.0]), torch.tensor([-1.0, 3.0]))
    tensor([0.0000, 2.7726])
    """

    functions = ("special.xlog1py",)
    signature = "input, other"
    result_dtype = to_float
    accuracy = (3.2, 2.0)
    domain = (nonzero(-3, 3), reals(-0.8, 3))
    vjp = lambda ct, y, a, b: (
        ops.where(ops.logical_and(ops.equal(a, 0), b <= -1), 0, ct * ops.log1p(b)),
        ct * a / (b + 1),
    )
    lower = lambda b, x, y: _masked_product(b, x, y, "log1p")
    reference = lambda x, y: numpy.where((x == 0) & ~numpy.isnan(y), 0, x * numpy.log1p(y))
