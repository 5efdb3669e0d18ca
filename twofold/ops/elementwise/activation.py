"""Element-wise activations of neural networks."""

from __future__ import annotations

import math
from math import prod
from typing import Any

import numpy

from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ops.base import apply, composite, elementwise, ops, public, to_float
from twofold.ops.building_blocks import rounded_once
from twofold.ops.promotion import autocast, factor_beside, need_constant, need_fitting
from twofold.ops.samples import nonzero, reals


@elementwise
class relu:
    """``max(input, 0)``; its gradient at 0 is 0.

    >>> import twofold as torch
    >>> torch.relu(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """

    kinds = "iuf"
    is_idempotent = True
    domain = (nonzero(-3, 3),)
    vjp = lambda ct, y, x: (ops.where(y <= 0, 0, ct),)
    lower = lambda b, x: b.maximum(x, b.const(0, x.dtype))
    reference = lambda x: numpy.maximum(x, 0)


@elementwise
class leaky_relu:
    """``input`` where positive, else ``negative_slope * input``.

    >>> import twofold as torch
    >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """

    signature = "input, negative_slope"
    result_dtype = to_float
    domain = (nonzero(-3, 3), reals(0.1, 0.4))
    arity = None
    wide_numbers = True
    vjp = lambda ct, y, x, slope: (ops.where(x > 0, ct, ct * slope), ops.where(x > 0, 0, ct * x))
    lower = lambda b, x, slope: b.select(b.cmp("gt", x, 0.0), x, b.mul(x, slope))
    reference = lambda x, slope: numpy.where(x > 0, x, x * slope)

    @staticmethod
    def call(input: Any, negative_slope: Any = 0.01) -> Any:
        return apply("leaky_relu", input, negative_slope)


@elementwise
class elu:
    """``input`` where positive, else ``alpha * (exp(input) - 1)``.

    >>> import twofold as torch
    >>> torch.nn.functional.elu(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    signature = "input, alpha"
    result_dtype = to_float
    accuracy = (1.9, 2.3)
    domain = (nonzero(-3, 3), reals(0.5, 1.5))
    arity = None
    wide_numbers = True
    vjp = lambda ct, y, x, alpha: (
        ops.where(x > 0, ct, ct * alpha * ops.exp(ops.minimum(x, 0))),
        ops.where(x > 0, 0, ct * ops.expm1(ops.minimum(x, 0))),
    )
    lower = lambda b, x, alpha: b.select(b.cmp("gt", x, 0.0), x, b.mul(alpha, b.math("expm1", x)))
    reference = lambda x, alpha: numpy.where(x > 0, x, alpha * numpy.expm1(x))

    @staticmethod
    def call(input: Any, alpha: Any = 1.0) -> Any:
        return apply("elu", input, alpha)


@composite
class celu:
    """``input`` where positive, else ``alpha * (exp(input / alpha) - 1)``.

    >>> import twofold as torch
    >>> torch.nn.functional.celu(torch.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """

    signature = "input, alpha"
    domain = (nonzero(-3, 3), reals(0.5, 1.5))
    reference = lambda x, a: numpy.where(x > 0, x, a * numpy.expm1(numpy.minimum(x, 0) / a))
    compute = rounded_once(
        lambda x, alpha: ops.where(x > 0, x, alpha * ops.expm1(ops.minimum(x, 0.0) / alpha))
    )

    @staticmethod
    def call(input: Any, alpha: Any = 1.0) -> Any:
        if isinstance(alpha, (int, float)) and alpha == 0:
            raise ArgumentError("alpha cannot be 0 for CELU, which divides by it", "Use relu.")
        return apply("celu", input, alpha)


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@composite
class selu:
    """``scale * (max(x, 0) + min(alpha * (exp(x) - 1), 0))``, which keeps mean 0 and variance 1.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017.

    >>> import twofold as torch
    >>> torch.selu(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    autograd_name = "EluBackward0"
    signature = "input"
    domain = (nonzero(-3, 3),)
    compute = rounded_once(lambda x: ops.elu(x, _SELU_ALPHA) * _SELU_SCALE)


def _gelu(x: Any, approximate: str) -> Any:
    """By the logistic and the normal distribution function, which keep all digits of the negative tail."""
    if approximate == "tanh":
        return x * ops.sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * (x * x * x)))
    return x * ops.ndtr(x)


@composite
class gelu:
    """``input`` times the normal distribution function of it; ``approximate="tanh"`` for the usual shortcut.

    Source: Hendrycks and Gimpel 2016, Gaussian Error Linear Units.

    >>> import twofold as torch
    >>> torch.nn.functional.gelu(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    >>> torch.nn.functional.gelu(torch.tensor([-1.0, 2.0]), approximate="tanh")
    tensor([-0.1588,  1.9546])
    """

    signature = "input"
    compute = rounded_once(_gelu)
    attribute_samples = (("none",), ("tanh",))

    @staticmethod
    def call(input: Any, approximate: str = "none") -> Any:
        if approximate not in ("none", "tanh"):
            raise ArgumentError(f"approximate={approximate!r} is unknown", "Use 'none' or 'tanh'.")
        return apply("gelu", input, attrs=(approximate,))


@composite
class silu:
    """``input * sigmoid(input)``, also called swish.

    >>> import twofold as torch
    >>> torch.nn.functional.silu(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    functions = ("silu", "swish")
    signature = "input"
    reference = lambda x: x / (1 + numpy.exp(-x))
    compute = rounded_once(lambda x: x * ops.sigmoid(x))


@composite
class mish:
    """``input * tanh(softplus(input))`` (Misra 2019).

    >>> import twofold as torch
    >>> torch.nn.functional.mish(torch.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

    signature = "input"
    reference = lambda x: x * numpy.tanh(numpy.logaddexp(x, 0))
    compute = rounded_once(lambda x: x * ops.tanh(ops.softplus(x)))


@composite
class logsigmoid:
    """``log(sigmoid(input))`` without overflow.

    >>> import twofold as torch
    >>> torch.nn.functional.logsigmoid(torch.tensor([0.0, -100.0]))
    tensor([  -0.6931, -100.0000])
    """

    autograd_name = "LogSigmoidBackward0"
    functions = ("logsigmoid", "log_sigmoid")
    signature = "input"
    reference = lambda x: -numpy.logaddexp(-x, 0)
    compute = lambda x: -ops.softplus(-x)


def _strictly_inside(ct: Any, y: Any, x: Any, low: Any, high: Any) -> tuple[Any, None, None]:
    return (ops.where(ops.logical_or(x <= low, x >= high), 0, ct), None, None)


@elementwise
class hardtanh:
    """``input`` limited to [``min_val``, ``max_val``]; at the limits the gradient is 0.

    >>> import twofold as torch
    >>> torch.nn.functional.hardtanh(torch.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    signature = "input, min_val, max_val"
    kinds = "iuf"
    domain = (reals(-3, 3), reals(-1.5, -0.5), reals(0.5, 1.5))
    arity = None
    vjp = _strictly_inside
    lower = lambda b, x, low, high: b.minimum(b.maximum(x, low), high)
    reference = lambda x, low, high: numpy.minimum(numpy.maximum(x, low), high)

    @staticmethod
    def call(input: Any, min_val: Any = -1.0, max_val: Any = 1.0) -> Any:
        need_constant("hardtanh", min_val=min_val, max_val=max_val)
        if min_val > max_val:
            raise ArgumentError(f"min_val {min_val} above max_val {max_val}", "Swap them.")
        if input.dtype.kind == "u" and min_val < 0:
            raise ArgumentError(
                f"min_val {min_val} for {input.dtype.name}", "Use limits that are not negative."
            )
        if input.dtype.kind != "f":
            min_val, max_val = factor_beside(min_val, input), factor_beside(max_val, input)
        return apply("hardtanh", input, min_val, max_val)


@composite
class relu6:
    """``min(max(input, 0), 6)``.

    >>> import twofold as torch
    >>> torch.nn.functional.relu6(torch.tensor([-1.0, 2.0, 9.0]))
    tensor([0., 2., 6.])
    """

    autograd_name = "HardtanhBackward0"
    signature = "input"
    reference = lambda x: numpy.clip(x, 0, 6)
    compute = lambda x: ops.hardtanh(x, 0, 6)


@composite
class hardsigmoid:
    """``input / 6 + 1 / 2``, limited to [0, 1].

    >>> import twofold as torch
    >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    signature = "input"
    domain = (reals(-2.9, 2.9),)
    reference = lambda x: numpy.clip(x / 6 + 0.5, 0, 1)
    compute = rounded_once(lambda x: ops.hardtanh(x + 3.0, 0, 6) / 6.0)


@composite
class hardswish:
    """``input * hardsigmoid(input)`` (Howard et al. 2019, Searching for MobileNetV3).

    >>> import twofold as torch
    >>> torch.nn.functional.hardswish(torch.tensor([-4.0, 1.5, 4.0]))
    tensor([-0.0000,  1.1250,  4.0000])
    """

    signature = "input"
    domain = (reals(-2.9, 2.9),)
    reference = lambda x: x * numpy.clip(x / 6 + 0.5, 0, 1)
    compute = rounded_once(lambda x: x * (ops.hardtanh(x + 3.0, 0, 6) / 6.0))


@composite
class softsign:
    """``input / (1 + |input|)``.

    >>> import twofold as torch
    >>> torch.nn.functional.softsign(torch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    autograd_name = "DivBackward0"
    signature = "input"
    reference = lambda x: x / (1 + abs(x))
    compute = lambda x: x / (1 + ops.abs(x))


@composite
class tanhshrink:
    """``input - tanh(input)``.

    >>> import twofold as torch
    >>> torch.nn.functional.tanhshrink(torch.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """

    signature = "input"
    reference = lambda x: x - numpy.tanh(x)
    compute = lambda x: x - ops.tanh(x)


@composite
class softshrink:
    """``input`` moved towards 0 by ``lambd``, not beyond.

    >>> import twofold as torch
    >>> torch.nn.functional.softshrink(torch.tensor([-2.0, 0.25, 2.0]))
    tensor([-1.5000,  0.0000,  1.5000])
    """

    signature = "input, lambd"
    domain = (reals(-3, 3), reals(0.1, 0.2))
    reference = lambda x, w: numpy.select((x > w, x < -w), (x - w, x + w), x * 0)
    compute = rounded_once(
        lambda x, width: ops.where(x > width, x - width, ops.where(x < -width, x + width, x * 0))
    )

    @staticmethod
    def call(input: Any, lambd: Any = 0.5) -> Any:
        if isinstance(lambd, (int, float)) and not lambd >= 0:
            raise ArgumentError(f"lambd is {lambd}", "Use a number from 0 up.")
        return apply("softshrink", input, lambd)


@composite
class hardshrink:
    """0 where ``input`` is at most ``lambd`` from 0, else ``input`` (NaN, too).

    >>> import twofold as torch
    >>> torch.nn.functional.hardshrink(torch.tensor([-2.0, 0.25, 2.0]))
    tensor([-2.,  0.,  2.])
    """

    signature = "input, lambd"
    domain = (reals(-3, 3), reals(0.1, 0.2))
    reference = lambda x, w: numpy.where(abs(x) <= w, 0, x)
    compute = lambda x, width: ops.where(ops.abs(x) <= width, 0, x)

    @staticmethod
    def call(input: Any, lambd: Any = 0.5) -> Any:
        return apply("hardshrink", input, lambd)


@composite
class threshold:
    """``value`` where ``input`` is at most ``threshold``, else ``input`` (NaN, too).

    >>> import twofold as torch
    >>> torch.threshold(torch.tensor([0.5, 2.0]), 1.0, -9.0)
    tensor([-9.,  2.])
    """

    signature = "input, threshold, value"
    arity = 3
    checks_numbers = True
    domain = (reals(-3, 3), reals(0.1, 0.2), reals(4, 5))
    reference = lambda x, limit, value: numpy.where(x <= limit, value, x)
    compute = rounded_once(lambda x, limit, value: ops.where(x <= limit, value, x))

    @staticmethod
    def call(input: Any, threshold: Any, value: Any) -> Any:
        need_fitting(value, input.dtype)
        return apply("threshold", input, factor_beside(threshold, input), factor_beside(value, input))


@public(methods=("prelu",))
@autocast("lower")
def prelu(input: Any, weight: Any) -> Any:
    """``input`` where positive, else ``weight * input``, with one weight or one per channel (axis 1).

    Raises ShapeError for another number of weights, DTypeError for weights of another dtype.

    >>> import twofold as torch
    >>> torch.prelu(torch.tensor([[-2.0, 4.0]]), torch.tensor([0.5, 0.25]))
    tensor([[-1.,  4.]])
    """
    shape, count = tuple(input.shape), prod(weight.shape)
    channels = shape[1] if len(shape) > 1 else 1
    if len(weight.shape) > 1 or count not in (1, channels):
        raise ShapeError(
            f"weights of shape {tuple(weight.shape)} for {channels} channels", "Give one, or one per channel."
        )
    if weight.dtype is not input.dtype:
        raise DTypeError(
            f"prelu: Type promoting not supported. Got {input.dtype.name} and {weight.dtype.name}",
            f"Convert one of them, such as with .to({input.dtype.name}).",
        )
    if count != 1 or len(shape) > 1:
        weight = ops.reshape(weight, (count, *(1,) * max(len(shape) - 2, 0)))
    elif not shape:
        weight = ops.reshape(weight, ())
    return apply("leaky_relu", input, weight)
