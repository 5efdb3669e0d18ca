"""Rows of tables by number, one by one or several combined."""

from __future__ import annotations

from typing import Any

from twofold.errors import ArgumentError
from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static import array, math
from twofold.static.array import concat, gather, shape
from twofold.static.clipping import clip_by_norm
from twofold.static.control import name_scope
from twofold.static.define import Number, Tensors, convert_to_tensor, operation
from twofold.static.docstrings import example
from twofold.static.flow import failed
from twofold.static.segments import unsorted_segment_mean, unsorted_segment_sqrt_n, unsorted_segment_sum
from twofold.static.sparse import SparseTensor


@example(
    "table = tf.constant([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])",
    "tf.nn.embedding_lookup(table, [2, 0])",
    "[[4. 5.]\n [0. 1.]]",
)
def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: Any = None,
) -> Any:
    """Rows of ``params`` by number, scaled down to norms of at most ``max_norm`` if that is given.

    ``params`` may be a table in several parts, of which "mod" takes rows in turn and "div" one after the other.
    ``validate_indices`` changes nothing: numbers are always checked.
    """
    if partition_strategy not in ("mod", "div"):
        raise ValueError(
            f"embedding_lookup: partition_strategy {partition_strategy!r}, at {here()}. Use 'mod' or 'div'."
        )
    tables = list(params) if isinstance(params, (list, tuple)) else [params]
    given = convert_to_tensor(ids)
    with name_scope(name, "embedding_lookup"):
        if len(tables) > 1:
            rows = _rows_of_parts(given, [shape(table)[0] for table in tables], partition_strategy == "div")
            found = gather(concat(tables, 0), rows)
        else:
            found = gather(tables[0], given)
        if max_norm is None:
            return found
        return clip_by_norm(found, max_norm, list(range(given.type_.ndim, found.type_.ndim)))


@operation("EmbeddingRows")
def _rows_of_parts(ids: Any, counts: Tensors, div: Number) -> Any:
    """The positions of rows in all parts of a table behind each other."""
    parts, counts = len(counts), [ops.cast(count, ids.dtype) for count in counts]
    if not div:
        part, row = ops.remainder(ids, parts), ops.floor_divide(ids, parts)
    else:
        total: Any = counts[0]
        for count in counts[1:]:
            total = ops.add(total, count)
        each, extra = ops.floor_divide(total, parts), ops.remainder(total, parts)
        part = ops.maximum(
            ops.floor_divide(ids, ops.add(each, 1)),
            ops.floor_divide(ops.subtract(ids, extra), ops.maximum(each, 1)),
        )
        larger = ops.less(part, extra)
        row = ops.where(
            larger,
            ops.remainder(ids, ops.add(each, 1)),
            ops.remainder(ops.subtract(ids, extra), ops.maximum(each, 1)),
        )
    start: Any = ops.multiply(ids, 0)
    for k, count in enumerate(counts[:-1]):
        start = ops.add(start, ops.where(ops.greater(part, k), count, 0))
    return ops.add(start, row)


@example(
    "table = tf.constant([[1.0], [2.0], [4.0]])",
    "ids = tf.SparseTensor([[0, 0], [0, 1]], [0, 2], [1, 2])",
    'tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")',
    "[[5.]]",
)
def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any = None,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: Any = None,
) -> Any:
    """For each row of ``sp_ids``, the rows of ``params`` that it names, combined: "sum", "mean" or "sqrtn"."""
    if combiner not in (None, "sum", "mean", "sqrtn"):
        what = f"combiner is {combiner!r}"
        raise failed("embedding_lookup_sparse", ArgumentError(what, "Use 'sum', 'mean' or 'sqrtn'."))
    ids = SparseTensor.from_value(sp_ids)
    with name_scope(name, "embedding_lookup_sparse"):
        rows = embedding_lookup(params, ids.values, partition_strategy, max_norm=max_norm)
        positions, count = ids.indices[:, 0], ids.dense_shape[0]
        if sp_weights is None:
            combine = {"sum": unsorted_segment_sum, "sqrtn": unsorted_segment_sqrt_n}
            return combine.get(combiner or "mean", unsorted_segment_mean)(rows, positions, count)
        weights = math.cast(SparseTensor.from_value(sp_weights).values, rows.dtype)
        total = unsorted_segment_sum(rows * array.expand_dims(weights, -1), positions, count)
        if combiner == "sum":
            return total
        amounts = math.square(weights) if combiner == "sqrtn" else weights
        over = unsorted_segment_sum(amounts, positions, count)
        divisor = array.expand_dims(math.sqrt(over) if combiner == "sqrtn" else over, -1)
        return math.divide_no_nan(total, divisor)
