"""Long chains of views are read, written and freed without deep recursion or repeated work."""

from __future__ import annotations

import weakref

import twofold as torch
from tests.core.in_child import run

CHAINS = """
import numpy
import twofold as torch

x = torch.ones(4)
y = x
for _ in range(50000):
    y = y.view(-1)
x.add_(1)
assert y.sum().item() == 8.0
try:
    y.mul_(2)
    assert x.sum().item() == 16.0
except RecursionError:  # each write goes through all of them
    pass
del y

shared = numpy.ones(4, numpy.float32)
z = torch.from_numpy(shared)
for _ in range(60):  # read twice at each view it would take longer than anyone can wait
    z = z.view(-1)
shared[0] = 5
assert z.sum().item() == 8.0

w = torch.ones(4)
for _ in range(100000):
    w = w + 1
assert w.sum().item() == 400004.0
"""

LAYOUTS = """
import twofold as torch

chains = {
    "detach": lambda y: y.detach(),
    "data": lambda y: y.data,
    "transposed": lambda y: y.t(),
    "index": lambda y: y[:],
}
for step in chains.values():
    x = y = torch.ones(3, 4)
    for _ in range(60000):
        y = step(y)
    assert y.stride() == x.stride() and y.is_contiguous()
    x.add_(1)
    assert y.sum().item() == 24.0
"""

SMALL_STACK = """
import threading
import twofold as torch

def many():
    w = torch.ones(4)
    for _ in range(40000):
        w = w + 1
    sums.append(w.sum().item())

sums = []
threading.stack_size(1 << 18)
thread = threading.Thread(target=many)
thread.start()
thread.join()
assert sums == [160004.0]
"""

SUBINTERPRETER = """
import sys
import twofold as torch
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    raise SystemExit(0)
program = (
    "import sys" + chr(10) + "sys.path[:] = " + repr(sys.path) + chr(10)
    + "try:" + chr(10) + "    import twofold._core" + chr(10)
    + "except ImportError:" + chr(10) + "    pass" + chr(10)
    + "else:" + chr(10) + "    raise SystemExit('imported')" + chr(10)
)
interpreters.run_string(interpreters.create(), program)
assert (torch.ones(2) + 1).sum().item() == 4.0
"""


def test_long_chains_of_views() -> None:
    run(CHAINS)


def test_layouts_of_long_chains_of_views() -> None:
    run(LAYOUTS)


def test_a_chain_of_detached_handles_is_not_kept() -> None:
    x = y = torch.ones(3)
    made = []
    for _ in range(10):
        y = y.detach()
        made.append(weakref.ref(y))
    assert [handle() for handle in made] == [None] * 9 + [y]
    y.add_(1)
    assert x.tolist() == [2.0] * 3


def test_data_of_a_detached_handle_writes_in_silence() -> None:
    x = torch.ones(3, requires_grad=True)
    squared = x * x
    before = x._version
    x.detach().data.detach().add_(1)
    assert x._version == before
    squared.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [4.0] * 3


def test_a_long_chain_of_additions_needs_no_deep_stack() -> None:
    run(SMALL_STACK)


def test_a_subinterpreter_is_refused() -> None:
    run(SUBINTERPRETER)
