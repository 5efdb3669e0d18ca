"""Moving elements about: parts of sequences reversed, blocks of images, sorting, grids."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy

from twofold.dtypes import int32, int64
from twofold.errors import ArgumentError
from twofold.ops.axes import given_once
from twofold.ops.base import normalize_axis, ops
from twofold.static.api.aliases import renamed
from twofold.static.api.op_functions import (
    Alone,
    Dtype,
    Number,
    Tensors,
    axis_of,
    checked_below,
    convert_to_tensor,
    counted,
    full_of,
    numbers,
    operation,
    refuse,
    sizes,
    whole,
)
from twofold.static.api.signatures import REQUIRED, with_parameters
from twofold.static.arrays.indexing import indexed
from twofold.static.graph.docstrings import described, example


@operation("ReverseSequence", older={"seq_dim": "seq_axis", "batch_dim": "batch_axis"})
@example("tf.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], 1)", "[[2 1 3]\n [6 5 4]]")
def reverse_sequence(
    input: Alone, seq_lengths: Alone, seq_axis: Number = None, batch_axis: Number = None
) -> Any:
    """The first ``seq_lengths[k]`` steps of sequence ``k`` in the opposite order; the other steps stay."""
    if seq_axis is None:
        raise ValueError("reverse_sequence: seq_axis is not given. Say along which axis the steps lie.")
    time, batch = (normalize_axis(whole(axis), input.ndim) for axis in (seq_axis, batch_axis or 0))
    along_time, along_batch = [1] * input.ndim, [1] * input.ndim
    along_time[time], along_batch[batch] = input.shape[time], input.shape[batch]
    step = ops.reshape(counted(input.shape[time], input), tuple(along_time))
    known = checked_below(seq_lengths, input.shape[time] + 1, "a length in seq_lengths,")
    length = ops.reshape(known, tuple(along_batch))
    source = ops.where(ops.less(step, length), ops.subtract(ops.subtract(length, step), 1), step)
    return ops.take_along_dim(input, source, time)


def _with_last(data_format: Any, change: Callable[[Any], Any], images: Any) -> Any:
    """What ``change`` makes of images with the channels last, in the format that they came in."""
    if data_format not in ("NHWC", "NCHW"):
        raise ArgumentError(f"data_format is {data_format!r}", "Use 'NHWC' or 'NCHW'.")
    if data_format == "NHWC":
        return change(images)
    return ops.movedim(change(ops.movedim(images, 1, -1)), -1, 1)


@operation("SpaceToDepth", name_at=2)
@example("tf.squeeze(tf.space_to_depth([[[[1], [2]], [[3], [4]]]], 2))", "[1 2 3 4]")
def space_to_depth(input: Any, block_size: Number, data_format: Number = "NHWC") -> Any:
    """Blocks of ``block_size`` by ``block_size`` pixels as channels."""
    size = whole(block_size)

    def change(images: Any) -> Any:
        batch, height, width, depth = images.shape
        if height % size or width % size:
            raise ArgumentError(f"images of {height} x {width} in blocks of {size}", "Pad the images.")
        apart = ops.reshape(images, (batch, height // size, size, width // size, size, depth))
        moved = ops.permute(apart, (0, 1, 3, 2, 4, 5))
        return ops.reshape(moved, (batch, height // size, width // size, size * size * depth))

    return _with_last(data_format, change, input)


@operation("DepthToSpace", name_at=2)
@example("tf.squeeze(tf.depth_to_space([[[[1, 2, 3, 4]]]], 2))", "[[1 2]\n [3 4]]")
def depth_to_space(input: Any, block_size: Number, data_format: Number = "NHWC") -> Any:
    """Channels as blocks of ``block_size`` by ``block_size`` pixels."""
    size = whole(block_size)

    def change(images: Any) -> Any:
        batch, height, width, depth = images.shape
        if depth % (size * size):
            raise ArgumentError(
                f"{depth} channels for blocks of {size}", f"Give a multiple of {size * size}."
            )
        apart = ops.reshape(images, (batch, height, width, size, size, depth // (size * size)))
        moved = ops.permute(apart, (0, 1, 3, 2, 4, 5))
        return ops.reshape(moved, (batch, height * size, width * size, depth // (size * size)))

    return _with_last(data_format, change, input)


@operation("SpaceToBatchND")
@example(
    "print(tf.space_to_batch_nd(tf.zeros([1, 4, 4, 3]), [2, 2], [[0, 0], [0, 0]]).shape)", "(4, 2, 2, 3)"
)
def space_to_batch_nd(input: Any, block_shape: Number, paddings: Number) -> Any:
    """Every ``block_shape``-th element of the axes after the first, padded, in batches of their own."""
    block, pads = sizes(block_shape), [[int(n) for n in pair] for pair in numbers(paddings)]
    count, rest = len(block), tuple(input.shape[len(block) + 1 :])
    flat = [n for pair in reversed(pads) for n in pair]
    padded = ops.pad(input, (*[0, 0] * len(rest), *flat))
    batch, space = padded.shape[0], padded.shape[1 : count + 1]
    if any(size % step for size, step in zip(space, block)):
        raise ArgumentError(f"padded sizes {tuple(space)} in steps of {block}", "Pad to multiples.")
    apart = [part for size, step in zip(space, block) for part in (size // step, step)]
    grid = ops.reshape(padded, (batch, *apart, *rest))
    inner, outer = range(2, 2 * count + 1, 2), range(1, 2 * count + 1, 2)
    moved = ops.permute(grid, (*inner, 0, *outer, *range(2 * count + 1, grid.ndim)))
    found = [size // step for size, step in zip(space, block)]
    return ops.reshape(moved, (batch * int(numpy.prod(block)), *found, *rest))


@operation("BatchToSpaceND")
@example(
    "print(tf.batch_to_space_nd(tf.zeros([4, 2, 2, 3]), [2, 2], [[0, 0], [0, 0]]).shape)", "(1, 4, 4, 3)"
)
def batch_to_space_nd(input: Any, block_shape: Number, crops: Number) -> Any:
    """The inverse of ``space_to_batch_nd``: batches interleaved, then cropped."""
    block, cut = sizes(block_shape), [[int(n) for n in pair] for pair in numbers(crops)]
    count, rest = len(block), tuple(input.shape[len(block) + 1 :])
    space, total = input.shape[1 : count + 1], int(numpy.prod(block))
    if input.shape[0] % total:
        raise ArgumentError(f"{input.shape[0]} batches for blocks {block}", f"Give a multiple of {total}.")
    batch = input.shape[0] // total
    grid = ops.reshape(input, (*block, batch, *space, *rest))
    pairs = [position for k in range(count) for position in (count + 1 + k, k)]
    moved = ops.permute(grid, (count, *pairs, *range(2 * count + 1, grid.ndim)))
    made = ops.reshape(moved, (batch, *[size * step for size, step in zip(space, block)], *rest))
    for axis, (before, after) in enumerate(cut, 1):
        made = ops.narrow(made, axis, before, made.shape[axis] - before - after)
    return made


def _of_images(
    own: str, function: Callable[..., Any], pads: str, given: str, result: str
) -> Callable[..., Any]:
    """``function`` with one block size for height and width; ``pads`` names its other argument."""

    def change(block_size: Any, name: str | None, block_shape: Any, **images: Any) -> Any:
        block = given_once(block_size=block_size, block_shape=block_shape)
        block = [block, block] if isinstance(block, int) else block
        return function(images["input"], block, images[pads], name=name)

    parameters = {"input": REQUIRED, pads: REQUIRED, "block_size": None, "name": None, "block_shape": None}
    text = f"``{function.__name__}`` with one block size for height and width."
    shown = f"print(tf.{own}({given}, [[0, 0], [0, 0]], 2).shape)"
    return described(with_parameters(change, parameters), own, text, shown, result)


space_to_batch = _of_images(
    "space_to_batch", space_to_batch_nd, "paddings", "tf.zeros([1, 4, 4, 3])", "(4, 2, 2, 3)"
)
batch_to_space = _of_images(
    "batch_to_space", batch_to_space_nd, "crops", "tf.zeros([4, 2, 2, 3])", "(1, 4, 4, 3)"
)


roll = renamed("Roll", "roll", "input shift:axis axis:axis")


def _descends(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"sort: direction is {direction!r}. Use 'ASCENDING' or 'DESCENDING'.")
    return direction == "DESCENDING"


@operation("Sort", default="sort")
@example("tf.sort([3, 1, 2])", "[1 2 3]")
def sort(values: Any, axis: Number = -1, direction: Number = "ASCENDING") -> Any:
    """Elements in order along ``axis``."""
    return ops.sort(values, axis_of(axis), _descends(direction))[0]


@operation("ArgSort", default="argsort")
@example("tf.argsort([3, 1, 2])", "[1 2 0]")
def argsort(values: Any, axis: Number = -1, direction: Number = "ASCENDING", stable: Number = False) -> Any:
    """The indices (int32) of the elements in order along ``axis``; equal elements keep their order."""
    return ops.cast(ops.sort(values, axis_of(axis), _descends(direction), True)[1], int32)


@operation("SearchSorted")
@example("tf.searchsorted([1.0, 2.0, 3.0], [2.0, 9.0])", "[1 3]")
def searchsorted(sorted_sequence: Any, values: Any, side: Number = "left", out_type: Dtype = int32) -> Any:
    """Where ``values`` belong in the last axis of ``sorted_sequence``; before equal ones if ``side`` is left."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is {side!r}. Use 'left' or 'right'.")
    return ops.cast(ops.searchsorted(sorted_sequence, values, right=side == "right"), out_type)


@operation("InvertPermutation")
@example("tf.invert_permutation([2, 0, 1])", "[1 2 0]")
def invert_permutation(x: Any) -> Any:
    """``y`` with ``y[x[k]] = k``; a run raises InvalidArgumentError where ``x`` is no permutation."""
    count = x.shape[0]
    given, step = checked_below(x, count, "a number of the permutation,"), counted(count, x)
    found = ops.index_copy(full_of(0, (count,), int64, x), 0, given, ops.cast(step, int64))
    # of a number that occurs twice the last one was kept
    again = ops.where(ops.equal(ops.index_select(found, 0, given), step), 0, ops.add(given, 1))
    none_again = checked_below(again, 1, "one more than a number of the permutation that occurs twice,")
    return ops.cast(ops.add(found, none_again), x.dtype)


@operation("Meshgrid", several=list)
def _meshgrid(values: Tensors, indexing: Number) -> Any:
    return list(ops.meshgrid(*[ops.reshape(value, (-1,)) for value in values], indexing=indexing))


@example(
    "tf.meshgrid([1, 2], [3, 4])",
    "[array([[1, 2],\n       [1, 2]], dtype=int32), array([[3, 3],\n       [4, 4]], dtype=int32)]",
)
def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Any]:
    """The coordinates of a grid, one tensor for each axis; with ``"xy"`` the first two axes are swapped."""
    return _meshgrid([convert_to_tensor(value) for value in args], indexing, name=name or "meshgrid")


@operation("BatchGather")
@example("tf.batch_gather([[1, 2], [3, 4]], [[1], [0]])", "[[2]\n [3]]")
def batch_gather(params: Any, indices: Alone) -> Any:
    """For each batch, the slices of ``params`` along the last axis of ``indices`` by number."""
    last = indices.ndim - 1
    rest = params.shape[last + 1 :]
    positions = ops.reshape(ops.cast(indices, int64), (*indices.shape, *[1] * len(rest)))
    return ops.gather(params, last, ops.broadcast_to(positions, (*indices.shape, *rest)))


@operation("UnravelIndex")
@example("tf.unravel_index([5, 0], [2, 3])", "[[1 0]\n [2 0]]")
def unravel_index(indices: Any, dims: Number) -> Any:
    """The coordinates, along a new first axis, of flat indices into an array of shape ``dims``."""
    wanted = sizes(dims)
    found = ops.unravel_index(checked_below(indices, prod(wanted), "index"), wanted)
    return ops.cast(ops.stack(list(found), 0), indices.dtype)


def _bits(mask: int, count: int) -> list[bool]:
    return [bool(mask >> k & 1) for k in range(count)]


@operation("StridedSlice")
def _strided_slice(input_: Any, begin: Number, end: Number, strides: Number, masks: Number) -> Any:
    first, last = list(sizes(begin)), list(sizes(end))
    steps = [1] * len(first) if strides is None else list(sizes(strides))
    opens, closes, ellipsis, new, shrinks = (_bits(mask, len(first)) for mask in masks)
    key: list[Any] = []
    for k, (a, b, step) in enumerate(zip(first, last, steps)):
        if ellipsis[k]:
            key += [slice(None)] * (input_.ndim - (len(first) - 1 - sum(new)))
        elif new[k]:
            key.append(None)
        elif shrinks[k]:
            key.append(a)
        else:
            key.append(slice(None if opens[k] else a, None if closes[k] else b, step))
    return indexed(input_, tuple(key))


@example("tf.strided_slice([1, 2, 3, 4], [0], [4], [2])", "[1 3]")
def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Any:
    """``input_[begin:end:strides]`` by vectors; bit k of a mask changes what entry k means.

    Raises ArgumentError for ``var``: slices of variables are not assigned to.
    """
    refuse("strided_slice", var=var)
    masks = [begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask]
    return _strided_slice(input_, begin, end, strides, masks, name=name)
