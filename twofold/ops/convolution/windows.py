"""Sums and largest elements of sliding windows: what pooling is made of.

Primitive form: values ``[planes, depth, height, width]``; fewer spatial axes are leading ones of size 1. A
``Span`` says where the windows of one axis lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import DType, int64
from twofold.errors import ArgumentError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import REGISTRY
from twofold.ir.sizes import real
from twofold.ir.types import TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import apply, custom, iota, ops
from twofold.ops.convolution.resampling import axis_sums
from twofold.ops.convolution.window_loops import (
    LANES,
    NEXT_PARAMETER,
    Geometry,
    Span,
    Spans,
    Windows,
    across_planes,
)
from twofold.ops.examples import example

WHOLE = 0  # divisors of ``window_sum``: none, the window cut at the padding, the window cut at the input
PADDED = -1
INSIDE = -2


def _reference_windows(x: Any, spans: Spans) -> Any:
    """For every window its number, and the positions that the input has, as index arrays."""
    for number in numpy.ndindex(*(span.windows for span in spans)):
        positions = []
        for o, span, size in zip(number, spans, x.shape[1:], strict=True):
            where = o * span.stride - span.low + span.dilation * numpy.arange(span.kernel)
            positions.append(where[(where >= 0) & (where < size)])
        yield number, positions


class Extreme(Windows):
    """The largest element of each window: NaN wins, and of equal elements the first."""

    kinds = "iuf"
    differentiable = False
    indices = False

    def start(self, b: Any, dtype: DType) -> list[Any]:
        lowest = b.splat(b.identity("max", dtype))
        return [lowest, b.const(-1, int64, LANES)] if self.indices else [lowest]

    def next(self, b: Any, state: list[Any], value: Any, position: Any, valid: Any) -> list[Any]:
        better = b.cmp("gt", value, state[0])
        if value.dtype.kind == "f":
            better = b.or_(better, b.is_nan(value))
        if self.indices:
            better = b.or_(better, b.cmp("lt", state[1], 0))
        better = better if valid is None else b.and_(better, valid)
        after = [b.select(better, value, state[0])]
        return [*after, b.select(better, position(), state[1])] if self.indices else after

    def samples(self) -> Sequence[Any]:
        generator = numpy.random.default_rng(0)
        noisy = generator.permutation(2 * 5 * 40).reshape(2, 1, 5, 40) * 0.25
        holes = noisy.astype(numpy.float32)
        holes[0, 0, 1, 3], holes[1, 0, 2, :2] = numpy.nan, -numpy.inf
        crowd = generator.permutation(40 * 15).reshape(40, 1, 5, 3) * 0.25
        one = Span(1)
        return [
            example(((one, Span(4, 2), Span(39, 2)),), noisy),
            example(((one, Span(2, 2, 2), Span(20, 2, 2)),), noisy),
            example(((one, Span(3, 3, 2, 1, 1), Span(20, 3, 2, 1, 1)),), holes, smooth=False),
            example(((one, Span(3, 2, 1, 2, 0), Span(38, 2, 1, 2, 0)),), noisy),
            example(((Span(2, 2, 1), Span(2, 2, 2), Span(2, 2, 2)),), (2, 3, 4, 5)),
            example(((one, one, Span(7, 3, 1, 1, 1)),), numpy.array([[[[3, 1, 4, 1, 5, 9, 2]]]])),
            example(((one, one, Span(3, 2, 2)),), (0, 1, 1, 6)),
            example(((one, Span(3, 3, 2, 1, 1), Span(2, 2, 1)),), crowd),
            example(((one, one, Span(2, 2, 2, 2, 1)),), crowd.reshape(40, 1, 1, 15)[:16], smooth=False),
        ]


@custom
class window_max(Extreme):
    """The largest element of each window; attributes ``(spans,)``."""

    differentiable = True

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        (x,) = inputs
        return make_node(self, attrs, (x,), tensor_type(x.dtype, self.result_shape(attrs, x.shape[0])))

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return (apply("window_max_share", inputs[0], cotangent, attrs=attrs),)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (x,) = arrays
        lowest = -numpy.inf if x.dtype.kind == "f" else numpy.iinfo(x.dtype).min
        result = numpy.full(self.result_shape(attrs, x.shape[0]), lowest, x.dtype)
        for number, positions in _reference_windows(x, attrs[0]):
            part = x[numpy.ix_(numpy.arange(x.shape[0]), *positions)]
            if part.size:
                result[(slice(None), *number)] = part.max((1, 2, 3))
        return result


def last_nan_or_first_largest(row: Any) -> int:
    """The number of the element that ``window_argmax`` chooses."""
    if row.dtype.kind == "f" and numpy.isnan(row).any():
        return int(numpy.flatnonzero(numpy.isnan(row))[-1])
    return int(row.argmax())


@custom
class window_argmax(Extreme):
    """Where in its plane the largest element of each window lies, int64; attributes ``(spans,)``.

    Of several NaN it is the last, of other equal elements the first.
    """

    indices = True

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        (x,) = inputs
        return make_node(self, attrs, (x,), tensor_type(int64, self.result_shape(attrs, x.shape[0])))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (x,) = arrays
        result = numpy.full(self.result_shape(attrs, x.shape[0]), -1)
        numbers = numpy.arange(prod(x.shape[1:])).reshape(x.shape[1:])
        for number, positions in _reference_windows(x, attrs[0]):
            flat = numbers[numpy.ix_(*positions)].reshape(-1)
            for plane in range(x.shape[0] if flat.size else 0):
                chosen = last_nan_or_first_largest(x[plane].reshape(-1)[flat])
                result[(plane, *number)] = flat[chosen]
        return result


@custom
class window_max_share(Extreme):
    """The cotangent of ``window_max(x)`` brought to the elements that were largest; inputs ``(x, cotangent)``.

    A work item is a plane, whose windows give in their order.
    """

    kinds = "f"
    indices = True
    differentiable = True

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x, ct = inputs
        return make_node(self, attrs, (x, ct), tensor_type(ct.dtype, x.shape))

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        per_plane = prod(inputs[1].shape[1:]) * prod(span.kernel for span in attrs[0])
        planes = output.shape[0] if prod(output.shape[1:]) else 0
        per_plane += prod(output.shape[1:])
        if across_planes(inputs[1].shape[0], inputs[1].shape[3]):
            return -(-planes // LANES), kernels.grain(2048, per_plane)
        return planes, kernels.grain(32768, per_plane)

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, geometry, dtype = builder, Geometry(builder, attrs[0]), output.dtype
        target, zero, size = b.buffer(2), b.const(0, dtype), geometry.plane_size
        if across_planes(inputs[1].shape[0], inputs[1].shape[3]):
            with b.loop(b.begin, b.end) as group:
                first = b.mul(group, LANES)
                planes = b.minimum(b.sub(geometry.planes, first), LANES)
                kernels.fill(b, dtype, target, b.mul(first, size), zero, b.mul(planes, size))
                self.emit_planes(b, geometry, group, attrs, inputs[0].dtype, self._giver(b, geometry, dtype))
            return
        found, whole, count = b.alloca(int64, LANES), geometry.whole(), geometry.spans[2].windows
        rows = b.mul(geometry.spans[0].windows, geometry.spans[1].windows)
        with b.loop(b.begin, b.end) as plane:
            own = b.offset(target, b.mul(plane, size), dtype)
            kernels.fill(b, dtype, own, 0, zero, size)
            with b.loop(b.mul(plane, rows), b.mul(b.add(plane, 1), rows)) as row:
                at = b.mul(row, count)

                def give(column: Any, done: Any, value: Any, mask: Any) -> None:
                    b.store(found, 0, value)
                    with b.loop(b.sub(done, column), b.minimum(b.sub(count, column), LANES)) as lane:
                        position = b.maximum(b.load(found, lane, int64), 0)
                        share = b.load(b.input(1), b.add(b.add(at, column), lane), dtype)
                        b.store(own, position, _sum(b, dtype, b.load(own, position, dtype), share))

                self.emit_row(b, geometry, whole, row, attrs, inputs[0].dtype, give)

    def _giver(self, b: Any, geometry: Geometry, dtype: DType) -> Any:
        """Emit the gift of one window of each of sixteen planes."""

        def give(first_plane: Any, number: Any, value: Any, mask: Any) -> None:
            size, windows = geometry.plane_size, geometry.plane_windows
            starts = b.mul(b.iota(first_plane), b.splat(size))
            positions = b.add(starts, b.maximum(value, 0))
            at = b.add(b.mul(first_plane, windows), number)
            share = b.load_strided(b.input(1), at, windows, dtype, mask=mask)
            old = b.load_indices(b.buffer(2), positions, dtype, mask=mask)
            b.store_indices(b.buffer(2), positions, _sum(b, dtype, old, share), mask=mask)

        return give

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        x, ct = inputs
        planes = x.shape[0]
        index = ops.reshape(apply("window_argmax", x, attrs=attrs), (planes, prod(ct.shape[1:]), 1))
        flat = ops.reshape(cotangent, (planes, prod(x.shape[1:]), 1))
        return None, ops.reshape(apply("gather_block", flat, index), ct.shape)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        x, ct = arrays
        index = REGISTRY["window_argmax"].reference(attrs, x).reshape(x.shape[0], prod(ct.shape[1:]))
        result = numpy.zeros((x.shape[0], prod(x.shape[1:])), ct.dtype)
        for plane in range(x.shape[0]):
            numpy.add.at(result[plane], index[plane], ct[plane].reshape(-1))
        return result.reshape(x.shape)

    def samples(self) -> Sequence[Any]:
        plain = Extreme.samples(self)
        return [
            example(sample.attrs, *sample.arrays, self.result_shape(sample.attrs, sample.arrays[0].shape[0]))
            for sample in plain
            if sample.arrays[0].dtype.kind == "f"
        ]


def _truncated(total: Any, count: int) -> Any:
    """The quotient of integers, towards zero."""
    return numpy.sign(total) * (numpy.abs(total) // count)


def _sum(b: Any, dtype: DType, x: Any, y: Any) -> Any:
    return b.cast(b.add(b.cast(x, dtype.compute), b.cast(y, dtype.compute)), dtype)


@custom
class window_sum(Windows):
    """The sum over each window, divided; attributes ``(spans, divisor)``, spans without dilation.

    Divisors: WHOLE (1), PADDED and INSIDE (the positions of the window that lie in the padded or in the plain
    input), or a positive number.
    """

    kinds = "iuf"

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        (x,) = inputs
        if any(span.dilation != 1 for span in attrs[0]):  # divisors and gradients are of windows without gaps
            raise ArgumentError(f"window_sum: spans={attrs[0]}", "Give spans without dilation.")
        return make_node(self, attrs, (x,), tensor_type(x.dtype, self.result_shape(attrs, x.shape[0])))

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return (*super().parameters(attrs, inputs, output), attrs[1])

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return (*super().code_key(attrs, inputs, output), min(attrs[1], 1))

    def start(self, b: Any, dtype: DType) -> list[Any]:
        return [b.const(0, dtype, LANES)]

    def next(self, b: Any, state: list[Any], value: Any, position: Any, valid: Any) -> list[Any]:
        return [b.add(state[0], value)]  # masked-off lanes are loaded as 0

    def finish(
        self, b: Any, state: list[Any], geometry: Geometry, numbers: Sequence[Any], attrs: Attributes
    ) -> Any:
        divisor = attrs[1]
        if divisor == WHOLE:
            return state[0]
        if divisor > 0:
            count = b.param(NEXT_PARAMETER)
        else:
            parts = [geometry.breadth(axis, number, divisor == PADDED) for axis, number in enumerate(numbers)]
            count = b.mul(b.mul(parts[0], parts[1]), parts[2])
        count = b.splat(b.cast(count, state[0].dtype))
        return b.div(state[0], count) if state[0].dtype.kind == "f" else b.idiv(state[0], count)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        (x,) = inputs
        share: Any = cotangent
        if attrs[1] != WHOLE:
            share = share / divisors(attrs, x, cotangent.dtype)
        # the last axis first, while there is least to gather
        for axis in (3, 2, 1):
            span, size = attrs[0][axis - 1], x.shape[axis]
            if span != Span(size):
                share = axis_sums(share, axis, size, span, adjoint=True)
        return (share,)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (x,) = arrays
        result = numpy.zeros(self.result_shape(attrs, x.shape[0]), x.dtype)
        for number, positions in _reference_windows(x, attrs[0]):
            part = x[numpy.ix_(numpy.arange(x.shape[0]), *positions)]
            total = part.sum((1, 2, 3), dtype=x.dtype)
            count = attrs[1] if attrs[1] > 0 else 1
            if attrs[1] < 0:
                for o, span, size in zip(number, attrs[0], x.shape[1:], strict=True):
                    start = o * span.stride - span.low
                    inside = attrs[1] == INSIDE
                    high = min(start + span.kernel, size if inside else size + span.low)
                    count *= high - (max(start, 0) if inside else start)
            result[(slice(None), *number)] = (
                total / count if x.dtype.kind == "f" else _truncated(total, count)
            )
        return result

    def samples(self) -> Sequence[Any]:
        one = Span(1)
        return [
            example(((one, Span(4, 2), Span(39, 2)), 4), (2, 1, 5, 40)),
            example(((one, Span(3, 2, 2), Span(20, 2, 2)), WHOLE), (2, 1, 6, 40)),
            example(((one, Span(3, 3, 2, 1, 1), Span(4, 3, 2, 1, 1)), PADDED), (2, 1, 5, 6)),
            example(((one, Span(3, 3, 2, 1, 1), Span(4, 3, 2, 1, 1)), INSIDE), (2, 1, 5, 6)),
            example(((Span(2, 2, 1), Span(2, 2, 2), Span(2, 2, 2)), 8), (2, 3, 4, 5)),
            example(((one, one, Span(7, 3, 1, 1, 1)), 3), numpy.array([[[[3, 1, 4, 1, 5, 9, 2]]]])),
            example(((one, one, Span(3, 2, 2)), 2), (0, 1, 1, 6)),
            example(((one, Span(3, 3, 2, 1, 1), Span(2, 2, 1)), INSIDE), (19, 1, 5, 3)),
            example(((one, one, Span(2, 2, 2)), 2), (16, 1, 1, 4)),
        ]


def divisors(attrs: Attributes, x: Node, dtype: DType) -> Any:
    """What each window of ``window_sum`` is divided by: a number, or one for every window."""
    spans, divisor = attrs
    if divisor > 0:
        return real(divisor)
    result: Any = None
    for axis, (span, size) in enumerate(zip(spans, x.shape[1:], strict=True)):
        start = ops.subtract(ops.multiply(iota((span.windows,)), span.stride), span.low)
        inside = divisor == INSIDE
        high = ops.minimum(start + span.kernel, size if inside else size + span.low)
        breadth = high - (ops.maximum(start, 0) if inside else start)
        line = ops.reshape(ops.cast(breadth, dtype), (span.windows, *(1,) * (2 - axis)))
        result = line if result is None else result * line
    return result
