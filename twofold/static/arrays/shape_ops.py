"""Shapes, slices and joins under TensorFlow's names."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy

from twofold.dtypes import float32, int32, int64
from twofold.errors import ArgumentError, AxisError, ShapeError
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.ir.sizes import index, is_symbolic
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, normalize_axis, ops
from twofold.ops.source import shape_of
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import (
    PACK,
    Alone,
    Dtype,
    Number,
    Tensors,
    array_of,
    as_dtype,
    as_tensor,
    axis_of,
    checked_below,
    convert_to_tensor,
    counted,
    full_of,
    holds_tensor,
    is_tensor_like,
    numbers,
    operation,
    sizes,
    whole,
)
from twofold.static.arrays.indexing import flat_indices
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph, owner_of
from twofold.static.graph.graph_elements import Slot, check_same_dtype
from twofold.static.graph.inference import Unforeseen, whole_numbers
from twofold.static.graph.tensor_shape import TensorShape, sizes_of_shape


@example(
    'x = tf.placeholder(tf.float32, [None, 3], name="x")',
    "print(x.name, x.shape, tf.reduce_sum(x, 0).shape)",
    "x:0 (?, 3) (3,)",
)
def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Any:
    """A tensor that is fed in every run; sizes that are None may differ from run to run.

    Without ``shape`` even the rank is unknown until something is fed.
    """
    if at_once():
        raise RuntimeError(f"tf.placeholder() is not compatible with eager execution, at {here()}.")
    type_ = _typed(as_dtype(dtype), shape)
    return get_default_graph().add("Placeholder", name or "Placeholder", [type_], ()).outputs[0]


def _typed(dtype: Any, shape: Any) -> Any:
    return tensor_type(dtype, sizes_of_shape(shape))


@example(
    "x = tf.placeholder_with_default(1.0, [])", "print(session.run(x), session.run(x, {x: 5.0}))", "1.0 5.0"
)
def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Any:
    """A tensor that may be fed, and is ``input`` where it is not."""
    value = convert_to_tensor(input)
    found = owner_of(value)
    assert found is not None
    types, parts = [_typed(value.dtype, shape)], {"body": ops.copied, "arguments": (Slot(0),)}
    return get_default_graph().add("PlaceholderWithDefault", name, types, [found], **parts).outputs[0]


@operation("Identity")
@example("tf.identity([1, 2])", "[1 2]")
def identity(input: Any) -> Any:
    """The same value."""
    return ops.copied(input)


@operation("EnsureShape")
def _ensured(x: Any, shape: Number) -> Any:
    wanted = numbers(shape)
    if x.ndim != len(wanted) or any(size not in (None, have) for have, size in zip(x.shape, wanted)):
        shown = [None if size is None else int(size) for size in wanted]
        raise ShapeError(f"a tensor of shape {tuple(x.shape)} where {shown} is needed", "Give that shape.")
    return ops.copied(x)


@example("print(tf.ensure_shape(tf.placeholder(tf.float32, None), [None, 3]).shape)", "(?, 3)")
def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Any:
    """``x``, of which ``shape`` is known from here on; a run raises where its value has another one."""
    wanted = TensorShape(shape)
    value = convert_to_tensor(x)
    if wanted.dims is None or at_once():
        return identity(value, name=name or "EnsureShape")
    known = value.get_shape().merge_with(wanted)
    made = _ensured(value, [size.value for size in wanted.dims], name=name or "EnsureShape")
    made.set_shape(known)
    return made


@operation("Repeat", default="repeat")
@example("tf.repeat([1, 2], [2, 1])", "[1 1 2]")
def repeat(input: Any, repeats: Number, axis: Number = None) -> Any:
    """Each element along ``axis``, or of all flattened, as often as ``repeats`` says: one number, or one for each."""
    value = ops.reshape(input, (-1,)) if axis is None else input
    along, counts = 0 if axis is None else whole(axis), numbers(repeats)
    if isinstance(counts, list) and len(counts) == 1:
        counts = counts[0]
    if not isinstance(counts, list):
        return ops.repeat_interleave(value, whole(counts), along)
    if len(counts) != value.shape[along]:
        what = f"{len(counts)} repeats for {value.shape[along]} elements of axis {along}"
        raise ShapeError(what, "Give one number, or one for each element.")
    parts = [
        ops.repeat_interleave(ops.narrow(value, along, k, 1), n, along) for k, n in enumerate(counts) if n
    ]
    return ops.cat(parts, along) if parts else ops.narrow(value, along, 0, 0)


@operation("Reshape")
@example("tf.reshape([1, 2, 3, 4], [2, -1])", "[[1 2]\n [3 4]]")
def reshape(tensor: Any, shape: Number) -> Any:
    """``tensor`` in another shape; one size may be -1."""
    return ops.reshape(tensor, sizes(shape))


@operation("Shape", name_at=1)
@example("tf.shape(tf.zeros([2, 3]))", "[2 3]")
def shape(input: Any, out_type: Dtype = int32) -> Any:
    """The sizes of a tensor, known once the graph is fed."""
    return whole_numbers(input.shape, out_type)


@operation("Size", name_at=1)
@example("tf.size(tf.zeros([2, 3]))", "6")
def size(input: Any, out_type: Dtype = int32) -> Any:
    """Number of elements."""
    return whole_numbers(math.prod(input.shape), out_type)


@operation("Rank")
@example("tf.rank(tf.zeros([2, 3]))", "2")
def rank(input: Any) -> Any:
    """Number of axes."""
    return numpy.array(input.ndim, dtype=numpy.int32)


@operation("Transpose", default="transpose", name_at=2)
@example("tf.transpose([[1, 2], [3, 4]])", "[[1 3]\n [2 4]]")
def transpose(a: Any, perm: Number = None, conjugate: Number = False) -> Any:
    """``a`` with its axes in the order ``perm`` (None: reversed), complex numbers conjugated if asked for."""
    axes = tuple(range(a.ndim))[::-1] if perm is None else sizes(perm)
    return ops.permute(ops.conj(a) if conjugate and a.dtype.kind == "c" else a, axes)


@operation("MatrixTranspose", name_at=1)
@example("tf.matrix_transpose([[1, 2], [3, 4]])", "[[1 3]\n [2 4]]")
def matrix_transpose(a: Any, conjugate: Number = False) -> Any:
    """The last two axes swapped, complex numbers conjugated if asked for."""
    return ops.transpose(ops.conj(a) if conjugate and a.dtype.kind == "c" else a, -2, -1)


@operation("ExpandDims", older={"dim": "axis"})
@example("tf.expand_dims([1, 2], 0)", "[[1 2]]")
def expand_dims(input: Any, axis: Number = None) -> Any:
    """A new axis of size 1."""
    return ops.unsqueeze(input, axis_of(axis))


@operation("Squeeze", older={"squeeze_dims": "axis"})
@example("tf.squeeze([[[1], [2]]])", "[1 2]")
def squeeze(input: Any, axis: Number = None) -> Any:
    """Axes of size 1 taken away: those named, or all."""
    found = axis_of(axis)
    axes = (found,) if isinstance(found, int) else tuple(found or ())
    axes = tuple(_axis(input, axis) for axis in axes)
    if any(input.shape[axis] != 1 for axis in axes):
        raise ShapeError(f"an axis of {axes} is not of size 1", "Squeeze axes of size 1.")
    return (
        ops.squeeze(input, found if found not in ((), None) else None)
        if axes or axis is None or found == ()
        else input
    )


@operation("ConcatV2")
def _concat(values: Tensors, axis: Number = 0) -> Any:
    return ops.concat(check_same_dtype(*values), whole(axis))


@example("tf.concat([[1, 2], [3]], 0)", "[1 2 3]")
def concat(values: Any, axis: Any, name: str = "concat") -> Any:
    """Tensors joined along ``axis``; the older order of arguments, the axis first, is understood too."""
    if isinstance(values, int):
        values, axis = axis, values
    return _concat(values if isinstance(values, (list, tuple)) else [values], axis, name=name)


@operation("Pack")
def _stack(values: Tensors, axis: Number = 0) -> Any:
    return ops.stack(check_same_dtype(*values), whole(axis))


@example("tf.stack([[1, 2], [3, 4]], axis=1)", "[[1 3]\n [2 4]]")
def stack(values: Any, axis: Any = 0, name: str = "stack") -> Any:
    """Tensors of one shape along a new axis."""
    given = list(values)
    if not (axis or holds_tensor(given)):
        with suppress(TypeError, ValueError):  # otherwise the sizes differ
            return convert_to_tensor(given, name=name)
    return _stack(given, axis, name=name)


@example("tf.parallel_stack([tf.constant([1, 2]), tf.constant([3, 4])])", "[[1 2]\n [3 4]]")
def parallel_stack(values: Any, name: str = "parallel_stack") -> Any:
    """Tensors of one shape, which is known, along a new first axis; raises ValueError where it is not known."""
    given = [convert_to_tensor(value) for value in values]
    if not given[0].shape.is_fully_defined():
        raise ValueError(
            f"parallel_stack: a shape of {given[0].shape}, at {here()}. Use stack for unknown sizes."
        )
    return _stack(given, 0, name=name)


pack = stack
PACK.append(lambda values: stack(values))


def _axis(value: Any, axis: Any) -> int:
    """An axis of ``value`` counted from the front; raises AxisError outside, and for a value without axes."""
    found = whole(axis)
    if not -value.ndim <= found < value.ndim:
        fix = (
            f"Use one from {-value.ndim} to {value.ndim - 1}."
            if value.ndim
            else "Give a tensor that has axes."
        )
        raise AxisError(f"axis {found} is outside a tensor with {value.ndim} axes", fix)
    return found % value.ndim


@operation("Unpack", several=list)
def _unstack(value: Any, num: Number = None, axis: Number = 0) -> Any:
    position = _axis(value, axis)
    count = index(value.shape[position])
    if num is not None and count != num:
        raise ArgumentError(f"axis {position} has size {count}, not {num}", "Give the right num.")
    return [ops.select(value, position, k) for k in range(count)]


@example("tf.unstack([[1, 2], [3, 4]])", "[array([1, 2], dtype=int32), array([3, 4], dtype=int32)]")
def unstack(value: Any, num: Any = None, axis: int = 0, name: str = "unstack") -> list[Any]:
    """The slices of ``value`` along ``axis``; its size must be known, or given as ``num``."""
    tensor = convert_to_tensor(value)
    shape = tensor.type_.shape
    inside = shape != UNKNOWN_RANK and -len(shape) <= axis < len(shape)
    known = shape[axis] if inside else -1 if shape == UNKNOWN_RANK else 0
    if num is None and known < 0:
        raise ValueError(f"unstack: the size of axis {axis} is unknown, at {here()}. Give num.")
    if num is not None and known < 0:
        return [_select(tensor, axis, k) for k in range(num)]
    return _unstack(tensor, num, axis, name=name)


@operation("Select")
def _select(value: Any, axis: Number, index: Number) -> Any:
    return ops.select(value, axis, index)


unpack = unstack


@operation("Split", several=list)
def _split(value: Any, parts: Number, axis: Number = 0) -> Any:
    position, wanted = _axis(value, axis), numbers(parts)
    length = index(value.shape[position])
    if isinstance(wanted, int):
        if length % wanted:
            what = f"axis {position} of size {length} does not divide into {wanted} parts"
            raise ShapeError(what, "Give a list of sizes.")
        wanted = [length // wanted] * wanted
    if -1 in wanted:
        wanted = [length - sum(wanted) - 1 if size == -1 else size for size in wanted]
    return list(ops.split(value, wanted, position))


@operation("Reshape")
def _counted_parts(parts: Any, num: Number) -> Any:
    return ops.reshape(parts, (whole(num),))


def _check_parts(parts: Any, num: Any) -> Any:
    """The parts of ``split``; raises ValueError unless there are ``num``, or that is None and they are counted."""
    shape = as_tensor(parts).type_.shape if is_tensor_like(parts) else numpy.shape(parts) or (parts,)
    count = shape[0] if len(shape) == 1 else None
    if count is not None and count < 0:
        if num is None:
            raise ValueError(f"split: the number of parts is unknown, at {here()}. Give num.")
        return _counted_parts(parts, num)
    if num is not None and count not in (None, int(num)):
        raise ValueError(
            f"split: {count} parts, and num is {num}, at {here()}. Leave num out, or make it {count}."
        )
    return parts


@example("tf.split([1, 2, 3, 4], 2)", "[array([1, 2], dtype=int32), array([3, 4], dtype=int32)]")
def split(
    value: Any,
    num_or_size_splits: Any,
    axis: Any = 0,
    num: Any = None,
    name: str = "split",
    split_dim: Any = None,
) -> list[Any]:
    """``value`` in equal parts, or parts of the sizes given; raises ValueError if there are not ``num`` of them."""
    if isinstance(value, int) and is_tensor_like(axis):
        value, num_or_size_splits, axis = axis, num_or_size_splits, value
    parts = _check_parts(num_or_size_splits, num)
    return _split(value, parts, axis if split_dim is None else split_dim, name=name)


@operation("Tile")
@example("tf.tile([1, 2], [2])", "[1 2 1 2]")
def tile(input: Any, multiples: Number) -> Any:
    """``input`` repeated along each axis."""
    counts = sizes(multiples)
    if len(counts) != input.ndim:
        what = f"{len(counts)} multiples for {input.ndim} axes"
        raise ShapeError(what, "Give one for each axis.")
    return ops.tile(input, counts)


@operation("Slice")
@example("tf.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, -1])", "[[2 3]\n [5 6]]")
def slice(input_: Any, begin: Number, size: Number) -> Any:
    """``size`` elements of each axis from ``begin`` on; -1: all that follow."""
    starts, lengths = sizes(begin), sizes(size)
    for axis, (start, length) in enumerate(zip(starts, lengths)):
        count = index(input_.shape[axis]) - start if length == -1 else length
        if start < 0 or count < 0 or start + count > input_.shape[axis]:
            raise ShapeError(
                f"elements {start} to {start + count} of axis {axis}, which has {input_.shape[axis]}",
                "Slice inside the tensor.",
            )
        if (start, count) != (0, index(input_.shape[axis])):
            input_ = ops.narrow(input_, axis, start, count)
    return input_


@operation("GatherV2", name_at=3)
@example("tf.gather([10, 20, 30], [2, 0])", "[30 10]")
def gather(
    params: Alone,
    indices: Alone,
    validate_indices: Number = None,
    axis: Number = None,
    batch_dims: Number = 0,
) -> Any:
    """Slices of ``params`` along ``axis`` by number; numbers are checked with and without ``validate_indices``.

    The first ``batch_dims`` axes of both are the same, and each has numbers of its own; ``axis`` is the one behind
    them unless given.
    """
    batch = 0 if isinstance(indices, int) else normalize_axis(whole(batch_dims), indices.ndim + 1)
    along = batch if axis is None else normalize_axis(whole(axis), params.ndim)
    if batch:
        return _gathered_in_batches(params, indices, batch, along)
    if isinstance(indices, int):
        return ops.select(params, along, indices)
    flat = ops.index_select(params, along, ops.reshape(indices, (-1,)))
    return ops.reshape(flat, (*params.shape[:along], *indices.shape, *params.shape[along + 1 :]))


def _gathered_in_batches(params: Any, indices: Any, batch: int, axis: int) -> Any:
    """Slices along ``axis``, by numbers of their own for each of the first ``batch`` axes."""
    shape, own = tuple(params.shape), tuple(indices.shape[batch:])
    rows = ops.permute(params, (*range(batch), axis, *[k for k in range(batch, params.ndim) if k != axis]))
    rest = tuple(rows.shape[batch + 1 :])
    count, size = math.prod(shape[:batch]), shape[axis]
    first = ops.reshape(ops.multiply(counted(count, indices), size), (count, *[1] * len(own)))
    flat = ops.reshape(ops.cast(checked_below(indices, size, "index"), int64), (count, *own))
    found = ops.index_select(
        ops.reshape(rows, (count * size, *rest)), 0, ops.reshape(ops.add(flat, first), (-1,))
    )
    found = ops.reshape(found, (*shape[:batch], *own, *rest))
    moved, inner = len(own), axis - batch
    order = [
        *range(batch),
        *range(batch + moved, batch + moved + inner),
        *range(batch, batch + moved),
        *range(batch + moved + inner, found.ndim),
    ]
    return ops.permute(found, tuple(order))


@operation("GatherNd", name_at=2)
@example("tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])", "[2 3]")
def gather_nd(params: Any, indices: Alone, batch_dims: Number = 0) -> Any:
    """Elements or slices of ``params`` at the positions in the last axis of ``indices``.

    The first ``batch_dims`` axes of both are the same, and positions count behind them.
    """
    batch = whole(batch_dims)
    if batch:
        before = [
            ops.broadcast_to(
                ops.reshape(counted(size, indices), [-1 if k == axis else 1 for k in range(indices.ndim)]),
                (*indices.shape[:-1], 1),
            )
            for axis, size in enumerate(params.shape[:batch])
        ]
        indices = ops.concat([*before, ops.cast(indices, int64)], -1)
    depth, shape = index(indices.shape[-1]), tuple(params.shape)
    rows = ops.reshape(params, (math.prod(shape[:depth]), *shape[depth:]))
    found = ops.index_select(rows, 0, flat_indices(indices, shape))
    return ops.reshape(found, (*indices.shape[:-1], *params.shape[depth:]))


@operation("Select")
def _where(condition: Alone, x: Any, y: Any) -> Any:
    if condition.ndim == 1 and hasattr(x, "ndim") and x.ndim > 1:
        condition = ops.reshape(condition, (*condition.shape, *[1] * (x.ndim - 1)))
    return ops.where(condition, *check_same_dtype(x, y))


@operation("OneHot")
def _one_hot(
    indices: Any,
    depth: Number,
    on_value: Any = 1.0,
    off_value: Any = 0.0,
    axis: Number = -1,
    dtype: Any = float32,
) -> Any:
    hot = apply("is_class", ops.cast(indices, int64), attrs=shape_of((whole(depth),)))
    made = ops.cast(ops.where(hot, on_value, off_value), dtype)
    return made if axis in (-1, made.ndim - 1) else ops.movedim(made, -1, axis)


@example("tf.one_hot([2, 0], 3)", "[[0. 0. 1.]\n [1. 0. 0.]]")
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> Any:
    """Rows with ``on_value`` at the index and ``off_value`` elsewhere; an index outside makes a row without it."""
    given = next((value for value in (on_value, off_value) if value is not None), 1.0)
    found = dtype or getattr(as_tensor(given), "dtype", None) or array_of(given).dtype
    on, off = (1 if on_value is None else on_value), (0 if off_value is None else off_value)
    return _one_hot(
        convert_to_tensor(indices),
        depth,
        on,
        off,
        -1 if axis is None else axis,
        as_dtype(found),
        name=name or "one_hot",
    )


@operation("ReverseV2")
@example("tf.reverse([1, 2, 3], [0])", "[3 2 1]")
def reverse(tensor: Any, axis: Number) -> Any:
    """The order of elements reversed along ``axis``."""
    found = axis_of(axis)
    return ops.flip(tensor, *(found if isinstance(found, tuple) else (found,)))


reverse_v2 = reverse


@operation("SequenceMask")
def _sequence_mask(lengths: Any, maxlen: Number, dtype: Any) -> Any:
    positions = counted(whole(maxlen), lengths)
    return ops.cast(ops.less(positions, ops.unsqueeze(ops.cast(lengths, int64), -1)), dtype)


@example("tf.sequence_mask([1, 3], 3)", "[[ True False False]\n [ True  True  True]]")
def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = "bool", name: str | None = None) -> Any:
    """Rows of ``maxlen`` elements (as many as the largest length unless given) that are true up to a length."""
    given = convert_to_tensor(lengths)
    longest = _longest(given) if maxlen is None else maxlen
    return _sequence_mask(given, longest, as_dtype(dtype), name=name)


@operation("Max")
def _longest(lengths: Any) -> Any:
    return ops.amax(ops.concat([ops.reshape(lengths, (-1,)), full_of(0, (1,), lengths.dtype, lengths)], 0))


@example(
    "tf.shape_n([tf.zeros([2, 3]), tf.zeros([4])])", "[array([2, 3], dtype=int32), array([4], dtype=int32)]"
)
def shape_n(input: Any, out_type: Any = int32, name: str | None = None) -> list[Any]:
    """The shapes of several tensors."""
    return [shape(value, name, out_type) for value in input]


@example("tf.identity_n([tf.constant(1), tf.constant(2)])", "[np.int32(1), np.int32(2)]")
def identity_n(input: Any, name: str | None = None) -> list[Any]:
    """The tensors themselves, under new names."""
    return [identity(value, name=name or "IdentityN") for value in input]


@example("print(tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([3])))", "(2, 3)")
def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape of an element-wise result; raises ValueError for shapes that do not broadcast."""
    shapes = TensorShape(shape_x), TensorShape(shape_y)
    if any(one.ndims is None for one in shapes):
        return TensorShape(None)
    one, two = (one.as_list()[::-1] for one in shapes)
    found: list[int | None] = []
    for k in range(max(len(one), len(two))):
        sizes = [side[k] if k < len(side) else 1 for side in (one, two)]
        known = [size for size in sizes if size not in (None, 1)]
        if len(set(known)) > 1:
            raise ValueError(f"broadcast_static_shape: {shape_x} and {shape_y} do not broadcast.")
        found.append(known[0] if known else None if None in sizes else 1)
    return TensorShape(found[::-1])


@operation("BroadcastArgs")
@example("tf.broadcast_dynamic_shape(tf.constant([2, 1]), tf.constant([3]))", "[2 3]")
def broadcast_dynamic_shape(shape_x: Number, shape_y: Number) -> Any:
    """``broadcast_static_shape`` of shapes that are known when the graph runs."""
    first, second = sizes(shape_x), sizes(shape_y)
    if is_symbolic((*first, *second)):
        raise Unforeseen
    try:
        return numpy.array(numpy.broadcast_shapes(first, second), numpy.int32)
    except ValueError:
        what = f"shapes {first} and {second} do not broadcast"
        raise ShapeError(what, "Make the sizes equal, or 1 where they repeat.") from None
