"""Elements moved around the ends of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.ops.base import apply, composite, normalize_axis, ops
from twofold.ops.examples import example
from twofold.ops.shape import shapes
from twofold.ops.shape.movement import slice_axis


@composite
class roll:
    """Elements moved by ``shifts`` along ``dims``; what leaves at one end enters at the other.

    >>> import twofold as torch
    >>> torch.roll(torch.tensor([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    """

    methods = ("roll",)

    def call(input: Any, shifts: Any, dims: Any = None) -> Any:
        amounts = shapes.integers((shifts,) if isinstance(shifts, (tuple, list)) else ((shifts,),))
        if dims is None and len(input.shape) == 1:
            dims = (0,)
        if dims is None:
            flat = bind_roll(ops.ravel(input), amounts, (0,))
            return ops.reshape(flat, tuple(input.shape))
        positions = tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
        return bind_roll(input, amounts, tuple(normalize_axis(axis, len(input.shape)) for axis in positions))

    def compute(x: Any, amounts: Sequence[int], axes: Sequence[int]) -> Any:
        for amount, axis in zip(amounts, axes, strict=True):
            size = x.shape[axis]
            # a remainder would hide from plans for all sizes that the parts have as many elements as the axis
            moved = amount if -size < amount < size else amount % size if size else 0
            cut = size - moved if moved > 0 else -moved
            if cut:
                head, tail = slice_axis(x, axis, cut, size - cut), slice_axis(x, axis, 0, cut)
                x = ops.concatenate([head, tail], axis)
        return x

    reference = lambda x, amounts, axes: numpy.roll(x, amounts, axes)
    samples = lambda: [
        example(((5,), (1,)), (3, 17)),
        example(((1, -4), (0, 1)), (3, 17)),
        example(((0,), (0,)), (2,)),
    ]


def bind_roll(input: Any, amounts: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """A roll with checked attributes."""
    if len(amounts) != len(axes):
        raise ArgumentError(f"{len(amounts)} shifts for {len(axes)} axes", "Give one shift per axis.")
    return apply("roll", input, attrs=(amounts, axes))
