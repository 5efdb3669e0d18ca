"""Pooling layers: repr, sizes, values against windows taken by hand, NaN and ties."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import nn
from twofold.nn import functional as F
from twofold.ops.base import apply
from twofold.ops.convolution.window_loops import Span
from twofold.ops.convolution.windows import INSIDE, PADDED, WHOLE

G = numpy.random.default_rng(3)

LAYERS: list[tuple[str, Any, tuple[int, ...], tuple[int, ...]]] = [
    (
        "MaxPool1d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False)",
        nn.MaxPool1d(3, 2, 1),
        (2, 3, 8),
        (2, 3, 4),
    ),
    (
        "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=True)",
        nn.MaxPool2d(2, ceil_mode=True),
        (3, 5, 7),
        (3, 3, 4),
    ),
    (
        "MaxPool3d(kernel_size=(1, 2, 2), stride=(1, 2, 2), padding=0, dilation=1, ceil_mode=False)",
        nn.MaxPool3d((1, 2, 2)),
        (2, 3, 5, 6, 7),
        (2, 3, 5, 3, 3),
    ),
    ("AvgPool1d(kernel_size=(3,), stride=(3,), padding=(0,))", nn.AvgPool1d(3), (2, 3, 8), (2, 3, 2)),
    ("AvgPool2d(kernel_size=3, stride=2, padding=1)", nn.AvgPool2d(3, 2, 1), (2, 3, 8, 9), (2, 3, 4, 5)),
    ("AvgPool3d(kernel_size=2, stride=2, padding=0)", nn.AvgPool3d(2), (2, 4, 4, 5), (2, 2, 2, 2)),
    (
        "LPPool2d(norm_type=2, kernel_size=3, stride=2, ceil_mode=False)",
        nn.LPPool2d(2, 3, 2),
        (2, 3, 8, 9),
        (2, 3, 3, 4),
    ),
    ("AdaptiveAvgPool2d(output_size=(5, None))", nn.AdaptiveAvgPool2d((5, None)), (2, 7, 9), (2, 5, 9)),
    ("AdaptiveAvgPool1d(output_size=4)", nn.AdaptiveAvgPool1d(4), (1, 2, 7), (1, 2, 4)),
    ("AdaptiveMaxPool3d(output_size=2)", nn.AdaptiveMaxPool3d(2), (1, 5, 4, 3), (1, 2, 2, 2)),
    ("FractionalMaxPool2d()", nn.FractionalMaxPool2d(2, output_ratio=0.5), (1, 2, 8, 9), (1, 2, 4, 4)),
    ("FractionalMaxPool3d()", nn.FractionalMaxPool3d(2, output_size=3), (2, 8, 9, 7), (2, 3, 3, 3)),
]


@pytest.mark.parametrize("shown, layer, before, after", LAYERS, ids=[shown for shown, *_ in LAYERS])
def test_repr_and_size(shown: str, layer: Any, before: Any, after: Any) -> None:
    assert repr(layer) == shown
    assert layer(torch.tensor(G.normal(size=before))).shape == after


def windows(x: Any, kernel: int, stride: int) -> Any:
    """All windows of the last two axes, as two new axes at the end."""
    found = numpy.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (-2, -1))
    return found[..., ::stride, ::stride, :, :]


@pytest.mark.parametrize("width", [3, 16, 17, 40, 70])
@pytest.mark.parametrize("kernel, stride", [(2, 2), (3, 1), (3, 2), (2, 3)])
def test_values_and_gradients(width: int, kernel: int, stride: int) -> None:
    x = G.permutation(2 * 9 * width).reshape(2, 9, width).astype(numpy.float64)
    tensor = torch.tensor(x, requires_grad=True)
    cut = windows(x, kernel, stride)
    largest, mean = F.max_pool2d(tensor, kernel, stride), F.avg_pool2d(tensor, kernel, stride)
    numpy.testing.assert_array_equal(largest.detach().numpy(), cut.max((-2, -1)))
    numpy.testing.assert_allclose(mean.detach().numpy(), cut.mean((-2, -1)), rtol=1e-12)
    weight = G.normal(size=mean.shape)
    (found,) = torch.autograd.grad((largest * torch.tensor(weight)).sum(), tensor, retain_graph=True)
    expected, spread = numpy.zeros_like(x), numpy.zeros_like(x)
    for position in numpy.ndindex(mean.shape):
        plane, row, column = position[0], position[1] * stride, position[2] * stride
        part = numpy.s_[plane, row : row + kernel, column : column + kernel]
        expected[part] += weight[position] * (x[part] == x[part].max())
        spread[part] += weight[position] / kernel**2
    numpy.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    (found,) = torch.autograd.grad((mean * torch.tensor(weight)).sum(), tensor)
    numpy.testing.assert_allclose(found.numpy(), spread, rtol=1e-12, atol=1e-15)


def test_nan_wins_and_ties_go_to_the_first() -> None:
    x = torch.tensor([[1.0, 1.0, 0.0, float("nan"), 2.0, 5.0]])
    values, positions = F.max_pool1d(x, 2, return_indices=True)
    assert str(values.tolist()) == "[[1.0, nan, 5.0]]"
    assert positions.tolist() == [[0, 3, 5]]


def test_unpooling_brings_values_back() -> None:
    x = torch.tensor(G.normal(size=(2, 3, 6, 8)))
    values, positions = F.max_pool2d(x, 2, return_indices=True)
    back = nn.MaxUnpool2d(2)(values, positions)
    assert repr(nn.MaxUnpool2d(2)) == "MaxUnpool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))"
    assert back.shape == x.shape
    assert bool(((back == 0) | (back == x)).all())
    assert torch.equal(F.max_pool2d(back.abs(), 2), values.abs())


def test_fractional_windows_are_drawn_from_the_generator() -> None:
    x = torch.tensor(G.normal(size=(1, 2, 12, 12)))
    torch.manual_seed(1)
    first = F.fractional_max_pool2d(x, 2, output_size=7)
    torch.manual_seed(1)
    assert torch.equal(first, F.fractional_max_pool2d(x, 2, output_size=7))
    values, positions = F.fractional_max_pool2d_with_indices(x, 2, output_size=7)
    assert torch.equal(values.flatten(2), x.flatten(2).gather(2, positions.flatten(2)))


def test_the_function_of_the_package_gives_positions_too():
    x = torch.tensor([[[1.0, 4.0, 3.0, 2.0, 0.0]]])
    values, positions = torch.adaptive_max_pool1d(x, 2)
    assert values.tolist() == [[[4.0, 3.0]]] and positions.tolist() == [[[1, 2]]]
    assert torch.nn.functional.adaptive_max_pool1d(x, 2).tolist() == values.tolist()


def test_sizes_of_windows_may_be_numbers_of_numpy():
    x, two = torch.arange(16.0).reshape(1, 4, 4), numpy.int64(2)
    assert torch.equal(torch.nn.MaxPool2d(two)(x), torch.nn.MaxPool2d(2)(x))
    assert torch.equal(torch.nn.functional.avg_pool2d(x, two, two), torch.nn.functional.avg_pool2d(x, 2))
    pooled, indices = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    unpooled = torch.nn.functional.max_unpool2d(pooled, indices, two)
    assert torch.equal(unpooled, torch.nn.functional.max_unpool2d(pooled, indices, 2))


SUMS = {
    "apart": ((Span(1), Span(2, 2, 2), Span(3, 2, 2)), WHOLE),
    "overlapping": ((Span(2, 2, 1), Span(3, 3, 2, 1, 1), Span(5, 3, 1)), 5),
    "cut at the padding": ((Span(2), Span(3, 3, 2, 1, 1), Span(4, 3, 2, 1, 1)), PADDED),
    "cut at the input": ((Span(2), Span(3, 3, 2, 1, 1), Span(4, 3, 2, 1, 1)), INSIDE),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_over_windows_have_the_gradients_of_finite_differences(name: str) -> None:
    spans, divisor = SUMS[name]
    x = torch.tensor(G.standard_normal((2, spans[0].windows + spans[0].kernel - 1, 5, 7)), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: apply("window_sum", x, attrs=(spans, divisor)), (x,))


def test_sums_over_windows_with_gaps_are_refused() -> None:
    with pytest.raises(ValueError, match="without dilation"):
        apply("window_sum", torch.ones(1, 1, 1, 5), attrs=((Span(1), Span(1), Span(3, 2, 1, 2)), 2))
