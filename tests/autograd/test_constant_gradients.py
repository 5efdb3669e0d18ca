"""Gradients that are constant where they exist, as that of relu: their own gradients are zeros, as in PyTorch."""

import pytest

import twofold as torch
from twofold.nn import functional as F

PIECEWISE_LINEAR = {
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "hardtanh": F.hardtanh,
    "relu6": F.relu6,
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "threshold": lambda x: F.threshold(x, 0.1, 20),
    "max_pool1d": lambda x: F.max_pool1d(x[None], 2),
    "max_pool2d": lambda x: F.max_pool2d(x[None, None], 2),
    "adaptive_max_pool1d": lambda x: F.adaptive_max_pool1d(x[None], 2),
    "copysign": lambda x: torch.copysign(x, torch.ones(4)),
    "relu_": lambda x: (x * 1).relu_(),
    "prelu": lambda x: F.prelu(x, torch.tensor([0.25])),
    "prelu_of_channels": lambda x: F.prelu(x, torch.tensor([0.25, -1.0, 0.5, 2.0])),
    "rrelu": lambda x: F.rrelu(x, training=True),
}


@pytest.mark.parametrize("name", PIECEWISE_LINEAR)
@pytest.mark.parametrize("allow_unused", [False, True])
def test_second_derivatives_are_zeros(name, allow_unused):
    for _ in range(3):
        x = torch.tensor([[1.0, -2.0, 3.0, 0.5], [0.2, -0.1, 4.0, 2.0]], requires_grad=True)
        (g,) = torch.autograd.grad(PIECEWISE_LINEAR[name](x).sum(), x, create_graph=True)
        assert g.requires_grad
        (zeros,) = torch.autograd.grad(g.sum(), x, allow_unused=allow_unused)
        assert zeros.tolist() == [[0.0] * 4] * 2


def test_a_penalty_on_the_gradient_of_a_network():
    """The bias of the hidden layer and the input get zeros, that of the last layer nothing; values by hand."""
    for step in range(3):
        weight = torch.tensor([[2.0, -1.0], [1.0, 3.0]], requires_grad=True)
        bias = torch.tensor([0.5, -9.0], requires_grad=True)
        last = torch.tensor([[3.0], [5.0]], requires_grad=True)
        offset = torch.ones(1, requires_grad=True)
        x = torch.tensor([[1.0, 2.0]], requires_grad=True)
        y = torch.relu(x @ weight + bias) @ last + offset  # the second hidden value is negative
        if step:
            y.item()
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (g * g).sum().backward()
        assert weight.grad.tolist() == [[36.0, 0.0], [18.0, 0.0]]  # g = 3 * weight[:, 0]
        assert last.grad.tolist() == [[30.0], [0.0]]
        assert bias.grad.tolist() == [0.0, 0.0] and x.grad.tolist() == [[0.0, 0.0]]
        assert offset.grad is None


def test_hooks_and_retained_gradients_see_the_zeros():
    seen = []
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    h = x * 2
    h.register_hook(lambda gradient: seen.append(gradient.tolist()))
    h.retain_grad()
    (g,) = torch.autograd.grad(torch.relu(h).sum(), h, create_graph=True)
    found = torch.autograd.grad(g.sum(), [h, x], retain_graph=True)
    assert [one.tolist() for one in found] == [[0.0] * 3] * 2
    (g * 1).sum().backward()
    assert seen == [[1.0, 0.0, 1.0], [0.0] * 3, [0.0] * 3] and x.grad.tolist() == [0.0] * 3


def test_what_a_first_derivative_does_not_reach_stays_without_one():
    x, unused = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = torch.where(unused > 0, x * 2, x)
    assert torch.autograd.grad(y.sum(), [x, unused], allow_unused=True)[1] is None


def spaced(count):
    return torch.linspace(-1, 1, count)


LINEAR = {  # with what PyTorch 2.13 gives for the second derivative; "raises": the first does not require grad
    "avg_pool1d": (lambda x: F.avg_pool1d(x[0], 2), "zeros"),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), "zeros"),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, (1, 2, 2)), "zeros"),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 3), "zeros"),
    "adaptive_avg_pool2d to 1": (lambda x: F.adaptive_avg_pool2d(x, 1), "raises"),
    "area": (lambda x: F.interpolate(x, size=3, mode="area"), "zeros"),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), "raises"),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), "raises"),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), "raises"),
    "reflect": (lambda x: F.pad(x, (1, 2, 1, 1), mode="reflect"), "zeros"),
    "replicate": (lambda x: F.pad(x, (1, 2, 1, 1), mode="replicate"), "zeros"),
    "circular": (lambda x: F.pad(x, (1, 2, 1, 1), mode="circular"), "raises"),
    "constant": (lambda x: F.pad(x, (1, 2, 1, 1)), "raises"),
    "nll_loss": (lambda x: F.nll_loss(x[0, 0], torch.tensor([0, 1, 2, 3])), "zeros"),
    "unfold": (lambda x: F.unfold(x, 2), "raises"),
    "conv2d": (lambda x: F.conv2d(x, spaced(8).reshape(1, 2, 2, 2)), "None"),
    "conv_transpose2d": (lambda x: F.conv_transpose2d(x, spaced(8).reshape(2, 1, 2, 2)), "None"),
    "grid_sample": (lambda x: F.grid_sample(x, spaced(8).reshape(1, 2, 2, 2), align_corners=False), "None"),
    "batch_norm": (lambda x: F.batch_norm(x, spaced(2), spaced(2) + 2), "None"),
    "linear": (lambda x: F.linear(x, spaced(8).reshape(2, 4)), "raises"),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), "raises"),
}


@pytest.mark.parametrize("name", LINEAR)
def test_what_is_linear_has_no_second_derivative(name):
    """Zeros would need the inputs to be kept, as PyTorch keeps them; see docs/differences.md."""
    x = spaced(32).reshape(1, 2, 4, 4).requires_grad_()
    (g,) = torch.autograd.grad(LINEAR[name][0](x).sum(), x, create_graph=True)
    assert not g.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.autograd.grad(g.sum(), x, allow_unused=True)
