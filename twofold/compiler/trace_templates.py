"""Templates of traces and of batched calls: programs for symbolic sizes, or for a symbolic batch size.

See ``twofold.compiler.templates`` for those of single calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from twofold.compiler.batches import Batch
from twofold.compiler.compile import compile_graph
from twofold.compiler.linking import Trace, compile_outlined
from twofold.compiler.lower.mode import MODE
from twofold.compiler.planned import planned
from twofold.compiler.portable_template import ProgramTemplate
from twofold.compiler.portable_trace import PortableTrace
from twofold.compiler.saved_plans import saved_plans
from twofold.compiler.templates import matching_program
from twofold.dtypes import BY_CODE
from twofold.ir.attribute_numbers import constants, numbers_in, replace_numbers
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, graph_of_calls, inline_calls
from twofold.ir.recording import Facts, Recording
from twofold.ir.sizes import identity
from twofold.ir.types import tensor_type
from twofold.ops.base import broadcast
from twofold.transforms.derived import stable_graph
from twofold.transforms.outline import Instruction
from twofold.transforms.vmap import batch_graph, batched_type

Caller = Callable[..., "ProgramTemplate | None"]
"""Calls a function in another process, see ``CompileProcess.call``."""


def template_trace(
    trace: PortableTrace, varies: tuple[bool, ...], call: Caller | None = None
) -> ProgramTemplate | None:
    """Plan a trace for all values of some of its numbers.

    Args:
        trace: The trace.
        varies: For each size of an input, then each number in the attributes of an entry, whether it is a symbol.
        call: Where given, calls this function in another process.

    Returns:
        The program over symbols, see ``planned``; None if it cannot be planned for all sizes.
    """
    numbers = [size for _, shape, _ in trace.input_types for size in shape]
    lowest: list[int | None] = [0] * len(numbers)
    for _, _, attrs, _ in trace.entries:
        own = numbers_in(attrs)
        numbers += own
        lowest += [None] * len(own)
    free_numbers = [value for value, own in zip(numbers, varies, strict=True) if own]
    free_lowest = [low for low, own in zip(lowest, varies, strict=True) if own]

    fixed = constants(numbers, varies)
    input_types = tuple(
        [(code, tuple([next(fixed) for _ in shape]), weak) for code, shape, weak in trace.input_types]
    )
    calls = tuple([(op, replace_numbers(attrs, fixed), tuple(refs)) for refs, op, attrs, _ in trace.entries])

    def make(facts: Facts) -> ProgramTemplate:
        recording = Recording(free_numbers, free_lowest, facts, strict=True)
        free = iter(recording.inputs)
        given = iter([next(free) if own else value for value, own in zip(numbers, varies)])
        return planned(recording, partial(compile_outlined, _declared_trace(trace, given)))

    key = saved_plans().key(
        "trace for all sizes",
        input_types,
        calls,
        tuple(trace.outputs),
        tuple(trace.steps),
        MODE.on,
        trace.infers,
    )
    elsewhere = call and partial(call, template_trace, trace, varies)
    return matching_program(key, free_numbers, make, elsewhere)


def _declared_trace(trace: PortableTrace, numbers: Iterator[Any]) -> Trace:
    """A trace over symbols, with ``numbers`` as the sizes of its inputs and the numbers in its attributes."""
    types = [
        tensor_type(BY_CODE[code], tuple([next(numbers) for _ in shape]), weak)
        for code, shape, weak in trace.input_types
    ]
    instances: dict[Any, int] = {}
    graphs: list[Graph] = []
    instructions: list[Instruction] = []
    for refs, op, attrs, _ in trace.entries:
        own = replace_numbers(attrs, numbers)
        operand_types = [
            graphs[instructions[ref].instance].outputs[0].type if ref >= 0 else types[~ref] for ref in refs
        ]
        key = op, id(attrs), identity(own), tuple(operand_types)  # 1 and True are equal
        instance = instances.setdefault(key, len(graphs))
        if instance == len(graphs):
            graphs.append(stable_graph(op, own, operand_types))
        instructions.append(Instruction(instance, refs))
    return Trace(types, graphs, instructions, trace.outputs, True, trace.steps, trace.infers)


def template_batch(batch: Batch, count: int, call: Caller | None = None) -> ProgramTemplate | None:
    """Plan a batched body for every batch size and all sizes of its inputs.

    Args:
        batch: The body.
        count: The batch size at hand.
        call: Where given, calls this function in another process.

    Returns:
        The program over symbols, see ``planned``; None if the body has no such program.
    """
    numbers = batch.numbers
    values = [count, *numbers]
    sizes = sum(len(type.shape) for type in batch.types)
    lowest = [min(count, 2), *[0] * sizes, *[None] * (len(numbers) - sizes)]

    def make(facts: Facts) -> ProgramTemplate:
        # the batch size equals other sizes by chance only
        recording = Recording(values, lowest, facts, strict=True, distinct=(0,))
        return planned(recording, partial(compile_graph, _batch_graph(batch, recording.inputs)))

    elsewhere = call and partial(call, template_batch, batch, count)
    return matching_program(batch.key, values, make, elsewhere)


def _batch_graph(batch: Batch, inputs: Iterable[Any]) -> Graph:
    """The graph of a batch; ``inputs`` are its size, the sizes of its operands, and the integers of its members."""
    size, *rest = inputs
    numbers = iter(rest)
    types = [
        tensor_type(type.dtype, tuple([next(numbers) for _ in type.shape]), type.weak) for type in batch.types
    ]
    calls: list[tuple[Sequence[int], Graph]] = []
    for op, attrs, refs in batch.members:
        given = [calls[ref][1].outputs[0].type if ref >= 0 else types[~ref] for ref in refs]
        calls.append((refs, stable_graph(op, replace_numbers(attrs, numbers), given)))
    whole = inline_calls(graph_of_calls(types, calls, batch.outputs))
    if any(node.op.kind in ("control_flow", "host") for node in whole.nodes()):
        raise NotImplementedError("control flow and host calls are run one by one")
    if not any(batch.flags):
        return Graph(types, whole.outputs)
    own = [batched_type(type, size) if flag else type for type, flag in zip(types, batch.flags, strict=True)]
    nodes = [input_node(k, type) for k, type in enumerate(own)]
    outputs = [
        # what reads no operand that has the axis is the same for all
        output if batched else broadcast(output, (size, *output.shape))
        for output, batched in batch_graph(whole, nodes, batch.flags)
    ]
    return Graph(own, outputs)
