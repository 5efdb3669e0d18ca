"""Slices combined by segment, and scattered to positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from twofold.dtypes import DType, int64
from twofold.ops.base import ops
from twofold.static import math
from twofold.static.api.op_functions import (
    Alone,
    Number,
    checked_below,
    convert_to_tensor,
    full_of,
    limits_of,
    operation,
    sizes,
    whole,
)
from twofold.static.arrays import shape_ops
from twofold.static.arrays.indexing import count_up_to, scattered
from twofold.static.functions.host_calls import Assert
from twofold.static.graph.docstrings import described, example
from twofold.static.graph.scopes import control_dependencies


def _flat(data: Any, ids: Any, count: int) -> tuple[Any, Any]:
    """Slices and their segments, below ``count``, in one axis each; negative segments become an additional one."""
    rows = ops.reshape(data, (-1, *tuple(data.shape)[ids.ndim :])) if ids.ndim != 1 else data
    given = ops.maximum(ops.cast(ops.reshape(ids, (-1,)), int64), -1)
    positions = checked_below(given, count, "segment", ignored=-1)
    return rows, ops.where(ops.less(positions, 0), count, positions)


def _added(data: Any, ids: Any, count: int) -> Any:
    rows, positions = _flat(data, ids, count)
    base = full_of(0, (count + 1, *tuple(rows.shape)[1:]), rows.dtype, rows)
    return ops.narrow(ops.index_add(base, 0, positions, rows), 0, 0, count)


def _reduced(how: str, first: Callable[[DType], Any]) -> Callable[[Any, Any, int], Any]:
    def reduced(data: Any, ids: Any, count: int) -> Any:
        rows, positions = _flat(data, ids, count)
        base = full_of(first(rows.dtype), (count + 1, *tuple(rows.shape)[1:]), rows.dtype, rows)
        return ops.narrow(ops.index_reduce(base, 0, positions, rows, how), 0, 0, count)

    return reduced


def _members(data: Any, ids: Any, count: int) -> Any:
    """How many slices each segment has, in a shape that divides the result."""
    rows, positions = _flat(data, ids, count)
    ones = ops.full_like(positions, 1)
    base = full_of(0, (count + 1,), int64, rows)
    found = ops.narrow(ops.index_add(base, 0, positions, ones), 0, 0, count)
    return ops.reshape(found, (count, *[1] * (rows.ndim - 1)))


def _averaged(data: Any, ids: Any, count: int) -> Any:
    number = ops.cast(ops.maximum(_members(data, ids, count), 1), data.dtype)
    rounding = "trunc" if data.dtype.kind in "iu" else None
    return ops.divide(_added(data, ids, count), number, rounding_mode=rounding)


def _over_root(data: Any, ids: Any, count: int) -> Any:
    number = ops.cast(ops.maximum(_members(data, ids, count), 1), data.dtype)
    return ops.divide(_added(data, ids, count), ops.sqrt(number))


class _Combination(NamedTuple):
    combine: Callable[[Any, Any, int], Any]
    noun: str


_COMBINATIONS = {
    "sum": _Combination(_added, "sums"),
    "prod": _Combination(_reduced("prod", lambda dtype: 1), "products"),
    "max": _Combination(_reduced("amax", lambda dtype: limits_of(dtype)[0]), "largest elements"),
    "min": _Combination(_reduced("amin", lambda dtype: limits_of(dtype)[1]), "smallest elements"),
    "mean": _Combination(_averaged, "means"),
    "sqrt_n": _Combination(_over_root, "sums over the square root of their number"),
}


def _unsorted(how: str, data: str, result: str) -> Callable[..., Any]:
    combine, noun = _COMBINATIONS[how]

    @operation(f"UnsortedSegment{how.title().replace('_', '')}")
    def body(data: Alone, segment_ids: Alone, num_segments: Number) -> Any:
        return combine(data, segment_ids, whole(num_segments))

    name = f"unsorted_segment_{how}"
    text = (
        f"The {noun} of the slices of ``data`` that have one number in ``segment_ids``; "
        "those with negative numbers are left out."
    )
    return described(body, name, text, f"tf.{name}({data}, [1, 0, 1], 2)", result)


def _in_order(ids: Any) -> Any:
    """Numbers of segments, checked by each run to be sorted and not negative."""
    fits = math.reduce_all(math.greater_equal(ids[1:], ids[:-1]))
    whole = math.reduce_all(math.greater_equal(ids, 0))
    checks = [
        Assert(fits, ["segment ids are not increasing", ids]),
        Assert(whole, ["segment ids must be >= 0", ids]),
    ]
    with control_dependencies(checks):
        return shape_ops.identity(ids)


def _sorted(how: str, data: str, result: str) -> Callable[..., Any]:
    combine, noun = _COMBINATIONS[how]

    @operation(f"Segment{how.title()}")
    def body(data: Any, segment_ids: Any, size: Number) -> Any:
        count = whole(size)
        found = combine(data, segment_ids, count)
        return ops.where(ops.greater(_members(data, segment_ids, count), 0), found, 1 if how == "prod" else 0)

    def function(data: Any, segment_ids: Any, name: str | None = None) -> Any:
        ids = _in_order(convert_to_tensor(segment_ids))
        return body(convert_to_tensor(data), ids, count_up_to([ids]), name=name)

    name = f"segment_{how}"
    text = (
        f"The {noun} of the slices of ``data`` with the numbers 0, 1, ... in ``segment_ids``, which are sorted: a run "
        "raises InvalidArgumentError where they are not."
    )
    return described(function, name, text, f"tf.{name}({data}, [0, 0, 1])", result)


segment_sum = _sorted("sum", "[1, 2, 4]", "[3 4]")
segment_prod = _sorted("prod", "[3, 2, 4]", "[6 4]")
segment_mean = _sorted("mean", "[1.0, 2.0, 4.0]", "[1.5 4. ]")
segment_max = _sorted("max", "[1, 2, 4]", "[2 4]")
segment_min = _sorted("min", "[1, 2, 4]", "[1 4]")
unsorted_segment_sum = _unsorted("sum", "[1, 2, 4]", "[2 5]")
unsorted_segment_prod = _unsorted("prod", "[3, 2, 4]", "[ 2 12]")
unsorted_segment_mean = _unsorted("mean", "[1.0, 2.0, 4.0]", "[2. 2.5]")
unsorted_segment_max = _unsorted("max", "[1, 2, 4]", "[2 4]")
unsorted_segment_min = _unsorted("min", "[1, 2, 4]", "[2 1]")
unsorted_segment_sqrt_n = _unsorted("sqrt_n", "[1.0, 2.0, 4.0]", "[2. 3.535534]")


@operation("ScatterNd")
@example("tf.scatter_nd([[2], [0]], [10, 20], [4])", "[20  0 10  0]")
def scatter_nd(indices: Any, updates: Any, shape: Number) -> Any:
    """Zeros of ``shape`` with the slices of ``updates`` added at the positions ``indices``."""
    wanted = sizes(shape)
    return scattered(full_of(0, wanted, updates.dtype, updates), indices, updates, "add")


def _tensor_scatter(name: str, how: str, words: str, result: str) -> Callable[..., Any]:
    @operation(name.title().replace("_", ""))
    def body(tensor: Any, indices: Alone, updates: Any) -> Any:
        return scattered(tensor, indices, updates, how)

    def function(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Any:
        data = convert_to_tensor(tensor)
        return body(data, indices, convert_to_tensor(updates, data.dtype), name=name)

    text = f"``tensor`` with the slices of ``updates`` {words} the positions ``indices``."
    return described(function, name, text, f"tf.{name}([1, 2, 3], [[2], [0]], [10, 20])", result)


tensor_scatter_update = tensor_scatter_nd_update = _tensor_scatter(
    "tensor_scatter_update", "set", "put at", "[20 2 10]"
)
tensor_scatter_add = tensor_scatter_nd_add = _tensor_scatter(
    "tensor_scatter_add", "add", "added at", "[21 2 13]"
)
tensor_scatter_sub = tensor_scatter_nd_sub = _tensor_scatter(
    "tensor_scatter_sub", "sub", "subtracted at", "[-19 2 -7]"
)


def _sparse(how: str, ids: str, result: str) -> Callable[..., Any]:
    combine, noun = _COMBINATIONS[how]

    @operation(f"SparseSegment{how.title().replace('_', '')}")
    def body(data: Any, indices: Alone, segment_ids: Any, size: Number) -> Any:
        rows = ops.index_select(data, 0, ops.cast(ops.reshape(indices, (-1,)), int64))
        return combine(rows, segment_ids, whole(size))

    def function(
        data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
    ) -> Any:
        ids = convert_to_tensor(segment_ids)
        count = count_up_to([ids]) if num_segments is None else num_segments
        return body(convert_to_tensor(data), indices, ids, count, name=name)

    name = f"sparse_segment_{how}"
    text = f"The {noun} of the slices of ``data`` at ``indices`` by segment."
    return described(function, name, text, f"tf.{name}([1.0, 2.0, 4.0], {ids})", result)


sparse_segment_sum = _sparse("sum", "[0, 2], [0, 0]", "[5.]")
sparse_segment_mean = _sparse("mean", "[0, 2], [0, 0]", "[2.5]")
sparse_segment_sqrt_n = _sparse("sqrt_n", "[0, 1], [0, 1]", "[1. 2.]")
