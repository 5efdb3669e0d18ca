"""A program that is stepped through comes by all lines that it comes by as it runs, with all that variables hold."""

from __future__ import annotations

from typing import Any

import pytest

import twofold as torch
from tests.debug import stepped_control, stepped_data
from tests.debug.step_recorder import StepRecorder, programs_of, stepped, value_of
from twofold import debug

PROGRAMS = [(module, one) for module in (stepped_control, stepped_data) for one in programs_of(module)]
TRAINED = {"sgd_loop", "optimiser_loop", "gradient_penalty"}  # which ``compile`` does not declare


def arguments() -> list[Any]:
    return [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])]


def everything(recorder: StepRecorder) -> list[Any]:
    """All steps of the forward pass, with all tensors, lists and dictionaries of these."""
    forward = [one for one in recorder.seen if not one.function.endswith(" (backward)")]
    return [(*one.what, one.collections) for one in forward]


@pytest.mark.parametrize("compiles", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("module, program", PROGRAMS, ids=lambda one: getattr(one, "__name__", ""))
def test_every_line_is_stepped_through(module: Any, program: Any, compiles: bool) -> None:
    if compiles and program.__name__ in TRAINED:
        pytest.skip("what differentiates inside is not compiled")
    function = torch.compile(program) if compiles else program
    usual = program(*arguments())
    recorder = stepped(module, debug.run, function, *arguments())
    assert everything(recorder) == everything(stepped(module, program, *arguments()))
    assert value_of(recorder.result) == value_of(usual)
