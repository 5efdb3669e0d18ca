"""A pass that makes loops update their carries in place where an iteration changes a few rows only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from twofold.dtypes import int64
from twofold.ir.bind import input_node, is_positive_zero
from twofold.ir.graph import Graph
from twofold.ir.node import Node
from twofold.ir.op import Assembly, GetOutputOp
from twofold.ir.views import assembly, below_reshapes, is_addition, is_view
from twofold.ops.base import apply, convert, filled, ops
from twofold.ops.control_flow.programs import LoopSpec, loop_spec_of, run
from twofold.transforms.canonicalize import canonicalize
from twofold.transforms.rewriting import rewrite_once


class _Update(NamedTuple):
    """The update of a carry in an iteration.

    Attributes:
        block: The rows that are written.
        start: The index of the first of them.
        adds: Whether they are added to the rows that are there.
    """

    block: Node
    start: Node
    adds: bool


def update_carries_in_place(graph: Graph) -> Graph:
    """``graph`` whose loops write rows of carries into the buffers of these, rather than copy them whole.

    Bits are kept where rows are added to, too: adding 0.0 to the other rows in each iteration would have made their
    negative zeros positive, so the initial value is normalised in this way if there is an iteration.
    """
    return rewrite_once(
        graph, lambda node: _updated_in_place(node) if isinstance(node.op, GetOutputOp) else None
    )


def _updated_in_place(result: Node) -> Node | None:
    node = result.inputs[0]
    spec = loop_spec_of(node)
    if spec is None or spec.in_place or spec.limit == 0:
        return None
    spec = spec.with_body(canonicalize(spec.body))
    updates = {k: found for k in range(spec.carry) if (found := _update(spec, k)) is not None}
    if not updates:
        return None
    outputs = list(spec.body.outputs)
    inputs = list(node.inputs)
    for k, update in updates.items():
        block = update.block
        if update.adds:
            carried = input_node(k, spec.body.input_types[k])
            attrs = (block.shape, (1,) * block.ndim, (0,))
            block = apply("add", apply("slice", carried, update.start, attrs=attrs), block)
            inputs[spec.first + k] = _normalised(spec, inputs, inputs[spec.first + k])
        outputs[k] = block
    last = spec.carry + spec.ys
    positions = [convert(update.start, int64) for update in updates.values()]
    body = Graph(spec.body.input_types, [*outputs[:last], *positions, *outputs[last:]])
    return run("loop", (spec.with_body(body, in_place=tuple(updates)),), inputs)[result.attrs[0]]


def _normalised(spec: LoopSpec, inputs: Sequence[Node], start: Node) -> Node:
    """``start`` without negative zeros, if there is a first iteration."""
    normalised = apply("add", start, filled(0, start.dtype, start.shape))
    if spec.counted:
        count = inputs[spec.first - 1]
        normalised = ops.where(apply("greater", count, filled(0, count.dtype, ())), normalised, start)
    return ops.where(inputs[0], normalised, start) if spec.conditional else normalised


def _update(spec: LoopSpec, k: int) -> _Update | None:
    """The update of carry ``k``; None unless an iteration changes some of its rows only."""
    node, carried = below_reshapes(spec.body.outputs[k]), input_node(k, spec.body.input_types[k])
    if not carried.ndim or not carried.shape[0] or node.type.size != carried.type.size:
        return None
    write = _WRITES.get(assembly(node))
    if write is not None and below_reshapes(node.inputs[0]) is carried:
        return write(carried, node, False)
    if is_addition(node) and carried.dtype.kind == "f":
        sides = [below_reshapes(value) for value in node.inputs]
        if carried in sides and _is_read_once(spec.body, carried):
            other = sides[1 - sides.index(carried)]
            add = _ADDS.get(assembly(other))
            return None if add is None else add(carried, other, True)
    return None


def _is_read_once(body: Graph, value: Node) -> bool:
    """Whether ``value`` has a single consumer, perhaps through views."""
    while True:
        readers = [node for node in body.nodes() for below in node.inputs if below is value]
        if len(readers) != 1 or value in body.outputs:
            return False
        if not is_view(readers[0]):
            return True
        (value,) = readers


def _rows(carried: Node, block: Node, start: Node, adds: bool) -> _Update | None:
    """The update of whole rows with the elements of ``block``."""
    row = carried.type.size // carried.shape[0]
    if not row or not block.type.size or block.type.size % row:
        return None
    return _Update(ops.reshape(block, (block.type.size // row, *carried.shape[1:])), start, adds)


def _sliced(carried: Node, node: Node, adds: bool) -> _Update | None:
    """The update by a ``slice_update`` of the carry, or by a ``pad_block`` of zeros that is added to it."""
    steps, axes = node.attrs[-2:]
    block, rest = (node.inputs[0], node.inputs[1]) if adds else (node.inputs[1], None)
    if rest is not None and not is_positive_zero(rest):
        return None
    if axes != (0,) or any(step != 1 for step in steps) or node.shape != carried.shape:
        return None
    return _rows(carried, block, node.inputs[2], adds)


def _indexed(carried: Node, node: Node, adds: bool) -> _Update | None:
    """The update by a ``scatter_set`` or ``scatter_sum`` of one row, whose index is checked as before."""
    index, updates = node.inputs if adds else node.inputs[1:]
    if node.shape[:2] != (1, carried.shape[0]) or updates.shape[1] != 1 or index.type.size != 1:
        return None
    lowest = node.attrs[1:] if adds else node.attrs
    start = apply("linear_index", index, attrs=((carried.shape[0],), *lowest))
    return _rows(carried, updates, ops.reshape(start, ()), adds)


_Finder = Callable[[Node, Node, bool], "_Update | None"]
_WRITES: dict[Assembly | None, _Finder] = {Assembly.UPDATE_SLICE: _sliced, Assembly.SCATTER: _indexed}
_ADDS: dict[Assembly | None, _Finder] = {Assembly.PAD: _sliced, Assembly.SEGMENT_SUM: _indexed}
