"""Changing the shape of arrays, and picking elements by index."""

from __future__ import annotations

from collections.abc import Sequence

from twofold import _core, dtypes
from twofold.array_api.functions import functions
from twofold.errors import ArgumentError
from twofold.ops.base import normalize_axis

Tensor = _core.Tensor


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """``x`` broadcast to ``shape``."""
    return functions.broadcast_to(x, shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """The arrays one after the other along ``axis``; None flattens them first."""
    if axis is None:
        return functions.cat([functions.ravel(array) for array in arrays], 0)
    return functions.cat(list(arrays), axis)


def expand_dims(x: Tensor, /, axis: int = 0) -> Tensor:
    """A new axis of size 1 at ``axis``."""
    return functions.unsqueeze(x, axis)


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The order of the elements reversed along ``axis`` (None: along all)."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return functions.flip(x, axes)


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """Axes at other positions; the others stay in order."""
    return functions.moveaxis(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """The axes in another order."""
    return functions.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element ``repeats`` times along ``axis`` (None: of the flattened array)."""
    return functions.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in row-major order in another shape; one size may be -1."""
    made = functions.reshape(x, shape)
    return made.clone() if copy else made


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The elements moved on along ``axis``, those at the end to the front (None: of the flattened array)."""
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return functions.roll(x, shift, axis)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Without the axes ``axis``, which must have size 1 (else ValueError)."""
    for one in (axis,) if isinstance(axis, int) else axis:
        if x.shape[one] != 1:
            raise ArgumentError(f"axis {one} has size {x.shape[one]}", "Only axes of size 1 can vanish.")
    return functions.squeeze(x, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """The arrays side by side along a new axis."""
    return functions.stack(list(arrays), axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The whole array repeated along each axis."""
    return functions.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along ``axis``."""
    return tuple(functions.unbind(x, axis))


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices of ``x`` at ``indices`` (of one axis) along ``axis``, which a vector need not name."""
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(f"an array with {x.ndim} axes", "Name the axis to take from.")
        axis = 0
    return functions.index_select(x, axis, functions.remainder(indices, max(x.shape[axis], 1)))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements of ``x`` at ``indices`` along ``axis``; the other axes broadcast."""
    axis = normalize_axis(axis, x.ndim)
    sizes = [
        1 if k == axis else max(a, b, key=lambda size: size != 1)
        for k, (a, b) in enumerate(zip(x.shape, indices.shape, strict=True))
    ]
    spread = [size if k == axis else sizes[k] for k, size in enumerate(x.shape)]
    chosen = [size if k == axis else sizes[k] for k, size in enumerate(indices.shape)]
    wanted = functions.remainder(functions.broadcast_to(indices, chosen), max(x.shape[axis], 1)).to(
        dtypes.int64
    )
    return functions.gather(functions.broadcast_to(x, spread), axis, wanted)
