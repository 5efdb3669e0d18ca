"""Templates of traces and of batched calls: programs for symbolic sizes, or for a symbolic batch size.

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
from twofold.compiler.portable_trace import PortableTrace
from twofold.compiler.saved_plans import saved_plans
from twofold.compiler.templates import matching_program
from twofold.dtypes import BY_CODE
from twofold.ir.attribute_numbers import constants, numbers_in, replace_numbers
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, graph_of_calls, inline_calls
from twofold.ir.node import Attributes
from twofold.ir.op import Op
from twofold.ir.recording import Facts, Recording
from twofold.ir.sizes import identity
from twofold.ir.types import TensorType, tensor_type
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


def template_batch(
    op: Op,
    attrs: Attributes,
    types: Sequence[TensorType],
    flags: Sequence[bool],
    count: int,
    call: Caller | None = None,
) -> ProgramTemplate | None:
    """Plan a batched call for every batch size.

    Args:
        op: The operation.
        attrs: Its attributes.
        types: The types of its operands for one sample.
        flags: For each operand, whether it has a leading batch axis.
        count: The batch size at hand.
        call: Where given, calls this function in another process.

    Returns:
        The program over a symbolic batch size, see ``planned``; None if the call has no such program.
    """
    key = saved_plans().key("batch", op, attrs, tuple(types), tuple(flags))
    elsewhere = call and partial(call, template_batch, op, attrs, types, flags, count)
    return _batched(key, lambda: stable_graph(op, attrs, types), types, flags, count, elsewhere)


Member = tuple[Op, Attributes, Sequence[TensorType], list[int]]
"""A call in a body, and its operands: the position of an earlier member, or ``~k`` for input ``k`` of the body."""


def template_body(
    members: Sequence[Member],
    outputs: list[int],
    types: Sequence[TensorType],
    flags: Sequence[bool],
    count: int,
    call: Caller | None = None,
) -> ProgramTemplate | None:
    """Plan a batched body for every batch size.

    Args:
        members: The calls in the body.
        outputs: The members whose results it returns.
        types: The types of its inputs for one sample.
        flags: For each input, whether it has a leading batch axis; if none has, the program is that of one call.
        count: The batch size at hand.
        call: Where given, calls this function in another process.

    Returns:
        As of ``template_batch``.
    """

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
        if any(node.op.kind in ("control_flow", "host") for node in whole.nodes()):
            raise NotImplementedError("control flow and host calls are run one by one")
        recording = Recording([count], [2], facts, strict=True)
        if not any(flags):
            return planned(recording, partial(compile_graph, Graph(types, whole.outputs)))
        (size,) = recording.inputs
        own = [batched_type(type, size) if flag else type for type, flag in zip(types, flags, strict=True)]
        inputs = [input_node(k, type) for k, type in enumerate(own)]
        outputs = [
            # what reads no operand that has the axis is the same for all
            output if batched else broadcast(output, (size, *output.shape))
            for output, batched in batch_graph(whole, inputs, flags)
        ]
        return planned(recording, partial(compile_graph, Graph(own, outputs)))

    return matching_program(key, [count], make, elsewhere)
