"""``python -m twofold debug``: programs under pdb with given commands."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from twofold.__main__ import main

PROGRAM = """\
import sys
import twofold as torch
import twofold.static as tf

def scaled(x):
    y = x * 2.0
    return y + 1.0

compiled = torch.compile(scaled)

def declared(x):
    h = tf.square(x)
    return h - 1.0

a = torch.tensor([1.0, 2.0])
b = scaled(a)
for number in range(2):
    c = compiled(b)
with tf.Graph().as_default(), tf.Session() as session:
    x = tf.placeholder(tf.float32, [2])
    fetched = declared(x)
    for value in (3.0, 5.0):
        d = session.run(fetched, {x: [value, value]})
print("ended with", sys.argv[1], c.tolist(), d.tolist())
"""


def debugged(
    program: str, commands: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, Path]:
    path = folder / "program.py"
    path.write_text(program)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*commands, ""])))
    return main(["debug", str(path), "argument"]), path


def test_a_program_stops_at_each_run_of_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    look = ["p 'seen', y.tolist()", "c"]
    commands = ["b 7", "b 13", "c", *look, *look, *look]
    commands += ["c", "p 'seen', h.tolist()", "c", "!h = h * 0", "c"]  # the first stop is the declaration
    status, path = debugged(PROGRAM, commands, tmp_path, monkeypatch)
    shown = capsys.readouterr().out
    seen = [line.removeprefix("(Pdb) ") for line in shown.splitlines() if line.startswith("(Pdb) ('seen'")]
    assert status == 0
    assert seen == [
        "('seen', [2.0, 4.0])",
        "('seen', [6.0, 10.0])",
        "('seen', [6.0, 10.0])",
        "('seen', [9.0, 9.0])",
    ]
    assert shown.count(f"> {path}(7)scaled()") == 3 and shown.count(f"> {path}(13)declared()") == 3
    assert "ended with argument [7.0, 11.0] [-1.0, -1.0]" in shown


ROUNDS = """\
import twofold.static as tf

def declared(x):
    kept = []
    for k in range(4):
        if k % 2 == 0:
            continue
        kept.append(x * float(k))
    return tf.add_n(kept)

with tf.Graph().as_default(), tf.Session() as session:
    x = tf.placeholder(tf.float32, [2])
    fetched = declared(x)
    session.run(fetched, {x: [1.0, 2.0]})
"""


def test_a_program_is_noted_as_it_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    look = ["c", "p 'seen', k, [one.tolist() for one in kept]"]
    commands = ["b 14", "c", "b 7", *look, *look, "q"]
    status, path = debugged(ROUNDS, commands, tmp_path, monkeypatch)
    shown = capsys.readouterr().out
    seen = [line.removeprefix("(Pdb) ") for line in shown.splitlines() if line.startswith("(Pdb) ('seen'")]
    assert shown.count(f"> {path}(7)declared()") == 2 and status == 0
    assert seen == ["('seen', 0, [])", "('seen', 2, [[1.0, 2.0]])"]


def test_steps_go_into_a_session_and_not_into_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    commands = ["b 23", "c", "s", "s", "s", "s", "s", "q"]
    status, path = debugged(PROGRAM, commands, tmp_path, monkeypatch)
    shown = capsys.readouterr().out
    stops = [
        line.removeprefix("(Pdb) ") for line in shown.splitlines() if line.startswith(("> ", "(Pdb) > "))
    ]
    assert status == 0 and all(line.startswith(f"> {path}(") for line in stops)
    assert any(line.endswith("(12)declared()") for line in stops)


def test_an_error_leaves_the_debugger_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    program = "def broken(n):\n    return 1 / n\n\nbroken(0)\n"
    status, path = debugged(program, ["c", "p 'n is', n", "q"], tmp_path, monkeypatch)
    shown = capsys.readouterr()
    assert status == 1 and "ZeroDivisionError" in shown.err
    assert f"> {path}(2)broken()" in shown.out and "('n is', 0)" in shown.out


def test_the_status_is_that_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert debugged("raise SystemExit(3)\n", ["c"], tmp_path, monkeypatch)[0] == 3
    assert "> " in capsys.readouterr().out


STOPPING = """\
import twofold as torch

@torch.compile
def scaled(x):
    y = x * 2.0
    breakpoint()
    return y + 1.0

for k in range(3):
    print("result", scaled(torch.tensor([float(k)])).tolist())
"""


def test_a_breakpoint_of_the_program_stops_in_each_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)
    status, path = debugged(STOPPING, ["c", *["p 'seen', y.tolist()", "c"] * 3], tmp_path, monkeypatch)
    shown = capsys.readouterr().out
    assert status == 0 and shown.count(f"> {path}(7)scaled()") == 3
    for k in range(3):
        assert f"('seen', [{2.0 * k}])" in shown and f"result [{2.0 * k + 1}]" in shown
