"""Python indexing: a key of integers, slices, ``...``, ``None``, masks and integer arrays, as operations.

Integers and slice starts become run-time scalars, sizes and steps are static: ``x[i : i + 64]`` in a loop
is one signature. As in PyTorch an integer selects before index arrays apply, so it does not move their position.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold import _core
from twofold.dtypes import bool_, int64, uint8
from twofold.errors import ArgumentError, DTypeError, IndexRangeError, MaskError, ShapeError
from twofold.ir.bind import constant
from twofold.ir.op import REGISTRY
from twofold.ir.sizes import index as index_of
from twofold.ir.sizes import is_symbolic, maximum
from twofold.ir.types import Shape
from twofold.ops.autograd_names import of_basic_index
from twofold.ops.base import (
    apply,
    broadcast,
    broadcast_shapes,
    composite,
    convert,
    iota,
    normalize_axis,
    ops,
    public,
    strong,
)
from twofold.ops.building_blocks import known_value
from twofold.ops.examples import example
from twofold.ops.indexing.gather import need_index
from twofold.ops.indexing.masks import nonzero_indices
from twofold.ops.shape import shapes

Observe = Callable[[Any], Any]


@composite
class basic_index:
    """The elements that integers, slices and new axes show: a block, partly reversed, in a new shape.

    Attributes ``(sizes, steps, axes, reversed axes, order)``, inputs ``(x, starts of axes...)``. For each axis of the
    result ``order`` holds that of the input, or ``~axis`` for a new axis in front of it.
    """

    autograd_name = of_basic_index
    functions = ()
    is_view = True

    def compute(x: Any, *rest: Any) -> Any:
        *starts, sizes, steps, axes, reversed_axes, order = rest
        x, shape = strong(x), _ordered(sizes, order)
        if axes:
            x = apply("slice", x, *starts, attrs=(sizes, steps, axes))
        if reversed_axes:
            x = apply("flip", x, attrs=(reversed_axes,))
        return x if x.shape == shape else ops.reshape(x, shape)

    def write(base: Any, value: Any, *rest: Any) -> Any:
        *starts, sizes, steps, axes, reversed_axes, _order = rest
        value = ops.reshape(value, sizes)
        if reversed_axes:
            value = apply("flip", value, attrs=(reversed_axes,))
        return apply("slice_update", base, value, *starts, attrs=(steps, axes)) if axes else value

    def layout(source: Any, *rest: Any) -> Any:
        *starts, sizes, steps, axes, reversed_axes, order = rest
        block: Any = REGISTRY["slice"].layout((sizes, steps, axes), source, starts)
        stride, offset = list(block.stride), block.offset
        for axis in reversed_axes:
            offset += max(sizes[axis] - 1, 0) * stride[axis]
            stride[axis] = -stride[axis]
        beside = [size * step for size, step in zip(source.size, source.stride)] + [1]
        shown = tuple(stride[axis] if axis >= 0 else beside[~axis] for axis in order)
        return source._replace(size=_ordered(sizes, order), stride=shown, offset=offset)

    def reference(x: Any, *rest: Any) -> Any:
        *starts, sizes, steps, axes, reversed_axes, order = rest
        begin = dict(zip(axes, starts, strict=True))
        positions = [
            int(begin.get(k, 0)) + numpy.arange(n) * s
            for k, (n, s) in enumerate(zip(sizes, steps, strict=True))
        ]
        found = numpy.flip(x[numpy.ix_(*positions)] if positions else x, reversed_axes)
        return found.reshape(_ordered(sizes, order))

    samples = lambda: [
        example(((3, 5), (1, 2), (0, 1), (), (0, 1)), (7, 17), 2, 4),
        example(((3, 5), (1, 2), (0, 1), (1,), (0, ~1, 1)), (7, 17), 4, 8),
        example(((1, 17), (1, 1), (0,), (), (1,)), (7, 17), 6),
        example(((7, 17), (1, 1), (), (), (0, ~1, 1)), (7, 17)),
    ]


def _ordered(sizes: Shape, order: Sequence[int]) -> Shape:
    """The shape of a result of ``basic_index``."""
    return tuple(sizes[axis] if axis >= 0 else 1 for axis in order)


@composite
class index:
    """The elements at index arrays, one for each of ``axes``, which broadcast together, or one into ``axes`` merged.

    Their common shape stands where the axes stood if these are adjacent, else in front.
    """

    functions = ()

    def compute(x: Any, *rest: Any) -> Any:
        *indices, axes = rest
        front, count, back, order = _merged(strong(x), axes)
        position, shape = _one_index(x, indices, axes)
        block = ops.reshape(ops.permute(x, order), (prod(front), count, prod(back)))
        flat = apply("gather_block", block, ops.reshape(position, (1, prod(shape), 1)))
        return ops.reshape(flat, (*front, *shape, *back))

    def reference(x: Any, *rest: Any) -> Any:
        *indices, axes = rest
        return x[_numpy_key(x.shape, indices, axes)]

    samples = lambda: [
        example(((0,),), (5, 3), numpy.array([4, -1, 0])),
        example(((0, 1),), (5, 3, 17), numpy.array([[4], [-1]]), numpy.array([0, 2, -3])),
        example(((1, 3),), (2, 5, 3, 4), numpy.array([4, 1]), numpy.array([0, 2])),
        example(((1,),), (2, 5, 3), numpy.array(3)),
        example(((1, 2),), (2, 5, 3, 4), numpy.array([14, 0, 7])),
    ]


def _numpy_key(shape: Shape, indices: Sequence[Any], axes: Sequence[int]) -> tuple[Any, ...]:
    key: list[Any] = [slice(None)] * len(shape)
    if len(indices) == 1:
        indices = numpy.unravel_index(indices[0] % prod(shape[k] for k in axes), [shape[k] for k in axes])
    for axis, value in zip(axes, indices, strict=True):
        key[axis] = value
    return tuple(key)


def _merged(x: Any, axes: Sequence[int]) -> tuple[Shape, int, Shape, tuple[int, ...]]:
    """Sizes before, in and after the indexed axes, and the permutation that makes these adjacent."""
    first = axes[0]
    adjacent = tuple(axes) == tuple(range(first, first + len(axes)))
    others = [axis for axis in range(x.ndim) if axis not in axes]
    front = [axis for axis in others if adjacent and axis < first]
    back = [axis for axis in others if axis not in front]
    sizes = x.shape
    return (
        tuple(sizes[axis] for axis in front),
        prod(sizes[axis] for axis in axes),
        tuple(sizes[axis] for axis in back),
        (*front, *axes, *back),
    )


def _one_index(x: Any, indices: Sequence[Any], axes: Sequence[int]) -> tuple[Any, Shape]:
    """One flat index from one per axis, and their common shape."""
    whole = [need_index(value) for value in indices]
    shape = broadcast_shapes(*[value.shape for value in whole])
    if len(whole) == 1:
        return whole[0], shape
    aligned = [broadcast(value, shape) for value in whole]
    return apply("linear_index", *aligned, attrs=(tuple(x.shape[axis] for axis in axes),)), shape


def _put(accumulate: bool, name: str, doc: str) -> Any:
    class body:
        functions = ()
        title = "index_put" if accumulate else "assignment to elements"

        def compute(x: Any, values: Any, *rest: Any) -> Any:
            *indices, axes = rest
            x = strong(x)
            front, count, back, order = _merged(x, axes)
            position, shape = _one_index(x, indices, axes)
            values = broadcast(
                fitted(convert(values, x.dtype), (*front, *shape, *back)), (*front, *shape, *back)
            )
            size = (prod(front), count, prod(back))
            position = ops.reshape(position, (1, prod(shape), 1))
            values = ops.reshape(values, (size[0], prod(shape), size[2]))
            moved = ops.permute(x, order)
            if accumulate:
                wide = convert(values, int64) if x.dtype is bool_ else values
                added = apply("scatter_sum", position, wide, attrs=(count,))
                back = ops.permute(ops.reshape(convert(added, x.dtype), moved.shape), shapes.inverse(order))
                return ops.logical_or(x, back) if x.dtype is bool_ else x + back
            written = apply("scatter_set", ops.reshape(moved, size), position, values)
            return ops.permute(ops.reshape(written, moved.shape), shapes.inverse(order))

        def reference(x: Any, values: Any, *rest: Any) -> Any:
            *indices, axes = rest
            result, key = x.copy(), _numpy_key(x.shape, indices, axes)
            if accumulate:
                numpy.add.at(result, key, values)
            else:
                result[key] = values
            return result

        samples = lambda: [
            example(((0,),), (5, 3), (3, 3), numpy.array([4, -1, 0])),
            example(((0, 1),), (5, 3, 17), (2, 3, 17), numpy.array([[4], [-1]]), numpy.array([0, 2, -3])),
            example(((1, 3),), (2, 5, 3, 4), (), numpy.array([4, 1]), numpy.array([0, 2])),
            example(((1, 2),), (2, 5, 3, 4), (3, 4), numpy.array([14, 0, 7])),
        ]

    body.__name__, body.__doc__ = name, doc
    return composite(body)


index_write = _put(
    False, "index_write", "The input with ``values`` written at index arrays; the last of equal ones stays."
)
index_accumulate = _put(True, "index_accumulate", "The input with ``values`` added at index arrays.")


def fitted(value: Any, shape: Shape) -> Any:
    """``value`` without leading axes of size 1 that ``shape`` has no position for."""
    extra = len(value.shape) - len(shape)
    if extra > 0 and all(size == 1 for size in value.shape[:extra]):
        return ops.reshape(value, tuple(value.shape)[extra:])
    if extra > 0:
        raise ShapeError(
            f"a value of shape {tuple(value.shape)} for elements of shape {shape}",
            "Give a value that broadcasts to them.",
        )
    return value


class Key(NamedTuple):
    """A normalised key: what ``basic_index`` takes, then index arrays for axes of its result.

    There is an array for each of these axes, or one into all of them merged.
    """

    attrs: tuple[Any, ...]
    starts: list[int]
    axes: list[int]
    arrays: list[Any]
    trivial: bool

    def shown(self, x: Any) -> Any:
        """What ``basic_index`` shows of ``x``."""
        return x if self.trivial else apply("basic_index", x, *self.starts, attrs=self.attrs)

    def lifted(self, lift: Callable[[Any], Any]) -> list[Any]:
        """The index arrays, those of NumPy as what ``lift`` makes of them."""
        return [lift(value) if isinstance(value, numpy.ndarray) else value for value in self.arrays]


def _is_array(item: Any) -> bool:
    return hasattr(item, "dtype") and hasattr(item, "shape")


def _is_mask(item: Any) -> bool:
    if isinstance(item, (numpy.ndarray, numpy.generic)):
        return bool(item.dtype == bool)
    return item.dtype is bool_ or is_byte_mask(item)


def is_byte_mask(item: Any) -> bool:
    """Whether a tensor is a mask as of PyTorch before it had bools; arrays of the array API standard hold integers."""
    return item.dtype is uint8 and isinstance(item, _core.Tensor) and not _core.follows_standard(item)


def _items(key: Any, ndim: int) -> list[Any]:
    """The items of a key with lists as arrays and ``...`` replaced by whole slices, one for every axis."""
    given = list(key) if isinstance(key, tuple) else [key]
    items: list[Any] = []
    for item in given:
        if isinstance(item, (list, tuple, range)):
            item = numpy.asarray(item) if len(item) else numpy.zeros((0,), numpy.int64)
        if isinstance(item, numpy.ndarray) and item.dtype.kind not in "biu":
            raise DTypeError(f"an index of {item.dtype}", "Use integers, or bools as a mask.")
        items.append(int(item) if isinstance(item, numpy.integer) else item)
    used = sum(_consumes(item) for item in items)
    dots = [position for position, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexRangeError("more than one '...' in an index", "Keep one.")
    if used > ndim:
        raise IndexRangeError(f"{used} indices for a tensor with {ndim} axes", f"Use at most {ndim}.")
    whole = [slice(None)] * (ndim - used)
    return items[: dots[0]] + whole + items[dots[0] + 1 :] if dots else items + whole


def _consumes(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, (bool, numpy.bool_)):
        return 0
    return len(item.shape) if _is_array(item) and _is_mask(item) else 1


def normalize_key(shape: Shape, key: Any, observe: Observe | None = None) -> Key:
    """The key for a tensor of ``shape``; ``observe`` gives the NumPy value of a mask that is a tensor.

    Raises IndexRangeError for an index outside its axis and for too many indices, ShapeError for a mask that
    does not fit, DTypeError for an index of another kind.
    """
    sizes, steps, axes, starts, backwards = list(shape), [1] * len(shape), [], [], []
    order: list[int] = []
    indexed: list[int] = []
    arrays: list[Any] = []
    axis = 0
    items = _items(key, len(shape))
    alone = sum(_is_array(item) or isinstance(item, bool) for item in items) == 1
    for item in items:
        if item is None:
            order.append(~axis)
        elif (flag := _flag(item, observe)) is not None:
            arrays.append(numpy.zeros((int(flag),), numpy.int64))
            indexed.append(len(order))
            order.append(~axis)
        elif isinstance(item, slice):
            begin, stop, step = _bounds(item, shape[axis])
            count = _length(begin, stop, step)
            if step < 0:
                backwards.append(axis)
                begin, step = begin + (count - 1) * step, -step
            if count != shape[axis] or step != 1:
                axes.append(axis)
                starts.append(maximum(begin, 0))
                sizes[axis], steps[axis] = count, step
            order.append(axis)
            axis += 1
        elif _is_array(item):
            arrays += _array_indices(item, shape, axis, observe, alone)
            for _ in range(_consumes(item)):
                indexed.append(len(order))
                order.append(axis)
                axis += 1
        else:
            starts.append(shapes.one_index(_integer(item), shape[axis], axis))
            axes.append(axis)
            sizes[axis] = 1
            axis += 1
    trivial = not axes and not backwards and order == list(range(len(shape)))
    attrs = (tuple(sizes), tuple(steps), tuple(axes), tuple(backwards), tuple(order))
    return Key(attrs, starts, indexed, arrays, trivial)


def _flag(item: Any, observe: Observe | None) -> bool | None:
    """The one truth value that a key holds in place of an index, or None."""
    if isinstance(item, (bool, numpy.bool_)):
        return bool(item)
    if _is_array(item) and not len(item.shape) and _is_mask(item):
        return bool(_mask_array(item, observe))
    return None


def _mask_array(item: Any, observe: Observe | None) -> Any:
    """The NumPy value of a mask."""
    if isinstance(item, numpy.ndarray):
        return item
    if item.dtype is uint8:
        warnings.warn(
            "indexing with masks of uint8 is deprecated: use bools, such as mask != 0", stacklevel=2
        )
    if observe is None:
        what = "a mask as an index makes a result whose size depends on values"
        raise ArgumentError(what, "Use where or masked_fill, or index while values are known.")
    return numpy.asarray(observe(item))


def _bounds(item: slice, size: int) -> tuple[int, int, int]:
    if item.step is not None and operator.index(item.step) == 0:
        raise ArgumentError("a slice with step 0", "Use another step.")
    if not is_symbolic((item.start, item.stop, size)):
        return item.indices(size)
    step = 1 if item.step is None else operator.index(item.step)
    low, high = (0, size) if step > 0 else (-1, size - 1)
    begin, stop = (low, high) if step > 0 else (high, low)
    return _inside(item.start, size, low, high, begin), _inside(item.stop, size, low, high, stop), step


def _inside(position: Any, size: Any, low: Any, high: Any, default: Any) -> Any:
    """A bound of a slice, counted from the front, and moved between ``low`` and ``high``."""
    if position is None:
        return default
    if position < 0:
        position = position + size
        return position if position >= low else low
    return position if position <= high else high


def _length(begin: Any, stop: Any, step: int) -> Any:
    """``len(range(begin, stop, step))``, also of symbols."""
    span = (stop - begin + step - 1) // step if step > 0 else (begin - stop - step - 1) // -step
    return maximum(span, 0)


def _integer(item: Any) -> int:
    try:
        return index_of(item)
    except TypeError:
        what = f"an index of type {type(item).__name__}"
        raise DTypeError(
            what, "Use an integer, a slice, '...', None, a mask or integers in a tensor."
        ) from None


def _array_indices(
    item: Any, shape: Shape, axis: int, observe: Observe | None, alone: bool
) -> tuple[Any, ...]:
    """The index arrays that an array in a key stands for; of a mask ``alone`` one into all its axes."""
    if not _is_mask(item):
        return (item,)
    if tuple(item.shape) != tuple(shape[axis : axis + len(item.shape)]):
        selected = tuple(shape[axis : axis + len(item.shape)])
        what = f"a mask of shape {tuple(item.shape)} for axes of shape {selected}"
        raise MaskError(what, "Make the mask's shape equal to that of the axes it selects from.")
    mask = _mask_array(item, observe)
    return (numpy.flatnonzero(mask),) if alone else nonzero_indices(mask)


def _numbers_of_rows(x: Any, key: Any, observe: Observe | None) -> Any:
    """The numbers of the rows that an array of integers, or a mask of one axis, selects; None for other keys."""
    is_tensor = isinstance(key, _core.Tensor)
    if not (is_tensor or isinstance(key, numpy.ndarray)) or not x.shape:
        return None
    if key.dtype.kind in "iu":
        return None if is_byte_mask(key) else key
    is_mask = is_tensor and key.dtype is bool_ and len(key.shape) == 1 and key.shape[0] == x.shape[0]
    return numpy.flatnonzero(observe(key)) if is_mask and observe is not None else None


def getitem(
    x: Any, key: Any, observe: Observe | None = None, lift: Callable[[Any], Any] = lambda array: array
) -> Any:
    """``x[key]``, which is ``x`` itself if the key shows all of it.

    ``lift`` turns a NumPy index array into what ``bind`` takes.
    """
    numbers = _numbers_of_rows(x, key, observe)
    if numbers is not None:
        return apply(
            "index", x, lift(numbers) if isinstance(numbers, numpy.ndarray) else numbers, attrs=((0,),)
        )
    normal = normalize_key(tuple(x.shape), key, observe)
    shown = normal.shown(x)
    if not normal.arrays:
        return shown
    return apply("index", shown, *normal.lifted(lift), attrs=(tuple(normal.axes),))


def setitem(
    x: Any,
    key: Any,
    value: Any,
    observe: Observe | None = None,
    lift: Callable[[Any], Any] = lambda array: array,
    accumulate: bool = False,
) -> Any:
    """What ``x`` is after ``x[key] = value`` (``+=`` with ``accumulate``, in which equal indices add up)."""
    mask = _only_mask(key)
    scalar = not hasattr(value, "shape") or tuple(value.shape) == ()
    if mask is not None and scalar and not accumulate:
        _array_mask_fits(mask, tuple(x.shape))
        wide = (*mask.shape, *(1,) * (len(x.shape) - len(mask.shape)))
        mask = lift(mask) if isinstance(mask, numpy.ndarray) else mask
        return apply("masked_write", x, ops.reshape(ops.not_equal(mask, 0), wide), value)
    normal = normalize_key(tuple(x.shape), key, observe)
    if normal.arrays:
        name = "index_accumulate" if accumulate else "index_write"
        arrays = normal.lifted(lift)
        value = apply(name, normal.shown(x), value, *arrays, attrs=(tuple(normal.axes),))
        if normal.trivial:
            return value
    elif accumulate:
        value = ops.add(getitem(x, key), value)
    return apply("write_view", x, value, *normal.starts, attrs=("basic_index", normal.attrs))


def _only_mask(key: Any) -> Any:
    """The mask that the key consists of, or None."""
    item = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    return item if _is_array(item) and not isinstance(item, numpy.generic) and _is_mask(item) else None


def _array_mask_fits(mask: Any, shape: Shape) -> None:
    if tuple(mask.shape) != shape[: len(mask.shape)]:
        raise MaskError(
            f"a mask of shape {tuple(mask.shape)} for a tensor of shape {shape}",
            "Make the mask's shape equal to the first axes.",
        )


@public(methods=("index_put",), inplace="value")
def index_put(input: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """The input with ``values`` at ``indices``, one array for each of the first axes.

    Where indices are equal, values add up (``accumulate``) or the last stays. Raises DTypeError for values of another
    dtype than the input's, unless they are one number for a mask.

    >>> import twofold as torch
    >>> rows, columns = torch.tensor([0, 1]), torch.tensor([1, 0])
    >>> torch.index_put(torch.zeros(2, 2), (rows, columns), torch.tensor([5.0, 6.0]))
    tensor([[0., 5.],
            [6., 0.]])
    """
    key = tuple(slice(None) if item is None else item for item in indices)
    fills = not accumulate and _only_mask(key) is not None and prod(values.shape) == 1
    if values.dtype is not input.dtype and not fills:
        raise DTypeError(
            f"values of {values.dtype.name} for {input.dtype.name}", "Cast them with .to() first."
        )
    return setitem(input, key, values, _known_mask, accumulate=accumulate)


def _known_mask(mask: Any) -> Any:
    return known_value(mask, "a mask as an index")


@composite
class is_class:
    """For each number a row that is true at its position; none is for a number outside ``0 … count - 1``."""

    functions = ()
    signature = "input"
    differentiable = False
    compute = lambda x, count: ops.equal(ops.unsqueeze(x, -1), iota((count,)))
    reference = lambda x, count: x[..., None] == numpy.arange(count)
    samples = lambda: [example((17,), numpy.array([[3, 0], [17, -1]]))]


@composite
class one_hot:
    """For each class number a row of zeros with a one at that position, int64.

    Raises IndexError for numbers outside ``0 … num_classes - 1``.

    >>> import twofold as torch
    >>> torch.nn.functional.one_hot(torch.tensor([2, 0]), 3)
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """

    def call(input: Any, num_classes: int) -> Any:
        if num_classes < 1:
            raise ArgumentError(f"num_classes {num_classes}", "Give the number of classes.")
        return apply("one_hot", input, attrs=(num_classes,))

    def compute(x: Any, count: int) -> Any:
        # 0 is a class, so no number is ignored
        number = apply("class_number", need_index(x), constant(0, int64), attrs=(count,))
        return convert(apply("is_class", number, attrs=(count,)), int64)

    reference = lambda x, count: (x[..., None] == numpy.arange(count)).astype(numpy.int64)
    samples = lambda: [example((17,), numpy.array([[3, 0], [16, 1]])), example((2,), numpy.array(1))]


@composite
class select_scatter:
    """The input with the slice at ``index`` of ``dim`` replaced by ``src``.

    >>> import twofold as torch
    >>> torch.select_scatter(torch.zeros(2, 2), torch.tensor([1.0, 2.0]), 1, 0)
    tensor([[1., 0.],
            [2., 0.]])
    """

    methods = ("select_scatter",)

    def call(input: Any, src: Any, dim: int, index: int) -> Any:
        axis = normalize_axis(dim, len(input.shape))
        position = shapes.one_index(operator.index(index), input.shape[axis], axis)
        return apply("select_scatter", input, src, position, attrs=(axis,))

    def compute(x: Any, src: Any, start: Any, axis: int) -> Any:
        value = ops.unsqueeze(broadcast(src, (*x.shape[:axis], *x.shape[axis + 1 :])), axis)
        return apply("slice_update", x, value, start, attrs=((1,) * x.ndim, (axis,)))

    def reference(x: Any, src: Any, start: Any, axis: int) -> Any:
        result = x.copy()
        result[(*(slice(None),) * axis, int(start))] = src
        return result

    samples = lambda: [example((1,), (3, 17), (3,), 4), example((0,), (3, 17), (17,), 0)]
