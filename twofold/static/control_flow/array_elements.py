"""What a ``TensorArray`` computes: its elements are the rows of one tensor, the *flow*."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import int64
from twofold.errors import ArgumentError, InvalidArgumentError, ShapeError
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import apply, ops
from twofold.ops.indexing.gather import NONNEGATIVE
from twofold.static.api.op_functions import (
    Number,
    numbers,
    operation,
    whole,
)
from twofold.static.functions.lowering import is_unwritten
from twofold.static.functions.written_elements import mark, marks_of, write_once
from twofold.static.graph.graph import Tensor
from twofold.static.graph.graph_elements import importable


def zeros_like_rows(base: Any, element: TensorType) -> Any:
    """Rows of zeros for ``base``, which holds none yet."""
    shape = (base.shape[0], *element.shape)
    return ops.zeros(shape, dtype=element.dtype)


def _as_rows(flow: Any) -> Any:
    return ops.reshape(flow, (1, flow.shape[0], math.prod(tuple(flow.shape)[1:])))


def _position(index: Any) -> Any:
    return ops.reshape(ops.cast(index, int64), (1, 1, 1))


def _checked(flow: Any, positions: Any, written: Callable[[Any], Any]) -> Any:
    """What ``written`` makes of the positions of elements; a run fails that finds one to be written already."""
    marks = marks_of(flow)
    if marks is None:
        return written(positions)
    positions, marks = write_once(marks, flow.shape[0], ops.reshape(positions, (-1,)))
    return mark(written(positions), marks)


@importable
def no_elements(size: Any, dtype: Any) -> Any:
    """The flow of an array that nothing is written to yet."""
    return ops.zeros((whole(size), 0), dtype=dtype)


@importable
def all_elements(flow: Any) -> Any:
    return ops.copied(flow)


@importable
def chosen_elements(flow: Any, positions: Any) -> Any:
    return ops.index_select(flow, 0, positions)


@importable
def element_count(flow: Any) -> Any:
    return ops.full((), flow.shape[0], dtype="int32")


@importable
def joined_elements(flow: Any) -> Any:
    return ops.reshape(flow, (-1, *tuple(flow.shape)[2:]))


@importable
def write_element(flow: Any, value: Any, index: Any) -> Any:
    return _checked(flow, index, lambda checked: _written(flow, value, checked))


@importable
def all_replaced(flow: Any, elements: Any) -> Any:
    positions = ops.arange(elements.shape[0])
    return _checked(flow, positions, lambda checked: ops.index_select(elements, 0, checked))


def _written(flow: Any, value: Any, index: Any) -> Any:
    if is_unwritten(_type(flow)):
        flow = zeros_like_rows(flow, _type(value))
    if tuple(flow.shape[1:]) != tuple(value.shape):
        what = f"a value of shape {tuple(value.shape)} for elements of shape {tuple(flow.shape[1:])}"
        raise ShapeError(what, "Write values of one shape.")
    rows = _as_rows(flow)
    written = apply(
        "scatter_set", rows, _position(index), ops.reshape(value, (1, 1, rows.shape[2])), attrs=(NONNEGATIVE,)
    )
    return ops.reshape(written, tuple(flow.shape))


@importable
def read_element(flow: Any, index: Any) -> Any:
    if is_unwritten(_type(flow)):
        raise ArgumentError("an element is read before any is written", "Write it first, or unstack values.")
    found = apply("gather_block", _as_rows(flow), _position(index), attrs=(NONNEGATIVE,))
    return ops.reshape(found, tuple(flow.shape[1:]))


def _type(value: Any) -> TensorType:
    found: TensorType = value.type_ if isinstance(value, Tensor) else value.type
    return found


@operation("TensorArrayUnstack")
def filled_up(value: Any, size: int) -> Any:
    rows, *rest = tuple(value.shape)
    if rows > size:
        raise InvalidArgumentError(
            f"{rows} rows for an array of size {size}", "Make the array larger, or with dynamic_size=True."
        )
    if rows == size:
        return ops.copied(value)
    return ops.pad(value, (*[0] * (2 * len(rest)), 0, size - rows))


@operation("TensorArraySplit")
def equal_parts(value: Any, lengths: Number, size: int | None) -> Any:
    found = numbers(lengths)
    if not found:
        raise ArgumentError(f"no lengths for {value.shape[0]} rows", "Give the length of each part.")
    if size is not None and len(found) != size:
        raise ArgumentError(
            f"{len(found)} parts for an array of size {size}",
            "Give a length for each element, or make the array with dynamic_size=True.",
        )
    if len(set(found)) > 1:
        raise ArgumentError(
            f"parts of lengths {found}", "Split into equal parts, or make the array with infer_shape=False."
        )
    if sum(found) != value.shape[0]:
        raise ArgumentError(
            f"{len(found)} parts of length {found[0]} of {value.shape[0]} rows", "Split all rows."
        )
    return ops.reshape(value, (len(found), *found[:1], *tuple(value.shape)[1:]))


@importable
def scattered(flow: Any, rows: Any, positions: Any) -> Any:
    return _checked(flow, positions, lambda checked: _scattered_rows(flow, rows, checked))


def _scattered_rows(flow: Any, rows: Any, positions: Any) -> Any:
    if is_unwritten(_type(flow)):
        flow = zeros_like_rows(flow, tensor_type(_type(rows).dtype, tuple(rows.shape)[1:]))
    count = rows.shape[0]
    index = ops.reshape(ops.cast(positions, int64), (1, count, 1))
    written = apply(
        "scatter_set", _as_rows(flow), index, ops.reshape(rows, (1, count, -1)), attrs=(NONNEGATIVE,)
    )
    return ops.reshape(written, tuple(flow.shape))


@importable
def scattered_grown(flow: Any, rows: Any, positions: Any) -> Any:
    if not flow.shape:
        return ops.maximum(flow, ops.add(ops.amax(ops.cast(positions, int64)), 1))
    last = numpy.max(numbers(positions), initial=-1) if _is_known(positions) else -1
    element = tensor_type(_type(rows).dtype, tuple(rows.shape)[1:])
    return scattered(_with_marks(with_room(flow, element, int(last) + 1), flow), rows, _bound(positions))


@importable
def grown(flow: Any, value: Any, index: Any) -> Any:
    """A write that makes room first, where the index is known; in a loop that counts, what the size is then."""
    if not flow.shape:
        return ops.maximum(flow, ops.add(ops.reshape(ops.cast(index, int64), ()), 1))
    last = whole(index) if _is_known(index) else -1
    return write_element(_with_marks(with_room(flow, _type(value), last + 1), flow), value, _bound(index))


def _with_marks(longer: Any, flow: Any) -> Any:
    marks = marks_of(flow)
    return longer if marks is None else mark(longer, marks)


GROWING = (grown, scattered_grown)


def _is_known(value: Any) -> bool:
    return not isinstance(value, Tensor) or not value._is_symbolic


def _bound(value: Any) -> Any:
    return value if isinstance(value, Tensor) else _core.from_array(numpy.asarray(value), False)


def with_room(flow: Any, element: TensorType, size: int) -> Any:
    """The rows of an array with zeros behind them, so that there are at least ``size``."""
    missing = size - flow.shape[0]
    if is_unwritten(_type(flow)):
        return (
            zeros_like_rows(flow, element)
            if missing <= 0
            else ops.zeros((size, *element.shape), dtype=element.dtype)
        )
    if missing <= 0:
        return flow
    rows = ops.zeros((missing, *tuple(flow.shape)[1:]), dtype=_type(flow).dtype)
    return ops.concatenate([flow, rows], 0)
