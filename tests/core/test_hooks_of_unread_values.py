"""Hooks on values that have run and that no gradient reads, in passes that transforms make."""

from __future__ import annotations

from typing import Any

import twofold as torch


class Cube(torch.autograd.Function):
    """Its forward reads a value, which runs what was recorded before."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        assert x.sum().item() == 6
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * x * x * 3


JACOBIAN = [[3, 0, 0], [0, 12, 0], [0, 0, 27]]


def test_functions_that_read_values_in_transforms() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    for transform in torch.func.jacrev, torch.func.jacfwd:
        assert transform(Cube.apply)(x).tolist() == JACOBIAN
    second = torch.func.hessian(lambda x: Cube.apply(x).sum())(x)
    assert second.tolist() == [[6, 0, 0], [0, 12, 0], [0, 0, 18]]


def test_functions_in_batches_of_passes_behind_another_one() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = Cube.apply(x)
    first: Any = torch.autograd.grad(y.sum(), x, retain_graph=True)
    assert first[0].tolist() == [3, 12, 27]
    batch: Any = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
    assert batch[0].tolist() == JACOBIAN


def test_hooks_of_a_handle_that_is_gone() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x + 1
    y.register_hook(lambda gradient: gradient * 10)
    z = y * 2
    del y
    assert z.tolist() == [4, 6]
    found: Any = torch.autograd.grad(z, x, torch.eye(2), is_grads_batched=True)
    assert found[0].tolist() == [[20, 0], [0, 20]]


def test_a_hook_that_removes_itself_keeps_the_one_behind_it() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x + 1

    def once(gradient: Any) -> Any:
        handle.remove()
        return gradient * 10

    handle = y.register_hook(once)
    y.register_hook(lambda gradient: gradient * 3)
    batch: Any = torch.autograd.grad(y * 2, x, torch.eye(2), is_grads_batched=True, retain_graph=True)
    assert batch[0].tolist() == [[60, 0], [0, 60]]
    again: Any = torch.autograd.grad(y * 2, x, torch.eye(2), is_grads_batched=True)
    assert again[0].tolist() == [[6, 0], [0, 6]]
