"""Sums that go on from a value that is there: a product, rows at an index, or rows one after another.

Each is the chain that the same sum from nothing would be, begun at ``start``: adding in two parts gives the bits of
adding all at once. The result may take over the memory of ``start``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import Assembly
from twofold.ir.types import TensorType
from twofold.ops import kernels
from twofold.ops.base import Custom, Templated, apply, broadcast, custom, ops
from twofold.ops.examples import example
from twofold.ops.indexing.gather import Scatter, scatter_indices

_COLUMNS = 4 * kernels.LANES
"""Columns of a work item, whose chains go on together; so much of each row is read at a time."""


@custom
class accumulate_product(Templated):
    """``start`` plus the outer products of rows, by fused multiply-add in the order of the rows.

    Inputs ``(left [rows, m], right [rows, n], start [m, n])``.
    """

    functions = ()
    kinds = "f"
    template = "accumulated"
    overwrites = 2

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, (), tuple(inputs), inputs[2].type)

    def kernel_shape(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> Any:
        """The number of rows, the sizes of the result, and its dtype."""
        return (inputs[0].shape[0], *output.shape, output.dtype)

    def flops(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        return 2 * output.size * inputs[0].shape[0]

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        left, right, _ = inputs
        return ops.matmul(right, ops.permute(cotangent, (1, 0))), ops.matmul(left, cotangent), cotangent

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        left, right, start = arrays
        return start + left.T @ right

    def samples(self) -> Sequence[Any]:
        return [
            example((), (5, 3), (5, 4), (3, 4)),
            example((), (1, 17), (1, 33), (17, 33)),
            example((), (7, 50), (7, 100), (50, 100)),
            example((), (6, 1), (6, 5), (1, 5)),
            example((), (6, 5), (6, 1), (5, 1)),
            example((), (0, 3), (0, 4), (3, 4)),
        ]


@custom
class accumulate_at(Scatter):
    """``data`` with ``updates`` added at ``index``, in its order, which a look-up has checked.

    Inputs ``(data, index, updates)``.
    """

    assembly = Assembly.SCATTER_ADD
    index = 1
    checks = False
    kinds = "f"
    overwrites = 0

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, (), tuple(inputs), inputs[0].type)

    def begin(self, b: Any, dtype: Any, target: Any, at: Any, count: Any) -> None:
        moves = b.cmp("eq", b.cast(b.same_memory(b.input(0), target), int64), 0)
        with b.if_(moves):
            kernels.copy(b, dtype, target, at, b.input(0), at, count)

    def update(self, b: Any, attrs: Attributes, dtype: Any, old: Any, new: Any) -> Any:
        wide = dtype.compute
        return b.cast(b.add(b.cast(old, wide), b.cast(new, wide)), dtype)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return cotangent, None, apply("gather_block", cotangent, inputs[1])

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        data, index, updates = arrays
        result = data.copy()
        numpy.add.at(result, scatter_indices(index, data.shape[0], data.shape[2]), updates)
        return result

    def samples(self) -> Sequence[Any]:
        return [
            example((), (1, 5, 17), numpy.array([[[4], [-1], [4]]]), (1, 3, 17)),
            example(
                (), (2, 5, 3), numpy.array([[[4, 0, -5], [1, 2, 3]], [[0, 0, 0], [0, -1, 1]]]), (2, 2, 3)
            ),
            example((), (1, 4, 1), numpy.array([[[1], [3], [1]]]), (1, 3, 1)),
            example((), (1, 3, 2), numpy.zeros((1, 0, 1), numpy.int64), (1, 0, 2)),
        ]


@custom
class accumulate_rows(Custom):
    """``start`` plus rows, one after another; inputs ``(start [width], rows [count, width])``."""

    functions = ()
    kinds = "f"
    overwrites = 0

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, (), tuple(inputs), inputs[0].type)

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return inputs[1].shape

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return -(-output.size // _COLUMNS), -(-512 // (inputs[1].shape[0] + 1))

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return ()

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b = builder
        with b.loop(b.begin, b.end) as item:
            first = b.mul(item, _COLUMNS)
            branch = b.if_(b.cmp("gt", b.sub(b.param(1), first), kernels.LANES))
            with branch:
                self._chains(b, output.dtype, first, _COLUMNS)
            with branch.else_():
                self._chains(b, output.dtype, first, kernels.LANES)

    def _chains(self, b: Any, dtype: Any, first: Any, count: int) -> None:
        """Emit the chains of so many columns, the last ones masked."""
        columns = [b.add(first, k) for k in range(0, count, kernels.LANES)]
        masks = [b.lane_mask(b.sub(b.param(1), column)) for column in columns]

        def vectors(buffer: Any, row: Any) -> list[Any]:
            positions = zip([b.add(row, column) for column in columns], masks)
            loads = [b.load(buffer, at, dtype, kernels.LANES, mask=mask) for at, mask in positions]
            return [b.cast(values, dtype.compute) for values in loads]

        chains = b.loop(0, b.param(0), carry=vectors(b.input(0), b.const(0, int64)))
        with chains as (row, totals):
            b.loop_next([b.add(*pair) for pair in zip(totals, vectors(b.input(1), b.mul(row, b.param(1))))])
        for total, column, mask in zip(chains.results, columns, masks):
            b.store(b.buffer(2), column, b.cast(total, dtype), mask=mask)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return cotangent, broadcast(ops.reshape(cotangent, (1, *cotangent.shape)), inputs[1].shape)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        start, rows = arrays
        return start + rows.sum(0)

    def samples(self) -> Sequence[Any]:
        # a batched derivative may add the directions of several rows first
        return [
            example((), (3,), (1, 3)),
            example((), (37,), (5, 37), smooth=False),
            example((), (70,), (4, 70), smooth=False),
            example((), (2,), (0, 2)),
        ]
