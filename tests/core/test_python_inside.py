"""Python code that runs in the middle of the core: finalisers, hooks, signal handlers and what operands do when they are asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as torch


class Finalised(np.ndarray):
    """An array that calls ``Finalised.action`` when it ends."""

    action: Callable[[], None] = staticmethod(lambda: None)

    def __del__(self) -> None:
        Finalised.action()


def end_a_tensor_of_an_array() -> None:
    """The memory of the tensor ends inside of the core."""
    torch.from_numpy(np.ones(3, np.float32).view(Finalised))


def test_what_a_finaliser_replaces_is_in_no_trace_that_it_runs() -> None:
    x, sums = torch.ones(3), []

    def overwrite_and_read() -> None:
        y = x * len(sums)
        y.copy_(x)  # the product ends while another value does
        sums.append((x + len(sums)).sum().item())

    Finalised.action = overwrite_and_read
    for _ in range(50):
        end_a_tensor_of_an_array()
    Finalised.action = staticmethod(lambda: None)
    assert sums == [3 + 3 * k for k in range(50)]
    many = [x * k for k in range(100)]  # in the memory of those that have ended
    assert [one[0].item() for one in many] == list(range(100))


class OnceCalled:
    """A hook that removes itself, so that nothing but its call refers to it; gives something that is no gradient."""

    def __init__(self, register: Callable[[Any], Any], result: Any = "wrong") -> None:
        self.handle = register(self)
        self.result = result

    def __call__(self, *gradients: Any) -> Any:
        self.handle.remove()
        return self.result


def test_the_error_of_a_hook_that_has_removed_itself() -> None:
    x = torch.ones(3, requires_grad=True)
    OnceCalled(x.register_hook)
    with pytest.raises(RuntimeError, match="returned str"):
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_hooks_behind_one_that_removes_itself_are_called_as_in_pytorch() -> None:
    seen: list[str] = []
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    for where, register in (
        ("leaf", x.register_hook),
        ("after", x.register_post_accumulate_grad_hook),
        ("value", y.register_hook),
        ("call", y.grad_fn.register_hook),
    ):
        OnceCalled(register, None)
        register(lambda *gradients, where=where: seen.append(where))
    y.sum().backward()
    assert seen == ["value", "call", "leaf", "after"]
