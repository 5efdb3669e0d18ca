"""Constant folding of scalars, where the result is the same bit for bit."""

from __future__ import annotations

import numpy

from twofold.ir.bind import constant, is_constant, is_input
from twofold.ir.graph import Graph
from twofold.ir.node import Node, make_node
from twofold.ir.sizes import Symbol
from twofold.transforms.rewriting import Rewrite, rewrite_bottom_up


def fold(graph: Graph) -> Graph:
    """``graph`` with exact operations on constants replaced by constants.

    Each replacement removes a node, so rewriting ends. Float arithmetic is left to the kernels, as NumPy may round
    differently.
    """
    return rewrite_bottom_up(graph, {}, _KINDS)


def folded_scalar(node: Node) -> Node | None:
    """An exact operation on constants becomes its result."""
    if node.shape or not all(is_constant(value) for value in node.inputs):
        return None
    if any(isinstance(value.attrs[0], Symbol) for value in node.inputs):
        return None
    exact = all(not value.dtype.is_differentiable for value in node.inputs)
    if not exact or is_input(node):
        return None
    if node.dtype.kind == "f" and len(node.inputs) != 1:
        return None
    arrays = [numpy.asarray(value.attrs[0], value.dtype.numpy) for value in node.inputs]
    try:
        with numpy.errstate(all="ignore"):
            found = node.op.reference(node.attrs, *arrays)
    except NotImplementedError:
        return None
    return _as_constant(node, numpy.asarray(found), arrays)


def _as_constant(node: Node, found: numpy.ndarray, arrays: list[numpy.ndarray]) -> Node | None:
    if node.dtype.kind == "f":
        # a conversion that keeps the value; anything else might round differently
        if len(arrays) != 1 or float(found) != float(arrays[0]) or abs(float(found)) > 2**11:
            return None
        value: bool | int | float = float(found)
    elif found.dtype != node.dtype.numpy:
        return None
    else:
        value = found.item()
    folded = constant(value, node.dtype)
    return folded if not node.type.weak else make_node(folded.op, folded.attrs, (), node.type)


_KINDS: dict[str, list[Rewrite]] = {"elementwise": [folded_scalar]}
