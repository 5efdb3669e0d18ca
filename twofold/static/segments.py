"""Slices combined by segment, and scattered to places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.dtypes import DType, int64
from twofold.ops.base import ops
from twofold.static.define import (
    Number,
    convert_to_tensor,
    full_of,
    limits_of,
    operation,
    sizes,
    whole,
)
from twofold.static.docstrings import declared as _declared
from twofold.static.positions import count_up_to, scattered


def _flat(data: Any, ids: Any, count: int) -> tuple[Any, Any]:
    """Slices and their segments in one axis each; negative segments become an additional one."""
    rows = ops.reshape(data, (-1, *tuple(data.shape)[ids.ndim :])) if ids.ndim != 1 else data
    places = ops.cast(ops.reshape(ids, (-1,)), int64)
    return rows, ops.where(ops.less(places, 0), count, places)


def _added(data: Any, ids: Any, count: int) -> Any:
    rows, places = _flat(data, ids, count)
    base = full_of(0, (count + 1, *tuple(rows.shape)[1:]), rows.dtype, rows)
    return ops.narrow(ops.index_add(base, 0, places, rows), 0, 0, count)


def _reduced(how: str, first: Callable[[DType], Any]) -> Callable[[Any, Any, int], Any]:
    def reduced(data: Any, ids: Any, count: int) -> Any:
        rows, places = _flat(data, ids, count)
        base = full_of(first(rows.dtype), (count + 1, *tuple(rows.shape)[1:]), rows.dtype, rows)
        return ops.narrow(ops.index_reduce(base, 0, places, rows, how), 0, 0, count)

    return reduced


def _members(data: Any, ids: Any, count: int) -> Any:
    """How many slices each segment has, in a shape that divides the result."""
    rows, places = _flat(data, ids, count)
    ones = ops.full_like(places, 1)
    base = full_of(0, (count + 1,), int64, rows)
    found = ops.narrow(ops.index_add(base, 0, places, ones), 0, 0, count)
    return ops.reshape(found, (count, *[1] * (rows.ndim - 1)))


def _averaged(data: Any, ids: Any, count: int) -> Any:
    number = ops.cast(ops.maximum(_members(data, ids, count), 1), data.dtype)
    rounding = "trunc" if data.dtype.kind in "iu" else None
    return ops.divide(_added(data, ids, count), number, rounding_mode=rounding)


def _over_root(data: Any, ids: Any, count: int) -> Any:
    number = ops.cast(ops.maximum(_members(data, ids, count), 1), data.dtype)
    return ops.divide(_added(data, ids, count), ops.sqrt(number))


_COMBINATIONS: dict[str, Callable[[Any, Any, int], Any]] = {
    "sum": _added,
    "prod": _reduced("prod", lambda dtype: 1),
    "max": _reduced("amax", lambda dtype: limits_of(dtype)[0]),
    "min": _reduced("amin", lambda dtype: limits_of(dtype)[1]),
    "mean": _averaged,
    "sqrt_n": _over_root,
}
_WORDS = {
    "sum": "sums",
    "prod": "products",
    "max": "largest elements",
    "min": "smallest elements",
    "mean": "means",
    "sqrt_n": "sums over the square root of their number",
}


def _unsorted(how: str) -> Callable[..., Any]:
    combine = _COMBINATIONS[how]
    title = how.title().replace("_", "")

    @operation(f"UnsortedSegment{title}")
    def body(data: Any, segment_ids: Any, num_segments: Number) -> Any:
        return combine(data, segment_ids, whole(num_segments))

    def function(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
        return body(convert_to_tensor(data), convert_to_tensor(segment_ids), num_segments, name=name)

    function.__name__ = function.__qualname__ = f"unsorted_segment_{how}"
    function.__doc__ = _declared(
        f"The {_WORDS[how]} of the slices of ``data`` that have one number in ``segment_ids``; "
        "those with negative numbers are left out.",
        function.__name__,
    )
    return function


def _sorted(how: str) -> Callable[..., Any]:
    combine = _COMBINATIONS[how]

    @operation(f"Segment{how.title()}")
    def body(data: Any, segment_ids: Any, size: Number) -> Any:
        count = whole(size)
        found = combine(data, segment_ids, count)
        return ops.where(ops.greater(_members(data, segment_ids, count), 0), found, 1 if how == "prod" else 0)

    def function(data: Any, segment_ids: Any, name: str | None = None) -> Any:
        ids = convert_to_tensor(segment_ids)
        return body(convert_to_tensor(data), ids, count_up_to([ids]), name=name)

    function.__name__ = function.__qualname__ = f"segment_{how}"
    function.__doc__ = _declared(
        f"The {_WORDS[how]} of the slices of ``data`` with the numbers 0, 1, ... in ``segment_ids``, "
        "which are sorted.",
        function.__name__,
    )
    return function


segment_sum, segment_prod, segment_mean = _sorted("sum"), _sorted("prod"), _sorted("mean")
segment_max, segment_min = _sorted("max"), _sorted("min")
unsorted_segment_sum, unsorted_segment_prod = _unsorted("sum"), _unsorted("prod")
unsorted_segment_max, unsorted_segment_min = _unsorted("max"), _unsorted("min")
unsorted_segment_mean, unsorted_segment_sqrt_n = _unsorted("mean"), _unsorted("sqrt_n")


@operation("ScatterNd")
def scatter_nd(indices: Any, updates: Any, shape: Number) -> Any:
    """Zeros of ``shape`` with the slices of ``updates`` added at the positions ``indices``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.scatter_nd([[2], [0]], [10, 20], [4])))
    [20  0 10  0]
    """
    wanted = sizes(shape)
    return scattered(full_of(0, wanted, updates.dtype, updates), indices, updates, "add")


def _tensor_scatter(how: str, type: str, words: str) -> Callable[..., Any]:
    @operation(type)
    def body(tensor: Any, indices: Any, updates: Any) -> Any:
        return scattered(tensor, indices, updates, how)

    def function(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Any:
        data = convert_to_tensor(tensor)
        return body(data, convert_to_tensor(indices), convert_to_tensor(updates, data.dtype), name=name)

    function.__name__ = function.__qualname__ = type
    text = f"``tensor`` with the slices of ``updates`` {words} the positions ``indices``."
    function.__doc__ = _declared(text, f"tensor_scatter_{how.replace('set', 'update')}")
    return function


tensor_scatter_update = _tensor_scatter("set", "TensorScatterUpdate", "put at")
tensor_scatter_add = _tensor_scatter("add", "TensorScatterAdd", "added at")
tensor_scatter_sub = _tensor_scatter("sub", "TensorScatterSub", "subtracted at")


def _sparse(how: str, type: str) -> Callable[..., Any]:
    combine = _COMBINATIONS[how]

    @operation(type)
    def body(data: Any, indices: Any, segment_ids: Any, size: Number) -> Any:
        rows = ops.index_select(data, 0, ops.cast(ops.reshape(indices, (-1,)), int64))
        return combine(rows, segment_ids, whole(size))

    def function(
        data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
    ) -> Any:
        ids = convert_to_tensor(segment_ids)
        count = count_up_to([ids]) if num_segments is None else num_segments
        return body(convert_to_tensor(data), convert_to_tensor(indices), ids, count, name=name)

    function.__name__ = function.__qualname__ = f"sparse_segment_{how}"
    text = f"The {_WORDS[how]} of the slices of ``data`` at ``indices`` by segment."
    function.__doc__ = _declared(text, function.__name__)
    return function


sparse_segment_sum = _sparse("sum", "SparseSegmentSum")
sparse_segment_mean = _sparse("mean", "SparseSegmentMean")
sparse_segment_sqrt_n = _sparse("sqrt_n", "SparseSegmentSqrtN")
