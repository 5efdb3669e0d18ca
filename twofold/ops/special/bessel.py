"""Bessel functions of orders 0 and 1, and the Airy function; derivatives from NIST's DLMF 10.6 and 10.29."""

from __future__ import annotations

import math
from typing import Any

import numpy

from twofold.ops.base import composite, elementwise, ops
from twofold.ops.elementwise.transcendental import MathFunction
from twofold.ops.samples import reals
from twofold.ops.special import references_bessel as references


def _oscillation(x: Any) -> Any:
    """How far a Bessel function swings at ``x``."""
    return numpy.minimum(1, numpy.sqrt(2 / (math.pi * numpy.maximum(numpy.abs(x), 1e-300))))


def _over_argument(y: Any, x: Any, at_zero: float) -> Any:
    """y / x, with the limit at 0."""
    zero = ops.equal(x, 0)
    return ops.where(zero, at_zero, y / ops.where(zero, 1.0, x))


@elementwise
class i0(MathFunction, kernel="bessel_i0"):
    """Modified Bessel function of the first kind, order 0.

    >>> import twofold as torch
    >>> torch.i0(torch.tensor([0.0, 1.0, -1.0]))
    tensor([1.0000, 1.2661, 1.2661])
    """

    functions = ("i0", "special.i0", "special.modified_bessel_i0")
    accuracy = (0.51, 13.0)
    vjp = lambda ct, y, x: (ct * ops.i1(x),)
    reference = references.bessel_i(0, False)


@elementwise
class i0e(MathFunction, kernel="bessel_i0e"):
    """``exp(-|input|) * i0(input)``.

    >>> import twofold as torch
    >>> torch.special.i0e(torch.tensor([0.0, 1.0, 100.0]))
    tensor([1.0000, 0.4658, 0.0399])
    """

    functions = ("special.i0e",)
    accuracy = (0.51, 14.0)
    vjp = lambda ct, y, x: (ct * (ops.i1e(x) - ops.sign(x) * y),)
    reference = references.bessel_i(0, True)


@elementwise
class i1(MathFunction, kernel="bessel_i1"):
    """Modified Bessel function of the first kind, order 1.

    >>> import twofold as torch
    >>> torch.special.i1(torch.tensor([0.0, 1.0, -1.0]))
    tensor([ 0.0000,  0.5652, -0.5652])
    """

    functions = ("special.i1", "special.modified_bessel_i1")
    accuracy = (0.51, 14.0)
    vjp = lambda ct, y, x: (ct * (ops.i0(x) - _over_argument(y, x, 0.5)),)
    reference = references.bessel_i(1, False)


@elementwise
class i1e(MathFunction, kernel="bessel_i1e"):
    """``exp(-|input|) * i1(input)``.

    >>> import twofold as torch
    >>> torch.special.i1e(torch.tensor([0.0, 1.0, 100.0]))
    tensor([0.0000, 0.2079, 0.0397])
    """

    functions = ("special.i1e",)
    accuracy = (0.51, 14.0)
    vjp = lambda ct, y, x: (ct * (ops.i0e(x) - ops.sign(x) * y - _over_argument(y, x, 0.5)),)
    reference = references.bessel_i(1, True)


@elementwise
class k0(MathFunction, kernel="bessel_k0"):
    """Modified Bessel function of the second kind, order 0: infinite at 0, NaN below.

    >>> import twofold as torch
    >>> torch.special.modified_bessel_k0(torch.tensor([0.0, 1.0]))
    tensor([   inf, 0.4210])
    """

    functions = ("special.modified_bessel_k0",)
    accuracy = (0.51, 10.0)
    domain = (reals(0.2, 5),)
    vjp = lambda ct, y, x: (-ct * ops.k1(x),)
    reference = references.bessel_k(0, False)


@elementwise
class k1(MathFunction, kernel="bessel_k1"):
    """Modified Bessel function of the second kind, order 1: infinite at 0, NaN below.

    >>> import twofold as torch
    >>> torch.special.modified_bessel_k1(torch.tensor([0.0, 1.0]))
    tensor([   inf, 0.6019])
    """

    functions = ("special.modified_bessel_k1",)
    accuracy = (0.51, 9.0)
    domain = (reals(0.2, 5),)
    vjp = lambda ct, y, x: (-ct * (ops.k0(x) + y / x),)
    reference = references.bessel_k(1, False)


@elementwise
class k0e(MathFunction, kernel="bessel_k0e"):
    """``exp(input)`` times the modified Bessel function of the second kind, order 0.

    >>> import twofold as torch
    >>> torch.special.scaled_modified_bessel_k0(torch.tensor([1.0, 100.0]))
    tensor([1.1445, 0.1252])
    """

    functions = ("special.scaled_modified_bessel_k0",)
    accuracy = (0.51, 7.0)
    domain = (reals(0.2, 5),)
    vjp = lambda ct, y, x: (ct * (y - ops.k1e(x)),)
    reference = references.bessel_k(0, True)


@elementwise
class k1e(MathFunction, kernel="bessel_k1e"):
    """``exp(input)`` times the modified Bessel function of the second kind, order 1.

    >>> import twofold as torch
    >>> torch.special.scaled_modified_bessel_k1(torch.tensor([1.0, 100.0]))
    tensor([1.6362, 0.1258])
    """

    functions = ("special.scaled_modified_bessel_k1",)
    accuracy = (0.51, 7.0)
    domain = (reals(0.2, 5),)
    vjp = lambda ct, y, x: (ct * (y - ops.k0e(x) - y / x),)
    reference = references.bessel_k(1, True)


@elementwise
class bessel_j0(MathFunction):
    """Bessel function of the first kind, order 0.

    >>> import twofold as torch
    >>> torch.special.bessel_j0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.7652])
    """

    functions = ("special.bessel_j0",)
    accuracy = (0.51, 16.0)
    amplitude = _oscillation
    vjp = lambda ct, y, x: (-ct * ops.bessel_j1(x),)
    reference = references.bessel_j(0)


@elementwise
class bessel_j1(MathFunction):
    """Bessel function of the first kind, order 1.

    >>> import twofold as torch
    >>> torch.special.bessel_j1(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.4401])
    """

    functions = ("special.bessel_j1",)
    accuracy = (0.51, 12.0)
    amplitude = lambda x: numpy.where(numpy.abs(x) < 1, 0, _oscillation(x))
    vjp = lambda ct, y, x: (ct * (ops.bessel_j0(x) - _over_argument(y, x, 0.5)),)
    reference = references.bessel_j(1)


@elementwise
class bessel_y0(MathFunction):
    """Bessel function of the second kind, order 0: minus infinity at 0, NaN below.

    >>> import twofold as torch
    >>> torch.special.bessel_y0(torch.tensor([0.0, 1.0]))
    tensor([  -inf, 0.0883])
    """

    functions = ("special.bessel_y0",)
    accuracy = (0.51, 30.0)
    amplitude = _oscillation
    domain = (reals(0.2, 9),)
    vjp = lambda ct, y, x: (-ct * ops.bessel_y1(x),)
    reference = references.bessel_y(0)


@elementwise
class bessel_y1(MathFunction):
    """Bessel function of the second kind, order 1: minus infinity at 0, NaN below.

    >>> import twofold as torch
    >>> torch.special.bessel_y1(torch.tensor([0.0, 1.0]))
    tensor([   -inf, -0.7812])
    """

    functions = ("special.bessel_y1",)
    accuracy = (0.51, 22.0)
    amplitude = _oscillation
    domain = (reals(0.2, 9),)
    vjp = lambda ct, y, x: (ct * (ops.bessel_y0(x) - y / x),)
    reference = references.bessel_y(1)


@elementwise
class airy_ai(MathFunction):
    """Airy function Ai; its gradient is not defined here.

    >>> import twofold as torch
    >>> torch.special.airy_ai(torch.tensor([0.0, 1.0]))
    tensor([0.3550, 0.1353])
    """

    functions = ("special.airy_ai",)
    accuracy = (0.51, 76.0)
    amplitude = lambda x: numpy.where(x < 0, numpy.maximum(numpy.abs(x), 1) ** -0.25, 0)
    # beyond, the reference does not know the phase
    accurate_where = lambda x: ~(x < -2000)
    without_gradient = (0,)
    vjp = lambda ct, y, x: (None,)
    reference = references.airy_ai


@composite
class spherical_bessel_j0:
    """Spherical Bessel function of the first kind, order 0: ``sin(input) / input``, 1 at 0.

    >>> import twofold as torch
    >>> torch.special.spherical_bessel_j0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.8415])
    """

    functions = ("special.spherical_bessel_j0",)
    methods = ()
    signature = "input"
    reference = lambda x: numpy.where(numpy.isinf(x), 0, numpy.sinc(x / math.pi))

    @staticmethod
    def compute(x: Any) -> Any:
        vanishing = ops.where(ops.isinf(x), 0.0, ops.sin(x))
        return _over_argument(vanishing, x, 1.0)
