"""Printer of the stages of compiling a graph."""

from __future__ import annotations

from twofold.compiler.lower.expression import operation_cost
from twofold.compiler.lower.loopnest import LoopNest
from twofold.compiler.schedule.loop_nests import BufferKey
from twofold.compiler.schedule.memory import plan
from twofold.compiler.schedule.schedule import Instruction, Schedule
from twofold.ir.graph import Graph
from twofold.ir.text import format_graph
from twofold.transforms.pipeline import PASSES


def explain(graph: Graph, fuse: bool = True) -> str:
    """Print a graph, what each pass changes, and each kernel with its loops, lower bound and buffers.

    No machine code is generated.

    >>> from twofold.dtypes import float32
    >>> from twofold.ir.text import parse_graph
    >>> import twofold.ops
    >>> text = explain(parse_graph("graph(%0 : float32[4]) {\\n %1 = negative(%0) : float32[4]\\n return %1\\n}"))
    >>> "1 kernel" in text
    True
    """
    sections = ["declared\n" + format_graph(graph)]
    for run in PASSES:
        after = run(graph)
        if after.outputs == graph.outputs:
            sections.append(f"{run.__name__}: no change")
        else:
            sections.append(f"{run.__name__}\n{format_graph(after)}")
        graph = after
    schedule = Schedule(graph, fuse)
    uses = [instruction.buffers for instruction in schedule.instructions]
    offsets, arena = plan(uses, schedule.sizes)
    count = len(schedule.instructions)
    kept = sum(schedule.sizes.values())
    sections.append(
        f"{count} kernel{'s' * (count != 1)}; {arena} bytes of arena for {kept} bytes of intermediate values"
    )
    for number, instruction in enumerate(schedule.instructions):
        sections.append(_instruction(number, instruction, offsets))
    return "\n\n".join(sections)


def _instruction(number: int, instruction: Instruction, offsets: dict[BufferKey, int]) -> str:
    buffers = ", ".join(_buffer(key, offsets) for key in instruction.buffers)
    lines = [
        f"kernel {number}: {instruction.name} for {', '.join(node.op.name for node in instruction.nodes)}"
    ]
    lines.append(f"  buffers: {buffers}")
    lines.append(f"  work: {instruction.work} items, at least {instruction.grain} per thread")
    if instruction.nest is not None:
        size, operations = floor(instruction.nest)
        lines.append(f"  floor: {size} bytes, {operations} operations")
        lines += ["  " + line for line in instruction.nest.text().splitlines()]
    return "\n".join(lines)


def _buffer(key: BufferKey, offsets: dict[BufferKey, int]) -> str:
    return f"{key[0]} {key[1]}" if key not in offsets else f"arena+{offsets[key]}"


def floor(nest: LoopNest) -> tuple[int, int]:
    """A lower bound of the bytes that a loop nest moves, each element of a buffer once, and its scalar operations."""
    lengths = (*nest.outer, *nest.inner)
    size = 0
    for access in nest.accesses():
        if access.slot >= 0:
            count = 1
            for length, stride in zip(lengths, access.strides):
                count *= length if stride else 1
            size += count * access.dtype.itemsize
    elements = 1
    for length in lengths:
        elements *= length
    cost = sum(operation_cost(step.node) for step in nest.steps if step.kind == "op")
    return size, cost * elements
