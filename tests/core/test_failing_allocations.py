"""Each single allocation may fail: a MemoryError says so, nothing crashes, and what runs later is right."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.core.in_child import UNDER_ADDRESS_SANITIZER, run

HERE = Path(__file__).parent
PROGRAM = "import sys; from tests.core.failing_allocations import main; main(*sys.argv[1:])"
COMPILER = shutil.which(os.environ.get("CXX", "g++"))


@pytest.mark.skipif(UNDER_ADDRESS_SANITIZER, reason="it has an allocator of its own")
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_of_the_core(tmp_path: Path) -> None:
    library = tmp_path / "failing_allocations.so"
    assert COMPILER is not None
    source = HERE / "failing_allocations.cc"
    subprocess.run([COMPILER, "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    run(PROGRAM, "core", str(library), LD_PRELOAD=str(library), TWOFOLD_THREADS="1")


@pytest.mark.skipif(importlib.util.find_spec("_testcapi") is None, reason="CPython without its test module")
def test_of_python() -> None:
    # CPython replaces the allocators of all threads, and one must not be inside of them
    run(PROGRAM, "python", "2000", TWOFOLD_THREADS="1", TWOFOLD_BACKGROUND="0")
