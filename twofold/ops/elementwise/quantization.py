"""Numbers rounded to those that a few bits can tell apart, with gradients as if they were not."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.ops.base import composite, ops
from twofold.ops.examples import example
from twofold.ops.shape.movement import sum_to


def _grid(low: Any, high: Any, least: float, most: float) -> tuple[Any, Any, Any, Any]:
    """The step, the least and the largest number, both moved so that 0 is among them, and whether both are 0."""
    nothing = ops.logical_and(ops.equal(low, 0), ops.equal(high, 0))
    step = ops.where(nothing, 1.0, (high - low) / (most - least))
    zero = least - low / step
    zero = ops.where(zero < least, least, ops.where(zero > most, most, ops.floor(zero + 0.5)))
    return step, (least - zero) * step, (most - zero) * step, nothing


def fake_quantize_gradients(
    ct: Any, x: Any, low: Any, high: Any, least: float, most: float
) -> tuple[Any, ...]:
    """What ``ct``, a gradient of ``fake_quantize``, gives each of its operands."""
    _, first, last, nothing = _grid(low, high, least, most)
    under = ops.logical_and(x < first, ops.logical_not(nothing))
    over = ops.logical_and(x > last, ops.logical_not(nothing))
    inside = ops.where(ops.logical_or(under, over), 0.0, ct)
    shares = [(ops.where(under, ct, 0.0), low), (ops.where(over, ct, 0.0), high)]
    return (sum_to(inside, x.shape), *[sum_to(share, one.shape) for share, one in shares])


@composite
class fake_quantize:
    """``input`` within [``low``, ``high``], rounded to steps of a grid with 0 on it; attributes ``(least, most)``.

    The grid numbers its steps from ``least`` to ``most``. ``low`` and ``high`` broadcast to ``input``. The gradient is
    that of clipping to the grid; what is outside passes it on to ``low`` or ``high``. Source: Jacob et al.,
    Quantization and training of neural networks for efficient integer-arithmetic-only inference, 2018.
    """

    functions = ()
    kinds = "f"
    signature = "input, low, high"

    def compute(x: Any, low: Any, high: Any, least: float, most: float) -> Any:
        step, first, last, nothing = _grid(low, high, least, most)
        clipped = ops.maximum(ops.minimum(x, last), first)
        scale = ops.reciprocal(step)
        zero = ops.floor(ops.negative(first) * scale + 0.5)
        found = ops.floor((clipped - first) * scale - zero + 0.5) * step
        return ops.where(nothing, 0.0, found)

    vjp = lambda ct, y, x, low, high, least, most: fake_quantize_gradients(ct, x, low, high, least, most)

    @staticmethod
    def samples() -> Any:
        low = numpy.array([-1.1, 0.0, 0.5], numpy.float32)
        high = numpy.array([0.7, 0.0, 1.25], numpy.float32)
        one = numpy.array(-2.0, numpy.float32)
        return [
            example((0.0, 7.0), (4, 3), low, high, smooth=False),
            example((1.0, 255.0), (5,), one, numpy.array(1.5, numpy.float32), smooth=False),
        ]

    def reference(x: Any, low: Any, high: Any, least: float, most: float) -> Any:
        with numpy.errstate(all="ignore"):
            step = (high - low) / (most - least)
            zero = numpy.clip(numpy.rint(least - low / step), least, most)
            steps = numpy.clip(numpy.rint(x / step), least - zero, most - zero)
            return numpy.where((low == 0) & (high == 0), 0, steps * step)
