"""``register_multi_grad_hook``: what PyTorch's documentation says and its tests expect."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import twofold as torch
from twofold.autograd.graph import register_multi_grad_hook
from twofold.frontend.tensor_hooks import _multi_hooks


def leaves() -> tuple[Any, Any]:
    return torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)


def test_all_gradients_at_once() -> None:
    a, b = leaves()
    c, d = a * b, a * b
    calls: list[Any] = []
    register_multi_grad_hook((a, b, c, d), calls.append)
    c.sum().backward(retain_graph=True)
    assert [None if one is None else one.tolist() for one in calls.pop()] == [[3, 4], [1, 2], [1, 1], None]
    c.sum().backward(inputs=(a,), retain_graph=True)
    assert [one is None for one in calls.pop()] == [False, True, False, True]
    torch.autograd.grad(d.sum(), b, retain_graph=True)
    assert [one is None for one in calls.pop()] == [True, False, True, False]
    (c.sum() + d.sum()).backward()
    assert [one is None for one in calls.pop()] == [False] * 4
    assert calls == []


def test_a_pass_that_comes_to_none_of_them_calls_nothing() -> None:
    a, b = leaves()
    calls: list[Any] = []
    register_multi_grad_hook((a,), calls.append)
    (b * 2).sum().backward()
    assert calls == []


def test_every_step_of_a_loop() -> None:
    a, b = leaves()
    calls: list[Any] = []
    with register_multi_grad_hook((a, b), calls.append):
        for step in range(5):
            (a * b * step).sum().backward()
    assert [[one.tolist() for one in call] for call in calls] == [
        [[3.0 * k, 4.0 * k], [1.0 * k, 2.0 * k]] for k in range(5)
    ]
    (a * b).sum().backward()
    assert len(calls) == 5


def test_the_first_gradient() -> None:
    a, b = leaves()
    c = a * b
    d = c * 2
    calls: list[Any] = []
    constant = torch.ones(2)
    handle = register_multi_grad_hook((a, constant, c, d), calls.append, mode="any")
    for _ in range(2):
        d.sum().backward(retain_graph=True)
        assert [call.tolist() for call in calls] == [[1.0, 1.0]]  # that of d, which a pass comes to first
        calls.clear()
    c.sum().backward(retain_graph=True)
    assert len(calls) == 1
    handle.remove()
    d.sum().backward()
    assert len(calls) == 1


def test_a_pass_inside_a_pass_is_its_own() -> None:
    a, b = leaves()
    calls: list[int] = []
    c = a * b

    def inner(gradient: Any) -> None:
        with torch.enable_grad():
            (b * 3).sum().backward()

    c.register_hook(inner)
    register_multi_grad_hook((a, b), lambda found: calls.append(sum(one is not None for one in found)))
    c.sum().backward()
    assert calls == [1, 2]


def test_mistakes() -> None:
    a, _ = leaves()
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        register_multi_grad_hook((a,), print, mode="some")
    with pytest.raises(
        RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"
    ):
        register_multi_grad_hook((a, torch.ones(1)), print)

    def fails(found: Any) -> None:
        raise KeyError("from the hook")

    register_multi_grad_hook((a,), fails)
    with pytest.raises(KeyError, match="from the hook"):
        a.sum().backward()


def test_hooks_die_with_their_tensors() -> None:
    a, b = leaves()
    handle = register_multi_grad_hook((a, b), print)
    alive = weakref.ref(handle)
    assert handle in _multi_hooks
    del a, b, handle
    torch.wait_for_compiler()  # nothing is collected here while its thread collects
    gc.collect()
    assert alive() is None
