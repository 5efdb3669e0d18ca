"""Sums of padded blocks in one kernel: the gradient of a tensor that is read in slices, such as the gates of a cell."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from twofold.dtypes import int64
from twofold.ir.bind import constant, is_positive_zero
from twofold.ir.graph import Graph, rewrite
from twofold.ir.node import Node, make_node
from twofold.ir.op import REGISTRY, Assembly
from twofold.ir.types import TensorType
from twofold.ir.views import assembly

_ADD = REGISTRY["add"]
_SUM = REGISTRY["sum_of_blocks"]
_MOST = 16  # terms of one sum, so that the code of its kernel stays small


class _Block(NamedTuple):
    """A term: a block that begins at ``start`` of an axis, None if it is whole, and is 0 beside it."""

    value: Node
    start: Node | None
    axis: int | None


def sum_added_blocks(graph: Graph) -> Graph:
    """``graph`` where sums of padded blocks are one operation, whose bits are those of the additions in their order."""
    nodes = graph.nodes()
    if not any(assembly(node) is Assembly.PAD for node in nodes):
        return graph
    readers = Counter(value.id for node in nodes for value in node.inputs)
    readers.update(output.id for output in graph.outputs)
    sums: dict[int, list[_Block]] = {}  # by id of an addition that no other continues
    for node in nodes:
        if node.op is not _ADD or node.dtype.kind != "f" or any(v.type is not node.type for v in node.inputs):
            continue
        first, second = node.inputs
        if readers[first.id] > 1 or first.id not in sums:
            first, second = second, first  # an addition commutes
        goes_on = readers[first.id] == 1 and first.id in sums
        before = sums[first.id] if goes_on else [_block(first, readers)]
        terms = [*before, _block(second, readers)]
        if goes_on and not _fit(terms):
            goes_on, terms = False, [_Block(first, None, None), terms[-1]]
        if _fit(terms):
            if goes_on:
                del sums[first.id]
            sums[node.id] = terms
    types = {node.id: node.type for node in nodes}
    replaced = {
        number: _sum(terms, types[number])
        for number, terms in sums.items()
        if sum(term.start is not None for term in terms) > 1
    }
    while any(node.id in replaced for node in graph.nodes()):  # one sum may read another
        graph = Graph(graph.input_types, rewrite(graph.outputs, lambda node: replaced.get(node.id)))
    return graph


def _block(node: Node, readers: Counter[int]) -> _Block:
    """A node as a term: what it pads with zeros if nothing else reads it, else itself."""
    if assembly(node) is Assembly.PAD and readers[node.id] == 1 and len(node.inputs) == 3:
        _, steps, (axis,) = node.attrs
        value, fill, start = node.inputs
        if is_positive_zero(fill) and all(step == 1 for step in steps):
            return _Block(value, start, axis)
    return _Block(node, None, None)


def _fit(terms: list[_Block]) -> bool:
    """Whether one operation adds all terms: blocks along one axis, and at most one whole value."""
    whole = sum(term.start is None for term in terms)
    return len(terms) <= _MOST and whole < 2 and len({term.axis for term in terms} - {None}) == 1


def _sum(terms: list[_Block], type: TensorType) -> Node:
    (axis,) = {term.axis for term in terms} - {None}
    assert axis is not None
    starts = [constant(0, int64) if term.start is None else term.start for term in terms]
    attrs = (type.shape[axis], axis, len(terms))
    return make_node(_SUM, attrs, (*[term.value for term in terms], *starts), type)
