"""Channels moved into space and back, and channels mixed between groups."""

from __future__ import annotations

from typing import Any

from twofold.errors import ArgumentError, ShapeError
from twofold.ops.base import ops, public


def _leading(input: Any, name: str) -> tuple[tuple[int, ...], int, int, int]:
    shape = tuple(input.shape)
    if len(shape) < 3:
        raise ShapeError(f"an input with {len(shape)} axes", f"{name} takes (..., channels, height, width).")
    return shape[:-3], *shape[-3:]


def _factor(value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        raise ArgumentError(f"a factor of {value!r}", "Use a positive integer.")
    return value


@public()
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """``(..., channels*r*r, height, width)`` as ``(..., channels, height*r, width*r)``.

    Source: Shi et al., Real-Time Single Image and Video Super-Resolution, 2016, eq. 4.

    >>> import twofold as torch
    >>> torch.pixel_shuffle(torch.arange(4).reshape(1, 4, 1, 1), 2)
    tensor([[[[0, 1],
              [2, 3]]]])
    """
    r = _factor(upscale_factor)
    lead, channels, height, width = _leading(input, "pixel_shuffle")
    if channels % (r * r):
        raise ShapeError(
            f"{channels} channels for an upscale_factor of {r}",
            f"Use a number of channels divisible by its square, {r * r}.",
        )
    n = len(lead)
    apart = ops.reshape(input, (*lead, channels // (r * r), r, r, height, width))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return ops.copied(
        ops.reshape(ops.permute(apart, order), (*lead, channels // (r * r), height * r, width * r))
    )


@public()
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """``(..., channels, height*r, width*r)`` as ``(..., channels*r*r, height, width)``.

    >>> import twofold as torch
    >>> torch.pixel_unshuffle(torch.tensor([[[0, 1], [2, 3]]]), 2).tolist()
    [[[0]], [[1]], [[2]], [[3]]]
    """
    r = _factor(downscale_factor)
    lead, channels, height, width = _leading(input, "pixel_unshuffle")
    if height % r or width % r:
        raise ShapeError(
            f"height {height} and width {width} for a downscale_factor of {r}",
            "Use sizes that are divisible by it.",
        )
    n = len(lead)
    apart = ops.reshape(input, (*lead, channels, height // r, r, width // r, r))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return ops.copied(
        ops.reshape(ops.permute(apart, order), (*lead, channels * r * r, height // r, width // r))
    )


@public("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(input: Any, groups: int) -> Any:
    """The channels (axis 1) of ``groups`` groups dealt out in turn.

    Source: Zhang et al., ShuffleNet, 2018, section 3.1.

    >>> import twofold as torch
    >>> torch.channel_shuffle(torch.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    shape = tuple(input.shape)
    if len(shape) < 3:
        raise ShapeError(f"an input with {len(shape)} axes", "Use (batch, channels, ...) with more than 2.")
    if not isinstance(groups, int) or groups < 1 or shape[1] % groups:
        raise ArgumentError(
            f"{groups} groups of {shape[1]} channels", "Use a positive number that divides them."
        )
    apart = ops.reshape(input, (shape[0], groups, shape[1] // groups, *shape[2:]))
    return ops.copied(ops.reshape(ops.transpose(apart, 1, 2), shape))
