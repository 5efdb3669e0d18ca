"""The process that compiles long traces: it starts late, ends with its parent, and is not needed."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.core.in_child import ROOT, run
from twofold.compiler.worker import receive, send


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that an earlier process has left on disk would not be compiled again."""
    monkeypatch.setenv("TWOFOLD_CACHE_DIR", str(tmp_path))


LONG = """
import os, signal, sys, time
import numpy
import twofold as torch
from twofold.compiler import fusing, linking, process as client
client._PATIENCE_SECONDS = 600.0  # however busy the machine is

def long(count=120):
    x = torch.linspace(-1, 1, 50)
    for i in range(count):
        x = torch.sin(x) + 0.25 if i % 3 else torch.tanh(x * 1.5)
    return x.numpy().copy()

def trained():
    expected = long()
    for _ in range(4):
        assert numpy.array_equal(long(), expected)
        torch.wait_for_compiler()
"""

COMPILES = (
    LONG
    + """
assert not fusing._process.runs
for _ in range(3):
    (torch.ones(3) + 1).sum().item()
torch.wait_for_compiler()
assert not fusing._process.runs  # not for short ones
before = torch.stats().fused
plans = torch.stats().plans
linking.compile_outlined = None  # none of it is compiled here
trained()
assert torch.stats().fused == before + 1 and torch.stats().plans > plans
process = fusing._process._process
assert os.getpgid(process.pid) != os.getpgid(0)
if hasattr(os, "SCHED_IDLE"):
    assert os.getsid(process.pid) == os.getsid(0)  # Linux compares policies within a session
    assert os.sched_getscheduler(process.pid) == os.SCHED_IDLE != os.sched_getscheduler(0)
else:
    assert os.getpriority(os.PRIO_PROCESS, process.pid) > os.getpriority(os.PRIO_PROCESS, 0)
print(process.pid)
"""
)

PLANS = (
    LONG
    + """
def sized(rows):
    x = torch.linspace(-1, 1, rows * 4).reshape(rows, 4)
    return torch.tanh(x * 2).sum(0).numpy().copy()

def fitted(rows):
    w = torch.linspace(-1, 1, 12).reshape(4, 3).requires_grad_()
    x = torch.linspace(-1, 1, rows * 4).reshape(rows, 4)
    torch.sigmoid(x @ w).tanh().sum().backward()
    return w.grad.numpy().copy()

def looped(count):
    w = torch.linspace(-1, 1, 64).reshape(8, 8)
    cells = [torch.tanh(torch.full((8,), float(k)) @ w) + (k % 3) for k in range(count)]
    return torch.stack(cells).numpy().copy()

kept_here = []
if sys.argv[1] == "elsewhere":
    fusing._START_NANOSECONDS = 0
    ask = fusing._process.call
    fusing._process.call = lambda *call, otherwise: ask(*call, otherwise=lambda: kept_here.append(call))
found = []
for step in range(20):
    found += [sized(3 + step), fitted(3 + step), looped(40 + step)]
    torch.wait_for_compiler()
stats = torch.stats()
assert stats.trace_plan_uses > 0 and stats.batch_launches > 0, stats
assert fusing._process.runs == (sys.argv[1] == "elsewhere") and not kept_here, kept_here
print(b"".join(value.tobytes() for value in found).hex())
"""
)

KILLED = (
    LONG
    + """
for _ in range(2):
    long(130)
torch.wait_for_compiler()
fusing._process._process.send_signal(signal.SIGKILL)
fusing._process._process.wait()
trained()
assert fusing._process.runs
# while it works
fusing._process._process.send_signal(signal.SIGSTOP)
for _ in range(2):
    y = long(140)
fusing._process._process.send_signal(signal.SIGKILL)
torch.wait_for_compiler()
assert numpy.array_equal(long(140), y)
"""
)

STARVED = (
    LONG
    + """
trained()
first = fusing._process._process
client._PATIENCE_SECONDS = 0.3
first.send_signal(signal.SIGSTOP)  # as where the program leaves no processor idle
expected = long(140)
for _ in range(2):
    long(140)
torch.wait_for_compiler()
second = fusing._process._process
assert second.pid != first.pid and first.poll() is not None
assert os.getpriority(os.PRIO_PROCESS, second.pid) > os.getpriority(os.PRIO_PROCESS, 0)
assert not hasattr(os, "SCHED_IDLE") or os.sched_getscheduler(second.pid) != os.SCHED_IDLE
assert numpy.array_equal(long(140), expected)
"""
)

FORKED = (
    LONG
    + """
trained()
parents = fusing._process._process.pid
child = os.fork()
if child == 0:
    status = 1
    try:
        assert not fusing._process.runs
        fusing._LONG = 1
        x = torch.arange(7.0)
        for _ in range(3):
            (x * 3.0 - 1.0).exp().sum().item()
            torch.wait_for_compiler()
        assert fusing._process.runs and fusing._process._process.pid != parents
        fusing._process.stop()
        status = 0
    finally:
        os._exit(status)
assert os.waitpid(child, 0)[1] == 0
assert fusing._process.runs and fusing._process._process.pid == parents
for _ in range(3):
    (torch.ones(5) * 3.0 - 1.0).exp().cumsum(0).sum().item()
    torch.wait_for_compiler()
"""
)

WITHOUT = (
    LONG
    + """
sys.executable = sys.argv[1]
before = torch.stats().fused
trained()
assert torch.stats().fused == before + 1 and not fusing._process.runs
"""
)

WHILE_IT_WORKS = (
    LONG
    + """
for _ in range(2):
    long()
while not fusing._process.runs:
    time.sleep(0.01)
print(fusing._process._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL) if sys.argv[1] == "killed" else sys.exit(3)
"""
)


def ends(pid: int) -> bool:
    """Whether a process is gone within a minute; one that nobody waits for counts as gone, too."""
    for _ in range(600):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def test_a_long_trace_is_compiled_elsewhere_with_the_same_bits() -> None:
    assert ends(int(run(COMPILES)))


def test_plans_for_all_sizes_and_of_batches_are_made_elsewhere_with_the_same_bits(tmp_path: Path) -> None:
    here, elsewhere = (
        run(PLANS, how, TWOFOLD_CACHE_DIR=str(tmp_path / how)).strip() for how in ("here", "elsewhere")
    )
    assert here and here == elsewhere


def test_a_process_that_is_killed_is_started_again_and_not_needed() -> None:
    run(KILLED)


def test_a_worker_without_a_processor_is_replaced_by_one_that_shares_them() -> None:
    run(STARVED)


def test_a_forked_child_has_one_of_its_own() -> None:
    run(FORKED)


def test_where_none_can_be_started_the_thread_compiles() -> None:
    run(WITHOUT, "")
    run(WITHOUT, "/nowhere/python")
    run(WITHOUT, "/nowhere/an_application")


def test_it_ends_with_its_parent_whatever_ends_that() -> None:
    import subprocess
    import sys

    from tests.core.in_child import ROOT

    for how in ("killed", "exit"):
        done = subprocess.run(
            [sys.executable, "-c", WHILE_IT_WORKS, how],
            cwd=ROOT,
            env=dict(os.environ),
            stdout=subprocess.PIPE,
            text=True,
            timeout=120,
        )
        assert done.returncode == (-signal.SIGKILL if how == "killed" else 3)
        assert ends(int(done.stdout))


def test_an_answer_that_nobody_reads_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "from twofold.compiler.worker import serve; serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd=ROOT,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    receive(process.stdout.fileno())
    process.stdout.close()
    send(process.stdin.fileno(), pickle.dumps("no trace"))
    assert process.wait(60) == 0 and process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()
