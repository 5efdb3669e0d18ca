"""Gradients of ``Function`` and hooks in the passes that transforms make."""

from __future__ import annotations

from typing import Any

import pytest

import twofold as torch
from twofold.autograd import functional


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * 2 * x


class Both(torch.autograd.Function):
    """``x * y`` and ``x + y``; the gradient of the second output is multiplied by 10."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any) -> Any:
        x, y = ctx.saved_tensors
        return first * y + 10 * second, first * x


X = torch.tensor([1.0, 2.0, -3.0])


@pytest.mark.parametrize("transform", [torch.func.jacrev, torch.func.jacfwd])
def test_jacobians_of_functions(transform: Any) -> None:
    found = transform(lambda x: Square.apply(x).sum() * x)(X)
    assert found.tolist() == torch.func.jacrev(lambda x: (x * x).sum() * x)(X).tolist()
    assert not found.requires_grad


def test_jacobians_of_the_older_interface() -> None:
    assert functional.jacobian(Square.apply, X).tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, -6]]
    assert functional.jacobian(Square.apply, X, strategy="forward-mode", vectorize=True)[2].tolist() == [
        0,
        0,
        -6,
    ]
    first, second = functional.jacobian(lambda x, y: sum(Both.apply(x, y)), (X, X))
    assert first.tolist() == [[11, 0, 0], [0, 12, 0], [0, 0, 7]]
    assert second.tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, -3]]


def test_second_derivatives_of_functions() -> None:
    cubes = functional.hessian(lambda x: (Square.apply(x) * x).sum(), X)
    assert cubes.tolist() == [[6, 0, 0], [0, 12, 0], [0, 0, -18]]
    found = torch.func.hessian(lambda x: Square.apply(Square.apply(x)).sum())(X)
    assert found.tolist() == [[12, 0, 0], [0, 48, 0], [0, 0, 108]]


def test_batched_cotangents_reach_functions() -> None:
    x = X.clone().requires_grad_()
    y = Square.apply(x)
    (found,) = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
    assert found.tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, -6]] and not found.requires_grad


def test_hooks_are_called_with_batched_cotangents() -> None:
    x = X.clone().requires_grad_()
    y = x * x
    y.register_hook(lambda gradient: gradient * 10)
    (found,) = torch.autograd.grad(y * 2, x, torch.eye(3), is_grads_batched=True)
    assert found.tolist() == [[40, 0, 0], [0, 80, 0], [0, 0, -120]]


def test_branches_on_batched_cotangents_say_so() -> None:
    class Branching(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2 if gradient.sum() > 0 else gradient

    with pytest.raises(RuntimeError, match="asks for one value"):
        torch.func.jacrev(Branching.apply)(X)


class Weighted(torch.autograd.Function):
    """``w * x``, whose backward takes a gradient itself."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        x, w = ctx.saved_tensors
        with torch.enable_grad():
            y = x.detach() * w
        (found,) = torch.autograd.grad(y, w, gradient, retain_graph=True)
        return gradient * w, found


def test_gradients_in_vmap_take_its_cotangents() -> None:
    x = X.clone().requires_grad_()
    y = x * x * x

    def pulled(cotangent: Any) -> Any:
        return torch.autograd.grad(y, x, cotangent, retain_graph=True)[0]

    found = torch.vmap(pulled)(torch.eye(3))
    assert found.tolist() == [[3, 0, 0], [0, 12, 0], [0, 0, 27]] and not found.requires_grad
    both = torch.vmap(lambda v: torch.autograd.grad([y, x * 2], x, [v, None], retain_graph=True)[0])(
        torch.eye(3)
    )
    assert both[1].tolist() == [2, 14, 2]
    w = torch.tensor([5.0, 6.0, 7.0], requires_grad=True)
    jacobian = functional.jacobian(lambda x: Weighted.apply(x, w), X)
    assert jacobian.tolist() == [[5, 0, 0], [0, 6, 0], [0, 0, 7]]


def test_backward_in_vmap_says_that_there_are_no_values() -> None:
    x = X.clone().requires_grad_()
    y = x * x
    for backward in (lambda v: y.backward(v), lambda v: torch.autograd.backward(y, v, inputs=[x])):
        with pytest.raises(RuntimeError, match="has no value yet"):
            torch.vmap(lambda v: (backward(v), v)[1])(torch.eye(3))  # noqa: B023
    assert x.grad is None
