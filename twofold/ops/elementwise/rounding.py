"""Integers near an element, and what is left of it."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.ops.base import apply, composite, elementwise, ops
from twofold.ops.building_blocks import no_slope
from twofold.ops.elementwise import complex_functions
from twofold.ops.samples import nonzero


@elementwise
class floor:
    """Largest integer not above; integers stay.

    >>> import twofold as torch
    >>> torch.floor(torch.tensor([1.5, -1.5]))
    tensor([ 1., -2.])
    """

    kinds = "iuf"
    domain = (nonzero(-2.9, 2.9, 0.4),)
    vjp = no_slope
    lower = lambda b, x: b.floor(x)
    reference = lambda x: numpy.floor(x) if x.dtype.kind == "f" else x


@elementwise
class ceil:
    """Smallest integer not below; integers stay.

    >>> import twofold as torch
    >>> torch.ceil(torch.tensor([1.5, -1.5]))
    tensor([ 2., -1.])
    """

    kinds = "iuf"
    vjp = no_slope
    lower = lambda b, x: b.ceil(x)
    reference = lambda x: numpy.ceil(x) if x.dtype.kind == "f" else x


@elementwise
class trunc:
    """Rounded toward zero; integers stay.

    >>> import twofold as torch
    >>> torch.trunc(torch.tensor([1.5, -1.5]))
    tensor([ 1., -1.])
    """

    functions = ("trunc", "fix")
    kinds = "iuf"
    vjp = no_slope
    lower = lambda b, x: b.trunc(x)
    reference = lambda x: numpy.trunc(x) if x.dtype.kind == "f" else x


@elementwise
class round_:
    """Nearest integer, halves to even; with ``decimals``, to that many decimal places. Integers stay.

    >>> import twofold as torch
    >>> torch.round(torch.tensor([0.5, 1.5, 2.7]))
    tensor([0., 2., 3.])
    >>> torch.round(torch.tensor([1.234, 5.678]), decimals=1)
    tensor([1.2000, 5.7000])
    """

    functions = ("round", "special.round")
    kinds = "iuf"
    arity = 1
    vjp = no_slope
    on_complex = complex_functions.by_parts("round")
    lower = lambda b, x: b.rint(x)
    reference = lambda x: numpy.rint(x) if x.dtype.kind in "fc" else x

    @staticmethod
    def call(input: Any, decimals: int = 0) -> Any:
        if decimals == 0:
            return apply("round", input)
        scale = 10.0 ** abs(decimals)
        return ops.round(input * scale) / scale if decimals > 0 else ops.round(input / scale) * scale


@composite
class frac:
    """``input`` without its whole part, with its sign.

    >>> import twofold as torch
    >>> torch.frac(torch.tensor([1.5, -2.25]))
    tensor([ 0.5000, -0.2500])
    """

    inplace = True
    signature = "input"
    methods = ("frac",)
    reference = lambda x: x - numpy.trunc(x)
    compute = lambda x: x - ops.trunc(x)
