"""Calls and runs inside of the Python that plans a run, as of a debugger that prints a tensor there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold import _core

NUMBERS = torch.arange(6.0)
TWICE = [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def forward(size: int) -> Any:
    x = torch.linspace(0.1, 1.0, size, requires_grad=True)
    y = torch.tanh(x) * x
    z = torch.cat([y, y.flip(0)])[1:]
    return x, (z.cumsum(0) * z).sum() + torch.nn.functional.softmax(x, 0).max()


def differentiated(size: int) -> list[Any]:
    x, w = forward(size)
    w.backward()
    return [w.item(), *x.grad.tolist()]


def inside(action: Callable[[], Any], function: Callable[..., Any], *arguments: Any) -> tuple[Any, list[Any]]:
    """The result of a function with an action done in each call of Python in the library."""
    found: list[Any] = []

    def trace(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and "twofold" in frame.f_code.co_filename and frame.f_code.co_filename != __file__:
            sys.settrace(None)
            try:
                found.append(action())
            finally:
                sys.settrace(trace)

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return function(*arguments), found
    finally:
        sys.settrace(before)


@pytest.mark.parametrize(
    "action",
    [_core.flush, lambda: NUMBERS * 2, lambda: (NUMBERS * 2).tolist()],
    ids=["run", "record", "read"],
)
def test_what_runs_inside_of_planning_leaves_the_program_right(action: Callable[[], Any]) -> None:
    size = 1013 + len(str(action))  # of a size that nothing was planned for
    for _ in range(3):
        size += 1
        (x, w), found = inside(action, forward, size)
        value, inner = inside(action, w.item)
        w.backward()
        assert [value, *x.grad.tolist()] == differentiated(size)
        for one in (*found, *inner):
            assert one is None or (one if isinstance(one, list) else one.tolist()) == TWICE


def test_a_run_inside_of_a_backward_pass_is_an_error_of_that_pass() -> None:
    for size in (1113, 1114):
        _, w = forward(size)
        try:
            inside(_core.flush, w.backward)
        except RuntimeError as error:
            assert "a value was read inside of the library" in str(error)
        assert differentiated(size) == differentiated(size)
