"""Elements chosen by their values: masks, unique ones, partitions.

How many results there are depends on the values, so the numbers of the chosen elements are computed first, in
Python, as by ``py_func``; gradients pass through the elements. Loops cannot hold these operations.
"""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import int32, int64
from twofold.errors import ArgumentError
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.ops.base import ops
from twofold.ops.indexing.masks import nonzero_rows
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import (
    Alone,
    Dtype,
    Number,
    Tensors,
    as_dtype,
    checked_below,
    convert_to_tensor,
    define,
    full_of,
    numbers,
    operation,
    whole,
)
from twofold.static.api.result_tuples import ListDiff, Unique, UniqueWithCounts
from twofold.static.arrays.indexing import count_up_to
from twofold.static.arrays.shape_ops import _where, gather, reshape
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import describe
from twofold.static.graph.scopes import name_scope


@example("tf.where([True, False], [1, 2], [10, 20])", "[ 1 20]")
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Elements of ``x`` where ``condition`` is true, of ``y`` elsewhere; a vector condition chooses rows.

    Without ``x`` and ``y`` the coordinates (int64) of the true elements, a row for each.
    """
    if (x is None) != (y is None):
        raise ValueError("where: give both x and y, or neither.")
    return _true_indices(condition, name) if x is None else _where(condition, x, y, name=name)


select = where


@example("tf.where([[False, True], [True, False]])", "[[0 1]\n [1 0]]")
def _true_indices(condition: Any, name: str | None = None) -> Any:
    """The coordinates (int64) of the elements of ``condition`` that are not zero, a row for each."""
    tensor = convert_to_tensor(condition)
    rank = None if tensor.type_.shape == UNKNOWN_RANK else tensor.type_.ndim
    (positions,) = in_python("Where", nonzero_rows, [tensor], [(int64, (None, rank))], name)
    return positions


@example("x = tf.constant([1.0, 2.0, 3.0])", "tf.boolean_mask(x, x > 1.5)", "[2. 3.]")
def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: int | None = None) -> Any:
    """The slices of ``tensor`` where ``mask`` is true; the axes of the mask, from ``axis`` on, become one."""
    data, chosen = convert_to_tensor(tensor), convert_to_tensor(mask)
    if chosen.type_.shape == UNKNOWN_RANK or not chosen.type_.ndim:
        what = f"mask is {describe(chosen)}"
        raise failed("boolean_mask", ArgumentError(what, "Give a mask with a known rank of at least 1."))
    first, count = int(axis or 0), chosen.type_.ndim
    sizes, wanted = data.type_.shape[first : first + count], chosen.type_.shape
    if any(m != n and min(m, n) >= 0 for m, n in zip(sizes, wanted)) or len(sizes) < count:
        what = f"{describe(chosen)} for {describe(data)}"
        raise failed("boolean_mask", ArgumentError(what, f"Give a mask of the axes from {first} on."))
    if any(min(m, n) < 0 for m, n in zip(sizes, wanted)):
        chosen = _shaped_as(chosen, data, first, count)
    flat = _merged(data, first, count)
    positions = reshape(_true_indices(reshape(chosen, [-1])), [-1])
    return gather(flat, positions, axis=first, name=name)


@operation("Reshape")
def _shaped_as(mask: Any, tensor: Any, first: Number, count: Number) -> Any:
    """The mask, which a run refuses where it does not have the sizes of ``count`` axes from ``first`` on."""
    return ops.reshape(mask, tuple(tensor.shape)[first : first + count])


@operation("Reshape")
def _merged(tensor: Any, first: Number, count: Number) -> Any:
    """``count`` axes from ``first`` on as one."""
    return tensor if count == 1 else ops.flatten(tensor, first, first + count - 1)


def _first_seen(x: Any) -> tuple[Any, Any, Any]:
    values, first, inverse, counts = numpy.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    order = numpy.argsort(first, kind="stable")
    positions = numpy.empty_like(order)
    positions[order] = numpy.arange(len(order))
    return values[order], positions[inverse.reshape(-1)], counts[order]


@example("tf.unique_with_counts([3, 1, 3]).count", "[2 1]")
def unique_with_counts(x: Any, out_idx: Any = int32, name: str | None = None) -> Any:
    """The different elements of a vector in the order they are first seen, where each belongs, and how often."""
    tensor, kind = convert_to_tensor(x), as_dtype(out_idx)

    def function(values: Any) -> list[Any]:
        found, positions, counts = _first_seen(values)
        return [found, positions.astype(kind.numpy), counts.astype(kind.numpy)]

    length = tensor.type_.shape[0]
    results = [(tensor.dtype, (None,)), (kind, (length if length >= 0 else None,)), (kind, (None,))]
    return UniqueWithCounts(*in_python("UniqueWithCounts", function, [tensor], results, name))


@example("tf.unique([3, 1, 3])", "Unique(y=array([3, 1], dtype=int32), idx=array([0, 1, 0], dtype=int32))")
def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> Any:
    """The different elements of a vector in the order they are first seen, and where each element belongs."""
    return Unique(*unique_with_counts(x, out_idx, name or "Unique")[:2])


@example("tf.setdiff1d([1, 2, 3, 4], [2, 4]).out", "[1 3]")
def setdiff1d(x: Any, y: Any, index_dtype: Any = int32, name: str | None = None) -> Any:
    """The elements of vector ``x`` that ``y`` does not hold, in order, and their positions."""
    tensor, kind = convert_to_tensor(x), as_dtype(index_dtype)

    def function(values: Any, others: Any) -> list[Any]:
        positions = numpy.flatnonzero(~numpy.isin(values, others))
        return [values[positions], positions.astype(kind.numpy)]

    other = convert_to_tensor(y, tensor.dtype)
    results = [(tensor.dtype, (None,)), (kind, (None,))]
    return ListDiff(*in_python("ListDiff", function, [tensor, other], results, name))


listdiff = setdiff1d


@example(
    "tf.dynamic_partition([10, 20, 30], [0, 1, 0], 2)",
    "[array([10, 30], dtype=int32), array([20], dtype=int32)]",
)
def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list[Any]:
    """The slices of ``data`` whose number in ``partitions`` is 0, 1, ..., a tensor for each number."""
    values, parts = convert_to_tensor(data), convert_to_tensor(partitions)
    count = parts.type_.ndim
    flat, kinds = _merged(values, 0, count), reshape(parts, [-1])

    def positions(found: Any) -> list[Any]:
        if found.size and not (found.min() >= 0 and found.max() < num_partitions):
            what = f"partitions from {found.min()} to {found.max()} for {num_partitions}"
            raise failed("dynamic_partition", ArgumentError(what, "Give numbers below num_partitions."))
        return [numpy.flatnonzero(found == k) for k in range(num_partitions)]

    with name_scope(name, "DynamicPartition"):
        chosen = in_python("DynamicPartition", positions, [kinds], [(int64, (None,))] * num_partitions, None)
        return [gather(flat, part) for part in chosen]


@operation("DynamicStitch")
def _stitched(indices: Tensors, data: Tensors, size: Number, dtype: Any) -> Any:
    flat = [ops.cast(ops.reshape(positions, (-1,)), int64) for positions in indices]
    rest = tuple(data[0].shape[indices[0].ndim :])
    rows = [ops.reshape(values, (-1, *rest)) for values in data]
    base = full_of(0, (whole(size), *rest), dtype, rows[0])
    return ops.index_copy(base, 0, ops.concat(flat, 0), ops.concat(rows, 0))


@example("tf.dynamic_stitch([[0, 2], [1]], [[10, 30], [20]])", "[10 20 30]")
def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Any:
    """The slices of the tensors ``data`` at ``indices``; of equal ones the last counts."""
    positions = [convert_to_tensor(part) for part in indices]
    values = [convert_to_tensor(part) for part in data]
    return _stitched(positions, values, count_up_to(positions), values[0].dtype, name=name)


@operation(
    "CountNonzero",
    name_at=4,
    older={"reduction_indices": "axis", "keep_dims": "keepdims", "input": "input_tensor"},
)
@example("tf.count_nonzero([[0, 2], [3, 4]], axis=0)", "[1 2]")
def count_nonzero(
    input_tensor: Alone = None, axis: Number = None, keepdims: Number = None, dtype: Dtype = int64
) -> Any:
    """How many elements are not zero along ``axis``."""
    found = numbers(axis)
    axes = tuple(range(input_tensor.ndim)) if found is None else found
    counted = ops.sum(ops.cast(ops.not_equal(input_tensor, 0), int64), axes, bool(keepdims))
    return ops.cast(counted, dtype)


@example("tf.confusion_matrix([0, 1, 1], [0, 1, 0])", "[[1 0]\n [1 1]]")
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = int32,
    name: str | None = None,
    weights: Any = None,
) -> Any:
    """How often (or with which total weight) label ``i`` was predicted as ``j``."""
    given = [convert_to_tensor(labels), convert_to_tensor(predictions)]
    count = count_up_to(given) if num_classes is None else num_classes
    weight = 1 if weights is None else convert_to_tensor(weights)
    return _confusion(*given, weight, count, as_dtype(dtype), name=name or "confusion_matrix")


@operation("ConfusionMatrix")
def _confusion(labels: Any, predictions: Any, weights: Any, count: Number, dtype: Any) -> Any:
    size = whole(count)
    rows, columns = checked_below(labels, size, "label"), checked_below(predictions, size, "prediction")
    positions = ops.add(ops.multiply(rows, size), columns)
    each = ops.broadcast_to(ops.cast(weights, dtype), positions.shape) if hasattr(weights, "dtype") else None
    ones = ops.full_like(positions, 1, dtype=dtype) if each is None else each
    found = ops.index_add(full_of(0, (size * size,), dtype, positions), 0, positions, ones)
    return ops.reshape(found, (size, size))


@example("tf.bincount([0, 2, 2])", "[1 0 2]")
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = int32,
    name: str | None = None,
) -> Any:
    """How often (or with which total weight) each number from 0 to the largest is in ``arr``."""
    given = convert_to_tensor(arr)
    limits = {"minlength": minlength, "maxlength": maxlength}
    kind = as_dtype(dtype) if weights is None else convert_to_tensor(weights).dtype
    size = define(
        "Max",
        _limited,
        (count_up_to([given]),),
        {key: value for key, value in limits.items() if value is not None},
        None,
        frozenset(limits),
    ).outputs[0]
    weight = 1 if weights is None else convert_to_tensor(weights)
    return _bincount(given, weight, size, kind, name=name or "bincount")


def _limited(count: Any, minlength: Any = None, maxlength: Any = None) -> Any:
    count = count if minlength is None else ops.maximum(count, whole(minlength))
    return count if maxlength is None else ops.minimum(count, whole(maxlength))


@operation("Bincount")
def _bincount(x: Any, weights: Any, size: Number, dtype: Any) -> Any:
    length = whole(size)
    positions = ops.reshape(ops.cast(x, int64), (-1,))
    inside = ops.less(positions, length)
    if hasattr(weights, "dtype"):
        each = ops.where(inside, ops.reshape(weights, (-1,)), 0)
    else:
        each = ops.cast(inside, dtype)
    kept = ops.where(inside, positions, 0)
    found = ops.index_add(full_of(0, (max(length, 1),), dtype, positions), 0, kept, each)
    return ops.narrow(found, 0, 0, length)


@example("tf.histogram_fixed_width([0.0, 1.0, 1.5, 4.0], [0.0, 4.0], nbins=2)", "[3 1]")
def histogram_fixed_width(
    values: Any, value_range: Any, nbins: int = 100, dtype: Any = int32, name: str | None = None
) -> Any:
    """How many values are in each of ``nbins`` equal parts of a range; those outside are in the first or last."""
    low, high = convert_to_tensor(value_range)[0], convert_to_tensor(value_range)[1]
    return _histogram(convert_to_tensor(values), low, high, nbins, as_dtype(dtype), name=name)


@operation("HistogramFixedWidth")
def _histogram(values: Any, low: Any, high: Any, nbins: Number, dtype: Any) -> Any:
    count = whole(nbins)
    part = ops.divide(ops.subtract(values, low), ops.subtract(high, low))
    position = ops.cast(ops.floor(ops.multiply(part, count)), int64)
    position = ops.reshape(ops.clamp(position, 0, count - 1), (-1,))
    ones = ops.full_like(position, 1, dtype=dtype)
    return ops.index_add(full_of(0, (count,), dtype, values), 0, position, ones)
