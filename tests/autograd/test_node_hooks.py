"""Hooks on the functions of a backward pass; the expected numbers are those of PyTorch 2.13 for the same programs."""

from __future__ import annotations

import gc
import re
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold.nn import functional as F


def lists(gradients: Any) -> Any:
    return [None if one is None else one.tolist() for one in gradients]


A = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
EXPECTED: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
    # result of a and ones, gradients of the inputs, .grad of a after a hook that makes them ten times as large
    "mul": (lambda a, b: a * b, [[[2.0] * 3] * 2, [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]], [[20.0] * 3] * 2),
    "matmul": (
        lambda a, b: a @ b.T,
        [[[4.0] * 3] * 2, [[6.0, 6.0], [10.0, 10.0], [14.0, 14.0]]],
        [[40.0] * 3] * 2,
    ),
    "cat": (lambda a, b: torch.cat([a, b]), [[[2.0] * 3] * 2] * 2, [[20.0] * 3] * 2),
    "sum": (lambda a, b: a.sum(1), [[[2.0] * 3] * 2], [[20.0] * 3] * 2),
    "slice": (lambda a, b: a[:, 1:], [[[0.0, 2.0, 2.0]] * 2], [[0.0, 20.0, 20.0]] * 2),
    "index": (lambda a, b: a[[0, 0, 1]], [[[4.0] * 3, [2.0] * 3]], [[40.0] * 3, [20.0] * 3]),
    "embedding": (
        lambda a, b: F.embedding(torch.tensor([1, 0, 1]), a),
        [[[2.0] * 3, [4.0] * 3]],
        [[20.0] * 3, [40.0] * 3],
    ),
    "twice the same": (
        lambda a, b: a * a,
        [[[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]] * 2,
        [[0.0, 40.0, 80.0], [120.0, 160.0, 200.0]],
    ),
    "max": (lambda a, b: a.max(1).values, [[[0.0, 0.0, 2.0]] * 2], [[0.0, 0.0, 20.0]] * 2),
    "transpose": (lambda a, b: a.T, [[[2.0] * 3] * 2], [[20.0] * 3] * 2),
}  # fmt: skip


@pytest.mark.parametrize("is_changed", [False, True])
@pytest.mark.parametrize("name", EXPECTED)
def test_gradients_of_inputs(name: str, is_changed: bool) -> None:
    build, wanted, grown = EXPECTED[name]
    a, b = torch.tensor(A, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    made = build(a, b)
    seen: list[Any] = []

    def hook(inputs: Any, outputs: Any) -> Any:
        seen.append((lists(inputs), lists(outputs)))
        return tuple(one * 10 for one in inputs) if is_changed else None

    made.grad_fn.register_hook(hook)
    (made * 2).sum().backward()
    assert seen == [(wanted, [(made * 0 + 2).tolist()])]
    assert not is_changed or a.grad.tolist() == grown


def test_order_of_hooks() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    z = y * y
    order: list[str] = []
    y.register_hook(lambda gradient: order.append("tensor"))
    y.grad_fn.register_prehook(lambda gradients: order.append("before"))
    y.grad_fn.register_hook(lambda inputs, outputs: order.append("after"))
    z.grad_fn.register_hook(lambda inputs, outputs: order.append("first"))
    z.grad_fn.register_hook(lambda inputs, outputs: order.append("second"))
    z.sum().backward()
    assert order == ["first", "second", "tensor", "before", "after"]
    assert x.grad.tolist() == pytest.approx((2 * torch.exp(2 * x)).tolist())


def test_a_shared_weight() -> None:
    w, x = torch.ones(2, 2, requires_grad=True), torch.tensor([[1.0, 2.0]])
    first = x @ w
    first.grad_fn.register_hook(
        lambda inputs, outputs: tuple(one * 0 if one is not None else None for one in inputs)
    )
    ((first * 2) @ w).sum().backward()
    assert w.grad.tolist() == [[6.0, 6.0], [6.0, 6.0]]  # of the second product alone


def test_none_stops_a_gradient() -> None:
    x, w = torch.ones(2, requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    with y.grad_fn.register_hook(lambda inputs, outputs: (None, inputs[1])):
        y.sum().backward(retain_graph=True)
    assert x.grad is None and w.grad.tolist() == [1.0, 1.0]
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]


def test_gradients_of_what_a_hook_computes() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x**3
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * inputs[0],))
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert slope.tolist() == [9.0, 144.0]  # (3 x ** 2) ** 2
    slope.sum().backward()
    assert x.grad.tolist() == [36.0, 288.0]


def test_repeated_steps_keep_their_hooks_apart() -> None:
    seen: list[float] = []
    for step in range(6):  # predicted traces included
        x = torch.tensor([2.0], requires_grad=True)
        y = x * 3
        if step % 2:
            y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1,))
        y.sum().backward()
        seen.append(x.grad.item())
    assert seen == [3.0, 4.0] * 3


def test_metadata_stays_with_the_call() -> None:
    y = torch.ones(2, requires_grad=True) * 2
    assert y.grad_fn.metadata == {}
    y.grad_fn.metadata["layer"] = 1
    end = y.grad_fn.next_functions[0][0]
    end.metadata["leaf"] = True
    gc.collect()
    assert y.grad_fn.metadata == {"layer": 1}
    assert y.grad_fn.next_functions[0][0].metadata == {"leaf": True}
    assert (y * 2).grad_fn.metadata == {}


def test_wrong_results_end_in_the_hook() -> None:
    def too_many(inputs: Any, outputs: Any) -> Any:
        return (*inputs, inputs[0])  # here: returned 2

    def wide(inputs: Any, outputs: Any) -> Any:
        return (inputs[0].reshape(2, 1),)  # here: returned float32[2,1]

    def number(inputs: Any, outputs: Any) -> Any:
        return (1.0,)  # here: returned float

    def before(gradients: Any) -> Any:
        return (gradients[0], None)  # here: returned 2

    for hook in (too_many, wide, number, before):
        y = torch.ones(2, requires_grad=True).exp()
        register = y.grad_fn.register_prehook if hook is before else y.grad_fn.register_hook
        register(hook)
        with pytest.raises(RuntimeError) as caught:
            y.sum().backward()
        last = traceback.extract_tb(caught.value.__traceback__)[-1]
        wanted = str(last.line).partition("# here: ")[2]
        assert wanted and re.search(rf"{re.escape(wanted)}(, registered at \S+)?\. Return", str(caught.value))
