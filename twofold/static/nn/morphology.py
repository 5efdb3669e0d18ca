"""Dilation and erosion of images by structuring functions under TensorFlow's names."""

from __future__ import annotations

from typing import Any

from twofold.errors import ShapeError
from twofold.ops.base import ops
from twofold.static import math
from twofold.static.api.op_functions import Number, convert_to_tensor, numbers, operation
from twofold.static.arrays import shape_ops
from twofold.static.graph.docstrings import example
from twofold.static.nn.layouts import padded_sides


@operation("Dilation2D", older={"filters": "filter", "dilations": "rates"})
@example(
    "x, filter = tf.constant([[[[1.0], [5.0], [2.0]]]]), tf.zeros([1, 2, 1])",
    'tf.squeeze(tf.nn.dilation2d(x, filter, [1, 1, 1, 1], [1, 1, 1, 1], "SAME"))',
    "[5. 5. 2.]",
)
def dilation2d(
    input: Any, filter: Any = None, strides: Number = None, rates: Number = None, padding: Number = None
) -> Any:
    """The largest sum of an image and ``filter`` (height, width, channels) in each window, channel by channel."""
    if input.ndim != 4 or filter.ndim != 3:
        what = f"an input {tuple(input.shape)} and a filter {tuple(filter.shape)}"
        raise ShapeError(what, "Give (batch, height, width, channels) and (height, width, channels).")
    steps, apart = (tuple(int(one) for one in numbers(given))[1:3] for given in (strides, rates))
    kernel, image = filter.shape[:2], input.shape[1:3]
    (top, bottom), (left, right) = padded_sides(padding, image, kernel, steps, apart)
    windows = ops.pad(input, (0, 0, left, right, top, bottom), value=-float("inf"))
    for axis, wide, rate, step in zip((1, 2), kernel, apart, steps):
        windows = ops.unfold(windows, axis, (wide - 1) * rate + 1, step)
    moved = []
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            seen = ops.select(ops.select(windows, 5, column * apart[1]), 4, row * apart[0])
            moved.append(ops.add(seen, ops.select(ops.select(filter, 0, row), 0, column)))
    return ops.max(ops.stack(moved, 0), 0)[0]


@example(
    "x, kernel = tf.constant([[[[1.0], [5.0], [2.0]]]]), tf.zeros([1, 2, 1])",
    'tf.squeeze(tf.nn.erosion2d(x, kernel, [1, 1, 1, 1], [1, 1, 1, 1], "SAME"))',
    "[1. 2. 2.]",
)
def erosion2d(
    value: Any, kernel: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Any:
    """The smallest difference of an image and the mirrored ``kernel`` in each window, channel by channel."""
    mirrored = shape_ops.reverse(convert_to_tensor(kernel), [0, 1])
    found = dilation2d(math.negative(value), mirrored, strides, rates, padding)
    return math.negative(found, name=name or "erosion2d")
