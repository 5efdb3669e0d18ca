"""Elements of the dense row-major layout at regular distances: strided views, windows, quarter turns, slices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.bind import constant
from twofold.ir.types import Shape
from twofold.ops.base import (
    apply,
    composite,
    filled,
    normalize_axis,
    ops,
    public,
    strong,
)
from twofold.ops.examples import example
from twofold.ops.shape import shapes
from twofold.ops.shape.movement import axis_numbers, repeated_axes, slice_axis
from twofold.ops.shape.storage import layout_of, storage_beside


def _strided_positions(size: Shape, stride: Shape, offset: int) -> Any:
    """The node of the positions in the layout of the input, ``[1, elements, 1]``."""
    positions: Any = constant(offset, int64)
    for axis, step in enumerate(stride):
        positions = positions + axis_numbers(axis, size) * step
    return ops.reshape(ops.broadcast_to(positions, size), (1, prod(size), 1))


@composite
class as_strided:
    """The elements at ``storage_offset + sum(stride * index)`` of the storage that the input shows.

    ``storage_offset`` is by default that of the input. Several indices may show one element; of what is written to
    these the last stays. Raises ShapeError where an element lies outside the storage.

    >>> import twofold as torch
    >>> torch.as_strided(torch.arange(5), (3, 3), (1, 1)).tolist()
    [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    """

    methods = ("as_strided",)
    is_view = True
    may_copy = True
    inplace = "shape"

    def call(
        input: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
    ) -> Any:
        if getattr(input, "_view", None) is not None:
            # strides count elements of the storage, of which a view may show a part
            storage_offset = layout_of(input).offset if storage_offset is None else storage_offset
            input = storage_beside(input)
        attrs = (shapes.integers((tuple(size),)), shapes.integers((tuple(stride),)), int(storage_offset or 0))
        return apply("as_strided", input, attrs=_checked_strides(tuple(input.shape), attrs))

    def compute(x: Any, size: Shape, stride: Shape, offset: int) -> Any:
        x = strong(x)
        if not prod(size):
            return filled(0, x.dtype, size)
        flat = ops.reshape(x, (1, prod(x.shape), 1))
        return ops.reshape(apply("gather_block", flat, _strided_positions(size, stride, offset)), size)

    def write(base: Any, value: Any, size: Shape, stride: Shape, offset: int) -> Any:
        if not prod(size):
            return base
        flat, line = ops.reshape(base, (1, prod(base.shape), 1)), ops.reshape(value, (1, prod(size), 1))
        written = apply("scatter_set", flat, _strided_positions(size, stride, offset), line)
        return ops.reshape(written, base.shape)

    def reference(x: Any, size: Shape, stride: Shape, offset: int) -> Any:
        positions = sum((n * s for n, s in zip(numpy.indices(size), stride)), numpy.zeros(size, int) + offset)
        return x.reshape(-1)[positions]

    # strides that count elements of the input are strides in the storage only where the input is dense
    layout = lambda source, size, stride, offset: (
        source._replace(size=size, stride=stride, offset=source.offset + offset)
        if source.is_row_major
        else None
    )
    samples = lambda: [
        example(((2, 3), (1, 2), 1), (9,)),
        example(((3, 3), (1, 1), 0), (2, 3)),
        example(((4,), (0,), 2), (5,)),
        example(((), (), 3), (5,)),
    ]


def _checked_strides(shape: Shape, attrs: tuple[Shape, Shape, int]) -> tuple[Shape, Shape, int]:
    size, stride, offset = attrs
    if len(size) != len(stride):
        raise ArgumentError(f"{len(size)} sizes and {len(stride)} strides", "Give one stride per size.")
    if min(*size, *stride, offset, 0) < 0:
        raise ArgumentError(f"size {size}, stride {stride}, storage_offset {offset}", "None may be negative.")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride))
    if prod(size) and last >= prod(shape):
        raise ShapeError(f"element {last} of {prod(shape)}", "Use smaller sizes, strides or offset.")
    return attrs


@public(methods=("as_strided_scatter",))
def as_strided_scatter(
    input: Any, src: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Any:
    """The input with the elements that ``as_strided`` shows replaced by ``src``.

    >>> import twofold as torch
    >>> torch.as_strided_scatter(torch.zeros(4), torch.tensor([1.0, 2.0]), (2,), (3,))
    tensor([1., 0., 0., 2.])
    """
    attrs = (shapes.integers((tuple(size),)), shapes.integers((tuple(stride),)), int(storage_offset or 0))
    return apply("write_view", input, src, attrs=("as_strided", _checked_strides(tuple(input.shape), attrs)))


@composite
class unfold:
    """Windows of ``size`` elements along ``dimension``, ``step`` apart, as a new last axis."""

    functions = ()
    methods = ("unfold",)
    is_view = True

    def call(input: Any, dimension: int, size: int, step: int) -> Any:
        axis = normalize_axis(dimension, len(input.shape))
        length = input.shape[axis] if len(input.shape) else 1
        if not 0 <= size <= length:
            raise ShapeError(f"windows of {size} elements along size {length}", f"Use at most {length}.")
        if step < 1:
            raise ArgumentError(f"windows {step} apart", "Use a positive step.")
        return apply("unfold", input, attrs=(axis, int(size), int(step)))

    def compute(x: Any, axis: int, size: int, step: int) -> Any:
        x = strong(x)
        if not x.ndim:
            return ops.reshape(x, (1,)) if size else _no_elements(x)
        rows = ops.index_select(x, axis, _windows(x.shape[axis], size, step))
        return ops.movedim(rows, axis + 1, -1)

    def write(base: Any, value: Any, axis: int, size: int, step: int) -> Any:
        if not base.ndim:
            return ops.reshape(value, ()) if size else base
        moved = ops.movedim(value, -1, axis + 1)
        count = moved.shape[axis] * size
        flat = ops.reshape(moved, (*base.shape[:axis], count, *base.shape[axis + 1 :]))
        return ops.index_copy(base, axis, ops.ravel(_windows(base.shape[axis], size, step)), flat)

    def layout(source: Any, axis: int, size: int, step: int) -> Any:
        if not source.size:
            return source._replace(size=(size,), stride=(1,))
        sizes, stride = list(source.size), list(source.stride)
        within = stride[axis]
        sizes[axis], stride[axis] = (sizes[axis] - size) // step + 1, within * step
        return source._replace(size=(*sizes, size), stride=(*stride, within))

    def reference(x: Any, axis: int, size: int, step: int) -> Any:
        windows = numpy.lib.stride_tricks.sliding_window_view(x, size, axis)
        return windows[(*(slice(None),) * axis, slice(None, None, step))]

    samples = lambda: [
        example((0, 3, 1), (7,)),
        example((1, 2, 3), (2, 9, 3)),
        example((0, 4, 4), (9, 17)),
    ]


def _no_elements(x: Any) -> Any:
    """No elements of a scalar."""
    return slice_axis(ops.reshape(x, (1,)), 0, constant(0, int64), 0)


def _windows(length: int, size: int, step: int) -> Any:
    """The node of the positions of windows, ``[windows, size]``."""
    shape = ((length - size) // step + 1, size)
    return axis_numbers(0, shape) * step + axis_numbers(1, shape)


@public(methods=("rot90",))
def rot90(input: Any, k: int = 1, dims: Sequence[int] = (0, 1)) -> Any:
    """The input rotated by ``k`` times 90 degrees in the plane of two axes, from the first towards the second.

    >>> import twofold as torch
    >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    if len(dims) != 2 or len(input.shape) < 2:
        what = f"a turn of {len(input.shape)} axes in the plane of {tuple(dims)}"
        raise ArgumentError(what, "Name two axes of a tensor that has them.")
    first, second = shapes.many_axes(tuple(dims), len(input.shape))
    quarters = k % 4
    if quarters in (0, 2):
        return ops.flip(input, (first, second)) if quarters else ops.copied(input)
    return ops.transpose(ops.flip(input, second if quarters == 1 else first), first, second)


@public(methods=("narrow_copy",))
def narrow_copy(input: Any, dim: int, start: int, length: int) -> Any:
    """``length`` elements of one axis from ``start``, as a new tensor.

    >>> import twofold as torch
    >>> torch.narrow_copy(torch.tensor([1, 2, 3, 4]), 0, 1, 2)
    tensor([2, 3])
    """
    return ops.copied(ops.narrow(input, dim, start, length))


@public(methods=("slice_scatter",))
def slice_scatter(
    input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """The input with the elements ``start:end:step`` of one axis replaced by ``src``.

    >>> import twofold as torch
    >>> torch.slice_scatter(torch.zeros(4), torch.tensor([1.0, 2.0]), start=0, end=4, step=2)
    tensor([1., 0., 2., 0.])
    """
    axis = normalize_axis(dim, len(input.shape))
    if step < 1:
        raise ArgumentError(f"step {step}", "Use a positive step.")
    first, stop, _ = slice(start, end, step).indices(input.shape[axis])
    count = len(range(first, stop, step))
    shape = (*input.shape[:axis], count, *input.shape[axis + 1 :])
    if tuple(src.shape) != shape:
        raise ShapeError(f"src of shape {tuple(src.shape)} for a slice of shape {shape}", "Make them equal.")
    steps = tuple(step if position == axis else 1 for position in range(len(shape)))
    return apply("slice_update", input, src, first if count else 0, attrs=(steps, (axis,)))


@public(methods=("sum_to_size",))
def sum_to_size(input: Any, *sizes: Any, size: Any = None) -> Any:
    """The input summed over the axes that broadcasting ``sizes``, or ``size``, to its shape would repeat.

    >>> import twofold as torch
    >>> torch.sum_to_size(torch.tensor([[1, 2], [3, 4]]), 1, 2)
    tensor([[4, 6]])
    """
    wanted = shapes.given_integers(sizes, size=size)
    shape = tuple(input.shape)
    own = shape[max(len(shape) - len(wanted), 0) :]
    if len(wanted) > len(shape) or any(one not in (1, length) for one, length in zip(wanted, own)):
        what = f"size {wanted} does not broadcast to shape {shape}"
        raise ShapeError(what, "Keep each size, or make it 1 where the input is summed.")
    axes = repeated_axes(wanted, shape)
    summed = apply("sum", input, attrs=(axes, False)) if axes else input
    return summed if tuple(summed.shape) == wanted else ops.reshape(summed, wanted)


@public()
def alias(input: Any) -> Any:
    """The input itself, as a view.

    >>> import twofold as torch
    >>> x = torch.tensor([1, 2])
    >>> torch.alias(x)[0] = 5
    >>> x
    tensor([5, 2])
    """
    return apply("unsqueeze", input, attrs=((),))
