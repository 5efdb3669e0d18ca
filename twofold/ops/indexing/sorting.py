"""Sorting, on the host but for the first few elements: values and positions are found each for itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError, DTypeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import Host, apply, convert, filled, host, normalize_axis, ops, public, strong
from twofold.ops.examples import example
from twofold.ops.indexing import sorting_routines
from twofold.ops.indexing.leading import MOST_LEADING, leading_of_axis
from twofold.ops.return_types import return_type


class Sorted(NamedTuple):
    """Values in order and their positions in the input."""

    values: Any
    indices: Any


_SORT, _TOPK = return_type("sort", Sorted), return_type("topk", Sorted)


class AlongAxis(Host):
    """A computation along one axis, the first attribute, by a routine for the last axis of an array."""

    routine: Callable[..., Any]

    def result(self, x: Any, attrs: Attributes) -> TensorType:
        """The type of the result for the operand ``x``."""
        return tensor_type(int64, x.shape)

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x = strong(inputs[0])
        if x.dtype.kind == "c":
            raise DTypeError(f"{x.dtype.name} has no order", "Sort the real parts, or the lengths, abs().")
        wide = convert(x, x.dtype.compute)
        return make_node(self, attrs, (wide,), self.result(wide, attrs))

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        """The axis moves up by one, but there is none in a sample that is a number."""
        if not node.inputs[0].ndim:
            return None
        attrs = (node.attrs[0] + 1, *node.attrs[1:])
        return make_node(self, attrs, tuple(values), tensor_type(node.dtype, (size, *node.shape)))

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        (x,), (axis, *rest) = arrays, attrs
        if not x.ndim:
            return self.routine(x.reshape(1), *rest).reshape(())
        if axis == x.ndim - 1:
            return self.routine(x, *rest)
        return numpy.moveaxis(self.routine(numpy.moveaxis(x, axis, -1), *rest), -1, axis)

    def samples(self) -> Sequence[Any]:
        special = numpy.array([3.0, numpy.nan, -1.0, 3.0, -0.0, 0.0, numpy.inf], numpy.float32)
        return [
            example((1, False), (3, 17)),
            example((0, True), (5, 2)),
            example((0, False), special, smooth=False),
            example((0, True), special, smooth=False),
            example((0, False), numpy.array([2, 1, 2, 0])),
        ]


@host
class argsort(AlongAxis):
    """The positions of the elements in ascending (or ``descending``) order along ``dim``.

    Equal elements keep their order; NaN counts as the largest.

    >>> import twofold as torch
    >>> torch.argsort(torch.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """

    methods = ("argsort",)
    differentiable = False
    routine = staticmethod(sorting_routines.order)

    @staticmethod
    def call(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
        return apply("argsort", input, attrs=(normalize_axis(dim, len(input.shape)), bool(descending)))


@host
class ordered_values(AlongAxis):
    """The elements in the order of ``argsort``; attributes ``(axis, descending)``."""

    autograd_name = "SortBackward0"
    functions = ()
    title = "sort"
    keeps_nan = True
    routine = staticmethod(sorting_routines.ordered)

    def result(self, x: Any, attrs: Attributes) -> TensorType:
        return tensor_type(x.dtype, x.shape)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        if not cotangent.ndim:
            return (cotangent,)
        nothing = filled(0, cotangent.dtype, cotangent.shape)
        return (ops.scatter(nothing, attrs[0], apply("argsort", inputs[0], attrs=attrs), cotangent),)


@host
class leading_indices(AlongAxis):
    """The first ``count`` positions of ``argsort``; attributes ``(axis, count, descending)``."""

    functions = ()
    title = "topk"
    differentiable = False
    routine = staticmethod(sorting_routines.first)

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        wide = super().build(attrs, inputs)
        axis, count, descending = attrs
        if wide.inputs[0].ndim and 0 < count <= MOST_LEADING:
            return leading_of_axis(wide.inputs[0], axis, count, descending)
        return wide

    def result(self, x: Any, attrs: Attributes) -> TensorType:
        axis, count, _ = attrs
        return tensor_type(int64, (*x.shape[:axis], count, *x.shape[axis + 1 :]))

    def samples(self) -> Sequence[Any]:
        special = numpy.array(
            [3.0, numpy.nan, -1.0, 3.0, -0.0, 0.0, numpy.inf, 3.0, numpy.nan], numpy.float32
        )
        return [
            example((1, 2, True), (3, 17)),
            example((0, 5, False), (5, 2)),
            *(example((0, count, largest), special) for count in (0, 1, 2, 9) for largest in (True, False)),
            example((0, 3, True), numpy.tile(numpy.array([2, 1, 2, 0]), 5)),
        ]


@public(methods=("sort",))
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Sorted:
    """The elements in order along ``dim``, and their positions; equal elements keep their order, NaN is the largest.

    >>> import twofold as torch
    >>> torch.sort(torch.tensor([3.0, 1.0, 2.0]), descending=True)
    twofold.return_types.sort(
    values=tensor([3., 2., 1.]),
    indices=tensor([0, 2, 1]))
    """
    order = ops.argsort(input, dim, descending)
    # found by itself: who wants the values alone does not wait for the positions
    attrs = (normalize_axis(dim, len(input.shape)), bool(descending))
    values = apply("ordered_values", input, attrs=attrs)
    return _SORT(values if values.dtype is input.dtype else ops.cast(values, input.dtype), order)


@public(methods=("topk",))
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Sorted:
    """The ``k`` largest (or smallest) elements along ``dim`` in order, and their positions.

    NaN is the largest; of equal elements those that come first are taken. ``sorted`` is accepted for PyTorch's
    sake: the elements are always in order.

    >>> import twofold as torch
    >>> torch.topk(torch.tensor([3.0, 1.0, 2.0]), 2)
    twofold.return_types.topk(
    values=tensor([3., 2.]),
    indices=tensor([0, 2]))
    """
    axis = normalize_axis(dim, len(input.shape))
    size = input.shape[axis] if input.shape else 1
    if not 0 <= k <= size:
        raise ArgumentError(f"k {k} for size {size} of axis {axis}", "Use no more than there are.")
    if not input.shape:
        return _TOPK(ops.copied(input), ops.argsort(input))
    positions = apply("leading_indices", input, attrs=(axis, int(k), bool(largest)))
    return _TOPK(ops.gather(input, axis, positions), positions)


@public(methods=("msort",))
def msort(input: Any) -> Any:
    """The elements in ascending order along the first axis.

    >>> import twofold as torch
    >>> torch.msort(torch.tensor([[3, 1], [2, 5]]))
    tensor([[2, 1],
            [3, 5]])
    """
    return ops.sort(input, 0).values
