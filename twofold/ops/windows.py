"""Sums and largest elements of sliding windows: what pooling is made of.

Primitive form: values ``[planes, depth, height, width]``; fewer spatial axes are leading ones of size 1. A
``Span`` says where the windows of one axis lie. Lanes are neighbouring windows of a row, and the elements of a
window are taken in row-major order, so the result depends on no thread and no vector width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import DType, int64
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import REGISTRY
from twofold.ir.types import TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import Custom, apply, custom, iota, ops
from twofold.ops.examples import example
from twofold.ops.resampling import axis_sums

LANES = kernels.LANES
_FIELDS = 6  # parameters of an axis: its size, then the fields of its span


class Span(NamedTuple):
    """The windows of one axis: how many, and their places.

    Element ``t`` of window ``o`` is at ``o*stride - low + t*dilation``.
    """

    windows: int
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    low: int = 0


Spans = tuple[Span, Span, Span]

WHOLE = 0  # divisors of ``window_sum``: none, the window cut at the padding, the window cut at the input
PADDED = -1
INSIDE = -2


class Geometry:
    """The run-time numbers of the windows inside a kernel."""

    def __init__(self, b: Any) -> None:
        self.b = b
        self.sizes = [b.param(_FIELDS * axis) for axis in range(3)]
        self.spans = [Span(*[b.param(_FIELDS * axis + k) for k in range(1, _FIELDS)]) for axis in range(3)]

    def plane_and_row(self, row: Any) -> tuple[Any, Any, Any]:
        """Plane, window number along the depth, and along the height, of a row of windows."""
        b = self.b
        above = b.idiv(row, self.spans[1].windows)
        plane = b.idiv(above, self.spans[0].windows)
        return (
            plane,
            b.sub(above, b.mul(plane, self.spans[0].windows)),
            b.sub(row, b.mul(above, self.spans[1].windows)),
        )

    def start(self, axis: int, number: Any) -> Any:
        """Where a window begins, which may be before the first element."""
        span = self.spans[axis]
        return self.b.sub(self.b.mul(number, span.stride), span.low)

    def inside(self, axis: int, number: Any) -> tuple[Any, Any]:
        """The elements ``[first, last)`` of a window, by their number in it, that the input has."""
        b, span = self.b, self.spans[axis]
        start = self.start(axis, number)
        up = b.sub(span.dilation, 1)
        first = b.maximum(b.idiv(b.add(b.neg(start), up), span.dilation), 0)
        last = b.idiv(b.add(b.sub(self.sizes[axis], start), up), span.dilation)
        return first, b.minimum(b.maximum(last, 0), span.kernel)

    def breadth(self, axis: int, number: Any, divisor: int) -> Any:
        """How many places of an axis count for the mean over a window."""
        b, span = self.b, self.spans[axis]
        start = self.start(axis, number)
        low = 0 if divisor == INSIDE else start
        high = self.sizes[axis] if divisor == INSIDE else b.add(self.sizes[axis], span.low)
        return b.sub(b.minimum(b.add(start, span.kernel), high), b.maximum(start, low))


Step = Callable[[Any, list[Any], Any, Any, Any], list[Any]]


class Windows(Custom):
    """A kernel over windows: a work item is a row of them; attributes ``(spans, ...)``."""

    functions = ()

    def result_shape(self, attrs: Attributes, planes: int) -> tuple[int, ...]:
        """The shape of one value per window."""
        return (planes, *(span.windows for span in attrs[0]))

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        fields = [(size, *span) for size, span in zip(inputs[0].shape[1:], attrs[0], strict=True)]
        return tuple(number for field in fields for number in field)

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        per_row = output.shape[3] * prod(span.kernel for span in attrs[0])
        rows = prod(output.shape[:3]) if output.shape[3] else 0
        return rows, max(1, 32768 // max(per_row, 1))

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return (attrs[0][2].stride == 1, attrs[0][0].kernel == 1)

    def start(self, b: Any, dtype: DType) -> list[Any]:
        """Emit the state before the first element of a window."""
        raise NotImplementedError

    def next(self, b: Any, state: list[Any], value: Any, place: Any, valid: Any) -> list[Any]:
        """Emit the state after an element (a call returns its place in the plane); ``valid`` None: all lanes."""
        raise NotImplementedError

    def finish(
        self, b: Any, state: list[Any], geometry: Geometry, numbers: Sequence[Any], attrs: Attributes
    ) -> Any:
        """Emit the result of the windows at ``numbers`` (the last of them for each lane)."""
        return state[-1]

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, geometry = builder, Geometry(builder)
        target, count = b.buffer(len(inputs)), geometry.spans[2].windows
        with b.loop(b.begin, b.end) as row:
            at = b.mul(row, count)

            def store(column: Any, value: Any, mask: Any) -> None:
                b.store(target, b.add(at, column), b.cast(value, output.dtype), mask=mask)

            self.emit_row(b, geometry, row, attrs, inputs[0].dtype, store)

    def emit_row(
        self, b: Any, geometry: Geometry, row: Any, attrs: Attributes, dtype: DType, store: Any
    ) -> None:
        """Emit ``store(column, value, mask)`` for all windows of a row, sixteen at a time."""
        plane, depth, height = geometry.plane_and_row(row)
        span, size = geometry.spans[2], geometry.sizes[2]
        reach = b.mul(b.sub(span.kernel, 1), span.dilation)
        first_whole = b.idiv(b.add(span.low, b.sub(span.stride, 1)), span.stride)
        room = b.sub(b.add(size, span.low), reach)
        after_whole = b.select(
            b.cmp("gt", room, 0), b.add(b.idiv(b.sub(room, 1), span.stride), 1), b.const(0, int64)
        )
        after_whole = b.minimum(after_whole, span.windows)

        def block(column: Any, whole: bool) -> None:
            mask = None if whole else b.lane_mask(b.sub(span.windows, column))
            state = self._scan(b, geometry, (plane, depth, height, column), attrs, dtype, mask)
            store(column, self.finish(b, state, geometry, (depth, height, column), attrs), mask)

        with b.loop(0, span.windows, LANES) as column:
            end = b.add(column, LANES)
            whole = b.and_(b.cmp("ge", column, first_whole), b.cmp("le", end, after_whole))
            branch = b.if_(whole)
            with branch:
                block(column, True)
            with branch.else_():
                block(column, False)

    def _scan(
        self, b: Any, geometry: Geometry, numbers: Sequence[Any], attrs: Attributes, dtype: DType, mask: Any
    ) -> list[Any]:
        """Emit the state after all elements of sixteen windows of a row."""
        plane, depth, height, column = numbers
        spans, sizes = geometry.spans, geometry.sizes
        dense = attrs[0][2].stride == 1
        begin = geometry.start(2, column)
        starts = b.add(b.mul(b.iota(), b.splat(spans[2].stride)), b.splat(begin))
        low_d, high_d = geometry.inside(0, depth)
        low_h, high_h = geometry.inside(1, height)
        base_d, base_h = geometry.start(0, depth), geometry.start(1, height)
        source = b.offset(b.input(0), b.mul(plane, b.mul(sizes[0], b.mul(sizes[1], sizes[2]))), dtype)

        def element(offset: Any, t: Any, state: list[Any]) -> list[Any]:
            shift = b.mul(t, spans[2].dilation)
            valid = None
            if mask is not None:
                places = b.add(starts, b.splat(shift))
                valid = b.and_(b.and_(b.cmp("ge", places, 0), b.cmp("lt", places, b.splat(sizes[2]))), mask)
            at = b.add(b.add(offset, begin), shift)
            if dense:
                value = b.load(source, at, dtype, LANES, mask=valid)
            else:
                value = b.load_strided(source, at, spans[2].stride, dtype, mask=valid)
            place = lambda: b.add(b.add(starts, b.splat(shift)), b.splat(offset))
            return self.next(b, state, b.cast(value, dtype.compute), place, valid)

        state = self.start(b, dtype.compute)
        deep = b.loop(low_d, high_d, carry=state)
        with deep as (d, outer):
            floor = b.mul(b.add(base_d, b.mul(d, spans[0].dilation)), sizes[1])
            high = b.loop(low_h, high_h, carry=list(outer))
            with high as (h, middle):
                line = b.add(b.add(floor, base_h), b.mul(h, spans[1].dilation))
                offset = b.mul(line, sizes[2])
                wide = b.loop(0, spans[2].kernel, carry=list(middle))
                with wide as (w, inner):
                    b.loop_next(element(offset, w, list(inner)))
                b.loop_next(wide.results)
            b.loop_next(high.results)
        return list(deep.results)


def _reference_windows(x: Any, spans: Spans) -> Any:
    """For every window its number, and the places that the input has, as index arrays."""
    for number in numpy.ndindex(*(span.windows for span in spans)):
        places = []
        for o, span, size in zip(number, spans, x.shape[1:], strict=True):
            where = o * span.stride - span.low + span.dilation * numpy.arange(span.kernel)
            places.append(where[(where >= 0) & (where < size)])
        yield number, places


class Extreme(Windows):
    """The largest element of each window: NaN wins, and of equal elements the first."""

    differentiable = False
    indices = False

    def start(self, b: Any, dtype: DType) -> list[Any]:
        lowest = b.splat(b.identity("max", dtype))
        return [lowest, b.const(-1, int64, LANES)] if self.indices else [lowest]

    def next(self, b: Any, state: list[Any], value: Any, place: Any, valid: Any) -> list[Any]:
        better = b.cmp("gt", value, state[0])
        if value.dtype.kind == "f":
            better = b.or_(better, b.is_nan(value))
        if self.indices:
            better = b.or_(better, b.cmp("lt", state[1], 0))
        better = better if valid is None else b.and_(better, valid)
        after = [b.select(better, value, state[0])]
        return [*after, b.select(better, place(), state[1])] if self.indices else after

    def samples(self) -> Sequence[Any]:
        generator = numpy.random.default_rng(0)
        noisy = generator.permutation(2 * 5 * 40).reshape(2, 1, 5, 40) * 0.25
        holes = noisy.astype(numpy.float32)
        holes[0, 0, 1, 3], holes[1, 0, 2, :2] = numpy.nan, -numpy.inf
        one = Span(1)
        return [
            example(((one, Span(4, 2), Span(39, 2)),), noisy),
            example(((one, Span(2, 2, 2), Span(20, 2, 2)),), noisy),
            example(((one, Span(3, 3, 2, 1, 1), Span(20, 3, 2, 1, 1)),), holes, smooth=False),
            example(((one, Span(3, 2, 1, 2, 0), Span(38, 2, 1, 2, 0)),), noisy),
            example(((Span(2, 2, 1), Span(2, 2, 2), Span(2, 2, 2)),), (2, 3, 4, 5)),
            example(((one, one, Span(7, 3, 1, 1, 1)),), numpy.array([[[[3, 1, 4, 1, 5, 9, 2]]]])),
            example(((one, one, Span(3, 2, 2)),), (0, 1, 1, 6)),
        ]


@custom
class window_max(Extreme):
    """The largest element of each window; attributes ``(spans,)``."""

    differentiable = True
    call = staticmethod(lambda x, spans: apply("window_max", x, attrs=(spans,)))

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
        for number, places in _reference_windows(x, attrs[0]):
            part = x[numpy.ix_(numpy.arange(x.shape[0]), *places)]
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
    call = staticmethod(lambda x, spans: apply("window_argmax", x, attrs=(spans,)))

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        (x,) = inputs
        return make_node(self, attrs, (x,), tensor_type(int64, self.result_shape(attrs, x.shape[0])))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (x,) = arrays
        result = numpy.full(self.result_shape(attrs, x.shape[0]), -1)
        numbers = numpy.arange(prod(x.shape[1:])).reshape(x.shape[1:])
        for number, places in _reference_windows(x, attrs[0]):
            flat = numbers[numpy.ix_(*places)].reshape(-1)
            for plane in range(x.shape[0] if flat.size else 0):
                chosen = last_nan_or_first_largest(x[plane].reshape(-1)[flat])
                result[(plane, *number)] = flat[chosen]
        return result


@custom
class window_max_share(Extreme):
    """The cotangent of ``window_max(x)`` brought to the elements that were largest; inputs ``(x, cotangent)``.

    A work item is a plane, whose windows give in their order.
    """

    indices = True
    differentiable = True
    call = staticmethod(lambda x, ct, spans: apply("window_max_share", x, ct, attrs=(spans,)))

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x, ct = inputs
        return make_node(self, attrs, (x, ct), tensor_type(ct.dtype, x.shape))

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        per_plane = prod(inputs[1].shape[1:]) * prod(span.kernel for span in attrs[0])
        planes = output.shape[0] if prod(output.shape[1:]) else 0
        return planes, max(1, 32768 // max(per_plane + prod(output.shape[1:]), 1))

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, geometry, dtype, wide = builder, Geometry(builder), output.dtype, output.dtype.compute
        count = geometry.spans[2].windows
        rows = b.mul(geometry.spans[0].windows, geometry.spans[1].windows)
        size = b.mul(geometry.sizes[0], b.mul(geometry.sizes[1], geometry.sizes[2]))
        found = b.alloca(int64, LANES)
        with b.loop(b.begin, b.end) as plane:
            target = b.offset(b.buffer(2), b.mul(plane, size), dtype)
            kernels.fill(b, dtype, target, 0, b.const(0, dtype), size)
            with b.loop(b.mul(plane, rows), b.mul(b.add(plane, 1), rows)) as row:
                at = b.mul(row, count)

                def give(column: Any, value: Any, mask: Any) -> None:
                    b.store(found, 0, value)
                    with b.loop(0, b.minimum(b.sub(count, column), LANES)) as lane:
                        place = b.maximum(b.load(found, lane, int64), 0)
                        share = b.load(b.input(1), b.add(b.add(at, column), lane), dtype)
                        old = b.load(target, place, dtype)
                        total = b.add(b.cast(old, wide), b.cast(share, wide))
                        b.store(target, place, b.cast(total, dtype))

                self.emit_row(b, geometry, row, attrs, inputs[0].dtype, give)

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


@custom
class window_sum(Windows):
    """The sum over each window, divided; attributes ``(spans, divisor)``, spans without dilation.

    Divisors: WHOLE (1), PADDED and INSIDE (the places of the window that lie in the padded or in the plain
    input), or a positive number.
    """

    kinds = "iuf"
    call = staticmethod(lambda x, spans, divisor: apply("window_sum", x, attrs=(spans, divisor)))

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        (x,) = inputs
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

    def next(self, b: Any, state: list[Any], value: Any, place: Any, valid: Any) -> list[Any]:
        return [b.add(state[0], value)]  # masked-off lanes are loaded as 0

    def finish(
        self, b: Any, state: list[Any], geometry: Geometry, numbers: Sequence[Any], attrs: Attributes
    ) -> Any:
        divisor = attrs[1]
        if divisor == WHOLE:
            return state[0]
        depth, height, column = numbers
        if divisor > 0:
            count = b.splat(b.param(3 * _FIELDS))
        else:
            rows = b.mul(geometry.breadth(0, depth, divisor), geometry.breadth(1, height, divisor))
            columns = geometry.breadth(2, b.add(b.splat(column), b.iota()), divisor)
            count = b.mul(columns, b.splat(rows))
        count = b.cast(count, state[0].dtype)
        return b.div(state[0], count) if state[0].dtype.kind == "f" else b.idiv(state[0], count)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        (x,) = inputs
        share: Any = cotangent
        if attrs[1] != WHOLE:
            share = share / divisors(attrs, x, cotangent.dtype)
        for axis, (span, size) in enumerate(zip(attrs[0], x.shape[1:], strict=True), 1):
            if span != Span(size):
                share = axis_sums(share, axis, size, span, adjoint=True)
        return (share,)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (x,) = arrays
        result = numpy.zeros(self.result_shape(attrs, x.shape[0]), x.dtype)
        for number, places in _reference_windows(x, attrs[0]):
            total = x[numpy.ix_(numpy.arange(x.shape[0]), *places)].sum((1, 2, 3))
            count = attrs[1] if attrs[1] > 0 else 1
            if attrs[1] < 0:
                for o, span, size in zip(number, attrs[0], x.shape[1:], strict=True):
                    start = o * span.stride - span.low
                    inside = attrs[1] == INSIDE
                    high = min(start + span.kernel, size if inside else size + span.low)
                    count *= high - (max(start, 0) if inside else start)
            result[(slice(None), *number)] = total / count if x.dtype.kind == "f" else total // count
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
        ]


def divisors(attrs: Attributes, x: Node, dtype: DType) -> Any:
    """What each window of ``window_sum`` is divided by: a number, or one for every window."""
    spans, divisor = attrs
    if divisor > 0:
        return float(divisor)
    result: Any = None
    for axis, (span, size) in enumerate(zip(spans, x.shape[1:], strict=True)):
        start = ops.subtract(ops.multiply(iota((span.windows,)), span.stride), span.low)
        inside = divisor == INSIDE
        high = ops.minimum(start + span.kernel, size if inside else size + span.low)
        breadth = high - (ops.maximum(start, 0) if inside else start)
        line = ops.reshape(ops.cast(breadth, dtype), (span.windows, *(1,) * (2 - axis)))
        result = line if result is None else result * line
    return result
