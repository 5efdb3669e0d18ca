"""Gradients where a formula alone would give NaN or an infinity: what PyTorch documents holds there."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy
import pytest

import twofold as torch

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(("name", "shift"), [("xlogy", 0.0), ("xlog1py", 1.0)])
def test_x_times_a_logarithm(name: str, shift: float) -> None:
    """The derivative by x is 0 where x is 0 and the logarithm is not finite, else it is the logarithm."""
    x = torch.tensor([0.0, 0.0, 0.0, 2.0, 2.0, 0.0], requires_grad=True)
    y = torch.tensor([0.0, -1.0, 2.0, 3.0, 0.0, NAN]) - shift
    y.requires_grad_()
    getattr(torch.special, name)(x, y).backward(torch.tensor([3.0] * 6))
    logarithms = [0.0, 0.0, math.log(2), math.log(3), -INF, NAN]
    numpy.testing.assert_allclose(x.grad.numpy(), 3 * numpy.array(logarithms), rtol=1e-6)
    numpy.testing.assert_allclose(y.grad.numpy(), [NAN, 0.0, 0.0, 2.0, INF, NAN], rtol=1e-6)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_second_derivatives_of_distances_are_finite_beside_equal_points(p: float) -> None:
    points = numpy.random.default_rng(0).normal(size=(5, 3))
    x = torch.tensor(points, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: torch.nn.functional.pdist(x, p), (x,))
    weights = torch.tensor(1 - numpy.eye(5))  # the distance of a point to itself has no derivative
    assert torch.autograd.gradgradcheck(lambda x: torch.cdist(x, x, p) * weights, (x,))


def test_the_angle_of_the_origin_has_derivatives_of_zero() -> None:
    y = torch.tensor([0.0, -0.0, 3.0], requires_grad=True)
    x = torch.tensor([0.0, 0.0, 4.0], requires_grad=True)
    torch.atan2(y, x).sum().backward()
    numpy.testing.assert_allclose(y.grad.numpy(), [0.0, 0.0, 4 / 25], rtol=1e-6)
    numpy.testing.assert_allclose(x.grad.numpy(), [0.0, 0.0, -3 / 25], rtol=1e-6)


@pytest.mark.parametrize(
    "limited",
    [
        lambda x: x.clamp(-1, 1),
        lambda x: x.clamp(min=-1),
        lambda x: x.clamp(max=1),
        lambda x: torch.clamp(x, torch.tensor([-1.0, NAN, -1.0]), torch.tensor([1.0, 1.0, 1.0])),
    ],
)
def test_no_gradient_passes_a_limit_at_nan(limited: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.tensor([NAN, 0.5, 0.5], requires_grad=True)
    y = limited(x)
    y.sum().backward()
    assert math.isnan(y[0].item())
    assert x.grad.tolist() == [0.0, 0.0 if math.isnan(y[1].item()) else 1.0, 1.0]


def test_the_sign_of_nan_is_zero_and_so_is_the_slope_of_its_magnitude() -> None:
    x = torch.tensor([NAN, -2.0, -0.0], requires_grad=True)
    torch.abs(x).sum().backward()
    assert torch.sign(x).tolist() == x.grad.tolist() == [0.0, -1.0, 0.0]
    found = torch.array_api.sign(x.detach()).tolist()
    assert math.isnan(found[0]) and found[1:] == [-1.0, 0.0], "the array API standard keeps NaN"
