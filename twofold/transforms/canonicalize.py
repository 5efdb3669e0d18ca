"""Algebraic simplification that keeps every bit of every result."""

from __future__ import annotations

from functools import cache

from twofold.dtypes import bool_, float32
from twofold.ir.bind import is_constant
from twofold.ir.graph import Graph, with_inputs
from twofold.ir.node import Node, make_node
from twofold.ir.op import ContractionOp, ElementwiseOp, Op
from twofold.ir.types import Shape, tensor_type
from twofold.ir.views import below_views, is_identity, is_matrix_transpose, is_reshape, is_view
from twofold.ops.base import filled, ops
from twofold.ops.kinds import Reduction
from twofold.transforms.fold import folded_scalar
from twofold.transforms.rewriting import Rewrite, Rule, by_operation, rewrite_bottom_up


def canonicalize(graph: Graph) -> Graph:
    """``graph`` after algebraic simplification.

    Every rule replaces a node by one of its operands or a constant, composes two views, or removes a reduction, so
    rewriting ends. Scalars are folded here, too: a constant may have been below a view, or the index of the only
    element.
    """
    return rewrite_bottom_up(graph, _rules(), _KINDS)


@cache
def _rules() -> dict[Op, list[Rewrite]]:
    same = lambda x: x
    # arithmetic makes NaNs canonical: an identity is removed only if its operand has canonical NaNs already
    computed = lambda x: x if holds_canonical_nans(x) else None
    return by_operation(
        [
            Rule(lambda x: ops.stop_gradient(x), same),
            Rule(lambda x: ops.negative(ops.negative(x)), same),
            Rule(lambda x: ops.abs(ops.negative(x)), ops.abs),
            Rule(lambda x: ops.abs(ops.abs(x)), ops.abs),
            # x + 0 is kept: it turns -0.0 into 0.0
            Rule(lambda x: ops.multiply(x, 1.0), computed),
            Rule(lambda x: ops.multiply(1.0, x), computed),
            Rule(lambda x: ops.divide(x, 1.0), computed),
            Rule(lambda x: ops.subtract(x, 0.0), computed),
            Rule(lambda x: ops.logical_not(ops.logical_not(x)), same, dtypes=(bool_,)),
            Rule(lambda c, x: ops.where(c, x, x), lambda c, x: x, 2, (bool_, float32)),
        ]
    )


def holds_canonical_nans(node: Node) -> bool:
    """Whether every NaN in a value is the canonical one, as arithmetic computed it."""
    node = below_views(node)
    if node.dtype.kind not in "fc" or node.op.kind in ("reduction", "contraction"):
        return True
    return is_constant(node) or (isinstance(node.op, ElementwiseOp) and not node.op.keeps_nan)


def _cast_pair(node: Node) -> Node | None:
    """A cast to the same dtype, or to a wider float and back, becomes its input."""
    if len(node.inputs) != 1 or node.attrs != (node.type.dtype,):
        return None
    below = node.inputs[0]
    if below.type is node.type:
        return below
    if below.op is not node.op or below.inputs[0].type is not node.type:
        return None
    first, middle = node.type.dtype, below.type.dtype
    widens = first.kind == middle.kind == "f" and middle.itemsize > first.itemsize
    return below.inputs[0] if widens and holds_canonical_nans(below.inputs[0]) else None


def _idempotent_pair(node: Node) -> Node | None:
    """What changes nothing the second time becomes the first."""
    if not isinstance(node.op, ElementwiseOp) or not node.op.is_idempotent:
        return None
    below = node.inputs[0]
    return below if below.op is node.op and below.attrs == node.attrs and below.type is node.type else None


def _identity_view(node: Node) -> Node | None:
    """An identity view becomes its input."""
    return node.inputs[0] if is_identity(node) else None


def _view_pair(node: Node) -> Node | None:
    """A reshape of a reshape becomes the outer one."""
    below = node.inputs[0]
    if below.op is node.op and is_reshape(node) and is_reshape(below):
        return make_node(node.op, node.attrs, below.inputs, node.type)
    return None


_BEGUN_WITH = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _reduction_of_one(node: Node) -> Node | None:
    """A reduction of single elements becomes what each is combined with what the reduction begins with."""
    (value,), op = node.inputs, node.op
    if not isinstance(op, Reduction) or any(value.shape[axis] != 1 for axis in node.attrs[0]):
        return None
    if op.combine in ("argmax", "argmin"):
        return filled(0, node.dtype, node.shape)
    combined = ops.reshape(value, node.shape)
    if value.dtype.kind == "f":
        begin = filled(op.identity(value.dtype), value.dtype, node.shape)
        combined = getattr(ops, _BEGUN_WITH[op.combine])(combined, begin)
    return combined if combined.type is node.type else None


_KINDS: dict[str, list[Rewrite]] = {
    "view": [_identity_view, _view_pair],
    "elementwise": [folded_scalar, _cast_pair, _idempotent_pair],
    "reduction": [_reduction_of_one],
}


def transpose_products(graph: Graph) -> Graph:
    """``graph`` where a matrix product that is only read transposed is the product of the transposed operands.

    So the gradient of a weight has the layout of the weight, and consumers can be fused with the product. The order of
    accumulation of each element stays. Transpositions only move towards the inputs, so rewriting ends.
    """
    order = graph.nodes()
    users: dict[int, list[Node]] = {}
    for node in order:
        for value in node.inputs:
            users.setdefault(value.id, []).append(node)
    outputs = {output.id for output in graph.outputs}
    transposed = {
        node.id
        for node in order
        if isinstance(node.op, ContractionOp)
        and node.id not in outputs
        and all(is_matrix_transpose(user) for user in users.get(node.id, ()))
    }
    if not transposed:
        return graph

    def make(node: Node, inputs: tuple[Node, ...]) -> Node:
        if not is_view(node) or node.inputs[0].id not in transposed:
            return with_inputs(node, inputs)
        product = inputs[0]
        swapped = [
            make_node(node.op, node.attrs, (value,), tensor_type(value.dtype, _swapped(value.shape)))
            for value in reversed(product.inputs)
        ]
        return make_node(product.op, product.attrs, swapped, node.type)

    return graph.rebuilt(make)


def _swapped(shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2])
