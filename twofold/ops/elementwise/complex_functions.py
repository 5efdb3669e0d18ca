"""Functions of complex numbers by their real and imaginary parts.

Inverse functions follow W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's
sign bit" (1987); the branch cuts are those of the C standard (Annex G).
"""

from __future__ import annotations

import math
from typing import Any

from twofold.ops.base import apply, filled, ops


def parts(z: Any) -> tuple[Any, Any]:
    """The real and the imaginary part."""
    return ops.real(z), ops.imag(z)


def add(a: Any, b: Any) -> Any:
    (x, y), (u, v) = parts(a), parts(b)
    return ops.complex(x + u, y + v)


def subtract(a: Any, b: Any) -> Any:
    (x, y), (u, v) = parts(a), parts(b)
    return ops.complex(x - u, y - v)


def multiply(a: Any, b: Any) -> Any:
    (x, y), (u, v) = parts(a), parts(b)
    return ops.complex(x * u - y * v, x * v + y * u)


def divide(a: Any, b: Any) -> Any:
    """By the larger part of the divisor first, so that nothing overflows on the way (Smith 1962).

    Where the divisor is 0, each part is divided by it, as in NumPy and PyTorch.
    """
    (x, y), (u, v) = parts(a), parts(b)
    zero = ops.logical_and(ops.equal(u, 0.0), ops.equal(v, 0.0))
    wide = ops.abs(u) >= ops.abs(v)
    large, small = ops.where(wide, u, v), ops.where(wide, v, u)
    ratio = ops.where(zero, 0.0, small / large)
    scale = ops.where(zero, 0.0, large + small * ratio)
    real = ops.where(wide, x + y * ratio, x * ratio + y) / scale
    imag = ops.where(wide, y - x * ratio, y * ratio - x) / scale
    return ops.complex(real, imag)


def scaled(z: Any, factor: Any) -> Any:
    """``z`` times a real number or tensor."""
    x, y = parts(z)
    return ops.complex(x * factor, y * factor)


def by_parts(function: str) -> Any:
    """The rule that applies a real function to each part."""

    def rule(z: Any) -> Any:
        x, y = parts(z)
        return ops.complex(apply(function, x), apply(function, y))

    return rule


def both(function: str, joined: str) -> Any:
    """The rule of a test: a real test of each part, joined by another operation."""

    def rule(*operands: Any) -> Any:
        real = apply(function, *[ops.real(z) for z in operands])
        return apply(joined, real, apply(function, *[ops.imag(z) for z in operands]))

    return rule


def truth(z: Any) -> Any:
    """Whether an element is not 0."""
    x, y = parts(z)
    return ops.logical_or(x, y)


def angle(z: Any) -> Any:
    x, y = parts(z)
    return ops.atan2(y, x)


def absolute(z: Any) -> Any:
    x, y = parts(z)
    return ops.hypot(x, y)


def sign(z: Any) -> Any:
    """``z / |z|``; 0 at 0."""
    size = absolute(z)
    zero = ops.equal(size, 0)
    x, y = parts(z)
    size = ops.where(zero, 1, size)
    return ops.complex(ops.where(zero, 0, x / size), ops.where(zero, 0, y / size))


def square(z: Any) -> Any:
    x, y = parts(z)
    return ops.complex((x - y) * (x + y), 2 * (x * y))


def reciprocal(z: Any) -> Any:
    one = filled(1, z.dtype.real, z.shape)
    return divide(ops.complex(one, filled(0, z.dtype.real, z.shape)), z)


def _times(a: Any, b: Any) -> Any:
    """A product in which 0 times anything is 0, as for a real exponential or a zero angle."""
    return ops.where(ops.equal(b, 0), b, ops.where(ops.equal(a, 0), a, a * b))


def _undirected(x: Any, y: Any) -> Any:
    """Where the real part is infinite and the imaginary part gives no direction: infinite or NaN, too."""
    return ops.logical_and(ops.isinf(x), ops.logical_not(ops.isfinite(y)))


def _risen(x: Any, y: Any) -> Any:
    """``exp(x) sin(y)``: 0 where the angle is, and where ``x`` is negative infinity."""
    rise, size = ops.sin(y), ops.exp(x)
    product = ops.where(ops.equal(rise, 0), rise, size * rise)
    return ops.where(ops.logical_and(ops.equal(size, 0), ops.isinf(x)), 0, product)


def exp(z: Any) -> Any:
    x, y = parts(z)
    size, lost = ops.exp(x), _undirected(x, y)
    return ops.complex(ops.where(lost, size, size * ops.cos(y)), _risen(x, y))


def expm1(z: Any) -> Any:
    """``expm1(x) cos(y) - 2 sin(y/2)^2 + i exp(x) sin(y)``, accurate near 0."""
    x, y = parts(z)
    half, less = ops.sin(y * 0.5), ops.expm1(x)
    # 0 first, so that -0 gives 0, as the array API standard has it
    real = ops.where(_undirected(x, y), less, (0.0 - 2 * half * half) + less * ops.cos(y))
    return ops.complex(real, _risen(x, y))


def exp2(z: Any) -> Any:
    return exp(scaled(z, math.log(2)))


def log_of_size(x: Any, y: Any) -> Any:
    """``log |x + iy|``; near the unit circle from the distance to it, which a logarithm would lose."""
    large, small = ops.maximum(ops.abs(x), ops.abs(y)), ops.minimum(ops.abs(x), ops.abs(y))
    near = ops.logical_and(large > 0.5, large < 2)
    distance = (large - 1) * (large + 1) + small * small
    return ops.where(near, 0.5 * ops.log1p(ops.where(near, distance, 0)), ops.log(ops.hypot(x, y)))


def log(z: Any) -> Any:
    x, y = parts(z)
    return ops.complex(log_of_size(x, y), ops.atan2(y, x))


def log1p(z: Any) -> Any:
    x, y = parts(z)
    small = ops.logical_and(ops.abs(x) < 0.5, ops.abs(y) < 0.5)
    size = ops.where(small, 0.5 * ops.log1p(x * (x + 2) + y * y), log_of_size(x + 1, y))
    return ops.complex(size, ops.atan2(y, x + 1))


def logaddexp(a: Any, b: Any) -> Any:
    """The logarithm of the sum of exponentials, from the operand with the larger real part: no overflow."""
    first = ops.real(a) >= ops.real(b)
    high, low = ops.where(first, a, b), ops.where(first, b, a)
    nothing = ops.isneginf(ops.real(high))
    rest = subtract(low, ops.where(nothing, 0.0, high))
    return ops.where(nothing, high, add(high, log1p(exp(rest))))


def log2(z: Any) -> Any:
    return scaled(log(z), 1 / math.log(2))


def log10(z: Any) -> Any:
    return scaled(log(z), 1 / math.log(10))


def sqrt(z: Any) -> Any:
    """The root with a real part that is not negative; halves are taken first, so that nothing overflows."""
    x, y = parts(z)
    root = ops.sqrt(ops.abs(x) * 0.5 + ops.hypot(x * 0.5, y * 0.5))
    other = ops.where(ops.equal(root, 0), 0, ops.abs(y) / (2 * ops.where(ops.equal(root, 0), 1, root)))
    right = x >= 0
    real, imag = ops.where(right, root, other), ops.where(right, other, root)
    infinite = ops.isinf(y)
    real, imag = ops.where(infinite, math.inf, real), ops.where(infinite, math.inf, imag)
    return ops.complex(real, ops.copysign(imag, y))


def rsqrt(z: Any) -> Any:
    return reciprocal(sqrt(z))


def power(z: Any, n: Any) -> Any:
    """``exp(n log z)``; 0 to the power 0 is 1, 0 where the real part of ``n`` is positive, infinite where negative."""
    zero = ops.logical_not(truth(z))
    raised = exp(multiply(n, log(ops.where(zero, 1.0, z))))
    vanishes, grows = ops.real(n) > 0, ops.real(n) < 0
    nothing = ops.zeros_like(ops.real(raised))
    size = ops.where(vanishes, nothing, ops.where(grows, nothing + math.inf, math.nan))
    of_zero = ops.complex(size, ops.where(vanishes, nothing, math.nan))
    return ops.where(zero, ops.where(truth(n), of_zero, ops.ones_like(raised)), raised)


def sinh(z: Any) -> Any:
    x, y = parts(z)
    real = ops.where(_undirected(x, y), x, _times(ops.cos(y), ops.sinh(x)))
    return ops.complex(real, _times(ops.cosh(x), ops.sin(y)))


def cosh(z: Any) -> Any:
    x, y = parts(z)
    real = ops.where(_undirected(x, y), ops.abs(x), ops.cosh(x) * ops.cos(y))
    return ops.complex(real, _times(ops.sinh(x), ops.sin(y)))


def tanh(z: Any) -> Any:
    """Kahan's form; beyond 20 the real part is 1 to every bit."""
    x, y = parts(z)
    far, directed = ops.abs(x) > 20, ops.isfinite(y)
    near = ops.where(far, 0, x)
    t, s = ops.tan(y), ops.sinh(near)
    beta = 1 + t * t
    scale = 1 + beta * s * s
    infinite = ops.isinf(t)
    real = ops.where(infinite, 1 / s, beta * ops.sqrt(1 + s * s) * s / scale)
    imag = ops.where(infinite, 0, t / scale)
    limit = ops.where(ops.logical_or(directed, ops.isinf(x)), ops.copysign(1.0, x), math.nan)
    beyond = ops.where(
        ops.isinf(x), ops.copysign(0.0, y), 4 * ops.sin(y) * ops.cos(y) * ops.exp(-2 * ops.abs(x))
    )
    real, imag = ops.where(far, limit, real), ops.where(far, beyond, imag)
    return ops.complex(ops.where(ops.equal(x, 0), x, real), ops.where(ops.equal(y, 0), y, imag))


def times_i(z: Any) -> Any:
    """``iz``."""
    x, y = parts(z)
    return ops.complex(-y, x)


def times_minus_i(z: Any) -> Any:
    """``-iz``."""
    x, y = parts(z)
    return ops.complex(y, -x)


def sin(z: Any) -> Any:
    return times_minus_i(sinh(times_i(z)))


def cos(z: Any) -> Any:
    return cosh(times_i(z))


def tan(z: Any) -> Any:
    return times_minus_i(tanh(times_i(z)))


def _roots(z: Any) -> tuple[Any, Any, Any, Any]:
    """The parts of ``sqrt(1 - z)`` and ``sqrt(1 + z)``."""
    x, y = parts(z)
    return *parts(sqrt(ops.complex(1 - x, -y))), *parts(sqrt(ops.complex(1 + x, y)))


def _far(x: Any, y: Any) -> Any:
    """Where either part is infinite."""
    return ops.logical_or(ops.isinf(x), ops.isinf(y))


def _angle_at_infinity(x: Any, y: Any) -> Any:
    """The angle of an infinite number in [0, pi], NaN where a part is."""
    both = ops.logical_and(ops.isinf(x), ops.isinf(y))
    quarter = filled(math.pi / 4, x.dtype, x.shape)
    diagonal = ops.where(x > 0, quarter, 3 * quarter)
    unknown = ops.logical_or(ops.isnan(x), ops.isnan(y))
    return ops.where(unknown, math.nan, ops.where(both, diagonal, ops.atan2(ops.abs(y), x)))


def acos(z: Any) -> Any:
    (x, y), (a, b, c, d) = parts(z), _roots(z)
    far = _far(x, y)
    real = ops.where(far, _angle_at_infinity(x, y), 2 * ops.atan2(a, c))
    real = ops.where(ops.logical_and(ops.equal(x, 0), ops.isnan(y)), math.pi / 2, real)
    return ops.complex(real, ops.where(far, ops.copysign(math.inf, -y), ops.asinh(b * c - a * d)))


def acosh(z: Any) -> Any:
    x, y = parts(z)
    (a, b), (c, d) = parts(sqrt(ops.complex(x - 1, y))), parts(sqrt(ops.complex(x + 1, y)))
    far = _far(x, y)
    imag = ops.where(far, ops.copysign(_angle_at_infinity(x, y), y), 2 * ops.atan2(b, c))
    imag = ops.where(ops.logical_and(ops.equal(x, 0), ops.isnan(y)), math.pi / 2, imag)
    return ops.complex(ops.where(far, math.inf, ops.asinh(a * c + b * d)), imag)


def asinh(z: Any) -> Any:
    (x, y), (a, b, c, d) = parts(z), _roots(times_i(z))
    far = _far(x, y)
    real = ops.where(far, ops.copysign(math.inf, x), ops.asinh(a * d - b * c))
    steep = ops.copysign(_angle_at_infinity(ops.abs(x), y), y)
    imag = ops.where(far, steep, ops.atan2(y, a * c - b * d))
    real = ops.where(ops.logical_and(ops.equal(x, 0), ops.abs(y) <= 1), x, real)
    return ops.complex(real, ops.where(ops.equal(y, 0), y, imag))


def asin(z: Any) -> Any:
    return times_minus_i(asinh(times_i(z)))


def atanh(z: Any) -> Any:
    x, y = parts(z)
    far, beside = _far(x, y), 1 - x
    real = ops.where(far, ops.copysign(0.0, x), 0.25 * ops.log1p(4 * x / (beside * beside + y * y)))
    angle = 0.5 * ops.atan2(2 * y, beside * (1 + x) - y * y)
    imag = ops.where(far, ops.where(ops.isnan(y), y, ops.copysign(math.pi / 2, y)), angle)
    return ops.complex(ops.where(ops.equal(x, 0), x, real), imag)


def atan(z: Any) -> Any:
    return times_minus_i(atanh(times_i(z)))


def sigmoid(z: Any) -> Any:
    return reciprocal(ops.add(exp(ops.negative(z)), 1.0))


def by_parts_over_axes(function: str) -> Any:
    """The rule of a reduction that adds: the parts are reduced apart."""

    def rule(z: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        x, y = parts(z)
        return ops.complex(
            apply(function, x, attrs=(axes, keepdims)), apply(function, y, attrs=(axes, keepdims))
        )

    return rule


def product_over_axes(z: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Halves multiplied with each other until one is left; an odd last element joins at the end."""
    shape = z.shape
    order = [axis for axis in range(len(shape)) if axis not in axes]
    kept = tuple(shape[axis] for axis in order)
    flat = ops.reshape(ops.permute(z, (*order, *axes)), (*kept, math.prod(shape[axis] for axis in axes)))
    rest = filled(1.0, z.dtype, kept)
    while (count := flat.shape[-1]) > 1:
        if count % 2:
            rest = multiply(rest, ops.select(flat, -1, count - 1))
        half = count // 2
        flat = multiply(ops.narrow(flat, -1, 0, half), ops.narrow(flat, -1, half, half))
    result = multiply(rest, ops.select(flat, -1, 0)) if flat.shape[-1] else rest
    if not keepdims:
        return result
    return ops.reshape(result, tuple(1 if axis in axes else size for axis, size in enumerate(shape)))
