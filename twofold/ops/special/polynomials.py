"""Orthogonal polynomials; the degree ``n`` is an operand, counted without its fraction.

A polynomial of negative degree is 0. Their gradients are not defined here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from twofold.dtypes import float64
from twofold.ops.base import elementwise, to_float
from twofold.ops.samples import Domain, reals
from twofold.ops.special import references
from twofold.ops.special import references_bessel as polynomials

_DOMAIN: tuple[Domain, ...] = (reals(-0.9, 0.9), reals(0, 12))
_SHIFTED_DOMAIN: tuple[Domain, ...] = (reals(0.05, 0.95), reals(0, 12))


def _amplitude(x: Any, n: Any) -> Any:
    """Between their zeros the polynomials swing this far; far out errors grow with the degree."""
    return 1 + 0 * x


_LOG_FACTORIALS = numpy.append(0, numpy.log(numpy.arange(1, 1001)).cumsum())


def _hermite_amplitude(probabilists: bool) -> Any:
    """Cramer's bound, DLMF 18.14.9, inside the last zero."""

    def amplitude(x: Any, n: Any) -> Any:
        degree = numpy.clip(numpy.nan_to_num(numpy.trunc(n)), 0, _LOG_FACTORIALS.size - 1)
        square = numpy.minimum(x * x, 2 * degree + 1) / 2
        growth = _LOG_FACTORIALS[degree.astype(int)] / 2
        if probabilists:
            return numpy.exp(numpy.minimum(x * x, 4 * degree + 2) / 4 + growth)
        return numpy.exp(square + growth + degree * (math.log(2) / 2))

    return amplitude


def _laguerre_amplitude(x: Any, n: Any) -> Any:
    """DLMF 18.14.8, inside the last zero."""
    return numpy.exp(numpy.clip(x, 0, 4 * numpy.maximum(n, 0) + 2) / 2)


def _moderate(x: Any, n: Any) -> Any:
    """Where no step of the recurrences leaves the range of float64."""
    return ~((n > 100) | (n * numpy.log2(4 * numpy.abs(x) + 4) > 1000))


class _Polynomial:
    """What the entries share; there are no gradients, neither for the argument nor for the degree.

    A subclass names the ``kernel`` of the compiler, which is also the name of its reference.
    """

    signature = "input, n"
    result_dtype = to_float
    inplace = False
    amplitude = _amplitude
    accurate_where = _moderate
    domain = _DOMAIN
    without_gradient = (0, 1)
    vjp = lambda ct, y, x, n: (None, None)

    lower: Any
    reference: Any
    functions: tuple[str, ...]

    def __init_subclass__(cls, kernel: str = "") -> None:
        cls.functions = (f"special.{cls.__name__}",)
        if kernel:
            cls.lower = lambda b, x, n: b.math(kernel, x, n)
            cls.reference = getattr(polynomials, kernel)


class _Shifted(_Polynomial):
    """A polynomial at 2 x - 1, from float64 for all dtypes."""

    domain = _SHIFTED_DOMAIN

    def __init_subclass__(cls, kernel: str = "") -> None:
        super().__init_subclass__()
        polynomial = getattr(polynomials, kernel)

        def lower(b: Any, x: Any, n: Any) -> Any:
            wide = b.cast(x, float64)
            argument = b.sub(b.add(wide, wide), 1.0)
            return b.cast(b.math(kernel, argument, b.cast(n, float64)), x.dtype)

        cls.lower = lower
        cls.reference = lambda x, n: polynomial(2 * references.Wide(1) * x - 1, n)


@elementwise
class chebyshev_polynomial_t(_Polynomial, kernel="chebyshev_t"):
    """Chebyshev polynomial of the first kind of degree ``n``: ``cos(n * t)`` for ``input = cos(t)``.

    >>> import twofold as torch
    >>> torch.special.chebyshev_polynomial_t(torch.tensor([0.5, 2.0]), 2)
    tensor([-0.5000,  7.0000])
    """

    accuracy = (0.51, 56.0)


@elementwise
class chebyshev_polynomial_u(_Polynomial, kernel="chebyshev_u"):
    """Chebyshev polynomial of the second kind: ``sin((n + 1) * t) / sin(t)`` for ``input = cos(t)``.

    >>> import twofold as torch
    >>> torch.special.chebyshev_polynomial_u(torch.tensor([0.5, 2.0]), 2)
    tensor([ 0., 15.])
    """

    accuracy = (0.51, 67.0)


@elementwise
class chebyshev_polynomial_v(_Polynomial, kernel="chebyshev_v"):
    """Chebyshev polynomial of the third kind: ``cos((n + 1/2) * t) / cos(t / 2)`` for ``input = cos(t)``.

    >>> import twofold as torch
    >>> torch.special.chebyshev_polynomial_v(torch.tensor([0.5, 2.0]), 2)
    tensor([-1., 11.])
    """

    accuracy = (0.51, 193.0)


@elementwise
class chebyshev_polynomial_w(_Polynomial, kernel="chebyshev_w"):
    """Chebyshev polynomial of the fourth kind: ``sin((n + 1/2) * t) / sin(t / 2)`` for ``input = cos(t)``.

    >>> import twofold as torch
    >>> torch.special.chebyshev_polynomial_w(torch.tensor([0.5, 2.0]), 2)
    tensor([ 1., 19.])
    """

    accuracy = (0.51, 198.0)


@elementwise
class hermite_polynomial_h(_Polynomial, kernel="hermite_h"):
    """Hermite polynomial of the physicists, ``H[n+1] = 2 x H[n] - 2 n H[n-1]``; NaN from degree 513 on.

    >>> import twofold as torch
    >>> torch.special.hermite_polynomial_h(torch.tensor([0.0, 1.0, 2.0]), 2)
    tensor([-2.,  2., 14.])
    """

    accuracy = (0.51, 20.0)
    amplitude = _hermite_amplitude(False)


@elementwise
class hermite_polynomial_he(_Polynomial, kernel="hermite_he"):
    """Hermite polynomial of the probabilists, ``He[n+1] = x He[n] - n He[n-1]``; NaN from degree 513 on.

    >>> import twofold as torch
    >>> torch.special.hermite_polynomial_he(torch.tensor([0.0, 1.0, 2.0]), 2)
    tensor([-1.,  0.,  3.])
    """

    accuracy = (0.51, 21.0)
    amplitude = _hermite_amplitude(True)


@elementwise
class laguerre_polynomial_l(_Polynomial, kernel="laguerre_l"):
    """Laguerre polynomial: ``(n + 1) L[n+1] = (2 n + 1 - x) L[n] - n L[n-1]``, from 1 and ``1 - x``.

    >>> import twofold as torch
    >>> torch.special.laguerre_polynomial_l(torch.tensor([0.0, 2.0]), 2)
    tensor([ 1., -1.])
    """

    accuracy = (0.51, 1100.0)
    amplitude = _laguerre_amplitude


@elementwise
class legendre_polynomial_p(_Polynomial, kernel="legendre_p"):
    """Legendre polynomial: ``(n + 1) P[n+1] = (2 n + 1) x P[n] - n P[n-1]``, from 1 and ``x``.

    >>> import twofold as torch
    >>> torch.special.legendre_polynomial_p(torch.tensor([0.0, 1.0, 2.0]), 2)
    tensor([-0.5000,  1.0000,  5.5000])
    """

    accuracy = (0.51, 40.0)


@elementwise
class shifted_chebyshev_polynomial_t(_Shifted, kernel="chebyshev_t"):
    """Chebyshev polynomial of the first kind at ``2 * input - 1``.

    >>> import twofold as torch
    >>> torch.special.shifted_chebyshev_polynomial_t(torch.tensor([0.75, 1.5]), 2)
    tensor([-0.5000,  7.0000])
    """

    accuracy = (0.51, 400.0)


@elementwise
class shifted_chebyshev_polynomial_u(_Shifted, kernel="chebyshev_u"):
    """Chebyshev polynomial of the second kind at ``2 * input - 1``.

    >>> import twofold as torch
    >>> torch.special.shifted_chebyshev_polynomial_u(torch.tensor([0.75, 1.5]), 2)
    tensor([ 0., 15.])
    """

    accuracy = (0.51, 111.0)


@elementwise
class shifted_chebyshev_polynomial_v(_Shifted, kernel="chebyshev_v"):
    """Chebyshev polynomial of the third kind at ``2 * input - 1``.

    >>> import twofold as torch
    >>> torch.special.shifted_chebyshev_polynomial_v(torch.tensor([0.75, 1.5]), 2)
    tensor([-1., 11.])
    """

    accuracy = (0.51, 132.0)


@elementwise
class shifted_chebyshev_polynomial_w(_Shifted, kernel="chebyshev_w"):
    """Chebyshev polynomial of the fourth kind at ``2 * input - 1``.

    >>> import twofold as torch
    >>> torch.special.shifted_chebyshev_polynomial_w(torch.tensor([0.75, 1.5]), 2)
    tensor([ 1., 19.])
    """

    accuracy = (0.51, 187.0)
