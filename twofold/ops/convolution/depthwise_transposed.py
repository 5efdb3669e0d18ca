"""The way back through a convolution of single channels whose windows lie two positions apart along a line.

Each position of the image is the sum of the kernel positions that meet a result there, in the order in which a phase
of ``convolution_transposed`` adds them; even and odd positions of a line are computed side by side and stored
together, so that no phase is written to memory on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import Custom, apply, custom, ops
from twofold.ops.convolution.phases import phases
from twofold.ops.examples import example

MOST_TAPS = 64
"""Positions of a kernel, all of which are held in registers or beside them."""


class Tap(NamedTuple):
    """A position of a kernel axis, and how far behind the number of the window in its phase the result lies."""

    position: int
    offset: int


def taps_of_phases(stride: int, low: int, dilation: int, kernel: int) -> list[list[Tap]]:
    """For each phase of an axis the kernel positions that meet it, in the order of their sum.

    >>> taps_of_phases(2, 1, 1, 3)
    [[Tap(position=1, offset=0)], [Tap(position=0, offset=1), Tap(position=2, offset=0)]]
    """
    found: list[list[Tap]] = [[] for _ in range(stride)]
    for run in phases(stride, low, dilation, kernel, stride):
        for phase, start in enumerate(run.starts, run.first):
            reach = run.reach
            found[phase] = [
                Tap(start + k * reach.step, k * reach.dilation - reach.low) for k in range(reach.taps)
            ]
    return found


@custom
class depthwise_transposed(Custom):
    """``[batch, channels, height, width]`` of results and ``[channels, height, width]`` of kernels to images.

    Attributes: strides, lows and dilations of both axes, and the sizes of the image. The stride of the last axis is 2.
    """

    functions = ()
    kinds = "f"
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        y = inputs[0]
        return make_node(self, attrs, tuple(inputs), tensor_type(y.dtype, (*y.shape[:2], *attrs[-1])))

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return (*inputs[0].shape[1:], *output.shape[2:])

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        batch, channels, height, width = output.shape
        return batch * channels, kernels.grain(8192, height * width)

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """A multiplication and an addition for each position of a kernel and result."""
        y, w = inputs
        return int(2 * y.size * w.shape[1] * w.shape[2])

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return (*attrs[:3], inputs[1].shape[1:])

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        _Writer(builder, attrs, inputs).write()

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        strides, lows, dilations, sizes = attrs
        y, w = arrays
        result = numpy.zeros((*y.shape[:2], *sizes), y.dtype)
        for tap in numpy.ndindex(*w.shape[1:]):
            for index in numpy.ndindex(*y.shape[2:]):
                at = [o * s - p + k * d for o, s, p, k, d in zip(index, strides, lows, tap, dilations)]
                if all(0 <= position < size for position, size in zip(at, sizes)):
                    result[:, :, at[0], at[1]] += y[:, :, index[0], index[1]] * w[:, tap[0], tap[1]]
        return result

    def samples(self) -> Sequence[Any]:
        return [
            example(((2, 2), (1, 1), (1, 1), (9, 37)), (2, 3, 5, 19), (3, 3, 3)),
            example(((1, 2), (0, 2), (1, 1), (4, 70)), (1, 2, 2, 35), (2, 3, 5)),
            example(((3, 2), (1, 0), (1, 2), (7, 6)), (2, 1, 3, 2), (1, 2, 2)),
            example(((2, 2), (-1, 0), (1, 1), (5, 5)), (1, 2, 2, 3), (2, 1, 1)),
        ]


class _Writer:
    """Writes the kernel: a work item is the image of one channel."""

    def __init__(self, b: Any, attrs: Attributes, inputs: Sequence[TensorType]) -> None:
        strides, lows, dilations, _ = attrs
        self.b, self.stored, self.kernel = b, inputs[0].dtype, inputs[1].shape[1:]
        self.rows, self.columns = (
            taps_of_phases(*numbers) for numbers in zip(strides, lows, dilations, self.kernel, strict=True)
        )
        self.offsets = sorted({tap.offset for taps in self.columns for tap in taps})
        names = ("channels", "lines", "positions", "height", "width")
        self.p = {name: b.param(k) for k, name in enumerate(names)}

    def write(self) -> None:
        b, p = self.b, self.p
        stride = len(self.rows)
        with b.loop(b.begin, b.end) as plane:
            channel = kernels.split(b, plane, p["channels"])[1]
            factors = self._factors(channel)
            source = b.mul(plane, b.mul(p["lines"], p["positions"]))
            target = b.mul(plane, b.mul(p["height"], p["width"]))
            with b.loop(0, b.shr(b.add(p["width"], 1), 1), kernels.LANES) as column:
                firsts = {offset: b.add(column, offset) for offset in self.offsets}
                masks = {
                    offset: b.lane_range(b.neg(first), b.sub(p["positions"], first))
                    for offset, first in firsts.items()
                }
                ends = [
                    b.lane_mask(b.sub(b.sub(p["width"], b.mul(column, 2)), part * kernels.LANES))
                    for part in (0, 1)
                ]
                with b.loop(0, b.idiv(b.add(p["height"], stride - 1), stride)) as window:
                    found = self._loaded(source, window, column, masks)
                    for phase, taps in enumerate(self.rows):
                        row = b.add(b.mul(window, stride), phase)
                        with b.if_(b.cmp("lt", row, p["height"])):
                            sides = [self._sum(taps, other, factors, found) for other in self.columns]
                            at = b.add(b.add(target, b.mul(row, p["width"])), b.mul(column, 2))
                            for part, values in enumerate(b.zip_lanes(*sides)):
                                to = b.add(at, part * kernels.LANES)
                                b.store(b.buffer(2), to, b.cast(values, self.stored), mask=ends[part])

    def _factors(self, channel: Any) -> dict[tuple[int, int], Any]:
        """Emit the loads of the positions of a kernel, each in all lanes."""
        b, (height, width) = self.b, self.kernel
        first = b.mul(channel, height * width)
        return {
            (y, x): b.splat(
                b.cast(b.load(b.input(1), b.add(first, y * width + x), self.stored), self.stored.compute)
            )
            for y in range(height)
            for x in range(width)
        }

    def _loaded(
        self, source: Any, window: Any, column: Any, masks: dict[int, Any]
    ) -> dict[tuple[int, int], Any]:
        """Emit the loads of the results that all phases of a window meet; what lies outside is zero."""
        b, p, found = self.b, self.p, {}
        for down in sorted({tap.offset for taps in self.rows for tap in taps}):
            line = b.add(window, down)
            valid = b.splat(b.and_(b.cmp("ge", line, 0), b.cmp("lt", line, p["lines"])))
            start = b.add(b.add(source, b.mul(line, p["positions"])), column)
            for across, mask in masks.items():
                values = b.load(
                    b.input(0), b.add(start, across), self.stored, kernels.LANES, mask=b.and_(mask, valid)
                )
                found[down, across] = b.cast(values, self.stored.compute)
        return found

    def _sum(
        self,
        rows: list[Tap],
        columns: list[Tap],
        factors: dict[tuple[int, int], Any],
        found: dict[tuple[int, int], Any],
    ) -> Any:
        """Emit the sum of a phase of both axes."""
        total = self.b.const(0, self.stored.compute, kernels.LANES)
        for down in rows:
            for across in columns:
                factor = factors[down.position, across.position]
                total = self.b.fma(factor, found[down.offset, across.offset], total)
        return total


def is_depthwise(y: Node, w: Node, strides: Shape, lows: Shape, groups: int, sizes: Shape) -> bool:
    """Whether ``convolution_transposed`` of these is of single channels, two positions apart along a line."""
    flat = y.shape[2] == w.shape[2] == sizes[0] == 1 and strides[0] == 1 and lows[0] == 0
    single = groups == w.shape[0] and w.shape[1] == 1
    few = w.shape[3] * w.shape[4] <= MOST_TAPS
    return bool(strides[2] == 2 and flat and single and few and y.dtype.kind == "f")


def apply_depthwise(y: Node, w: Node, strides: Shape, lows: Shape, dilations: Shape, sizes: Shape) -> Any:
    """``convolution_transposed`` where ``is_depthwise``."""
    flat = ops.squeeze(y, 2), ops.reshape(w, (w.shape[0], *w.shape[3:]))
    found = apply("depthwise_transposed", *flat, attrs=(strides[1:], lows[1:], dilations[1:], sizes[1:]))
    return ops.unsqueeze(found, 2)
