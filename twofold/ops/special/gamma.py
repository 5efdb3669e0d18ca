"""The gamma function's logarithm, its derivatives, and the functions of two operands made with it."""

from __future__ import annotations

import math
from typing import Any

import numpy

from twofold.dtypes import float64
from twofold.errors import ArgumentError
from twofold.ops.base import apply, composite, convert, elementwise, ops, publish, to_float
from twofold.ops.elementwise.transcendental import MathFunction
from twofold.ops.samples import reals
from twofold.ops.special import references
from twofold.ops.tables import INPLACE


@elementwise
class lgamma(MathFunction):
    """Logarithm of the magnitude of the gamma function.

    >>> import twofold as torch
    >>> torch.lgamma(torch.tensor([5.0, 0.5]))
    tensor([3.1781, 0.5724])
    """

    has_poles = True
    functions = ("lgamma", "special.gammaln")
    methods = ("lgamma",)
    accuracy = (0.51, 9.0)
    amplitude = lambda x: numpy.where(x < 0, numpy.abs(x) + 1, 0)
    domain = (reals(0.2, 6),)
    vjp = lambda ct, y, x: (ct * ops.digamma(x),)
    reference = references.lgamma


@elementwise
class digamma(MathFunction):
    """Derivative of ``lgamma``: of 0 an infinity of the opposite sign, of negative integers NaN.

    >>> import twofold as torch
    >>> torch.digamma(torch.tensor([1.0, 2.0]))
    tensor([-0.5772,  0.4228])
    """

    has_poles = True
    functions = ("digamma", "special.digamma", "special.psi")
    methods = ("digamma",)
    accuracy = (0.51, 9.0)
    amplitude = lambda x: numpy.where(x < 0, numpy.abs(x) + 4, 0)
    domain = (reals(0.2, 6),)
    vjp = lambda ct, y, x: (ct * ops.polygamma(1, x),)
    reference = references.digamma


@elementwise
class zeta:
    """Zeta function of Hurwitz: the sum of ``(other + k)**-input`` over k = 0, 1, ...

    Its gradient for ``input`` is not defined here.

    >>> import twofold as torch
    >>> torch.special.zeta(torch.tensor([2.0, 4.0]), torch.tensor([1.0, 1.0]))
    tensor([1.6449, 1.0823])
    """

    functions = ("special.zeta",)
    signature = "input, other"
    result_dtype = to_float
    accuracy = (0.51, 16.0)
    amplitude = lambda s, q: numpy.where(q < 0, numpy.abs(q - numpy.rint(q)) ** -s, 0)
    # elsewhere the sum of the reference is cut off, or its terms overflow before they cancel
    accurate_where = lambda s, q: ~((q < -200) | ((q < 0) & (s > 1000)))
    domain = (reals(1.5, 5), reals(0.5, 5))
    without_gradient = (0,)
    vjp = lambda ct, y, s, q: (None, ct * -s * ops.zeta(s + 1, q))
    lower = lambda b, s, q: b.math("zeta", s, q)
    reference = references.zeta


def _polygamma(x: Any, n: int) -> Any:
    """In float64, as the factorial soon leaves the range of float32; NIST's DLMF 25.11.12."""
    if n == 0:
        return ops.digamma(x)
    result = ops.digamma(x).dtype
    # 170! is the last that a float holds
    factorial = float(math.factorial(n)) if n <= 170 else math.inf
    value = ops.zeta(float(n + 1), convert(x, float64)) * (factorial if n % 2 else -factorial)
    return convert(value, result)


@composite
class polygamma:
    """The ``n``-th derivative of ``digamma``.

    >>> import twofold as torch
    >>> torch.polygamma(1, torch.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """

    functions = ("polygamma", "special.polygamma")
    methods = ()
    signature = "input"
    domain = (reals(0.5, 5),)
    attribute_samples = ((0,), (1,), (4,))
    reference = lambda x, n: (
        references.digamma(x)
        if n == 0
        else (-1.0) ** (n + 1) * math.factorial(n) * references.zeta(numpy.full(x.shape, n + 1.0), x)
    )
    compute = _polygamma
    vjp = lambda ct, y, x, n: (ct * ops.polygamma(n + 1, x),)

    @staticmethod
    def call(n: int, input: Any) -> Any:
        if n < 0:
            raise ArgumentError(f"n is {n}", "Use the number of a derivative, 0 or more.")
        return apply("polygamma", input, attrs=(int(n),))


def _derivative(input: Any, n: int) -> Any:
    return ops.polygamma(n, input)


publish(_derivative, (), ("polygamma",))
INPLACE[_derivative] = "value"


@composite
class multigammaln:
    """Logarithm of the gamma function of dimension ``p``: a constant plus ``lgamma(input - j / 2)`` for
    ``j < p``. Raises ArgumentError for a ``p`` below 1.

    >>> import twofold as torch
    >>> torch.mvlgamma(torch.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """

    functions = ("mvlgamma", "special.multigammaln")
    methods = ("mvlgamma",)
    inplace = True
    signature = "input"
    domain = (reals(2, 9),)
    attribute_samples = ((1,), (3,))
    reference = lambda x, p: (
        sum(references.lgamma(x - j / 2) for j in range(p)) + p * (p - 1) / 4 * math.log(math.pi)
    )

    @staticmethod
    def compute(x: Any, p: int) -> Any:
        total = ops.lgamma(x)
        for j in range(1, p):
            total = total + ops.lgamma(x - j / 2)
        return total + p * (p - 1) / 4 * math.log(math.pi)

    @staticmethod
    def call(input: Any, p: int) -> Any:
        if p < 1:
            raise ArgumentError(f"p is {p}", "Use a dimension of 1 or more.")
        return apply("multigammaln", input, attrs=(int(p),))


def _density(ct: Any, a: Any, x: Any) -> Any:
    """``ct`` times the derivative of igamma for x, NIST's DLMF 8.8.13."""
    return ct * ops.exp((a - 1) * ops.log(x) - x - ops.lgamma(a))


@elementwise
class igamma:
    """Regularised lower incomplete gamma function; its gradient for ``input`` is not defined here.

    >>> import twofold as torch
    >>> torch.igamma(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
    tensor([0.6321, 0.2642])
    """

    functions = ("igamma", "special.gammainc")
    methods = ("igamma",)
    signature = "input, other"
    result_dtype = to_float
    accuracy = (0.51, 32.0)
    # beyond, the series of the reference is cut off
    accurate_where = lambda a, x: ~((a > 5000) & numpy.isfinite(a))
    kinds = "f"
    domain = (reals(0.2, 5), reals(0.2, 5))
    without_gradient = (0,)
    vjp = lambda ct, y, a, x: (None, _density(ct, a, x))
    lower = lambda b, a, x: b.math("igamma", a, x)
    reference = references.igamma


@elementwise
class igammac:
    """Regularised upper incomplete gamma function; its gradient for ``input`` is not defined here.

    >>> import twofold as torch
    >>> torch.igammac(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
    tensor([0.3679, 0.7358])
    """

    functions = ("igammac", "special.gammaincc")
    methods = ("igammac",)
    signature = "input, other"
    result_dtype = to_float
    accuracy = (0.51, 32.0)
    # beyond, the series of the reference is cut off
    accurate_where = lambda a, x: ~((a > 5000) & numpy.isfinite(a))
    kinds = "f"
    domain = (reals(0.2, 5), reals(0.2, 5))
    without_gradient = (0,)
    vjp = lambda ct, y, a, x: (None, -_density(ct, a, x))
    lower = lambda b, a, x: b.math("igammac", a, x)
    reference = references.igammac
