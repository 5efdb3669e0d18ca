"""IPython's debugger steps through a graph, and back."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

import twofold as torch
from tests.debug import stepped_programs as programs
from twofold import debug

ipython = pytest.importorskip("IPython.core.debugger")


def test_ipdb_steps_forward_and_back() -> None:
    first = programs.straight.__code__.co_firstlineno
    there, back = (
        f"n|p h.tolist()|b {programs.__file__}:{first + 3}|c|p a.tolist()",
        "back(2)|n|n|n|p h.tolist()|c",
    )
    commands = f"{there}|{back}|".replace("|", "\n")
    shown = io.StringIO()
    debugger: Any = ipython.Pdb(stdin=io.StringIO(commands), stdout=shown)
    debugger.use_rawinput = False
    x, w = torch.tensor([1.0, 2.0]), torch.eye(2)
    debugger.runcall(debug.run, programs.straight, x, w)
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue())
    stops = [int(line) for line in re.findall(r"stepped_programs\.py\((\d+)\)straight\(\)", text)]
    assert stops[:3] == [first + 1, first + 2, first + 3]
    assert stops[3:6] in ([first + 1, first + 2, first + 3], [first, first + 1, first + 2])
    assert text.count("[1.0, 2.0]") >= 2
