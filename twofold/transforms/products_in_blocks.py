"""Tiling of large batched products together with their producers and consumers, so that they are never stored whole.

Attention scores are larger than their operands, and than what is computed from them. A region is such a product with
all the nodes that it takes for no large value to cross its border; it becomes a loop over blocks of one axis, as in
Rabe and Staats, "Self-attention does not need O(n^2) memory", 2021. Elements along this axis are computed
independently, so bits do not change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from twofold.ir.graph import Graph, rewrite
from twofold.ir.node import Node, make_node
from twofold.ir.op import ContractionOp, ElementwiseOp, ReductionOp, TemplateOp, ViewOp
from twofold.ir.types import tensor_type
from twofold.ops.base import View, ops
from twofold.ops.control_flow import blocks


def products_in_blocks(graph: Graph) -> Graph:
    """``graph`` with loops over blocks in place of batched products that are too large to store."""
    nodes = graph.nodes()
    seeds = [node for node in nodes if _is_product(node) and node.ndim > 2 and _is_large(node)]
    if not seeds:
        return graph
    users: dict[int, list[Node]] = {}
    for node in nodes:
        for value in set(node.inputs):
            users.setdefault(value.id, []).append(node)
    taken: set[int] = set()
    replaced: dict[int, Node] = {}
    for seed in seeds:
        if seed.id in taken:
            continue
        region = _Region(seed, nodes, users, {node.id for node in graph.outputs})
        if region.grow() and taken.isdisjoint(region.axes) and region.is_closed():
            found = region.loop()
            replaced.update(found)
            taken.update(region.axes if found else ())
    while any(
        node.id in replaced for node in graph.nodes()
    ):  # a loop may read a result that another one replaces
        graph = Graph(graph.input_types, rewrite(graph.outputs, lambda node: replaced.get(node.id)))
    return graph


def _is_product(node: Node) -> bool:
    return isinstance(node.op, ContractionOp) and not isinstance(node.op, TemplateOp)


def _is_large(node: Node) -> bool:
    large: bool = node.type.nbytes > blocks.WHOLE
    return large


def _axes_of_inputs(node: Node, axis: int) -> Sequence[int | None] | None:
    """For each input the axis that ``axis`` of the result maps to, None for one that is read whole.

    None altogether if elements of the result along the axis are not independent, or not known to be.
    """
    if isinstance(node.op, ElementwiseOp):
        return [axis] * len(node.inputs)
    if _is_product(node):
        last = node.ndim - 1
        return [None if axis == last else axis, None if axis == last - 1 else axis]
    if isinstance(node.op, ReductionOp):
        kept = [k for k in range(node.inputs[0].ndim) if k not in node.attrs[0]]
        return [kept[axis]]
    if not isinstance(node.op, View) or len(node.inputs) != 1 or node.op.rule_cut is None:
        return None
    before, after = node.inputs[0].shape, node.shape
    mapping = node.op.index_map(node.attrs, before, after)
    if mapping is None:
        size, front = after[axis], math.prod(after[:axis])
        for k, own in enumerate(before):
            if own == size and math.prod(before[:k]) == front:
                return [k]
        return None
    of_axis = [k for k, (own, *_) in enumerate(mapping) if own == axis]
    if not of_axis:
        return [None]
    return of_axis if len(of_axis) == 1 and tuple(mapping[of_axis[0]]) == (axis, 1, 0) else None


class _Region:
    """The nodes that are tiled with a large product.

    Attributes:
        axes: By id of a node, the axis that is tiled.
        members: The nodes, in a topological order.
        results: Those that are read outside.
        rows: What is read from outside a block at a time, by id and axis.
        fixed: What is read from outside whole, by id.
    """

    def __init__(
        self, seed: Node, nodes: Sequence[Node], users: dict[int, list[Node]], outputs: set[int]
    ) -> None:
        self.seed, self.nodes, self.users, self.outputs = seed, nodes, users, outputs
        self.axis = next((k for k, size in enumerate(seed.shape[:-1]) if size != 1), 0)
        self.size = seed.shape[self.axis]
        self.axes: dict[int, int] = {}

    def grow(self) -> bool:
        """Add the producers and consumers of large values; returns whether that is possible."""
        waiting = [(self.seed, self.axis)]
        while True:
            while waiting:
                node, axis = waiting.pop()
                if self.axes.setdefault(node.id, axis) != axis or node.shape[axis] != self.size:
                    return False
                more = self._neighbours(node, axis)
                if more is None:
                    return False
                waiting += [(other, own) for other, own in more if self.axes.get(other.id) != own]
            between = self._between()
            if between is None:
                return False
            if not between:
                return True
            waiting = between

    def _neighbours(self, node: Node, axis: int) -> list[tuple[Node, int]] | None:
        """Large operands of a node, and users of one that is large, with their axes; None if one cannot be tiled."""
        own = _axes_of_inputs(node, axis)
        if own is None:
            return None
        found = []
        for value, cut in zip(node.inputs, own, strict=True):
            made = isinstance(value.op, (ElementwiseOp, ViewOp)) or _is_product(value)
            if cut is not None and made and _is_large(value) and _axes_of_inputs(value, cut) is not None:
                found.append((value, cut))
        if _is_large(node):
            for user in self.users.get(node.id, ()):
                there = self._axis_of_user(user)
                if there is None:
                    return None
                found.append((user, there))
        return found

    def _axis_of_user(self, user: Node) -> int | None:
        """The axis of a user along which tiling agrees with that of its operands in the region."""
        for axis in range(user.ndim):
            if user.shape[axis] == self.size:
                own = _axes_of_inputs(user, axis)
                if own is not None and all(
                    cut == self.axes.get(value.id, cut) for value, cut in zip(user.inputs, own, strict=True)
                ):
                    return axis
        return None

    def _between(self) -> list[tuple[Node, int]] | None:
        """A node outside on a path from the region to the region, with its axis; None if it cannot be tiled."""
        below: set[int] = set()
        above: set[int] = set()
        for node in self.nodes:
            if any(value.id in below or value.id in self.axes for value in node.inputs):
                below.add(node.id)
        found = []
        for node in reversed(self.nodes):
            if node.id in above or node.id in self.axes:
                above.update(value.id for value in node.inputs)
        for node in self.nodes:
            if node.id in above and node.id in below and node.id not in self.axes:
                axis = self._axis_of_user(node)
                if axis is None:
                    return None
                found.append((node, axis))
                break
        return found

    def is_closed(self) -> bool:
        """Whether no large value is read outside, and blocks of results and operands are contiguous."""
        self.members = [node for node in self.nodes if node.id in self.axes]
        self.results = [
            node
            for node in self.members
            if node.id in self.outputs or any(user.id not in self.axes for user in self.users[node.id])
        ]
        self.rows: dict[tuple[int, int], Node] = {}
        self.fixed: dict[int, Node] = {}
        for node in self.members:
            own = _axes_of_inputs(node, self.axes[node.id])
            assert own is not None
            for value, cut in zip(node.inputs, own, strict=True):
                if value.id in self.axes:
                    if cut != self.axes[value.id]:
                        return False
                elif cut is None:
                    self.fixed[value.id] = value
                else:
                    self.rows[value.id, cut] = value
        cuts = [(node, self.axes[node.id]) for node in self.results]
        cuts += [(value, cut) for (_, cut), value in self.rows.items()]
        return not any(map(_is_large, self.results)) and all(
            math.prod(node.shape[:cut]) == 1 for node, cut in cuts
        )

    def loop(self) -> dict[int, Node]:
        """The results of the loop by the ids of what they replace; nothing where one block is enough."""
        most_bytes = max(node.type.nbytes for node in self.members) // self.size
        most = max(1, blocks.BLOCK // most_bytes)
        if self.axis == self.seed.ndim - 2:
            most = max(most, blocks.ROWS)
        if self.size <= most or not self.rows:
            return {}
        rows = [ops.reshape(value, (self.size, *_rest(value, cut))) for (_, cut), value in self.rows.items()]

        def body(_: Any, __: Any, rows: Sequence[Any], fixed: Sequence[Any]) -> Any:
            size = rows[0].shape[0]
            sliced = {
                key: ops.reshape(block, _resized(value, key[1], size))
                for (key, value), block in zip(self.rows.items(), rows, strict=True)
            }
            whole = dict(zip(self.fixed, fixed, strict=True))
            tiles: dict[int, Node] = {}
            for node in self.members:
                tiles[node.id] = self._tile(node, size, tiles, sliced, whole)
            results = [
                ops.reshape(tiles[node.id], (size, *_rest(node, self.axes[node.id]))) for node in self.results
            ]
            return (), results

        found = blocks.in_blocks(body, (), rows, list(self.fixed.values()), most)[1]
        return {
            node.id: ops.reshape(value, node.shape) for node, value in zip(self.results, found, strict=True)
        }

    def _tile(
        self,
        node: Node,
        size: int,
        tiles: dict[int, Node],
        rows: dict[tuple[int, int], Node],
        fixed: dict[int, Node],
    ) -> Node:
        """One block of a node.

        Args:
            node: A node of the region.
            size: The length of the block along the axis of the node.
            tiles: The blocks of nodes of the region, by id.
            rows: The blocks of what is read from outside in blocks.
            fixed: What is read from outside whole.
        """
        axis = self.axes[node.id]
        own = _axes_of_inputs(node, axis)
        assert own is not None
        inputs = [
            tiles[value.id] if value.id in tiles else fixed[value.id] if cut is None else rows[value.id, cut]
            for value, cut in zip(node.inputs, own, strict=True)
        ]
        op = node.op
        cut = op.rule_cut if isinstance(op, View) else None
        attrs = node.attrs if cut is None else cut(axis, size, *node.attrs)
        type = tensor_type(node.dtype, _resized(node, axis, size), node.type.weak)
        return make_node(op, attrs, tuple(inputs), type)


def _resized(node: Node, axis: int, size: int) -> tuple[int, ...]:
    """The shape of ``node`` with another size of one axis."""
    return (*node.shape[:axis], size, *node.shape[axis + 1 :])


def _rest(node: Node, axis: int) -> tuple[int, ...]:
    """The shape of ``node`` behind an axis."""
    return tuple(node.shape[axis + 1 :])
