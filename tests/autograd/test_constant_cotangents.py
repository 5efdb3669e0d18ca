"""A recorded backward pass takes detached cotangents as constants, wherever they come from; numbers are by hand."""

from collections.abc import Callable

import pytest

import twofold as torch

# y = x**3 at 2, so dy/dx = 3 x**2 = 12 times a cotangent of 8 = y. With a constant cotangent its derivative is
# 8 * 6 x = 96, with y itself it is 96 + 3 x**2 * 3 x**2 = 240.
CONSTANT, FLOWING = 96.0, 240.0


def second(
    make: Callable[[torch.Tensor], torch.Tensor], cotangent: Callable[[torch.Tensor], torch.Tensor | None]
) -> float:
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    y = make(x)
    (first,) = torch.autograd.grad(y, x, cotangent(y), create_graph=True)
    assert first.item() == 96
    return float(torch.autograd.grad(first, x)[0])


@pytest.mark.parametrize("detached", [lambda y: y.detach(), lambda y: y.data, lambda y: y.detach().float()])
def test_given_to_grad(detached: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert second(lambda x: x**3, detached) == CONSTANT
    assert second(lambda x: x**3, lambda y: y) == FLOWING


def test_given_to_backward() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y = x**3
    y.backward(y.detach(), create_graph=True)
    first, x.grad = x.grad, None
    assert torch.autograd.grad(first, x)[0].item() == CONSTANT


def test_returned_by_hooks() -> None:
    def hooked(x: torch.Tensor) -> torch.Tensor:
        y = x**3
        y.register_hook(lambda gradient: (gradient * y).detach())
        return y

    assert second(hooked, lambda y: None) == CONSTANT

    def hooked_call(x: torch.Tensor) -> torch.Tensor:
        y = x**3 * 1.0
        y.grad_fn.register_hook(lambda inputs, outputs: ((inputs[0] * y).detach(),))
        return y

    assert second(hooked_call, lambda y: None) == CONSTANT


def test_returned_by_the_backward_of_a_function() -> None:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: torch.autograd.function.FunctionCtx, y: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(y)
            return y * y / 2

        @staticmethod
        def backward(ctx: torch.autograd.function.FunctionCtx, gradient: torch.Tensor) -> torch.Tensor:
            return (gradient * ctx.saved_tensors[0]).detach()

    assert second(lambda x: Scaled.apply(x**3), lambda y: None) == CONSTANT
