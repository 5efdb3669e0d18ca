"""Finalisers that the garbage collector calls while a program is recorded line by line, or on a tape."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

import twofold as torch
from tests.debug.step_recorder import stepped, value_of
from tests.debug.stepped_control import beam_dict
from twofold import debug
from twofold.debug.line_trace import LineTrace, Stretch


class Collected:
    """Garbage that only the collector finds; its finaliser computes now and then, and leaves as much garbage behind."""

    finalised = 0
    goes_on = True

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        Collected.finalised += 1
        if Collected.goes_on:
            Collected()
        if Collected.finalised % 16 == 0:
            assert (torch.ones(2) * 3).sum().item() == 6


@pytest.fixture(params=[1, 3, 7, 60])
def collects_often(request: pytest.FixtureRequest) -> Iterator[None]:
    before = gc.get_threshold()
    Collected.goes_on = True
    for _ in range(3):
        Collected()
    gc.set_threshold(request.param, 1 << 30, 1 << 30)  # the youngest alone
    yield
    gc.set_threshold(*before)
    Collected.goes_on = False
    gc.collect()


@pytest.mark.usefixtures("collects_often")
def test_finalisers_run_what_is_recorded_for_the_debugger() -> None:
    arguments = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    usual, before = value_of(beam_dict(*arguments)), Collected.finalised
    for _ in range(2):
        recorder = stepped(beam_dict, debug.run, beam_dict, *arguments)
        assert value_of(recorder.result) == usual
    assert Collected.finalised > before


@pytest.mark.usefixtures("collects_often")
def test_a_line_does_not_do_what_finalisers_do() -> None:
    def program(x: Any) -> Any:
        y = x * 2
        return y + 1

    trace = LineTrace([])
    trace.run(program, [torch.ones(2)], {})
    (ran,) = [one for one in trace.root.last.did if isinstance(one, Stretch)]
    assert ran.code is program.__code__
    assert not [one for step in ran.steps for one in step.did if isinstance(one, Stretch)]
