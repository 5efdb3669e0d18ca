"""Nodes that show or arrange elements of their inputs, by what they do, whatever their names."""

from __future__ import annotations

from collections.abc import Callable

from twofold.ir.bind import is_input
from twofold.ir.node import Node
from twofold.ir.op import Assembly, CustomOp, ElementwiseOp, ViewForm, ViewOp


def view_form(node: Node) -> ViewForm | None:
    """What a node shows of its first input, as its entry says; None for others than these views."""
    return node.op.form if isinstance(node.op, ViewOp) else None


def assembly(node: Node) -> Assembly | None:
    """How a node copies or adds its inputs into its result, as its entry says; None for others."""
    return node.op.assembly if isinstance(node.op, CustomOp) else None


def is_reshape(node: Node) -> bool:
    """Whether a node is a view that keeps all elements in their row-major order, in a shape of its own."""
    if not isinstance(node.op, ViewOp) or len(node.inputs) != 1:
        return False
    return node.op.index_map(node.attrs, node.inputs[0].shape, node.shape) is None


def is_identity(node: Node) -> bool:
    """Whether a node is a view of all elements of its first input at their indices."""
    if not isinstance(node.op, ViewOp) or node.inputs[0].type is not node.type:
        return False
    mapping = node.op.index_map(node.attrs, node.inputs[0].shape, node.shape)
    return mapping is None or all(tuple(found) == (axis, 1, 0) for axis, found in enumerate(mapping))


def is_broadcast(node: Node) -> bool:
    """Whether a node is a view that repeats its input along new axes in front and axes of size 1."""
    if not isinstance(node.op, ViewOp) or len(node.inputs) != 1:
        return False
    mapping = node.op.index_map(node.attrs, node.inputs[0].shape, node.shape)
    if mapping is None:
        return False
    extra = node.ndim - node.inputs[0].ndim
    return all(tuple(found) in ((axis + extra, 1, 0), (None, 0, 0)) for axis, found in enumerate(mapping))


def is_matrix_transpose(node: Node) -> bool:
    """Whether a node is a view that exchanges the last two axes and nothing else."""
    if not isinstance(node.op, ViewOp) or len(node.inputs) != 1 or node.ndim < 2:
        return False
    mapping = node.op.index_map(node.attrs, node.inputs[0].shape, node.shape)
    if mapping is None:
        return False
    last = node.ndim - 1
    axes = [*range(last - 1), last, last - 1]
    return [tuple(found) for found in mapping] == [(axis, 1, 0) for axis in axes]


def is_view(node: Node) -> bool:
    """Whether a node shows elements of its first input."""
    return isinstance(node.op, ViewOp)


def is_cast(node: Node) -> bool:
    """Whether a node is its input in another dtype, or no longer weak."""
    return isinstance(node.op, ElementwiseOp) and node.op.converts


def is_addition(node: Node) -> bool:
    """Whether a node is the sum of two operands, either of which moves the other."""
    return isinstance(node.op, ElementwiseOp) and node.op.is_addition


def below(node: Node, through: Callable[[Node], bool]) -> Node:
    """The first value on the way down along first inputs that is not looked ``through``."""
    while through(node):
        node = node.inputs[0]
    return node


def below_reshapes(node: Node) -> Node:
    """The value that ``node`` is, in another shape perhaps: the same elements in the same order.

    >>> from twofold.dtypes import float32
    >>> from twofold.ir.bind import input_node
    >>> from twofold.ir.types import tensor_type
    >>> from twofold.ops.base import ops
    >>> x = input_node(0, tensor_type(float32, (2, 3)))
    >>> below_reshapes(ops.reshape(ops.reshape(x, (6,)), (3, 2))) is x
    True
    """
    return below(node, lambda view: is_reshape(view) or is_identity(view))


def below_views(node: Node) -> Node:
    """The value that ``node`` shows elements of, through any views."""
    return below(node, is_view)


def input_below(node: Node) -> Node | None:
    """The input of its graph that ``node`` is in another shape or dtype, or once it was checked; None for others."""
    found = below(node, _shows_its_input)
    return found if is_input(found) else None


def _shows_its_input(node: Node) -> bool:
    checked = isinstance(node.op, CustomOp) and node.op.returns_input
    return checked or is_cast(node) or view_form(node) is ViewForm.RESHAPE
