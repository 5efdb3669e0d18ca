"""Views by what they do to the elements of their input, whatever their names."""

from __future__ import annotations

from twofold.ir.bind import is_input
from twofold.ir.node import Node


def is_reshape(node: Node) -> bool:
    """Whether a node is a view that keeps all elements in their row-major order, in a shape of its own."""
    if node.op.kind != "view" or len(node.inputs) != 1:
        return False
    return node.op.index_map(node.attrs, node.inputs[0].shape, node.shape) is None


def is_identity(node: Node) -> bool:
    """Whether a node is a view of all elements of its first input at their indices."""
    if node.op.kind != "view" or node.inputs[0].type is not node.type:
        return False
    mapping = node.op.index_map(node.attrs, node.inputs[0].shape, node.shape)
    return mapping is None or all(tuple(found) == (axis, 1, 0) for axis, found in enumerate(mapping))


def is_broadcast(node: Node) -> bool:
    """Whether a node is a view that repeats its input along new axes in front and axes of size 1."""
    if node.op.kind != "view" or len(node.inputs) != 1:
        return False
    mapping = node.op.index_map(node.attrs, node.inputs[0].shape, node.shape)
    if mapping is None:
        return False
    extra = node.ndim - node.inputs[0].ndim
    return all(tuple(found) in ((axis + extra, 1, 0), (None, 0, 0)) for axis, found in enumerate(mapping))


def is_matrix_transpose(node: Node) -> bool:
    """Whether a node is a view that exchanges the last two axes and nothing else."""
    if node.op.kind != "view" or len(node.inputs) != 1 or node.ndim < 2:
        return False
    mapping = node.op.index_map(node.attrs, node.inputs[0].shape, node.shape)
    if mapping is None:
        return False
    last = node.ndim - 1
    axes = [*range(last - 1), last, last - 1]
    return [tuple(found) for found in mapping] == [(axis, 1, 0) for axis in axes]


def is_cast(node: Node) -> bool:
    """Whether a node is its input in another dtype, or no longer weak."""
    return node.op.kind == "elementwise" and node.op.stands_for_input


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
    while is_reshape(node) or is_identity(node):
        node = node.inputs[0]
    return node


def input_below(node: Node) -> Node | None:
    """The input of its graph that ``node`` is in another shape or dtype, or once it was checked; None for others."""
    while node.op.shows == "all elements" or node.op.stands_for_input:
        node = node.inputs[0]
    return node if is_input(node) else None


def below_views(node: Node) -> Node:
    """The value that ``node`` shows elements of, through any views."""
    while node.op.kind == "view":
        node = node.inputs[0]
    return node
