"""Numeric gradient check in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

Array = Any


def numeric_vjp(
    function: Callable[[Sequence[Array]], Array],
    arrays: Sequence[Array],
    cotangent: Array,
    index: int,
    step: float = 1e-6,
) -> Array:
    """The cotangent of ``arrays[index]`` by central differences of ``sum(cotangent * function(arrays))``.

    Source: central difference quotient; with float64 and ``step`` 1e-6 about nine digits.
    """
    arrays = [numpy.array(array) for array in arrays]
    target = arrays[index]
    result = numpy.zeros(target.shape, numpy.float64)
    for place in numpy.ndindex(target.shape):
        before = target[place].copy()
        target[place] = before + step
        above = numpy.sum(cotangent * function(arrays))
        target[place] = before - step
        below = numpy.sum(cotangent * function(arrays))
        target[place] = before
        result[place] = (above - below) / (2 * step)
    return result


def compare_gradients(found: Array, numeric: Array, tolerance: float = 1e-5) -> str | None:
    """None if the two agree to ``tolerance`` (relative where above 1), else what differs."""
    found, numeric = numpy.asarray(found, numpy.float64), numpy.asarray(numeric)
    if found.shape != numeric.shape:
        return f"shapes differ: {found.shape} against {numeric.shape}"
    error = numpy.abs(found - numeric) / numpy.maximum(1.0, numpy.abs(numeric))
    if error.size == 0 or numpy.all(error <= tolerance):
        return None
    place = numpy.unravel_index(
        int(numpy.nanargmax(numpy.where(numpy.isnan(error), numpy.inf, error))), error.shape
    )
    return f"at {tuple(map(int, place))}: {found[place]} against {numeric[place]} by differences"
