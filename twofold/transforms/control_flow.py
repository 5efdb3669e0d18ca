"""Passes over control flow: loop merging, dead result elimination, and scalar replacement of packed results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.ir.bind import constant, input_node, is_constant
from twofold.ir.graph import Graph, interned, with_inputs
from twofold.ir.node import Node, make_node
from twofold.ir.op import Assembly, GetOutputOp, ViewOp
from twofold.ir.views import assembly, is_addition
from twofold.ops.base import apply, filled
from twofold.ops.control_flow.programs import (
    Branches,
    LoopSpec,
    branches_of,
    inputs_below,
    loop_spec_of,
    renumbered,
    run,
)
from twofold.transforms.rewriting import rewrite_once

_MOST_PASSES = 8


def separate_blocks(graph: Graph) -> Graph:
    """``graph`` where slices of concatenated or padded flat tensors are replaced by what they are slices of."""
    return rewrite_once(graph, _slice_of_blocks)


def merge_loops(graph: Graph) -> Graph:
    """``graph`` with loops of the same iterations fused into one, which stacks the ys of all."""
    groups: dict[Any, list[Node]] = {}
    for node in graph.nodes():
        if loop_spec_of(node) is not None:
            groups.setdefault(_iterations_key(node), []).append(node)
    merged = {node.id: group for group in groups.values() if len(group) > 1 for node in group}
    if not merged:
        return graph
    return rewrite_once(
        graph, lambda node: _merged_result(node, merged) if isinstance(node.op, GetOutputOp) else None
    )


def prune_control_flow(graph: Graph) -> Graph:
    """``graph`` whose loops and branches compute only results that are read, and carry only values that change."""
    for _ in range(_MOST_PASSES):
        smaller = _pruned(graph)
        if smaller is graph:
            break
        graph = smaller
    return graph


def _pruned(graph: Graph) -> Graph:
    used: dict[int, set[int]] = {}
    for node in graph.nodes():
        if isinstance(node.op, GetOutputOp):
            used.setdefault(node.inputs[0].id, set()).add(node.attrs[0])
    smaller: dict[int, dict[int, Node]] = {}  # results by number, by id of the loop or branch

    def make(node: Node, inputs: tuple[Node, ...]) -> Node:
        current = with_inputs(node, inputs)
        if loop_spec_of(node) is not None:
            smaller[node.id] = _smaller_loop(current, used[node.id])
        elif branches_of(node) is not None:
            smaller[node.id] = _smaller_branch(current, used[node.id])
        elif isinstance(node.op, GetOutputOp) and (results := smaller.get(node.inputs[0].id)):
            return results[node.attrs[0]]
        return current

    made = graph.rebuilt(make)
    return made if any(smaller.values()) else graph


# Scalar replacement


def _slice_of_blocks(node: Node) -> Node | None:
    if not isinstance(node.op, ViewOp) or node.ndim != 1 or len(node.inputs) != 2 or node.inputs[0].ndim != 1:
        return None
    source, start = node.inputs
    mapping = node.op.index_map(node.attrs, source.shape, node.shape)
    if not is_constant(start) or mapping != ((0, 1, ("input", 1)),):
        return None
    return _block(source, start.attrs[0], node.shape[0])


def _is_made_of_blocks(node: Node) -> bool:
    """Whether a flat tensor is a concatenation or padding, or a sum of such."""
    if is_addition(node):
        return all(_is_made_of_blocks(value) for value in node.inputs)
    return assembly(node) in (Assembly.CONCATENATE, Assembly.PAD)


def _block(source: Node, start: int, size: int) -> Node | None:
    """Elements ``[start, start + size)`` of a flat tensor; None where it is not known to be made of blocks."""
    if start == 0 and size == source.shape[0]:
        return source
    found: Node | None = None
    if assembly(source) is Assembly.CONCATENATE:
        found = _block_of_concatenation(source, start, size)
    elif assembly(source) is Assembly.PAD:
        found = _block_of_padded(source, start, size)
    elif is_addition(source) and _is_made_of_blocks(source):
        terms = [_block(value, start, size) or _sliced(value, start, size) for value in source.inputs]
        found = make_node(source.op, source.attrs, terms, terms[0].type)
    return found


def _sliced(source: Node, start: int, size: int) -> Node:
    block: Node = apply("slice", source, constant(start), attrs=((size,), (1,), (0,)))
    return block


def _block_of_concatenation(source: Node, start: int, size: int) -> Node | None:
    for value in source.inputs:
        length = value.shape[0]
        if start >= 0 and start + size <= length:
            return _block(value, start, size) or _sliced(value, start, size)
        start -= length
    return None


def _block_of_padded(source: Node, start: int, size: int) -> Node | None:
    inner, fill, *starts = source.inputs
    if source.attrs[1] != (1,) or len(starts) != 1 or not is_constant(starts[0]):
        return None
    if not is_constant(fill):
        return None
    first = starts[0].attrs[0]
    last = first + inner.shape[0]
    if first <= start and start + size <= last:
        return _block(inner, start - first, size) or _sliced(inner, start - first, size)
    if start + size <= first or last <= start:
        filling: Node = filled(fill.attrs[0], source.dtype, (size,))
        return filling
    return None


# Loop merging


def _iterations_key(node: Node) -> tuple[Any, ...]:
    """Equal for loops with the same inputs, carries and conditions, whatever ys they stack."""
    spec: LoopSpec = node.attrs[0]
    carried = spec.body.outputs[: spec.carry]
    conditions = spec.body.outputs[spec.carry + spec.ys :]
    return (node.inputs, spec.body.input_types, carried, conditions, *spec.key()[1:])


def _ys(node: Node) -> tuple[Node, ...]:
    spec = node.attrs[0]
    return tuple(spec.body.outputs[spec.carry : spec.carry + spec.ys])


def _merged_result(result: Node, merged: dict[int, list[Node]]) -> Node | None:
    group = merged.get(result.inputs[0].id)
    if group is None:
        return None
    own, first = result.inputs[0], group[0]
    spec: LoopSpec = first.attrs[0]
    ys = list(dict.fromkeys(value for node in group for value in _ys(node)))
    outputs = spec.body.outputs
    last = spec.carry + spec.ys
    body = Graph(spec.body.input_types, [*outputs[: spec.carry], *ys, *outputs[last:]])
    results = run("loop", (spec.with_body(body),), own.inputs)
    number = result.attrs[0]
    if number < spec.carry:
        return results[number]
    if number == spec.carry + own.attrs[0].ys:
        return results[-1]
    return results[spec.carry + ys.index(_ys(own)[number - spec.carry])]


# Dead results


def _smaller_loop(node: Node, used: set[int]) -> dict[int, Node]:
    """Results of a loop from a smaller loop: without dead results, and with loop-invariant carries as constants.

    Args:
        node: The loop.
        used: The numbers of the results that are read.

    Returns:
        The used results by number; nothing if the loop is as small as it can be.
    """
    spec: LoopSpec = node.attrs[0]
    body, count = spec.body, spec.carry
    inputs = [input_node(k, type) for k, type in enumerate(body.input_types)]
    invariant = {k for k in range(count) if body.outputs[k] is inputs[k]}
    ys = [k for k in range(count, count + spec.ys) if k in used]
    conditions = list(body.outputs[count + spec.ys :])
    alive = {k for k in used if k < count and k not in invariant}
    needed: set[int] = set()
    while True:  # a carry that a live value reads is live
        needed = inputs_below([*[body.outputs[k] for k in (*sorted(alive), *ys)], *conditions])
        found = {k for k in range(count) if inputs[k].id in needed and k not in invariant} | alive
        if found == alive:
            break
        alive = found
    carried = sorted(alive)
    xs = [k for k in range(count, count + spec.xs) if inputs[k].id in needed]
    consts = [k for k in (*sorted(invariant), *range(count + spec.xs, len(inputs))) if inputs[k].id in needed]
    if (len(carried), len(ys), len(xs), len(consts)) == (count, spec.ys, spec.xs, spec.consts):
        return {}
    positions = [*carried, *xs, *consts]
    outputs = [*[body.outputs[k] for k in (*carried, *ys)], *conditions]
    smaller = spec.with_body(
        renumbered(outputs, [inputs[k] for k in positions]), carry=len(carried), xs=len(xs)
    )
    values = node.inputs[spec.first :]
    results = run("loop", (smaller,), [*node.inputs[: spec.first], *[values[k] for k in positions]])
    by_number: dict[int, Node] = {k: values[k] for k in invariant}
    by_number.update(zip((*carried, *ys), results))
    by_number[count + spec.ys] = results[-1]
    return by_number


def _smaller_branch(node: Node, used: set[int]) -> dict[int, Node]:
    """As ``_smaller_loop``, of a branch."""
    graphs: Sequence[Graph] = node.attrs[0].graphs
    inputs = [input_node(k, type) for k, type in enumerate(graphs[0].input_types)]
    results = sorted(used)
    outputs = [[graph.outputs[k] for k in results] for graph in graphs]
    needed = set().union(*map(inputs_below, outputs))
    kept = [k for k, value in enumerate(inputs) if value.id in needed]
    if len(kept) == len(inputs) and len(results) == len(graphs[0].outputs):
        return {}
    smaller = interned(Branches([renumbered(found, [inputs[k] for k in kept]) for found in outputs]))
    choice, *values = node.inputs
    return dict(zip(results, run("branch", (smaller,), [choice, *[values[k] for k in kept]])))
