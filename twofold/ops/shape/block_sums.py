"""The sum of blocks inside tensors of zeros, which is the gradient of a tensor that is read in slices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import Custom, custom, strong
from twofold.ops.examples import example
from twofold.ops.shape.movement import block, run_time_index, slice_axis


@custom
class sum_of_blocks(Custom):
    """The sum, in order, of tensors that are 0 outside of a block each.

    Attributes ``(size, axis, count)``: the first ``count`` inputs are the blocks, which have the shape of the result
    but for their sizes along ``axis``, where the result has ``size``; the others are where each begins.
    """

    functions = ()
    kinds = "f"

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        size, axis, count = attrs
        blocks = [strong(one) for one in inputs[:count]]
        first = blocks[0].type
        shape = (*first.shape[:axis], size, *first.shape[axis + 1 :])
        starts = []
        for one, start in zip(blocks, inputs[count:], strict=True):
            own = one.shape[axis]
            whole = (*one.shape[:axis], size, *one.shape[axis + 1 :])
            if one.type.dtype is not first.dtype or whole != shape or own > size:
                what = f"a block of {one.type.dtype} {one.shape} in a sum of {first.dtype} {shape}"
                raise ShapeError(what, f"Give blocks of one dtype that differ along axis {axis} alone.")
            starts.append(run_time_index(start, size - own))
        return make_node(self, attrs, (*blocks, *starts), tensor_type(first.dtype, shape))

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        _, axis, count = attrs
        pairs = zip(inputs[:count], inputs[count:], strict=True)
        own = [slice_axis(cotangent, axis, start, one.shape[axis]) for one, start in pairs]
        return (*own, *[None] * count)

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        """Samples are one more axis in front, if the blocks of all of them begin at the same positions."""
        width, axis, count = node.attrs
        if not all(flags[:count]) or any(flags[count:]):
            return None
        type = tensor_type(node.type.dtype, (size, *node.type.shape))
        return make_node(self, (width, axis + 1, count), tuple(values), type)

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        _, axis, count = attrs
        rows = [prod(type.shape[axis:]) for type in (output, *inputs[:count])]
        return (prod(output.shape[axis + 1 :]), *rows)

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        axis = attrs[1]
        return prod(output.shape[:axis]), kernels.grain(16384, prod(output.shape[axis:]))

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return (attrs[2],)

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype, count = builder, output.dtype, attrs[2]
        target, inner, width = b.buffer(len(inputs)), b.param(0), b.param(1)
        sizes = [b.param(2 + k) for k in range(count)]
        zero = b.const(0, int64)
        begins = []
        for k, size in enumerate(sizes):
            # limited here, too: a wrong start must never write outside the result
            start = b.mul(b.load(b.input(count + k), 0, int64), inner)
            begins.append(kernels.clamp(b, start, zero, b.sub(width, size)))
        ends = [b.add(begin, size) for begin, size in zip(begins, sizes, strict=True)]
        low, high = begins[0], ends[0]
        for begin, end in zip(begins[1:], ends[1:], strict=True):
            low, high = b.maximum(low, begin), b.minimum(high, end)
        high = b.maximum(low, high)
        with b.loop(b.begin, b.end) as row:
            at = b.mul(row, width)
            # -0.0 is what changes nothing when it is added to, 0.0 what a block that does not reach an element adds
            kernels.fill(b, dtype, target, at, b.const(0.0, dtype), low)
            kernels.fill(b, dtype, target, b.add(at, low), b.const(-0.0, dtype), b.sub(high, low))
            kernels.fill(b, dtype, target, b.add(at, high), b.const(0.0, dtype), b.sub(width, high))
            for k, size in enumerate(sizes):
                _add_run(b, dtype, target, b.add(at, begins[k]), b.input(k), b.mul(row, size), size)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        size, axis, count = attrs
        total = None
        for one, start in zip(arrays[:count], arrays[count:], strict=True):
            whole = numpy.zeros((*one.shape[:axis], size, *one.shape[axis + 1 :]), one.dtype)
            begin = [0] * one.ndim
            begin[axis] = int(start)
            whole[block(begin, one.shape, [1] * one.ndim)] = one
            total = whole if total is None else total + whole
        return total

    def samples(self) -> Sequence[Any]:
        zeros = -numpy.zeros(3, numpy.float32)
        return [
            example((12, 1, 3), (3, 4), (3, 4), (3, 4), 8, 4, 0),
            example((40, 1, 2), (2, 19, 2), (2, 25, 2), 3, 15),
            example((5, 0, 2), (3,), (5,), 1, 0),
            example((3, 0, 2), zeros, zeros, 0, 0),
            example((4, 0, 2), zeros, zeros, 0, 1),
            example((6, 0, 2), (0, 3), (2, 3), 1, 4),
        ]


def _add_run(
    b: Any, dtype: Any, target: Any, target_at: Any, source: Any, source_at: Any, count: Any
) -> None:
    """Emit the addition of adjacent elements to what the target holds."""

    def body(j: Any, lanes: int, mask: Any) -> None:
        at = b.add(target_at, j)
        before = b.cast(b.load(target, at, dtype, lanes, mask=mask), dtype.compute)
        value = b.cast(b.load(source, b.add(source_at, j), dtype, lanes, mask=mask), dtype.compute)
        b.store(target, at, b.cast(b.add(before, value), dtype), mask=mask)

    kernels.run(b, count, body)
