"""Predicates on views and data movement, which ask what a node does and never its name; traversal through views."""

from __future__ import annotations

from collections.abc import Callable

from twofold.ir.bind import is_input
from twofold.ir.node import Node
from twofold.ir.op import Assembly, ContractionOp, CustomOp, ElementwiseOp, ViewForm, ViewOp


def view_form(node: Node) -> ViewForm | None:
    """The form of a view that its entry declares; None for other nodes."""
    return node.op.form if isinstance(node.op, ViewOp) else None


def assembly(node: Node) -> Assembly | None:
    """How a node assembles its result, as its entry declares; None for other nodes."""
    return node.op.assembly if isinstance(node.op, CustomOp) else None


def is_reshape(node: Node) -> bool:
    """Whether a node is a view of all elements in row-major order in another shape."""
    if not isinstance(node.op, ViewOp) or len(node.inputs) != 1:
        return False
    return node.op.index_map(node.attrs, node.inputs[0].shape, node.shape) is None


def is_identity(node: Node) -> bool:
    """Whether a node is an identity view of its first input."""
    if not isinstance(node.op, ViewOp) or node.inputs[0].type is not node.type:
        return False
    mapping = node.op.index_map(node.attrs, node.inputs[0].shape, node.shape)
    return mapping is None or all(tuple(found) == (axis, 1, 0) for axis, found in enumerate(mapping))


def is_broadcast(node: Node) -> bool:
    """Whether a node is a broadcast of its input."""
    if not isinstance(node.op, ViewOp) or len(node.inputs) != 1:
        return False
    mapping = node.op.index_map(node.attrs, node.inputs[0].shape, node.shape)
    if mapping is None:
        return False
    extra = node.ndim - node.inputs[0].ndim
    return all(tuple(found) in ((axis + extra, 1, 0), (None, 0, 0)) for axis, found in enumerate(mapping))


def is_matrix_transpose(node: Node) -> bool:
    """Whether a node is a view that transposes the last two axes and nothing else."""
    if not isinstance(node.op, ViewOp) or len(node.inputs) != 1 or node.ndim < 2:
        return False
    mapping = node.op.index_map(node.attrs, node.inputs[0].shape, node.shape)
    if mapping is None:
        return False
    last = node.ndim - 1
    axes = [*range(last - 1), last, last - 1]
    return [tuple(found) for found in mapping] == [(axis, 1, 0) for axis in axes]


def is_view(node: Node) -> bool:
    """Whether a node is a view of its first input."""
    return isinstance(node.op, ViewOp)


def is_cast(node: Node) -> bool:
    """Whether a node is a cast."""
    return isinstance(node.op, ElementwiseOp) and node.op.converts


def is_addition(node: Node) -> bool:
    """Whether a node is a sum of two operands."""
    return isinstance(node.op, ElementwiseOp) and node.op.is_addition


def below(node: Node, through: Callable[[Node], bool]) -> Node:
    """The first of ``node``, its first input, the first input of that, and so on that does not satisfy ``through``."""
    while through(node):
        node = node.inputs[0]
    return node


def below_reshapes(node: Node) -> Node:
    """The value of which ``node`` is a reshape, perhaps through several reshapes.

    >>> from twofold.dtypes import float32
    >>> from twofold.ir.bind import input_node
    >>> from twofold.ir.types import tensor_type
    >>> from twofold.ops.base import ops
    >>> x = input_node(0, tensor_type(float32, (2, 3)))
    >>> below_reshapes(ops.reshape(ops.reshape(x, (6,)), (3, 2))) is x
    True
    """
    return below(node, lambda view: is_reshape(view) or is_identity(view))


def transposes_kernel(node: Node) -> bool:
    """Whether a node permutes the axes of what a kernel computes over images, which lies in the kernel's order."""
    if view_form(node) is not ViewForm.PERMUTE:
        return False
    op = below_reshapes(node.inputs[0]).op
    if isinstance(op, ContractionOp):
        return op.matrix_axes != ContractionOp.matrix_axes  # no product of matrices
    return isinstance(op, CustomOp) and op.assembly is None and not op.copies


def below_views(node: Node) -> Node:
    """The value of which ``node`` is a view, perhaps through several views."""
    return below(node, is_view)


def input_below(node: Node) -> Node | None:
    """The input of which ``node`` is a reshape, cast or check; None for other nodes."""
    found = below(node, _forwards_input)
    return found if is_input(found) else None


def _forwards_input(node: Node) -> bool:
    checked = isinstance(node.op, CustomOp) and node.op.returns_input
    return checked or is_cast(node) or view_form(node) is ViewForm.RESHAPE
