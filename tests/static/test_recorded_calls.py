"""Calls of functions give TensorFlow's names, types, shapes and values."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold.static as tf

_SPEC = importlib.util.spec_from_file_location(
    "recorded_calls", Path(__file__).with_name("recorded_calls.py")
)
assert _SPEC is not None and _SPEC.loader is not None
calls: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(calls)


def recorded() -> Iterator[Any]:
    for family in calls.FAMILIES:
        for call, ways in json.loads((calls.CALLS / f"{family}.json").read_text()).items():
            yield pytest.param(call, ways, id=call)


def compare(found: Any, wanted: Any, marks: str) -> None:
    """One result; a size that TensorFlow does not know may be known."""
    if isinstance(wanted, str) or wanted[0] in ("variables", "penalties"):
        assert found == wanted
        return
    assert "?" in marks or found[0] == wanted[0]
    if wanted[0] == "operation":
        assert "?" in marks or found[1] == wanted[1]
        return
    assert found[1] == wanted[1] and found[3] == wanted[3]
    unknown = [None] * len(wanted[3])
    sizes = list(zip(found[2] or unknown, wanted[2] or unknown, wanted[3], strict=True))
    assert (
        all(size == true or (size is None and known is None) for size, known, true in sizes) or "?" in marks
    )
    if all(isinstance(value, (float, list)) for value in wanted[4]):
        numpy.testing.assert_allclose(found[4], wanted[4], rtol=2e-5, atol=2e-6)
    else:
        assert found[4] == wanted[4]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call, ways", recorded())
def test_call(call: str, ways: dict[str, Any]) -> None:
    for way, wanted in ways.items():
        found = json.loads(json.dumps(calls.outcome(tf, call, way)))
        assert len(found) == len(wanted), way
        for one, two in zip(found, wanted, strict=True):
            compare(one, two, calls.marks(call))
        assert any("mine" in one[:2] for one in found) or not any("mine" in one[:2] for one in wanted)
