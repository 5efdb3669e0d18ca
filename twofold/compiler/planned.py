"""Programs planned over symbols, as the core takes them: their steps, and their numbers as expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.compiler.compile import FlatProgram, Inside
from twofold.compiler.portable_template import ProgramTemplate
from twofold.ir.recording import Recording
from twofold.ir.size_program import SizeProgram
from twofold.ir.sizes import is_symbolic

Step = tuple[Any, tuple[Any, ...], int, int, "tuple[Any, ...] | None"]
"""Of a program: kernel, buffers, number of parameters, label, and what runs in place of a kernel.

That is (programs, labels, form), or what gives a function of the host for numbers, and how many.
"""


def planned(recording: Recording, compiled: Callable[[], FlatProgram]) -> ProgramTemplate:
    """A program whose numbers are expressions of symbols.

    All guards are checked, also those that other parts of the recording have met: what they computed may have been
    found again here.
    """
    recording.strict = False  # plans keep the bits, whatever they take for equal
    program = compiled()
    results: list[Any] = []
    steps = _steps(program, results)
    sizes = SizeProgram(recording, results, recording.guards).encoded()
    return ProgramTemplate.of((sizes, steps), program)


def _steps(program: FlatProgram, results: list[Any]) -> tuple[Any, ...]:
    """What the core takes of a program but for its numbers, which are put behind ``results`` in its order."""
    steps: list[Step] = []
    for address, buffers, params, work, grain, label, host in program.instructions:
        results += [*params, work, grain]
        inside: Any = None
        if isinstance(host, Inside):
            inside = [_steps(part, results) for part in host.programs], host.labels, host.form
            results += host.numbers
        elif host is not None:
            maker, parameters = host.with_parameters()
            inside = maker, len(parameters)
            results += parameters
        steps.append((address, buffers, len(params), label, inside))
    results += [*(type.nbytes for type in program.output_types), *program.buffer_sizes]
    if any(is_symbolic(part) for step in steps for part in step[:4]):
        raise NotImplementedError("a step depends on a size")
    counts = len(program.output_types), len(program.buffer_sizes)
    return steps, *counts, program.donations, program.further_work, program.tells_finite
