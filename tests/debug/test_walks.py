"""The walks of docs/debugging.md are what happens: their programs run, and say what the page says."""

from __future__ import annotations

import itertools
import os
import re
import runpy
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

import twofold as torch
from tests.debug import wrong_compiler
from twofold.errors import AnomalyError, VerificationError

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


ELISION = "..."


def said_in_order(text: str, shown: str) -> None:
    """Fails where a text has not what the page shows: ``...`` stands for anything, and lines may be broken."""
    text = " ".join(text.split())
    for part in re.split(r"\.\.\.", shown):
        words = " ".join(part.split())
        assert words in text, (words, text)
        text = text[text.index(words) + len(words) :]


def program_of(section: str, sign: str, folder: Path) -> Path:
    """A program of the page as a file."""
    (program,) = [block for block in blocks(section) if sign in block]
    path = folder / "train.py"
    path.write_text(program)
    return path


def test_an_index_that_does_not_exist(tmp_path: Path) -> None:
    path = program_of("Errors", "def loss_of", tmp_path)
    (shown,) = [block for block in blocks("Errors") if block.startswith("Traceback")]
    done = subprocess.run(
        [sys.executable, path.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    said_in_order(done.stderr.replace(f"{tmp_path}{os.sep}", ""), shown)
    (talk,) = [block for block in blocks("Errors") if "pdb.pm" in block]
    done = subprocess.run(
        [sys.executable, "-m", "pdb", "-c", "continue", path.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input="".join(line + "\n" for line in re.findall(r"\(Pdb\) (.*)", talk)) + "q\n",
        capture_output=True,
        text=True,
        check=False,
    )
    told = done.stdout.replace(f"{tmp_path}{os.sep}", "").replace("(Pdb) ", "")
    said_in_order(told, talk.split("pdb.pm()")[1].replace("(Pdb) p targets.max()", ELISION))


def test_a_compiler_that_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    path = program_of("Verify", "def network", tmp_path)
    torch._core.flush()  # the script shows the whole trace, also what tests before recorded
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    wrong_compiler.plant(monkeypatch)
    try:
        with pytest.raises(VerificationError) as caught:
            runpy.run_path(str(path), run_name="__main__")
        error = caught.value
        assert error.script is not None
        capsys.readouterr()
        with pytest.raises(SystemExit):
            runpy.run_path(error.script, run_name="__main__")
    finally:
        wrong_compiler.remove()
    told = "".join(traceback.format_exception(error)).replace(f"{tmp_path}{os.sep}", "")
    told = told.replace(error.script, "/tmp/twofold-verify-x1/cos_differs.py")
    (shown,) = [block for block in blocks("Verify") if "VerificationError" in block]
    said_in_order(told, shown)
    (script,) = [block for block in blocks("Verify") if "def program" in block]
    assert script in Path(error.script).read_text()
    (result,) = [block for block in blocks("Verify") if block.startswith("$ python")]
    assert capsys.readouterr().out == result.split("\n", 1)[1]


def test_a_step_that_takes_long(tmp_path: Path) -> None:
    path = program_of("Why and how long", "def spread", tmp_path)
    space = runpy.run_path(str(path))
    step = space["step"]
    x, w = torch.randn(256, 64), torch.randn(64, 32, requires_grad=True)
    optimizer = torch.optim.SGD([w], 0.0)
    for _ in range(2):
        for _ in range(8):
            step(x, w, optimizer)
        w.tolist()
        torch.wait_for_compiler()
    with torch.profile() as p:
        for _ in range(20):
            step(x, w, optimizer)
        w.tolist()
    rows = p.by_line()
    spread = [row for row in rows if " in spread" in row.what]
    assert " in spread" in rows[0].what
    assert sum(row.seconds for row in spread) > 0.6 * p.wall.kernels
    h = torch.relu(x @ w)
    (instead,) = re.findall(r"`(2 \* \(h.*\.mean\(\))`", PAGE)
    assert eval(instead, {"h": h}).item() == pytest.approx(space["spread"](h).item(), rel=1e-4)


def test_a_network_that_does_not_learn(tmp_path: Path) -> None:
    path = program_of("Pictures", "class Block", tmp_path)
    view = runpy.run_path(str(path))["drawing"].picture.views[0]
    found = [
        (step.lines[0], step.boxes[2], view.data[step.outputs[0]].magnitude)
        for step in view.steps
        if step.backward and step.name == "sigmoid"
    ]
    assert [box for _, box, _ in found] == ["5", "4", "3", "2", "1", "0"]
    assert {line for line, _, _ in found} == {"train.py:11 in forward"}
    sizes = [size for *_, size in found]
    assert all(below < above / 4 for above, below in itertools.pairwise(sizes))
    assert f"{sizes[0]:.0e} {sizes[-1]:.0e}" == "3e-02 1e-06"
