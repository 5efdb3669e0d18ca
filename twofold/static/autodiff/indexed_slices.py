"""``IndexedSlices``: the gradient of a table of which only rows were looked up, as these rows and their numbers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from twofold.dtypes import int32, int64
from twofold.ops.base import apply, ops
from twofold.static.api.op_functions import (
    Alone,
    Number,
    constant,
    convert_to_tensor,
    install_operators,
    operation,
    sizes,
)
from twofold.static.arrays import shape_ops
from twofold.static.functions.bodies import tensor_of
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Operation, Tensor
from twofold.static.graph.graph_elements import OfValues, Slot
from twofold.static.graph.inference import Source
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.math import cast


class IndexedSlicesValue(NamedTuple):
    """The arrays of ``IndexedSlices``: what a session returns for one."""

    values: Any
    indices: Any
    dense_shape: Any


@example(
    "table = tf.constant([[1.0], [2.0], [3.0]])",
    "rows = tf.gradients(tf.gather(table, [2, 0, 2]), table)[0]",
    "print(session.run(rows.indices), session.run(tf.convert_to_tensor(rows))[:, 0])",
    "[2 0 2] [1. 0. 2.]",
)
class IndexedSlices(OfValues):
    """Slices ``values[k]`` at the rows ``indices[k]`` of a tensor of zeros of ``dense_shape``; equal indices add up.

    Where a tensor is expected it becomes the dense one.
    """

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values = convert_to_tensor(values)
        self.indices = convert_to_tensor(indices)
        self.dense_shape = None if dense_shape is None else convert_to_tensor(dense_shape)
        self._dense: Tensor | None = None

    def with_values(self, values: Any) -> IndexedSlices:
        """Other slices at the same rows."""
        return IndexedSlices(values, self.indices, self.dense_shape)

    def _as_graph_element(self) -> Tensor:
        if self._dense is None:
            if self.dense_shape is None:
                raise ValueError(f"{self!r} has no dense_shape and becomes no tensor. Give it one.")
            self._dense = _dense(self.values, self.indices, self.dense_shape)
        return self._dense

    @property
    def parts(self) -> list[Tensor]:
        """Values, indices and shape, as a session feeds and fetches them."""
        return [part for part in (self.values, self.indices, self.dense_shape) if part is not None]

    @staticmethod
    def fetched(arrays: Sequence[Any]) -> IndexedSlicesValue:
        """What a session returns for the parts."""
        return IndexedSlicesValue(*arrays, *[None] * (3 - len(arrays)))

    @property
    def name(self) -> str:
        """The name of the values."""
        return self.values.name

    @property
    def device(self) -> str:
        """The device of the values."""
        return self.values.device

    @property
    def shape(self) -> TensorShape:
        """The dense shape, where it is a constant."""
        constant = None if self.dense_shape is None else self.dense_shape.op.constant
        return TensorShape(None if constant is None else constant.detach().numpy().tolist())

    def __repr__(self) -> str:
        known = "" if self.dense_shape is None else f", dense_shape={self.dense_shape}"
        return f"IndexedSlices(indices={self.indices}, values={self.values}{known})"


install_operators(IndexedSlices)


@operation("UnsortedSegmentSum", default="IndexedSlicesToTensor")
def _dense(values: Alone, indices: Alone, dense_shape: Number) -> Any:
    """Zeros to which the slices are added in their order, as the gradient of ``gather`` is defined."""
    return added_rows(values, indices, sizes(dense_shape))


def added_rows(values: Any, indices: Any, shape: Sequence[int]) -> Any:
    """For a body: zeros of ``shape`` with ``values`` added at the rows ``indices``; large tables stay few rows."""
    count = values.shape[0]
    positions = ops.reshape(ops.cast(indices, int64), (1, count, 1))
    rows = apply(
        "scatter_sum", positions, ops.reshape(values, (1, count, prod(shape[1:]))), attrs=(shape[0],)
    )
    return ops.reshape(rows, tuple(shape))


def keeps_slices(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a tensor, which of slices changes the values."""

    @functools.wraps(function)
    def changed(t: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(t, IndexedSlices):
            return t.with_values(function(t.values, *arguments, **options))
        return function(t, *arguments, **options)

    return changed


_GATHER = inspect.unwrap(shape_ops.gather)


def table_of(operation: Operation) -> Source | None:
    """What an operation reads nothing of but rows by number; None where there is no such table."""
    if operation.body is not _GATHER or operation.keywords.get("axis", 0) not in (0, None):
        return None
    table = operation.sources[operation.keywords["params"].index]
    return table if operation.sources.count(table) == 1 else None


def gradient_of_rows(
    table: Source, look_ups: Sequence[Operation], found: Sequence[Source | None]
) -> IndexedSlices | None:
    """The gradient of a table, from those of the rows that were looked up."""
    tensor = tensor_of(table)
    known = min(tensor.type_.shape, default=0) >= 0
    whole = constant(tensor.type_.shape, int32) if known else shape_ops.shape(tensor)
    reached = [(look_up, tensor_of(part)) for look_up, part in zip(look_ups, found) if part is not None]
    if not reached:
        return None
    rest = tensor.type_.shape[1:] if known else whole[1:]
    slices = [
        shape_ops.reshape(part, [-1, *rest] if known else shape_ops.concat([[-1], rest], 0))
        for _, part in reached
    ]
    numbers = [shape_ops.reshape(_indices(look_up), [-1]) for look_up, _ in reached]
    if len({index.dtype for index in numbers}) > 1:
        numbers = [cast(index, int64) for index in numbers]
    alone = len(reached) == 1
    return IndexedSlices(
        slices[0] if alone else shape_ops.concat(slices, 0),
        numbers[0] if alone else shape_ops.concat(numbers, 0),
        whole,
    )


def _indices(look_up: Operation) -> Tensor:
    given = look_up.keywords["indices"]
    return tensor_of(look_up.sources[given.index]) if isinstance(given, Slot) else convert_to_tensor(given)
