"""Layouts of images, and the numbers that windows over them have: strides, dilations, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.errors import ArgumentError
from twofold.ops.base import ops
from twofold.static.api.op_functions import numbers, whole
from twofold.static.nn.pooling import LAYOUTS, same_padding


def channels_behind_batch(x: Any, count: int, data_format: str | None) -> Any:
    """``x`` with its channels behind the batch."""
    if not are_channels_last(data_format, count):
        return x
    return ops.permute(x, (0, count + 1, *range(1, count + 1)))


def channels_back(y: Any, count: int, data_format: str | None) -> Any:
    """``y`` with its channels where the layout has them, from behind the batch."""
    if not are_channels_last(data_format, count):
        return y
    return ops.permute(y, (0, *range(2, count + 2), 1))


def are_channels_last(data_format: str | None, count: int) -> bool:
    """Whether a layout of ``count`` spatial axes has the channels last; raises ArgumentError for no layout."""
    last, first = LAYOUTS[count]
    if data_format not in (None, last, first):
        raise ArgumentError(f"data_format {data_format!r}", f"Use {last!r} or {first!r}.")
    return data_format != first


def spatial_numbers(name: str, value: Any, count: int, data_format: str | None) -> tuple[int, ...]:
    """The numbers of the spatial axes, from one for all, one each, or one for every axis of the image."""
    if value is None:
        return (1,) * count
    found = numbers(value)
    given = [int(item) for item in (found if isinstance(found, list | tuple) else [found])]
    if len(given) == 1:
        return tuple(given) * count
    if len(given) == count + 2:
        begin = 1 if are_channels_last(data_format, count) else 2
        kept = given[begin : begin + count]
        if len([item for item in given if item != 1]) > len([item for item in kept if item != 1]):
            raise ArgumentError(f"{name} {given}", "Use 1 for batch and channels.")
        given = kept
    if len(given) != count:
        raise ArgumentError(
            f"{name} {given} for {count} spatial axes", f"Give {count} numbers, or {count + 2}."
        )
    return tuple(given)


def padded_sides(
    padding: Any,
    image: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    last: bool = True,
) -> tuple[tuple[int, ...], ...]:
    """Padding before and behind each axis.

    A list holds a pair for each axis of the image, of zeros for those of batch and channels.
    """
    if isinstance(padding, list | tuple):
        pairs = [tuple(whole(width) for width in pair) for pair in padding]
        spatial = pairs[1:-1] if last else pairs[2:]
        outside = [pair for pair in (pairs[0], pairs[-1] if last else pairs[1]) if pair != (0, 0)]
        if len(spatial) != len(kernel) or outside or any(min(pair) < 0 for pair in pairs):
            raise ArgumentError(
                f"padding {pairs}", "Give a pair for each axis, [0, 0] for batch and channels."
            )
        return tuple(spatial)
    if str(padding).upper() == "VALID":
        return ((0, 0),) * len(kernel)
    if str(padding).upper() != "SAME":
        raise ArgumentError(f"padding {padding!r}", "Use 'SAME' or 'VALID'.")
    return tuple(same_padding(*axis) for axis in zip(image, kernel, strides, dilations, strict=True))


def with_depth(value: Any) -> Any:
    """Values of one to three spatial axes behind two others, with axes of one element before them to three."""
    missing = (1,) * (5 - len(value.shape))
    return ops.reshape(value, (*value.shape[:2], *missing, *value.shape[2:])) if missing else value
