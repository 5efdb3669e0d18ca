"""Integers near an element, and what is left of it."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.ops import complex_functions
from twofold.ops.base import apply, composite, elementwise, ops
from twofold.ops.gradients import no_slope
from twofold.ops.samples import nonzero


@elementwise
class floor:
    """Largest integer not above; integers stay."""

    kinds = "iuf"
    domain = (nonzero(-2.9, 2.9, 0.4),)
    vjp = no_slope
    lower = lambda b, x: b.floor(x)
    reference = lambda x: numpy.floor(x) if x.dtype.kind == "f" else x


@elementwise
class ceil:
    """Smallest integer not below; integers stay."""

    kinds = "iuf"
    vjp = no_slope
    lower = lambda b, x: b.ceil(x)
    reference = lambda x: numpy.ceil(x) if x.dtype.kind == "f" else x


@elementwise
class trunc:
    """Rounded toward zero; integers stay."""

    functions = ("trunc", "fix")
    kinds = "iuf"
    vjp = no_slope
    lower = lambda b, x: b.trunc(x)
    reference = lambda x: numpy.trunc(x) if x.dtype.kind == "f" else x


@elementwise
class round_:
    """Nearest integer, halves to even; with ``decimals``, to that many decimal places. Integers stay."""

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
    """``input`` without its whole part, with its sign."""

    inplace = True
    signature = "input"
    methods = ("frac",)
    reference = lambda x: x - numpy.trunc(x)
    compute = lambda x: x - ops.trunc(x)
