"""Element-wise exponentials, logarithms, circular and hyperbolic functions; integers give float32."""

from __future__ import annotations

import math
from typing import Any

import numpy

from twofold.dtypes import bool_, float32
from twofold.ops.base import apply, composite, convert, elementwise, ops, to_float
from twofold.ops.building_blocks import rounded_once
from twofold.ops.elementwise import complex_functions
from twofold.ops.samples import nonzero, reals


class MathFunction:
    """An element-wise function of floats: ``kernel`` is its name in ``compiler/lower/math``, the entry's by default.

    >>> class sine(MathFunction, kernel="sin"):
    ...     reference = None
    >>> sine.result_dtype is to_float
    True
    """

    result_dtype = to_float
    lower: Any

    def __init_subclass__(cls, kernel: str | None = None) -> None:
        name = kernel or cls.__name__
        cls.lower = lambda b, *operands: b.math(name, *operands)


@elementwise
class exp(MathFunction):
    """e to the power of each element.

    >>> import twofold as torch
    >>> torch.exp(torch.tensor([0.0, 1.0, -1.0]))
    tensor([1.0000, 2.7183, 0.3679])
    """

    accuracy = (1.1, 1.1)
    vjp = lambda ct, y, x: (ct * y,)
    on_complex = complex_functions.exp
    holomorphic = True
    reference = numpy.exp


@elementwise
class exp2(MathFunction):
    """2 to the power of each element.

    >>> import twofold as torch
    >>> torch.exp2(torch.tensor([0, 3, -1]))
    tensor([1.0000, 8.0000, 0.5000])
    """

    functions = ("exp2", "special.exp2")
    accuracy = (0.51, 0.8)
    vjp = lambda ct, y, x: (ct * (y * math.log(2)),)
    on_complex = complex_functions.exp2
    holomorphic = True
    reference = numpy.exp2


@elementwise
class expm1(MathFunction):
    """``exp(input) - 1``, accurate near 0.

    >>> import twofold as torch
    >>> torch.expm1(torch.tensor([1.0, 1e-7]))
    tensor([1.7183e+00, 1.0000e-07])
    """

    functions = ("expm1", "special.expm1")
    accuracy = (1.6, 2.1)
    vjp = lambda ct, y, x: (ct * (y + 1),)
    on_complex = complex_functions.expm1
    holomorphic = True
    reference = numpy.expm1


@elementwise
class log(MathFunction):
    """Natural logarithm; of 0 -inf, of negative numbers NaN.

    >>> import twofold as torch
    >>> torch.log(torch.tensor([1.0, 2.0, 0.0]))
    tensor([0.0000, 0.6931,   -inf])
    """

    has_poles = True
    accuracy = (1.0, 0.9)
    domain = (reals(0.1, 9),)
    vjp = lambda ct, y, x: (ct / x,)
    has_stable_forms = True
    on_complex = complex_functions.log
    holomorphic = True
    reference = numpy.log


@elementwise
class log1p(MathFunction):
    """``log(1 + input)``, accurate near 0.

    >>> import twofold as torch
    >>> torch.log1p(torch.tensor([1.0, 1e-7]))
    tensor([6.9315e-01, 1.0000e-07])
    """

    has_poles = True
    functions = ("log1p", "special.log1p")
    accuracy = (1.8, 1.2)
    domain = (reals(-0.8, 9),)
    vjp = lambda ct, y, x: (ct / (x + 1),)
    on_complex = complex_functions.log1p
    holomorphic = True
    reference = numpy.log1p


@elementwise
class log2(MathFunction):
    """Logarithm to base 2; of 0 -inf, of negative numbers NaN.

    >>> import twofold as torch
    >>> torch.log2(torch.tensor([1.0, 8.0, 0.5]))
    tensor([ 0.,  3., -1.])
    """

    has_poles = True
    accuracy = (0.51, 0.51)
    domain = (reals(0.1, 9),)
    vjp = lambda ct, y, x: (ct / (x * math.log(2)),)
    on_complex = complex_functions.log2
    holomorphic = True
    reference = numpy.log2


@elementwise
class log10(MathFunction):
    """Logarithm to base 10; of 0 -inf, of negative numbers NaN.

    >>> import twofold as torch
    >>> torch.log10(torch.tensor([1.0, 1000.0, 0.1]))
    tensor([ 0.,  3., -1.])
    """

    has_poles = True
    accuracy = (0.51, 0.51)
    domain = (reals(0.1, 9),)
    vjp = lambda ct, y, x: (ct / (x * math.log(10)),)
    on_complex = complex_functions.log10
    holomorphic = True
    reference = numpy.log10


@elementwise
class sin(MathFunction):
    """Sine of angles in radians.

    >>> import twofold as torch
    >>> torch.sin(torch.tensor([0.0, torch.pi / 6, torch.pi / 2]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    accuracy = (1.6, 0.8)
    vjp = lambda ct, y, x: (ct * ops.cos(x),)
    on_complex = complex_functions.sin
    holomorphic = True
    reference = numpy.sin


@elementwise
class cos(MathFunction):
    """Cosine of angles in radians.

    >>> import twofold as torch
    >>> torch.cos(torch.tensor([0.0, torch.pi / 3, torch.pi]))
    tensor([ 1.0000,  0.5000, -1.0000])
    """

    accuracy = (1.7, 0.8)
    vjp = lambda ct, y, x: (-ct * ops.sin(x),)
    on_complex = complex_functions.cos
    holomorphic = True
    reference = numpy.cos


@elementwise
class tan(MathFunction):
    """Tangent of angles in radians.

    >>> import twofold as torch
    >>> torch.tan(torch.tensor([0.0, torch.pi / 4]))
    tensor([0., 1.])
    """

    accuracy = (0.51, 0.95)
    domain = (reals(-1.2, 1.2),)
    vjp = lambda ct, y, x: (ct * (1 + y * y),)
    on_complex = complex_functions.tan
    holomorphic = True
    reference = numpy.tan


@elementwise
class asin(MathFunction):
    """Inverse sine in radians, in [-pi/2, pi/2]; NaN outside [-1, 1].

    >>> import twofold as torch
    >>> torch.asin(torch.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.5236, 1.5708])
    """

    functions = ("asin", "arcsin")
    accuracy = (0.51, 0.8)
    domain = (reals(-0.9, 0.9),)
    vjp = lambda ct, y, x: (ct / ops.sqrt((1 - x) * (1 + x)),)
    on_complex = complex_functions.asin
    holomorphic = True
    reference = numpy.arcsin


@elementwise
class acos(MathFunction):
    """Inverse cosine in radians, in [0, pi]; NaN outside [-1, 1].

    >>> import twofold as torch
    >>> torch.acos(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.0000, 1.0472, 3.1416])
    """

    functions = ("acos", "arccos")
    accuracy = (0.51, 0.8)
    domain = (reals(-0.9, 0.9),)
    vjp = lambda ct, y, x: (-ct / ops.sqrt((1 - x) * (1 + x)),)
    on_complex = complex_functions.acos
    holomorphic = True
    reference = numpy.arccos


@elementwise
class atan(MathFunction):
    """Inverse tangent in radians, in [-pi/2, pi/2].

    >>> import twofold as torch
    >>> torch.atan(torch.tensor([0.0, 1.0, float("inf")]))
    tensor([0.0000, 0.7854, 1.5708])
    """

    functions = ("atan", "arctan")
    accuracy = (0.51, 0.8)
    vjp = lambda ct, y, x: (ct / (1 + x * x),)
    on_complex = complex_functions.atan
    holomorphic = True
    reference = numpy.arctan


def _atan2_gradient(ct: Any, y: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Divided twice by the length, so that its square cannot overflow; 0 at the origin."""
    length = ops.hypot(a, b)
    length = ops.where(ops.equal(length, 0), 1, length)
    scaled = ct / length
    return scaled * (b / length), -scaled * (a / length)


@elementwise
class atan2(MathFunction):
    """Angle of the point (``other``, ``input``) in radians, in [-pi, pi].

    >>> import twofold as torch
    >>> torch.atan2(torch.tensor([1.0, 1.0]), torch.tensor([1.0, -1.0]))
    tensor([0.7854, 2.3562])
    """

    signature = "input, other"
    functions = ("atan2", "arctan2")
    accuracy = (0.51, 0.9)
    domain = (reals(0.2, 3), reals(-3, 3))
    vjp = _atan2_gradient
    reference = numpy.arctan2


@elementwise
class sinh(MathFunction):
    """Hyperbolic sine: ``(exp(input) - exp(-input)) / 2``.

    >>> import twofold as torch
    >>> torch.sinh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """

    accuracy = (0.51, 0.9)
    vjp = lambda ct, y, x: (ct * ops.cosh(x),)
    on_complex = complex_functions.sinh
    holomorphic = True
    reference = numpy.sinh


@elementwise
class cosh(MathFunction):
    """Hyperbolic cosine: ``(exp(input) + exp(-input)) / 2``.

    >>> import twofold as torch
    >>> torch.cosh(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """

    accuracy = (0.51, 0.8)
    vjp = lambda ct, y, x: (ct * ops.sinh(x),)
    on_complex = complex_functions.cosh
    holomorphic = True
    reference = numpy.cosh


@elementwise
class tanh(MathFunction):
    """Hyperbolic tangent: ``sinh(input) / cosh(input)``.

    >>> import twofold as torch
    >>> torch.tanh(torch.tensor([0.0, 1.0, -100.0]))
    tensor([ 0.0000,  0.7616, -1.0000])
    """

    accuracy = (1.5, 1.3)
    vjp = lambda ct, y, x: (ct * (1 + y) * (1 - y),)
    on_complex = complex_functions.tanh
    holomorphic = True
    reference = numpy.tanh


@elementwise
class asinh(MathFunction):
    """Inverse hyperbolic sine.

    >>> import twofold as torch
    >>> torch.asinh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """

    functions = ("asinh", "arcsinh")
    accuracy = (0.51, 1.1)
    vjp = lambda ct, y, x: (ct / (ops.sqrt(x * x + 1) if x.dtype.is_complex else ops.hypot(x, 1.0)),)
    on_complex = complex_functions.asinh
    holomorphic = True
    reference = numpy.arcsinh


@elementwise
class acosh(MathFunction):
    """Inverse hyperbolic cosine, not negative; NaN below 1.

    >>> import twofold as torch
    >>> torch.acosh(torch.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """

    functions = ("acosh", "arccosh")
    accuracy = (0.51, 0.51)
    domain = (reals(1.2, 9),)
    vjp = lambda ct, y, x: (ct / (ops.sqrt(x - 1) * ops.sqrt(x + 1)),)
    on_complex = complex_functions.acosh
    holomorphic = True
    reference = numpy.arccosh


@elementwise
class atanh(MathFunction):
    """Inverse hyperbolic tangent; NaN outside [-1, 1].

    >>> import twofold as torch
    >>> torch.atanh(torch.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.5493,    inf])
    """

    has_poles = True
    functions = ("atanh", "arctanh")
    accuracy = (0.51, 0.51)
    domain = (reals(-0.9, 0.9),)
    vjp = lambda ct, y, x: (ct / ((1 - x) * (1 + x)),)
    on_complex = complex_functions.atanh
    holomorphic = True
    reference = numpy.arctanh


def _sigmoid_reference(x: Any) -> Any:
    if x.dtype.kind == "c":
        return 1 / (1 + numpy.exp(-x))
    small = numpy.exp(-numpy.abs(x))
    return numpy.where(x >= 0, 1 / (1 + small), small / (1 + small))


@elementwise
class sigmoid(MathFunction):
    """``1 / (1 + exp(-input))``.

    >>> import twofold as torch
    >>> torch.sigmoid(torch.tensor([0.0, 2.0, -2.0]))
    tensor([0.5000, 0.8808, 0.1192])
    """

    functions = ("sigmoid", "special.expit")
    accuracy = (2.6, 2.6)
    vjp = lambda ct, y, x: (ct * y * (1 - y),)
    on_complex = complex_functions.sigmoid
    holomorphic = True
    reference = _sigmoid_reference


@elementwise
class softplus(MathFunction):
    """``log(1 + exp(beta * input)) / beta``, without overflow; ``input`` beyond a ``threshold`` below 20.

    >>> import twofold as torch
    >>> torch.nn.functional.softplus(torch.tensor([0.0, 1.0, 100.0]))
    tensor([  0.6931,   1.3133, 100.0000])
    """

    arity = 1
    accuracy = (2.1, 1.9)
    vjp = lambda ct, y, x: (ct * ops.sigmoid(x),)
    reference = lambda x: numpy.logaddexp(x, 0)

    @staticmethod
    def call(input: Any, beta: Any = 1.0, threshold: float = 20.0) -> Any:
        # nothing can overflow, so that a threshold matters only where the two forms differ visibly
        if threshold >= 20:
            return apply("softplus", input) if beta == 1 else apply("softplus_scaled", input, beta)
        scaled = input if beta == 1 else input * beta
        return ops.where(ops.greater(scaled, threshold), input, ops.softplus(input, beta))


@composite
class softplus_scaled:
    """``log(1 + exp(beta * input)) / beta``."""

    autograd_name = "SoftplusBackward0"
    title = "softplus"
    signature = "input, beta"
    domain = (reals(-3, 3), reals(0.5, 2))
    reference = lambda x, beta: numpy.logaddexp(x * beta, 0) / beta
    compute = rounded_once(lambda x, beta: apply("softplus", x * beta) / beta)


def _exact_logaddexp(x: Any, y: Any) -> Any:
    if not numpy.iscomplexobj(x):
        return numpy.logaddexp(x, y)
    high, low = numpy.where(x.real >= y.real, x, y), numpy.where(x.real >= y.real, y, x)
    return high + numpy.log1p(numpy.exp(low - high))


@elementwise
class logaddexp(MathFunction):
    """``log(exp(input) + exp(other))``, without overflow.

    >>> import twofold as torch
    >>> torch.logaddexp(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
    tensor([6.9315e-01, 1.0007e+03])
    """

    signature = "input, other"
    accuracy = (0.51, 2.4)
    vjp = lambda ct, y, a, b: (ct * ops.sigmoid(a - b), ct * ops.sigmoid(b - a))
    on_complex = complex_functions.logaddexp
    holomorphic = True
    amplitude = lambda x, y: numpy.fmax(numpy.abs(x), numpy.abs(y))
    reference = _exact_logaddexp


@composite
class logit:
    """``log(input / (1 - input))``; with ``eps``, of the input limited to [eps, 1 - eps].

    >>> import twofold as torch
    >>> torch.logit(torch.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    >>> torch.logit(torch.tensor([0.0, 1.0]), eps=0.1)
    tensor([-2.1972,  2.1972])
    """

    inplace = True
    functions = ("logit", "special.logit")
    signature = "input"
    methods = ("logit",)
    domain = (reals(0.1, 0.9),)
    attribute_samples = ((None,), (0.05,))
    reference = lambda x, eps: (
        numpy.log(x / (1 - x))
        if eps is None
        else numpy.log(numpy.clip(x, eps, 1 - eps) / (1 - numpy.clip(x, eps, 1 - eps)))
    )
    compute = lambda x, eps: _logit(convert(x, float32) if x.dtype is bool_ else x, eps)

    @staticmethod
    def call(input: Any, eps: float | None = None) -> Any:
        return apply("logit", input, attrs=(eps,))


@rounded_once
def _logit(x: Any, eps: float | None) -> Any:
    x = x if eps is None else ops.clamp(x, eps, 1 - eps)
    return ops.log(x) - ops.log1p(-x)


@composite
class sinc:
    """``sin(pi * input) / (pi * input)``, 1 at 0.

    >>> import twofold as torch
    >>> torch.sinc(torch.tensor([0.0, 0.5, 1.5]))
    tensor([ 1.0000,  0.6366, -0.2122])
    """

    inplace = True
    functions = ("sinc", "special.sinc")
    signature = "input"
    methods = ("sinc",)
    domain = (nonzero(-3, 3),)
    reference = numpy.sinc
    compute = rounded_once(lambda x: _sinc(x, ops.equal(x, 0)))


def _sinc(x: Any, zero: Any) -> Any:
    angle = ops.where(zero, 1.0, x) * math.pi
    return ops.where(zero, 1.0, ops.sin(angle) / angle)


@composite
class deg2rad:
    """Degrees to radians.

    >>> import twofold as torch
    >>> torch.deg2rad(torch.tensor([180.0, 90.0]))
    tensor([3.1416, 1.5708])
    """

    inplace = True
    signature = "input"
    methods = ("deg2rad",)
    reference = numpy.deg2rad
    compute = lambda x: x * (math.pi / 180)


@composite
class rad2deg:
    """Radians to degrees.

    >>> import twofold as torch
    >>> torch.rad2deg(torch.tensor([torch.pi, torch.pi / 4]))
    tensor([180.,  45.])
    """

    inplace = True
    signature = "input"
    methods = ("rad2deg",)
    reference = numpy.rad2deg
    compute = lambda x: x * (180 / math.pi)
