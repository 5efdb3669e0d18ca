"""The element-wise functions of the standard, over the operations of the same meaning."""

from __future__ import annotations

import math
from typing import Any

from twofold import _core
from twofold.array_api.functions import functions

Tensor = _core.Tensor


def abs(x: Tensor, /) -> Tensor:
    """Absolute value."""
    return functions.abs(x)


def acos(x: Tensor, /) -> Tensor:
    """Inverse cosine."""
    return functions.acos(x)


def acosh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic cosine."""
    return functions.acosh(x)


def add(x1: Any, x2: Any, /) -> Tensor:
    """The sum."""
    return functions.add(x1, x2)


def asin(x: Tensor, /) -> Tensor:
    """Inverse sine."""
    return functions.asin(x)


def asinh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic sine."""
    return functions.asinh(x)


def atan(x: Tensor, /) -> Tensor:
    """Inverse tangent."""
    return functions.atan(x)


def atan2(x1: Any, x2: Any, /) -> Tensor:
    """Angle of the point (``x2``, ``x1``), in (-pi, pi]."""
    return functions.atan2(x1, x2)


def atanh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic tangent."""
    return functions.atanh(x)


def bitwise_and(x1: Any, x2: Any, /) -> Tensor:
    """Bits set in both."""
    return functions.bitwise_and(x1, x2)


def bitwise_invert(x: Tensor, /) -> Tensor:
    """Every bit flipped."""
    return functions.bitwise_invert(x)


def bitwise_left_shift(x1: Any, x2: Any, /) -> Tensor:
    """Bits moved up by ``x2`` positions."""
    return functions.bitwise_left_shift(x1, x2)


def bitwise_or(x1: Any, x2: Any, /) -> Tensor:
    """Bits set in either."""
    return functions.bitwise_or(x1, x2)


def bitwise_right_shift(x1: Any, x2: Any, /) -> Tensor:
    """Bits moved down by ``x2`` positions, keeping the sign."""
    return functions.bitwise_right_shift(x1, x2)


def bitwise_xor(x1: Any, x2: Any, /) -> Tensor:
    """Bits set in exactly one."""
    return functions.bitwise_xor(x1, x2)


def ceil(x: Tensor, /) -> Tensor:
    """Smallest integer not below."""
    return functions.ceil(x)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """``x`` limited to [``min``, ``max``], each a number, an array or None, in the dtype of ``x``."""
    if min is None and max is None:
        return functions.positive(x)
    return functions.clamp(x, min, max).to(x.dtype)


def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate of each element."""
    return functions.conj(x)


def copysign(x1: Any, x2: Any, /) -> Tensor:
    """``x1`` with the sign of ``x2``."""
    return functions.copysign(x1, x2)


def cos(x: Tensor, /) -> Tensor:
    """Cosine."""
    return functions.cos(x)


def cosh(x: Tensor, /) -> Tensor:
    """Hyperbolic cosine."""
    return functions.cosh(x)


def divide(x1: Any, x2: Any, /) -> Tensor:
    """The quotient."""
    return functions.divide(x1, x2)


def equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether the two are equal."""
    return functions.equal(x1, x2)


def exp(x: Tensor, /) -> Tensor:
    """e to the power of each element."""
    return functions.exp(x)


def expm1(x: Tensor, /) -> Tensor:
    """``exp(x) - 1``, accurate near 0."""
    return functions.expm1(x)


def floor(x: Tensor, /) -> Tensor:
    """Largest integer not above."""
    return functions.floor(x)


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """Quotient rounded down; ``x1 / x2`` where either is infinite, unlike Python's ``//``."""
    result = functions.floor_divide(x1, x2)
    if not result.dtype.is_floating_point:
        return result
    infinite = [functions.isinf(x) if isinstance(x, Tensor) else math.isinf(x) for x in (x1, x2)]
    return functions.where(functions.logical_or(*infinite), functions.divide(x1, x2), result)


def greater(x1: Any, x2: Any, /) -> Tensor:
    """Whether ``x1`` is greater than ``x2``."""
    return functions.greater(x1, x2)


def greater_equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether ``x1`` is at least ``x2``."""
    return functions.greater_equal(x1, x2)


def hypot(x1: Any, x2: Any, /) -> Tensor:
    """``sqrt(x1**2 + x2**2)`` without overflow."""
    return functions.hypot(x1, x2)


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part of each element of a complex tensor."""
    return functions.imag(x)


def isfinite(x: Tensor, /) -> Tensor:
    """Whether each element is neither NaN nor an infinity."""
    return functions.isfinite(x)


def isinf(x: Tensor, /) -> Tensor:
    """Whether each element is an infinity."""
    return functions.isinf(x)


def isnan(x: Tensor, /) -> Tensor:
    """Whether each element is NaN."""
    return functions.isnan(x)


def less(x1: Any, x2: Any, /) -> Tensor:
    """Whether ``x1`` is less than ``x2``."""
    return functions.less(x1, x2)


def less_equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether ``x1`` is at most ``x2``."""
    return functions.less_equal(x1, x2)


def log(x: Tensor, /) -> Tensor:
    """Natural logarithm."""
    return functions.log(x)


def log10(x: Tensor, /) -> Tensor:
    """Logarithm to base 10."""
    return functions.log10(x)


def log1p(x: Tensor, /) -> Tensor:
    """``log(1 + x)``, accurate near 0."""
    return functions.log1p(x)


def log2(x: Tensor, /) -> Tensor:
    """Logarithm to base 2."""
    return functions.log2(x)


def logaddexp(x1: Any, x2: Any, /) -> Tensor:
    """``log(exp(x1) + exp(x2))``, without overflow."""
    return functions.logaddexp(x1, x2)


def logical_and(x1: Any, x2: Any, /) -> Tensor:
    """Whether both are non-zero."""
    return functions.logical_and(x1, x2)


def logical_not(x: Tensor, /) -> Tensor:
    """Whether ``x`` is zero."""
    return functions.logical_not(x)


def logical_or(x1: Any, x2: Any, /) -> Tensor:
    """Whether either is non-zero."""
    return functions.logical_or(x1, x2)


def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    """Whether exactly one is non-zero."""
    return functions.logical_xor(x1, x2)


def maximum(x1: Any, x2: Any, /) -> Tensor:
    """The larger of the two."""
    return functions.maximum(x1, x2)


def minimum(x1: Any, x2: Any, /) -> Tensor:
    """The smaller of the two."""
    return functions.minimum(x1, x2)


def multiply(x1: Any, x2: Any, /) -> Tensor:
    """The product."""
    return functions.multiply(x1, x2)


def negative(x: Tensor, /) -> Tensor:
    """``x`` with its sign changed."""
    return functions.negative(x)


def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """The next float of the dtype after ``x1`` towards ``x2``."""
    return functions.nextafter(x1, x2)


def not_equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether the two differ."""
    return functions.not_equal(x1, x2)


def positive(x: Tensor, /) -> Tensor:
    """``x`` itself."""
    return functions.positive(x)


def pow(x1: Any, x2: Any, /) -> Tensor:
    """``x1`` to the power ``x2``."""
    return functions.pow(x1, x2)


def real(x: Tensor, /) -> Tensor:
    """The real part of each element."""
    return functions.real(x)


def reciprocal(x: Tensor, /) -> Tensor:
    """One over ``x``."""
    return functions.reciprocal(x)


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """Rest of ``floor_divide``, with the sign of ``x2``, as Python's ``%``."""
    return functions.remainder(x1, x2)


def round(x: Tensor, /) -> Tensor:
    """Nearest integer, halves to even."""
    return functions.round(x)


def sign(x: Tensor, /) -> Tensor:
    """1, 0 or -1 by the sign of ``x``; NaN stays, unlike in ``twofold.sign``."""
    found = functions.sign(x)
    return functions.where(functions.isnan(x), x, found) if x.dtype.is_floating_point else found


def signbit(x: Tensor, /) -> Tensor:
    """Whether the sign is negative, that of -0.0 included."""
    return functions.signbit(x)


def sin(x: Tensor, /) -> Tensor:
    """Sine."""
    return functions.sin(x)


def sinh(x: Tensor, /) -> Tensor:
    """Hyperbolic sine."""
    return functions.sinh(x)


def sqrt(x: Tensor, /) -> Tensor:
    """Square root."""
    return functions.sqrt(x)


def square(x: Tensor, /) -> Tensor:
    """``x`` times itself."""
    return functions.square(x)


def subtract(x1: Any, x2: Any, /) -> Tensor:
    """The difference."""
    return functions.subtract(x1, x2)


def tan(x: Tensor, /) -> Tensor:
    """Tangent."""
    return functions.tan(x)


def tanh(x: Tensor, /) -> Tensor:
    """Hyperbolic tangent."""
    return functions.tanh(x)


def trunc(x: Tensor, /) -> Tensor:
    """Rounded toward zero."""
    return functions.trunc(x)
