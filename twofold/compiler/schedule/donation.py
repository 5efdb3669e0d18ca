"""Buffer donation: which outputs may be written into the buffer of an input, as in ``jax.jit(donate_argnums=...)``.

That is possible if one kernel writes the output at the same indices at which it reads the input, or declares that it
may (``CustomOp.overwrites``), and no later kernel reads the input. Whether the input is dead is known at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from twofold.compiler.lower.loopnest import REDUCING_FORMS, Access
from twofold.compiler.schedule.schedule import Instruction
from twofold.ir.op import ControlFlowOp, CustomOp, HostOp


def possible_donations(instructions: Sequence[Instruction]) -> list[tuple[int, int]]:
    """All pairs (input, output) that may share a buffer; each input and output may be used once, see ``matched``.

    No later kernel may report an error or be a host function: a program that fails is run again to find the line, and
    needs its inputs.
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
    """A greedy matching: pairs (input, output) in which each input and each output occurs once."""
    found: dict[int, int] = {}
    targets: set[int] = set()
    for source, target in pairs:
        if source not in found and target not in targets:
            found[source] = target
            targets.add(target)
    return list(found.items())


def may_fail(instruction: Instruction) -> bool:
    """Whether an instruction may report an error, or is a host function."""
    op = instruction.nodes[0].op
    if isinstance(op, CustomOp):
        return op.checks or op.may_fail
    return isinstance(op, (HostOp, ControlFlowOp))


def _candidates(instruction: Instruction) -> list[tuple[int, int]]:
    nest = instruction.nest
    root = instruction.nodes[0]
    # "pack" is another loop nest of the same node
    if instruction.name == "pack":
        return []
    overwrites = root.op.overwrites if isinstance(root.op, CustomOp) else None
    if nest is None and overwrites is not None:
        source, result = instruction.buffers[overwrites], instruction.buffers[len(root.inputs)]
        alone = source[0] == "input" and result[0] == "output" and instruction.buffers.count(source) == 1
        return [(source[1], result[1])] if alone else []
    if nest is None or nest.form in REDUCING_FORMS:
        return []
    buffers = instruction.buffers  # of an epilogue, before the operands of its product
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
            if all(_same_indices(access, store.access) for access in accesses):
                found.append((index, buffers[store.access.slot][1]))
    return found


def _same_indices(a: Access, b: Access) -> bool:
    return (
        a.dtype is b.dtype
        and a.offset == b.offset
        and a.strides == b.strides
        and not a.dynamic
        and not b.dynamic
    )
