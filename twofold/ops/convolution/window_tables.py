"""Windows that begin and end where tables say: adaptive and fractional pooling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import DType, int64
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import apply, custom, ops
from twofold.ops.convolution.window_loops import LANES
from twofold.ops.convolution.windows import Extreme, last_nan_or_first_largest
from twofold.ops.examples import example


@custom
class table_argmax(Extreme):
    """Where in its plane the largest element of each window lies, int64.

    Inputs ``(x, first, last, first, last, first, last)``: for depth, height and width int64 tables
    ``[planes or 1, windows]`` of the positions ``first ... last - 1`` of each window.
    """

    indices = True

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x = inputs[0]
        shape = (x.shape[0], *(inputs[k].shape[1] for k in (1, 3, 5)))
        return make_node(self, (), tuple(inputs), tensor_type(int64, shape))

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return (*inputs[0].shape[1:], *output.shape[1:])

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        if not output.size:
            return 0, 1
        return prod(output.shape[:3]), kernels.grain(4096 * prod(output.shape[1:]), inputs[0].size)

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return (inputs[1].shape[0] == 1,)

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype, shared = builder, inputs[0].dtype, inputs[1].shape[0] == 1
        sizes, counts = [b.param(k) for k in range(3)], [b.param(k) for k in range(3, 6)]
        plane_size = b.mul(sizes[0], b.mul(sizes[1], sizes[2]))
        with b.loop(b.begin, b.end) as row:
            above = b.idiv(row, counts[1])
            plane = b.idiv(above, counts[0])
            numbers = (b.sub(above, b.mul(plane, counts[0])), b.sub(row, b.mul(above, counts[1])))
            bases = [b.const(0, int64) if shared else b.mul(plane, count) for count in counts]
            bounds = [
                tuple(
                    b.load(b.input(1 + 2 * axis + end), b.add(bases[axis], number), int64) for end in (0, 1)
                )
                for axis, number in enumerate(numbers)
            ]
            source = b.offset(b.input(0), b.mul(plane, plane_size), dtype)
            with b.loop(0, counts[2], LANES) as column:
                mask = b.lane_mask(b.sub(counts[2], column))
                table_at = b.add(bases[2], column)
                first = b.load(b.input(5), table_at, int64, LANES, mask=mask)
                count = b.sub(b.load(b.input(6), table_at, int64, LANES, mask=mask), first)
                found = self._scan_block(b, dtype, source, sizes, bounds, first, count)
                b.store(b.buffer(7), b.add(b.mul(row, counts[2]), column), found, mask=mask)

    def _scan_block(
        self, b: Any, dtype: DType, source: Any, sizes: Any, bounds: Any, first: Any, count: Any
    ) -> Any:
        """Emit the positions of the largest elements of sixteen windows of a row."""
        most = b.reduce_lanes("max", count)
        deep = b.loop(*bounds[0], carry=self.start(b, dtype.compute))
        with deep as (d, outer):
            high = b.loop(*bounds[1], carry=list(outer))
            with high as (h, middle):
                offset = b.mul(b.add(b.mul(d, sizes[1]), h), sizes[2])
                wide = b.loop(0, most, carry=list(middle))
                with wide as (t, state):
                    valid = b.cmp("gt", count, b.splat(t))
                    positions = b.add(b.add(first, b.splat(t)), b.splat(offset))
                    value = b.cast(b.load_indices(source, positions, dtype, mask=valid), dtype.compute)
                    b.loop_next(self.next(b, list(state), value, lambda: positions, valid))
                b.loop_next(wide.results)
            b.loop_next(high.results)
        return deep.results[1]

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        x, *tables = arrays
        shape = (x.shape[0], *(tables[k].shape[1] for k in (0, 2, 4)))
        numbers, result = numpy.arange(prod(x.shape[1:])).reshape(x.shape[1:]), numpy.full(shape, -1)
        for plane, *window in numpy.ndindex(shape):
            of = plane if tables[0].shape[0] > 1 else 0
            cut = [slice(tables[2 * k][of, o], tables[2 * k + 1][of, o]) for k, o in enumerate(window)]
            flat = numbers[tuple(cut)].reshape(-1)
            if flat.size:
                chosen = last_nan_or_first_largest(x[plane].reshape(-1)[flat])
                result[(plane, *window)] = flat[chosen]
        return result

    def samples(self) -> Sequence[Any]:
        one = (numpy.array([[0]]), numpy.array([[1]]))
        some = (numpy.array([[0, 1, 3]]), numpy.array([[2, 4, 5]]))
        own = (numpy.array([[0, 2], [1, 3]]), numpy.array([[2, 4], [3, 5]]))
        ones = tuple(numpy.repeat(table, 2, 0) for table in one)
        return [
            example((), (2, 1, 5, 5), *one, *some, *some),
            example((), (2, 1, 5, 5), *ones, *own, *own),
            example((), numpy.arange(10)[::-1].reshape(2, 1, 1, 5).copy(), *one, *one, *some),
            example((), (0, 1, 5, 5), *one, *some, *some),
        ]


def chosen(x: Any, index: Any) -> Any:
    """The elements of planes ``[planes, ...]`` at ``index`` ``[planes, ...]``, numbers in a plane."""
    planes = x.shape[0]
    flat = ops.reshape(x, (planes, prod(x.shape[1:]), 1))
    found = apply("gather_block", flat, ops.reshape(index, (planes, prod(index.shape[1:]), 1)))
    return ops.reshape(found, index.shape)
