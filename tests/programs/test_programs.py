"""Short programs of PyTorch's users give the numbers that PyTorch 2.13 gave, and gives where it is installed.

python tests/programs/test_programs.py    # with PyTorch: records its numbers again
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import twofold

sys.path.insert(0, str(Path(__file__).resolve().parent))
from programs import PROGRAMS

RECORDED = Path(__file__).resolve().parent / "recorded.json"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_numbers_are_those_of_pytorch(program: Callable[[Any], list[float]]) -> None:
    wanted = json.loads(RECORDED.read_text())[program.__name__]
    assert program(twofold) == pytest.approx(wanted, rel=2e-3, abs=1e-5)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_recorded_numbers_are_still_those_of_pytorch(program: Callable[[Any], list[float]]) -> None:
    peer = pytest.importorskip("torch")
    wanted = json.loads(RECORDED.read_text())[program.__name__]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert program(peer) == pytest.approx(wanted, rel=1e-4, abs=1e-6)


if __name__ == "__main__":
    import torch as library

    found = {program.__name__: [float(f"{one:.8g}") for one in program(library)] for program in PROGRAMS}
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")
