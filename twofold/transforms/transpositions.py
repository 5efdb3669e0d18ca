"""Transpositions sink: those of a kernel's result move behind elementwise operations and concatenations.

A convolution stores channels before positions, so in a network of images with the channels last each of its results is
transposed, and the next one's input transposed back. Elementwise operations give the same bits in every order of the
axes. Where they follow in the order of the kernel, they are fused with it, and the two transpositions meet and cancel.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.ir.bind import is_constant
from twofold.ir.graph import Graph
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import Assembly, ElementwiseOp, ViewForm
from twofold.ir.types import tensor_type
from twofold.ir.views import assembly, below_views, is_broadcast, is_identity, transposes_kernel, view_form
from twofold.ops.base import ops
from twofold.ops.shape.shapes import inverse
from twofold.transforms.rewriting import Rewrite, rewrite_bottom_up


class _Sinking:
    def __init__(self) -> None:
        self._moved: set[int] = set()

    def is_sinking(self, node: Node) -> bool:
        """Whether a node is a transposition of what lies in the order of a kernel."""
        return view_form(node) is ViewForm.PERMUTE and (
            node.inputs[0].id in self._moved or transposes_kernel(node)
        )

    def behind(self, node: Node) -> Node | None:
        """An elementwise operation on transposed values, and on scalars or rows, becomes a transposition."""
        orders = {value.attrs[0] for value in node.inputs if self.is_sinking(value)}
        if len(orders) != 1 or not isinstance(node.op, ElementwiseOp):
            return None
        (order,) = orders
        values, back = [], inverse(order)
        for value in node.inputs:
            if self.is_sinking(value):
                values.append(value.inputs[0])
            elif value.shape == node.shape and (is_broadcast(value) or is_constant(below_views(value))):
                values.append(ops.permute(value, back))
            else:
                return None
        return self._moved_behind(node, node.attrs, values, order)

    def behind_join(self, node: Node) -> Node | None:
        """A concatenation of values that are all transposed becomes a transposition."""
        if assembly(node) is not Assembly.CONCATENATE or not all(map(self.is_sinking, node.inputs)):
            return None
        order = node.inputs[0].attrs[0]
        if any(value.attrs[0] != order for value in node.inputs):
            return None
        (axis,) = node.attrs
        return self._moved_behind(node, (order[axis],), [value.inputs[0] for value in node.inputs], order)

    def _moved_behind(
        self, node: Node, attrs: Attributes, values: Sequence[Node], order: tuple[int, ...]
    ) -> Node:
        shape = tuple(node.shape[axis] for axis in inverse(order))
        made = make_node(node.op, attrs, values, tensor_type(node.dtype, shape))
        self._moved.add(made.id)
        result: Node = ops.permute(made, order)
        return result

    @staticmethod
    def together(node: Node) -> Node | None:
        """A transposition of a transposition becomes one, or none."""
        below = node.inputs[0]
        if not view_form(node) is view_form(below) is ViewForm.PERMUTE:
            return None
        made: Node = ops.permute(below.inputs[0], tuple(below.attrs[0][axis] for axis in node.attrs[0]))
        return made.inputs[0] if is_identity(made) else made


def sink_transpositions(graph: Graph) -> Graph:
    """``graph`` where transpositions of kernels' results follow the elementwise operations on these.

    They only move towards the outputs, so rewriting ends.
    """
    sinking = _Sinking()
    kinds: dict[str, list[Rewrite]] = {
        "elementwise": [sinking.behind],
        "custom": [sinking.behind_join],
        "view": [sinking.together],
    }
    return rewrite_bottom_up(graph, {}, kinds)
