"""The gradient mode is what it was after a block, wherever a signal's handler raised."""

from __future__ import annotations

import pytest

import twofold as torch
from tests.core.in_child import run
from twofold import _core

SIGNALS = """
import signal
import twofold as torch

class Alarm(Exception):
    pass

armed = False

def ring(*_):
    if armed:
        raise Alarm

signal.signal(signal.SIGALRM, ring)
linear = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)

@torch.no_grad()
def decorated():
    pass

def blocks():
    for _ in range(30):
        with torch.no_grad():
            pass
        with torch.inference_mode():
            pass
        with torch.no_grad(), torch.enable_grad():
            pass
        decorated()
        torch.nn.init.zeros_(linear.bias)
        optimizer.step()

caught = 0
for k in range(1500):
    armed = True
    try:
        # rings again: what is raised inside a callback of the garbage collector is lost
        signal.setitimer(signal.ITIMER_REAL, 0.00005 + k % 100 * 0.00002, 0.01)
        try:
            while True:
                blocks()
        finally:
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Alarm:
        caught += 1
    assert torch.is_grad_enabled(), k
assert caught == 1500, caught
"""


def test_no_signal_leaves_gradients_off() -> None:
    run(SIGNALS)


def test_blocks_may_be_used_again_and_nested() -> None:
    off = torch.no_grad()
    with off:
        with off, torch.enable_grad():
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    with pytest.raises(RuntimeError, match="not entered"):
        off.__exit__(None, None, None)


def test_the_switch_at_once_is_undone_by_its_block() -> None:
    with torch.set_grad_enabled(False) as given:
        assert not torch.is_grad_enabled() and given is None
    assert torch.is_grad_enabled()
    switch = torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled() and switch.mode is False
    with switch:
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError):
        _core.GradientMode()  # type: ignore[call-arg]
    assert torch.is_grad_enabled()
