"""Templates of traces and of batched calls: programs for symbolic sizes, or for a symbolic batch size.

See ``twofold.compiler.templates`` for those of single calls. The planner is imported only where no plan is saved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from twofold.compiler.batches import Batch
from twofold.compiler.lower.mode import MODE
from twofold.compiler.portable_template import ProgramTemplate
from twofold.compiler.portable_trace import PortableTrace
from twofold.compiler.saved_plans import saved_plans
from twofold.compiler.templates import matching_program
from twofold.ir.attribute_numbers import constants, numbers_in, replace_numbers
from twofold.ir.recording import Facts, Recording

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
        from twofold.compiler.symbolic_programs import trace_program

        return trace_program(recording, trace, given)

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
        from twofold.compiler.symbolic_programs import batch_program

        return batch_program(recording, batch)

    elsewhere = call and partial(call, template_batch, batch, count)
    return matching_program(batch.key, values, make, elsewhere)
