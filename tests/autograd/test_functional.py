"""``autograd.functional``, batched gradients and checkpoints."""

from __future__ import annotations

import numpy
import pytest

import twofold as torch
from twofold.autograd import functional
from twofold.utils.checkpoint import checkpoint, checkpoint_sequential

X = torch.tensor([0.5, 1.5, -1.0], dtype=torch.float64)
Y = torch.tensor([2.0, 3.0], dtype=torch.float64)


def outer(x, y):
    return x.sin()[:, None] * y, (x.sum() * y).sum()


def scalar(x, y):
    return (x.sin().sum() * (y**2).prod()) + x.prod()


def close(found, wanted):
    numpy.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobian_has_a_position_for_each_pair(strategy):
    found = functional.jacobian(outer, (X, Y), strategy=strategy, vectorize=True)
    assert [[tuple(part.shape) for part in row] for row in found] == [[(3, 2, 3), (3, 2, 2)], [(3,), (2,)]]
    close(found[1][0], torch.ones(3) * Y.sum())
    single = functional.jacobian(torch.sin, X, strategy=strategy)
    close(single, torch.diag(X.cos()))


def test_hessian_and_its_products():
    h = functional.hessian(scalar, (X, Y))
    v = (X * 2, Y + 1)
    wanted = [h[k][0] @ v[0] + h[k][1] @ v[1] for k in range(2)]
    for product in (functional.hvp, functional.vhp):
        output, found = product(scalar, (X, Y), v)
        close(output, scalar(X, Y))
        for part, other in zip(found, wanted, strict=True):
            close(part, other)
    close(functional.hessian(scalar, (X, Y), outer_jacobian_strategy="forward-mode")[0][1], h[0][1])


def test_products_with_the_jacobian():
    output, pulled = functional.vjp(outer, (X, Y), (torch.ones(3, 2, dtype=torch.float64), Y.sum()))
    _, pushed = functional.jvp(outer, (X, Y), (X, Y))
    across = pushed[0].sum() + pushed[1] * Y.sum()
    close(across, (pulled[0] * X).sum() + (pulled[1] * Y).sum())
    assert not output[0].requires_grad


def test_create_graph_keeps_the_gradient():
    x = X.clone().requires_grad_()
    assert not functional.jacobian(torch.sin, x).requires_grad
    found = functional.jacobian(torch.sin, x, create_graph=True)
    found.sum().backward()
    close(x.grad, -X.sin())


def test_mistakes():
    with pytest.raises(
        RuntimeError, match="Output 0 of the user-provided function is independent of input 1"
    ):
        functional.jacobian(lambda x, y: x * 2, (X, Y), strict=True)
    with pytest.raises(RuntimeError, match="should contain a single element"):
        functional.hessian(torch.sin, X)
    with pytest.raises(
        TypeError, match="inputs given to jacobian must be either a Tensor or a tuple of Tensors"
    ):
        functional.jacobian(torch.sin, (1.0,))
    with pytest.raises(RuntimeError, match="vjp: the vector v can only be None"):
        functional.vjp(torch.sin, X)
    with pytest.raises(ValueError, match="strategy is 'both'"):
        functional.jacobian(torch.sin, X, strategy="both")


def test_batched_gradients_have_the_bits_of_single_ones():
    x = X.clone().requires_grad_()
    unused = Y.clone().requires_grad_()
    y = torch.softmax(x * 2, 0) * x
    seeds = torch.randn(4, 3, dtype=torch.float64)
    (found, none) = torch.autograd.grad(y, (x, unused), seeds, is_grads_batched=True, allow_unused=True)
    assert none is None and not found.requires_grad
    for seed, row in zip(seeds, found, strict=True):
        assert (torch.autograd.grad(y, x, seed, retain_graph=True)[0].numpy() == row.numpy()).all()
    zeros = torch.autograd.grad(y, (x, unused), seeds, is_grads_batched=True, materialize_grads=True)[1]
    assert zeros.tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="grad_outputs hold samples of float64"):
        torch.autograd.grad(y, x, seeds[0], is_grads_batched=True)


# Checkpoints


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)
    )


def gradients(run):
    module, x = model(), torch.ones(5, 3)
    torch.manual_seed(3)
    run(module, x).sum().backward()
    return [parameter.grad.numpy() for parameter in module.parameters()]


@pytest.mark.parametrize("segments", [1, 2, 4])
def test_a_checkpoint_changes_no_bit(segments):
    plain = gradients(lambda module, x: module(x))
    for run in (
        lambda module, x: checkpoint(module, x, use_reentrant=False),
        lambda module, x: checkpoint_sequential(module, segments, x),
    ):
        for one, other in zip(plain, gradients(run), strict=True):
            assert (one == other).all()


def test_a_checkpoint_takes_trees_and_branches():
    x = X.clone().requires_grad_()
    found = checkpoint(lambda p, scale, name=None: {"y": (p["x"] * scale, name)}, {"x": x}, 2.0, name="n")
    assert found["y"][1] == "n"
    found["y"][0].sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    branching = checkpoint(lambda x: x * 2 if x.sum() > 0 else x * 3, x)
    close(branching, x * 2)
    with torch.no_grad():
        assert not checkpoint(torch.sin, x).requires_grad


@pytest.mark.parametrize(
    ("name", "option"), [("jacobian", "strategy"), ("hessian", "outer_jacobian_strategy")]
)
def test_a_strategy_is_one_of_two(name, option):
    function = getattr(torch.autograd.functional, name)
    with pytest.raises(ValueError, match=f"{option} is 'other'"):
        function(lambda x: (x**3).sum(), torch.ones(2), **{option: "other"})
