"""Resampling along one axis: each element of the result is a weighted sum of neighbours in the input.

Every pooling, interpolation and padding of one axis is a matrix with one run of non-zero elements in each row,
and its transpose is one again: that is the gradient. A ``Line`` holds such a matrix as tables: where the run of
each row and of each column begins and ends, and the weights. Several axes are taken one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import int64
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import Custom, apply, custom, iota, ops
from twofold.ops.examples import example

LANES = kernels.LANES

SUM, WEIGHTED, TAKE = "sum", "weighted", "take"


class Line(NamedTuple):
    """A matrix with one run of elements in each row and column, for one axis.

    Row ``o`` takes the input elements ``first[o] ... last[o] - 1``; column ``i`` is used by the rows
    ``first_use[i] ... last_use[i] - 1``. ``weights[t, o]`` belongs to element ``first[o] + t`` (None: ones).
    """

    first: Any
    last: Any
    first_use: Any
    last_use: Any
    weights: Any = None


def along(x: Any, axis: int, line: Line, adjoint: bool = False, take: bool = False) -> Any:
    """``x`` with one axis multiplied by a line, or by its transpose; ``take``: rows have one element each."""
    shape = tuple(x.shape)
    block = ops.reshape(x, (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])))
    given = line[:4] if line.weights is None else line
    how = TAKE if take else SUM if line.weights is None else WEIGHTED
    length = (line.first_use if adjoint else line.first).shape[0]
    made = apply("resample", block, *given, attrs=(length, bool(adjoint), how))
    return ops.reshape(made, (*shape[:axis], length, *shape[axis + 1 :]))


def _counted(b: Any, high: Any, low: Any, count: Any) -> list[Any]:
    """Emit the number of two digits after ``(high, low)``, where ``low`` stays below ``count``."""
    after = b.add(low, 1)
    over = b.cmp("eq", after, count)
    return [b.select(over, b.add(high, 1), high), b.select(over, b.const(0, int64), after)]


@custom
class resample(Custom):
    """The middle axis of ``[outer, size, inner]`` multiplied by a line, in the order of the elements.

    Inputs ``(x, *line)``, attributes ``(length, adjoint, how)`` with ``how`` SUM, WEIGHTED or TAKE.
    """

    functions = ()
    kinds = "f"
    half_types = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x = inputs[0]
        shape = (x.shape[0], attrs[0], x.shape[2])
        return make_node(self, attrs, tuple(inputs), tensor_type(x.dtype, shape))

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return (inputs[0].shape[1], output.shape[1], output.shape[2], -(-output.shape[1] // LANES))

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        if not output.size:
            return 0, 1
        if output.shape[2] == 1:
            return output.shape[0] * -(-output.shape[1] // LANES), 512
        return output.shape[0] * output.shape[1], kernels.grain(16384, output.shape[2])

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return (*attrs[1:], output.shape[2] == 1)

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        if output.shape[2] == 1:
            self._emit_last(builder, attrs, output)
        else:
            self._emit_rows(builder, attrs, output)

    def _weight(
        self, b: Any, attrs: Attributes, output: TensorType, o: Any, k: Any, t: Any, mask: Any
    ) -> Any:
        """The weight of element ``k = first[o] + t`` for row ``o`` of what the kernel makes."""
        wide = output.dtype.compute
        lanes = o.lanes
        if not attrs[1]:
            at = b.add(b.mul(t, b.param(1)), b.extract(o, 0) if lanes > 1 else o)
            return b.load(b.input(5), at, wide, lanes, mask=mask)
        load = b.load_indices if lanes > 1 else b.load
        masked = {} if lanes == 1 else {"mask": mask}
        # transposed: ``k`` is the row of the line, ``o`` its column
        within = b.sub(o, load(b.input(1), k, int64, **masked))
        return load(b.input(5), b.add(b.mul(within, b.splat(b.param(0), lanes)), k), wide, **masked)

    def _next(self, b: Any, state: Any, value: Any, weight: Any) -> Any:
        return b.add(state, value) if weight is None else b.fma(b.splat(weight, value.lanes), value, state)

    def _emit_last(self, b: Any, attrs: Attributes, output: TensorType) -> None:
        """One column: lanes are neighbouring elements of the result."""
        _, adjoint, how = attrs
        dtype = output.dtype
        size, length, blocks = b.param(0), b.param(1), b.param(3)
        first_at, last_at = (3, 4) if adjoint else (1, 2)
        target = b.buffer(6 if how == WEIGHTED else 5)
        outer = b.idiv(b.begin, blocks)
        items = b.loop(b.begin, b.end, carry=[outer, b.sub(b.begin, b.mul(outer, blocks))])
        with items as (_, (outer, block)):
            column = b.mul(block, LANES)
            mask = b.lane_range(0, b.sub(length, column))
            first = b.load(b.input(first_at), column, int64, LANES, mask=mask)
            source = b.offset(b.input(0), b.mul(outer, size), dtype)
            if how == TAKE:
                made = b.load_indices(source, first, dtype, mask=mask)
            else:
                count = b.sub(b.load(b.input(last_at), column, int64, LANES, mask=mask), first)
                made = self._column_sums(b, attrs, output, source, (first, count), column)
            b.store(target, b.add(b.mul(outer, length), column), made, mask=mask)
            b.loop_next(_counted(b, outer, block, blocks))

    def _column_sums(
        self, b: Any, attrs: Attributes, output: TensorType, source: Any, runs: Any, column: Any
    ) -> Any:
        """Emit sixteen neighbouring elements of the result; ``runs``: their first elements, and how many."""
        how, wide = attrs[2], output.dtype.compute
        first, count = runs
        numbers = b.add(b.splat(column), b.iota())
        loop = b.loop(0, b.reduce_lanes("max", count), carry=[b.const(0, wide, LANES)])
        with loop as (t, (state,)):
            valid = b.cmp("gt", count, b.splat(t))
            k = b.add(first, b.splat(t))
            value = b.cast(b.load_indices(source, k, output.dtype, mask=valid), wide)
            weight = self._weight(b, attrs, output, numbers, k, t, valid) if how == WEIGHTED else None
            b.loop_next([b.select(valid, self._next(b, state, value, weight), state)])
        return b.cast(loop.results[0], output.dtype)

    def _emit_rows(self, b: Any, attrs: Attributes, output: TensorType) -> None:
        """Many columns: a work item is a row of the result, lanes are its neighbours."""
        _, adjoint, how = attrs
        dtype = output.dtype
        size, length, inner = b.param(0), b.param(1), b.param(2)
        first_at, last_at = (3, 4) if adjoint else (1, 2)
        target = b.buffer(6 if how == WEIGHTED else 5)
        outer = b.idiv(b.begin, length)
        rows = b.loop(b.begin, b.end, carry=[outer, b.sub(b.begin, b.mul(outer, length))])
        with rows as (row, (outer, number)):
            first = b.load(b.input(first_at), number, int64)
            source = b.offset(b.input(0), b.mul(b.mul(outer, size), inner), dtype)
            at = b.mul(row, inner)
            if how == TAKE:
                kernels.copy(b, dtype, target, at, source, b.mul(first, inner), inner)
            else:
                last = b.load(b.input(last_at), number, int64)
                self._emit_sums(b, attrs, output, (source, first, last, number), (target, at))
            b.loop_next(_counted(b, outer, number, length))

    def _emit_sums(self, b: Any, attrs: Attributes, output: TensorType, source: Any, target: Any) -> None:
        """Emit one row of the result: ``source`` is data, first, last and number, ``target`` data and position."""
        data, first, last, number = source
        dtype, inner, how = output.dtype, b.param(2), attrs[2]

        def body(j: Any, lanes: int, mask: Any) -> None:
            loop = b.loop(first, last, carry=[b.const(0, dtype.compute, LANES)])
            with loop as (k, (state,)):
                position = b.add(b.mul(k, inner), j)
                value = b.cast(b.load(data, position, dtype, LANES, mask=mask), dtype.compute)
                weight = None
                if how == WEIGHTED:
                    weight = self._weight(b, attrs, output, number, k, b.sub(k, first), None)
                b.loop_next([self._next(b, state, value, weight)])
            b.store(target[0], b.add(target[1], j), b.cast(loop.results[0], dtype), mask=mask)

        kernels.run(b, inner, body)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        x, *line = inputs
        _, adjoint, how = attrs
        transposed = (x.shape[1], not adjoint, SUM if how == TAKE else how)
        return (apply("resample", cotangent, *line, attrs=transposed), *[None] * len(line))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        x, first, last, *_ = arrays
        length, adjoint, how = attrs
        matrix = numpy.zeros((x.shape[1], length) if adjoint else (length, x.shape[1]))
        for o, (low, high) in enumerate(zip(first, last, strict=True)):
            for t, k in enumerate(range(low, high)):
                matrix[o, k] = arrays[5][t, o] if how == WEIGHTED else 1
        if how == TAKE:
            return numpy.take(x, first, 1)
        return numpy.einsum("oi,bij->boj", matrix.T if adjoint else matrix, x).astype(x.dtype)

    def samples(self) -> Sequence[Any]:
        first, last = numpy.array([0, 0, 1, 2, 3]), numpy.array([1, 2, 3, 4, 4])
        first_use, last_use = numpy.array([0, 1, 2, 3]), numpy.array([2, 3, 4, 5])
        line = (first, last, first_use, last_use)
        weights = numpy.random.default_rng(3).normal(size=(2, 5)).astype(numpy.float32)
        one = (numpy.array([0, 2, 2]), numpy.array([1, 3, 3]), numpy.array([0, 1, 1]), numpy.array([1, 1, 3]))
        return [
            example((5, False, SUM), (19, 4, 1), *line),
            example((5, False, SUM), (2, 4, 17), *line),
            example((4, True, SUM), (3, 5, 1), *line),
            example((4, True, SUM), (2, 5, 3), *line),
            example((5, False, WEIGHTED), (3, 4, 1), *line, weights, smooth=False),
            example((5, False, WEIGHTED), (2, 4, 17), *line, weights, smooth=False),
            example((4, True, WEIGHTED), (3, 5, 1), *line, weights, smooth=False),
            example((4, True, WEIGHTED), (2, 5, 3), *line, weights, smooth=False),
            example((3, False, TAKE), (2, 3, 1), *one),
            example((3, False, TAKE), numpy.arange(18).reshape(2, 3, 3), *one),
            example((5, False, SUM), (0, 4, 1), *line),
        ]


def window_line(size: int, count: int, kernel: int, stride: int, low: int) -> Line:
    """The line of ``count`` windows over an axis of ``size``, ``low`` positions of padding in front."""
    start, position = iota((count,)) * stride - low, iota((size,)) + low
    first_use = ops.maximum(ops.floor_divide(position - kernel, stride) + 1, 0)
    last_use = ops.minimum(ops.floor_divide(position, stride) + 1, count)
    return Line(ops.maximum(start, 0), ops.minimum(start + kernel, size), first_use, last_use)


def axis_sums(x: Any, axis: int, size: int, span: Any, adjoint: bool = False) -> Any:
    """``x`` summed over the windows of one axis of ``size``, or the adjoint of that."""
    return along(x, axis, window_line(size, span.windows, span.kernel, span.stride, span.low), adjoint)


def share_line(size: int, count: int) -> Line:
    """The line of ``count`` windows that together cover an axis of ``size`` as evenly as whole positions allow.

    Window ``o`` is ``floor(o*size/count) ... ceil((o+1)*size/count) - 1``.
    """
    number, position = iota((count,)), iota((size,))
    first = ops.floor_divide(number * size, count)
    last = ops.floor_divide((number + 1) * size + (count - 1), count)
    # the largest window that starts at or before a position, and the smallest that ends after it
    last_use = ops.minimum(ops.floor_divide((position + 1) * count - 1, size) + 1, count)
    first_use = ops.floor_divide(position * count, size)
    return Line(first, last, first_use, last_use)
