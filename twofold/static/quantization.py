"""Training as if numbers had few bits: ``tf.quantization.fake_quant_with_min_max_args`` and its siblings."""

from __future__ import annotations

from typing import Any

from twofold.dtypes import float32
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ops.base import apply
from twofold.ops.elementwise.quantization import fake_quantize_gradients
from twofold.static.api.op_functions import Alone, Number, full_of, numbers, operation
from twofold.static.graph.docstrings import example

__all__ = [
    "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient",
]


def _operands(
    inputs: Any, low: Any, high: Any, bits: Any, narrow: Any, channels: int
) -> tuple[Any, tuple[float, float]]:
    """The entry's operands and attributes; ``channels``: how many axes ``low`` and ``high`` have, the last ones."""
    for value in (inputs, low, high):
        if value.dtype is not float32:
            raise DTypeError(f"a tensor is {value.dtype.name}", "Cast it to float32.")
    shape = tuple(inputs.shape[inputs.ndim - channels :]) if inputs.ndim >= channels else None
    if shape is None or tuple(low.shape) != shape or tuple(high.shape) != shape:
        what = (
            f"min of shape {tuple(low.shape)} and max of {tuple(high.shape)} for inputs {tuple(inputs.shape)}"
        )
        fix = "Give one number for each channel, the last axis." if channels else "Give one number each."
        raise ShapeError(what, fix)
    if not 2 <= int(bits) <= 16:
        raise ArgumentError(f"num_bits is {bits}", "Use 2 to 16.")
    return (inputs, low, high), ((1.0 if narrow else 0.0), float(2 ** int(bits) - 1))


def _quantized(inputs: Any, low: Any, high: Any, bits: Any, narrow: Any, channels: int = 0) -> Any:
    operands, limits = _operands(inputs, low, high, bits, narrow, channels)
    return apply("fake_quantize", *operands, attrs=limits)


def _gradients(
    gradients: Any, inputs: Any, low: Any, high: Any, bits: Any, narrow: Any, channels: int = 0
) -> list[Any]:
    operands, limits = _operands(inputs, low, high, bits, narrow, channels)
    if gradients.shape != inputs.shape:
        what = f"gradients of shape {tuple(gradients.shape)} for inputs of {tuple(inputs.shape)}"
        raise ShapeError(what, "Give a gradient for each element.")
    return list(fake_quantize_gradients(gradients, operands[0], low, high, limits[0], limits[1]))


def _range(like: Any, low: Any, high: Any) -> list[Any]:
    if not numbers(low) < numbers(high):
        raise ArgumentError(f"min is {low} and max {high}", "Give a min below max.")
    return [full_of(float(numbers(one)), (), float32, like) for one in (low, high)]


@operation("FakeQuantWithMinMaxArgs")
@example("tf.fake_quant_with_min_max_args([-7.0, 0.02, 1.0], num_bits=3)", "[-6.857143  0.        1.7142857]")
def fake_quant_with_min_max_args(
    inputs: Alone, min: Number = -6, max: Number = 6, num_bits: Number = 8, narrow_range: Number = False
) -> Any:
    """``inputs`` limited to [``min``, ``max``] and rounded to ``2**num_bits`` numbers there, of which 0 is one.

    The range moves by less than a step for that. ``narrow_range``: rounded to one number less. The gradient is that of
    limiting.
    """
    low, high = _range(inputs, min, max)
    return _quantized(inputs, low, high, num_bits, narrow_range)


@operation("FakeQuantWithMinMaxArgsGradient")
@example("tf.fake_quant_with_min_max_args_gradient([1.0, 2.0], [-7.0, 0.5])", "[0. 2.]")
def fake_quant_with_min_max_args_gradient(
    gradients: Alone,
    inputs: Alone,
    min: Number = -6,
    max: Number = 6,
    num_bits: Number = 8,
    narrow_range: Number = False,
) -> Any:
    """What ``gradients`` of ``fake_quant_with_min_max_args`` give its inputs."""
    low, high = _range(inputs, min, max)
    return _gradients(gradients, inputs, low, high, num_bits, narrow_range)[0]


@operation("FakeQuantWithMinMaxVars")
@example("tf.fake_quant_with_min_max_vars([-7.0, 0.3, 1.0], -1.0, 2.0, num_bits=2)", "[-1.  0.  1.]")
def fake_quant_with_min_max_vars(
    inputs: Alone, min: Alone, max: Alone, num_bits: Number = 8, narrow_range: Number = False
) -> Any:
    """As ``fake_quant_with_min_max_args``, with tensors ``min`` and ``max``, which may be learnt.

    They receive the gradients of the inputs below and above.
    """
    return _quantized(inputs, min, max, num_bits, narrow_range)


@operation("FakeQuantWithMinMaxVarsGradient", several=tuple)
@example("tf.fake_quant_with_min_max_vars_gradient([1.0, 2.0, 5.0], [-7.0, 0.5, 3.0], -1.0, 2.0)[2]", "5.0")
def fake_quant_with_min_max_vars_gradient(
    gradients: Alone,
    inputs: Alone,
    min: Alone,
    max: Alone,
    num_bits: Number = 8,
    narrow_range: Number = False,
) -> Any:
    """What ``gradients`` of ``fake_quant_with_min_max_vars`` give its inputs, ``min`` and ``max``."""
    return _gradients(gradients, inputs, min, max, num_bits, narrow_range)


@operation("FakeQuantWithMinMaxVarsPerChannel")
@example(
    "tf.fake_quant_with_min_max_vars_per_channel([[-7.0, 0.3]], [-1.0, -1.0], [2.0, 0.5], num_bits=2)",
    "[[-1.   0.5]]",
)
def fake_quant_with_min_max_vars_per_channel(
    inputs: Alone, min: Alone, max: Alone, num_bits: Number = 8, narrow_range: Number = False
) -> Any:
    """As ``fake_quant_with_min_max_vars``, with a ``min`` and a ``max`` for each index of the last axis."""
    return _quantized(inputs, min, max, num_bits, narrow_range, 1)


@operation("FakeQuantWithMinMaxVarsPerChannelGradient", several=tuple)
@example(
    "tf.fake_quant_with_min_max_vars_per_channel_gradient([[1.0, 2.0]], [[-7.0, 0.5]], [-1.0, -1.0], [2.0, 0.2])[2]",
    "[0. 2.]",
)
def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Alone,
    inputs: Alone,
    min: Alone,
    max: Alone,
    num_bits: Number = 8,
    narrow_range: Number = False,
) -> Any:
    """What ``gradients`` of ``fake_quant_with_min_max_vars_per_channel`` give its inputs, ``min`` and ``max``."""
    return _gradients(gradients, inputs, min, max, num_bits, narrow_range, 1)
