"""Plans for symbolic sizes of traces, and of calls in batches: the sizes that vary, or the count, are symbols.

See ``twofold.compiler.templates`` for those of single calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from twofold.compiler.compile import compile_graph
from twofold.compiler.linking import Trace, compile_outlined
from twofold.compiler.lower.memory import MODE
from twofold.compiler.planned import planned
from twofold.compiler.portable_template import ProgramTemplate
from twofold.compiler.saved_plans import saved_plans
from twofold.compiler.templates import fitting_program
from twofold.dtypes import BY_CODE
from twofold.ir.attribute_numbers import numbers_in, replaced
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, graph_of_calls, inline_calls
from twofold.ir.node import Attributes
from twofold.ir.op import Op
from twofold.ir.recording import Facts, Recording
from twofold.ir.sizes import identity
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import broadcast
from twofold.transforms.derived import stable_graph
from twofold.transforms.outline import Entry
from twofold.transforms.vmap import batch_graph, batched_type

Caller = Callable[..., "ProgramTemplate | None"]
"""Calls a function in another process, see ``CompileProcess.call``."""


def template_trace(
    described: tuple[Any, ...], varies: tuple[bool, ...], call: Caller | None = None
) -> ProgramTemplate | None:
    """The program of a trace for symbols in place of the numbers that vary, see ``planned``; None if it has none."""
    written, entries, outputs, steps = described
    numbers = [size for _, shape, _ in written for size in shape]
    lowest: list[int | None] = [0] * len(numbers)
    for entry in entries:
        own = numbers_in(entry[3])
        numbers += own
        lowest += [None] * len(own)
    free_numbers = [value for value, own in zip(numbers, varies, strict=True) if own]
    free_lowest = [low for low, own in zip(lowest, varies, strict=True) if own]

    fixed = iter([None if own else value for value, own in zip(numbers, varies)])
    leaves = tuple([(code, tuple([next(fixed) for _ in shape]), weak) for code, shape, weak in written])
    calls = tuple([(op, replaced(attrs, fixed), tuple(refs)) for _, refs, op, attrs, _, _ in entries])

    def make(facts: Facts) -> ProgramTemplate:
        recording = Recording(free_numbers, free_lowest, facts, strict=True)
        free = iter(recording.inputs)
        given = iter([next(free) if own else value for value, own in zip(numbers, varies)])
        return planned(recording, partial(compile_outlined, _declared_trace(described, given)))

    key = saved_plans().key("trace for all sizes", leaves, calls, tuple(outputs), tuple(steps), MODE.on)
    elsewhere = call and partial(call, template_trace, described, varies)
    return fitting_program(key, free_numbers, make, elsewhere)


def _declared_trace(described: tuple[Any, ...], numbers: Iterator[Any]) -> Trace:
    """A trace over symbols: with ``numbers`` as those of its leaves and attributes."""
    written, described_entries, outputs, steps = described
    types = [
        tensor_type(BY_CODE[code], tuple([next(numbers) for _ in shape]), weak)
        for code, shape, weak in written
    ]
    kinds: dict[Any, int] = {}
    graphs: list[Graph] = []
    entries: list[Entry] = []
    for _, refs, op, attrs, _, _ in described_entries:
        own = replaced(attrs, numbers)
        given = [graphs[entries[ref].kind].outputs[0].type if ref >= 0 else types[~ref] for ref in refs]
        key = op, id(attrs), identity(own), tuple(given)  # 1 and True are equal
        kind = kinds.setdefault(key, len(graphs))
        if kind == len(graphs):
            graphs.append(stable_graph(op, own, given))
        entries.append(Entry(kind, refs))
    return Trace(types, graphs, entries, outputs, symbolic=True, steps=steps)


def template_batch(
    op: Op,
    attrs: Attributes,
    types: Sequence[TensorType],
    flags: Sequence[bool],
    count: int,
    call: Caller | None = None,
) -> ProgramTemplate | None:
    """A call for any number of samples along a leading axis of the operands that ``flags`` name, see ``planned``.

    None if it has no such program.
    """
    key = saved_plans().key("batch", op, attrs, tuple(types), tuple(flags))
    elsewhere = call and partial(call, template_batch, op, attrs, types, flags, count)
    return _batched(key, lambda: stable_graph(op, attrs, types), types, flags, count, elsewhere)


Member = tuple[Op, Attributes, Sequence[TensorType], list[int]]
"""A call in a body: what it computes, and its operands: an earlier member, or ``~k`` for input ``k`` of the body."""


def template_body(
    members: Sequence[Member],
    outputs: list[int],
    types: Sequence[TensorType],
    flags: Sequence[bool],
    count: int,
    call: Caller | None = None,
) -> ProgramTemplate | None:
    """As ``template_batch``, of calls on each other's results, of which ``outputs`` are wanted."""

    def graph() -> Graph:
        calls = [(refs, stable_graph(op, attrs, own)) for op, attrs, own, refs in members]
        return inline_calls(graph_of_calls(types, calls, outputs))

    calls = tuple([(op, attrs, tuple(own), tuple(refs)) for op, attrs, own, refs in members])
    key = saved_plans().key("batch", calls, tuple(outputs), tuple(types), tuple(flags))
    elsewhere = call and partial(call, template_body, members, outputs, types, flags, count)
    return _batched(key, graph, types, flags, count, elsewhere)


def _batched(
    key: bytes | None,
    graph: Callable[[], Graph],
    types: Sequence[TensorType],
    flags: Sequence[bool],
    count: int,
    elsewhere: Caller | None,
) -> ProgramTemplate | None:
    def make(facts: Facts) -> ProgramTemplate:
        whole = graph()
        if any(node.op.kind in ("program", "host") for node in whole.nodes()):
            raise NotImplementedError("programs inside and functions of the host are run one by one")
        recording = Recording([count], [2], facts, strict=True)
        (size,) = recording.inputs
        own = [batched_type(type, size) if flag else type for type, flag in zip(types, flags, strict=True)]
        inputs = [input_node(k, type) for k, type in enumerate(own)]
        outputs = [
            # what reads no operand that has the axis is the same for all
            output if batched else broadcast(output, (size, *output.shape))
            for output, batched in batch_graph(whole, inputs, flags)
        ]
        return planned(recording, partial(compile_graph, Graph(own, outputs)))

    return fitting_program(key, [count], make, elsewhere)
