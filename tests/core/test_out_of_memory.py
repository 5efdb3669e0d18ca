"""Memory and threads that the system refuses: a MemoryError that says what was asked for, never an abort."""

from __future__ import annotations

import pytest

from tests.core.in_child import UNDER_ADDRESS_SANITIZER, run

LIMITED = """
import gc, resource, sys
import twofold as torch

def limit(mebibytes):
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (used + (mebibytes << 20), resource.RLIM_INFINITY))

def lift():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""

WHAT_WAS_ASKED_FOR = (
    LIMITED
    + """
big = torch.ones(1, 1)
for size in (2, 300, 400):  # the kernels, while there is memory
    torch.randn(size, size).sum().item()
    (big.expand(size, size) + 1).sum().item()
    (torch.cat([torch.ones(size * size)] * 4) * 2).sum().item()
    x = torch.ones(size, size)
    for _ in range(30):
        x = x + 1
    x.sum().item()
torch.wait_for_compiler()
limit(64)
for asked in (
    lambda: torch.randn(50000, 50000),
    lambda: big.expand(100000, 100000) + 1,
    lambda: torch.cat([torch.ones(9 << 20)] * 4) * 2,
):
    try:
        asked().sum().item()
    except MemoryError as error:
        print(error)
x = torch.ones(3000, 3000)
kept = []
for _ in range(30):
    x = x + 1
    kept.append(x)
try:
    x.sum().item()
except MemoryError as error:
    print(error)
lift()
print(x.sum().item(), kept[3][0, 0].item())  # what could not be computed is computed now
"""
)

EXHAUSTED = (
    LIMITED
    + """
linear = torch.nn.Linear(100, 100)
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1, momentum=0.9)

def work():
    total = torch.ones(100)
    for _ in range(50):
        total = total * 2 + 1
    linear(torch.ones(10, 100)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return total.sum().item()

for _ in range(6):
    expected = work()
torch.wait_for_compiler()
assert work() == expected
limit(16)
errors = 0
hold = []

def exhaust(size):
    try:
        while True:
            hold.append(bytes(size))
    except MemoryError:
        pass

def once(round):
    hold.clear()
    spare = [[] for _ in range(40_000)]  # for small objects of CPython, which does not survive without any
    exhaust(1 << 16)
    exhaust(1 << 9)
    kept = spare[::1500]  # one in each of its arenas, so that none is given back
    spare.clear()
    for _ in range(min(round, len(hold))):
        hold.pop()
    work()
    x = torch.ones(round + 1)  # types, kernels and traces that were never seen
    torch.cat([x] * (round + 1)).sum().item()

for round in range(150):
    try:
        once(round)
    except MemoryError:
        errors += 1
    except SystemError as error:  # CPython 3.11 says so of a frame of Python that it has no memory for
        assert "without exception set" in str(error) or "without setting an exception" in str(error)
        errors += 1
assert errors
hold.clear()
lift()
optimizer.zero_grad()
assert work() == expected
x = torch.arange(5.0)
assert torch.cat([x, x + 1]).sum().item() == 25.0
"""
)

NO_THREADS = (
    LIMITED
    + """
torch.manual_seed(0)
x = torch.randn(400, 400)
torch.set_num_threads(1)
expected = (x @ x).numpy().copy()
limit(6)  # less than the stack of a thread
torch.set_num_threads(4)
for _ in range(4):
    assert ((x @ x).numpy() == expected).all()
"""
)

NO_SHARED_COPY = (
    LIMITED
    + """
import numpy

def kept():
    return torch.stats().caches["copies of shared memory"].bytes

array = numpy.ones(16 << 20, numpy.float32)
tensor = torch.from_numpy(array)
for _ in range(4):
    tensor.sum().item()
torch.wait_for_compiler()
assert kept() >= array.nbytes
deferred = tensor * 2  # reads the copy
array[7] = 3
limit(16)
try:
    tensor.sum().item()
except MemoryError:
    print(kept() < 4096)
lift()
print(tensor.sum().item() == array.size + 2, kept() >= array.nbytes)
del tensor, array
print(kept())
"""
)

NO_COMPILER_THREAD = """
import threading
import twofold as torch

def refuse(self):
    raise RuntimeError("can't start new thread")

start, threading.Thread.start = threading.Thread.start, refuse
x = torch.linspace(0, 1, 1000)
values = {(torch.exp(x) * 2 + 1).sum().item() for _ in range(5)}
torch.wait_for_compiler()
threading.Thread.start = start
for _ in range(20):
    values.add((torch.exp(x) * 2 + 1).sum().item())
torch.wait_for_compiler()
assert len(values) == 1
assert torch._core.statistics()["executables"]
"""

NO_PLAN = """
import twofold as torch
from twofold import _core
from twofold.compiler import templates

def refuse(*arguments):
    refused.append(arguments)
    raise MemoryError("refused")

def work(size):
    return ((torch.ones(size, 5).cosh() * 2).sum(1) + 5).tolist()

row = work(3)[0]
refused = []
_core.set_hook("template_program", refuse)
try:
    work(7)
except MemoryError as error:
    assert error.args == ("refused",) and error.__cause__ is None
assert len(refused) == 1
_core.set_hook("template_program", templates.template_program)
assert work(7) == [row] * 7
"""


needs_limits = pytest.mark.skipif(UNDER_ADDRESS_SANITIZER, reason="it reserves terabytes of address space")


@needs_limits
def test_the_message_tells_bytes_type_and_line() -> None:
    first, second, third, fourth, last = run(WHAT_WAS_ASKED_FOR, TWOFOLD_THREADS="1").splitlines()

    def line(text: str) -> str:
        return f"at <string>:{1 + WHAT_WAS_ASKED_FOR[: WHAT_WAS_ASKED_FOR.rindex(text)].count(chr(10))}."

    assert "10000000000 bytes (9.3 GiB)" in first and f"float32[50000,50000], {line('50000, ')}" in first
    assert "40000000000 bytes (37.3 GiB)" in second and f"float32[100000,100000], {line('big.exp')}" in second
    assert "150994944 bytes (144.0 MiB)" in third and f"float32[37748736], {line('torch.cat')}" in third
    assert "36000000 bytes (34.3 MiB)" in fourth and f"float32[3000,3000], {line('x = x + 1')}" in fourth
    assert last == "279000000.0 5.0"


@needs_limits
def test_a_copy_of_shared_memory_that_fails_is_not_counted() -> None:
    assert run(NO_SHARED_COPY, TWOFOLD_THREADS="1").split() == ["True"] * 3 + ["0"]


@needs_limits
def test_without_any_memory_nothing_aborts_and_later_programs_are_right() -> None:
    try:
        run(EXHAUSTED)
    except AssertionError as error:
        if "Cannot recover from MemoryErrors" in str(error):
            pytest.skip("CPython itself gives up without memory for its own exceptions")
        if "cannot allocate memory for thread-local data" in str(error):
            pytest.skip("the C library gives up where another library first uses its thread-local data")
        raise


def test_a_plan_that_is_refused_is_not_asked_for_twice() -> None:
    run(NO_PLAN)


@needs_limits
def test_threads_that_cannot_be_started_are_done_without() -> None:
    run(NO_THREADS)


def test_a_compiler_thread_that_cannot_be_started_is_done_without() -> None:
    run(NO_COMPILER_THREAD)


def test_memory_errors_in_this_process() -> None:
    import twofold as torch

    with pytest.raises(
        MemoryError, match=r"bytes .* for .* float32\[1000000,1000000\], at test_out_of_memory.py:"
    ):
        torch.ones(1, 1).expand(1000000, 1000000).add(1.0).sum().item()
