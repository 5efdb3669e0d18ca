"""What is asked of values whose trace another thread is running."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def read_elsewhere(y: Any) -> Iterator[None]:
    """While another thread slowly runs the trace of a value, for some 0.3 s if it is waited for."""
    left, waits = threading.Event(), iter([0.001] * 300)

    def read() -> None:
        sys.setprofile(lambda *event: left.wait(next(waits, 0)))
        try:
            y.tolist()
        finally:
            sys.setprofile(None)

    thread = threading.Thread(target=read)
    thread.start()
    while _core.pending():
        time.sleep(0.0001)
    yield
    left.set()
    thread.join()


@pytest.mark.parametrize("ask", [calls, entries, described])
def test_values_that_another_thread_is_computing_are_waited_for(ask: Callable[[Any], list[str]]) -> None:
    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)

    def computed() -> Any:
        return torch.sort(x * 2).values * x  # sorted in Python

    usual = computed()
    usual.tolist()
    y = computed()
    with read_elsewhere(y):
        found = ask(y)
    assert found == ask(usual) and len(found) > 1
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [6, 10, 8]


def test_a_write_to_a_value_that_another_thread_is_computing_is_noted_in_its_own_trace() -> None:
    weight = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    y = torch.sort(weight.detach() * 2).values
    total = (y * weight).sum()
    with read_elsewhere(total), torch.no_grad():
        y.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_a_write_to_a_value_that_another_thread_is_computing_is_not_noted_in_the_open_trace() -> None:
    weight = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    y = torch.sort(torch.tensor([6.0, 2.0, 4.0])).values
    with read_elsewhere(y * 1):
        with torch.no_grad():
            y.zero_()
        products = [weight * float(k) for k in range(8)]
        total = sum(((one * one).sum() for one in products), start=torch.zeros(()))
        total.backward()
    assert weight.grad is not None and weight.grad.tolist() == [840, 280, 560]
