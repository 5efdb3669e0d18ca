"""What is asked of values whose trace another thread is running."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold import _core


def calls(y: Any) -> list[str]:
    return [call[2].name for call in _core.calls_above((y,), True)]


def entries(y: Any) -> list[str]:
    found: Any = _core.trace_above([y])
    return [entry[2].name for entry in found[1][1]]


def described(y: Any) -> list[str]:
    return [y.grad_fn.name(), *(str(one and one.name()) for one, _ in y.grad_fn.next_functions)]


@pytest.mark.parametrize("ask", [calls, entries, described])
def test_values_that_another_thread_is_computing_are_waited_for(ask: Callable[[Any], list[str]]) -> None:
    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)

    def computed() -> Any:
        return torch.sort(x * 2).values * x  # sorted in Python

    usual = computed()
    usual.tolist()
    y = computed()

    def read() -> None:
        left = iter(range(100))
        sys.setprofile(lambda *event: time.sleep(0.001) if next(left, None) else None)
        try:
            y.tolist()
        finally:
            sys.setprofile(None)

    thread = threading.Thread(target=read)
    thread.start()
    while _core.pending():
        time.sleep(0.0001)
    found = ask(y)
    thread.join()
    assert found == ask(usual) and len(found) > 1
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [6, 10, 8]
