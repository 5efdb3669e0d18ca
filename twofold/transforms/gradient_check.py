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
    """A vector-Jacobian product by central differences.

    The gradient of a real function ``L`` of a complex ``x + iy`` is ``dL/dx + i dL/dy``.

    Args:
        function: The function to differentiate.
        arrays: Its arguments, in float64 or complex128.
        cotangent: The cotangent of its result.
        index: The argument whose cotangent is returned.
        step: The difference to either side; with 1e-6 about nine digits are right.
    """
    arrays = [numpy.array(array) for array in arrays]
    target = arrays[index]
    result = numpy.zeros(target.shape, target.dtype)
    weights = numpy.conj(cotangent)

    def slope(position: tuple[int, ...], move: complex) -> Any:
        before = target[position].copy()
        target[position] = before + move
        above = numpy.sum(numpy.real(weights * function(arrays)))
        target[position] = before - move
        below = numpy.sum(numpy.real(weights * function(arrays)))
        target[position] = before
        return (above - below) / (2 * step)

    for position in numpy.ndindex(target.shape):
        result[position] = slope(position, step)
        if target.dtype.kind == "c":
            result[position] += 1j * slope(position, 1j * step)
    return result


def compare_gradients(found: Array, numeric: Array, tolerance: float = 1e-5) -> str | None:
    """None if the two agree to ``tolerance`` (relative where above 1), else what differs."""
    numeric = numpy.asarray(numeric)
    found = numpy.asarray(found, numpy.result_type(numeric, numpy.float64))
    if found.shape != numeric.shape:
        return f"shapes differ: {found.shape} against {numeric.shape}"
    error = numpy.abs(found - numeric) / numpy.maximum(1.0, numpy.abs(numeric))
    if error.size == 0 or numpy.all(error <= tolerance):
        return None
    position = numpy.unravel_index(
        int(numpy.nanargmax(numpy.where(numpy.isnan(error), numpy.inf, error))), error.shape
    )
    return f"at {tuple(map(int, position))}: {found[position]} against {numeric[position]} by differences"
