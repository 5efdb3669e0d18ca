"""Sparse tensors joined, cut, made of others or of dense ones; Python finds where elements go, values are gathered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold.dtypes import bool_, int64
from twofold.errors import ArgumentError, DTypeError, InvalidArgumentError
from twofold.ops.axes import given_once
from twofold.runtime.calls import failed
from twofold.static import math
from twofold.static.api.op_functions import axis_of, convert_to_tensor
from twofold.static.arrays import creation, segments, selection, shape_ops
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import described, example
from twofold.static.graph.scopes import name_scope
from twofold.static.sparse import SparseTensor, sparse_reorder


def _taken(
    values: Any, type: str, function: Callable[..., Any], inputs: Sequence[Any], name: str | None
) -> SparseTensor:
    """The sparse tensor of some ``values``: the function finds coordinates, which values, and the shape."""
    results: Any = [(int64, (None, None)), (int64, (None,)), (int64, (None,))]
    indices, chosen, shape = in_python(type, function, inputs, results, name)
    return SparseTensor(indices, shape_ops.gather(values, chosen), shape)


@example(
    "x = tf.SparseTensor([[0, 1], [2, 0]], [5, 6], [3, 2])",
    "filled, empty = tf.sparse_fill_empty_rows(x, 0)",
    "[filled.values, empty]",
    "[array([5, 0, 6], dtype=int32), array([False,  True, False])]",
)
def sparse_fill_empty_rows(
    sp_input: Any, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Any]:
    """A sparse matrix with ``default_value`` at the start of each row without an element, and which rows those are."""
    given = SparseTensor.from_value(sp_input)
    default = convert_to_tensor(default_value, given.dtype)

    def fill(indices: Any, shape: Any) -> list[Any]:
        rows = int(shape[0])
        if len(indices) and not (indices[:, 0].min() >= 0 and indices[:, 0].max() < rows):
            what = f"sparse_fill_empty_rows: a row that is not among {rows}"
            raise InvalidArgumentError(what, "Give coordinates inside the shape.")
        empty = ~numpy.isin(numpy.arange(rows), indices[:, 0])
        new = numpy.zeros((int(empty.sum()), indices.shape[1]), numpy.int64)
        new[:, 0] = numpy.flatnonzero(empty)
        joined = numpy.concatenate([indices, new])
        order = numpy.argsort(joined[:, 0], kind="stable")
        return [joined[order], numpy.minimum(order, len(indices)), empty]

    with name_scope(name, "SparseFillEmptyRows"):
        kinds: Any = [(int64, (None, given.known_rank)), (int64, (None,)), (bool_, (None,))]
        indices, chosen, empty = in_python("SparseFillEmptyRows", fill, given.parts[::2], kinds, None)
        values = shape_ops.concat([given.values, shape_ops.reshape(default, [1])], 0)
        return SparseTensor(indices, shape_ops.gather(values, chosen), given.dense_shape), empty


@example(
    "x = tf.SparseTensor([[0, 1]], [5], [1, 2])",
    "tf.sparse_concat(1, [x, x]).indices",
    "[[0 1]\n [0 3]]",
)
def sparse_concat(
    axis: int | None = None,
    sp_inputs: Any = None,
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: int | None = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """Sparse tensors joined along an axis.

    Args:
        axis: The axis; ``concat_dim`` is an older name.
        sp_inputs: The tensors.
        name: Of the operation.
        expand_nonconcat_dim: Whether the other sizes may differ; the largest count. ``expand_nonconcat_dims`` is a
            later name.
        concat_dim: See above.
        expand_nonconcat_dims: See above.
    """
    along = given_once(axis=axis, concat_dim=concat_dim)
    parts = [SparseTensor.from_value(one) for one in sp_inputs]
    widened = bool(expand_nonconcat_dim or expand_nonconcat_dims)

    def join(*arrays: Any) -> list[Any]:
        every, shapes = list(arrays[: len(parts)]), numpy.stack(arrays[len(parts) :])
        rest = numpy.delete(shapes, along, 1)
        if not widened and (rest != rest[0]).any():
            what = f"sparse_concat: shapes {shapes.tolist()} differ beside axis {along}"
            raise InvalidArgumentError(what, "Make them equal, or set expand_nonconcat_dim.")
        starts = numpy.cumsum(shapes[:, along]) - shapes[:, along]
        moved = [indices.copy() for indices in every]
        for indices, start in zip(moved, starts):
            indices[:, along] += start
        joined, shape = numpy.concatenate(moved), shapes.max(0)
        shape[along] = shapes[:, along].sum()
        order = numpy.lexsort(joined.T[::-1])
        return [joined[order], order, shape]

    inputs = [one.indices for one in parts] + [one.dense_shape for one in parts]
    values = shape_ops.concat([one.values for one in parts], 0)
    return _taken(values, "SparseConcat", join, inputs, name)


@example(
    "x = tf.SparseTensor([[0, 1], [1, 2]], [5, 6], [2, 3])",
    "tf.sparse_tensor_to_dense(tf.sparse_slice(x, [0, 1], [2, 2]))",
    "[[5 0]\n [0 6]]",
)
def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The elements of a block that begins at ``start`` and has at most ``size``, in its coordinates."""
    given = SparseTensor.from_value(sp_input)

    def cut(indices: Any, shape: Any, first: Any, count: Any) -> list[Any]:
        sizes = numpy.clip(shape - first, 0, count)
        moved = indices - first
        kept = numpy.flatnonzero(((moved >= 0) & (moved < sizes)).all(1))
        return [moved[kept], kept, sizes]

    bounds = [math.cast(convert_to_tensor(one), int64) for one in (start, size)]
    return _taken(given.values, "SparseSlice", cut, [given.indices, given.dense_shape, *bounds], name)


@example(
    "x = tf.SparseTensor([[0, 0], [0, 2]], [5, 6], [1, 3])",
    "[one.values for one in tf.sparse_split(sp_input=x, num_split=2, axis=1)]",
    "[array([5], dtype=int32), array([6], dtype=int32)]",
)
def sparse_split(
    *,
    sp_input: Any,
    num_split: int,
    axis: int | None = None,
    name: str | None = None,
    split_dim: int | None = None,
) -> list[SparseTensor]:
    """``num_split`` parts along an axis, the first ones longer by one where the size is no multiple of it."""
    given, along = SparseTensor.from_value(sp_input), given_once(axis=axis, split_dim=split_dim)
    rank = given.rank
    with name_scope(name, "SparseSplit"):
        whole = given.dense_shape[along]
        each, longer = whole // num_split, math.cast(whole % num_split, int64)
        made = []
        for part in range(num_split):
            first = part * each + math.minimum(convert_to_tensor(part, int64), longer)
            count = each + math.cast(math.less(convert_to_tensor(part, int64), longer), int64)
            start = [first if k == along else convert_to_tensor(0, int64) for k in range(rank)]
            size = [count if k == along else given.dense_shape[k] for k in range(rank)]
            made.append(sparse_slice(given, shape_ops.stack(start), shape_ops.stack(size)))
        return made


@example("x = tf.SparseTensor([[0, 1]], [5], [9, 9])", "tf.sparse_reset_shape(x).dense_shape", "[1 2]")
def sparse_reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same elements in a larger shape, or in the smallest one; a run refuses a shape that is smaller."""
    given = SparseTensor.from_value(sp_input)

    def shape_of(indices: Any, shape: Any, *wanted: Any) -> Any:
        if not wanted:
            return indices.max(0) + 1 if len(indices) else numpy.zeros(len(shape), numpy.int64)
        if len(wanted[0]) != len(shape) or (wanted[0] < shape).any():
            what = f"sparse_reset_shape: {wanted[0].tolist()} is smaller than {shape.tolist()}"
            raise InvalidArgumentError(what, "Give a larger shape.")
        return wanted[0]

    given_shape = [] if new_shape is None else [math.cast(convert_to_tensor(new_shape), int64)]
    inputs = [given.indices, given.dense_shape, *given_shape]
    kinds: Any = [(int64, (given.known_rank,))]
    return SparseTensor(
        given.indices, given.values, in_python("SparseResetShape", shape_of, inputs, kinds, None)[0]
    )


@example(
    "ids = tf.SparseTensor([[0, 0], [0, 1]], [3, 1], [1, 2])",
    "values = tf.SparseTensor([[0, 0], [0, 1]], [5.0, 6.0], [1, 2])",
    "tf.sparse_tensor_to_dense(tf.sparse_merge(ids, values, 4))",
    "[[0. 6. 0. 5.]]",
)
def sparse_merge(
    sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None, already_sorted: bool = False
) -> SparseTensor:
    """Values whose last coordinate is that of ``sp_ids``, or several of them for lists of ids and sizes."""
    several = isinstance(sp_ids, (list, tuple)) and not hasattr(sp_ids, "indices")
    ids = [SparseTensor.from_value(one) for one in (sp_ids if several else [sp_ids])]
    sizes = list(vocab_size) if several else [vocab_size]
    if len(ids) != len(sizes):
        what = f"{len(ids)} tensors of ids for {len(sizes)} sizes"
        raise failed("sparse_merge", ArgumentError(what, "Give one size for each."))
    if any(one.dtype.kind != "i" for one in ids):
        raise failed("sparse_merge", DTypeError("ids that are no integers", "Cast them to int64."))
    values = SparseTensor.from_value(sp_values)
    with name_scope(name, "SparseMerge"):
        columns = [shape_ops.expand_dims(math.cast(one.values, int64), 1) for one in ids]
        indices = shape_ops.concat([ids[0].indices[:, :-1], *columns], 1)
        ends = [shape_ops.reshape(math.cast(convert_to_tensor(one), int64), [1]) for one in sizes]
        made = SparseTensor(indices, values.values, shape_ops.concat([ids[0].dense_shape[:-1], *ends], 0))
        return made if already_sorted else sparse_reorder(made)


@example(
    "x = tf.SparseTensor([[0, 0], [1, 0]], [2, 0], [2, 1])",
    "tf.sparse_to_indicator(x, 3)",
    "[[False False  True]\n [ True False False]]",
)
def sparse_to_indicator(sp_input: Any, vocab_size: int, name: str | None = None) -> Any:
    """Whether each number below ``vocab_size`` is among the values of each row."""
    given = SparseTensor.from_value(sp_input)
    with name_scope(name, "SparseToIndicator"):
        merged = sparse_merge(given, given.with_values(math.cast(given.values, int64) * 0 + 1), vocab_size)
        return math.greater(segments.scatter_nd(merged.indices, merged.values, merged.dense_shape), 0)


@example("x = tf.SparseTensor([[0, 1], [1, 1]], [5.0, 6.0], [2, 2])", "tf.sparse_reduce_max(x, 0)", "[0. 6.]")
def sparse_reduce_max(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> Any:
    """The largest element of a sparse tensor along axes, dense; 0 where there is none."""
    given = SparseTensor.from_value(sp_input)
    rank = given.rank
    found = axis_of(given_once(axis=axis, reduction_axes=reduction_axes))
    gone = {
        k % rank for k in (range(rank) if found is None else [found] if isinstance(found, int) else found)
    }
    kept = [k for k in range(rank) if k not in gone]
    whole = bool(given_once(keepdims=keepdims, keep_dims=keep_dims))
    one = convert_to_tensor(1, int64)
    sizes = shape_ops.stack([given.dense_shape[k] for k in kept]) if kept else creation.zeros([0], int64)
    row = math.reduce_sum(given.indices * 0, 1)
    for k in kept:
        row = row * given.dense_shape[k] + given.indices[:, k]
    count = math.reduce_prod(sizes)
    most = segments.unsorted_segment_max(given.values, row, count)
    held = segments.unsorted_segment_sum(creation.ones_like(row), row, count)
    made = selection.where(math.greater(held, 0), most, creation.zeros_like(most))
    shown = [given.dense_shape[k] if k in kept else one for k in range(rank)] if whole else None
    return shape_ops.reshape(made, sizes if shown is None else shape_ops.stack(shown))


def _of_two(name: str, choose: str, text: str, result: str) -> Callable[..., Any]:
    def function(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
        one, two = SparseTensor.from_value(sp_a), SparseTensor.from_value(sp_b)

        def both(left: Any, right: Any, shape: Any, other: Any) -> list[Any]:
            if shape.tolist() != other.tolist():
                what = f"sparse tensors of shapes {shape.tolist()} and {other.tolist()}"
                raise InvalidArgumentError(what, "Make them equal.")
            joined = numpy.unique(numpy.concatenate([left, right]), axis=0)
            position = {tuple(row): k for k, row in enumerate(joined.tolist())}
            chosen = [numpy.full(len(joined), len(side), numpy.int64) for side in (left, right)]
            for found, side in zip(chosen, (left, right)):
                for k, row in enumerate(side.tolist()):
                    found[position[tuple(row)]] = k
            return [joined, *chosen]

        kinds: Any = [(int64, (None, None)), (int64, (None,)), (int64, (None,))]
        inputs = [one.indices, two.indices, one.dense_shape, two.dense_shape]
        indices, first, second = in_python(f"SparseSparse{choose.title()}", both, inputs, kinds, name)
        sides = [
            shape_ops.gather(shape_ops.concat([side.values, creation.zeros([1], side.dtype)], 0), chosen)
            for side, chosen in ((one, first), (two, second))
        ]
        return SparseTensor(indices, getattr(math, choose)(*sides), one.dense_shape)

    lines = ("x = tf.SparseTensor([[0]], [-5], [2])", "y = tf.SparseTensor([[1]], [3], [2])")
    return described(function, name, text, *lines, f"tf.{name}(x, y).values", result)


sparse_maximum = _of_two(
    "sparse_maximum",
    "maximum",
    "The larger elements of two sparse tensors, of which missing ones are 0.",
    "[0 3]",
)
sparse_minimum = _of_two(
    "sparse_minimum",
    "minimum",
    "The smaller elements of two sparse tensors, of which missing ones are 0.",
    "[-5  0]",
)
