"""Profiles: times stand at the lines, modules and operations that took them, and the parts sum to the whole."""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from tests.debug.tiers import tier
from twofold import _core, nn
from twofold.compiler.linking import Trace, compile_outlined
from twofold.config import config
from twofold.errors import ArgumentError
from twofold.ir.op import REGISTRY
from twofold.runtime.attribution import kernel_shares, program_shares, scheduled, stages_of, traced_graph
from twofold.runtime.line_samples import LineSamples

HERE = Path(__file__).name


def line_of(function: Callable[..., Any], offset: int) -> int:
    return function.__code__.co_firstlineno + offset


def program(x: Any, w: Any) -> Any:
    product = x @ w
    bent = product.tanh()
    loss = (bent * bent).sum()
    loss.backward()
    return w.grad.numpy()


def operands() -> tuple[Any, Any]:
    torch.manual_seed(3)
    return torch.randn(64, 48), torch.randn(48, 32).requires_grad_()


def used_twice(w: Any) -> None:
    loss = (w.sin() * w).sum()
    loss.backward()


def test_sums_of_gradients_are_of_the_backward_pass() -> None:
    with torch.profile() as p:
        w = torch.ones(5, requires_grad=True)
        used_twice(w)
        w.grad.numpy()
    line = f"{HERE}:{line_of(used_twice, 2)} in used_twice"
    calls = {row.direction: row.times for row in p.by_line() if row.what == line}
    assert calls == {"backward": 2}  # the first cotangent, and the sum


def test_what_the_program_gives_a_backward_pass_is_of_its_own_line() -> None:
    def given(x: Any) -> None:
        first = torch.ones(5)
        x.sin().backward(first)

    with torch.profile() as p:
        x = torch.ones(5, requires_grad=True)
        given(x)
        x.grad.numpy()
    rows = [(row.what, row.direction) for row in p.by_line()]
    assert (f"{HERE}:{line_of(given, 1)} in given", "forward") in rows


def test_the_first_cotangent_of_a_declared_pass_is_backward() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [4])
        loss = tf.reduce_sum(tf.sin(x))
        (gradient,) = tf.gradients(loss, [x])
        with torch.profile() as p:
            session.run([loss, gradient], {x: [1.0, 2.0, 3.0, 4.0]})
    line = f"{HERE}:{line_of(test_the_first_cotangent_of_a_declared_pass_is_backward, 4)}"
    directions = {row.direction for row in p.by_line() if row.what.startswith(line)}
    assert directions == {"backward"}


@pytest.mark.parametrize("name", ["unfused", "fused", "auto"])
def test_rows_name_lines_and_directions(name: str) -> None:
    x, w = operands()
    with tier(name), torch.profile() as p:
        program(x, w)
    found = {(row.what, row.direction) for row in p.by_line()}
    for offset, direction in (
        (1, "forward"),
        (2, "forward"),
        (1, "backward"),
        (2, "backward"),
        (3, "backward"),
    ):
        assert (f"{HERE}:{line_of(program, offset)} in program", direction) in found


@pytest.mark.parametrize("name", ["unfused", "fused"])
def test_rows_sum_to_the_kernels_and_parts_to_the_whole(name: str) -> None:
    x, w = operands()
    with tier(name), torch.profile() as p:
        program(x, w)
    wall = p.wall
    assert wall.total == pytest.approx(sum(wall[1:]), rel=1e-6)
    for rows in (p.by_line(), p.by_operation(), p.by_module()):
        assert sum(row.seconds for row in rows) == pytest.approx(wall.kernels, rel=1e-6)
    assert sum(kernel.seconds for kernel in p.kernels()) == pytest.approx(wall.kernels, rel=1e-6)


def test_a_profile_changes_no_bit() -> None:
    x, w = operands()
    plain = program(x, w)
    w.grad = None
    with torch.profile():
        profiled = program(x, w)
    assert plain.tobytes() == profiled.tobytes()


def spin(seconds: float) -> int:
    count, end = 0, time.process_time() + seconds
    while time.process_time() < end:
        count += 1
    return count


def test_what_a_line_has_python_do_stands_at_the_line() -> None:
    def sums() -> Any:
        return sum(Fraction(k, 7) for k in range(1, 60_000))  # in fractions.py

    with torch.profile() as p:
        torch.ones(3).tolist()
        sums()
    rows = p.python()
    assert not [row for row in rows if row.what.startswith("fractions.py")]
    here = sum(row.seconds for row in rows if row.what.startswith(HERE))
    assert here >= 0.75 * sum(row.seconds for row in rows) > 0


def test_python_stands_at_its_lines() -> None:
    x, w = operands()
    program(x, w)
    with torch.profile() as p:
        program(x, w)
        spin(0.2)
        program(x, w)
    rows = [row for row in p.python() if " in spin" in row.what]
    assert sum(row.seconds for row in rows) >= 0.75 * p.wall.python >= 0.1
    assert sum(row.seconds for row in p.python()) == pytest.approx(p.wall.python, rel=1e-6)
    assert f"{HERE}:{line_of(spin, 2)} in spin" in p.table()


SCHEDULED = Path("/proc/thread-self/schedstat").exists()
BENCH = Path(torch.__file__).parents[1] / "bench"


def stolen_seconds() -> float:
    """Seconds so far in which another virtual machine had a processor: no thread of this one can use or name them."""
    ticks = Path("/proc/stat").read_text().split()
    return int(ticks[8]) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not SCHEDULED, reason="the system does not tell how long a thread waited for a processor")
def test_code_that_the_package_makes_stands_at_the_line_that_asks_for_it() -> None:
    source = "def made(take):\n    exec('take()', {'take': take})\n"
    space: dict[str, Any] = {}
    exec(compile(source, os.path.join(os.path.dirname(torch.__file__), "made.py"), "exec"), space)
    samples = LineSamples()
    space["made"](lambda: samples._take(0, sys._getframe(1)))
    (found,) = samples.found
    assert found.code is sys._getframe().f_code
    exec("take()", {"take": lambda: samples._take(0, sys._getframe(1))})
    assert samples.found[-1].code.co_filename == "<string>"  # a program may have it, too


@pytest.mark.parametrize("workload", ["chain", "call_six", "train_digits_16", "train_mnist_8"])
def test_parts_with_a_name_sum_to_the_wall_time(workload: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    case = import_module("workloads.eager_style").case(workload, torch, None)
    for _ in range(2):
        for _ in range(12):
            case.finish(case.call())
        torch.wait_for_compiler()  # else the program waits for the interpreter lock, which is no part of it
    shares = []
    while not shares or (max(shares) < 0.95 and len(shares) < 10):
        stolen = stolen_seconds()
        with torch.profile() as p:
            begin = time.perf_counter()
            while time.perf_counter() - begin < 0.3:
                case.finish(case.call())
            end = time.perf_counter()
        rows = sum(row.seconds for row in [*p.by_line(), *p.python()])
        named = rows + p.wall.executor + p.wall.compiler + stolen_seconds() - stolen
        shares.append(named / (end - begin))
    assert max(shares) >= 0.95


def test_waiting_is_idle() -> None:
    with torch.profile() as p:
        time.sleep(0.05)
    assert p.wall.idle >= 0.04


def test_flops_of_a_product() -> None:
    x, w = torch.ones(8, 16), torch.ones(16, 4)
    x._realise(), w._realise()
    with torch.profile() as p:
        for _ in range(3):
            (x @ w).numpy()
    (row,) = [row for row in p.by_operation() if row.what == "matmul"]
    assert (
        row.times == 3 and row.flops == 3 * 2 * 8 * 16 * 4 and row.nbytes == 3 * 4 * (8 * 16 + 16 * 4 + 8 * 4)
    )


def test_modules_are_named_by_their_paths() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 2)))
    with torch.profile() as p:
        model(torch.ones(4, 8)).sum().backward()
        assert model[1][1].weight.grad is not None
    found = {(row.what, row.direction) for row in p.by_module()}
    assert {("Sequential.0", "forward"), ("Sequential.1.0", "forward"), ("Sequential.0", "backward")} <= found
    assert nn.Module.__call__.__qualname__ == "Module.__call__"


def test_sessions_are_profiled_by_the_lines_of_their_declarations() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3])
        y = tf.reduce_sum(tf.tanh(x), 1)
        feed = {x: numpy.ones((2, 3), numpy.float32)}
        session.run(y, feed)
        with torch.profile() as p:
            session.run(y, feed)
    where = test_sessions_are_profiled_by_the_lines_of_their_declarations
    lines = {row.what for row in p.by_line()}
    assert f"{HERE}:{line_of(where, 3)} in {where.__name__}" in lines


def test_batches_are_counted_for_each_call() -> None:
    before = _core.set_batching("at_once")
    try:
        w = torch.ones(4, 4)
        rows = [torch.full((1, 4), float(k)) for k in range(6)]
        for row in rows:
            row._realise()
        with torch.profile() as p:
            made = [(row @ w).tanh() for row in rows]
            sum(one.sum() for one in made).item()
    finally:
        _core.set_batching(before)
    by_name = {row.what: row for row in p.by_operation()}
    assert by_name["tanh"].times == 6 and by_name["matmul"].times == 6


def test_batches_of_bodies_are_counted_for_their_calls() -> None:
    def cell(h: Any, w: Any, v: Any) -> Any:
        return torch.sigmoid(h @ w) * torch.tanh(h @ v)

    w, v = torch.full((8, 8), 0.1), torch.full((8, 8), 0.2)
    rows = [torch.full((1, 8), k / 64) for k in range(64)]
    for one in (w, v, *rows):
        one._realise()
    before = _core.set_batching("at_once")
    try:
        for _ in range(3):  # bodies have programs from the second run on
            with config.scoped(background_compile=False), torch.profile() as p:
                other = (w.cos() @ v).sum()
                total = sum(cell(row, w, v).sum() for row in rows) + other
                total.item()
    finally:
        _core.set_batching(before)
    by_name = {row.what: row for row in p.by_operation()}
    assert by_name["tanh"].times == by_name["sigmoid"].times == 64 and by_name["cos"].times == 1
    assert by_name["matmul"].flops == pytest.approx(2 * 8 * 8 * (2 * 64) + 2 * 8**3)
    launch = [one for one in p.kernels() if len(one.operations) > 2]
    inside = line_of(cell, 1)
    assert launch and all({frame.line for frame in one.lines} == {inside} for one in launch)
    assert sum(one.flops * one.times for one in launch) < 2 * 8 * 8 * (2 * 64) * 3


def last_shares(outputs: Any) -> tuple[Any, Any]:
    outputs.numpy()
    description = _core.describe_executable(_core.last_executable())
    found = scheduled(stages_of(traced_graph(description))[-1])
    return description, kernel_shares(found.schedule, found.origins)


def test_every_call_has_a_share_of_some_kernel() -> None:
    x = torch.ones(32, 32)
    x._realise()
    description, kernels = last_shares(((x * 2.0 + 1.0).exp() @ x).T.tanh() * 1.0)
    shared = {entry for kernel in kernels for entry, _ in kernel.shares}
    names = {description[1][entry][2].name for entry in shared}
    assert {"multiply", "add", "exp", "matmul", "tanh"} <= names
    for kernel in kernels:
        assert sum(part for _, part in kernel.shares) == pytest.approx(1.0)


def test_kernels_of_bodies_are_counted_for_the_calls_that_they_are_of() -> None:
    x, w = torch.ones(16, 16), torch.ones(16, 16)
    x._realise(), w._realise()
    for _ in range(60):
        x = (x @ w).tanh()
    (x * 1.0).numpy()
    description = _core.describe_executable(_core.last_executable())
    kernels = program_shares(description)
    program = compile_outlined(Trace.of(description))
    assert program.calls > program.bodies and len(kernels) == len(program.instructions)
    times = dict.fromkeys(range(len(description[1])), 0)
    for kernel in kernels:
        for entry, part in kernel.shares:
            times[entry] += part > 0
    products = [number for number, entry in enumerate(description[1]) if entry[2].name == "matmul"]
    assert len({times[number] for number in products}) == 1 and times[products[0]] > 0


def test_a_product_that_is_turned_by_a_pass_is_still_known() -> None:
    x, y = torch.ones(8, 4), torch.ones(4, 6)
    x._realise(), y._realise()
    description, kernels = last_shares((x @ y).T.exp())
    (product,) = [number for number, entry in enumerate(description[1]) if entry[2].name == "matmul"]
    (kernel,) = [one for one in kernels if "matmul" in one.operations]
    assert product in dict(kernel.shares)


def test_time_line(tmp_path: Path) -> None:
    x, w = operands()
    with torch.profile() as p:
        program(x, w)
    p.export_chrome_trace(tmp_path / "trace.json")
    p.export_chrome_trace(tmp_path / "trace.json.gz")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    assert any("matmul" in event["name"] or "mm" in event["name"] for event in kernels)
    assert any(str(line_of(program, 1)) in line for event in kernels for line in event["args"]["lines"])
    spans = [event for event in events if event["ph"] == "X"]
    last = max(event["ts"] + event["dur"] for event in spans)
    assert all(event["ts"] >= -1 for event in spans) and last <= p.wall.total * 1e6 + 1
    named = {event["tid"] for event in events if event["name"] == "thread_name"}
    assert {event["tid"] for event in spans} <= named


def test_one_profile_at_a_time() -> None:
    with torch.profile(), pytest.raises(ArgumentError, match="another one is being recorded"):
        torch.profile().__enter__()
    with pytest.raises(ArgumentError, match="nothing has been measured"):
        torch.profile().by_line()


def test_table_names_the_rest() -> None:
    x, w = operands()
    with torch.profile() as p:
        program(x, w)
    text = p.table("operation", row_limit=1)
    assert "more" in text and "python and recording" in text and "100.0%" in text
    with pytest.raises(ArgumentError, match="rows by 'file'"):
        p.table("file")


def test_a_run_that_outlasts_a_profile_is_in_no_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()
    isin_mask = REGISTRY["isin_mask"]
    found = isin_mask.host

    def slow(*given: Any) -> Any:
        begun.set()
        assert may_end.wait(60)
        return found(*given)

    monkeypatch.setattr(isin_mask, "host", slow)
    x = torch.arange(5)
    thread = threading.Thread(target=lambda: torch.isin(x, torch.tensor([1])).tolist())
    with torch.profile():
        for k in range(8):
            torch.ones(k + 1).tolist()
        thread.start()
        assert begun.wait(60)
    with torch.profile() as later:
        may_end.set()
        thread.join()
        torch.ones(3).exp().tolist()
    assert {row.what for row in later.by_operation()} == {"ones", "exp"}


def test_what_runs_again_after_an_error_is_counted() -> None:
    def program() -> Any:
        position = torch.tensor([7])
        return (torch.index_select(torch.ones(5, 4), 0, position) + torch.ones(4).tanh()).sum()

    with tier("fused"), torch.profile() as p, pytest.raises(IndexError):
        program().item()
    kernels = [event for event in p.recording.timeline() if event.category == "kernel"]
    assert kernels and all(event.depth == 0 for event in kernels)
