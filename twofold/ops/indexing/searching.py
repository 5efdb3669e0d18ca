"""Searching in sorted sequences, membership, and counting into bins: found on the host, without gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import DType, bool_, int32, int64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import tensor_type
from twofold.ops.base import Host, apply, common_dtype, composite, convert, host, ops, public, strong
from twofold.ops.examples import example
from twofold.ops.host_threads import over_rows

_NANOSECONDS = 50
"""Rough time of one search."""


@host
class searchsorted_indices(Host):
    """Where each value would stand in a sorted sequence; attributes ``(right,)``.

    Inputs ``[rows, length]`` and ``[rows, count]``; the result is int64 like the second.
    """

    functions = ()
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        dtype, _ = common_dtype([node.type for node in inputs])
        rows, values = (convert(node, dtype.compute) for node in inputs)
        return make_node(self, attrs, (rows, values), tensor_type(int64, values.shape))

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        rows, values = arrays
        side: Any = "right" if attrs[0] else "left"
        cost = _NANOSECONDS * values.size
        if len(rows) == 1:
            found = over_rows(lambda part: numpy.searchsorted(rows[0], part, side), [values[0]], cost)
            return found.reshape(values.shape)
        search = lambda part, wanted: [numpy.searchsorted(*pair, side) for pair in zip(part, wanted)]
        return over_rows(lambda *parts: numpy.reshape(search(*parts), parts[1].shape), [rows, values], cost)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs, *arrays)

    def samples(self) -> Sequence[Any]:
        rows = numpy.array([[1.0, 3.0, 3.0, 5.0], [0.0, 1.0, 2.0, 9.0]], numpy.float32)
        values = numpy.array([[3.0, 0.0, 6.0], [2.0, numpy.nan, -1.0]], numpy.float32)
        return [example((right,), rows, values) for right in (False, True)]


def _sides(right: bool, side: str | None) -> bool:
    if side not in (None, "left", "right"):
        raise ArgumentError(f"side {side!r}", "Use 'left' or 'right'.")
    if side == "left" and right:
        raise ArgumentError("side 'left' beside right=True", "Give one of the two.")
    return bool(right or side == "right")


@composite
class searchsorted:
    """The position before which each value keeps the last axis of ``sorted_sequence`` sorted.

    Of equal elements before the first or, ``right``, after the last. A vector serves all rows of the values.
    ``sorter`` holds the positions that sort the sequence. The result is int64, or int32.

    >>> import twofold as torch
    >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 6, 0]))
    tensor([1, 3, 0])
    """

    def call(
        sorted_sequence: Any,
        input: Any,
        *,
        out_int32: bool = False,
        right: bool = False,
        side: str | None = None,
        sorter: Any = None,
    ) -> Any:
        if sorter is not None:
            sorted_sequence = ops.take_along_dim(sorted_sequence, sorter, -1)
        attrs = (_sides(right, side), int32 if out_int32 else int64)
        return apply("searchsorted", sorted_sequence, input, attrs=attrs)

    def compute(rows: Any, values: Any, right: bool, dtype: DType) -> Any:
        rows, values = strong(rows), strong(values) if not values.type.weak else convert(values, rows.dtype)
        if not rows.ndim or (rows.ndim > 1 and rows.shape[:-1] != values.shape[:-1]):
            what = f"a sequence of shape {rows.shape} for values of shape {values.shape}"
            raise ShapeError(what, "Use a vector, or make all axes but the last equal.")
        one = rows.ndim == 1
        if not values.type.size:
            return convert(values, dtype)
        flat = ops.reshape(rows, (1 if one else values.type.size // values.shape[-1], rows.shape[-1]))
        positions = apply(
            "searchsorted_indices", flat, ops.reshape(values, (flat.shape[0], -1)), attrs=(right,)
        )
        return convert(ops.reshape(positions, values.shape), dtype)

    samples = lambda: [
        example((False, int64), numpy.array([1.0, 3.0, 5.0], numpy.float32), (2, 3)),
        example((True, int32), numpy.array([[1, 3, 5], [2, 2, 4]]), numpy.array([[3, 9], [2, 0]])),
    ]


@public()
def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """The number of the bucket between sorted ``boundaries`` that each element falls into.

    An element equal to a boundary belongs below it or, ``right``, above it.

    >>> import twofold as torch
    >>> torch.bucketize(torch.tensor([0.5, 1.0, 9.0]), torch.tensor([1.0, 2.0]))
    tensor([0, 0, 2])
    >>> torch.bucketize(torch.tensor([0.5, 1.0, 9.0]), torch.tensor([1.0, 2.0]), right=True)
    tensor([0, 1, 2])
    """
    if len(boundaries.shape) != 1:
        raise ShapeError(f"boundaries of shape {tuple(boundaries.shape)}", "Use a sorted vector.")
    return ops.searchsorted(boundaries, input, out_int32=out_int32, right=right)


@host
class isin_mask(Host):
    """Whether each element is among the test elements (or, with the attribute, is not)."""

    functions = ()
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        dtype, _ = common_dtype([node.type for node in inputs])
        x, tests = (convert(node, dtype.compute) for node in inputs)
        return make_node(self, attrs, (x, tests), tensor_type(bool_, x.shape))

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        x, tests = arrays
        return numpy.isin(x, tests, invert=attrs[0])

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs, *arrays)

    def samples(self) -> Sequence[Any]:
        x, tests = numpy.array([[1, 5], [2, 1]]), numpy.array([2, 1])
        return [example((invert,), x, tests) for invert in (False, True)]


@public()
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each of ``elements`` is one of ``test_elements`` (with ``invert``: is not).

    >>> import twofold as torch
    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    return apply("isin_mask", elements, test_elements, attrs=(bool(invert),))


@host
class bin_counts(Host):
    """How many elements fall into equal bins between two ends, which are included; elements outside do not count.

    Inputs ``(x, low, high)``, attributes ``(bins,)``; ends that are equal stand for the extreme elements.
    """

    functions = ()
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x, low, high = (convert(node, strong(inputs[0]).dtype.compute) for node in inputs)
        return make_node(self, attrs, (x, low, high), tensor_type(x.dtype, attrs))

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        x, low, high = arrays
        if low == high:
            low, high = (x.min(), x.max()) if x.size else (low, high)
            low, high = (low - 1, high + 1) if low == high else (low, high)
        inside = x[(x >= low) & (x <= high)]
        positions = ((inside - low) * (attrs[0] / (high - low))).astype(numpy.int64)
        return numpy.bincount(numpy.minimum(positions, attrs[0] - 1), minlength=attrs[0]).astype(x.dtype)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs, *arrays)

    def samples(self) -> Sequence[Any]:
        return [example((5,), (3, 17), numpy.array(-1.0), numpy.array(1.0))]


@public(methods=("histc",))
def histc(input: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """How many elements fall into each of ``bins`` equal bins from ``min`` to ``max``, in the input's dtype.

    Where both are equal the bins reach from the smallest to the largest element.

    >>> import twofold as torch
    >>> torch.histc(torch.tensor([0.0, 1.0, 1.5, 4.0]), bins=2, min=0, max=4)
    tensor([3., 1.])
    """
    if bins < 1:
        raise ArgumentError(f"{bins} bins", "Use at least one.")
    if max < min:
        raise ArgumentError(f"min {min} above max {max}", "Give the smaller one first.")
    if input.dtype.kind in "bc":
        raise DTypeError(f"takes real numbers, not {input.dtype.name}", "Cast with .to() first.")
    found = apply("bin_counts", input, min, max, attrs=(int(bins),))
    return found if found.dtype is input.dtype else ops.cast(found, input.dtype)
