"""When a trace is compiled as one program, and when that program is kept."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy
import pytest

import twofold as torch
from twofold.compiler import fusing, linking, symbolic_programs, trace_templates
from twofold.compiler.compile import FlatProgram
from twofold.compiler.linking import Trace, compile_outlined


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def total(x: torch.Tensor, scale: float) -> float:
    return float((torch.tanh(x * scale) + torch.sigmoid(x) * 0.375).sum().item())


def test_other_sizes_without_a_plan_are_compiled_once_they_earned_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusing, "template_trace", lambda *_: None)
    sizes = [torch.ones(rows, 11) for rows in range(2, 42)]
    torch.wait_for_compiler()  # it may be busy with what earlier tests ran
    before = torch.stats().fused
    for x in sizes:
        for _ in range(3):
            total(x, 0.5)
        torch.wait_for_compiler()
    assert 1 <= torch.stats().fused - before <= 4  # a run that the machine holds up may count for many
    many = torch.stats().fused
    for _ in range(200_000):
        total(sizes[-1], 0.5)
        if torch.stats().fused > many:
            break
    torch.wait_for_compiler()
    assert torch.stats().fused > many


def test_a_slower_program_is_dropped_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_a_pause(trace: Trace) -> FlatProgram:
        made = compile_outlined(trace)
        pause = SimpleNamespace(function=lambda: lambda: busy(0.02))
        made.instructions.append((0, (), (), 1, 1, 0, pause))
        return made

    monkeypatch.setattr(linking, "compile_outlined", with_a_pause)
    monkeypatch.setattr(
        fusing.PortableTrace, "request", lambda self: None
    )  # not by the process, nor from disk
    x = torch.ones(7, 10)
    before = torch.stats()
    found = []
    for _ in range(14):
        found.append(torch.nn.functional.gelu(torch.softmax(x, 1), approximate="tanh").numpy().copy())
        torch.wait_for_compiler()
    after = torch.stats()
    assert after.fused - before.fused == 1
    assert after.fused_dropped - before.fused_dropped == 1
    for other in found[1:]:
        numpy.testing.assert_array_equal(found[0], other)


def test_other_sizes_with_a_plan_of_their_own_are_measured_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan that is slower for small sizes, as it was for single members of a family, says nothing of others."""
    runs: list[bool] = []

    def noted(small: bool) -> None:
        runs.append(small)
        if small:
            busy(0.02)

    def with_a_step(trace: Trace) -> FlatProgram:
        small = bool(trace.input_types[0].shape[0] < 50)
        made = compile_outlined(trace)
        step = SimpleNamespace(with_parameters=lambda: (lambda: lambda: noted(small), ()))
        made.instructions.append((0, (), (), 1, 1, 0, step))
        return made

    monkeypatch.setattr(symbolic_programs, "compile_outlined", with_a_step)
    monkeypatch.setattr(trace_templates, "saved_plans", lambda: SimpleNamespace(key=lambda *_: None))
    monkeypatch.setattr(fusing, "_elsewhere", lambda *_: None)
    for rows in (3, 5, 6, 70):
        x = torch.tensor(numpy.ones((rows, 13), numpy.float32))
        runs.clear()
        for _ in range(8):
            torch.expm1(torch.softmax(x, 1)).numpy()
            torch.wait_for_compiler()
        assert bool(runs) == (rows in (5, 70))
