"""The walks of docs/debugging.md are what happens: their programs run, and say what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from twofold.errors import AnomalyError

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")


def blocks(section: str) -> list[str]:
    """What stands between fences in a section of the page."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_a_loss_that_does_not_fall(tmp_path: Path) -> None:
    (program,) = [block for block in blocks("Stepping") if "def loss_of" in block]
    talks = [block for block in blocks("Stepping") if "(Pdb)" in block]
    (tmp_path / "train.py").write_text(program)
    commands = re.findall(r"^\(Pdb\) (.*)$", "\n".join(talks), re.MULTILINE)
    expected = re.findall(r"^(?!\(Pdb\))(.+)$", "\n".join(talks), re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-m", "twofold", "debug", "train.py"],
        input="\n".join(["b 23", "c", *commands, "q", ""]),
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = done.stdout.replace(str(tmp_path) + "/", "")
    for line in expected:
        assert line in said, said
        said = said[said.index(line) + len(line) :]


def test_a_loss_that_is_nan(tmp_path: Path) -> None:
    program, told = blocks("First bad value")[:2]
    path = tmp_path / "train.py"
    path.write_text("import twofold as torch\n\n\n" + program)
    with pytest.raises(AnomalyError) as caught:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    message = re.findall(r"AnomalyError: (.*): \.\.\.", told)
    assert message and message[0] in str(caught.value)
    assert (
        caught.traceback[-1].lineno + 1 == 6
    )  # the line of the root, below the three lines above the program
