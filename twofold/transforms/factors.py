"""What the core is told of gradients, so that a backward pass makes one product of those of several calls."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from twofold.ir.bind import is_constant, is_input
from twofold.ir.graph import Graph
from twofold.ir.node import Node, make_node
from twofold.ir.op import AccumulatingOp, Assembly, ViewForm
from twofold.ir.views import assembly, below, below_reshapes, input_below, view_form
from twofold.ops.base import ops
from twofold.ops.indexing.row_products import (
    factors_of,
    is_one,
    same_size,
    summed_rows,
    transposes,
)


class Kind(IntEnum):
    """How gradients may be combined, as the core numbers it."""

    PLAIN = 0
    PRODUCT = 1
    TRANSPOSE = 2
    TABLE = 3
    ROWS = 4
    CHAIN = 5


Form = tuple[int, int, int]
"""The kind of a gradient; of a product the slots of its factors, of a table those of the numbers and of the rows; of a
sum of rows how many axes a row has, and the slot of the rows or ``COMPUTED``. A chain is a product that the gradient
computes by itself, but which may begin with a sum."""

COMPUTED = -3
"""In place of a slot: the rows are computed by the gradient itself."""

PLAIN: Form = (Kind.PLAIN, 0, 0)


def form_of(graph: Graph, slots: Sequence[int], alone: bool) -> Form:
    """The form of the gradient that ``graph`` computes from the values that ``slots`` name.

    Not ``alone`` it reads what other gradients of the call read, too.
    """
    (output,) = graph.outputs
    if not slots:  # a constant, of which the core keeps no operands
        return PLAIN
    if transposes(output) and is_input(output.inputs[0]) and tuple(slots) == (-1,):
        return (Kind.TRANSPOSE, 0, 0)
    if is_input(output) and tuple(slots) == (-1,) and output.ndim == 1 and output.dtype.kind == "f":
        return (Kind.ROWS, 1, -1)
    if (total := summed_rows(output)) is not None:
        return (Kind.ROWS, total.ndim, _slot_of_rows(total, slots))
    chain = (Kind.CHAIN, 0, 0) if _last_product(output) is not None else PLAIN
    found = factors_of(output)
    if not alone or found is None:
        return chain if not alone or chain is not PLAIN else _table_form(output, slots)
    assert found.left is not None
    left, right = (_shown_rows(side) for side in (found.left, found.right))
    return chain if left is None or right is None else (Kind.PRODUCT, slots[left], slots[right])


def _slot_of_rows(total: Node, slots: Sequence[int]) -> int:
    """The slot of the value that holds the rows of an ordered sum as they are."""
    rows = below_reshapes(total.inputs[0])
    own = rows.shape[max(rows.ndim - total.ndim, 0) :]
    shown = is_input(rows) and len(own) == total.ndim and all(map(same_size, own, total.shape))
    return slots[rows.attrs[0]] if shown else COMPUTED


def rows_of(graph: Graph) -> Graph:
    """The graph of the rows that the gradient ``graph`` sums, of the form ``ROWS``."""
    total = summed_rows(graph.outputs[0])
    assert total is not None
    return Graph(graph.input_types, total.inputs)


def begun_at(graph: Graph, start: Node) -> Graph:
    """The gradient ``graph`` of the form ``CHAIN``, whose sum begins with ``start``."""
    (output,) = graph.outputs
    root = _last_product(output)
    assert root is not None
    return Graph([*graph.input_types, start.type], [_begun(output, root, start)])


def _last_product(node: Node) -> Node | None:
    """The product over rows, or the sum over the windows of images, that a node shows, perhaps transposed."""
    node = below(node, lambda view: view_form(view) is ViewForm.RESHAPE or transposes(view))
    sums = node.dtype.kind == "f" and isinstance(node.op, AccumulatingOp) and node.op.accumulates(node)
    return node if sums else None


def _begun(node: Node, root: Node, start: Node) -> Node:
    """A node that shows ``root``, with ``start`` as what the sums of the root begin with."""
    if node is not root:
        (value,) = node.inputs
        shown = ops.permute(start, (1, 0)) if transposes(node) else ops.reshape(start, value.shape)
        made = _begun(value, root, shown)
        return make_node(node.op, node.attrs, (made,), node.type)
    assert isinstance(root.op, AccumulatingOp)
    return root.op.accumulated(root, start)


def _shown_rows(node: Node) -> int | None:
    """The number of the input whose rows, along its last axis, a matrix consists of."""
    value = below(node, lambda view: view_form(view) in (ViewForm.RESHAPE, ViewForm.PERMUTE))
    if not is_input(value):
        return None
    number: int = value.attrs[0]
    if value is node or (value.ndim == 1 and is_one(node.shape[0])):
        return number
    if view_form(node) is ViewForm.RESHAPE and node.inputs[0] is value and value.ndim > 1:
        return number if same_size(value.shape[-1], node.shape[-1]) else None
    return None


def _table_form(output: Node, slots: Sequence[int]) -> Form:
    """The form of rows added to zeros at numbers along the first axis."""
    node = below_reshapes(output)
    if assembly(node) is Assembly.SEGMENT_SUM and is_one(node.shape[0]) and is_one(node.inputs[0].shape[2]):
        index, rows = node.inputs
        fits = output.ndim > 0 and same_size(node.shape[1], output.shape[0])
    elif assembly(node) is Assembly.PAD and node is output and len(node.inputs) == 3 and _is_one_row(node):
        rows, _, index = node.inputs
        fits = _is_zero(node.inputs[1])
    else:
        return PLAIN
    number, updates = input_below(index), input_below(rows)
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
    return is_constant(node) and not node.attrs[0]
