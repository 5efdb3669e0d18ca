"""Simplifications that keep every bit of every result."""

from __future__ import annotations

from functools import cache

from twofold.dtypes import bool_, float32
from twofold.ir.graph import Graph
from twofold.ir.node import Node, make_node
from twofold.ir.types import Shape, tensor_type
from twofold.ops.base import ops
from twofold.passes.rules import Rewrite, Rule, by_operation, rewrite_bottom_up, shows_its_input


def canonicalize(graph: Graph) -> Graph:
    """``graph`` without operations that do nothing.

    Every rule replaces a node by one that stands below it, or one view of two by one, so rewriting ends.
    """
    return rewrite_bottom_up(graph, _rules(), _KINDS)


@cache
def _rules() -> dict[str, list[Rewrite]]:
    same = lambda x: x
    # arithmetic makes every NaN the canonical one, so where it would change nothing else it may go only behind another
    computed = lambda x: x if holds_canonical_nans(x) else None
    return by_operation(
        [
            Rule(lambda x: ops.stop_gradient(x), same),
            Rule(lambda x: ops.negative(ops.negative(x)), same),
            Rule(lambda x: ops.abs(ops.negative(x)), ops.abs),
            Rule(lambda x: ops.abs(ops.abs(x)), ops.abs),
            Rule(lambda x: ops.relu(ops.relu(x)), ops.relu),
            # x + 0 is left alone: it turns -0.0 into 0.0
            Rule(lambda x: ops.multiply(x, 1.0), computed),
            Rule(lambda x: ops.multiply(1.0, x), computed),
            Rule(lambda x: ops.divide(x, 1.0), computed),
            Rule(lambda x: ops.subtract(x, 0.0), computed),
            Rule(lambda x: ops.logical_not(ops.logical_not(x)), same, dtypes=(bool_,)),
            Rule(lambda c, x: ops.where(c, x, x), lambda c, x: x, 2, (bool_, float32)),
        ]
    )


def holds_canonical_nans(node: Node) -> bool:
    """Whether every NaN in a value is the canonical one, as its last step was arithmetic on floats."""
    while node.op.kind == "view":
        node = node.inputs[0]
    if node.dtype.kind not in "fc" or node.op.kind in ("reduction", "contraction"):
        return True
    return node.op.name == "constant" or (node.op.kind == "elementwise" and not node.op.keeps_nan)


def _cast_pair(node: Node) -> Node | None:
    """A cast to a wider float and back to the first dtype; a cast to the dtype it has."""
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


def is_reshape(node: Node) -> bool:
    """Whether a view keeps the order of all elements."""
    return node.op.index_map(node.attrs, node.inputs[0].shape, node.shape) is None


def _idle_view(node: Node) -> Node | None:
    """A view that shows its input as it is."""
    return node.inputs[0] if shows_its_input(node) else None


def _view_pair(node: Node) -> Node | None:
    """A reshape of a reshape; the result is what the upper one says."""
    below = node.inputs[0]
    if below.op is node.op and is_reshape(node) and is_reshape(below):
        return make_node(node.op, node.attrs, below.inputs, node.type)
    return None


_KINDS: dict[str, list[Rewrite]] = {"view": [_idle_view, _view_pair], "elementwise": [_cast_pair]}


def _swaps_matrix(node: Node) -> bool:
    """Whether a view exchanges the last two axes and nothing else."""
    mapping = (
        node.op.index_map(node.attrs, node.inputs[0].shape, node.shape) if node.op.kind == "view" else None
    )
    if mapping is None or len(node.inputs) != 1 or node.ndim < 2:
        return False
    last = node.ndim - 1
    wanted = [*range(last - 1), last, last - 1]
    return [tuple(found) for found in mapping] == [(axis, 1, 0) for axis in wanted]


def transpose_products(graph: Graph) -> Graph:
    """A matrix product that is only read transposed becomes the product of the transposed operands.

    The gradient of a weight is stored as the weight is, and what follows can join the product's kernel. Each
    element is the same chain of the same products. It ends as transpositions only move towards the inputs.
    """
    order = graph.nodes()
    users: dict[int, list[Node]] = {}
    for node in order:
        for value in node.inputs:
            users.setdefault(value.id, []).append(node)
    outputs = {output.id for output in graph.outputs}
    turned = {
        node.id
        for node in order
        if node.op.kind == "contraction"
        and node.id not in outputs
        and all(_swaps_matrix(user) for user in users.get(node.id, ()))
    }
    if not turned:
        return graph
    done: dict[int, Node] = {}
    for node in order:
        inputs = tuple([done[value.id] for value in node.inputs])
        if node.op.kind == "view" and node.inputs[0].id in turned:
            product = node.inputs[0]
            left, right = (done[value.id] for value in product.inputs)
            swapped = [
                make_node(node.op, node.attrs, (value,), tensor_type(value.dtype, _swapped(value.shape)))
                for value in (right, left)
            ]
            done[node.id] = make_node(product.op, product.attrs, swapped, node.type)
        else:
            done[node.id] = (
                node if inputs == node.inputs else make_node(node.op, node.attrs, inputs, node.type)
            )
    return Graph(graph.input_types, [done[output.id] for output in graph.outputs])


def _swapped(shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2])
