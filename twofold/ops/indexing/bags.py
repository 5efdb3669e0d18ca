"""Sums, means and maxima of bags of rows of a table, which are read where they lie.

Primitive form: a table ``[1, rows, width]``, an int64 index ``[1, count, 1]``, and where bags differ in length the
positions ``[bags + 1]`` at which each begins and the last one ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import int64
from twofold.ir.bind import constant
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.sizes import maximum
from twofold.ir.types import TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import apply, composite, convert, custom, filled, iota, ops, strong
from twofold.ops.examples import example
from twofold.ops.indexing.embedding import by_frequency, looked_up_numbers
from twofold.ops.indexing.gather import Indexed
from twofold.ops.indexing.leading import comes_before
from twofold.ops.indexing.row_products import block_share
from twofold.ops.reduction.softmax import floating

_VECTORS = 4  # of sixteen columns, whose sums are made together


class Bags(NamedTuple):
    """The attributes of the primitives."""

    count: Any
    length: Any  # of each bag; None where they differ
    padding: int | None  # an index that is in no bag
    mean: bool = False
    weighted: bool = False
    scaled: bool = False  # the gradient is divided by how often each index occurs


class OverBags(Indexed):
    """What the primitives share: a work item is a bag."""

    index = 1
    kinds = "f"
    half_types = False

    def result(self, data: Node) -> Any:
        """The dtype of the result."""
        raise NotImplementedError

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        shape = (1, Bags(*attrs).count, inputs[0].shape[2])
        return make_node(self, attrs, tuple(inputs), tensor_type(self.result(inputs[0]), shape))

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        bags = Bags(*attrs)
        length = 0 if bags.length is None else bags.length
        padding = -1 if bags.padding is None else bags.padding
        return inputs[0].shape[1], inputs[0].shape[2], inputs[1].shape[1], length, padding

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return output.shape[1], kernels.grain(16384, 8 * output.shape[2])

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        bags = Bags(*attrs)
        return bags.length is None, bags.padding is None, bags.mean, bags.weighted

    def begin(self, b: Any, wide: Any, vectors: int) -> list[Any]:
        """Emit what a bag without rows has, for so many vectors of columns."""
        raise NotImplementedError

    def joined(self, b: Any, kept: Sequence[Any], rows: Sequence[Any], index: Any) -> list[Any]:
        """Emit what the bag has with one more row."""
        raise NotImplementedError

    def finished(self, b: Any, bags: Bags, kept: Sequence[Any], rows: Any) -> list[Any]:
        """Emit the columns of the result of a bag of so many rows."""
        raise NotImplementedError

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, bags = builder, Bags(*attrs)
        inner = b.param(1)
        most = min(_VECTORS, b.accumulators(inputs[0].dtype.compute))
        step = most * kernels.LANES
        with b.loop(b.begin, b.end) as bag:
            if bags.length is None:
                ends = [b.load(b.input(2), b.add(bag, k), int64) for k in (0, 1)]
                start, stop = (kernels.clamp(b, end, 0, b.param(2)) for end in ends)
            else:
                start = b.mul(bag, b.param(3))
                stop = b.add(start, b.param(3))
            whole = b.mul(b.idiv(inner, step), step)
            rest = b.and_(inner, -kernels.LANES)
            run = (bag, start, stop)
            with b.loop(0, whole, step) as j:
                self._columns(b, bags, inputs, run, j, most, None)
            with b.loop(whole, rest, kernels.LANES) as j:
                self._columns(b, bags, inputs, run, j, 1, None)
            with b.if_(b.cmp("lt", rest, inner)):
                self._columns(b, bags, inputs, run, rest, 1, b.lane_mask(b.sub(inner, rest)))

    def _columns(
        self, b: Any, bags: Bags, types: Sequence[TensorType], run: Any, j: Any, vectors: int, mask: Any
    ) -> None:
        """Emit the result of one bag for ``vectors`` of columns from ``j``."""
        (bag, start, stop), dtype, inner = run, types[0].dtype, b.param(1)
        first = self.begin(b, dtype.compute, vectors)
        loop = b.loop(start, stop, carry=[*first, b.const(0, int64)])
        with loop as (k, (*kept, count)):
            index = kernels.checked_index(b, b.load(b.input(1), k, int64), b.param(0))
            at = b.add(b.mul(index, inner), j)
            rows = [
                b.cast(
                    b.load(b.input(0), b.add(at, v * kernels.LANES), dtype, kernels.LANES, mask=mask), wide
                )
                for v, wide in enumerate([dtype.compute] * vectors)
            ]
            if bags.weighted:
                factor = b.splat(b.load(b.input(len(types) - 1), k, dtype.compute))
                rows = [b.mul(row, factor) for row in rows]
            after = self.joined(b, kept, rows, index)
            counted = b.add(count, 1)
            if bags.padding is not None:
                member = b.cmp("ne", index, b.param(4))
                after = [b.select(member, new, old) for new, old in zip(after, kept, strict=True)]
                counted = b.select(member, counted, count)
            b.loop_next([*after, counted])
        *kept, count = loop.results
        for v, value in enumerate(self.finished(b, bags, kept, count)):
            at = b.add(b.add(b.mul(bag, inner), j), v * kernels.LANES)
            b.store(b.buffer(len(types)), at, value, mask=mask)

    def samples(self) -> Sequence[Any]:
        index = numpy.array([1, 4, 0, 1, 2, 4]).reshape(1, 6, 1)
        starts = numpy.array([0, 2, 2, 5])
        return [
            example((2, 3, None, *self.options), (1, 5, 3), index),
            example((3, 2, 1, *self.options), (1, 5, 150), index),
            example((3, None, None, *self.options), (1, 5, 17), index, starts),
            example((3, None, 4, *self.options), (1, 5, 3), index, starts),
            example((0, None, None, *self.options), (1, 5, 3), index, starts[:1]),
        ]

    options: tuple[Any, ...] = (False, False, False)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        data, index, *rest = arrays
        bags, flat = Bags(*attrs), index.reshape(-1)
        starts = numpy.arange(bags.count + 1) * bags.length if bags.length is not None else rest[0]
        factor = rest[-1] if bags.weighted else numpy.ones(len(flat), data.dtype)
        chosen = [
            [k for k in range(*starts[bag : bag + 2]) if flat[k] != bags.padding] for bag in range(bags.count)
        ]
        made = [self.reference_bag(bags, data[0], flat[rows], factor[rows]) for rows in chosen]
        return numpy.array(made).reshape(1, bags.count, data.shape[2])

    def reference_bag(self, bags: Bags, table: Any, index: Any, factor: Any) -> Any:
        """The result for the rows of one bag."""
        raise NotImplementedError


def _bag_numbers(bags: Bags, count: Any, starts: Any) -> Any:
    """The bag of each position."""
    if bags.length is not None:
        return ops.floor_divide(iota((count,)), maximum(bags.length, 1))
    return ops.searchsorted(starts, iota((count,)), right=True) - 1


@custom
class bag_sum(OverBags):
    """The sums, or means, of the rows of bags, added in the order of the index.

    Inputs ``(table, index, [starts], [a factor for each position])``; attributes as of ``Bags``.
    """

    result = lambda self, data: data.dtype.compute

    def begin(self, b: Any, wide: Any, vectors: int) -> list[Any]:
        """Zeros."""
        return [b.const(0, wide, kernels.LANES)] * vectors

    def joined(self, b: Any, kept: Sequence[Any], rows: Sequence[Any], index: Any) -> list[Any]:
        """Sums with the row."""
        return [b.add(one, row) for one, row in zip(kept, rows, strict=True)]

    def finished(self, b: Any, bags: Bags, kept: Sequence[Any], rows: Any) -> list[Any]:
        """The sums, divided by the number of rows where means are wanted."""
        if not bags.mean:
            return list(kept)
        divisor = b.splat(b.cast(b.maximum(rows, 1), kept[0].dtype))
        return [b.div(one, divisor) for one in kept]

    def _of_rows(self, bags: Bags, ct: Any, inputs: Sequence[Node]) -> Any:
        """The cotangent of each row in a bag, before its factor: ``[1, count, width]``."""
        (data, index), count = inputs[:2], inputs[1].shape[1]
        if not bags.count:
            return filled(0, ct.dtype, (1, count, data.shape[2]))
        number = _bag_numbers(bags, count, inputs[2] if bags.length is None else None)
        member = None
        if bags.length is None:
            member = ops.logical_and(ops.greater_equal(number, 0), ops.less(number, bags.count))
            number = ops.where(member, number, 0)
        if bags.padding is not None:
            kept = ops.not_equal(ops.reshape(index, (count,)), bags.padding)
            member = kept if member is None else ops.logical_and(member, kept)
        number = ops.reshape(number, (1, count, 1))
        if bags.mean:
            ones = filled(1, ct.dtype, (1, count, 1))
            if member is not None:
                ones = ops.where(ops.reshape(member, (1, count, 1)), ones, 0)
            rows = apply("scatter_sum", number, ones, attrs=(bags.count,))
            ct = ct / ops.maximum(rows, 1)
        spread = apply("gather_block", ct, number)
        return spread if member is None else ops.where(ops.reshape(member, (1, count, 1)), spread, 0)

    def _passed(self, bags: Bags, ct: Any, inputs: Sequence[Node]) -> tuple[Any, Any]:
        """The cotangents of the rows and of the factors."""
        data, index = inputs[:2]
        rows = self._of_rows(bags, ct, inputs)
        factors = None
        if bags.weighted:
            found = convert(apply("gather_block", data, index), rows.dtype)
            factors = ops.reshape(apply("sum", found * rows, attrs=((2,), False)), inputs[-1].shape)
            rows = rows * ops.reshape(inputs[-1], (1, index.shape[1], 1))
        if bags.scaled:
            rows = by_frequency(rows, index, data.shape[1])
        return convert(rows, data.dtype), factors

    def _gradients(self, attrs: Attributes, ct: Any, inputs: Sequence[Node], share: bool) -> Sequence[Any]:
        data, index = inputs[:2]
        rows, factors = self._passed(Bags(*attrs), ct, inputs)
        own = apply("scatter_sum", index, rows, attrs=(data.shape[1],))
        found = block_share(rows, own, data, index) if share else own
        between = [None] * (len(inputs) - 2)
        return [found, *between, factors]

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return self._gradients(attrs, cotangent, inputs, share=False)

    def shares(self, cotangent: Node, node: Node, inputs: tuple[Node, ...]) -> Sequence[Any] | None:
        return self._gradients(node.attrs, cotangent, inputs, share=True)

    def reference_bag(self, bags: Bags, table: Any, index: Any, factor: Any) -> Any:
        """The sum or mean."""
        added = (table[index] * factor[:, None]).sum(0)
        return added / max(len(index), 1) if bags.mean else added

    def samples(self) -> Sequence[Any]:
        """Also means and factors."""
        index = numpy.array([1, 4, 0, 1, 2, 4]).reshape(1, 6, 1)
        starts = numpy.array([0, 2, 2, 5])
        return [
            *super().samples(),
            example((2, 3, 4, True, False, False), (1, 5, 3), index),
            example((3, None, None, True, False, False), (1, 5, 3), index, starts),
            example((3, None, None, False, True, False), (1, 5, 3), index, starts, (6,)),
            example((2, 3, None, False, True, False), (1, 5, 3), index, (6,)),
        ]


@custom
class bag_largest(OverBags):
    """The number of the row of each bag that has the largest element of a column, the first of equal ones.

    NaN is the largest; an empty bag has -1. Inputs ``(table, index, [starts])``; attributes as of ``Bags``.
    """

    differentiable = False
    result = lambda self, data: int64

    def begin(self, b: Any, wide: Any, vectors: int) -> list[Any]:
        """No elements yet."""
        numbers = [b.const(-1, int64, kernels.LANES)] * vectors
        return [*[b.const(0, wide, kernels.LANES)] * vectors, *numbers]

    def joined(self, b: Any, kept: Sequence[Any], rows: Sequence[Any], index: Any) -> list[Any]:
        """The larger elements and their numbers."""
        half, number = len(rows), b.splat(index)
        larger = [
            b.or_(b.cmp("lt", old, 0), comes_before(b, row, best, True))
            for row, best, old in zip(rows, kept[:half], kept[half:], strict=True)
        ]
        best = [b.select(*one) for one in zip(larger, rows, kept[:half], strict=True)]
        return [*best, *[b.select(one, number, old) for one, old in zip(larger, kept[half:], strict=True)]]

    def finished(self, b: Any, bags: Bags, kept: Sequence[Any], rows: Any) -> list[Any]:
        """The numbers."""
        return list(kept[len(kept) // 2 :])

    def reference_bag(self, bags: Bags, table: Any, index: Any, factor: Any) -> Any:
        """The first row with the largest element."""
        return index[table[index].argmax(0)] if len(index) else numpy.full(table.shape[1], -1)


@composite
class embedding_bags:
    """Sums, means or maxima of bags of rows of a table.

    Inputs ``(index, weight, [offsets], [weight of each index])``; ``index`` is a vector with ``offsets`` of the
    bags, or a matrix with a bag in each row. Attributes ``(mode, whether there are offsets, whether there are
    weights, whether the last offset is an end, padding or None, whether gradients are over frequencies, whether that of
    the table is sparse)``.
    """

    memory = (2.2, "the row of each maximum is stored")

    functions = ()

    sparse_gradient = lambda attrs: attrs[-1]

    def compute(index: Any, weight: Any, *rest: Any) -> Any:
        *values, mode, cut, weighted, last, padding, scaled, _ = rest
        count = index.type.size
        known = ops.reshape(looked_up_numbers(index, weight), (1, count, 1))
        table = ops.reshape(weight if weight.dtype.kind == "f" else floating(weight), (1, *weight.shape))
        inputs, length, bags = [table, known], None, index.shape[0]
        if cut:
            starts = convert(values[0], int64)
            if not last:
                starts = ops.cat([starts, ops.reshape(strong(constant(count, int64)), (1,))])
            inputs, bags = [*inputs, starts], starts.shape[0] - 1
        else:
            length = index.shape[1]
        if mode == "max":
            best = apply("bag_largest", *inputs, attrs=Bags(bags, length, padding))
            if not weight.shape[0]:
                return filled(0, strong(weight).dtype, best.shape[1:])
            found = apply("gather_block", table, ops.maximum(best, 0))
            found = ops.where(ops.less(best, 0), 0, found)
            return ops.reshape(convert(found, strong(weight).dtype), best.shape[1:])
        if weighted:
            inputs.append(convert(ops.reshape(values[-1], (count,)), table.dtype.compute))
        added = apply("bag_sum", *inputs, attrs=Bags(bags, length, padding, mode == "mean", weighted, scaled))
        return ops.reshape(convert(added, strong(weight).dtype), added.shape[1:])

    def reference(index: Any, weight: Any, *rest: Any) -> Any:
        *values, mode, cut, weighted, last, padding, _, _ = rest
        flat, weights = index.ravel(), values[-1].ravel() if weighted else numpy.ones(index.size)
        starts = list(values[0]) if cut else list(range(0, index.size, index.shape[1]))
        ends = starts[1:] if cut and last else [*starts[1:], index.size]
        result = []
        for start, end in zip(starts, ends, strict=False):
            positions = [k for k in range(start, end) if flat[k] != padding]
            rows = weight[flat[positions]] * weights[positions, None]
            result.append(getattr(rows, mode)(0) if positions else numpy.zeros(weight.shape[1]))
        return numpy.array(result).reshape(-1, weight.shape[1])

    @staticmethod
    def samples() -> Any:
        plain, index = (True, False, False, None, False, False), numpy.array([1, 4, 0, 1, 2])
        offsets, matrix = numpy.array([0, 2, 2]), numpy.array([[1, 4], [0, 1]])
        made = [example((mode, *plain), index, (5, 3), offsets) for mode in ("sum", "mean", "max")]
        made += [
            example((mode, False, False, False, 1, False, False), matrix, (5, 3))
            for mode in ("sum", "mean", "max")
        ]
        return [
            *made,
            example(
                ("sum", True, True, True, None, False, True), index, (5, 3), numpy.array([0, 1, 4]), (5,)
            ),
            example(("sum", False, True, False, None, False, False), matrix, (5, 17), (2, 2)),
        ]
