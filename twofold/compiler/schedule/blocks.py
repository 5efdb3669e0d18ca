"""Parallel reductions: a long reduction of few rows in two steps, the first of which threads can share.

Every reduction combines blocks of 4096 elements and then the results of the blocks, so storing these and reducing them
in a second step gives the same bits.
"""

from __future__ import annotations

from functools import cache
from math import prod

from twofold.compiler.lower.loopnest import BLOCK, in_order
from twofold.compiler.lower.reducing import combiner
from twofold.compiler.lower.values import LANES
from twofold.ir.graph import Graph, with_inputs
from twofold.ir.node import Node, make_node
from twofold.ir.op import ReductionOp
from twofold.ir.types import tensor_type

_FEW_ITEMS = 16
_LONG = 1 << 18


class BlockReduction(ReductionOp):
    """The reduction of each block, along a new first axis."""

    def __init__(self, op: ReductionOp) -> None:
        self.name = f"{op.name} of blocks"
        self.combine = op.combine


@cache
def _of_blocks(op: ReductionOp) -> BlockReduction:
    return BlockReduction(op)


def split_reductions(graph: Graph) -> Graph:
    """``graph`` with long reductions of few rows split into one of blocks and one of their results."""
    if not any(_is_long(node) for node in graph.nodes()):
        return graph

    def make(node: Node, inputs: tuple[Node, ...]) -> Node:
        if not isinstance(node.op, ReductionOp) or not _is_long(node):
            return with_inputs(node, inputs)
        (value,) = inputs
        count = -(-_reduced(node) // BLOCK)
        type = tensor_type(value.dtype.compute, (count, *node.shape))
        partial = make_node(_of_blocks(node.op), node.attrs, (value,), type)
        return make_node(node.op, ((0,),), (partial,), node.type)

    return graph.rebuilt(make)


def _reduced(node: Node) -> int:
    shape = node.inputs[0].shape
    return prod([shape[axis] for axis in node.attrs[0]])


def _is_long(node: Node) -> bool:
    if not isinstance(node.op, ReductionOp):
        return False
    size, total = node.inputs[0].type.size, _reduced(node)
    if size < _LONG or total < 4 * BLOCK or not combiner(node) or in_order(node):
        return False
    kept = node.type.size
    # a work item of a kernel over columns has sixteen of them
    along_rows = max(node.attrs[0]) == node.inputs[0].ndim - 1
    return (kept if along_rows else -(-kept // LANES)) < _FEW_ITEMS
