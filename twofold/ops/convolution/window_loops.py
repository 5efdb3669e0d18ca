"""The loops over sliding windows that pooling kernels share.

Lanes are neighbouring windows of a row, or, where rows are short, the same window of sixteen planes. Either way
the elements of a window are taken in row-major order, so results are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from twofold.dtypes import DType, bool_, int64
from twofold.ir.node import Attributes
from twofold.ir.types import TensorType
from twofold.ops import kernels
from twofold.ops.base import Custom

LANES = kernels.LANES
_FIELDS = 6  # parameters of an axis: its size, then the fields of its span
NEXT_PARAMETER = 3 * _FIELDS + 1  # the first that a subclass of ``Windows`` may add


class Span(NamedTuple):
    """The windows of one axis: how many, and their positions.

    Element ``t`` of window ``o`` is at ``o*stride - low + t*dilation``.
    """

    windows: int
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    low: int = 0


Spans = tuple[Span, Span, Span]
Bounds = tuple[Any, Any, Any]
"""The elements ``[first, last)`` of a window on one axis, and where the window begins."""


def across_planes(planes: int, windows: int) -> bool:
    """Whether lanes are planes: where a row of windows would fill fewer than sixteen."""
    return windows < LANES <= planes


class Geometry:
    """The run-time numbers of the windows inside a kernel."""

    def __init__(self, b: Any, spans: Spans) -> None:
        self.b = b
        self.sizes = [b.param(_FIELDS * axis) for axis in range(3)]
        self.spans = [Span(*[b.param(_FIELDS * axis + k) for k in range(1, _FIELDS)]) for axis in range(3)]
        self.planes = b.param(3 * _FIELDS)
        self.dilated = any(span.dilation != 1 for span in spans)
        self.stride = spans[2].stride
        self.plane_size = b.mul(self.sizes[0], b.mul(self.sizes[1], self.sizes[2]))
        counts = [span.windows for span in self.spans]
        self.plane_windows = b.mul(counts[0], b.mul(counts[1], counts[2]))

    def plane_and_row(self, row: Any) -> tuple[Any, Any, Any]:
        """Plane, window number along the depth, and along the height, of a row of windows."""
        b, (deep, high, _) = self.b, self.spans
        above = b.idiv(row, high.windows)
        plane = b.idiv(above, deep.windows)
        return plane, b.sub(above, b.mul(plane, deep.windows)), b.sub(row, b.mul(above, high.windows))

    def start(self, axis: int, number: Any) -> Any:
        """Where a window begins, which may be before the first element."""
        span = self.spans[axis]
        return self.b.sub(self.b.mul(number, span.stride), span.low)

    def bounds(self, axis: int, number: Any) -> Bounds:
        """The elements that a window has in the input, and where it begins."""
        b, span = self.b, self.spans[axis]
        start = self.start(axis, number)
        first, last = b.neg(start), b.sub(self.sizes[axis], start)
        if self.dilated:
            first, last = (
                b.idiv(b.add(position, b.sub(span.dilation, 1)), span.dilation) for position in (first, last)
            )
        return b.maximum(first, 0), b.minimum(b.maximum(last, 0), span.kernel), start

    def shift(self, axis: int, t: Any) -> Any:
        """How far element ``t`` of a window lies behind the first."""
        return self.b.mul(t, self.spans[axis].dilation) if self.dilated else t

    def whole(self) -> tuple[Any, Any]:
        """The windows ``[first, after)`` of the last axis that lie inside the input."""
        b, span = self.b, self.spans[2]
        first = b.idiv(b.add(span.low, b.sub(span.stride, 1)), span.stride)
        room = b.sub(b.add(self.sizes[2], span.low), self.shift(2, b.sub(span.kernel, 1)))
        after = b.add(b.idiv(b.sub(room, 1), span.stride), 1)
        return first, b.select(b.cmp("gt", room, 0), b.minimum(after, span.windows), b.const(0, int64))

    def breadth(self, axis: int, number: Any, padded: bool) -> Any:
        """How many positions of an axis a window has in the input, or with ``padded`` also in the padding."""
        b, span = self.b, self.spans[axis]
        start = self.start(axis, number)
        low = start if padded else 0
        high = b.add(self.sizes[axis], span.low) if padded else self.sizes[axis]
        return b.sub(b.minimum(b.add(start, span.kernel), high), b.maximum(start, low))

    def scan(
        self, bounds: Sequence[Bounds], state: list[Any], element: Callable[..., list[Any]]
    ) -> list[Any]:
        """Emit ``element(line, t, state)`` for the elements of a window, in row-major order.

        ``line`` is the number of the plane's element at the start of the line, ``t`` that in the window's last axis.
        """
        b = self.b
        deep = b.loop(*bounds[0][:2], carry=state)
        with deep as (d, outer):
            floor = b.mul(b.add(bounds[0][2], self.shift(0, d)), self.sizes[1])
            high = b.loop(*bounds[1][:2], carry=list(outer))
            with high as (h, middle):
                line = b.mul(b.add(b.add(floor, bounds[1][2]), self.shift(1, h)), self.sizes[2])
                wide = b.loop(*bounds[2][:2], carry=list(middle))
                with wide as (w, inner):
                    b.loop_next(element(line, w, list(inner)))
                b.loop_next(wide.results)
            b.loop_next(high.results)
        return list(deep.results)


class Row:
    """A row of windows of one plane, read sixteen windows at a time."""

    def __init__(self, geometry: Geometry, number: Any, dtype: DType) -> None:
        self.b, self.geometry, self.dtype = geometry.b, geometry, dtype
        plane, self.depth, self.height = geometry.plane_and_row(number)
        self.source = self.b.offset(self.b.input(0), self.b.mul(plane, geometry.plane_size), dtype)
        self.bounds = [geometry.bounds(0, self.depth), geometry.bounds(1, self.height)]

    def scan(
        self, column: Any, left: Any, state: list[Any], following: Callable[..., list[Any]]
    ) -> list[Any]:
        """Emit the state after all elements of the windows from ``column`` on, of which ``left`` exist.

        Without ``left`` all sixteen exist and lie inside the input.
        """
        b, geometry = self.b, self.geometry
        begin = geometry.start(2, column)
        starts = b.add(b.mul(b.iota(), b.splat(geometry.spans[2].stride)), b.splat(begin))

        def element(line: Any, t: Any, state: list[Any]) -> list[Any]:
            first = b.add(begin, geometry.shift(2, t))
            value, valid = self._element(line, first, left)
            position = lambda: b.add(starts, b.splat(b.add(line, geometry.shift(2, t))))
            return following(state, b.cast(value, self.dtype.compute), position, valid)

        columns = (b.const(0, int64), geometry.spans[2].kernel, begin)
        return geometry.scan([*self.bounds, columns], state, element)

    def _element(self, line: Any, first: Any, left: Any) -> tuple[Any, Any]:
        """One element of each window, from ``first`` in the line on, and which windows have it (None: all)."""
        if left is None:
            return self._load(line, first, None), None
        b, geometry = self.b, self.geometry
        last = b.add(first, b.mul(geometry.spans[2].stride, LANES - 1))
        easy = b.and_(b.cmp("ge", first, 0), b.cmp("lt", last, geometry.sizes[2]))
        branch = b.if_(b.and_(easy, b.cmp("ge", left, LANES)))
        with branch:
            branch.give([self._load(line, first, None), b.const(True, bool_, LANES)])
        with branch.else_():
            valid = self._valid(first, left)
            branch.give([self._load(line, first, valid), valid])
        value, valid = branch.results
        return value, valid

    def _valid(self, first: Any, left: Any) -> Any:
        """Which of ``left`` windows have an element inside the line, that of the first being at ``first``."""
        b, step, stride = self.b, self.geometry.spans[2].stride, self.geometry.stride
        ends = [b.neg(first), b.sub(self.geometry.sizes[2], first)]
        if stride > 2:
            ends = [b.floor_div(b.add(end, b.sub(step, 1)), step) for end in ends]
        elif stride == 2:
            ends = [b.shr(b.add(end, 1), 1) for end in ends]
        return b.lane_range(ends[0], b.minimum(ends[1], left))

    def _load(self, line: Any, first: Any, valid: Any) -> Any:
        """Emit the load of the elements ``first, first + stride, ...`` of a line."""
        b, dtype, stride = self.b, self.dtype, self.geometry.stride
        at = b.add(line, first)
        if stride == 1:
            return b.load(self.source, at, dtype, LANES, mask=valid)
        if stride > 2:
            return b.load_strided(self.source, at, self.geometry.spans[2].stride, dtype, mask=valid)
        if valid is None:  # the element behind the last one needed may lie outside
            masks = [None, b.lane_mask(LANES - 1)]
        else:
            size, parts = self.geometry.sizes[2], (first, b.add(first, LANES))
            masks = [b.lane_range(b.neg(part), b.sub(size, part)) for part in parts]
        loads = [
            b.load(self.source, b.add(at, k * LANES), dtype, LANES, mask=mask) for k, mask in enumerate(masks)
        ]
        return b.even_lanes(*loads)


class Windows(Custom):
    """A kernel over windows; attributes ``(spans, ...)``. A work item is a row of windows, or sixteen planes."""

    functions = ()

    def result_shape(self, attrs: Attributes, planes: int) -> tuple[int, ...]:
        """The shape of one value per window."""
        return (planes, *(span.windows for span in attrs[0]))

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        fields = [(size, *span) for size, span in zip(inputs[0].shape[1:], attrs[0], strict=True)]
        return (*(number for field in fields for number in field), inputs[0].shape[0])

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        planes, *windows = self.result_shape(attrs, inputs[0].shape[0])
        kernel = prod(span.kernel for span in attrs[0])
        if not prod(windows):
            return 0, 1
        if across_planes(planes, windows[-1]):
            return -(-planes // LANES), kernels.grain(2048, prod(windows) * kernel)
        return planes * prod(windows[:-1]), kernels.grain(32768, windows[-1] * kernel)

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        spans = attrs[0]
        lanes = "planes" if across_planes(inputs[0].shape[0], spans[2].windows) else min(spans[2].stride, 3)
        return (lanes, any(span.dilation != 1 for span in spans))

    def start(self, b: Any, dtype: DType) -> list[Any]:
        """Emit the state before the first element of a window."""
        raise NotImplementedError

    def next(self, b: Any, state: list[Any], value: Any, position: Any, valid: Any) -> list[Any]:
        """Emit the state after an element (a call returns its position in the plane); ``valid`` None: all lanes."""
        raise NotImplementedError

    def finish(
        self, b: Any, state: list[Any], geometry: Geometry, numbers: Sequence[Any], attrs: Attributes
    ) -> Any:
        """Emit the result of the windows at ``numbers``, of which the last may be one for each lane."""
        return state[-1]

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, geometry = builder, Geometry(builder, attrs[0])
        target, dtype, source = b.buffer(len(inputs)), output.dtype, inputs[0].dtype
        if across_planes(output.shape[0], output.shape[3]):
            size = geometry.plane_windows

            def lay(first_plane: Any, number: Any, value: Any, mask: Any) -> None:
                at = b.add(b.mul(first_plane, size), number)
                b.store_strided(target, at, size, b.cast(value, dtype), mask=mask)

            with b.loop(b.begin, b.end) as group:
                self.emit_planes(b, geometry, group, attrs, source, lay)
            return
        count, whole = geometry.spans[2].windows, geometry.whole()
        with b.loop(b.begin, b.end) as row:
            at = b.mul(row, count)

            def store(column: Any, done: Any, value: Any, mask: Any) -> None:
                b.store(target, b.add(at, column), b.cast(value, dtype), mask=mask)

            self.emit_row(b, geometry, whole, row, attrs, source, store)

    def emit_planes(
        self, b: Any, geometry: Geometry, group: Any, attrs: Attributes, dtype: DType, lay: Any
    ) -> None:
        """Emit ``lay(first plane, window number, value, mask)`` for all windows of sixteen planes."""
        first_plane, size = b.mul(group, LANES), geometry.plane_size
        mask = b.lane_range(0, b.sub(geometry.planes, first_plane))
        source = b.offset(b.input(0), b.mul(first_plane, size), dtype)
        deep, high, wide = (span.windows for span in geometry.spans)
        # what is gathered in strides comes too late by itself
        step = 64 // dtype.itemsize
        with b.loop(0, b.mul(size, LANES), step) as ahead:
            b.prefetch(source, b.add(b.mul(size, LANES), ahead), dtype)

        def window(numbers: Sequence[Any]) -> None:
            bounds = [geometry.bounds(axis, number) for axis, number in enumerate(numbers)]

            def element(line: Any, t: Any, state: list[Any]) -> list[Any]:
                at = b.add(line, b.add(bounds[2][2], geometry.shift(2, t)))
                value = b.cast(b.load_strided(source, at, size, dtype, mask=mask), dtype.compute)
                return self.next(b, state, value, lambda: b.splat(at), None)

            state = geometry.scan(bounds, self.start(b, dtype.compute), element)
            number = b.add(b.mul(b.add(b.mul(numbers[0], high), numbers[1]), wide), numbers[2])
            lay(first_plane, number, self.finish(b, state, geometry, numbers, attrs), mask)

        with b.loop(0, deep) as d, b.loop(0, high) as h, b.loop(0, wide) as w:
            window((d, h, w))

    def emit_row(
        self, b: Any, geometry: Geometry, whole: Any, row: Any, attrs: Attributes, dtype: DType, store: Any
    ) -> None:
        """Emit ``store(column, done, value, mask)`` for all windows of a row, sixteen from ``column`` on.

        The last sixteen may begin with some that were done before: those in front of ``done``.
        """
        line, count = Row(geometry, row, dtype), geometry.spans[2].windows

        def block(column: Any, done: Any, inside: bool) -> None:
            left = None if inside else b.sub(count, column)
            mask = None if inside else b.lane_range(0, left)
            following = lambda *known: self.next(b, *known)
            state = line.scan(column, left, self.start(b, dtype.compute), following)
            numbers = (line.depth, line.height, b.iota(column))
            store(column, done, self.finish(b, state, geometry, numbers, attrs), mask)

        with b.loop(0, count, LANES) as done:
            column = b.maximum(b.minimum(done, b.sub(count, LANES)), 0)
            inside = b.and_(b.cmp("ge", column, whole[0]), b.cmp("le", b.add(column, LANES), whole[1]))
            branch = b.if_(inside)
            with branch:
                block(column, done, True)
            with branch.else_():
                block(column, done, False)
