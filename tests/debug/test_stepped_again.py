"""Programs that come to the same function, generator or callback again step as in plain define-by-run."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import twofold as torch
from tests.debug import stepped_again as programs
from tests.debug.step_recorder import stepped, value_of
from tests.debug.test_stepping import compare, tensor
from twofold import debug

PROGRAMS = [
    one
    for name, one in vars(programs).items()
    if inspect.isfunction(one) and one.__module__ == programs.__name__ and "x" in inspect.signature(one).parameters
]  # fmt: skip


def arguments_of(program: Any) -> list[Any]:
    return [tensor(1.0, 2.0), tensor(3.0, 4.0)][: len(inspect.signature(program).parameters)]


@pytest.mark.parametrize("compiles", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_a_program_steps_as_it_runs(program: Any, compiles: bool) -> None:
    function = torch.compile(program) if compiles else program
    usual = function(*arguments_of(program))
    recorder = stepped(programs, debug.run, function, *arguments_of(program))
    compare(recorder, stepped(programs, program, *arguments_of(program)))
    assert value_of(recorder.result) == value_of(usual)
