"""Variables hold what they hold in plain define-by-run where tensors, lists and dictionaries were written to."""

from __future__ import annotations

from typing import Any

import pytest

import twofold as torch
from tests.debug import stepped_writes as programs
from tests.debug.step_recorder import arguments_of, programs_of, stepped, steps_as_it_runs
from tests.debug.test_stepping import mirrored, requiring
from twofold import debug

NOT_TOLD = [programs.in_order, programs.chosen, programs.of_a_layer, programs.counter_bound_again]
PROGRAMS = [one for one in programs_of(programs) if one not in (programs.collected, *NOT_TOLD)]


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


@pytest.mark.parametrize("compiles", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("program", NOT_TOLD, ids=lambda one: one.__name__)
def test_what_the_source_does_not_tell_is_missing(program: Any, compiles: bool) -> None:
    function = torch.compile(program) if compiles else program
    found = stepped(programs, debug.run, function, *arguments_of(program))
    plain = stepped(programs, program, *arguments_of(program))
    expected = plain.on_lines(found.lines)
    assert len(found.seen) == len(expected) > 2
    for one, other in zip(found.seen, expected):
        assert one[:2] == other[:2]
        assert one.values.items() <= other.values.items()
