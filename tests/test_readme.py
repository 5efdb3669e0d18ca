"""The programs of the README run, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("index", range(len(PROGRAMS)))
def test_program_learns(index: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(PROGRAMS[index], f"README.md, program {index + 1}", "exec"), {"__name__": "__main__"})
    losses = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    assert len(losses) == 3 and losses[-1] < losses[0] / 2


def test_there_are_two_programs() -> None:
    assert len(PROGRAMS) == 2


@pytest.mark.parametrize(
    "target", re.findall(r"\]\(([^)#:]+)\)", README) + re.findall(r"`((?:twofold|tests)/\S+)`", README)
)
def test_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()
