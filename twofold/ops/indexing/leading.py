"""The first few elements of the order of a row, found in one pass over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import bool_, int64, uint8
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import Custom, apply, convert, custom, ops
from twofold.ops.examples import example

MOST_LEADING = 4 * kernels.LANES
"""So many elements are kept in order, in one vector or in four, while the others go by."""


def leading_of_axis(x: Node, axis: int, count: int, descending: bool) -> Node:
    """The first ``count`` positions of the order of ``x`` along an axis, in place of that axis."""
    last = x.ndim - 1
    transposed = (*(k for k in range(x.ndim) if k != axis), axis)
    rows = ops.permute(x, transposed) if axis != last else x
    if x.dtype is bool_:
        rows = convert(rows, uint8)
    flat = ops.reshape(rows, (-1, x.shape[axis]))
    found = apply("first_of_rows", flat, attrs=(count, descending))
    found = ops.reshape(found, (*rows.shape[:last], count))
    back = (*range(axis), last, *range(axis, last))
    return ops.permute(found, back) if axis != last else found


@custom
class first_of_rows(Custom):
    """For each row the positions of its first elements in ascending (or descending) order.

    Equal elements keep their order, NaN is the largest. Input ``[rows, size]``, attributes ``(count, descending)``
    with a count from 1 to ``MOST_LEADING``.
    """

    functions = ()
    differentiable = False
    kinds = "iuf"

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        (x,) = inputs
        return make_node(self, attrs, (x,), tensor_type(int64, (x.shape[0], attrs[0])))

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        """The rows of all samples are the rows of one call."""
        rows = apply("first_of_rows", ops.reshape(values[0], (-1, values[0].shape[-1])), attrs=node.attrs)
        return ops.reshape(rows, (size, *node.shape))

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return inputs[0].shape[1], attrs[0]

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return inputs[0].shape[0], kernels.grain(65536, inputs[0].shape[1])

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return (attrs[1], attrs[0] > kernels.LANES)

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype = builder, inputs[0].dtype
        wide = dtype.compute
        size, count = b.param(0), b.param(1)
        vectors = 4 if attrs[0] > kernels.LANES else 1
        with b.loop(b.begin, b.end) as row:
            start = b.mul(row, size)
            nothing = [b.const(0, kind, kernels.LANES) for kind in (wide, int64) for _ in range(vectors)]
            fill = b.loop(0, count, carry=nothing)
            with fill as (k, kept):
                x = b.cast(b.load(b.input(0), b.add(start, k), dtype), wide)
                b.loop_next(_inserted(b, kept, (x, k), attrs[1], k))
            scan = b.loop(count, size, kernels.LANES, carry=[*fill.results, _last(b, fill.results)])
            with scan as (k, kept):
                mask = b.lane_mask(b.sub(size, k))
                values = b.load(b.input(0), b.add(start, k), dtype, kernels.LANES, mask=mask)
                found = b.and_(mask, comes_before(b, b.cast(values, wide), kept[-1], attrs[1]))
                some = b.if_(b.any_lane(found))
                with some:
                    some.give(_lanes_inserted(b, kept, found, (dtype, start, k), attrs[1]))
                with some.else_():
                    some.give(kept)
                b.loop_next(some.results)
            for v, where in enumerate(scan.results[vectors : 2 * vectors]):
                first = v * kernels.LANES
                at = b.add(b.mul(row, count), first)
                b.store(b.buffer(1), at, where, mask=b.lane_mask(b.sub(count, first)))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (x,), (count, descending) = arrays, attrs
        missing = numpy.isnan(x) if x.dtype.kind == "f" else numpy.zeros(x.shape, bool)
        ranks = numpy.unique(numpy.where(missing, 0, x), return_inverse=True)[1].reshape(x.shape)
        ranks = numpy.where(missing, x.size, ranks)
        return numpy.argsort(-ranks if descending else ranks, -1, kind="stable")[:, :count]

    def samples(self) -> Sequence[Any]:
        special = numpy.array([3.0, numpy.nan, -1.0, 3.0, -0.0, 0.0, numpy.inf, -numpy.inf, numpy.nan])
        rows = numpy.tile(special.astype(numpy.float32), (2, 3))
        return [
            *(example((count, down), rows) for count in (1, 5, 16, 17, 27) for down in (True, False)),
            example((3, True), (4, 50)),
            example((4, False), numpy.array([[2, 1, 2, 0], [0, 0, 0, 0]])),
            example((2, True), numpy.zeros((0, 3), numpy.float32)),
        ]


def comes_before(b: Any, x: Any, y: Any, descending: bool) -> Any:
    """Emit whether ``x`` comes before ``y``, which it does not if they are equal."""
    first = b.cmp("gt" if descending else "lt", x, y)
    if x.dtype.kind != "f":
        return first
    larger, smaller = (x, y) if descending else (y, x)
    return b.or_(first, b.and_(b.is_nan(larger), b.not_(b.is_nan(smaller))))


def _inserted(b: Any, kept: Sequence[Any], one: tuple[Any, Any], descending: bool, free: Any) -> list[Any]:
    """Emit the lanes in order with one more element, without the last; those from ``free`` on hold nothing yet.

    ``kept`` are the vectors of elements, then those of their positions.
    """
    half = len(kept) // 2
    moved = []
    for number, lanes in enumerate(kept):
        begins = number % half == 0
        new = one[number // half] if begins else b.extract(kept[number - 1], kernels.LANES - 1)
        moved.append(b.pushed_lanes(lanes, new))
    results: list[Any] = [None] * len(kept)
    for v in range(half):
        behind, further = (comes_before(b, b.splat(one[0]), lanes[v], descending) for lanes in (kept, moved))
        if free is not None:
            left = b.sub(free, v * kernels.LANES)
            behind = b.or_(behind, b.not_(b.lane_mask(left)))
            further = b.or_(further, b.not_(b.lane_mask(b.add(left, 1))))
        for number, new in ((v, one[0]), (half + v, one[1])):
            results[number] = b.select(behind, b.select(further, moved[number], new), kept[number])
    return results


def _last(b: Any, kept: Sequence[Any]) -> Any:
    """Emit the last one of the elements that are wanted."""
    last = b.sub(b.param(1), 1)
    chosen = kept[0]
    for v in range(1, len(kept) // 2):
        chosen = b.select(b.cmp("ge", last, v * kernels.LANES), kept[v], chosen)
    return b.extract(chosen, b.and_(last, kernels.LANES - 1))


def _lanes_inserted(
    b: Any, kept: Sequence[Any], found: Any, at: tuple[Any, Any, Any], descending: bool
) -> Sequence[Any]:
    """Emit the insertion of the lanes that were found to come before the last one kept.

    ``at`` is the dtype of the row, where it starts, and the first lane.
    """
    (dtype, start, first), bits = at, b.lane_bits(found)
    lanes = b.loop(0, b.count_ones(bits), carry=[*kept, bits])
    with lanes as (_, (*before, limit, left)):
        position = b.add(first, b.trailing_zeros(left))
        x = b.cast(b.load(b.input(0), b.add(start, position), dtype), limit.dtype)
        branch = b.if_(comes_before(b, x, limit, descending))
        with branch:
            then = _inserted(b, before, (x, position), descending, None)
            branch.give([*then, _last(b, then)])
        with branch.else_():
            branch.give([*before, limit])
        b.loop_next([*branch.results, b.and_(left, b.sub(left, 1))])
    return lanes.results[:-1]
