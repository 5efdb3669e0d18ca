"""Symbolic programs in the form of the core: steps, and a size program for all integers that depend on sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.compiler.compile import FlatProgram, NestedPrograms
from twofold.compiler.portable_template import ProgramTemplate
from twofold.ir.recording import Recording
from twofold.ir.size_program import SizeProgram
from twofold.ir.sizes import is_symbolic

Step = tuple[Any, tuple[Any, ...], int, int, "tuple[Any, ...] | None"]
"""An instruction: kernel, buffers, number of parameters, label, and what runs in place of a kernel.

The last is ``(programs, labels, form)`` of control flow, or a function from parameters to a host function, and their
number.
"""


def planned(recording: Recording, compiled: Callable[[], FlatProgram]) -> ProgramTemplate:
    """Compile a program over symbols.

    The program has all guards of the recording, those of earlier parts too, as these may have computed what is found in
    caches here.

    Args:
        recording: The recording of the symbols.
        compiled: Compiles the program.
    """
    recording.strict = False  # plans keep the bits, whatever sizes they assume to be equal
    program = compiled()
    results: list[Any] = []
    steps = _steps(program, results)
    sizes = SizeProgram(recording, results, recording.guards).encoded()
    return ProgramTemplate.of((sizes, steps), program)


def _steps(program: FlatProgram, results: list[Any]) -> tuple[Any, ...]:
    """A program without its integers, which are appended to ``results`` in the order of the core."""
    steps: list[Step] = []
    for address, buffers, params, work, grain, label, host in program.instructions:
        results += [*params, work, grain]
        nested: Any = None
        if isinstance(host, NestedPrograms):
            nested = [_steps(part, results) for part in host.programs], host.labels, host.form
            results += host.numbers
        elif host is not None:
            maker, parameters = host.with_parameters()
            nested = maker, len(parameters)
            results += parameters
        steps.append((address, buffers, len(params), label, nested))
    results += [*(type.nbytes for type in program.output_types), *program.buffer_sizes]
    if any(is_symbolic(part) for step in steps for part in step[:4]):
        raise NotImplementedError("a step depends on a size")
    counts = len(program.output_types), len(program.buffer_sizes)
    return steps, *counts, program.donations, program.nested_nanoseconds, program.tells_finite
