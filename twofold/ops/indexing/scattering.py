"""Writing to and combining at indices: scatter, scatter_add, scatter_reduce, and the same by whole slices.

Where several elements reach one position they are combined in the order of the index, so results are reproducible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import DType, bool_, int64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.bind import constant
from twofold.ops.axes import given_once
from twofold.ops.base import (
    apply,
    broadcast,
    broadcast_shapes,
    composite,
    convert,
    filled,
    normalize_axis,
    ops,
    public,
    strong,
)
from twofold.ops.elementwise.checks import fitting
from twofold.ops.examples import example
from twofold.ops.indexing.gather import NONNEGATIVE, need_index, same_outside, three_axes
from twofold.ops.promotion import autocast, factor_beside, need_fitting
from twofold.ops.shape.movement import slice_axis

_KINDS = {"prod": "prod", "amax": "max", "amin": "min"}


class Target:
    """What values go to: the part of ``x`` that an index reaches, as blocks, and the way back to all of ``x``."""

    def __init__(self, x: Any, index: Any, source: Any, axis: int, lowest: Sequence[str]) -> None:
        """Blocks of ``x``, ``index`` and ``source``; an index vector with a longer ``source`` selects slices.

        ``lowest`` is ``(NONNEGATIVE,)`` or nothing.
        """
        self.lowest = lowest
        self.whole, self.part, self.starts = x, x, []
        for position, size in enumerate(source.shape):
            if position != axis and size != x.shape[position]:
                self.part = slice_axis(self.part, position, constant(0, int64), size)
                self.starts.append(position)
        self.data = ops.reshape(self.part, three_axes(self.part, axis))
        shape = three_axes(index, axis) if index.shape == source.shape else (1, -1, 1)
        self.index = ops.reshape(index, shape) if index.type.size else filled(0, int64, (1, 0, 1))
        self.source = ops.reshape(source, three_axes(source, axis))

    def back(self, blocks: Any) -> Any:
        """``x`` with the part replaced by what ``blocks`` holds."""
        updated = ops.reshape(blocks, self.part.shape)
        if not self.starts:
            return updated
        zeros = [constant(0, int64)] * len(self.starts)
        attrs = ((1,) * len(self.whole.shape), tuple(self.starts))
        return apply("slice_update", self.whole, updated, *zeros, attrs=attrs)

    def sums(self, values: Any) -> Any:
        """``values`` added up where the index says, from zeros."""
        return apply("scatter_sum", self.index, values, attrs=(self.data.shape[1], *self.lowest))

    def reduced(self, how: str, include_self: bool) -> Any:
        """The blocks combined with the source: ``set``, ``sum``, ``mean``, ``prod``, ``amax`` or ``amin``."""
        dtype = self.data.dtype
        if how == "set":
            return apply("scatter_set", self.data, self.index, self.source, attrs=tuple(self.lowest))
        if dtype is bool_:
            self.data, self.source = convert(self.data, int64), convert(self.source, int64)
            return convert(self.reduced(how, include_self), bool_)
        touched = None
        data = self.data
        if how == "mean" or not include_self:
            hits = self.sums(filled(1, int64, self.source.shape))
            touched = ops.greater(hits, 0)
        if not include_self:
            data = ops.where(touched, filled(_identity(how, dtype), dtype, data.shape), data)
        if how in _KINDS:
            return apply("scatter_combine", data, self.index, self.source, attrs=(_KINDS[how], *self.lowest))
        total = data + self.sums(self.source)
        return total if how == "sum" else _averaged(total, ops.maximum(hits + int(include_self), 1), dtype)


def _identity(how: str, dtype: DType) -> Any:
    """What changes nothing when it is combined."""
    if how in ("sum", "mean", "prod"):
        return int(how == "prod")
    if dtype.kind == "f":
        return -math.inf if how == "amax" else math.inf
    limits = numpy.iinfo(dtype.numpy)
    return int(limits.min if how == "amax" else limits.max)


def _averaged(total: Any, count: Any, dtype: DType) -> Any:
    if dtype.kind == "c":
        return ops.complex(
            *(_averaged(part, count, dtype.real) for part in (ops.real(total), ops.imag(total)))
        )
    if dtype.kind != "f":
        return convert(ops.floor_divide(total, convert(count, dtype)), dtype)
    return convert(convert(total, dtype.compute) / convert(count, dtype.compute), dtype)


def _same_dtype(x: Any, source: Any) -> Any:
    if not source.type.weak and source.dtype is not x.dtype:
        raise DTypeError(f"values of {source.dtype.name} for {x.dtype.name}", "Cast them with .to() first.")
    return convert(source, x.dtype)


def _without_elements_of(source: Any, x: Any) -> Any:
    """``x``, for an index without elements; ``source`` has a gradient of zeros, where no use would be none at all."""
    if not x.dtype.is_differentiable:
        return x
    none = slice_axis(source, 0, constant(0, int64), 0) if source.ndim else source
    return x if prod(none.shape) else x - ops.sum(none)  # x - 0.0 has the bits of x


def _scatter(x: Any, index: Any, source: Any, axis: int, how: str, include_self: bool = True) -> Any:
    """Elements of ``source`` at ``index``, which has as many axes as ``x`` and may be shorter on all others."""
    x, index = strong(x), need_index(index)
    source = _same_dtype(x, source)
    source = broadcast(source, index.shape) if not source.shape and x.ndim + index.ndim else source
    if not index.type.size:
        return _without_elements_of(source, x)
    shape = x.shape
    source, index = same_outside(source, index, axis)
    x = x if x.ndim else ops.reshape(x, (1,))
    if x.ndim != index.ndim:
        raise ShapeError(
            f"an index with {index.ndim} axes for {x.ndim}", "Give the index as many axes as the input."
        )
    for position, size in enumerate(index.shape):
        limit = source.shape[position] if position == axis else x.shape[position]
        if size > limit:
            other = "source" if position == axis else "input"
            what = f"the index has size {size} on axis {position}, the {other} {limit}"
            raise ShapeError(what, "Use an index that is not larger there.")
    if source.shape != index.shape:
        source = slice_axis(source, axis, constant(0, int64), index.shape[axis])
    target = Target(x, index, source, axis, (NONNEGATIVE,))
    return ops.reshape(target.back(target.reduced(how, include_self)), shape)


def _scatter_slices(
    x: Any,
    index: Any,
    source: Any,
    axis: int,
    how: str,
    include_self: bool = True,
    lowest: Sequence[str] = (NONNEGATIVE,),
) -> Any:
    """Slices of ``source`` at the index vector, which counts from the end where ``lowest`` is empty."""
    x, index = strong(x), need_index(index)
    if index.ndim > 1:
        raise ArgumentError(f"an index with {index.ndim} axes", "Use a vector of indices.")
    wide = x if x.ndim else ops.reshape(x, (1,))
    count = prod(index.shape)
    slices = (*wide.shape[:axis], count, *wide.shape[axis + 1 :])
    source = _same_dtype(x, source)
    if prod(source.shape) == prod(slices) and source.ndim < len(slices):
        source = ops.reshape(source, slices)
    if source.shape not in ((), slices):
        what = f"a source of shape {source.shape} for slices of shape {slices}"
        raise ShapeError(what, "Make them equal: the size along dim is the number of indices.")
    source = broadcast(source, slices)
    if not prod(slices):
        return _without_elements_of(source, x)
    target = Target(wide, ops.reshape(index, (count,)), source, axis, lowest)
    return ops.reshape(target.reduced(how, include_self), x.shape)


def _checked(how: str, kinds: Sequence[str]) -> str:
    if how not in kinds:
        raise ArgumentError(f"reduce {how!r}", f"Use one of {', '.join(kinds)}.")
    return how


def _reference(slices: bool) -> Callable[..., Any]:
    """By NumPy's own combination of repeated indices."""
    combine = {
        "sum": numpy.add,
        "mean": numpy.add,
        "prod": numpy.multiply,
        "amax": numpy.maximum,
        "amin": numpy.minimum,
    }

    def reference(x: Any, index: Any, source: Any, axis: int, how: str, include_self: bool) -> Any:
        result, count = x.copy(), numpy.full(x.shape, int(include_self))
        if slices:
            key: Any = (*(slice(None),) * axis, index)
            values = source
        else:
            positions = numpy.indices(index.shape)
            key = tuple(index if position == axis else positions[position] for position in range(x.ndim))
            values = numpy.asarray(source)[tuple(slice(0, size) for size in index.shape)]
        if how == "set":
            result[key] = values
            return result
        if not include_self:
            result[key] = {"prod": 1, "amax": -numpy.inf, "amin": numpy.inf}.get(how, 0)
        combine[how].at(result, key, values)
        numpy.add.at(count, key, 1)
        return result / numpy.maximum(count, 1) if how == "mean" else result

    return reference


def _combination_samples(slices: bool, hows: Sequence[str], both: bool) -> Callable[[], list[Any]]:
    shapes: list[Any]
    if slices:
        shapes = [((4, 3), 0, [3, 0, 3], (3, 3)), ((2, 4, 5), 1, [3], (2, 1, 5))]
    else:
        shapes = [
            ((3, 5), 0, [[0, 1, 2, 0, 0], [2, 0, 0, 1, 2]], (2, 5)),
            ((3, 5), 1, [[0, 0], [4, 4]], (2, 3)),
        ]
    flags = (True, False) if both else (True,)
    return lambda: [
        example((axis, how, own), x, numpy.array(index), source)
        for x, axis, index, source in shapes
        for how in hows
        for own in flags
    ]


_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@composite
class scatter_reduce:
    """The input with ``src`` combined at ``index`` along ``dim``: by sum, prod, mean, amax or amin.

    Without ``include_self`` the elements that are reached do not take part themselves.

    >>> import twofold as torch
    >>> index, src = torch.tensor([0, 1, 0]), torch.tensor([1.0, 2.0, 3.0])
    >>> torch.scatter_reduce(torch.zeros(2), 0, index, src, "sum")
    tensor([4., 2.])
    """

    methods = ("scatter_reduce",)
    inplace = True

    def call(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
        how = _checked(reduce, _REDUCTIONS)
        attrs = (normalize_axis(dim, len(input.shape)), how, bool(include_self))
        return apply("scatter_reduce", input, index, src, attrs=attrs)

    compute = _scatter
    reference = _reference(False)
    samples = _combination_samples(False, (*_REDUCTIONS, "set"), True)


@composite
class index_reduce:
    """The input with the slices of ``source`` combined at ``index`` along ``dim``: by prod, mean, amax or amin.

    >>> import twofold as torch
    >>> torch.index_reduce(torch.tensor([1, 2]), 0, torch.tensor([0, 0]), torch.tensor([5, 7]), "prod")
    tensor([35,  2])
    """

    methods = ("index_reduce",)
    inplace = True

    def call(input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
        how = _checked(reduce, _REDUCTIONS[1:])
        attrs = (normalize_axis(dim, len(input.shape)), how, bool(include_self))
        return apply("index_reduce", input, index, source, attrs=attrs)

    compute = _scatter_slices
    reference = _reference(True)
    samples = _combination_samples(True, (*_REDUCTIONS, "set"), True)


def _filled_slices(x: Any, index: Any, value: Any, axis: int, how: str, include_self: bool) -> Any:
    """As in PyTorch, where of this family ``index_fill`` alone counts from the end."""
    return _scatter_slices(x, index, value, axis, how, include_self, ())


def _recorded(name: str, slices: bool) -> None:
    """An entry of its own for a public function that fixes how values are combined, so that errors name it."""

    class body:
        functions = ()
        compute = _filled_slices if name == "index_fill" else _scatter_slices if slices else _scatter
        reference = _reference(slices)
        samples = _combination_samples(slices, ("set", "sum"), False)

    body.__name__, body.__doc__ = name, f"What ``{name}`` records; attributes as those of its reduction."
    composite(body)


for _name, _slices in (
    ("scatter", False),
    ("scatter_add", False),
    ("index_add", True),
    ("index_copy", True),
    ("index_fill", True),
):
    _recorded(_name, _slices)


@public(methods=("scatter",), inplace="value")
def scatter(
    input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Any:
    """The input with ``src`` (or a ``value``) written at ``index`` along ``dim``; of equal indices the last stays.

    ``reduce="add"`` adds and ``"multiply"`` multiplies instead.

    >>> import twofold as torch
    >>> torch.scatter(torch.zeros(2, 3), 1, torch.tensor([[2], [0]]), 1.0)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    how = {None: "set", "add": "sum", "multiply": "prod"}.get(reduce)
    if how is None:
        raise ArgumentError(f"reduce {reduce!r}", "Use 'add' or 'multiply', or scatter_reduce.")
    axis = normalize_axis(dim, len(input.shape))
    given = given_once(src=src, value=value)
    need_fitting(given, input.dtype)
    return apply("scatter", input, index, given, attrs=(axis, how, True))


@public(methods=("scatter_add",), inplace="value")
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """The input with ``src`` added at ``index`` along ``dim``.

    >>> import twofold as torch
    >>> torch.scatter_add(torch.zeros(3), 0, torch.tensor([0, 2, 0]), torch.tensor([1.0, 2.0, 3.0]))
    tensor([4., 0., 2.])
    """
    axis = normalize_axis(dim, len(input.shape))
    return apply("scatter_add", input, index, src, attrs=(axis, "sum", True))


@public(methods=("index_add",), inplace="value")
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """The input with the slices of ``source``, times ``alpha``, added at ``index`` along ``dim``.

    >>> import twofold as torch
    >>> torch.index_add(torch.zeros(3), 0, torch.tensor([0, 2, 0]), torch.tensor([1.0, 2.0, 3.0]), alpha=10)
    tensor([40.,  0., 20.])
    """
    axis = normalize_axis(dim, len(input.shape))
    if not (isinstance(alpha, int) and alpha == 1):
        need_fitting(alpha, input.dtype)
        source = ops.cast(ops.multiply(source, factor_beside(alpha, source)), input.dtype)
    return apply("index_add", input, index, source, attrs=(axis, "sum", True))


@public(methods=("index_copy",), inplace="value")
@autocast("widest")
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """The input with the slices at ``index`` along ``dim`` replaced; of equal indices the last stays.

    >>> import twofold as torch
    >>> torch.index_copy(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    axis = normalize_axis(dim, len(input.shape))
    return apply("index_copy", input, index, source, attrs=(axis, "set", True))


@public(methods=("index_fill",), inplace="value")
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """The input with ``value``, a scalar, in the slices at ``index`` along ``dim``.

    >>> import twofold as torch
    >>> torch.index_fill(torch.zeros(2, 3), 1, torch.tensor([2, 0]), 7)
    tensor([[7., 0., 7.],
            [7., 0., 7.]])
    """
    if getattr(value, "shape", ()):
        raise ShapeError(f"a value of shape {tuple(value.shape)}", "Use a number or a tensor without axes.")
    need_fitting(value, input.dtype)
    axis = normalize_axis(dim, len(input.shape))
    value = ops.cast(fitting(value, input.dtype), input.dtype) if hasattr(value, "shape") else value
    return apply("index_fill", input, index, value, attrs=(axis, "set", True))


@composite
class put:
    """The input with ``source`` at the positions ``index`` of its flattened form, or added there (``accumulate``).

    >>> import twofold as torch
    >>> torch.put(torch.zeros(2, 2), torch.tensor([3, 0]), torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 1.]])
    """

    methods = ("put",)
    inplace = True

    def call(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
        return apply("put", input, index, source, attrs=(bool(accumulate),))

    def compute(x: Any, index: Any, source: Any, accumulate: bool) -> Any:
        if index.type.size != source.type.size:
            what = f"{index.type.size} positions for {source.type.size} elements"
            raise ShapeError(what, "Give one position per element.")
        line, positions, values = (ops.reshape(v, (v.type.size,)) for v in (strong(x), index, source))
        written = _scatter_slices(line, positions, values, 0, "sum" if accumulate else "set", lowest=())
        return ops.reshape(written, x.shape)

    def reference(x: Any, index: Any, source: Any, accumulate: bool) -> Any:
        result = x.copy().reshape(-1)
        if accumulate:
            numpy.add.at(result, index.reshape(-1), source.reshape(-1))
        else:
            result[index.reshape(-1)] = source.reshape(-1)
        return result.reshape(x.shape)

    samples = lambda: [
        example((accumulate,), (3, 5), numpy.array([[0, 14], [-1, 3]]), (4,)) for accumulate in (False, True)
    ]


@composite
class masked_scatter:
    """The input with the elements of ``source``, in their order, where ``mask`` is true; the mask broadcasts.

    Raises IndexRangeError at run time where ``source`` has too few elements.

    >>> import twofold as torch
    >>> torch.masked_scatter(torch.zeros(3), torch.tensor([True, False, True]), torch.tensor([5.0, 6.0]))
    tensor([5., 0., 6.])
    """

    methods = ("masked_scatter",)
    signature = "input, mask, source"
    inplace = True

    def compute(x: Any, mask: Any, source: Any) -> Any:
        x = strong(x)
        if mask.dtype is not bool_:
            raise DTypeError(f"a mask of {mask.dtype.name}", "Compare first, for example mask != 0.")
        source = _same_dtype(x, source)
        shape = broadcast_shapes(x.shape, mask.shape)
        mask = ops.reshape(broadcast(mask, shape), (1, prod(shape), 1))
        number = apply("cumulative_sum", convert(mask, int64))
        line = ops.reshape(source, (1, source.type.size, 1))
        if not source.type.size:  # any true element of the mask then has a position outside
            line, number = filled(0, x.dtype, (1, 1, 1)), number + 1
        taken = apply("gather_block", line, ops.where(mask, number - 1, 0))
        return ops.where(ops.reshape(mask, shape), ops.reshape(taken, shape), broadcast(x, shape))

    def reference(x: Any, mask: Any, source: Any) -> Any:
        result = numpy.broadcast_to(x, numpy.broadcast_shapes(x.shape, mask.shape)).copy()
        wide = numpy.broadcast_to(mask, result.shape)
        result[wide] = source.reshape(-1)[: wide.sum()]
        return result

    samples = lambda: [
        example((), (3, 5), numpy.arange(5) % 2 == 0, (2, 5)),
        example((), (5,), numpy.arange(15).reshape(3, 5) % 4 == 1, (17,)),
    ]
