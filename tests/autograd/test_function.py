"""Operations with a gradient of the user's own, at any order and under every transform."""

from __future__ import annotations

import numpy
import pytest

import twofold as torch
from twofold import func
from twofold.autograd.function import once_differentiable


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, cotangent):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * cotangent


class Exp(torch.autograd.Function):
    """Saves its result, through which second derivatives flow."""

    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, cotangent):
        (y,) = ctx.saved_tensors
        return y * cotangent


class ScaledProduct(torch.autograd.Function):
    """Two results, an argument that is no tensor, and a result without gradient."""

    @staticmethod
    def forward(ctx, a, b, scale):
        ctx.save_for_backward(a, b)
        ctx.scale = scale
        larger = a > b
        ctx.mark_non_differentiable(larger)
        return scale * a * b, a + b, larger

    @staticmethod
    def backward(ctx, product, total, larger):
        a, b = ctx.saved_tensors
        left = product * b * ctx.scale + total if ctx.needs_input_grad[0] else None
        right = product * a * ctx.scale + total if ctx.needs_input_grad[1] else None
        return left, right, None


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(("operation", "twin"), [(Cube, lambda x: x**3), (Exp, torch.exp)])
def test_derivatives_of_every_order(operation, twin):
    x = leaf(0.5, 2.0)
    ours, wanted = operation.apply(x), twin(x)
    for _ in range(3):
        numpy.testing.assert_allclose(ours.detach().numpy(), wanted.detach().numpy(), rtol=1e-12)
        (ours,) = torch.autograd.grad(ours.sum(), x, create_graph=True)
        (wanted,) = torch.autograd.grad(wanted.sum(), x, create_graph=True)
    assert torch.autograd.gradcheck(operation.apply, (x,))
    assert torch.autograd.gradgradcheck(operation.apply, (x,))


@pytest.mark.parametrize("operation", [Cube, Exp])
def test_under_transforms(operation):
    x = torch.tensor([[0.5, 2.0], [1.0, -1.0]], dtype=torch.float64)
    total = lambda row: operation.apply(row).sum()
    rows = func.vmap(func.grad(total))(x)
    for row, found in zip(x, rows, strict=True):
        assert (func.grad(total)(row).numpy() == found.numpy()).all()
    _, pushed = func.jvp(operation.apply, (x,), (torch.ones_like(x),))
    numpy.testing.assert_allclose(pushed.numpy(), rows.numpy(), rtol=1e-12)
    assert func.hessian(total)(x[0]).shape == (2, 2)


def test_several_results():
    a, b = leaf(1.0, 2.0), leaf(3.0, 1.0)
    product, total, larger = ScaledProduct.apply(a, b, 2.0)
    assert not larger.requires_grad and larger.tolist() == [False, True]
    (product.sum() + 3 * total.sum()).backward()
    assert a.grad.tolist() == [9.0, 5.0] and b.grad.tolist() == [5.0, 7.0]
    (found,) = torch.autograd.grad(ScaledProduct.apply(a, b.detach(), 2.0)[0].sum(), a)
    assert found.tolist() == [6.0, 2.0]


def test_without_gradients_it_is_its_forward():
    x = torch.tensor([1.0, 2.0])
    assert not Cube.apply(x).requires_grad
    with torch.no_grad():
        assert not Cube.apply(leaf(1.0)).requires_grad


def test_a_straight_through_estimator_in_a_training_loop():
    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, cotangent):
            return cotangent.clamp(-1, 1)

    weight = leaf(0.2, 0.7)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(30):
        optimizer.zero_grad()
        ((Rounded.apply(weight) - torch.tensor([2.0, -1.0])) ** 2).sum().backward()
        optimizer.step()
    assert weight.detach().round().tolist() == [2.0, -1.0]


def test_once_differentiable_says_so():
    class Once(Cube):
        @staticmethod
        @once_differentiable
        def backward(ctx, cotangent):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * cotangent

    x = leaf(1.0)
    Once.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0]
    with pytest.raises(RuntimeError, match="marked once_differentiable is differentiated again"):
        func.grad(lambda x: func.grad(lambda x: Once.apply(x).sum())(x).sum())(x.detach())


def test_once_differentiable_is_no_error_of_other_values():
    class Once(Cube):
        @staticmethod
        @once_differentiable
        def backward(ctx, cotangent):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * cotangent

    x = leaf(1.0)
    (first,) = torch.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    assert first.tolist() == [3.0]
    assert (torch.ones(2) * 3).tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="marked once_differentiable is differentiated again"):
        torch.autograd.grad(first.sum(), x)
    assert (torch.ones(2) * 4).tolist() == [4.0, 4.0]


def _broken(backward):
    return type("Broken", (Cube,), {"backward": staticmethod(backward)})


@pytest.mark.parametrize(
    ("backward", "text"),
    [
        (lambda ctx, g: (g, g), "2 gradients for 1 arguments of forward"),
        (lambda ctx, g: g.sum(), r"Broken\.backward: the gradient of float64\[1\].* is float64\[\]"),
        (lambda ctx, g: 3, r"Broken\.backward: the gradient of float64\[1\].* is a int"),
    ],
)
def test_mistakes(backward, text):
    y = _broken(backward).apply(leaf(1.0))
    with pytest.raises(RuntimeError, match=text):
        y.backward()


def test_a_declared_backward_asks_for_no_values():
    broken = _broken(lambda ctx, g: g * g.sum().item())
    with pytest.raises(RuntimeError, match=r"Broken\.backward asks for a value of a cotangent"):
        func.vmap(func.grad(lambda x: broken.apply(x).sum()))(torch.ones(2, 1))


class Clipped(Cube):
    """Looks at its cotangent, in NumPy."""

    calls = 0

    @staticmethod
    def backward(ctx, cotangent):
        Clipped.calls += 1
        (x,) = ctx.saved_tensors
        largest = float(numpy.abs(cotangent.detach().numpy()).max())
        return cotangent * 3 * x**2 / max(largest, 1.0)


def test_backward_is_called_by_the_pass_with_values():
    Clipped.calls, x = 0, leaf(1.0, 2.0)
    y = Clipped.apply(x)
    assert Clipped.calls == 0
    (y * torch.tensor([4.0, 2.0])).sum().backward()
    assert Clipped.calls == 1 and x.grad.tolist() == [3.0, 6.0]
    (first,) = torch.autograd.grad((Clipped.apply(x) * 8).sum(), x, create_graph=True)
    first.sum().backward()
    assert x.grad.tolist() == [3.0 + 6.0, 6.0 + 12.0]


def test_backward_is_called_once_for_all_results_that_a_pass_reaches():
    seen = []

    class Parts(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + 1, x * 2, x * 3

        @staticmethod
        def backward(ctx, *cotangents):
            seen.append([cotangent.tolist() for cotangent in cotangents])
            return cotangents[0] * cotangents[2]

    x = leaf(5.0)
    first, _, third = Parts.apply(x)
    (first.sum() + third.sum() * 4).backward()
    assert seen == [[[1.0], [0.0], [4.0]]] and x.grad.tolist() == [4.0]


def test_a_backward_pass_within_backward():
    class Recomputed(torch.autograd.Function):
        """A module that is not kept for the gradient, but run again."""

        @staticmethod
        def forward(ctx, x, module):
            ctx.module = module
            ctx.save_for_backward(x)
            return module(x)

        @staticmethod
        def backward(ctx, cotangent):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                y = ctx.module(x)
            torch.autograd.backward(y, cotangent)
            return x.grad, None

    module, x = torch.nn.Linear(3, 2).double(), torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    module(x).pow(2).sum().backward()
    wanted = [x.grad, module.weight.grad, module.bias.grad]
    x.grad = module.weight.grad = module.bias.grad = None
    Recomputed.apply(x, module).pow(2).sum().backward()
    for value, found in zip(wanted, [x.grad, module.weight.grad, module.bias.grad], strict=True):
        numpy.testing.assert_allclose(value.numpy(), found.numpy(), rtol=1e-12)


def test_no_gradient_and_gradients_of_wider_shapes():
    x = leaf(1.0, 2.0)
    silent = _broken(lambda ctx, g: None).apply(x)
    assert torch.autograd.grad(silent.sum(), x, allow_unused=True, retain_graph=True) == (None,)
    silent.sum().backward()
    assert x.grad is None
    _broken(lambda ctx, g: torch.ones(3, 2)).apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_function_that_writes_to_its_argument():
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, cotangent):
            return cotangent * 2

    x = leaf(1.0, 2.0)
    y = x * 1
    z = Doubled.apply(y)
    assert z is y and y.tolist() == [2.0, 4.0]
    (y * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        Doubled.apply(x)


def test_saved_tensors_that_were_written_to():
    x = leaf(1.0) * 1
    y = Cube.apply(x)
    x.add_(1)
    with pytest.raises(
        RuntimeError, match=r"modified by an inplace operation: it is at version 1, expected version 0"
    ):
        y.backward()


def test_saved_results_that_were_written_to():
    class Exponential(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, cotangent):
            (result,) = ctx.saved_tensors
            return result * cotangent

    y = Exponential.apply(leaf(1.0))
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: it is at version 1"):
        y.backward()


def test_what_a_function_kept_is_freed():
    import gc
    import weakref

    class Held(Exp):
        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)
            ctx.kept = held.pop()

    held = [type("Kept", (), {})()]
    gone = weakref.ref(held[0])
    x = leaf(1.0)
    y = Held.apply(x)
    y.sum().item()
    assert gone() is not None
    del y
    gc.collect()
    assert gone() is None


def test_a_function_of_old_style_says_what_to_change() -> None:
    class Old(torch.autograd.Function):
        def forward(self, x):
            return x

    with pytest.raises(RuntimeError, match="static methods"):
        Old()(torch.ones(2))


def test_saved_tensors_by_their_older_name():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, cotangent):
            return 2 * ctx.saved_variables[0] * cotangent

    x = torch.tensor(3.0, requires_grad=True)
    Square.apply(x).backward()
    assert x.grad.item() == 6
