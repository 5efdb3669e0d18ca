"""What the core is told of gradients, so that a backward pass makes one product of those of several calls."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from twofold.ir.graph import Graph
from twofold.ir.node import Node
from twofold.ops.base import ops
from twofold.ops.row_products import Factors, is_column, is_one, transposes


class Kind(IntEnum):
    """How gradients may be combined, as the core numbers it."""

    PLAIN = 0
    PRODUCT = 1
    TRANSPOSE = 2


Form = tuple[int, int, int]
"""The kind of a gradient; of a product, the slots of its factors, which are rows of them."""

PLAIN: Form = (Kind.PLAIN, 0, 0)


def form_of(graph: Graph, slots: Sequence[int]) -> Form:
    """The form of the gradient that ``graph`` computes from the values that ``slots`` name."""
    (output,) = graph.outputs
    if transposes(output) and output.inputs[0].op.name == "input" and tuple(slots) == (-1,):
        return (Kind.TRANSPOSE, 0, 0)
    found = factors_of(output)
    if found is None:
        return PLAIN
    left, right = (_shown_rows(side) for side in found)
    return PLAIN if left is None or right is None else (Kind.PRODUCT, slots[left], slots[right])


def factors_of(node: Node) -> Factors | None:
    """The factors of a node that is a product over rows, perhaps transposed; None for others."""
    if transposes(node):
        below = factors_of(node.inputs[0])
        return None if below is None else below.swapped()
    if node.op.name != "matmul" or node.ndim != 2:
        return None
    first, right = node.inputs
    if transposes(first):
        return Factors(first.inputs[0], right)
    if is_column(first):
        return Factors(ops.reshape(first.inputs[0], (1, first.shape[0])), right)
    return None


def _shown_rows(node: Node) -> int | None:
    """The number of the input whose rows, along its last axis, a matrix consists of."""
    below = node
    while below.op.name in ("reshape", "permute"):
        below = below.inputs[0]
    if below.op.name != "input":
        return None
    number: int = below.attrs[0]
    if below is node or (below.ndim == 1 and is_one(node.shape[0])):
        return number
    if node.op.name == "reshape" and node.inputs[0] is below and below.ndim > 1:
        last, own = below.shape[-1], node.shape[-1]
        equal = own is last or (isinstance(own, int) and isinstance(last, int) and own == last)
        return number if equal else None
    return None
