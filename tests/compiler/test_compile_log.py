"""``TWOFOLD_LOG=compile``: a line for each trace that is compiled: where, what, why again, how long."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from twofold.ir.graph import called
from twofold.ir.text import parse_graph
from twofold.ir.verify import verify

LINE = re.compile(
    r"twofold\.compile: (?P<location>.*?): (?P<count>\d+) operations? in (?P<kernels>\d+) kernels?"
    r"(?P<sizes> for all sizes)? \(\d+ new\); (?P<why>.*);"
    r" plan (?P<plan>[\d.]+) ms, LLVM (?P<llvm>[\d.]+) ms(?P<background>, in the background)?$"
)

STEP = """
import twofold as torch

def step(size, dtype=torch.float32, f=torch.tanh, shift=1.0, axis=0):
    x = torch.ones(size, 4, dtype=dtype) if isinstance(size, int) else size
    y = f(x * 2.0)
    return y.sum(axis).sum().item()

def often(*given, **named):
    # until it is compiled, which other sizes are once they have run as long as that takes
    before = torch.stats().fused
    while torch.stats().fused == before:
        for _ in range(2):
            step(*given, **named)
        torch.wait_for_compiler()

"""


def logged(tmp_path: Path, text: str, **environment: str) -> list[str]:
    """What a program writes to standard error."""
    file = tmp_path / "program.py"
    file.write_text(text)
    settings = {
        "TWOFOLD_LOG": "compile",
        "TWOFOLD_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": ":".join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, str(file)], env=settings | environment, capture_output=True, text=True, check=True
    )
    return done.stderr.splitlines()


def parsed(lines: list[str]) -> list[dict[str, str | None]]:
    found = []
    for line in lines:
        match = LINE.match(line)
        assert match, line
        found.append(match.groupdict())
    return found


def test_one_line_for_each_trace_with_its_lines_and_its_parts(tmp_path: Path) -> None:
    (line,) = parsed(logged(tmp_path, STEP + "often(3)\n"))
    assert line["location"] == "program.py:5 to program.py:7"
    assert line["count"] == "5"
    assert int(line["kernels"] or 0) >= 1
    assert line["why"] == "new"
    assert line["background"]
    assert float(line["llvm"] or 0) > 0


def test_a_thread_that_writes_at_the_end_does_not_abort_the_program() -> None:
    text = """
import atexit
import threading
import time

atexit.register(time.sleep, 0.1)  # after logging has shut down

from twofold.compiler.log import log

def write():
    while True:
        log("compile", "x" * 10000)
        time.sleep(0.001)

threading.Thread(target=write, daemon=True).start()
time.sleep(0.2)
"""
    program = [sys.executable, "-c", text]
    with subprocess.Popen(program, env={"PYTHONPATH": ":".join(sys.path)}, stderr=subprocess.PIPE) as running:
        assert running.stderr
        chunk = b"x"
        while chunk:  # slowly, so that the thread is nearly always in the middle of a line
            time.sleep(0.005)
            chunk = running.stderr.read1(4096)  # type: ignore[attr-defined]
    assert running.returncode == 0


def test_nothing_is_logged_unless_asked_for(tmp_path: Path) -> None:
    assert logged(tmp_path, STEP + "often(3)\n", TWOFOLD_LOG="") == []


def test_why_a_trace_is_compiled_again(tmp_path: Path) -> None:
    program = """
often(3)
often(5)
often(5, torch.float64)
often(5, f=torch.relu)
often(5, axis=1)
for width, dtype in ((7, torch.float32), (8, torch.float32), (8, torch.float64)):
    x = torch.ones(2, width, dtype=dtype)
    x.tolist()
    often(x)
"""
    found = [line["why"] for line in parsed(logged(tmp_path, STEP + program))]
    assert found == [
        "new",
        "size: ones had ((3, 4), twofold.float32), now ((5, 4), twofold.float32)",
        "dtype: ones had ((5, 4), twofold.float32), now ((5, 4), twofold.float64)",
        "structure: operation 2 was tanh, now relu",
        "attributes: sum had ((0,), False), now ((1,), False)",
        "structure: operation 0 was ones, now multiply",
        "size: input 0 was float32[2,7], now float32[2,8]",
        "dtype: input 0 was float32[2,8], now float64[2,8]",
    ]


def test_a_trace_compiled_at_once_and_a_declared_graph(tmp_path: Path) -> None:
    program = """
import numpy
import twofold.static as tf
x = tf.placeholder(tf.float32, [None])
y = tf.reduce_sum(tf.exp(x))
with tf.Session() as session:
    for _ in range(3):
        session.run(y, {x: numpy.ones(3, "float32")})
"""
    (line,) = parsed(logged(tmp_path, program, TWOFOLD_TIER="fused"))
    assert line["location"] == "program.py:5"
    assert line["background"] is None
    assert line["count"] == "2"


def test_a_program_may_handle_the_lines_itself(tmp_path: Path) -> None:
    program = """
import logging
logging.basicConfig(format="own %(levelname)s %(name)s %(message)s", level=logging.INFO)
"""
    lines = logged(tmp_path, program + STEP + "often(3)\n")
    assert len(lines) == 1
    assert lines[0].startswith("own INFO twofold.compile program.py:8 to program.py:10: 5 operations in ")


def test_why_a_call_has_no_template(tmp_path: Path) -> None:
    program = """
import twofold as torch
for n in range(2, 6):
    torch.matrix_power(torch.eye(3), n).sum().item()
"""
    lines = logged(tmp_path, program, TWOFOLD_LOG="templates")
    assert lines
    for line in lines:
        assert line.startswith("twofold.templates: no plan for symbolic sizes: "), line


def test_a_compile_that_fails_is_told(tmp_path: Path) -> None:
    program = """
from twofold.compiler import linking
def failing(trace):
    raise RuntimeError("no kernels today")
linking.compile_outlined = failing
"""
    lines = logged(tmp_path, STEP + program + "step(3), step(3)\nimport time\ntime.sleep(1)\n")
    told = "failed, operations run one by one: RuntimeError('no kernels today')"
    assert lines == [f"twofold.compile: program.py:5 to program.py:7: {told}"]


def test_the_graph_of_calls_of_a_long_trace(tmp_path: Path) -> None:
    program = """
import twofold as torch
torch.config.background_compile = False
def chain():
    x = torch.linspace(-1, 1, 50)
    for i in range(100):
        x = torch.cumsum(torch.sin(x), 0)
    return x.sum().item()
chain(), chain(), chain()
"""
    lines = logged(tmp_path, program, TWOFOLD_LOG="bodies")
    assert re.match(r"twofold.bodies: program.py:\d+ to program.py:\d+: \d+ calls$", lines[0])
    graph = parse_graph("\n".join(lines[1:]))
    verify(graph)
    calls = [body for node in graph.nodes() if (body := called(node)) is not None]
    assert len(calls) == int(lines[0].split()[-2]) > len(set(calls)) > 1
