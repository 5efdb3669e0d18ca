"""A trace that one thread has recorded may be run by another: what the first asks for meanwhile waits for it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import twofold as torch


def chain(w: torch.Tensor) -> torch.Tensor:
    y = w
    for _ in range(30):
        y = torch.tanh(y @ w)
    return y.sum()


@contextmanager
def computed_by_another_thread(value: torch.Tensor) -> Iterator[None]:
    thread = threading.Thread(target=value.item)
    thread.start()
    time.sleep(0.02)
    yield
    thread.join()


def whole(w: torch.Tensor, y: torch.Tensor) -> Any:
    y.backward()
    return w.grad


def asked(w: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.autograd.grad(y, [w])[0]


def seeded(w: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.autograd.grad(w.sum() * 2, [w], grad_outputs=y)[0]


def hooked(w: torch.Tensor, y: torch.Tensor) -> Any:
    seen: list[float] = []
    y.register_hook(lambda gradient: seen.append(gradient.item()))
    y.backward()
    assert seen == [1.0]
    return w.grad


@pytest.mark.parametrize("gradient", [whole, asked, seeded, hooked])
def test_gradients_of_a_trace_that_another_thread_runs(gradient: Callable[..., Any]) -> None:
    def start() -> torch.Tensor:
        torch.manual_seed(0)
        return (torch.randn(600, 600) * 0.1).requires_grad_()

    w = start()
    expected = gradient(w, chain(w)).tolist()
    for _ in range(3):
        w = start()
        y = chain(w)
        with computed_by_another_thread(y):
            assert gradient(w, y).tolist() == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_does_not_wait_for_a_thread_that_it_has_not() -> None:
    y = chain(torch.randn(1000, 1000))
    with computed_by_another_thread(y):
        child = os.fork()
        if child == 0:
            try:
                y.item()
            except RuntimeError as error:
                os._exit(0 if "forked" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
