"""Sparse gradients of lookups: dense updates of large tables become updates of the rows that an index reaches.

The gradient of a lookup is a segment sum: zeros with a few rows added. ``table + f(segment sum)`` changes these rows,
and shifts all others by ``f(0)``, which is the same for every row; in a step of gradient descent the shift is
``-0.0``, which changes no value. So the dense gradient is never made, and if the new table may be written in place only
a few rows are read and written. The same holds for ``where(g(segment sum), f(segment sum, tables), table)`` if
``g(0)`` is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.ir.bind import constant, is_constant, is_input
from twofold.ir.graph import Graph
from twofold.ir.node import Node, make_node
from twofold.ir.op import Assembly, ElementwiseOp, ReductionOp, SourceOp, ViewOp
from twofold.ir.types import Shape, tensor_type
from twofold.ir.views import assembly, below_reshapes, is_broadcast, is_reshape, is_view
from twofold.ops.base import apply, broadcast, filled, ops
from twofold.ops.shape.movement import slice_axis
from twofold.transforms.rewriting import rewrite_once

_MIN_ELEMENTS = 1 << 14  # of a table: one kernel over a smaller one costs less than several over its rows
_MIN_SPARSITY = 4  # the table has at least this many times the rows that change
_FUSIBLE = (ElementwiseOp, ViewOp, ReductionOp, SourceOp)  # perhaps fused, with no buffer of its own


def sparse_table_updates(graph: Graph) -> Graph:
    """``graph`` with dense updates of large tables by segment sums of few rows as updates of these rows."""
    if not any(assembly(node) is Assembly.SEGMENT_SUM for node in graph.nodes()):
        return graph
    return rewrite_once(rewrite_once(graph, _merged), _SparseUpdates().rewrite)


def _merged(node: Node) -> Node | None:
    """A scatter-add onto a segment sum becomes one segment sum."""
    if assembly(node) is not Assembly.SCATTER_ADD:
        return None
    data, index, updates = node.inputs
    below = below_reshapes(data)
    if (
        assembly(below) is not Assembly.SEGMENT_SUM
        or below.shape != node.shape
        or below.inputs[0].shape[::2] != index.shape[::2]
    ):
        return None
    sides = [ops.cat(pair, 1) for pair in zip(below.inputs, (index, updates))]
    return apply("scatter_sum", *sides, attrs=below.attrs)


def is_sparse(node: Node, nbytes: int) -> bool:
    """Whether ``node`` is a segment sum into a large table, of which ``nbytes`` are a small fraction."""
    if _sum_of(node) is None:  # first: every comparison of symbolic sizes becomes a guard of the template
        return False
    return node.type.size >= _MIN_ELEMENTS and nbytes * _MIN_SPARSITY <= node.type.nbytes


class _SegmentSum(NamedTuple):
    """Zeros with the rows ``updates [1, size, width]`` added at ``positions [1, size, 1]``."""

    positions: Node
    updates: Node

    @property
    def size(self) -> int:
        return self.positions.shape[1]


class _SparseUpdates:
    """The rewrite of dense updates, with the segment sums that nodes depend on row by row."""

    def __init__(self) -> None:
        self._sums: dict[int, frozenset[Node] | None] = {}

    def rewrite(self, node: Node) -> Node | None:
        """A dense update of a table becomes an update of the rows that segment sums reach."""
        if not node.shape or not isinstance(node.op, ElementwiseOp) or node.dtype.kind == "b":
            return None
        if node.op.shifts:
            return self._shifted(node, node.op.shifts)
        return self._chosen(node) if node.op.selects else None

    def _shifted(self, node: Node, shifts: Sequence[str]) -> Node | None:
        left, right = node.inputs
        for (table, update), how in zip([(left, right), (right, left)], shifts):
            sums = self.sums(update)
            if sums and not self.sums(table) and _in_memory(table) and _few(sums, node):
                rows = _Rows(sums, node.shape[0])
                shift = ops.reshape(rows.unreached(update), node.shape[1:])
                return self._updated(node, table, rows, how, shift)
        return None

    def _chosen(self, node: Node) -> Node | None:
        condition, _, old = node.inputs
        sums = self.sums(condition)
        if not sums or self.sums(old) or not _in_memory(old) or not _few(sums, node):
            return None
        rows = _Rows(sums, node.shape[0])
        return self._updated(node, old, rows, "data") if _false_at_zero(condition) else None

    def _updated(self, node: Node, table: Node, rows: _Rows, how: str, *shift: Node) -> Node:
        return apply("changed_rows", table, rows.index, rows.of(node), *shift, attrs=(how,))

    def sums(self, node: Node) -> frozenset[Node] | None:
        """The segment sums from whose rows each row of ``node`` is computed, with values that are equal for all rows.

        None if it depends on another table.
        """
        if node.id not in self._sums:
            self._sums[node.id] = self._find(node)
        return self._sums[node.id]

    def _find(self, node: Node) -> frozenset[Node] | None:
        if _same_rows(node):
            return frozenset()
        if _sum_of(node) is not None:
            return frozenset([node])
        if not _by_rows(node):
            return None
        found = [self.sums(value) for value in node.inputs]
        return frozenset().union(*(sums for sums in found if sums)) if None not in found else None


class _Rows:
    """Nodes over all rows of a table as nodes over the few rows that segment sums reach."""

    def __init__(self, sums: frozenset[Node], size: int) -> None:
        ordered = sorted(sums, key=lambda node: node.id)
        self._sums = {node.id: found for node in ordered if (found := _sum_of(node)) is not None}
        flat = [ops.reshape(part.positions, (part.size,)) for part in self._sums.values()]
        positions = flat[0] if len(flat) == 1 else ops.cat(flat)
        self.count = positions.shape[0]
        self.index = apply("linear_index", positions, attrs=((size,),))
        self._first = apply("first_positions", self.index, attrs=(size,))
        self._compact: dict[int, Node] = {}

    def of(self, node: Node) -> Node:
        """The rows of ``node``."""
        if node.id not in self._compact:
            self._compact[node.id] = self._build(node)
        return self._compact[node.id]

    def _build(self, node: Node) -> Node:
        shape = (self.count, *node.shape[1:])
        if _same_rows(node):
            return broadcast(node.inputs[0], shape)
        if node.id in self._sums:
            return ops.reshape(self._sum(node), shape)
        if _by_rows(node):
            inputs = tuple(self.of(value) for value in node.inputs)
            return _with_shape(node, inputs, shape)
        if assembly(node) is Assembly.UPDATE_ROWS and node.inputs[1] is self.index:
            return node.inputs[2]
        return apply("index_select", node, self.index, attrs=(0,))

    def _sum(self, node: Node) -> Node:
        """The rows of one segment sum, added up in a table of as many rows as there are indices."""
        start = 0
        for number, part in self._sums.items():
            if number == node.id:
                break
            start += part.size
        whole = part.size == self.count
        first = self._first if whole else slice_axis(self._first, 0, constant(start), part.size)
        index = ops.reshape(first, (1, part.size, 1))
        compact = apply("scatter_sum", index, part.updates, attrs=(self.count,))
        return apply("gather_block", compact, ops.reshape(self._first, (1, self.count, 1)))

    def unreached(self, node: Node) -> Node:
        """The row of ``node`` where no index reaches, computed from zeros in place of segment sums."""
        shape = (1, *node.shape[1:])
        if _same_rows(node):
            return broadcast(node.inputs[0], shape)
        if node.id in self._sums:
            return filled(0, node.dtype, shape)
        return _with_shape(node, tuple(self.unreached(value) for value in node.inputs), shape)


def _in_memory(table: Node) -> bool:
    """Whether a table has a buffer; one that is computed by a fused kernel is updated in that kernel."""
    table = below_reshapes(table)
    return is_input(table) or not isinstance(table.op, _FUSIBLE)


def _by_rows(node: Node) -> bool:
    """Whether a row of ``node`` depends on the same row of each input only."""
    if isinstance(node.op, ElementwiseOp):
        return True
    if isinstance(node.op, ReductionOp):
        return 0 not in node.attrs[0]
    kept = bool(node.shape) and node.inputs[:1] and node.inputs[0].shape[:1] == node.shape[:1]
    if is_broadcast(node):
        return bool(kept) and node.inputs[0].ndim == node.ndim
    return bool(kept) and is_reshape(node)


def _with_shape(node: Node, inputs: tuple[Node, ...], shape: Shape) -> Node:
    attrs = (shape,) if is_view(node) else node.attrs
    return make_node(node.op, attrs, inputs, tensor_type(node.dtype, shape))


def _few(sums: frozenset[Node], node: Node) -> bool:
    """Whether few rows of a large table change. Comparisons of sizes are guards, so it is asked last."""
    counts = [own.size for found in sums if (own := _sum_of(found)) is not None]
    return node.type.size >= _MIN_ELEMENTS and 0 < sum(counts) * _MIN_SPARSITY <= node.shape[0]


def _sum_of(node: Node) -> _SegmentSum | None:
    """The segment sum that ``node`` is a view of, if its first axis is that of the rows."""
    below = below_reshapes(node)
    if assembly(below) is not Assembly.SEGMENT_SUM or below.shape[0] != 1 or not node.shape:
        return None
    index, updates = below.inputs
    if index.shape[2] != 1 or below.shape[1] != node.shape[0] or below.shape[2] != prod(node.shape[1:]):
        return None
    return _SegmentSum(index, updates)


def _same_rows(node: Node) -> bool:
    """Whether a view broadcasts one row."""
    if not is_broadcast(node):
        return False
    below = node.inputs[0]
    return below.ndim < node.ndim or (below.ndim > 0 and below.shape[0] == 1)


def _false_at_zero(condition: Node) -> bool:
    """Whether a condition is known to be false where all segment sums are zeros."""
    found = _at_zero(condition)
    return found is not None and not found


def _at_zero(node: Node) -> Any:
    """The value of ``node`` where all segment sums are zeros, as one element; None if it is not known."""
    below, one = node.inputs[0] if _same_rows(node) else node, (1,) * node.ndim
    if is_constant(below):
        return numpy.full(one, below.attrs[0], below.dtype.numpy)
    if _sum_of(node) is not None:
        return numpy.zeros(one, node.dtype.numpy)
    values: list[Any] = [_at_zero(value) for value in node.inputs] if _by_rows(node) else [None]
    if any(value is None for value in values):
        return None
    return values[0].reshape(one) if is_view(node) else node.op.reference(node.attrs, *values)
