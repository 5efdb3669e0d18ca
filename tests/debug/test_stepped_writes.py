"""Variables hold what they hold in plain define-by-run where tensors, lists and dictionaries were written to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.debug import stepped_writes as programs
from tests.debug.step_recorder import arguments_of, programs_of, stepped, steps_as_it_runs
from tests.debug.test_stepping import mirrored, requiring
from twofold import debug

PROGRAMS = [one for one in programs_of(programs) if one not in (programs.collected, programs.differentiated)]


@pytest.mark.parametrize("compiles", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_a_program_steps_as_it_runs(program: Any, compiles: bool) -> None:
    steps_as_it_runs(programs, program, compiles)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_the_backward_pass_is_the_mirror(program: Any) -> None:
    recorder = stepped(
        programs, debug.run, programs.differentiated, program, *requiring(arguments_of(program))
    )
    plain = stepped(programs, programs.differentiated, program, *requiring(arguments_of(program)))
    mirrored(recorder, plain)
