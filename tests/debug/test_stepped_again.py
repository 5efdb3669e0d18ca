"""Programs that come to the same function, generator or callback again step as in plain define-by-run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.debug import stepped_again as programs
from tests.debug.step_recorder import programs_of, steps_as_it_runs


@pytest.mark.parametrize("compiles", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("program", programs_of(programs), ids=lambda one: one.__name__)
def test_a_program_steps_as_it_runs(program: Any, compiles: bool) -> None:
    steps_as_it_runs(programs, program, compiles)
