"""Views that are written with others: axes merged, split, exchanged, removed, expanded and cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.errors import IndexRangeError, ShapeError
from twofold.ir.sizes import index as index_of
from twofold.ops.base import (
    apply,
    broadcast_shapes,
    composite,
    normalize_axis,
    ops,
    public,
)
from twofold.ops.examples import example
from twofold.ops.shape import shapes
from twofold.ops.shape.movement import slice_axis


@public(methods=("flatten",))
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The axes ``start_dim … end_dim`` (inclusive) merged into one; the input itself where that is one axis.

    >>> import twofold as torch
    >>> torch.flatten(torch.zeros(2, 3, 5), start_dim=1).shape
    twofold.Size([2, 15])
    """
    shape = tuple(input.shape)
    merged = shapes.flattened(shape, start_dim, end_dim)
    return input if len(merged) == len(shape) else ops.reshape(input, merged)


@public(methods=("unflatten",))
def unflatten(input: Any, dim: int, sizes: Sequence[int]) -> Any:
    """One axis split into several, of ``sizes`` (one may be -1).

    >>> import twofold as torch
    >>> torch.unflatten(torch.zeros(2, 6), 1, (3, -1)).shape
    twofold.Size([2, 3, 2])
    """
    shape = tuple(input.shape)
    axis = normalize_axis(dim, len(shape))
    return ops.reshape(
        input, (*shape[:axis], *shapes.infer_shape(tuple(sizes), shape[axis]), *shape[axis + 1 :])
    )


def _without(values: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(value for axis, value in enumerate(values) if axis not in axes)


@composite
class squeeze:
    """The axes ``dim`` (default: all) of size 1 removed.

    >>> import twofold as torch
    >>> torch.squeeze(torch.zeros(1, 3, 1)).shape
    twofold.Size([3])
    >>> torch.squeeze(torch.zeros(1, 3, 1), 0).shape
    twofold.Size([3, 1])
    """

    autograd_name = lambda attrs, types: f"SqueezeBackward{int(len(attrs[0]) == 1)}"
    methods = ("squeeze",)
    inplace = "shape"
    is_view = True

    def call(input: Any, dim: Any = None) -> Any:
        shape = tuple(input.shape)
        axes = tuple(
            sorted(axis for axis in shapes.many_axes(dim, len(shape)) if shape[axis : axis + 1] == (1,))
        )
        return apply("squeeze", input, attrs=(axes,))

    compute = lambda x, axes: ops.reshape(x, _without(tuple(x.shape), axes))
    write = lambda base, value, axes: ops.reshape(value, base.shape)
    layout = lambda source, axes: source._replace(
        size=_without(source.size, axes), stride=_without(source.stride, axes)
    )
    reference = lambda x, axes: numpy.squeeze(x, axes)
    samples = lambda: [example((axes,), (1, 17, 1)) for axes in ((), (0,), (0, 2))]


@composite
class unsqueeze:
    """A new axis of size 1 at each position in ``dim``, counted in the result.

    >>> import twofold as torch
    >>> torch.unsqueeze(torch.tensor([1, 2]), 1)
    tensor([[1],
            [2]])
    """

    methods = ("unsqueeze",)
    inplace = "shape"
    is_view = True

    def call(input: Any, dim: Any) -> Any:
        count = len(dim) if isinstance(dim, (tuple, list)) else 1
        axes = tuple(sorted(shapes.many_axes(dim, len(input.shape) + count)))
        return apply("unsqueeze", input, attrs=(axes,))

    compute = lambda x, axes: ops.reshape(x, shapes.unsqueezed(tuple(x.shape), axes))
    write = lambda base, value, axes: ops.reshape(value, base.shape)

    def layout(source: Any, axes: Sequence[int]) -> Any:
        size, stride = list(source.size), list(source.stride)
        for axis in axes:
            stride.insert(axis, size[axis] * stride[axis] if axis < len(size) else 1)
            size.insert(axis, 1)
        return source._replace(size=tuple(size), stride=tuple(stride))

    reference = lambda x, axes: numpy.expand_dims(x, axes)
    samples = lambda: [example((axes,), (5, 17)) for axes in ((), (1,), (0, 3))]


@public()
def expand_dims(input: Any, axis: Any = 0) -> Any:
    """A new axis of size 1 at ``axis``.

    >>> import twofold as torch
    >>> torch.expand_dims(torch.tensor([1, 2]), 0)
    tensor([[1, 2]])
    """
    return ops.unsqueeze(input, axis)


@public(methods=("reshape_as",))
def reshape_as(input: Any, other: Any) -> Any:
    """The input in the shape of ``other``; a copy where strides cannot show it.

    >>> import twofold as torch
    >>> torch.reshape_as(torch.arange(4), torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return ops.reshape(input, tuple(other.shape))


@public("transpose", "swapdims", methods=("transpose", "swapdims"), inplace="shape")
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Two axes exchanged.

    >>> import twofold as torch
    >>> torch.transpose(torch.tensor([[1, 2, 3], [4, 5, 6]]), 0, 1)
    tensor([[1, 4],
            [2, 5],
            [3, 6]])
    """
    return apply("permute", input, attrs=(shapes.swapped(len(input.shape), dim0, dim1),))


@public(methods=("swapaxes",), inplace="shape")
def swapaxes(input: Any, axis0: int, axis1: int) -> Any:
    """Two axes exchanged; see ``transpose``.

    >>> import twofold as torch
    >>> torch.swapaxes(torch.tensor([[1, 2, 3]]), axis0=0, axis1=1).shape
    twofold.Size([3, 1])
    """
    return ops.transpose(input, axis0, axis1)


@public(methods=("t",), inplace="shape")
def t(input: Any) -> Any:
    """A matrix transposed; a vector or scalar as it is.

    Raises ShapeError for more than two axes.

    >>> import twofold as torch
    >>> torch.t(torch.tensor([[1, 2, 3], [4, 5, 6]]))
    tensor([[1, 4],
            [2, 5],
            [3, 6]])
    """
    if len(input.shape) > 2:
        raise ShapeError(f"t of a tensor with {len(input.shape)} axes", "Use mT or transpose(dim0, dim1).")
    return ops.transpose(input, 0, 1) if len(input.shape) == 2 else ops.alias(input)


@public(methods=("adjoint",))
def adjoint(input: Any) -> Any:
    """The last two axes exchanged and the elements conjugated, which is the property ``mH``.

    >>> import twofold as torch
    >>> torch.adjoint(torch.tensor([[1j, 2.0]]))
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    transposed = ops.matrix_transpose(input)
    return ops.conj(transposed) if input.dtype.kind == "c" else transposed


@public("matrix_transpose")
def matrix_transpose(input: Any) -> Any:
    """The last two axes exchanged, which is the property ``mT``.

    >>> import twofold as torch
    >>> torch.matrix_transpose(torch.zeros(2, 3, 5)).shape
    twofold.Size([2, 5, 3])
    """
    if len(input.shape) < 2:
        raise ShapeError(
            f"mT of a tensor with {len(input.shape)} axes", "Use a tensor with at least two axes."
        )
    return ops.transpose(input, -2, -1)


@public("movedim", "moveaxis", methods=("movedim", "moveaxis"))
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """The axes ``source`` at the positions ``destination``; the others keep their order.

    >>> import twofold as torch
    >>> torch.movedim(torch.zeros(2, 3, 5), 0, -1).shape
    twofold.Size([3, 5, 2])
    """
    return apply("permute", input, attrs=(shapes.moved(len(input.shape), source, destination),))


@public(methods=("expand",))
def expand(input: Any, *sizes: Any, size: Any = None) -> Any:
    """The input with axes of size 1 repeated up to ``sizes``, or ``size``; -1 keeps a size.

    >>> import twofold as torch
    >>> torch.expand(torch.tensor([[1], [2]]), -1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return ops.broadcast_to(input, shapes.given_integers(sizes, size=size))


@public(methods=("expand_as",))
def expand_as(input: Any, other: Any) -> Any:
    """The input expanded to the shape of ``other``.

    >>> import twofold as torch
    >>> torch.expand_as(torch.tensor([[1], [2]]), torch.zeros(2, 3))
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return ops.broadcast_to(input, tuple(other.shape))


@public()
def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """The inputs expanded to their common shape; those that have it are returned themselves.

    >>> import twofold as torch
    >>> [x.shape for x in torch.broadcast_tensors(torch.zeros(2, 1), torch.zeros(3))]
    [twofold.Size([2, 3]), twofold.Size([2, 3])]
    """
    shape = broadcast_shapes(*[tuple(tensor.shape) for tensor in tensors])
    return tuple(
        tensor if tuple(tensor.shape) == shape else ops.broadcast_to(tensor, shape) for tensor in tensors
    )


@public(methods=("fliplr",))
def fliplr(input: Any) -> Any:
    """The order along axis 1 reversed.

    >>> import twofold as torch
    >>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if len(input.shape) < 2:
        raise ShapeError(f"columns of {len(input.shape)} axes", "Use a tensor with at least two.")
    return ops.flip(input, 1)


@public(methods=("flipud",))
def flipud(input: Any) -> Any:
    """The order along axis 0 reversed.

    >>> import twofold as torch
    >>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if not len(input.shape):
        raise ShapeError("rows of a tensor without axes", "Use a tensor with at least one.")
    return ops.flip(input, 0)


@public(methods=("narrow",))
def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """``length`` elements of one axis from ``start``.

    >>> import twofold as torch
    >>> torch.narrow(torch.tensor([1, 2, 3, 4]), 0, 1, 2)
    tensor([2, 3])
    """
    axis = normalize_axis(dim, len(input.shape))
    size = input.shape[axis]
    first, length = index_of(start), index_of(length)
    first += size if first < 0 else 0
    if not 0 <= first <= size:
        raise IndexRangeError(f"start {start} of axis {axis} with size {size}", "Start inside the axis.")
    if not 0 <= first <= first + length <= size:
        raise ShapeError(
            f"elements {start} to {start + length} of axis {axis} with size {size}",
            f"Keep start + length at most {size}.",
        )
    return piece(input, axis, first, length)


@public(methods=("select",))
def select(input: Any, dim: int, index: int) -> Any:
    """Element ``index`` of one axis, which vanishes.

    >>> import twofold as torch
    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    shape = tuple(input.shape)
    axis = normalize_axis(dim, len(shape))
    start = shapes.one_index(index_of(index), shape[axis] if shape else 0, axis)
    return apply("squeeze", slice_axis(input, axis, start, 1), attrs=((axis,),))


@public(methods=("split",))
def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """The input cut along an axis in pieces of one size, or of the sizes given.

    >>> import twofold as torch
    >>> torch.split(torch.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> torch.split(torch.arange(5), (1, 4))
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    axis = normalize_axis(dim, len(tensor.shape))
    return _pieces(tensor, axis, shapes.split_sizes(tensor.shape[axis], split_size_or_sections, axis))


@public(methods=("chunk",))
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """The input cut along an axis in ``chunks`` equal pieces, of which the last may be smaller.

    >>> import twofold as torch
    >>> torch.chunk(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    axis = normalize_axis(dim, len(input.shape))
    return _pieces(input, axis, shapes.chunk_sizes(input.shape[axis], chunks, axis))


def piece(input: Any, axis: int, start: int, size: int) -> Any:
    """A block along one axis, as a handle of its own."""
    found = slice_axis(input, axis, start, size)
    return ops.alias(input) if found is input else found


def _pieces(input: Any, axis: int, sizes: Sequence[int]) -> tuple[Any, ...]:
    starts = [sum(sizes[:position]) for position in range(len(sizes))]
    return tuple(piece(input, axis, start, size) for start, size in zip(starts, sizes, strict=True))


@public(methods=("unbind",))
def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """The slices along an axis, which vanishes.

    >>> import twofold as torch
    >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    axis = normalize_axis(dim, len(input.shape))
    shape = tuple(input.shape)
    sizes = (*shape[:axis], 1, *shape[axis + 1 :])
    order = tuple(position for position in range(len(shape)) if position != axis)
    # The same attributes for all rows make them calls of one op instance.
    attrs = (sizes, (1,) * len(shape), (axis,), (), order)
    return tuple(apply("basic_index", input, index, attrs=attrs) for index in range(shape[axis]))
