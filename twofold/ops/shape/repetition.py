"""Tensors repeated along their axes, as a whole or element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.types import Shape
from twofold.ops.base import apply, normalize_axis, ops, public, publish
from twofold.ops.building_blocks import known_value
from twofold.ops.shape import shapes


@public("tile", methods=("tile",))
def tile(input: Any, *repetitions: Any, dims: Any = None) -> Any:
    """The input repeated as a whole ``repetitions`` (or ``dims``) times along each axis (aligned at the last).

    >>> import twofold as torch
    >>> torch.tile(torch.tensor([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    counts = shapes.integers(repetitions if dims is None else (dims,))
    ndim = max(len(counts), len(input.shape))
    counts = (1,) * (ndim - len(counts)) + counts
    if any(isinstance(count, int) and count < 0 for count in counts):
        raise ShapeError(f"repetitions {counts}, some of them negative", "Give numbers from 0.")
    shape = (1,) * (ndim - len(input.shape)) + tuple(input.shape)
    return _repeated(input, shape, counts, before=True)


def repeat(input: Any, *counts: Any, repeats: Any = None) -> Any:
    """The input repeated as a whole so often along each axis; more numbers than axes add axes in front.

    >>> import twofold as torch
    >>> torch.tensor([1, 2]).repeat(2, 1)
    tensor([[1, 2],
            [1, 2]])
    """
    wanted = shapes.given_integers(counts, repeats=repeats)
    if len(wanted) < len(input.shape):
        found = f"{len(wanted)} for {len(input.shape)}"
        what = f"the number of repeat dims can not be smaller than that of the tensor's dimensions: {found}"
        raise ShapeError(what, "Give a number for each axis, or use tile().")
    return tile(input, *wanted)


publish(repeat, (), ("repeat",))


def _repeated_indices(counts: Any, size: int) -> Any:
    if counts.shape != (size,):
        raise ShapeError(f"repeats of shape {counts.shape} for size {size}", "Give one number per element.")
    if counts.min(initial=0) < 0:
        raise ArgumentError(f"{counts.min()} repetitions", "Use numbers from 0.")
    return numpy.repeat(numpy.arange(size), counts)


def _repeated(input: Any, shape: Shape, counts: Sequence[int], before: bool) -> Any:
    """Each axis repeated as a whole (``before``) or element by element, as a copy."""
    apart: list[int] = []
    wide: list[int] = []
    for size, count in zip(shape, counts, strict=True):
        if count == 1:
            apart, wide = [*apart, size], [*wide, size]
        else:
            apart += [1, size] if before else [size, 1]
            wide += [count, size] if before else [size, count]
    result = tuple(size * count for size, count in zip(shape, counts, strict=True))
    return ops.copied(ops.reshape(ops.broadcast_to(ops.reshape(input, tuple(apart)), tuple(wide)), result))


@public(methods=("repeat_interleave",))
def repeat_interleave(
    input: Any, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Any:
    """Each element along an axis ``repeats`` times in a row; without ``dim`` of the flattened input.

    A vector of ``repeats`` has a number for each element. Alone it gives the positions: ``[1, 2]`` gives ``[0, 1, 1]``.
    Raises ShapeError where the result has not ``output_size`` elements along the axis.

    >>> import twofold as torch
    >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    >>> torch.repeat_interleave(torch.tensor([[1], [2]]), torch.tensor([2, 1]), dim=0)
    tensor([[1],
            [1],
            [2]])
    """
    if repeats is None:
        input, repeats = apply("arange", 0, 1, attrs=(input.shape[0], int64)), input
    if dim is None:
        input, dim = ops.ravel(input), 0
    axis = normalize_axis(dim, len(input.shape))
    found = _repeated_along(input, repeats, axis)
    if output_size not in (None, found.shape[axis]):
        raise ShapeError(
            f"{found.shape[axis]} elements for output_size {output_size}",
            "Give their number, or leave it out.",
        )
    return found


def _repeated_along(input: Any, repeats: Any, axis: int) -> Any:
    if hasattr(repeats, "shape"):
        counts = known_value(repeats, "the number of repetitions")
        if counts.size != 1:
            return ops.index_select(input, axis, _repeated_indices(counts, input.shape[axis]))
        repeats = int(counts.reshape(()))
    counts = [repeats if position == axis else 1 for position in range(len(input.shape))]
    return _repeated(input, tuple(input.shape), counts, before=False)
