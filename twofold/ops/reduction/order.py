"""Order statistics: medians, quantiles, the k-th value, the mode. Values are gathered, so gradients flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.bind import constant
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.sizes import real
from twofold.ir.types import tensor_type
from twofold.ops.base import (
    Host,
    apply,
    broadcast,
    composite,
    convert,
    filled,
    host,
    normalize_axis,
    ops,
    public,
    strong,
)
from twofold.ops.docstrings import shown
from twofold.ops.examples import example
from twofold.ops.indexing import sorting_routines
from twofold.ops.reduction.reductions import ValuesAndIndices
from twofold.ops.return_types import return_type
from twofold.ops.shape.movement import slice_axis


def _need_elements(input: Any, axis: int, what: str) -> None:
    if len(input.shape) and not input.shape[axis]:
        raise ShapeError(f"the {what} of no elements", "Use an axis that has some.")


_KTHVALUE, _MODE = return_type("kthvalue", ValuesAndIndices), return_type("mode", ValuesAndIndices)


def _selected(
    kind: type[ValuesAndIndices], input: Any, axis: int, positions: Any, keepdim: bool
) -> ValuesAndIndices:
    """The elements at ``positions``, which has size 1 on the axis."""
    values = ops.gather(input, axis, positions)
    if keepdim or not len(input.shape):
        return kind(values, positions)
    shape = (*input.shape[:axis], *input.shape[axis + 1 :])
    return kind(ops.reshape(values, shape), ops.reshape(positions, shape))


@public(methods=("kthvalue",))
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The ``k``-th smallest element along ``dim``, counted from 1, and its position.

    >>> import twofold as torch
    >>> torch.kthvalue(torch.tensor([3.0, 1.0, 2.0]), 2)
    twofold.return_types.kthvalue(
    values=tensor(2.),
    indices=tensor(2))
    """
    axis = normalize_axis(dim, len(input.shape))
    size = input.shape[axis] if len(input.shape) else 1
    if not 1 <= k <= size:
        raise ArgumentError(f"k {k} for size {size} of axis {axis}", f"Use a number from 1 to {size}.")
    if not len(input.shape):
        return _selected(_KTHVALUE, input, axis, ops.argsort(input), keepdim)
    positions = apply("leading_indices", input, attrs=(axis, int(k), False))
    return _selected(_KTHVALUE, input, axis, slice_axis(positions, axis, k - 1, 1), keepdim)


@composite
class median_index:
    """The position of the median along an axis, of size 1; of an even number of elements the lower one.

    A NaN wins unless, ``ignore``, only numbers count.
    """

    memory = (3, "the order of all elements is kept")

    functions = ()
    methods = ()
    signature = "input"
    differentiable = False

    def compute(x: Any, axis: int, ignore: bool) -> Any:
        x = strong(x)
        order = apply("argsort", x, attrs=(axis, False))
        if not x.ndim:
            return order
        size = x.shape[axis]
        if x.dtype.kind != "f":
            return slice_axis(order, axis, constant((size - 1) // 2, int64), 1)
        count = apply("sum", ops.isnan(x), attrs=((axis,), True))
        middle = ops.maximum(ops.floor_divide(size - 1 - count, 2), 0) if ignore else (size - 1) // 2
        first_nan = ops.minimum(size - count, size - 1)  # NaN sorts last
        rank = middle if ignore else ops.where(ops.greater(count, 0), first_nan, middle)
        return apply("gather", order, rank, attrs=(axis,))

    samples = lambda: [
        example((axis, ignore), values)
        for ignore in (False, True)
        for axis, values in (
            (1, (3, 17)),
            (0, (4, 2)),
            (0, numpy.array([2.0, numpy.nan, 1.0, 0.0], numpy.float32)),
            (0, numpy.array([3, 1, 2])),
        )
    ]


def _median(name: str, ignore: bool, description: str, result: str) -> Any:
    kind = return_type(name, ValuesAndIndices)

    def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            return apply("whole_median", input, attrs=(ignore,))
        axis = normalize_axis(dim, len(input.shape))
        _need_elements(input, axis, "median")
        return _selected(kind, input, axis, apply("median_index", input, attrs=(axis, ignore)), keepdim)

    median.__name__ = name
    median.__doc__ = shown(
        f"The middle element in order, {description}; of an even number the lower one.\n\n"
        "Along ``dim`` also its position. The median of no elements at all is NaN.",
        f">>> torch.{name}(torch.tensor([4.0, 1.0, float('nan'), 3.0]))",
        result,
        f">>> torch.{name}(torch.tensor([[4.0, 1.0, 3.0]]), dim=1)",
        f"twofold.return_types.{name}(",
        "values=tensor([3.]),",
        "indices=tensor([2]))",
    )
    return public(name, methods=(name,))(median)


median = _median("median", False, "NaN if there is one", "tensor(nan)")
nanmedian = _median("nanmedian", True, "leaving out NaN", "tensor(3.)")


@composite
class whole_median:
    """The median of all elements, whose gradient equal elements share; attributes ``(ignore NaN,)``."""

    autograd_name = "MedianBackward0"
    memory = (4, "the order of all elements is kept")

    functions = ()
    methods = ()
    signature = "input"

    def compute(x: Any, ignore: bool) -> Any:
        x = strong(x)
        if not x.type.size:
            if x.dtype.kind != "f":
                raise ShapeError("the median of no integers", "Use a tensor that has some.")
            return filled(float("nan"), x.dtype, ())
        flat = ops.reshape(x, (x.type.size,))
        position = apply("median_index", ops.stop_gradient(flat), attrs=(0, ignore))
        return ops.reshape(apply("gather", flat, position, attrs=(0,)), ())

    def vjp(ct: Any, y: Any, x: Any, ignore: bool) -> Any:
        chosen = ops.logical_or(ops.equal(x, y), ops.logical_and(ops.isnan(x), ops.isnan(y)))
        share = ct / convert(apply("sum", chosen, attrs=(tuple(range(x.ndim)), False)), ct.dtype)
        return (ops.where(chosen, share, constant(0, ct.dtype)),)

    samples = lambda: [example((False,), (3, 5)), example((True,), (4,)), example((False,), ())]


@host
class mode_index(Host):
    """The position of the most frequent element along an axis, of size 1: the smallest of several, where it is last."""

    functions = ()
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x, (axis,) = strong(inputs[0]), attrs
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :]) if x.ndim else ()
        return make_node(self, attrs, (convert(x, x.dtype.compute),), tensor_type(int64, shape))

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        (x,), (axis,) = arrays, attrs
        if not x.ndim:
            return numpy.zeros((), numpy.int64)
        lines = numpy.moveaxis(x, axis, -1)
        orders = sorting_routines.order(lines)
        lines, at = numpy.take_along_axis(lines, orders, -1), numpy.arange(lines.shape[-1])
        begins = numpy.ones(lines.shape, bool)
        begins[..., 1:] = lines[..., 1:] != lines[..., :-1]
        # how many equal elements end at each one: the most where the longest run ends, first the smallest of several
        lengths = at - numpy.maximum.accumulate(numpy.where(begins, at, 0), -1)
        last = numpy.argmax(lengths, -1)[..., None]
        return numpy.moveaxis(numpy.take_along_axis(orders, last, -1), -1, axis)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        def position(line: Any) -> Any:
            values, counts = numpy.unique(line, return_counts=True)
            return numpy.flatnonzero(line == values[numpy.argmax(counts)])[-1:]

        return numpy.apply_along_axis(position, attrs[0], arrays[0])

    def samples(self) -> Sequence[Any]:
        values = numpy.array([[1, 2, 2, 1, 0], [3, 3, 3, 1, 1]])
        return [example((axis,), values) for axis in (0, 1)]


@public(methods=("mode",))
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The most frequent element along ``dim``, the smallest of several, and the position where it is last.

    >>> import twofold as torch
    >>> torch.mode(torch.tensor([3, 1, 3, 2]))
    twofold.return_types.mode(
    values=tensor(3),
    indices=tensor(2))
    """
    axis = normalize_axis(dim, len(input.shape))
    _need_elements(input, axis, "mode")
    return _selected(_MODE, input, axis, apply("mode_index", input, attrs=(axis,)), keepdim)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _ranks(x: Any, q: Any, axis: int, ignore: bool) -> Any:
    """Where the quantiles lie in the sorted axis, ``[..., quantiles]`` with the axis last."""
    missing = apply("sum", ops.isnan(x), attrs=((axis,), True))
    last = x.shape[axis] - 1
    whole = convert(ops.maximum(last - missing, 0), x.dtype) if ignore else real(last)
    rank = q * whole
    return rank if ignore else ops.where(ops.greater(missing, 0), real(last), rank)


@composite
class quantiles:
    """The elements at the fractions ``q`` of the sorted last axis, which becomes that of the fractions.

    Attributes ``(interpolation, ignore NaN)``; inputs ``(x, q)``, ``q`` a vector.
    """

    autocast = "float32"
    memory = (4, "the elements are sorted, and two neighbours gathered")

    functions = ()
    methods = ()
    signature = "x, q"
    kinds = "f"

    def compute(x: Any, q: Any, how: str, ignore: bool) -> Any:
        wide, axis = convert(x, x.dtype.compute), x.ndim - 1
        order = apply("argsort", ops.stop_gradient(wide), attrs=(axis, False))
        ordered = apply("gather", wide, order, attrs=(axis,))
        inside = apply("within", convert(q, wide.dtype), attrs=("q", 0.0, 1.0))
        rank = _ranks(wide, inside, axis, ignore)
        rank = broadcast(rank, (*x.shape[:-1], q.shape[0]))
        rounded = {"lower": ops.floor, "higher": ops.ceil, "nearest": ops.round}.get(how)
        low = ops.stop_gradient((rounded or ops.floor)(rank))
        below = apply("gather", ordered, convert(low, int64), attrs=(axis,))
        if rounded is not None:
            return convert(below, x.dtype)
        above = apply("gather", ordered, convert(ops.ceil(rank), int64), attrs=(axis,))
        part = rank - low if how == "linear" else 0.5
        return convert(ops.lerp(below, above, part), x.dtype)

    samples = lambda: [
        example((how, ignore), (3, 6), numpy.array([0.05, 0.33, 0.95, 0.52], numpy.float32))
        for how in _INTERPOLATIONS
        for ignore in (False, True)
    ]


def _quantile(name: str, ignore: bool, description: str, result: str) -> Callable[..., Any]:
    def quantile(
        input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Any:
        if interpolation not in _INTERPOLATIONS:
            raise ArgumentError(
                f"interpolation {interpolation!r}", f"Use one of {', '.join(_INTERPOLATIONS)}."
            )
        if isinstance(q, (int, float)) and not 0 <= q <= 1:
            raise ArgumentError(f"q {q}", "Use fractions from 0 to 1.")
        if input.dtype.kind != "f":
            raise DTypeError(
                f"takes floating dtypes, not {input.dtype.name}", "Cast with .to(float32) first."
            )
        shape = tuple(input.shape)
        if not prod(shape):
            raise ShapeError("a quantile of no elements", "Use a tensor that has some.")
        single = not len(getattr(q, "shape", ()))
        fractions = ops.reshape(q, (1,)) if hasattr(q, "shape") and single else q
        fractions = (
            apply("full", float(q), attrs=((1,), input.dtype)) if not hasattr(q, "shape") else fractions
        )
        if dim is None:
            lines, kept = ops.reshape(input, (-1,)), (1,) * len(shape)
        else:
            axis = normalize_axis(dim, len(shape))
            lines = ops.movedim(input, axis, -1) if shape else ops.reshape(input, (1,))
            kept = (*shape[:axis], 1, *shape[axis + 1 :]) if shape else ()
        found = apply("quantiles", lines, fractions, attrs=(interpolation, ignore))
        rest = kept if keepdim else tuple(lines.shape)[:-1]
        if single:
            return ops.reshape(found, rest)
        return ops.reshape(ops.movedim(found, -1, 0), (found.shape[-1], *rest))

    quantile.__name__ = name
    quantile.__doc__ = shown(
        f"The elements at the fraction(s) ``q`` of the sorted elements, {description}.\n\n"
        "Between two elements ``interpolation`` decides: linear, lower, higher, midpoint or nearest. Several\n"
        "fractions make a new first axis. Raises DTypeError for integers.",
        f">>> torch.{name}(torch.tensor([4.0, 1.0, 3.0]), torch.tensor([0.25, 0.5]))",
        "tensor([2., 3.])",
        f">>> torch.{name}(torch.tensor([1.0, 2.0, float('nan')]), 0.5)",
        result,
    )
    return public(name, methods=(name,))(quantile)


quantile = _quantile("quantile", False, "NaN if there is one", "tensor(nan)")
nanquantile = _quantile("nanquantile", True, "leaving out NaN", "tensor(1.5000)")
