"""Layers that pad, resize and shuffle: repr, sizes, values, gradients."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import nn
from twofold.nn import functional as F

G = numpy.random.default_rng(5)

LAYERS: list[tuple[str, Any, tuple[int, ...], tuple[int, ...]]] = [
    ("Upsample(scale_factor=2.0, mode='nearest')", nn.Upsample(scale_factor=2), (1, 2, 3), (1, 2, 6)),
    (
        "Upsample(size=(2, 3), mode='bilinear')",
        nn.Upsample((2, 3), mode="bilinear"),
        (1, 2, 5, 5),
        (1, 2, 2, 3),
    ),
    (
        "UpsamplingNearest2d(scale_factor=2.0, mode='nearest')",
        nn.UpsamplingNearest2d(scale_factor=2),
        (1, 2, 3, 4),
        (1, 2, 6, 8),
    ),
    (
        "UpsamplingBilinear2d(size=(3, 4), mode='bilinear')",
        nn.UpsamplingBilinear2d((3, 4)),
        (1, 1, 2, 2),
        (1, 1, 3, 4),
    ),
    ("PixelShuffle(upscale_factor=2)", nn.PixelShuffle(2), (2, 8, 3, 4), (2, 2, 6, 8)),
    ("PixelUnshuffle(downscale_factor=2)", nn.PixelUnshuffle(2), (2, 6, 8), (8, 3, 4)),
    ("ChannelShuffle(groups=2)", nn.ChannelShuffle(2), (1, 4, 2, 2), (1, 4, 2, 2)),
    ("ConstantPad1d(padding=(2, 2), value=3.5)", nn.ConstantPad1d(2, 3.5), (1, 2, 3), (1, 2, 7)),
    ("ReflectionPad2d((2, 2, 2, 2))", nn.ReflectionPad2d(2), (1, 3, 4), (1, 7, 8)),
    ("ReplicationPad3d((1, 1, 1, 1, 1, 1))", nn.ReplicationPad3d(1), (1, 2, 3, 4), (1, 4, 5, 6)),
    ("ZeroPad2d((1, -1, 0, 2))", nn.ZeroPad2d((1, -1, 0, 2)), (1, 3, 4), (1, 5, 4)),
    ("CircularPad1d((2, 2))", nn.CircularPad1d(2), (2, 3), (2, 7)),
]


@pytest.mark.parametrize("shown, layer, before, after", LAYERS, ids=[shown for shown, *_ in LAYERS])
def test_repr_and_size(shown: str, layer: Any, before: Any, after: Any) -> None:
    assert repr(layer) == shown
    assert layer(torch.tensor(G.normal(size=before))).shape == after


def test_pixels_come_back() -> None:
    x = torch.tensor(G.normal(size=(2, 18, 4, 5)))
    assert torch.equal(F.pixel_unshuffle(F.pixel_shuffle(x, 3), 3), x)
    assert torch.equal(F.channel_shuffle(F.channel_shuffle(x, 3), 6), x)


def test_linear_interpolation_is_that_of_numpy() -> None:
    x = G.normal(size=(9,))
    inner = numpy.clip((numpy.arange(23) + 0.5) * 9 / 23 - 0.5, 0, 8)
    found = F.interpolate(torch.tensor(x[None, None]), 23, mode="linear")
    numpy.testing.assert_allclose(found.numpy()[0, 0], numpy.interp(inner, numpy.arange(9), x), rtol=1e-12)
    corners = F.interpolate(torch.tensor(x[None, None]), 23, mode="linear", align_corners=True)
    numpy.testing.assert_allclose(
        corners.numpy()[0, 0], numpy.interp(numpy.linspace(0, 8, 23), numpy.arange(9), x), rtol=1e-12
    )


def test_cubic_interpolation_is_symmetric_and_keeps_constants() -> None:
    x = G.normal(size=(1, 1, 4, 9))
    found = F.interpolate(torch.tensor(x), (7, 23), mode="bicubic").numpy()
    turned = F.interpolate(torch.tensor(x[..., ::-1, ::-1].copy()), (7, 23), mode="bicubic").numpy()
    numpy.testing.assert_allclose(turned[..., ::-1, ::-1], found, atol=1e-12)
    flat = F.interpolate(torch.tensor(numpy.full((1, 1, 2, 3), 1.5)), (5, 4), mode="bicubic")
    numpy.testing.assert_allclose(flat.numpy(), 1.5, rtol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_an_antialiased_small_image_keeps_its_mean(mode: str) -> None:
    x = G.normal(size=(1, 2, 16, 24))
    small = F.interpolate(torch.tensor(x), (1, 1), mode="bilinear", antialias=True).numpy()
    flat = torch.tensor(numpy.full((1, 1, 9, 7), 2.5))
    assert abs(small).max() < 1
    numpy.testing.assert_allclose(F.interpolate(flat, (4, 3), mode=mode, antialias=True).numpy(), 2.5)


def test_an_identity_grid_gives_the_image() -> None:
    x = torch.tensor(G.normal(size=(2, 3, 5, 7)))
    theta = torch.tensor(numpy.array([[[1.0, 0, 0], [0, 1.0, 0]]] * 2))
    for align in (False, True):
        grid = F.affine_grid(theta, (2, 3, 5, 7), align_corners=align)
        for mode in ("bilinear", "nearest", "bicubic"):
            found = F.grid_sample(x, grid, mode, "border", align)
            numpy.testing.assert_allclose(found.numpy(), x.numpy(), atol=1e-10)


def test_positions_that_are_not_numbers_stay_inside() -> None:
    x = torch.ones(1, 1, 3, 3)
    grid = torch.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0], [1e30, -1e30]]]])
    for padding in ("zeros", "border", "reflection"):
        F.grid_sample(x, grid, padding_mode=padding, align_corners=False).tolist()


def test_reflection_adds_up_in_the_gradient() -> None:
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    torch.nn.functional.pad(x, (2, 3), "reflect").sum().backward()
    assert x.grad.tolist() == [2.0, 3.0, 3.0, 1.0]


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("axes", [2, 3])
def test_positions_of_the_nearest_element_have_a_gradient_of_zeros(padding: str, axes: int) -> None:
    image = torch.rand(2, 3, *[4] * axes, requires_grad=True)
    grid = (torch.rand(2, *[3] * axes, axes) * 2.8 - 1.4).requires_grad_()
    made = torch.nn.functional.grid_sample(image, grid, "nearest", padding, align_corners=False)
    made.sum().backward()
    assert grid.grad.shape == grid.shape and not grid.grad.any() and image.grad.any()
