"""Which outputs of a program may take over the memory of an input that nobody needs afterwards.

An output may do so when one kernel writes it, element by element, where the same kernel reads that input at the
very same position, or says of itself that it may, and nothing reads the input later. Whether the input really is
free, only the run knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from twofold.compiler.lower.loopnest import REDUCING_FORMS, Access
from twofold.compiler.schedule.schedule import Instruction
from twofold.ir.op import ControlFlowOp, CustomOp, HostOp


def possible_donations(instructions: Sequence[Instruction]) -> list[tuple[int, int]]:
    """All pairs (input, output) of which one of each may be chosen, see ``matched``.

    A kernel that may report an error, or a host function, must not come later: what failed is run once more to
    find the line, and needs its inputs whole.
    """
    fallible = [number for number, instruction in enumerate(instructions) if may_fail(instruction)]
    first = max(fallible, default=-1) + 1
    last_read: dict[int, int] = {}
    for number, instruction in enumerate(instructions):
        for kind, index in instruction.buffers:
            if kind == "input":
                last_read[index] = number
    return [
        (source, target)
        for number, instruction in enumerate(instructions[first:], first)
        for source, target in _candidates(instruction)
        if last_read[source] == number
    ]


def matched(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of these pairs (input, output) such that each input and each output stands in one at most."""
    found: dict[int, int] = {}
    given: set[int] = set()
    for source, target in pairs:
        if source not in found and target not in given:
            found[source] = target
            given.add(target)
    return list(found.items())


def may_fail(instruction: Instruction) -> bool:
    """Whether it may report an error, or is a host function."""
    op = instruction.nodes[0].op
    if isinstance(op, CustomOp):
        return op.checks or op.may_fail
    return isinstance(op, (HostOp, ControlFlowOp))


def _candidates(instruction: Instruction) -> list[tuple[int, int]]:
    nest = instruction.nest
    root = instruction.nodes[0]
    # a copy of the result, where a program returns it twice, is a loop nest that stands for the same node
    if instruction.name == "pack":
        return []
    overwrites = root.op.overwrites if isinstance(root.op, CustomOp) else None
    if nest is None and overwrites is not None:
        source, result = instruction.buffers[overwrites], instruction.buffers[len(root.inputs)]
        alone = source[0] == "input" and result[0] == "output" and instruction.buffers.count(source) == 1
        return [(source[1], result[1])] if alone else []
    if nest is None or nest.form in REDUCING_FORMS:
        return []
    buffers = instruction.buffers  # those of an epilogue come first, then the operands of its product
    reads: dict[int, list[Access]] = {}
    for step in nest.steps:
        if step.kind == "load" and step.access is not None:
            reads.setdefault(step.access.slot, []).append(step.access)
    found = []
    for store in nest.stores:
        if buffers[store.access.slot][0] != "output":
            continue
        for slot, accesses in reads.items():
            kind, index = buffers[slot]
            if kind != "input" or instruction.buffers.count(("input", index)) != 1:
                continue
            if all(_same_position(access, store.access) for access in accesses):
                found.append((index, buffers[store.access.slot][1]))
    return found


def _same_position(a: Access, b: Access) -> bool:
    return (
        a.dtype is b.dtype
        and a.offset == b.offset
        and a.strides == b.strides
        and not a.dynamic
        and not b.dynamic
    )
