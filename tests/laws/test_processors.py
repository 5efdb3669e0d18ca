"""Law 4: code made for another processor computes the same bits, without functions that only some machines have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiler.lower.processors import runnable

ROOT = Path(__file__).resolve().parents[2]


def computed(processor: str) -> dict[str, str]:
    """The hashes of the core set, in code for ``processor``."""
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "TWOFOLD_TARGET_CPU": processor}
    program = [sys.executable, str(ROOT / "tests" / "laws" / "core_set.py")]
    run = subprocess.run(program, env=settings, capture_output=True, text=True, timeout=1200, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    found: dict[str, str] = json.loads(run.stdout)
    return found


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    return computed("")


# one for each set of features; tests/compiler/lower/test_math.py has the others too
@pytest.mark.parametrize("processor", ["x86-64", "haswell"])
def test_the_core_set_has_the_same_bits(processor: str, here: dict[str, str]) -> None:
    if not runnable(processor):
        pytest.skip(f"this processor does not run code for {processor}")
    there = computed(processor)
    assert len(there) > 200
    assert [name for name in here if there[name] != here[name]] == []
