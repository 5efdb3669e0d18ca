"""What functions of Python call, and what runs in pieces, steps as in plain define-by-run."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

from tests.debug import stepped_callbacks as programs
from tests.debug.step_recorder import arguments_of, programs_of, stepped, steps_as_it_runs
from tests.debug.test_stepping import mirrored, requiring
from twofold import debug

PROGRAMS = [
    one
    for one in programs_of(programs)
    if not one.__name__.startswith(("power", "scaled_by", "doubling", "halved"))
]
READS_VALUES = [programs.ordered, programs.filtered]  # to compare them; little of that is differentiated
HEADERS = {
    node.lineno
    for node in ast.walk(ast.parse(inspect.getsource(programs)))
    if isinstance(node, (ast.For, ast.While))
}
STOPS_WITHIN = [programs.collected, programs.changing, programs.nested_comprehension]
"""Whose lines are shared by what only one direction computes, or end where a function has no line behind them."""


@pytest.mark.parametrize("compiles", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_a_program_steps_as_it_runs(program: Any, compiles: bool) -> None:
    steps_as_it_runs(programs, program, compiles)


@pytest.mark.parametrize(
    "program",
    [one for one in PROGRAMS if one not in (*READS_VALUES, *STOPS_WITHIN)],
    ids=lambda one: one.__name__,
)
def test_the_backward_pass_is_the_mirror(program: Any) -> None:
    given = requiring(arguments_of(program))
    recorder = stepped(programs, debug.run, programs.differentiated, program, *given)
    given = requiring(arguments_of(program))
    mirrored(recorder, stepped(programs, programs.differentiated, program, *given), HEADERS)
