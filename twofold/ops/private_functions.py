"""Functions that PyTorch publishes for its own use, most with a leading underscore in their names."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from twofold.dtypes import as_dtype
from twofold.errors import ArgumentError, ShapeError
from twofold.ops.base import FUNCTIONS, normalize_axis, ops, public


@public("_softmax_backward_data")
def softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """The gradient of ``softmax`` from its result, in the dtype of its input.

    >>> import twofold as torch
    >>> y = torch.softmax(torch.tensor([0.0, 0.0]), 0)
    >>> torch._softmax_backward_data(torch.tensor([1.0, 0.0]), y, 0, torch.float32)
    tensor([ 0.2500, -0.2500])
    """
    axis = normalize_axis(dim, len(output.shape))
    scaled = ops.multiply(grad_output, output)
    share = ops.subtract(scaled, ops.multiply(output, ops.sum(scaled, axis, True)))
    return ops.cast(share, as_dtype(input_dtype))


@public("norm_except_dim")
def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """The norm of order ``pow`` of every slice along ``dim``, with the axes of ``v``; of everything for ``dim=-1``.

    >>> import twofold as torch
    >>> torch.norm_except_dim(torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
    tensor([[5.],
            [2.]])
    """
    if dim == -1:
        return FUNCTIONS["norm"](v, pow)
    kept = normalize_axis(dim, len(v.shape))
    return FUNCTIONS["norm"](v, pow, tuple(axis for axis in range(len(v.shape)) if axis != kept), True)


@public("_weight_norm")
def weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """``v`` with slices along ``dim`` of the lengths ``g``.

    >>> import twofold as torch
    >>> torch._weight_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([[10.0]]))
    tensor([[6., 8.]])
    """
    return ops.multiply(v, ops.divide(g, norm_except_dim(v, 2, dim)))


@public("_chunk_cat")
def chunk_cat(tensors: Sequence[Any], dim: int, num_chunks: int) -> Any:
    """Each tensor cut into equal chunks along ``dim``, filled up with zeros; chunks of one number stand side by side.

    The result has the axes before ``dim``, one of chunks, and one for all the rest.

    >>> import twofold as torch
    >>> torch._chunk_cat([torch.tensor([1, 2, 3]), torch.tensor([4, 5])], 0, 2)
    tensor([[1, 2, 4],
            [3, 0, 5]])
    """
    if num_chunks < 1 or not tensors:
        raise ArgumentError(f"{num_chunks} chunks of {len(tensors)} tensors", "Use at least one.")
    axis = normalize_axis(dim, len(tensors[0].shape))
    front = tuple(tensors[0].shape[:axis])
    rows = []
    for x in tensors:
        if tuple(x.shape[:axis]) != front:
            raise ShapeError(
                f"axes {tuple(x.shape[:axis])} against {front}", "Make all axes before dim equal."
            )
        missing = -x.shape[axis] % num_chunks
        behind = len(x.shape) - axis - 1
        x = ops.pad(x, (*(0,) * (2 * behind), 0, missing)) if missing else x
        rest = prod(x.shape[axis:]) // num_chunks
        rows.append(ops.reshape(x, (*front, num_chunks, rest)))
    return ops.concatenate(rows, -1)


def _limited(input: Any, indices: Sequence[Any], lowest: int) -> tuple[Any, ...]:
    """Indices brought into their axes; ``lowest``: 0, or -1 for the first negative index."""
    pairs = zip(indices, input.shape[: len(indices)], strict=True)
    return tuple(
        slice(None) if index is None else ops.clamp(index, lowest * size, size - 1) for index, size in pairs
    )


@public("_unsafe_masked_index")
def unsafe_masked_index(input: Any, mask: Any, indices: Sequence[Any], fill: Any) -> Any:
    """The elements at ``indices`` where ``mask`` is true, ``fill`` elsewhere; indices outside take the nearest.

    >>> import twofold as torch
    >>> mask = torch.tensor([True, False])
    >>> torch._unsafe_masked_index(torch.tensor([5, 6, 7]), mask, [torch.tensor([2, 9])], 0)
    tensor([7, 0])
    """
    if not prod(input.shape):
        return ops.full_like(ops.cast(mask, input.dtype), fill)
    return ops.masked_fill(input[_limited(input, indices, 0)], ops.logical_not(mask), fill)


@public("_unsafe_masked_index_put_accumulate")
def unsafe_masked_index_put_accumulate(input: Any, mask: Any, indices: Sequence[Any], values: Any) -> Any:
    """The input with the ``values`` where ``mask`` is true added at ``indices``; those outside reach the nearest.

    >>> import twofold as torch
    >>> mask, positions, values = torch.tensor([True, False]), torch.tensor([2, 9]), torch.tensor([10, 20])
    >>> torch._unsafe_masked_index_put_accumulate(torch.tensor([5, 6, 7]), mask, [positions], values)
    tensor([ 5,  6, 17])
    """
    if not prod(input.shape):
        return ops.copied(input)
    kept = ops.masked_fill(values, ops.logical_not(mask), 0)
    return ops.index_put(input, _limited(input, indices, -1), kept, True)
