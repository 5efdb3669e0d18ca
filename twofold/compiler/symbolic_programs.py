"""Programs over symbols of traces and of batched bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from twofold.compiler.batches import Batch
from twofold.compiler.compile import compile_graph
from twofold.compiler.linking import Trace, compile_outlined
from twofold.compiler.planned import planned
from twofold.compiler.portable_template import ProgramTemplate
from twofold.compiler.portable_trace import PortableTrace
from twofold.dtypes import BY_CODE
from twofold.ir.attribute_numbers import replace_numbers
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, graph_of_calls, inline_calls
from twofold.ir.recording import Recording
from twofold.ir.sizes import identity
from twofold.ir.types import tensor_type
from twofold.ops.base import broadcast
from twofold.transforms.derived import stable_graph
from twofold.transforms.outline import Instruction
from twofold.transforms.vmap import batch_graph, batched_type


def trace_program(recording: Recording, trace: PortableTrace, numbers: Iterator[Any]) -> ProgramTemplate:
    """The program of a trace, with ``numbers`` as the sizes of its inputs and the numbers in its attributes."""
    return planned(recording, partial(compile_outlined, _declared_trace(trace, numbers)))


def batch_program(recording: Recording, batch: Batch) -> ProgramTemplate:
    """The program of a batched body, with the inputs of the recording as its size, those of operands, and integers."""
    return planned(recording, partial(compile_graph, _batch_graph(batch, recording.inputs)))


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
