"""What the core is told of gradients, so that a backward pass makes one product of those of several calls."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from twofold.ir.graph import Graph
from twofold.ir.node import Node
from twofold.ir.views import below_reshapes
from twofold.ops.base import ops
from twofold.ops.indexing.row_products import Factors, is_column, is_one, same_size, transposes


class Kind(IntEnum):
    """How gradients may be combined, as the core numbers it."""

    PLAIN = 0
    PRODUCT = 1
    TRANSPOSE = 2
    TABLE = 3


Form = tuple[int, int, int]
"""The kind of a gradient; of a product the slots of its factors, of a table those of the numbers and of the rows."""

PLAIN: Form = (Kind.PLAIN, 0, 0)


def form_of(graph: Graph, slots: Sequence[int]) -> Form:
    """The form of the gradient that ``graph`` computes from the values that ``slots`` name."""
    (output,) = graph.outputs
    if transposes(output) and output.inputs[0].op.name == "input" and tuple(slots) == (-1,):
        return (Kind.TRANSPOSE, 0, 0)
    found = factors_of(output)
    if found is None:
        return _table_form(output, slots)
    left, right = (_shown_rows(side) for side in found[:2])
    return PLAIN if left is None or right is None else (Kind.PRODUCT, slots[left], slots[right])


def factors_of(node: Node) -> Factors | None:
    """The factors of a node that is a product over rows, perhaps transposed; None for others."""
    if transposes(node):
        below = factors_of(node.inputs[0])
        return None if below is None else Factors(below.right, below.left)
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
        return number if same_size(below.shape[-1], node.shape[-1]) else None
    return None


def _table_form(output: Node, slots: Sequence[int]) -> Form:
    """The form of rows added to zeros at numbers along the first axis."""
    node = below_reshapes(output)
    if node.op.name == "scatter_sum" and is_one(node.shape[0]) and is_one(node.inputs[0].shape[2]):
        index, rows = node.inputs
        fits = output.ndim > 0 and same_size(node.shape[1], output.shape[0])
    elif node.op.name == "pad_block" and node is output and len(node.inputs) == 3 and _is_one_row(node):
        rows, _, index = node.inputs
        fits = _is_zero(node.inputs[1])
    else:
        return PLAIN
    number, updates = _input_below(index), _input_below(rows)
    if (
        not fits
        or number is None
        or updates is None
        or updates.dtype.kind not in "f"
        or number.dtype.kind not in "iu"
    ):
        return PLAIN
    own, wide = output.shape[1:], updates.shape
    if len(wide) < len(own) or not all(map(same_size, wide[len(wide) - len(own) :], own)):
        return PLAIN
    return (Kind.TABLE, slots[number.attrs[0]], slots[updates.attrs[0]])


def _is_one_row(node: Node) -> bool:
    _, steps, axes = node.attrs
    return axes == (0,) and all(step == 1 for step in steps) and bool(node.inputs[0].shape[0] == 1)


def _is_zero(node: Node) -> bool:
    return node.op.name == "constant" and not node.attrs[0]


def _input_below(node: Node) -> Node | None:
    """The input that a node shows in another shape or dtype, or as numbers of rows."""
    while node.op.name in ("reshape", "cast", "row_number"):
        node = node.inputs[0]
    return node if node.op.name == "input" else None
