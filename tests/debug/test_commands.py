"""The commands of the command line that look at the machine and into programs, and stories of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import twofold as torch
import twofold.static as tf
from twofold.__main__ import main
from twofold.compiler.disk_cache import DiskCache
from twofold.errors import ArgumentError, ShapeError

PROGRAM = """
import sys
import twofold as torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (w * w).sum()
answer = loss.item() if "look" in sys.argv else None
number = 3
"""


TRAINING = """import twofold as torch

w = torch.ones(2, 2, requires_grad=True)
optimizer = torch.optim.SGD([w], 0.1)
for step in range(3):
    loss = (w @ w).tanh().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


DECLARED = """import twofold.static as tf

with tf.Graph().as_default():
    y = tf.constant(1.0) * 2.0
twice = lambda x: x * 2
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_info(capsys: Any) -> None:
    assert main(["info"]) == 0
    shown = capsys.readouterr().out
    assert "Gflop/s" in shown and "GB/s" in shown and "kernels" in shown


def test_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("TWOFOLD_CACHE_DIR", str(tmp_path / "cache"))
    cache = DiskCache(tmp_path / "cache")
    for key in ("good", "bad"):
        cache.write(key, b"x" * 5000)
    (tmp_path / "cache" / "bad").chmod(0o600)
    (tmp_path / "cache" / "bad").write_bytes(b"nonsense")
    assert main(["cache", "size"]) == 0 and "2 kernels, 12,288 bytes" in capsys.readouterr().out
    assert main(["cache", "verify"]) == 1 and "1 files failed their check: bad" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0 and cache.keys() == [] and cache.size() == 0


def test_draw_and_trace(script: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "loss.json"
    assert main(["draw", str(script), "loss", "--out", str(out)]) == 0
    labels = [node["label"] for node in json.loads(out.read_text())["graphs"][0]["nodes"]]
    assert labels[-2:] == ["multiply", "sum"]
    capsys.readouterr()
    assert main(["trace", str(script), "loss"]) == 0
    shown = capsys.readouterr().out
    assert "program.py:5" in shown and "loss = (w * w).sum()" in shown and "[1., 4.]" in shown
    capsys.readouterr()
    for command, done in (("draw", "drawn"), ("trace", "told")):
        assert main([command, str(script), "number"]) == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.startswith(f"twofold {command}: int cannot be {done}. Give a tensor")


def test_an_error_of_the_program_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text("import twofold as torch\nx = torch.ones(2, 3)\ny = x @ x\n")
    for command in ("draw", "trace"):
        with pytest.raises(ShapeError, match="matmul") as caught:
            main([command, str(path), "y"])
        assert caught.traceback[-1].lineno == 2


def test_a_loss_that_a_training_loop_has_used_up(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "training.py"
    path.write_text(TRAINING)
    assert main(["trace", str(path), "loss"]) == 0
    shown = capsys.readouterr().out
    assert "training.py:6" in shown and "tanh" in shown and "sum" in shown


def test_a_variable_that_is_not_there(script: Path) -> None:
    with pytest.raises(SystemExit, match="no variable 'lost'"):
        main(["draw", str(script), "lost"])


def test_what_cannot_be_drawn_or_told(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "declared.py"
    path.write_text(DECLARED)
    assert main(["trace", str(path), "y"]) == 2 and "twofold draw" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="twice is a function, which computes nothing before it is called"):
        main(["draw", str(path), "twice"])
    for command in (
        ["draw", "lost.py", "y"],
        ["trace", "lost.py", "y"],
        ["profile", "lost.py"],
        ["debug", "lost.py"],
    ):
        with pytest.raises(SystemExit) as end:
            main(command)
        assert end.value.code == 2 and "there is no program lost.py" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, said", [(["--help"], "--frameworks"), (["--only", "no such", "--rounds", "1"], "")]
)
def test_bench(arguments: list[str], said: str, capfd: Any) -> None:
    assert main(["bench", *arguments]) == 0
    assert said in capfd.readouterr().out


def test_profile(script: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "line.json"
    assert main(["profile", "--timeline", str(out), str(script), "look"]) == 0
    assert "program.py:5" in capsys.readouterr().out and json.loads(out.read_text())["traceEvents"]


def test_stories_tell_sums_of_gradients_in_the_backward_pass() -> None:
    def told(story: Any) -> list[str]:
        lines = [line.strip() for line in str(story).splitlines()]
        begin = lines.index("backward")
        assert lines.count("forward") == lines.count("backward") == 1 and lines.index("forward") < begin
        return [
            line.split(" = ")[1].split("(")[0] for line in lines[begin:] if " = " in line and line[0] in "vo"
        ]

    steps = ["ones", "gradient of sum", "gradient of multiply", "gradient of multiply", "add"]
    x = torch.ones(2, requires_grad=True)
    assert told(torch.debug.story(lambda: (x * x).sum(), backward=True)) == steps
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.ones([2]) * 1.5
        session.run(tf.gradients(tf.reduce_sum(y * y), y))
        assert told(torch.debug.story(session)) == steps


def test_a_story_goes_forward_and_then_backward() -> None:
    w = torch.tensor([2.0, -1.0], requires_grad=True)
    told = str(torch.debug.story(lambda: (w * 3.0).exp().log().sum(), backward=True))
    forward, backward = told.split("\nbackward")
    calls = [forward.index(f"= {name}(") for name in ("multiply", "exp", "log", "sum")]
    assert calls == sorted(calls)
    assert "gradient of" not in forward and "= gradient of log(" in backward and "= ones()" in backward
    assert "[ 6., -3.]" in forward and "[3., 3.]" in backward


def test_the_story_of_a_session_is_that_of_its_last_run() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2], name="x")
        w = tf.get_variable("w", initializer=[1.0, 2.0])
        loss = tf.reduce_sum(tf.square(x * w))
        step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
        with pytest.raises(ArgumentError, match="the session has not run"):
            torch.debug.story(session)
        session.run(tf.global_variables_initializer())
        session.run([loss, step], {x: [3.0, 1.0]})
        told = str(torch.debug.story(session))
        with pytest.raises(ArgumentError, match="story: backward of a session"):
            torch.debug.story(session, backward=True)
    assert "v1 = multiply(x:0, w:0)" in told and "[3., 2.]" in told and "[13.]" in told
    assert "gradient of square(" in told and "[-8.,  0.]" in told
