"""Sums of rows at an index, the gradients of lookups, stay a few rows until something needs the whole table.

``table + f(sum of rows)`` is the table with a few rows changed, and everywhere else shifted by ``f(0)``, whose row
does not depend on the position; for a step of gradient descent the shift is ``-0.0``, which changes no number. So no
table of gradients is made, and where the new table may take over the memory of the old one only a few rows are
read and written. ``where(g(sum of rows), f(sum of rows, tables), table)`` is the same if ``g(0)`` is false.
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

_LEAST_ELEMENTS = 1 << 14  # of a table: one kernel over a smaller one costs less than several over its rows
_MOST_SHARE = 4  # rows that change, as a fraction of all
_COMPUTED = (ElementwiseOp, ViewOp, ReductionOp, SourceOp)  # perhaps on the way, with no memory of its own


def keep_rows(graph: Graph) -> Graph:
    """``graph`` with updates of large tables by sums of few rows as changes of these rows; it removes sums only."""
    if not any(assembly(node) is Assembly.SEGMENT_SUM for node in graph.nodes()):
        return graph
    found = _Found()
    return rewrite_once(rewrite_once(graph, _joined), found.changed)


def _joined(node: Node) -> Node | None:
    """Rows added to a sum of rows as one sum."""
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
    """Whether ``node`` is a large table with a few sums of rows, and ``nbytes`` are a fraction of it."""
    if _sum_of(node) is None:  # first: a plan for all sizes is bound by every comparison of sizes
        return False
    return node.type.size >= _LEAST_ELEMENTS and nbytes * _MOST_SHARE <= node.type.nbytes


class _Sum(NamedTuple):
    """Rows added up into a table of zeros: ``updates [1, size, width]`` at ``positions [1, size, 1]``."""

    positions: Node
    updates: Node

    @property
    def size(self) -> int:
        return self.positions.shape[1]


class _Found:
    """What is known of nodes: the sums of rows that their rows are made of."""

    def __init__(self) -> None:
        self._sums: dict[int, frozenset[Node] | None] = {}

    def changed(self, node: Node) -> Node | None:
        """An update of a table as a change of its rows."""
        if not node.shape or not isinstance(node.op, ElementwiseOp) or node.dtype.kind == "b":
            return None
        if node.op.shifts:
            return self._shifted(node, node.op.shifts)
        return self._chosen(node) if node.op.selects else None

    def _shifted(self, node: Node, shifts: Sequence[str]) -> Node | None:
        left, right = node.inputs
        for (table, moved), how in zip([(left, right), (right, left)], shifts):
            sums = self.sums(moved)
            if sums and not self.sums(table) and _in_memory(table) and _few(sums, node):
                rows = _Rows(sums, node.shape[0])
                shift = ops.reshape(rows.nowhere(moved), node.shape[1:])
                return self._put(node, table, rows, how, shift)
        return None

    def _chosen(self, node: Node) -> Node | None:
        condition, _, old = node.inputs
        sums = self.sums(condition)
        if not sums or self.sums(old) or not _in_memory(old) or not _few(sums, node):
            return None
        rows = _Rows(sums, node.shape[0])
        return self._put(node, old, rows, "data") if _false_at_zero(condition) else None

    def _put(self, node: Node, table: Node, rows: _Rows, how: str, *shift: Node) -> Node:
        return apply("changed_rows", table, rows.index, rows.of(node), *shift, attrs=(how,))

    def sums(self, node: Node) -> frozenset[Node] | None:
        """The sums that every row of ``node`` is made of, besides values equal for all rows; None for a table."""
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
        parts = [self.sums(value) for value in node.inputs]
        return frozenset().union(*(part for part in parts if part)) if None not in parts else None


class _Rows:
    """Nodes over the rows of a table as nodes over the few rows that sums reach."""

    def __init__(self, sums: frozenset[Node], size: int) -> None:
        ordered = sorted(sums, key=lambda node: node.id)
        self._parts = {node.id: found for node in ordered if (found := _sum_of(node)) is not None}
        flat = [ops.reshape(part.positions, (part.size,)) for part in self._parts.values()]
        positions = flat[0] if len(flat) == 1 else ops.cat(flat)
        self.count = positions.shape[0]
        self.index = apply("linear_index", positions, attrs=((size,),))
        self._first = apply("first_positions", self.index, attrs=(size,))
        self._done: dict[int, Node] = {}

    def of(self, node: Node) -> Node:
        """The rows of ``node``."""
        if node.id not in self._done:
            self._done[node.id] = self._made(node)
        return self._done[node.id]

    def _made(self, node: Node) -> Node:
        shape = (self.count, *node.shape[1:])
        if _same_rows(node):
            return broadcast(node.inputs[0], shape)
        if node.id in self._parts:
            return ops.reshape(self._sum(node), shape)
        if _by_rows(node):
            inputs = tuple(self.of(value) for value in node.inputs)
            return _remade(node, inputs, shape)
        if assembly(node) is Assembly.UPDATE_ROWS and node.inputs[1] is self.index:
            return node.inputs[2]
        return apply("index_select", node, self.index, attrs=(0,))

    def _sum(self, node: Node) -> Node:
        """What is added up at each position: first in a table of as many rows as there are indices."""
        start = 0
        for number, part in self._parts.items():
            if number == node.id:
                break
            start += part.size
        whole = part.size == self.count
        first = self._first if whole else slice_axis(self._first, 0, constant(start), part.size)
        index = ops.reshape(first, (1, part.size, 1))
        compact = apply("scatter_sum", index, part.updates, attrs=(self.count,))
        return apply("gather_block", compact, ops.reshape(self._first, (1, self.count, 1)))

    def nowhere(self, node: Node) -> Node:
        """The one row of ``node`` that no index reaches: its sums are zeros there."""
        shape = (1, *node.shape[1:])
        if _same_rows(node):
            return broadcast(node.inputs[0], shape)
        if node.id in self._parts:
            return filled(0, node.dtype, shape)
        return _remade(node, tuple(self.nowhere(value) for value in node.inputs), shape)


def _in_memory(table: Node) -> bool:
    """Whether a table is there as it is; one that is computed on the way is one kernel with what changes it."""
    table = below_reshapes(table)
    return is_input(table) or not isinstance(table.op, _COMPUTED)


def _by_rows(node: Node) -> bool:
    """Whether a row of ``node`` is made of the same row of each input."""
    if isinstance(node.op, ElementwiseOp):
        return True
    if isinstance(node.op, ReductionOp):
        return 0 not in node.attrs[0]
    kept = bool(node.shape) and node.inputs[:1] and node.inputs[0].shape[:1] == node.shape[:1]
    if is_broadcast(node):
        return bool(kept) and node.inputs[0].ndim == node.ndim
    return bool(kept) and is_reshape(node)


def _remade(node: Node, inputs: tuple[Node, ...], shape: Shape) -> Node:
    attrs = (shape,) if is_view(node) else node.attrs
    return make_node(node.op, attrs, inputs, tensor_type(node.dtype, shape))


def _few(sums: frozenset[Node], node: Node) -> bool:
    """Whether so few rows of a large table change. It decides on sizes, so it is asked last."""
    counts = [part.size for found in sums if (part := _sum_of(found)) is not None]
    return node.type.size >= _LEAST_ELEMENTS and 0 < sum(counts) * _MOST_SHARE <= node.shape[0]


def _sum_of(node: Node) -> _Sum | None:
    """The sum of rows that ``node`` is, if its first axis numbers the rows."""
    below = below_reshapes(node)
    if assembly(below) is not Assembly.SEGMENT_SUM or below.shape[0] != 1 or not node.shape:
        return None
    index, updates = below.inputs
    if index.shape[2] != 1 or below.shape[1] != node.shape[0] or below.shape[2] != prod(node.shape[1:]):
        return None
    return _Sum(index, updates)


def _same_rows(node: Node) -> bool:
    """Whether a view repeats one row."""
    if not is_broadcast(node):
        return False
    below = node.inputs[0]
    return below.ndim < node.ndim or (below.ndim > 0 and below.shape[0] == 1)


def _false_at_zero(condition: Node) -> bool:
    """Whether a condition is known to be false where all sums are zeros."""
    found = _at_zero(condition)
    return found is not None and not found


def _at_zero(node: Node) -> Any:
    """One element of ``node`` with as many axes where all sums are zeros; None if that is not known."""
    below, one = node.inputs[0] if _same_rows(node) else node, (1,) * node.ndim
    if is_constant(below):
        return numpy.full(one, below.attrs[0], below.dtype.numpy)
    if _sum_of(node) is not None:
        return numpy.zeros(one, node.dtype.numpy)
    values: list[Any] = [_at_zero(value) for value in node.inputs] if _by_rows(node) else [None]
    if any(value is None for value in values):
        return None
    return values[0].reshape(one) if is_view(node) else node.op.reference(node.attrs, *values)
