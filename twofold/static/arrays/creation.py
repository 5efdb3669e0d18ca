"""Tensors made from sizes and numbers, bands and masks, and the largest elements, under TensorFlow's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from twofold.dtypes import finfo, float32, float64, int32, int64, string
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.sizes import current_sizes, is_symbolic
from twofold.ir.sizes import maximum as larger_size
from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static.api.aliases import renamed
from twofold.static.api.op_functions import (
    Alone,
    Dtype,
    Number,
    array_of,
    as_dtype,
    as_tensor,
    convert_to_tensor,
    counted,
    full_of,
    numbers,
    operation,
    sizes,
    whole,
)
from twofold.static.api.result_tuples import TopKV2
from twofold.static.arrays import shape_ops
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Tensor
from twofold.static.graph.string_table import holds_strings


@operation("ZerosLike")
def _zeros_like(tensor: Alone, dtype: Dtype = None) -> Any:
    return ops.zeros_like(tensor, dtype=dtype)


@example("tf.zeros_like([1.0, 2.0])", "[0. 0.]")
def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Any:
    """Zeros, of strings empty ones, in the shape of ``tensor``; ``optimize`` changes nothing."""
    if _is_string(tensor, dtype):
        return fill(shape_ops.shape(tensor), "", name or "zeros_like")
    return _zeros_like(tensor, dtype, name=name)


@operation("OnesLike")
def _ones_like(tensor: Alone, dtype: Dtype = None) -> Any:
    return ops.ones_like(tensor, dtype=dtype)


@example("tf.ones_like([1.0, 2.0])", "[1. 1.]")
def ones_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Any:
    """Ones in the shape of ``tensor``; ``optimize`` changes nothing. Raises TypeError for strings."""
    if _is_string(tensor, dtype):
        raise TypeError(f"Expected string, but got 1, at {here()}. Use tf.fill.")
    return _ones_like(tensor, dtype, name=name)


def _is_string(tensor: Any, dtype: Any) -> bool:
    value = as_tensor(tensor)
    if dtype is not None:
        return as_dtype(dtype) is string
    return value.dtype is string if isinstance(value, Tensor) else holds_strings(value)


def _as_tensor_of(value: Any, dtype: Any) -> Any:
    """A Python float as what a tensor of the dtype holds of it: infinity where it is too large."""
    held = isinstance(value, float) and dtype.kind == "f" and abs(value) > finfo(dtype).max
    return math.copysign(math.inf, value) if held else value


@operation("Fill")
def _fill(value: Any, dims: Number, dtype: Any) -> Any:
    return full_of(_as_tensor_of(value, dtype), sizes(dims), dtype, None)


@example("tf.fill([2, 3], 7)", "[[7 7 7]\n [7 7 7]]")
def fill(dims: Any, value: Any, name: str | None = None) -> Any:
    """A tensor of this shape that holds ``value`` everywhere."""
    found = convert_to_tensor(value) if isinstance(value, (str, bytes)) else as_tensor(value)
    dtype = found.dtype if isinstance(found, Tensor) else as_dtype(array_of(value).dtype)
    return _fill(found, dims, dtype, name=name)


@example("tf.zeros([2, 3])", "[[0. 0. 0.]\n [0. 0. 0.]]")
def zeros(shape: Any, dtype: Any = float32, name: str | None = None) -> Any:
    """Zeros; of strings empty ones."""
    if as_dtype(dtype) is string:
        return fill(shape, "", name or "zeros")
    return _fill(0, shape, as_dtype(dtype), name=name or "zeros")


@example("tf.ones([3], tf.int32)", "[1 1 1]")
def ones(shape: Any, dtype: Any = float32, name: str | None = None) -> Any:
    """Ones; raises TypeError for strings."""
    if as_dtype(dtype) is string:
        raise TypeError(f"Expected string, but got 1, at {here()}. Use tf.fill.")
    return _fill(1, shape, as_dtype(dtype), name=name or "ones")


@operation("Eye", default="eye")
@example("tf.eye(2)", "[[1. 0.]\n [0. 1.]]")
def eye(
    num_rows: Number, num_columns: Number = None, batch_shape: Number = None, dtype: Dtype = float32
) -> Any:
    """The identity matrix, or an array of the shape ``batch_shape`` of them."""
    height, width = sizes([num_rows, num_rows if num_columns is None else num_columns])
    if is_symbolic((height, width)):
        made = ops.cast(ops.equal(ops.unsqueeze(counted(height, height), 1), counted(width, width)), dtype)
    else:
        made = ops.eye(height, width, dtype=dtype)
    return made if batch_shape is None else ops.expand(made, (*sizes(batch_shape), *made.shape))


@operation("Range")
def _range(start: Number, limit: Number, delta: Number, dtype: Any) -> Any:
    given = [numbers(value) for value in (start, limit, delta)]
    if dtype.kind == "f" and current_sizes() is not None:  # the same arithmetic for all sizes
        given = [int(value) if is_symbolic(value) else value for value in given]
    if not is_symbolic(tuple(given)):
        return ops.arange(*given, dtype=dtype)
    first, last, step = given
    count = larger_size(
        math.ceil((last - first) / step) if dtype.kind == "f" else -((first - last) // step), 0
    )
    return ops.cast(ops.add(ops.multiply(counted(count, count), step), first), dtype)


@example("tf.range(1, 10, 3)", "[1 4 7]")
def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Any:
    """Numbers from ``start`` (0 with one argument) up to but not including ``limit``."""
    if limit is None:
        start, limit = 0, start
    given = [as_tensor(value) for value in (start, limit, delta)]
    if dtype is None:
        found = [
            value.dtype if isinstance(value, Tensor) else as_dtype(array_of(value).dtype) for value in given
        ]
        order = [int32, int64, float32, float64]
        dtype = max(found, key=order.index) if set(found) <= set(order) else found[1]
    return _range(*given, as_dtype(dtype), name=name)


@operation("Diag")
@example("tf.diag([1, 2])", "[[1 0]\n [0 2]]")
def diag(diagonal: Alone) -> Any:
    """Zeros of twice the axes of ``diagonal``, with its elements where both halves of a position are equal."""
    shape = tuple(diagonal.shape)
    flat = ops.reshape(diagonal, (math.prod(shape),))
    return ops.reshape(ops.diag_embed(flat), (*shape, *shape))


@operation("DiagPart")
@example("tf.diag_part([[1, 2], [3, 4]])", "[1 4]")
def diag_part(input: Alone) -> Any:
    """The elements of ``input``, whose axes are two equal halves, where both halves of a position are equal."""
    shape = tuple(input.shape)
    kept, other = shape[: len(shape) // 2], shape[len(shape) // 2 :]
    if kept != other:
        raise ShapeError(f"an input of shape {shape}", "Give one whose axes are two equal halves.")
    count = math.prod(kept)
    return ops.reshape(ops.diagonal(ops.reshape(input, (count, count))), kept)


matrix_diag = renamed("MatrixDiag", "diag_embed", "diagonal")
matrix_diag_part = renamed("MatrixDiagPart", "diagonal", "input", dim1=-2, dim2=-1)


broadcast_to = renamed("BroadcastTo", "broadcast_to", "input shape:sizes")


@operation("MatrixBandPart")
@example("tf.matrix_band_part([[1, 2], [3, 4]], 0, -1)", "[[1 2]\n [0 4]]")
def matrix_band_part(input: Any, num_lower: Number, num_upper: Number) -> Any:
    """A matrix with zeros outside a band; a negative width keeps the whole triangle.

    Raises InvalidArgumentError for a ``num_lower`` above the number of rows, and a ``num_upper`` above that of columns.
    """
    lower, upper = whole(num_lower), whole(num_upper)
    widths = (("num_lower", lower, "rows"), ("num_upper", upper, "columns"))
    for (name, width, what), size in zip(widths, input.shape[-2:]):
        if width > size:
            raise ArgumentError(f"{name}={width} for {size} {what}", f"Give at most {size}, or -1 for all.")
    made = input if lower < 0 else ops.triu(input, -lower)
    return made if upper < 0 else ops.tril(made, upper)


@operation("Pad", name_at=3)
@example("tf.pad([1, 2], [[1, 2]])", "[0 1 2 0 0]")
def pad(tensor: Any, paddings: Number, mode: Number = "CONSTANT", constant_values: Number = 0) -> Any:
    """Elements added before and after each axis: of one value, or by "REFLECT" or "SYMMETRIC" those of the tensor.

    "SYMMETRIC" repeats the elements at the edge, "REFLECT" does not.
    """
    flat: list[Any] = []
    own = mode.lower()
    pairs = numbers(paddings)
    if own not in ("constant", "reflect", "symmetric"):
        raise ArgumentError(f"mode {mode!r}", "Use 'CONSTANT', 'REFLECT' or 'SYMMETRIC'.")
    if len(pairs) != tensor.ndim:
        what = f"{len(pairs)} pairs of paddings for {tensor.ndim} axes"
        raise ShapeError(what, "Give one pair for each axis.")
    if own == "symmetric":
        return _mirrored(tensor, [[whole(width) for width in pair] for pair in pairs])
    for axis, (before, after) in reversed(list(enumerate(pairs))):
        widths = whole(before), whole(after)
        if any(width < 0 for width in widths):
            raise ShapeError(f"paddings {widths} of axis {axis}", "Pad with 0 or more elements.")
        flat += widths
    return ops.pad(
        tensor, flat, own, _as_tensor_of(constant_values, tensor.dtype) if own == "constant" else None
    )


def _mirrored(tensor: Any, pairs: Sequence[Sequence[int]]) -> Any:
    """Each axis between its first and its last elements in reverse."""
    for axis, widths in enumerate(pairs):
        size = tensor.shape[axis]
        if min(widths) < 0 or size < max(widths):
            what = f"{max(widths)} elements beside axis {axis}, which has {size}"
            raise ShapeError(what, "Pad with at most the size of an axis.")
        parts = [
            ops.narrow(tensor, axis, 0, widths[0]),
            ops.narrow(tensor, axis, size - widths[1], widths[1]),
        ]
        before, after = [ops.flip(part, axis) for part in parts]
        tensor = ops.concat([before, tensor, after], axis)
    return tensor


@operation("TopKV2", several=TopKV2._make)
@example("tf.nn.top_k([3.0, 1.0, 2.0], 2).indices", "[0 2]")
def top_k(input: Any, k: Number = 1, sorted: Number = True) -> Any:
    """The ``k`` largest elements of each row and their indices, always sorted."""
    values, positions = ops.topk(input, whole(k))
    return values, ops.cast(positions, int32)
