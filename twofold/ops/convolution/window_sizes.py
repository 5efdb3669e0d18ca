"""Windows that move over three spatial axes: the arithmetic that convolutions and patches share.

Position ``o`` of an axis of the result and position ``k`` of the kernel meet at ``o * stride - low + k * dilation``
of the image, where ``low`` is the padding in front (negative: what is cut off). Outside, the image is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import DType
from twofold.ir.types import Shape


class Windows(NamedTuple):
    """How windows move, on each of three axes; the attributes of the primitives."""

    strides: tuple[int, int, int]
    lows: tuple[int, int, int]
    dilations: tuple[int, int, int]


@dataclass(frozen=True)
class ConvolutionProblem:
    """Sizes of ``y[n, g, o] = sum over c, k of x[n, g, c] * w[g, o, c, k]`` with windows of ``x``.

    ``channels`` (of the image) and ``filters`` (channels of the result) count those of one group. ``weight_stays`` says
    that ``w`` is the same in many runs, so that a copy of it is made once.
    """

    batch: int
    groups: int
    channels: int
    filters: int
    image: tuple[int, int, int]
    kernel: tuple[int, int, int]
    result: tuple[int, int, int]
    windows: Windows
    dtype: DType
    weight_stays: bool = False

    @property
    def taps(self) -> int:
        """Positions of the kernel."""
        return prod(self.kernel)

    @property
    def positions(self) -> int:
        """Positions of the result."""
        return prod(self.result)

    @property
    def plain(self) -> bool:
        """Whether the kernel is one position that meets each position of the image in turn."""
        moves = self.windows
        still = moves.strides == (1, 1, 1) and moves.lows == (0, 0, 0)
        return self.taps == 1 and still and self.image == self.result


def problem(x: Shape, w: Shape, y: Shape, windows: Windows, groups: int, dtype: DType) -> ConvolutionProblem:
    """The problem of arrays of five axes with these shapes."""
    d, h, v = (2, 3, 4)
    image, kernel, result = ((shape[d], shape[h], shape[v]) for shape in (x, w, y))
    channels, filters = w[1], w[0] // groups
    return ConvolutionProblem(
        x[0], groups, channels, filters, image, kernel, result, Windows(*windows), dtype
    )


def patches(x: Any, windows: Windows, kernel: Shape, result: Shape) -> Any:
    """By NumPy: ``x`` of shape ``(n, c, *image)`` as ``(n, c, *kernel, *result)``."""
    found = x
    axes = zip(windows.strides, windows.lows, windows.dilations, kernel, result, x.shape[2:], strict=True)
    for axis, (stride, low, dilation, size, positions, length) in enumerate(axes):
        at = numpy.arange(size)[:, None] * dilation + numpy.arange(positions)[None, :] * stride - low
        inside = (at >= 0) & (at < length)
        padded = (
            numpy.concatenate([found, numpy.zeros_like(found.take([0], 2 + 2 * axis))], 2 + 2 * axis)
            if length
            else numpy.zeros((*found.shape[: 2 + 2 * axis], 1, *found.shape[3 + 2 * axis :]), x.dtype)
        )
        found = padded.take(numpy.where(inside, at, length), 2 + 2 * axis)
    return found.transpose(0, 1, 2, 4, 6, 3, 5, 7)
