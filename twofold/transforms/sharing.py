"""Common subexpressions of the gradients of a call, extracted so that each value is computed once.

The gradients of the inputs of a call are separate graphs, as a backward pass may need some of them only. A value that
more than one of them computes becomes a graph of its own, whose result they read. Extracted are results of products,
reductions, custom kernels and control flow, and element-wise expressions of these; of expressions of reductions alone
the reductions themselves, which are smaller than what is computed from them. Everything else is cheaper to
rematerialise than to store and load. The choice depends on operations, never on sizes: it is the same for every size.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.dtypes import DType
from twofold.ir.bind import input_node
from twofold.ir.graph import rebuild_nodes, rewrite, with_inputs
from twofold.ir.node import Node, make_node, topological
from twofold.ir.op import ControlFlowOp, ElementwiseOp, GetOutputOp, ReductionOp, SourceOp, ViewOp
from twofold.ops.base import apply, ops

_FUSIBLE = (ElementwiseOp, ViewOp, SourceOp)
_FREE, _REDUCTIONS, _HEAVY = range(3)
"""The cost of rematerialising a value: none to speak of, that of reductions, or more."""


def extract_common_subexpressions(outputs: Sequence[Node], first: int) -> tuple[list[Node], list[Node]]:
    """Split the graphs of several outputs at the values that they share.

    Args:
        outputs: The outputs of the separate graphs, on common input nodes.
        first: The number of the input that stands for the first shared value; the others follow.

    Returns:
        The outputs in terms of these inputs, and the shared values, which may read those before them.

    >>> from twofold.ir.types import tensor_type
    >>> from twofold.dtypes import float32
    >>> x = input_node(0, tensor_type(float32, (3, 4)))
    >>> total = apply("sum", x, attrs=((0,),))
    >>> outputs, shared = extract_common_subexpressions([ops.exp(total), ops.tanh(total)], 1)
    >>> [str(node.op) for node in (*outputs, *shared)]
    ['<op exp>', '<op tanh>', '<op sum>']
    """
    roots = _with_packed_results(list(outputs))
    extracted: dict[int, Node] = {}
    while more := _candidates([*roots, *extracted.values()], extracted):
        extracted.update(more)
    if not extracted:
        return list(outputs), []
    shared = [node for node in topological(roots) if node.id in extracted]
    inputs = {node.id: input_node(first + k, node.type) for k, node in enumerate(shared)}
    values = [
        make_node(node.op, node.attrs, rewrite(node.inputs, lambda below: inputs.get(below.id)), node.type)
        for node in shared
    ]
    return list(rewrite(roots, lambda node: inputs.get(node.id))), values


def _candidates(roots: Sequence[Node], extracted: dict[int, Node]) -> dict[int, Node]:
    """More values to extract, by id; none once no costly value is computed twice.

    Args:
        roots: The outputs of all graphs, those of ``extracted`` included.
        extracted: What is extracted already, by id.
    """
    order = topological(roots)
    shared = _shared(order, roots, extracted)
    costs: dict[int, int] = {}
    for node in order:
        costs[node.id] = _FREE if node.id in extracted or node.type.weak else _cost(node, costs)
    found: dict[int, Node] = {}
    operands: set[int] = set()  # of shared expressions of reductions, which are rematerialised
    for node in reversed(order):
        is_shared = node.id in shared or (isinstance(node.op, GetOutputOp) and node.inputs[0].id in shared)
        if costs[node.id] == _FREE or not (is_shared or node.id in operands):
            continue
        if isinstance(node.op, ControlFlowOp):
            continue  # its outputs are extracted
        if isinstance(node.op, ViewOp) and costs[node.inputs[0].id] == costs[node.id]:
            shared.add(node.inputs[0].id)
        elif isinstance(node.op, _FUSIBLE) and costs[node.id] == _REDUCTIONS:
            operands.update(below.id for below in node.inputs)
        else:
            found[node.id] = node
    return found


def _cost(node: Node, costs: dict[int, int]) -> int:
    if not isinstance(node.op, _FUSIBLE):
        return _REDUCTIONS if isinstance(node.op, ReductionOp) else _HEAVY
    return max((costs[below.id] for below in node.inputs), default=_FREE)


def _shared(order: Sequence[Node], roots: Sequence[Node], extracted: dict[int, Node]) -> set[int]:
    """Ids of the values that different roots reach through different consumers.

    A value whose consumers are all computed for the same set of roots is not among them: that consumer is shared.

    Args:
        order: The nodes below ``roots``, in a topological order.
        roots: The outputs.
        extracted: Values at which the graphs are split already, by id.
    """
    # by id of a value: for each consumer the set of roots that it is computed for, as bits
    consumers: dict[int, set[int]] = {}
    for position, root in enumerate(roots):
        consumers.setdefault(root.id, set()).add(1 << position)
    shared = set()
    for node in reversed(order):
        sets = consumers.get(node.id, set())
        computed_for = 0
        for bits in sets:
            computed_for |= bits
        if len(sets) > 1 and node.id not in extracted:
            shared.add(node.id)
        for below in node.inputs:
            if below.id not in extracted:
                consumers.setdefault(below.id, set()).add(computed_for)
    return shared


def _with_packed_results(roots: list[Node]) -> list[Node]:
    """``roots`` where the outputs of shared control flow are slices of one flat value for each dtype."""
    order = topological(roots)
    shared = _shared(order, roots, {})
    groups: dict[tuple[int, DType], list[Node]] = {}
    for node in order:
        if isinstance(node.op, GetOutputOp):
            groups.setdefault((node.inputs[0].id, node.dtype), []).append(node)
    packed = {
        (number, dtype): outputs
        for (number, dtype), outputs in groups.items()
        if len(outputs) > 1 and (number in shared or any(output.id in shared for output in outputs))
    }
    slices: dict[int, Node] = {}

    def make(node: Node, inputs: tuple[Node, ...]) -> Node:
        outputs = packed.get((node.inputs[0].id, node.dtype)) if isinstance(node.op, GetOutputOp) else None
        if outputs is not None and node.id not in slices:
            alone = [make_node(output.op, output.attrs, inputs, output.type) for output in outputs]
            slices.update(zip([output.id for output in outputs], _packed(alone), strict=True))
        found = slices.get(node.id)
        return with_inputs(node, inputs) if found is None else found

    return list(rebuild_nodes(roots, make)) if packed else roots


def _packed(values: Sequence[Node]) -> list[Node]:
    """The same values as slices of their flat concatenation."""
    flat = ops.concatenate([ops.reshape(value, (value.type.size,)) for value in values])
    slices, start = [], 0
    for value in values:
        slices.append(apply("result_block", flat, attrs=(start, value.shape)))
        start += value.type.size
    return slices
