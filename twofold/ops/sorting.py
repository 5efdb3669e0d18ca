"""Sorting: the order is found on the host, the values are gathered, so gradients flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import tensor_type
from twofold.ops.base import Host, apply, convert, host, normalize_axis, ops, public, strong
from twofold.ops.examples import example
from twofold.ops.movement import slice_axis


class Sorted(NamedTuple):
    """Values in order and their places in the input."""

    values: Any
    indices: Any


@host
class argsort(Host):
    """The places of the elements in ascending (or ``descending``) order along ``dim``.

    Equal elements keep their order; NaN counts as the largest.

    >>> import twofold as torch
    >>> torch.argsort(torch.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """

    methods = ("argsort",)
    differentiable = False

    @staticmethod
    def call(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
        return apply("argsort", input, attrs=(normalize_axis(dim, len(input.shape)), bool(descending)))

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x = strong(inputs[0])
        wide = convert(x, x.dtype.compute)
        return make_node(self, attrs, (wide,), tensor_type(int64, x.shape))

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        (x,), (axis, descending) = arrays, attrs
        if not x.ndim:
            return numpy.zeros((), numpy.int64)
        if not descending:
            return numpy.argsort(x, axis, kind="stable")
        # reversed before and after, so that equal elements keep their order
        backwards = numpy.argsort(numpy.flip(x, axis), axis, kind="stable")
        return numpy.flip(x.shape[axis] - 1 - backwards, axis)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs, *arrays)

    def samples(self) -> Sequence[Any]:
        special = numpy.array([3.0, numpy.nan, -1.0, 3.0, -0.0, 0.0, numpy.inf], numpy.float32)
        return [
            example((1, False), (3, 17)),
            example((0, True), (5, 2)),
            example((0, False), special),
            example((0, True), special),
            example((0, False), numpy.array([2, 1, 2, 0])),
        ]


@public(methods=("sort",))
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Sorted:
    """The elements in order along ``dim``, and their places.

    >>> import twofold as torch
    >>> torch.sort(torch.tensor([3.0, 1.0, 2.0]), descending=True)
    Sorted(values=tensor([3., 2., 1.]), indices=tensor([0, 2, 1]))
    """
    order = ops.argsort(input, dim, descending)
    if not len(input.shape):
        return Sorted(input, order)
    return Sorted(ops.gather(input, dim, order), order)


@public(methods=("topk",))
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Sorted:
    """The ``k`` largest (or smallest) elements along ``dim`` in order, and their places.

    >>> import twofold as torch
    >>> torch.topk(torch.tensor([3.0, 1.0, 2.0]), 2)
    Sorted(values=tensor([3., 2.]), indices=tensor([0, 2]))
    """
    if not len(input.shape):
        return Sorted(input, ops.argsort(input))
    axis = normalize_axis(dim, len(input.shape))
    if not 0 <= k <= input.shape[axis]:
        raise ArgumentError(
            f"k {k} for size {input.shape[axis]} of axis {axis}", "Use no more than there are."
        )
    order = slice_axis(ops.argsort(input, axis, largest), axis, 0, k)
    return Sorted(ops.gather(input, axis, order), order)


@public(methods=("msort",))
def msort(input: Any) -> Any:
    """The elements in ascending order along the first axis.

    >>> import twofold as torch
    >>> torch.msort(torch.tensor([[3, 1], [2, 5]]))
    tensor([[2, 1],
            [3, 5]])
    """
    return ops.sort(input, 0).values
