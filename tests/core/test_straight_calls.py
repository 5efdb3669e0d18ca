"""Calls whose Python numbers any dtype beside them holds are recorded without running Python code; others not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold.ir.op import REGISTRY

MASK = torch.tensor([True, False])
X, Y, INT = torch.tensor([1.0, -2.0]), torch.tensor([3.0, 4.0]), torch.tensor([1, -2])
HALF, THREE = X.half(), torch.tensor(3.0)

STRAIGHT: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "where": (lambda: torch.where(MASK, X, Y), [1.0, 4.0]),
    "where, number": (lambda: torch.where(MASK, 5, X), [5.0, -2.0]),
    "where, integers": (lambda: torch.where(MASK, INT, 100), [1, 100]),
    "masked_fill": (lambda: X.masked_fill(MASK, 0.0), [0.0, -2.0]),
    "masked_fill, large": (lambda: X.masked_fill(MASK, -(2.0**100)), [-(2.0**100), -2.0]),
    "masked_fill, infinite": (lambda: X.masked_fill(MASK, float("-inf")), [float("-inf"), -2.0]),
    "masked_fill, tensor": (lambda: X.masked_fill(MASK, THREE), [3.0, -2.0]),
    "masked_fill, integers": (lambda: INT.masked_fill(MASK, -100), [-100, -2]),
    "masked_fill, bools": (lambda: MASK.masked_fill(MASK, False), [False, False]),
    "clamp": (lambda: X.clamp(0.0, 0.5), [0.5, 0.0]),
    "clamp_min": (lambda: X.clamp_min(0.5), [1.0, 0.5]),
    "clamp_min, half": (lambda: HALF.clamp_min(60000), [60000.0, 60000.0]),
    "clamp_max": (lambda: torch.clamp_max(X, Y), [1.0, -2.0]),
    "threshold": (lambda: torch.threshold(X, 0.5, 9.0), [1.0, 9.0]),
}  # fmt: skip

CHECKED: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "where, a larger integer": (lambda: torch.where(MASK, INT, 128), [1, 128]),
    "masked_fill, a fraction": (lambda: INT.masked_fill(MASK, 1.5), [1, -2]),
    "masked_fill, very large": (lambda: HALF.double().masked_fill(MASK, 1e300), [1e300, -2.0]),
    "clamp, no number": (lambda: X.clamp(None, 0.5), [0.5, -2.0]),
    "threshold, integers and a fraction": (lambda: torch.threshold(INT, 0.5, 9.5), [1, 9]),
}  # fmt: skip


def python_calls(function: Callable[[], Any]) -> tuple[Any, int]:
    """The result of a call, and how many Python functions ran inside."""
    names = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            names.append(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else "")

    sys.setprofile(note)
    try:
        result = function()
    finally:
        sys.setprofile(None)
    return result, len(names) - 1


@pytest.mark.parametrize("name", STRAIGHT)
def test_no_python_code_runs(name: str) -> None:
    call, expected = STRAIGHT[name]
    assert call().tolist() == expected  # the first call asks Python for the type of the result
    result, calls = python_calls(call)
    assert (result.tolist(), calls) == (expected, 0)


@pytest.mark.parametrize("name", CHECKED)
def test_numbers_that_python_has_to_check(name: str) -> None:
    call, expected = CHECKED[name]
    assert call().tolist() == expected
    assert call().tolist() == expected  # repeated by the types


def test_the_entries_say_so() -> None:
    """Nothing but the attribute of an entry makes its calls straight; each such entry has a call above."""
    found = {name for name, op in REGISTRY.items() if getattr(op, "checks_numbers", False)}
    assert found == {name.split(",")[0] for name in STRAIGHT}
    assert all(getattr(REGISTRY[name], "arity", None) for name in found)
