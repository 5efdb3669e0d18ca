"""Verifier: checks the invariants of each kind of operation, see ``ir.op``."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from twofold.errors import GraphError
from twofold.ir.bind import is_constant, is_input
from twofold.ir.graph import Graph, called
from twofold.ir.node import Node
from twofold.ir.op import ControlFlowOp, TemplateOp, ViewOp
from twofold.ir.types import TensorType


def verify(graph: Graph) -> None:
    """Check a graph and its callees; raises GraphError for the first invalid node.

    >>> from twofold.dtypes import float32
    >>> from twofold.ir.bind import input_node
    >>> from twofold.ir.types import tensor_type
    >>> import twofold.ops
    >>> verify(Graph([tensor_type(float32)], [input_node(0, tensor_type(float32))]))
    """
    _verify(graph, set())


def _verify(graph: Graph, verified: set[Graph]) -> None:
    for node in graph.nodes():
        callee = called(node)
        if callee is not None and callee not in verified:
            _verify(callee, verified)
            verified.add(callee)
        problem = _CHECKS[node.op.kind](node)
        if problem is None and is_input(node):
            problem = _input(node, graph.input_types)
        if problem is not None:
            operands = ", ".join(str(value.type) for value in node.inputs)
            what = f"{node.op.name}({operands}) {node.attrs} : {node.type}: {problem}"
            raise GraphError(what, "This is a fault of the rule or pass that made the node.")


def _input(node: Node, types: tuple[TensorType, ...]) -> str | None:
    (index,) = node.attrs
    if not 0 <= index < len(types):
        return f"the graph has {len(types)} inputs"
    return None if node.type is types[index] else f"input {index} of the graph is {types[index]}"


def _source(node: Node) -> str | None:
    if node.inputs:
        return "a source has no inputs"
    if is_constant(node) and node.shape:
        return "a constant has no axes"
    return None


def _elementwise(node: Node) -> str | None:
    if any(value.shape != node.shape for value in node.inputs):
        return "operands and result of an element-wise operation have one shape"
    return None


def _reduction(node: Node) -> str | None:
    (value,), axes = node.inputs, node.attrs[0]
    if list(axes) != sorted(set(axes)) or (axes and not 0 <= axes[0] <= axes[-1] < value.ndim):
        return "the reduced axes must be sorted, different and inside the operand"
    kept = tuple(size for axis, size in enumerate(value.shape) if axis not in axes)
    return None if node.shape == kept else f"the kept axes are {kept}"


def _view(node: Node) -> str | None:
    value = node.inputs[0]
    if value.dtype is not node.dtype:
        return "a view keeps the dtype"
    assert isinstance(node.op, ViewOp)
    mapping = node.op.index_map(node.attrs, value.shape, node.shape)
    if mapping is None:
        return None if prod(value.shape) == prod(node.shape) else "a reshape keeps the number of elements"
    if len(mapping) != value.ndim:
        return "the index map of a view has one item for each axis of its operand"
    for size, (axis, step, offset) in zip(value.shape, mapping):
        length = 1 if axis is None else node.shape[axis]
        if not isinstance(offset, int) or 0 in node.shape:
            continue
        ends = (offset, offset + step * (length - 1))
        if min(ends) < 0 or max(ends) >= size:
            return f"elements {min(ends)} to {max(ends)} are read on an axis of size {size}"
    return None


def _contraction(node: Node) -> str | None:
    if isinstance(node.op, TemplateOp):
        return None
    left, right = node.inputs
    if left.ndim < 2 or right.ndim != left.ndim or left.shape[:-2] != right.shape[:-2]:
        return "operands of a product have the same batch axes and two more"
    if left.shape[-1] != right.shape[-2]:
        return "the contracted sizes differ"
    expected = (*left.shape[:-1], right.shape[-1])
    return None if node.shape == expected else f"the shape of the product is {expected}"


def _get_output(node: Node) -> str | None:
    (source,) = node.inputs
    if not isinstance(source.op, ControlFlowOp):
        return "get_output takes a result of a control flow node"
    types = source.op.results(source.attrs, [value.type for value in source.inputs])
    number = node.attrs[0]
    if not 0 <= number < len(types):
        return f"the control flow node has {len(types)} results"
    return None if node.type is types[number] else f"result {number} is {types[number]}"


def _control_flow(node: Node) -> str | None:
    callee = called(node)
    if callee is None:
        return None
    given = tuple([value.type for value in node.inputs])
    return None if given == callee.input_types else f"the graph takes {list(callee.input_types)}"


def _any(node: Node) -> str | None:
    return None


def _composite(node: Node) -> str | None:
    return "a composite is never a node of a primitive graph"


_CHECKS: dict[str, Callable[[Node], str | None]] = {
    "source": _source,
    "elementwise": _elementwise,
    "reduction": _reduction,
    "view": _view,
    "contraction": _contraction,
    "custom": _any,
    "host": _any,
    "control_flow": _control_flow,
    "get_output": _get_output,
    "composite": _composite,
}
