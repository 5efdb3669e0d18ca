"""Work that the gradients of several inputs of a call have in common, so that each value is computed once.

The gradients are graphs of their own, as a backward pass may want some and not others. What more than one of
them computes is cut out: a value of its own graph, which they read. Cut are results of products, reductions,
kernels and programs, or what element-wise operations make of them; where these are reductions alone, which are
smaller than what is made of them, the reductions themselves. Everything else is cheaper to compute again than to
write and to read. The choice depends on the operations, never on sizes: it is the same for every size of a call.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.dtypes import DType
from twofold.ir.bind import input_node
from twofold.ir.graph import remade, rewrite, with_inputs
from twofold.ir.node import Node, make_node, topological
from twofold.ir.op import ControlFlowOp, ElementwiseOp, GetOutputOp, ReductionOp, SourceOp, ViewOp
from twofold.ops.base import apply, ops

_LIGHT = (ElementwiseOp, ViewOp, SourceOp)
_FREE, _REDUCED, _HEAVY = range(3)
"""What computing a value again takes: nothing to speak of, reductions, or more."""


def divided(outputs: Sequence[Node], first: int) -> tuple[list[Node], list[Node]]:
    """``outputs``, and the values that they share; these are inputs numbered from ``first`` to all others.

    >>> from twofold.ir.types import tensor_type
    >>> from twofold.dtypes import float32
    >>> x = input_node(0, tensor_type(float32, (3, 4)))
    >>> total = apply("sum", x, attrs=((0,),))
    >>> [str(one.op) for part in divided([ops.exp(total), ops.tanh(total)], 1) for one in part]
    ['<op exp>', '<op tanh>', '<op sum>']
    """
    roots = _with_packed_results(list(outputs))
    cut: dict[int, Node] = {}
    while found := _cuts([*roots, *cut.values()], cut):
        cut.update(found)
    if not cut:
        return list(outputs), []
    shared = [node for node in topological(roots) if node.id in cut]
    given = {node.id: input_node(first + k, node.type) for k, node in enumerate(shared)}
    pieces = [
        make_node(node.op, node.attrs, rewrite(node.inputs, lambda below: given.get(below.id)), node.type)
        for node in shared
    ]
    return list(rewrite(roots, lambda node: given.get(node.id))), pieces


def _cuts(roots: Sequence[Node], cut: dict[int, Node]) -> dict[int, Node]:
    """Values to cut out beside ``cut``, of which ``roots`` has all: none once nothing is computed twice."""
    order = topological(roots)
    parted = _parted(order, roots, cut)
    effort: dict[int, int] = {}
    for node in order:
        effort[node.id] = _FREE if node.id in cut or node.type.weak else _effort(node, effort)
    found: dict[int, Node] = {}
    reduced: set[int] = set()  # values that are computed again from reductions, which are cut
    for node in reversed(order):
        shared = node.id in parted or (isinstance(node.op, GetOutputOp) and node.inputs[0].id in parted)
        if effort[node.id] == _FREE or not (shared or node.id in reduced):
            continue
        if isinstance(node.op, ControlFlowOp):
            continue  # its results are cut
        if isinstance(node.op, ViewOp) and effort[node.inputs[0].id] == effort[node.id]:
            parted.add(node.inputs[0].id)
        elif isinstance(node.op, _LIGHT) and effort[node.id] == _REDUCED:
            reduced.update(below.id for below in node.inputs)
        else:
            found[node.id] = node
    return found


def _effort(node: Node, effort: dict[int, int]) -> int:
    if not isinstance(node.op, _LIGHT):
        return _REDUCED if isinstance(node.op, ReductionOp) else _HEAVY
    return max((effort[below.id] for below in node.inputs), default=_FREE)


def _parted(order: Sequence[Node], roots: Sequence[Node], cut: dict[int, Node]) -> set[int]:
    """Ids of the values that different roots read by different ways: no consumer needs them for all of these roots."""
    readers: dict[
        int, set[int]
    ] = {}  # by id of a value, for each consumer the roots that it is computed for, as bits
    for position, root in enumerate(roots):
        readers.setdefault(root.id, set()).add(1 << position)
    parted = set()
    for node in reversed(order):
        found = readers.get(node.id, set())
        computed_for = 0
        for bits in found:
            computed_for |= bits
        if len(found) > 1 and node.id not in cut:
            parted.add(node.id)
        for below in node.inputs:
            if below.id not in cut:
                readers.setdefault(below.id, set()).add(computed_for)
    return parted


def _with_packed_results(roots: list[Node]) -> list[Node]:
    """``roots`` where the results of a program that several of them read are blocks of a flat value, by dtype."""
    order = topological(roots)
    parted = _parted(order, roots, {})
    groups: dict[tuple[int, DType], list[Node]] = {}
    for node in order:
        if isinstance(node.op, GetOutputOp):
            groups.setdefault((node.inputs[0].id, node.dtype), []).append(node)
    packed = {
        (number, dtype): parts
        for (number, dtype), parts in groups.items()
        if len(parts) > 1 and (number in parted or any(part.id in parted for part in parts))
    }
    blocks: dict[int, Node] = {}

    def make(node: Node, inputs: tuple[Node, ...]) -> Node:
        parts = packed.get((node.inputs[0].id, node.dtype)) if isinstance(node.op, GetOutputOp) else None
        if parts is not None and node.id not in blocks:
            alone = [make_node(part.op, part.attrs, inputs, part.type) for part in parts]
            blocks.update(zip([part.id for part in parts], _blocks_of(alone), strict=True))
        found = blocks.get(node.id)
        return with_inputs(node, inputs) if found is None else found

    return list(remade(roots, make)) if packed else roots


def _blocks_of(parts: Sequence[Node]) -> list[Node]:
    """The same values as blocks of one flat value that holds all."""
    flat = ops.concatenate([ops.reshape(part, (part.type.size,)) for part in parts])
    blocks, start = [], 0
    for part in parts:
        blocks.append(apply("result_block", flat, attrs=(start, part.shape)))
        start += part.type.size
    return blocks
