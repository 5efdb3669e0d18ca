"""The way back through a convolution: from its result to its image.

With strides, the positions of the image fall into phases by their number modulo the stride, and each phase is a
convolution of its own with some positions of the kernel, so nothing is multiplied with the zeros between the
positions of an upsampled result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import Custom, apply, composite, custom, filled, ops
from twofold.ops.convolution.depthwise_transposed import apply_depthwise, is_depthwise
from twofold.ops.convolution.phases import Run, phases
from twofold.ops.convolution.primitives import grouped, primitive_samples
from twofold.ops.examples import example
from twofold.ops.shape.movement import slice_axis


def _apart(stride: int, low: int, dilation: int, kernel: int, size: int, positions: int) -> int:
    """The stride to compute an axis with.

    Where the result has one position any will do: one beyond the image makes a phase of each of its positions, so
    that none is multiplied with the zeros around the result.

    >>> _apart(1, 0, 1, 5, 5, 1), _apart(1, 0, 1, 5, 6, 2)
    (10, 1)
    """
    single = positions == 1 and kernel > 1 and size > 1 and dilation == 1
    return size + abs(low) + kernel if single else stride


def _phase_axis(w: Any, axis: int, run: Run) -> Any:
    """``w`` with the kernel positions of each phase along ``axis``, and the phases as a new last axis."""
    reach = run.reach
    adjacent = run.starts == tuple(range(run.starts[0], run.starts[0] + run.count))
    if reach.taps == 1 and adjacent:
        return ops.unsqueeze(ops.movedim(slice_axis(w, axis, run.starts[0], run.count), axis, -1), axis)
    pieces = [slice_axis(w, axis, start, reach.taps, reach.step) for start in run.starts]
    return ops.stack(pieces, -1) if run.count > 1 else ops.unsqueeze(pieces[0], -1)


def _phase_kernels(w: Any, groups: int, runs: Sequence[Run]) -> Any:
    """Kernels whose filters are (group, phase, channel of the image) and whose channels are the filters of ``w``."""
    filters, channels, positions = w.shape[0] // groups, w.shape[1], w.shape[2:]
    found = apply("exchange_blocks", ops.reshape(w, (groups, filters, channels, prod(positions))))
    found = ops.reshape(found, (groups, channels, filters, *positions))
    if all(run.count == 1 for run in runs):
        for axis, run in enumerate(runs, 3):
            found = slice_axis(found, axis, run.starts[0], run.reach.taps, run.reach.step)
    else:
        for axis, run in enumerate(runs, 3):
            found = _phase_axis(found, axis, run)
        found = ops.permute(found, (0, 6, 7, 8, 1, 2, 3, 4, 5))
    rows = groups * prod(run.count for run in runs) * channels
    return ops.reshape(found, (rows, filters, *[run.reach.taps for run in runs]))


@custom
class exchange_blocks(Custom):
    """``[outer, rows, columns, inner]`` as ``[outer, columns, rows, inner]``, where the last axis is short."""

    functions = ()

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        (x,) = inputs
        outer, rows, columns, inner = x.shape
        if inner == 1 or rows == 1 or columns == 1:
            exchanged: Node = ops.permute(x, (0, 2, 1, 3))
            return exchanged
        return make_node(self, attrs, (x,), tensor_type(x.dtype, (outer, columns, rows, inner)))

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return (*inputs[0].shape[1:], -(-inputs[0].shape[2] // kernels.LANES))

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        outer, rows, columns, inner = inputs[0].shape
        blocks = outer * -(-columns // kernels.LANES) if rows and inner else 0
        return blocks, kernels.grain(512, rows * -(-inner // kernels.LANES))

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype = builder, output.dtype
        rows, columns, inner, blocks = (b.param(k) for k in range(4))
        with b.loop(b.begin, b.end) as item:
            # some columns at a time: whole lines of memory are read, and few are written in turn
            outer, block = kernels.split(b, item, blocks)
            first = b.mul(block, kernels.LANES)
            count = b.minimum(b.sub(columns, first), kernels.LANES)
            with b.loop(0, rows) as row:
                source = b.mul(b.add(b.mul(b.add(b.mul(outer, rows), row), columns), first), inner)
                target = b.mul(b.add(b.mul(b.add(b.mul(outer, columns), first), rows), row), inner)
                with b.loop(0, inner, kernels.LANES) as i:
                    mask = b.lane_mask(b.sub(inner, i))
                    with b.loop(0, count) as column:
                        at = b.add(b.add(source, i), b.mul(column, inner))
                        values = b.load(b.input(0), at, dtype, kernels.LANES, mask=mask)
                        to = b.add(b.add(target, i), b.mul(column, b.mul(rows, inner)))
                        b.store(b.buffer(1), to, values, mask=mask)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return (apply("exchange_blocks", cotangent),)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return arrays[0].transpose(0, 2, 1, 3)

    def samples(self) -> Sequence[Any]:
        return [example((), shape) for shape in ((2, 3, 18, 9), (1, 2, 2, 17), (1, 0, 3, 2), (1, 4, 1, 3))]


@composite
class convolution_transposed:
    """``x(y, w)``; see ``convolution_primitives``."""

    functions = ()
    methods = ()
    signature = "y, w"
    call = staticmethod(lambda y, w, attrs: apply("convolution_transposed", y, w, attrs=attrs))

    @staticmethod
    def compute(
        y: Any, w: Any, strides: Shape, lows: Shape, dilations: Shape, groups: int, sizes: Shape
    ) -> Any:
        type = tensor_type(y.dtype, (y.shape[0], groups * w.shape[1], *sizes))
        if not type.size or not y.type.size or not w.type.size:
            return filled(0, type.dtype, type.shape)
        if is_depthwise(y, w, strides, lows, groups, sizes):
            return apply_depthwise(y, w, strides, lows, dilations, sizes)
        measures = zip(strides, lows, dilations, w.shape[2:], sizes, y.shape[2:], strict=True)
        strides = tuple(_apart(*numbers) for numbers in measures)
        axes = [
            phases(*numbers) for numbers in zip(strides, lows, dilations, w.shape[2:], sizes, strict=True)
        ]
        blocks, positions = [], []
        for runs in product(*axes):
            kernel = _phase_kernels(w, groups, runs)
            reached = tuple(
                -(-(size - run.first) // stride)
                for size, run, stride in zip(sizes, runs, strides, strict=True)
            )
            lows_of_run = tuple(run.reach.low for run in runs)
            moves = ((1, 1, 1), lows_of_run, tuple(run.reach.dilation for run in runs))
            blocks.append(apply("convolution", y, kernel, attrs=(*moves, groups, reached)))
            positions.append(tuple((run.first, run.count) for run in runs))
        if strides == (1, 1, 1):
            return blocks[0]
        if not blocks:
            return filled(0, type.dtype, type.shape)
        return apply("interleave", *blocks, attrs=(strides, groups, sizes, tuple(positions)))

    @staticmethod
    def vjp(ct: Any, x: Any, y: Any, w: Any, *attrs: Any) -> Any:
        return (
            apply("convolution", ct, w, attrs=(*attrs[:4], y.shape[2:])),
            apply("convolution_weight", ct, y, attrs=(*attrs[:4], w.shape[2:])),
        )

    @staticmethod
    def reference(
        y: Any, w: Any, strides: Shape, lows: Shape, dilations: Shape, groups: int, sizes: Shape
    ) -> Any:
        apart, kernel = grouped(y, 1, groups), grouped(w, 0, groups)
        result, whole = numpy.zeros((y.shape[0], groups, w.shape[1], *sizes), y.dtype), [slice(None)] * 3
        for tap in numpy.ndindex(*w.shape[2:]):
            for index in numpy.ndindex(*y.shape[2:]):
                at = tuple(o * s - p + k * d for o, s, p, k, d in zip(index, strides, lows, tap, dilations))
                if all(0 <= position < size for position, size in zip(at, sizes)):
                    share = numpy.einsum("ngo,goc->ngc", apart[(*whole, *index)], kernel[(*whole, *tap)])
                    result[(*whole, *at)] += share
        return result.reshape((y.shape[0], groups * w.shape[1], *sizes))

    samples = lambda: primitive_samples("yw")


@custom
class interleave(Custom):
    """Blocks of phases put together: position ``stride * i + phase`` of the result is position ``i`` of its phase.

    Each input has the shape ``(batch, groups * phases * channels, ...)``. Attributes: strides, groups, sizes of
    the result, and for each input the (first, count) of its phases on each axis; what no input has is zero.
    """

    functions = ()
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        _, _, sizes, positions = attrs
        first = inputs[0]
        channels = first.shape[1] // prod(count for _, count in positions[0])
        return make_node(
            self, attrs, tuple(inputs), tensor_type(first.dtype, (first.shape[0], channels, *sizes))
        )

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        strides, groups, sizes, positions = attrs
        found = [*strides, *sizes, output.shape[1] // groups]
        for type, index in zip(inputs, positions, strict=True):
            found += [number for pair in index for number in pair]
            found += type.shape[2:]
        return tuple(found)

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return prod(output.shape[:-1]), kernels.grain(4096, output.shape[-1])

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return (len(inputs), self._whole(attrs), attrs[3] if attrs[0][2] == 2 else ())

    @staticmethod
    def _whole(attrs: Attributes) -> bool:
        """Whether every position of the result is in some input."""
        strides, _, sizes, positions = attrs
        covered = sum(prod(count for _, count in index) for index in positions)
        return bool(covered == prod(min(s, n) for s, n in zip(strides, sizes, strict=True)))

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype, target = builder, output.dtype, builder.buffer(len(inputs))
        sizes, channels = [b.param(3), b.param(4), b.param(5)], b.param(6)
        with b.loop(b.begin, b.end) as row:
            rest, h = kernels.split(b, row, sizes[1])
            rest, d = kernels.split(b, rest, sizes[0])
            image, channel = kernels.split(b, rest, channels)
            at = b.mul(row, sizes[2])
            if not self._whole(attrs):
                kernels.fill(b, dtype, target, at, b.const(0, dtype), sizes[2])
            index = image, channel, d, h
            if attrs[0][2] == 2:
                for blocks in _by_row(attrs[3]):
                    self._pair(b, dtype, blocks, attrs[3], index, (target, at))
            else:
                for number in range(len(inputs)):
                    self._block(b, dtype, number, index, (target, at))

    def _source(self, b: Any, number: int, index: tuple[Any, ...]) -> tuple[Any, Callable[[Any], Any]]:
        """Emit whether input ``number`` has part of a row, and where its positions of a phase begin."""
        image, channel, d, h = index
        stride = [b.param(axis) for axis in range(3)]
        numbers = [b.param(7 + 9 * number + k) for k in range(9)]
        first, count, size = numbers[0:6:2], numbers[1:6:2], numbers[6:]
        od, phase_d = kernels.split(b, d, stride[0])
        oh, phase_h = kernels.split(b, h, stride[1])
        phase_d, phase_h = b.sub(phase_d, first[0]), b.sub(phase_h, first[1])
        inside = b.and_(_within(b, phase_d, count[0]), _within(b, phase_h, count[1]))

        def start(phase: Any) -> Any:
            before = b.add(b.mul(b.add(b.mul(image, count[0]), phase_d), count[1]), phase_h)
            plane = b.add(b.mul(b.add(b.mul(before, count[2]), phase), b.param(6)), channel)
            return b.mul(b.add(b.mul(b.add(b.mul(plane, size[0]), od), size[1]), oh), size[2])

        return inside, start

    def _block(self, b: Any, dtype: Any, number: int, index: tuple[Any, ...], to: tuple[Any, Any]) -> None:
        """Emit what input ``number`` holds of one row of the result."""
        stride, first, count = b.param(2), b.param(11 + 9 * number), b.param(12 + 9 * number)
        inside, start = self._source(b, number, index)
        with b.if_(inside), b.loop(0, count) as phase:
            source, offset = start(phase), b.add(first, phase)
            positions = b.idiv(b.add(b.sub(b.param(5), offset), b.sub(stride, 1)), stride)
            with b.loop(0, positions, kernels.LANES) as i:
                mask = b.lane_mask(b.sub(positions, i))
                values = b.load(b.input(number), b.add(source, i), dtype, kernels.LANES, mask=mask)
                at = b.add(b.add(to[1], offset), b.mul(i, stride))
                b.store_strided(to[0], at, stride, values, mask=mask)

    def _pair(
        self,
        b: Any,
        dtype: Any,
        blocks: Sequence[int],
        positions: Any,
        index: tuple[Any, ...],
        to: tuple[Any, Any],
    ) -> None:
        """Emit a row of stride two from the inputs ``blocks``, which hold its even and odd positions."""
        inside, starts = None, {}
        for number in blocks:
            found, start = self._source(b, number, index)
            inside = found if inside is None else inside
            first, count = positions[number][2]
            for phase in range(count):
                starts[first + phase] = number, start(b.const(phase, int64))
        width = b.param(5)
        with b.if_(inside), b.loop(0, b.shr(b.add(width, 1), 1), kernels.LANES) as i:
            sides = []
            for phase in (0, 1):
                left = b.sub(b.shr(b.add(width, 1 - phase), 1), i)
                if phase in starts:
                    number, source = starts[phase]
                    at, mask = b.add(source, i), b.lane_mask(left)
                    sides.append(b.load(b.input(number), at, dtype, kernels.LANES, mask=mask))
                else:
                    sides.append(b.const(0, dtype, kernels.LANES))
            for part, values in enumerate(b.zip_lanes(*sides)):
                at = b.add(b.mul(i, 2), part * kernels.LANES)
                b.store(to[0], b.add(to[1], at), values, mask=b.lane_mask(b.sub(width, at)))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        strides, groups, sizes, positions = attrs
        batch, channels = arrays[0].shape[0], arrays[0].shape[1] // prod(c for _, c in positions[0]) // groups
        result, whole = numpy.zeros((batch, groups, channels, *sizes), arrays[0].dtype), [slice(None)] * 3
        for array, index in zip(arrays, positions, strict=True):
            counts = tuple(count for _, count in index)
            block = array.reshape((batch, groups, *counts, channels, *array.shape[2:]))
            for phase in numpy.ndindex(*counts):
                to = [slice(f + k, None, s) for (f, _), k, s in zip(index, phase, strides, strict=True)]
                view = result[(*whole, *to)]
                cut = [slice(size) for size in view.shape[3:]]
                view[...] = block[(*whole[:2], *phase)][(*whole, *cut)]
        return result.reshape((batch, groups * channels, *sizes))

    def samples(self) -> Sequence[Any]:
        halves = (((0, 1), (0, 1), (0, 1)), ((0, 1), (0, 1), (1, 1)))
        return [
            example(((1, 1, 2), 1, (1, 3, 37), halves), (2, 3, 1, 3, 19), (2, 3, 1, 3, 18)),
            example(((1, 1, 2), 1, (1, 2, 5), (((0, 1), (0, 1), (1, 1)),)), (1, 2, 1, 2, 3)),
            example(((2, 2, 2), 1, (2, 3, 35), (((0, 2), (0, 2), (0, 2)),)), (1, 16, 1, 2, 18)),
            example(((1, 1, 3), 2, (1, 1, 8), (((0, 1), (0, 1), (0, 2)),)), (1, 8, 1, 1, 3)),
            example(((2, 2, 2), 1, (3, 4, 5), (((1, 1), (0, 2), (0, 2)),)), (1, 8, 1, 2, 3)),
        ]


def _by_row(positions: Any) -> list[list[int]]:
    """Numbers of the inputs that hold the same rows."""
    rows: dict[Any, list[int]] = {}
    for number, index in enumerate(positions):
        rows.setdefault(index[:2], []).append(number)
    return list(rows.values())


def _within(b: Any, number: Any, count: Any) -> Any:
    return b.and_(b.cmp("ge", number, 0), b.cmp("lt", number, count))
