"""Rows of tables by number, one by one or several combined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import shape_ops
from twofold.static.arrays.creation import ones_like, zeros_like
from twofold.static.arrays.segments import (
    unsorted_segment_mean,
    unsorted_segment_sqrt_n,
    unsorted_segment_sum,
)
from twofold.static.arrays.selection import boolean_mask, where
from twofold.static.arrays.shape_ops import concat, gather, shape
from twofold.static.autodiff.clipping import clip_by_norm
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.graph.scopes import name_scope
from twofold.static.sparse import SparseTensor
from twofold.static.variables.partitioned import PartitionedVariable


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

    ``params`` may be a table in several parts, of which "mod" takes rows in turn and "div" one after the other. Which
    rows each part gives is found in Python, as by ``py_func``.
    ``validate_indices`` changes nothing: numbers are always checked.
    """
    if partition_strategy not in ("mod", "div"):
        raise ValueError(
            f"embedding_lookup: partition_strategy {partition_strategy!r}, at {here()}. Use 'mod' or 'div'."
        )
    tables = list(params) if isinstance(params, (list, tuple, PartitionedVariable)) else [params]
    given = convert_to_tensor(ids)
    with name_scope(name, "embedding_lookup"):
        if len(tables) > 1:
            found = _of_parts(tables, given, partition_strategy == "div")
        else:
            found = gather(tables[0], given)
        if max_norm is None:
            return found
        return clip_by_norm(found, max_norm, list(range(given.type_.ndim, found.type_.ndim)))


def _of_parts(tables: Sequence[Any], ids: Any, div: bool) -> Any:
    """Rows of a table in parts: from each part those that it has, in the order in which they were asked for."""

    def rows(ids: Any, *counts: Any) -> list[Any]:
        part, row = _parts_of_rows(ids.ravel().astype(numpy.int64), [int(count) for count in counts], div)
        chosen = [numpy.flatnonzero(part == k) for k in range(len(counts))]
        return [*[row[own] for own in chosen], numpy.argsort(numpy.concatenate(chosen), kind="stable")]

    counts = [shape(table)[0] for table in tables]
    kinds = [(int64, (None,))] * (len(tables) + 1)
    *chosen, order = in_python("EmbeddingRows", rows, [ids, *counts], kinds, None)
    found = gather(concat([gather(table, own) for table, own in zip(tables, chosen)], 0), order)
    made = shape_ops.reshape(found, concat([shape(ids), shape(found)[1:]], 0))
    whole, table = ids.get_shape(), convert_to_tensor(tables[0]).get_shape()
    if whole.dims is not None and table.dims is not None:
        made.set_shape([*whole, *table[1:]])
    return made


def _parts_of_rows(ids: Any, counts: Sequence[int], div: bool) -> tuple[Any, Any]:
    """The part of each row, and its position there; that of a row which no part has is behind all of them."""
    parts = len(counts)
    part, row = ids % parts, ids // parts
    if div:
        each, more = divmod(sum(counts), parts)
        part = numpy.maximum(ids // (each + 1), (ids - more) // max(each, 1))
        row = numpy.where(part < more, ids % (each + 1), (ids - more) % max(each, 1))
    outside = (ids < 0) | (part >= parts)
    return numpy.where(outside, 0, part), numpy.where(outside, max(counts), row)


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
        total = unsorted_segment_sum(rows * shape_ops.expand_dims(weights, -1), positions, count)
        if combiner == "sum":
            return total
        amounts = math.square(weights) if combiner == "sqrtn" else weights
        over = unsorted_segment_sum(amounts, positions, count)
        divisor = shape_ops.expand_dims(math.sqrt(over) if combiner == "sqrtn" else over, -1)
        return math.divide_no_nan(total, divisor)


@example(
    "table = tf.constant([[1.0], [2.0]])",
    "ids = tf.SparseTensor([[0, 0], [2, 0]], [1, -1], [3, 2])",
    'tf.nn.safe_embedding_lookup_sparse(table, ids, combiner="sum")',
    "[[2.]\n [0.]\n [0.]]",
)
def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str | None = None,
    default_id: Any = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
) -> Any:
    """``embedding_lookup_sparse`` that leaves out negative ids and, unless "sum" combines, weights of 0 and below.

    Rows without ids are zero, or the row of ``default_id``. ``sparse_ids`` may have more axes than two: the last one is
    combined.
    """
    ids = SparseTensor.from_value(sparse_ids)
    weights = None if sparse_weights is None else SparseTensor.from_value(sparse_weights).values
    with name_scope(name, "embedding_lookup"):
        kept = ids.values >= 0
        if weights is not None and combiner != "sum":
            kept = math.logical_and(kept, weights > 0)
        sizes = ids.dense_shape
        lead = sizes[:-1]
        rows = math.reduce_prod(lead)
        strides = math.cumprod(lead, exclusive=True, reverse=True)
        row = math.reduce_sum(boolean_mask(ids.indices, kept)[:, :-1] * strides, 1)
        column = boolean_mask(ids.indices, kept)[:, -1]
        whole = shape_ops.stack([rows, sizes[-1]])
        indices = shape_ops.stack([row, column], 1)
        flat = SparseTensor(indices, boolean_mask(ids.values, kept), whole)
        own = None if weights is None else SparseTensor(indices, boolean_mask(weights, kept), whole)
        found = embedding_lookup_sparse(
            embedding_weights, flat, own, partition_strategy, None, combiner, max_norm
        )
        filled = unsorted_segment_sum(ones_like(row), row, rows) > 0
        spare = zeros_like(found)
        if default_id is not None:
            spare = spare + embedding_lookup(
                embedding_weights, default_id, partition_strategy, max_norm=max_norm
            )
        found = where(filled, found, spare)
        return shape_ops.reshape(found, concat([lead, math.cast(shape(found)[1:], int64)], 0))
