"""The form of a gradient, by which a backward pass sums the gradients of several calls in one operation.

The gradient of a shared weight is a product over the rows of each call: the sum over calls is one product over the
rows of all. Likewise lookups make one scatter-add and biases one sum of rows. The core is told which form a gradient
has, and which of its operands are concatenated, see ``csrc/gradient_sums.cc``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from twofold.ir.bind import is_input, is_positive_zero
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


class GradientKind(IntEnum):
    """How gradients of several calls are summed; the numbers are the core's."""

    PLAIN = 0
    """Added one after another."""
    PRODUCT = 1
    """``left.T @ right`` of two operands: one product over the concatenated rows."""
    TRANSPOSE = 2
    """The transpose of the cotangent."""
    TABLE = 3
    """Rows added to zeros at an index along the first axis: one scatter-add."""
    ROWS = 4
    """A sum of rows: one ordered sum."""
    CHAIN = 5
    """A product that is computed by the gradient itself, and may accumulate into an initial value."""
    IDENTITY = 6
    """The cotangent itself, of another rank than that of a row; added as a plain one."""
    BLOCK = 7
    """The cotangent as a block inside zeros; added as a plain one."""


Form = tuple[int, int, int]
"""The kind of a gradient and two numbers: of a product the slots of its factors, of a table the slots of the index and
of the rows, of a sum of rows the number of axes of a row and the slot of the rows or ``COMPUTED``."""

WrittenForm = tuple[int, int, int, bool]
"""A form, and whether ``.grad`` of a leaf that has such gradients only is shown by its rows."""

COMPUTED = -3
"""In place of a slot: the rows are computed by the gradient itself."""

PLAIN: Form = (GradientKind.PLAIN, 0, 0)


def form_of(graph: Graph, slots: Sequence[int], alone: bool) -> Form:
    """Classify a gradient.

    Args:
        graph: The graph that computes it.
        slots: What each input of the graph is, see ``derived.Pullback``.
        alone: Whether it reads no value that is shared with other gradients of the call.
    """
    (output,) = graph.outputs
    if not slots:  # a constant, of which the core keeps no operands
        return PLAIN
    if transposes(output) and is_input(output.inputs[0]) and tuple(slots) == (-1,):
        return (GradientKind.TRANSPOSE, 0, 0)
    if is_input(output) and tuple(slots) == (-1,):
        is_row = output.ndim == 1 and output.dtype.kind == "f"
        return (GradientKind.ROWS, 1, -1) if is_row else (GradientKind.IDENTITY, 0, 0)
    if (total := summed_rows(output)) is not None:
        return (GradientKind.ROWS, total.ndim, _slot_of_rows(total, slots))
    if alone and _is_block(output) and not _is_one_row(output):
        return (GradientKind.BLOCK, 0, 0)
    chain = (GradientKind.CHAIN, 0, 0) if _accumulation(output) is not None else PLAIN
    factors = factors_of(output)
    if not alone or factors is None:
        return chain if not alone or chain is not PLAIN else _table_form(output, slots)
    assert factors.left is not None
    left, right = (_input_of_rows(side) for side in (factors.left, factors.right))
    return chain if left is None or right is None else (GradientKind.PRODUCT, slots[left], slots[right])


def _slot_of_rows(total: Node, slots: Sequence[int]) -> int:
    """The slot of the operand of an ordered sum of rows; ``COMPUTED`` if it is not an input."""
    rows = below_reshapes(total.inputs[0])
    row = rows.shape[max(rows.ndim - total.ndim, 0) :]
    fits = is_input(rows) and len(row) == total.ndim and all(map(same_size, row, total.shape))
    return slots[rows.attrs[0]] if fits else COMPUTED


def rows_of(graph: Graph) -> Graph:
    """The graph of the rows that a gradient of the form ``ROWS`` sums."""
    total = summed_rows(graph.outputs[0])
    assert total is not None
    return Graph(graph.input_types, total.inputs)


def with_initial_value(graph: Graph, initial: Node) -> Graph:
    """A gradient of the form ``CHAIN`` as one that accumulates into ``initial``, the node of a further input."""
    (output,) = graph.outputs
    root = _accumulation(output)
    assert root is not None
    return Graph([*graph.input_types, initial.type], [_accumulated(output, root, initial)])


def _accumulation(node: Node) -> Node | None:
    """The product over rows, or sum over windows of images, of which a node is a view; None for others."""
    node = below(node, lambda view: view_form(view) is ViewForm.RESHAPE or transposes(view))
    sums = node.dtype.kind == "f" and isinstance(node.op, AccumulatingOp) and node.op.accumulates(node)
    return node if sums else None


def _accumulated(node: Node, root: Node, initial: Node) -> Node:
    """``node``, a view of ``root``, where the root accumulates into the ``initial`` value of the node."""
    if node is not root:
        (value,) = node.inputs
        inverse = ops.permute(initial, (1, 0)) if transposes(node) else ops.reshape(initial, value.shape)
        return make_node(node.op, node.attrs, (_accumulated(value, root, inverse),), node.type)
    assert isinstance(root.op, AccumulatingOp)
    return root.op.accumulated(root, initial)


def _input_of_rows(node: Node) -> int | None:
    """The number of the input whose rows, along its last axis, are those of a matrix; None if there is none."""
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
    """The form of a scatter-add of rows into zeros along the first axis; ``PLAIN`` for others."""
    node = below_reshapes(output)
    if assembly(node) is Assembly.SEGMENT_SUM and is_one(node.shape[0]) and is_one(node.inputs[0].shape[2]):
        index, rows = node.inputs
        fits = output.ndim > 0 and same_size(node.shape[1], output.shape[0])
    elif assembly(node) is Assembly.PAD and node is output and len(node.inputs) == 3 and _is_one_row(node):
        rows, _, index = node.inputs
        fits = is_positive_zero(node.inputs[1])
    else:
        return PLAIN
    indices, updates = input_below(index), input_below(rows)
    if (
        not fits
        or indices is None
        or updates is None
        or updates.dtype.kind not in "f"
        or indices.dtype.kind not in "iu"
    ):
        return PLAIN
    row, shape = output.shape[1:], updates.shape
    if len(shape) < len(row) or not all(map(same_size, shape[len(shape) - len(row) :], row)):
        return PLAIN
    return (GradientKind.TABLE, slots[indices.attrs[0]], slots[updates.attrs[0]])


def _is_block(node: Node) -> bool:
    return assembly(node) is Assembly.PAD and is_input(node.inputs[0]) and is_positive_zero(node.inputs[1])


def _is_one_row(node: Node) -> bool:
    _, steps, axes = node.attrs
    return axes == (0,) and all(step == 1 for step in steps) and bool(node.inputs[0].shape[0] == 1)
