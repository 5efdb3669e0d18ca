"""``nn.grad`` and ``conv_tbc`` beside autograd and sums of products."""

from __future__ import annotations

import numpy
import pytest

import twofold as torch
from twofold.nn import grad


@pytest.mark.parametrize("count", [1, 2, 3])
def test_gradients_of_convolutions(count):
    size = (5,) * count
    settings = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    x, w = torch.randn(2, 4, *size, requires_grad=True), torch.randn(6, 2, *(3,) * count, requires_grad=True)
    y = getattr(torch.nn.functional, f"conv{count}d")(x, w, **settings)
    cotangent = torch.randn(*y.shape)
    y.backward(cotangent)
    of_input = getattr(grad, f"conv{count}d_input")(x.shape, w, cotangent, **settings)
    of_weight = getattr(grad, f"conv{count}d_weight")(x, w.shape, cotangent, **settings)
    assert torch.allclose(of_input, x.grad, atol=1e-5) and torch.allclose(of_weight, w.grad, atol=1e-5)
    assert of_input.requires_grad and of_weight.requires_grad
    with torch.no_grad():
        assert not getattr(grad, f"conv{count}d_input")(x.shape, w, cotangent, **settings).requires_grad


def test_conv_tbc_is_a_sum_over_time_and_channels():
    x, w, b = (numpy.random.RandomState(0).randn(*size) for size in ((4, 2, 3), (2, 3, 5), (5,)))
    padded = numpy.pad(x, ((1, 1), (0, 0), (0, 0)))
    expected = sum(padded[k : k + 5] @ w[k] for k in range(2)) + b
    found = torch.conv_tbc(*(torch.from_numpy(one) for one in (x, w, b)), 1)
    numpy.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    with pytest.raises(RuntimeError, match="conv_tbc: bias"):
        torch.conv_tbc(torch.ones(3, 1, 1), torch.ones(1, 1, 1), torch.ones(1, 1))
