"""Changes of a few rows of a large table: primitives that touch no other row where they may write in place.

No function of a user's makes them; the pass over sums of rows does. Their indices count from the front and lie
inside the table: ``linear_index`` has checked them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import int8, int16, int32, int64
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import Assembly
from twofold.ir.types import TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import Custom, custom
from twofold.ops.examples import example

SHIFTS = ("data", "data + shift", "shift + data", "data - shift")
_MOST_PARTS = 64  # work items of one change; each reads all indices


@custom
class first_positions(Custom):
    """For each index the position of the first one that is equal; attributes ``(rows of the table,)``.

    Source: Briggs, Torczon, An Efficient Representation for Sparse Sets, 1993. The scratch memory, a number for
    each row, is not filled first: what it says of a row is believed only if the position it names has that row.
    """

    functions = ()
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, attrs, tuple(inputs), tensor_type(int64, inputs[0].shape))

    def scratch(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        size: int = attrs[0]
        return size * int32.itemsize

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return (output.size,)

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return min(output.size, 1), 1

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return ()

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b = builder
        index, target, seen = b.input(0), b.buffer(1), b.buffer(2)
        with b.loop(0, b.param(0)) as k:
            row = b.load(index, k, int64)
            said = b.cast(b.load(seen, row, int32), int64)
            possible = b.and_(b.cmp("ge", said, 0), b.cmp("lt", said, k))
            named = b.load(index, b.select(possible, said, k), int64)
            known = b.and_(possible, b.cmp("eq", named, row))
            position = b.select(known, said, k)
            b.store(target, k, position)
            b.store(seen, row, b.cast(position, int32))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        _, first, turn = numpy.unique(arrays[0], return_index=True, return_inverse=True)
        return first[turn].astype(numpy.int64)

    def samples(self) -> Sequence[Any]:
        return [
            example((5,), numpy.array([3, 1, 3, 0, 1, 3])),
            example((5,), numpy.zeros((0,), numpy.int64)),
        ]


@custom
class changed_rows(Custom):
    """``data``, perhaps shifted, with ``rows`` in place of those at ``index``.

    Inputs ``(data [size, ...], index [count], rows [count, ...])`` and perhaps ``shift [...]``; the attribute says
    what is made of both, as in ``SHIFTS`` (of two NaN the one in front stays). Of equal indices all bring the
    same row. Where the result takes over the memory of ``data``, and no element of the shift changes a number,
    only the rows at ``index`` are touched.
    """

    kinds = "iuf"
    functions = ()
    differentiable = False
    assembly = Assembly.UPDATE_ROWS
    overwrites = 0

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, attrs, tuple(inputs), inputs[0].type)

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        size = output.shape[0]
        return size, inputs[1].size, prod(output.shape[1:]), -(-size // _MOST_PARTS)

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        size = output.shape[0]
        return (-(-size // -(-size // _MOST_PARTS)) if output.size else 0), 1

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return attrs

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype, (how,) = builder, output.dtype, attrs
        data, index, rows, target = b.input(0), b.input(1), b.input(2), b.buffer(len(inputs))
        size, count, width, part = (b.param(k) for k in range(4))
        stays = b.same_memory(data, target)
        if len(inputs) == 4:
            stays = b.and_(stays, _idle(b, b.input(3), width, output, how))
        moves = b.cmp("eq", b.cast(stays, int64), 0)
        with b.loop(b.begin, b.end) as item:
            low = b.mul(item, part)
            high = b.minimum(b.add(low, part), size)
            with b.if_(moves), b.loop(low, high) as row:
                at = b.mul(row, width)
                if len(inputs) == 4:
                    _shift(b, dtype, target, data, b.input(3), at, width, how)
                else:
                    kernels.copy(b, dtype, target, at, data, at, width)
            with b.loop(0, count) as k:
                row = b.load(index, k, int64)
                with b.if_(b.and_(b.cmp("ge", row, low), b.cmp("lt", row, high))):
                    kernels.copy(b, dtype, target, b.mul(row, width), rows, b.mul(k, width), width)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        data, index, rows, *shift = arrays
        result = data.copy()
        if shift:
            result = data - shift[0] if attrs[0] == "data - shift" else data + shift[0]
        result[index] = rows
        return result

    def samples(self) -> Sequence[Any]:
        index, rows = numpy.array([4, 0, 4]), numpy.full((3, 17), 2.5, numpy.float32)
        return [
            example(("data + shift",), (5, 17), index, rows, (17,)),
            example(("data - shift",), (5, 17), index, rows, numpy.zeros(17, numpy.float32)),
            example(("data",), (5, 17), index, rows),
            example(("data",), (200,), numpy.array([199, 3]), numpy.ones(2, numpy.float32)),
        ]


def _idle(b: Any, shift: Any, width: Any, output: TensorType, how: str) -> Any:
    """Emit whether a shift changes no number: -0.0 that is added, 0.0 that is subtracted, 0 of integers."""
    bits = {1: int8, 2: int16, 4: int32, 8: int64}[output.dtype.itemsize]
    signed_zero = output.dtype.kind == "f" and how != "data - shift"
    wanted = b.const(-(2 ** (8 * bits.itemsize - 1)) if signed_zero else 0, bits)
    loop = b.loop(0, width, carry=[b.const(1, int64)])
    with loop as (j, (idle,)):
        same = b.cmp("eq", b.load(shift, j, bits), wanted)
        b.loop_next([b.select(same, idle, b.const(0, int64))])
    return b.cmp("ne", loop.results[0], 0)


def _shift(b: Any, dtype: Any, target: Any, data: Any, shift: Any, at: Any, width: Any, how: str) -> None:
    wide = dtype.compute

    def body(j: Any, lanes: int, mask: Any) -> None:
        x = b.cast(b.load(data, b.add(at, j), dtype, lanes, mask=mask), wide)
        y = b.cast(b.load(shift, j, dtype, lanes, mask=mask), wide)
        made = b.sub(x, y) if how == "data - shift" else b.add(x, y) if how == "data + shift" else b.add(y, x)
        b.store(target, b.add(at, j), b.cast(made, dtype), mask=mask)

    kernels.run(b, width, body)
