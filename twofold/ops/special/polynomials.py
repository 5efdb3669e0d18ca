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


def _shifted(name: str) -> Any:
    """The polynomial ``name`` at 2 x - 1, from float64 for all dtypes."""

    def lower(b: Any, x: Any, n: Any) -> Any:
        wide = b.cast(x, float64)
        argument = b.sub(b.add(wide, wide), 1.0)
        return b.cast(b.math(name, argument, b.cast(n, float64)), x.dtype)

    return lower


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
    """What the entries share; there are no gradients, neither for the argument nor for the degree."""

    signature = "input, n"
    result_dtype = to_float
    inplace = False
    amplitude = _amplitude
    accurate_where = _moderate
    domain = _DOMAIN
    without_gradient = (0, 1)
    vjp = lambda ct, y, x, n: (None, None)


@elementwise
class chebyshev_polynomial_t(_Polynomial):
    """Chebyshev polynomial of the first kind of degree ``n``: ``cos(n * t)`` for ``input = cos(t)``.

    >>> import twofold as torch
    >>> torch.special.chebyshev_polynomial_t(torch.tensor([0.5, 2.0]), 2)
    tensor([-0.5000,  7.0000])
    """

    functions = ("special.chebyshev_polynomial_t",)
    accuracy = (0.51, 56.0)
    lower = lambda b, x, n: b.math("chebyshev_t", x, n)
    reference = polynomials.chebyshev_t


@elementwise
class chebyshev_polynomial_u(_Polynomial):
    """Chebyshev polynomial of the second kind: ``sin((n + 1) * t) / sin(t)`` for ``input = cos(t)``.

    >>> import twofold as torch
    >>> torch.special.chebyshev_polynomial_u(torch.tensor([0.5, 2.0]), 2)
    tensor([ 0., 15.])
    """

    functions = ("special.chebyshev_polynomial_u",)
    accuracy = (0.51, 67.0)
    lower = lambda b, x, n: b.math("chebyshev_u", x, n)
    reference = polynomials.chebyshev_u


@elementwise
class chebyshev_polynomial_v(_Polynomial):
    """Chebyshev polynomial of the third kind: ``cos((n + 1/2) * t) / cos(t / 2)`` for ``input = cos(t)``.

    >>> import twofold as torch
    >>> torch.special.chebyshev_polynomial_v(torch.tensor([0.5, 2.0]), 2)
    tensor([-1., 11.])
    """

    functions = ("special.chebyshev_polynomial_v",)
    accuracy = (0.51, 193.0)
    lower = lambda b, x, n: b.math("chebyshev_v", x, n)
    reference = polynomials.chebyshev_v


@elementwise
class chebyshev_polynomial_w(_Polynomial):
    """Chebyshev polynomial of the fourth kind: ``sin((n + 1/2) * t) / sin(t / 2)`` for ``input = cos(t)``.

    >>> import twofold as torch
    >>> torch.special.chebyshev_polynomial_w(torch.tensor([0.5, 2.0]), 2)
    tensor([ 1., 19.])
    """

    functions = ("special.chebyshev_polynomial_w",)
    accuracy = (0.51, 198.0)
    lower = lambda b, x, n: b.math("chebyshev_w", x, n)
    reference = polynomials.chebyshev_w


@elementwise
class hermite_polynomial_h(_Polynomial):
    """Hermite polynomial of the physicists, ``H[n+1] = 2 x H[n] - 2 n H[n-1]``; NaN from degree 513 on.

    >>> import twofold as torch
    >>> torch.special.hermite_polynomial_h(torch.tensor([0.0, 1.0, 2.0]), 2)
    tensor([-2.,  2., 14.])
    """

    functions = ("special.hermite_polynomial_h",)
    accuracy = (0.51, 20.0)
    amplitude = _hermite_amplitude(False)
    lower = lambda b, x, n: b.math("hermite_h", x, n)
    reference = polynomials.hermite_h


@elementwise
class hermite_polynomial_he(_Polynomial):
    """Hermite polynomial of the probabilists, ``He[n+1] = x He[n] - n He[n-1]``; NaN from degree 513 on.

    >>> import twofold as torch
    >>> torch.special.hermite_polynomial_he(torch.tensor([0.0, 1.0, 2.0]), 2)
    tensor([-1.,  0.,  3.])
    """

    functions = ("special.hermite_polynomial_he",)
    accuracy = (0.51, 21.0)
    amplitude = _hermite_amplitude(True)
    lower = lambda b, x, n: b.math("hermite_he", x, n)
    reference = polynomials.hermite_he


@elementwise
class laguerre_polynomial_l(_Polynomial):
    """Laguerre polynomial: ``(n + 1) L[n+1] = (2 n + 1 - x) L[n] - n L[n-1]``, from 1 and ``1 - x``.

    >>> import twofold as torch
    >>> torch.special.laguerre_polynomial_l(torch.tensor([0.0, 2.0]), 2)
    tensor([ 1., -1.])
    """

    functions = ("special.laguerre_polynomial_l",)
    accuracy = (0.51, 1100.0)
    amplitude = _laguerre_amplitude
    lower = lambda b, x, n: b.math("laguerre_l", x, n)
    reference = polynomials.laguerre_l


@elementwise
class legendre_polynomial_p(_Polynomial):
    """Legendre polynomial: ``(n + 1) P[n+1] = (2 n + 1) x P[n] - n P[n-1]``, from 1 and ``x``.

    >>> import twofold as torch
    >>> torch.special.legendre_polynomial_p(torch.tensor([0.0, 1.0, 2.0]), 2)
    tensor([-0.5000,  1.0000,  5.5000])
    """

    functions = ("special.legendre_polynomial_p",)
    accuracy = (0.51, 40.0)
    lower = lambda b, x, n: b.math("legendre_p", x, n)
    reference = polynomials.legendre_p


@elementwise
class shifted_chebyshev_polynomial_t(_Polynomial):
    """Chebyshev polynomial of the first kind at ``2 * input - 1``.

    >>> import twofold as torch
    >>> torch.special.shifted_chebyshev_polynomial_t(torch.tensor([0.75, 1.5]), 2)
    tensor([-0.5000,  7.0000])
    """

    functions = ("special.shifted_chebyshev_polynomial_t",)
    accuracy = (0.51, 400.0)
    domain = _SHIFTED_DOMAIN
    lower = _shifted("chebyshev_t")
    reference = lambda x, n: polynomials.chebyshev_t(2 * references.Wide(1) * x - 1, n)


@elementwise
class shifted_chebyshev_polynomial_u(_Polynomial):
    """Chebyshev polynomial of the second kind at ``2 * input - 1``.

    >>> import twofold as torch
    >>> torch.special.shifted_chebyshev_polynomial_u(torch.tensor([0.75, 1.5]), 2)
    tensor([ 0., 15.])
    """

    functions = ("special.shifted_chebyshev_polynomial_u",)
    accuracy = (0.51, 111.0)
    domain = _SHIFTED_DOMAIN
    lower = _shifted("chebyshev_u")
    reference = lambda x, n: polynomials.chebyshev_u(2 * references.Wide(1) * x - 1, n)


@elementwise
class shifted_chebyshev_polynomial_v(_Polynomial):
    """Chebyshev polynomial of the third kind at ``2 * input - 1``.

    >>> import twofold as torch
    >>> torch.special.shifted_chebyshev_polynomial_v(torch.tensor([0.75, 1.5]), 2)
    tensor([-1., 11.])
    """

    functions = ("special.shifted_chebyshev_polynomial_v",)
    accuracy = (0.51, 132.0)
    domain = _SHIFTED_DOMAIN
    lower = _shifted("chebyshev_v")
    reference = lambda x, n: polynomials.chebyshev_v(2 * references.Wide(1) * x - 1, n)


@elementwise
class shifted_chebyshev_polynomial_w(_Polynomial):
    """Chebyshev polynomial of the fourth kind at ``2 * input - 1``.

    >>> import twofold as torch
    >>> torch.special.shifted_chebyshev_polynomial_w(torch.tensor([0.75, 1.5]), 2)
    tensor([ 1., 19.])
    """

    functions = ("special.shifted_chebyshev_polynomial_w",)
    accuracy = (0.51, 187.0)
    domain = _SHIFTED_DOMAIN
    lower = _shifted("chebyshev_w")
    reference = lambda x, n: polynomials.chebyshev_w(2 * references.Wide(1) * x - 1, n)
