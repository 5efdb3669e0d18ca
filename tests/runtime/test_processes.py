"""Forks, the end of the process, and threads that are at work meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.core.in_child import UNDER_ADDRESS_SANITIZER, run

FORK = """
import os, sys, threading, time
import twofold as torch

def child(work):
    \"\"\"Runs in a forked child; its exit status must come within a minute.\"\"\"
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    end = time.monotonic() + 60
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            assert status == 0, status
            return
        if time.monotonic() > end:
            os.kill(pid, 9)
            raise SystemExit("the child hangs")
        time.sleep(0.01)
"""

COMPILER_AFTER_FORK = (
    FORK
    + """
x = torch.linspace(-1, 1, 1000)

def program(k):
    return (torch.exp(x) * k + torch.sin(x * k)).sum().item()

for _ in range(3):
    program(1)
torch.wait_for_compiler()  # the parent's thread is there

def fuses():
    before = program(2)
    for _ in range(3):
        y = ((torch.cos(x) + 1) ** 2 - torch.tanh(x)).sum()
        y.item()
    torch.wait_for_compiler()
    assert torch._core.last_executable() is not None
    assert program(2) == before

child(fuses)
# while the parent has handed work to its compiler
for k in range(6):
    for _ in range(2):
        (torch.exp(x * k).sum() + torch.relu(x - k).sum() * k).item()
    child(fuses)
    child(torch.wait_for_compiler)
torch.wait_for_compiler()
fuses()
"""
)

KERNEL_THREADS_AFTER_FORK = (
    FORK
    + """
torch.set_num_threads(4)
torch.manual_seed(0)
a = torch.randn(600, 600)
expected = (a @ a).sum().item()

def multiply():
    for _ in range(3):
        assert (a @ a).sum().item() == expected
    torch.set_num_threads(2)
    assert (a @ a).sum().item() == expected

stop = []

def busy():
    b = a + 0
    while not stop:
        (b @ b).sum().item()

other = threading.Thread(target=busy)
other.start()
for _ in range(10):
    child(multiply)
stop.append(True)
other.join()
multiply()
"""
)

VALUE_OF_ANOTHER_THREAD = (
    FORK
    + """
torch.manual_seed(0)
a = torch.randn(900, 900) * 0.03
(a @ a).sum().item()
values = []
started = threading.Event()

def long():
    y = a
    for _ in range(60):
        y = y @ a
    values.append(y)
    started.set()
    y.sum().item()

thread = threading.Thread(target=long)
thread.start()
started.wait()
time.sleep(0.2)

def ask():
    try:
        values[0].sum().item()
    except RuntimeError as error:
        assert "forked" in str(error), error

child(ask)
thread.join()
assert values[0].sum().item() == values[0].sum().item()
"""
)

WORKERS = """
import twofold as torch
from twofold.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, k):
        x = torch.arange(10.0) * k
        return (x * x).sum().item(), torch.tensor(float(k)) * 2

x = torch.ones(100)
for _ in range(4):
    (torch.exp(x) * 2).sum().item()
seen = []
for _ in range(2):
    for sums, twice in DataLoader(Squares(), batch_size=4, num_workers=2):
        seen += [float(value) for value in twice]
assert seen == [2.0 * k for k in range(40)] * 2, seen
"""

IMPORT_DURING_FORK = (
    FORK
    + """
import tempfile
from importlib import import_module
from pathlib import Path

folder = tempfile.TemporaryDirectory()
for k in range(3):
    Path(folder.name, f"slow{k}.py").write_text("import time\\ntime.sleep(0.5)")
torch.__path__.append(folder.name)
for k in range(3):
    thread = threading.Thread(target=import_module, args=(f"twofold.slow{k}",))
    thread.start()
    while f"twofold.slow{k}" not in sys.modules:
        time.sleep(0.01)
    child(lambda: import_module(f"twofold.slow{k}"))
    thread.join()
"""
)

SLOW_COMPILE = """
import sys, time
import twofold as torch
from twofold.compiler import jit

emit = jit._CodeGenerator.emit
x = torch.linspace(0, 1, 100)
(x + 1).sum().item()

def slow(self, texts):
    image = emit(self, texts)
    print("compiling", flush=True)
    import ctypes
    ctypes.CDLL(None).sleep(100)  # as a long compile: outside Python, without the interpreter lock
    return image

jit._CodeGenerator.emit = slow
torch._core.set_tier("auto")
y = [None]
class Quick:
    pass
# Fused in the background; the operations themselves are known already.
jit._CodeGenerator.emit = emit
values = []
for k in range(2):
    if k == 1:
        jit._CodeGenerator.emit = slow
    values.append((torch.exp(x) * 3 + torch.sqrt(x)).sum().item())
time.sleep(1)
sys.exit(7)
"""

DAEMON_THREADS = """
import sys, threading, time
import twofold as torch
torch.set_num_threads(2)
x = torch.ones(300, 300)

def work(k):
    while True:
        ((x @ x) * k).sum().item()

for k in range(3):
    threading.Thread(target=work, args=(k,), daemon=True).start()
time.sleep(0.5)
sys.exit(0)
"""


def test_a_forked_child_has_a_compiler() -> None:
    run(COMPILER_AFTER_FORK)


def test_a_forked_child_has_kernel_threads() -> None:
    run(KERNEL_THREADS_AFTER_FORK)


def test_a_forked_child_imports_what_another_thread_was_importing() -> None:
    run(IMPORT_DURING_FORK)


def test_a_value_that_another_thread_computes_is_an_error_in_the_child() -> None:
    run(VALUE_OF_ANOTHER_THREAD)


def test_workers_of_a_loader() -> None:
    run(WORKERS)


def test_the_exit_does_not_wait_for_a_compile(tmp_path: Path) -> None:
    import subprocess
    import sys

    from tests.core.in_child import ROOT
    from twofold.compiler.disk_cache import DiskCache

    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", SLOW_COMPILE],
        cwd=ROOT,
        env={**os.environ, "TWOFOLD_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 7 and "compiling" in done.stdout, (done.stdout, done.stderr)
    assert time.monotonic() - start < 60
    cache = DiskCache(tmp_path)
    assert all(cache.read(name) is not None for name in os.listdir(tmp_path) if not name.startswith("."))


@pytest.mark.skipif(
    UNDER_ADDRESS_SANITIZER, reason="it takes the unwinding by which Python ends threads for an underflow"
)
def test_threads_at_work_do_not_disturb_the_exit() -> None:
    for _ in range(4):
        run(DAEMON_THREADS)
