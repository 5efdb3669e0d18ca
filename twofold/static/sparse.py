"""Sparse tensors: the coordinates and values of some elements; all others are zero.

Coordinates are in row-major order unless a function says otherwise, as in TensorFlow 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import float32, int64, string
from twofold.errors import DTypeError, ShapeError
from twofold.ops.axes import given_once
from twofold.ops.base import normalize_axis, ops
from twofold.runtime.calls import failed
from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.api.namespaces import look_up
from twofold.static.api.op_functions import (
    Number,
    axis_of,
    constant,
    convert_to_tensor,
    define,
    full_of,
    is_tensor_like,
    numbers,
    operation,
    refuse,
    sizes,
)
from twofold.static.arrays import creation, segments, selection, shape_ops
from twofold.static.arrays.indexing import flat_indices
from twofold.static.functions.host_calls import Assert, in_python
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Tensor, need_session
from twofold.static.graph.graph_elements import OfValues
from twofold.static.graph.inference import known_sizes_of
from twofold.static.graph.scopes import control_dependencies, name_scope
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.strings.string_functions import as_string_tensor
from twofold.static.variables.variable import is_nested


@example("print(tf.SparseTensorValue([[0, 1]], [5.0], [2, 2]).dense_shape)", "[2, 2]")
class SparseTensorValue(NamedTuple):
    """A sparse tensor of arrays: what is fed for, and fetched from, one of a graph."""

    indices: Any
    values: Any
    dense_shape: Any


@example(
    "x = tf.SparseTensor([[0, 1], [1, 2]], [5.0, 6.0], [2, 3])",
    "tf.sparse_tensor_to_dense(x)",
    "[[0. 5. 0.]\n [0. 0. 6.]]",
)
class SparseTensor(OfValues):
    """A sparse tensor of a graph: ``indices`` [count, rank] and ``dense_shape`` [rank] of int64, ``values`` [count]."""

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.indices = _int64(indices)
        self.values = convert_to_tensor(values)
        self.dense_shape = _int64(dense_shape)
        if self.indices.type_.ndim != 2 or self.values.type_.ndim != 1 or self.dense_shape.type_.ndim != 1:
            found = [tensor.get_shape() for tensor in self.parts]
            what = f"indices, values and dense_shape of shapes {found}"
            raise failed("SparseTensor", ShapeError(what, "Give [count, rank], [count] and [rank]."))

    @classmethod
    def from_value(cls, value: Any) -> SparseTensor:
        """The sparse tensor of a ``SparseTensorValue`` or a sparse tensor."""
        return value if isinstance(value, SparseTensor) else cls(*value)

    @property
    def parts(self) -> list[Tensor]:
        """Indices, values and shape, as a session feeds and fetches them."""
        return [self.indices, self.values, self.dense_shape]

    @staticmethod
    def fetched(arrays: Sequence[Any]) -> SparseTensorValue:
        """What a session returns for a sparse tensor."""
        return SparseTensorValue(*arrays)

    @property
    def shape(self) -> TensorShape:
        """The dense shape, where it is a constant."""
        constant = self.dense_shape.op.constant
        return TensorShape([None] * self.rank if constant is None else constant.detach().numpy().tolist())

    @property
    def rank(self) -> int:
        """The number of axes."""
        known = self.known_rank
        if known is None:
            what = "the number of axes is not known"
            raise failed("SparseTensor", ShapeError(what, "Give indices or dense_shape a known size."))
        return known

    @property
    def known_rank(self) -> int | None:
        """The number of axes, or None where neither ``indices`` nor ``dense_shape`` says it."""
        found = max(self.dense_shape.type_.shape[0], self.indices.type_.shape[1])
        return None if found < 0 else found

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """The value in ``session`` or the default session."""
        found: SparseTensorValue = (session or need_session("eval")).run(self, feed_dict)
        return found

    def __mul__(self, other: Any) -> SparseTensor:
        return self.with_values(self.values * _at(self, other))

    def __truediv__(self, other: Any) -> SparseTensor:
        return self.with_values(self.values / _at(self, other))

    def with_values(self, values: Any) -> SparseTensor:
        return SparseTensor(self.indices, values, self.dense_shape)

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices}, values={self.values}, dense_shape={self.dense_shape})"


def _int64(value: Any) -> Any:
    if not is_tensor_like(value) and not is_nested(value):
        return constant(value, int64)
    tensor = convert_to_tensor(value)
    return tensor if tensor.dtype is int64 else math.cast(tensor, int64)


def _at(sparse: SparseTensor, dense: Any) -> Any:
    """The elements of a dense tensor, broadcast to the sparse one, at its coordinates."""
    tensor = convert_to_tensor(dense, sparse.dtype)
    if not tensor.type_.ndim:
        return tensor
    found = shape_ops.gather_nd(tensor + creation.zeros(sparse.dense_shape, sparse.dtype), sparse.indices)
    found.set_shape([None])  # also where the number of axes is not known
    return found


@example(
    "x = tf.sparse_placeholder(tf.float32, [2, 2])",
    "fed = tf.SparseTensorValue([[0, 1]], [5.0], [2, 2])",
    "print(session.run(tf.sparse_tensor_to_dense(x), {x: fed}))",
    "[[0. 5.]\n [0. 0.]]",
)
def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor to feed with a ``SparseTensorValue`` or ``(indices, values, dense_shape)``.

    A vector as ``shape`` fixes the sizes where its values are known.
    """
    label = lambda part: None if name is None else f"{name}/{part}"
    if is_tensor_like(shape):
        shape = known_sizes_of(convert_to_tensor(shape))
    rank = None if shape is None else len(list(shape))
    known = shape is not None and all(size is not None for size in shape)
    sizes_ = constant(list(shape), int64) if known else shape_ops.placeholder(int64, [rank], label("shape"))
    values = shape_ops.placeholder(dtype, [None], label("values"))
    return SparseTensor(shape_ops.placeholder(int64, [None, rank], label("indices")), values, sizes_)


@operation("SparseToDense")
def _dense(indices: Any, values: Any, default: Any, shape: Number) -> Any:
    wanted = sizes(shape)
    count = prod(wanted)
    base = ops.broadcast_to(default, (count,))
    flat = flat_indices(indices, wanted, checked=False) if indices.ndim == 2 else indices
    positions = ops.reshape(flat, (-1,))
    if values.ndim and values.shape[0] != positions.shape[0]:
        what = f"{values.shape[0]} values for {positions.shape[0]} positions"
        raise ShapeError(what, "Give one value for each position, or one for all without axes.")
    given = ops.broadcast_to(values, positions.shape)
    return ops.reshape(ops.index_copy(base, 0, positions, given), wanted)


def _in_order(indices: Any, shape: Number) -> Any:
    flat = flat_indices(indices, sizes(shape), checked=False) if indices.ndim == 2 else indices
    positions = ops.reshape(flat, (-1,))
    count = positions.shape[0]
    if count < 2:
        return ops.all(ops.equal(positions, positions))
    later, earlier = ops.narrow(positions, 0, 1, count - 1), ops.narrow(positions, 0, 0, count - 1)
    return ops.all(ops.greater(later, earlier))


def _within(indices: Any, shape: Number) -> Any:
    rows = indices if indices.ndim == 2 else ops.reshape(indices, (-1, 1))
    inside = ops.all(ops.greater_equal(rows, 0))
    for axis, size in enumerate(sizes(shape)):
        inside = ops.logical_and(inside, ops.all(ops.less(ops.select(rows, 1, axis), size)))
    return inside


def _checked(indices: Any, shape: Any, validate: bool) -> Any:
    """Inside, operations wait for checks that coordinates lie in the shape and, if asked, in order and none twice."""
    given = convert_to_tensor(indices)
    inside = define("SparseToDense/bounds", _within, (), {"indices": given, "shape": shape}, None, _SHAPE)
    bounds = Assert(inside.outputs[0], ["sparse indices are out of bounds:", given, "shape:", shape])
    if not validate:
        return control_dependencies([bounds])
    good = define("SparseToDense/order", _in_order, (), {"indices": given, "shape": shape}, None, _SHAPE)
    message = "sparse indices are out of order or repeated:"
    return control_dependencies([bounds, Assert(good.outputs[0], [message, given])])


_SHAPE = frozenset({"shape"})


@example("tf.sparse_to_dense([0, 2], [4], 7)", "[7 0 7 0]")
def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Any:
    """A dense tensor with values (or one for all) at coordinates, ``default_value`` elsewhere.

    A run raises InvalidArgumentError for coordinates outside, with ``validate_indices`` also for those out of order or
    repeated.
    """
    values = convert_to_tensor(sparse_values)
    default = convert_to_tensor(default_value, values.dtype)
    positions = _int64(sparse_indices)
    with _checked(positions, output_shape, validate_indices):
        return _dense(positions, values, default, output_shape, name=name)


@example(
    "x = tf.SparseTensor([[0, 1]], [5.0], [2, 2])", "tf.sparse_tensor_to_dense(x)", "[[0. 5.]\n [0. 0.]]"
)
def sparse_tensor_to_dense(
    sp_input: Any, default_value: Any = 0, validate_indices: bool = True, name: str | None = None
) -> Any:
    """A sparse tensor as a dense one, with ``default_value`` where it has no element.

    A run raises InvalidArgumentError for coordinates outside, with ``validate_indices`` also for those out of order or
    repeated.
    """
    given = SparseTensor.from_value(sp_input)
    default = convert_to_tensor(default_value, given.dtype)
    with _checked(given.indices, given.dense_shape, validate_indices):
        return _dense(given.indices, given.values, default, given.dense_shape, name=name)


@operation("SparseTensorDenseMatMul")
def _product(
    indices: Any, values: Any, dense: Any, shape: Number, adjoint: Number, transposed: Number
) -> Any:
    rows, columns = (1, 0) if adjoint else (0, 1)
    wanted = sizes(shape)
    right = ops.transpose(dense, 0, 1) if transposed else dense
    if wanted[columns] != right.shape[0]:
        what = f"inner sizes differ, {wanted[columns]} against {right.shape[0]}"
        raise ShapeError(what, "Make them equal.")
    parts = ops.index_select(right, 0, ops.select(indices, 1, columns))
    parts = ops.multiply(parts, ops.unsqueeze(values, 1))
    base = full_of(0, (wanted[rows], right.shape[1]), parts.dtype, parts)
    return ops.index_add(base, 0, ops.select(indices, 1, rows), parts)


@example(
    "x = tf.SparseTensor([[0, 1]], [5.0], [2, 2])",
    "tf.sparse_tensor_dense_matmul(x, [[1.0], [2.0]])",
    "[[10.]\n [ 0.]]",
)
def sparse_tensor_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Any:
    """The product of a sparse and a dense matrix; a run raises InvalidArgumentError for coordinates outside."""
    given = SparseTensor.from_value(sp_a)
    dense = convert_to_tensor(b, given.dtype)
    with _checked(given.indices, given.dense_shape, False):
        return _product(
            given.indices, given.values, dense, given.dense_shape, adjoint_a, adjoint_b, name=name
        )


@example(
    "x = tf.SparseTensor([[0, 0], [0, 2], [1, 1]], [0.0, 0.0, 3.0], [2, 3])",
    "tf.sparse_tensor_to_dense(tf.sparse_softmax(x))",
    "[[0.5 0.  0.5]\n [0.  1.  0. ]]",
)
def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The softmax of each row (of the last axis) over the elements that it has."""
    given = SparseTensor.from_value(sp_input)
    with name_scope(name, "SparseSoftmax"):
        row, rows = _rows(given.indices, given.dense_shape), math.reduce_prod(given.dense_shape[:-1])
        largest = segments.unsorted_segment_max(given.values, row, rows)
        powers = math.exp(given.values - math.stop_gradient(shape_ops.gather(largest, row)))
        return given.with_values(
            powers / shape_ops.gather(segments.unsorted_segment_sum(powers, row, rows), row)
        )


def _rows(indices: Any, shape: Any) -> Any:
    """The number of the row of each element, counted over all axes but the last."""
    strides = math.cumprod(shape[:-1], exclusive=True, reverse=True)
    return math.reduce_sum(indices[:, :-1] * strides, 1)


@example(
    "x = tf.SparseTensor([[0, 0]], [5.0], [1, 2])",
    "y = tf.SparseTensor([[0, 0], [0, 1]], [1.0, 2.0], [1, 2])",
    "[tf.sparse_add(x, y).values, tf.sparse_add(x, [[1.0, 1.0]])]",
    "[array([6., 2.], dtype=float32), array([[6., 1.]], dtype=float32)]",
)
def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """The sum of two sparse tensors of one shape, without elements below ``threshold``; dense if one of them is.

    ``thresh`` is an older name of ``threshold``.
    """
    parts = [one if isinstance(one, (SparseTensor, SparseTensorValue)) else None for one in (a, b)]
    if parts[0] is None or parts[1] is None:
        if parts[0] is None and parts[1] is None:
            raise TypeError(f"sparse_add: neither of two tensors is sparse, at {here()}. Use tf.add.")
        dense, sparse = (b, a) if parts[1] is None else (a, b)
        given = SparseTensor.from_value(sparse)
        return convert_to_tensor(dense, given.dtype) + segments.scatter_nd(
            given.indices, given.values, given.dense_shape
        )
    one, two = (SparseTensor.from_value(part) for part in parts)
    least = given_once(threshold=threshold, thresh=thresh)
    strides = math.cumprod(one.dense_shape, exclusive=True, reverse=True)
    joined = shape_ops.concat([one.indices, two.indices], 0)
    flat = math.reduce_sum(joined * strides, 1)
    cells, group = selection.unique(flat)
    total = segments.unsorted_segment_sum(
        shape_ops.concat([one.values, two.values], 0), group, shape_ops.size(cells)
    )
    made = sparse_reorder(
        SparseTensor(shape_ops.gather(joined, _first_of(group, cells)), total, one.dense_shape)
    )
    if least is None or (isinstance(least, (int, float)) and least == 0):
        return made
    return sparse_retain(made, math.abs(made.values) >= least)


def _first_of(group: Any, cells: Any) -> Any:
    """Where the first element of each group is."""
    return segments.unsorted_segment_min(creation.range(shape_ops.size(group)), group, shape_ops.size(cells))


@example(
    "x = tf.SparseTensor([[0, 1], [1, 1]], [5.0, 6.0], [2, 2])", "tf.sparse_reduce_sum(x, 0)", "[ 0. 11.]"
)
def sparse_reduce_sum(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> Any:
    """The sum of a sparse tensor along axes, dense; a run raises InvalidArgumentError for coordinates outside."""
    given = SparseTensor.from_value(sp_input)
    whole = bool(given_once(keepdims=keepdims, keep_dims=keep_dims))
    axis = given_once(axis=axis, reduction_axes=reduction_axes)
    with _checked(given.indices, given.dense_shape, False):
        return _sum(given.indices, given.values, given.dense_shape, axis, whole)


@operation("SparseReduceSum")
def _sum(indices: Any, values: Any, shape: Number, axis: Number, keepdims: Number) -> Any:
    wanted, given = sizes(shape), axis_of(axis)
    axes = range(len(wanted)) if given is None else [given] if isinstance(given, int) else given
    gone = {normalize_axis(position, len(wanted)) for position in axes}
    kept = [position for position in range(len(wanted)) if position not in gone]
    rest = tuple(wanted[position] for position in kept)
    position: Any = ops.multiply(ops.select(indices, 1, 0), 0)
    for axis_ in kept:
        position = ops.add(ops.multiply(position, wanted[axis_]), ops.select(indices, 1, axis_))
    total = ops.index_add(full_of(0, (prod(rest),), values.dtype, values), 0, position, values)
    shown = tuple(1 if k in gone else size for k, size in enumerate(wanted)) if keepdims else rest
    return ops.reshape(total, shown)


@example("x = tf.SparseTensor([[1, 0], [0, 1]], [5, 6], [2, 2])", "tf.sparse_reorder(x).values", "[6 5]")
def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The same elements in row-major order."""
    given = SparseTensor.from_value(sp_input)
    order = _order(given.indices, given.dense_shape, name=name)
    order.set_shape([None])  # also where the number of axes is not known
    made = SparseTensor(
        shape_ops.gather(given.indices, order), shape_ops.gather(given.values, order), given.dense_shape
    )
    return made


@operation("SparseReorder")
def _order(indices: Any, shape: Number) -> Any:
    return ops.sort(flat_indices(indices, sizes(shape)), 0, False, True)[1]


def _complete(shape: Any, wanted: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes, and the wanted ones with the one that is -1 found."""
    old, new = sizes(shape), list(sizes(wanted))
    if -1 in new:
        known = prod([size for size in new if size != -1])
        new[new.index(-1)] = prod(old) // max(known, 1)
    if prod(new) != prod(old):
        raise ShapeError(f"shape {old} as {tuple(new)}", "Give one of as many elements.")
    return old, tuple(new)


@operation("SparseReshape")
def _reshaped(indices: Any, shape: Number, wanted: Number) -> Any:
    old, new = _complete(shape, wanted)
    return ops.stack(list(ops.unravel_index(flat_indices(indices, old), new)), 1)


@operation("SparseReshapeShape")
def _reshaped_sizes(shape: Number, wanted: Number) -> Any:
    return numpy.array(_complete(shape, wanted)[1], numpy.int64)


@example(
    "x = tf.SparseTensor([[0, 1], [1, 1]], [5, 6], [2, 2])",
    "tf.sparse_reshape(x, [4]).indices",
    "[[1]\n [3]]",
)
def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The same elements in the same order in another shape."""
    given = SparseTensor.from_value(sp_input)
    wanted = known_sizes_of(convert_to_tensor(shape))
    rank = None if wanted is None else len(wanted)
    with name_scope(name, "SparseReshape"):
        indices = _reshaped(given.indices, given.dense_shape, shape)
        shape_ = _reshaped_sizes(given.dense_shape, shape)
    indices.set_shape([None, rank])  # also where only a run tells the sizes
    shape_.set_shape([rank])
    return SparseTensor(indices, given.values, shape_)


@example("x = tf.SparseTensor([[0, 1]], [5], [2, 2])", "tf.sparse_transpose(x).indices", "[[1 0]]")
def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """The axes in the order ``perm`` (None: reversed)."""
    given = SparseTensor.from_value(sp_input)
    order = list(range(given.rank))[::-1] if perm is None else [int(k) for k in numbers(perm)]
    with name_scope(name, "SparseTranspose"):
        shape = shape_ops.gather(given.dense_shape, order)
        positions = shape_ops.gather(given.indices, order, axis=1)
        return sparse_reorder(SparseTensor(positions, given.values, shape))


@example(
    "x = tf.SparseTensor([[0, 1], [1, 1]], [5, 6], [2, 2])",
    "tf.sparse_retain(x, [False, True]).values",
    "[6]",
)
def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The elements whose entry in ``to_retain`` is true."""
    given = SparseTensor.from_value(sp_input)
    kept = shape_ops.reshape(selection.where(to_retain), [-1])
    return SparseTensor(
        shape_ops.gather(given.indices, kept), shape_ops.gather(given.values, kept), given.dense_shape
    )


def _distance(one: Sequence[Any], two: Sequence[Any]) -> int:
    """The fewest insertions, deletions and replacements between sequences (Levenshtein 1966)."""
    before = list(range(len(two) + 1))
    for k, a in enumerate(one, 1):
        row = [k]
        for j, b in enumerate(two, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
        before = row
    return before[-1]


def _sequences(indices: Any, values: Any) -> dict[tuple[int, ...], list[Any]]:
    found: dict[tuple[int, ...], list[Any]] = {}
    for position, value in zip(indices.tolist(), values.tolist()):
        found.setdefault(tuple(position[:-1]), []).append(value)
    return found


@example(
    "a, b = tf.SparseTensor([[0, 0], [0, 1]], [1, 2], [1, 2]), tf.SparseTensor([[0, 0]], [1], [1, 1])",
    "tf.edit_distance(a, b, normalize=False)",
    "[1.]",
)
def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance") -> Any:
    """The edit distance of sequences along the last axis of sparse tensors, over the length of the truth.

    No derivative passes through it.
    """
    one, two = SparseTensor.from_value(hypothesis), SparseTensor.from_value(truth)

    def distances(*arrays: Any) -> Any:
        (positions, values, shape), (others, wanted, whole) = arrays[:3], arrays[3:]
        found, right = _sequences(positions, values), _sequences(others, wanted)
        made = numpy.zeros(numpy.maximum(shape, whole)[:-1], numpy.float32)
        for position in numpy.ndindex(*made.shape):
            guess, truth_ = found.get(position, []), right.get(position, [])
            distance = _distance(guess, truth_)
            if not normalize:
                made[position] = distance
            elif truth_:
                made[position] = distance / len(truth_)
            else:
                made[position] = numpy.inf if guess else 0.0
        return made

    if one.dtype is not two.dtype:
        what = f"sequences of {one.dtype.name} against sequences of {two.dtype.name}"
        raise failed("edit_distance", DTypeError(what, "Give both one dtype."))
    rank = one.known_rank or two.known_rank
    results: Any = [(float32, None if rank is None else (None,) * (rank - 1))]
    return in_python("EditDistance", distances, [*one.parts, *two.parts], results, name)[0]


def string_split(
    source: Any,
    sep: str | None = None,
    skip_empty: bool = True,
    delimiter: str = " ",
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> SparseTensor:
    """The parts of each string between delimiters, as a sparse tensor: a row for each string.

    Args:
        source: a ``tf.string`` vector.
        sep: the bytes that each separate parts, ``delimiter`` unless given; an empty one separates every byte.
        skip_empty: leave out empty parts.
        delimiter: an older name of ``sep``.
        result_type: "SparseTensor"; anything else raises.
        name: the name of the operation.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     found = session.run(tf.string_split(["a b", "c"]))
    >>> found.values.tolist(), found.indices.tolist(), found.dense_shape.tolist()
    ([b'a', b'b', b'c'], [[0, 0], [0, 1], [1, 0]], [2, 2])
    """
    tensor = as_string_tensor("string_split", source)
    refuse("string_split", **{f"result_type={result_type!r}": result_type != "SparseTensor"})
    chosen = delimiter if sep is None else sep
    separators = chosen.encode() if isinstance(chosen, str) else bytes(chosen)

    def split(lines: Any) -> list[Any]:
        rows = [_parts(line, separators, skip_empty) for line in lines]
        indices = [(row, column) for row, parts in enumerate(rows) for column in range(len(parts))]
        values = numpy.array([part for parts in rows for part in parts] or [b""], object)[: len(indices)]
        width = max(map(len, rows), default=0)
        positions = numpy.array(indices, numpy.int64).reshape(-1, 2)
        return [positions, values, numpy.array([len(rows), width], numpy.int64)]

    results: Any = [(int64, (None, 2)), (string, (None,)), (int64, (2,))]
    return SparseTensor(*in_python("StringSplit", split, [tensor], results, name))


def _parts(line: bytes, separators: bytes, skip_empty: bool) -> list[bytes]:
    if not separators:
        return [line[k : k + 1] for k in range(len(line))]
    for separator in separators[1:]:
        line = line.replace(bytes([separator]), separators[:1])
    return [part for part in line.split(separators[:1]) if part or not skip_empty]


__getattr__, __dir__ = look_up(__name__)
