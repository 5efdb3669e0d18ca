"""Sets that are the rows of tensors: ``tf.sets``."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy

from twofold.dtypes import int32, int64
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import describe
from twofold.static.sparse import SparseTensor, SparseTensorValue

_Rows = dict[tuple[int, ...], set[Any]]


def _is_sparse(value: Any) -> bool:
    return isinstance(value, (SparseTensor, SparseTensorValue))


def _inputs(value: Any) -> list[Any]:
    """The tensors of an operand: one, or the three of a sparse one."""
    if _is_sparse(value):
        given = SparseTensor.from_value(value)
        return [given.indices, given.values, given.dense_shape]
    return [convert_to_tensor(value)]


def _rows(arrays: list[Any]) -> tuple[_Rows, list[int]]:
    """The sets along the last axis by their positions, and the sizes of the other axes."""
    found: _Rows = {}
    if len(arrays) == 3:
        positions, values, shape = arrays
        for position, value in zip(positions.tolist(), values.tolist()):
            found.setdefault(tuple(position[:-1]), set()).add(value)
        return found, shape.tolist()[:-1]
    array = numpy.asarray(arrays[0])
    for position in numpy.ndindex(array.shape[:-1]):
        found[position] = set(array[position].tolist())
    return found, list(array.shape[:-1])


def _combined(name: str, a: Any, b: Any, combine: Callable[[set[Any], set[Any]], set[Any]]) -> SparseTensor:
    first, second = _inputs(a), _inputs(b)
    values = [given[1] if len(given) == 3 else given[0] for given in (first, second)]
    if values[0].dtype is not values[1].dtype:
        raise TypeError(
            f"{name}: dtypes of {describe(values[0])} and {describe(values[1])} differ, at {here()}. Make them one."
        )

    def compute(*arrays: Any) -> list[Any]:
        one, sizes = _rows(list(arrays[: len(first)]))
        other, others = _rows(list(arrays[len(first) :]))
        if sizes != others:
            raise ValueError(f"{name}: sets of shapes {sizes} and {others}. Make them equal.")
        rows = {
            key: sorted(combine(one.get(key, set()), other.get(key, set()))) for key in sorted({*one, *other})
        }
        return _sparse(rows, sizes, arrays[1] if len(first) == 3 else arrays[0])

    dtype = values[0].dtype
    rank = _rank(first)
    types = [(int64, (None, rank)), (dtype, (None,)), (int64, (rank,))]
    return SparseTensor(*in_python(name, compute, [*first, *second], types, None))


def _rank(given: list[Any]) -> int | None:
    if len(given) == 1:
        return given[0].shape.ndims
    return given[2].shape.as_list()[0] if given[2].shape.ndims else None


def _sparse(rows: dict[tuple[int, ...], list[Any]], sizes: list[int], like: Any) -> list[Any]:
    positions = [(*key, k) for key, row in rows.items() for k in range(len(row))]
    values = list(itertools.chain.from_iterable(rows.values()))
    longest = max(map(len, rows.values()), default=0)
    made = numpy.empty(len(values), numpy.asarray(like).dtype)
    made[:] = values
    return [
        numpy.array(positions, numpy.int64).reshape(-1, len(sizes) + 1),
        made,
        numpy.array([*sizes, longest], numpy.int64),
    ]


@example("a = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [5, 5, 7], [2, 2])", "tf.sets.set_size(a)", "[1 1]")
def set_size(a: Any, validate_indices: bool = True) -> Any:
    """How many different values each row of a sparse tensor has.

    ``validate_indices=False`` is about speed alone.
    """
    if not _is_sparse(a):
        raise TypeError(
            f"set_size: a value of type {type(a).__name__} is not sparse, at {here()}. Give a SparseTensor."
        )
    given = _inputs(a)

    def count(*arrays: Any) -> list[Any]:
        rows, sizes = _rows(list(arrays))
        made = numpy.zeros(sizes, numpy.int32)
        for key, row in rows.items():
            made[key] = len(row)
        return [made]

    rank = _rank(given)
    return in_python(
        "SetSize", count, given, [(int32, None if rank is None else (None,) * (rank - 1))], None
    )[0]


@example("tf.sets.set_intersection([[1, 2, 3]], [[3, 1, 9]]).values", "[1 3]")
def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """For each row of two tensors, dense or sparse ones, the values that both have, in order.

    ``validate_indices=False`` is about speed alone.
    """
    return _combined("set_intersection", a, b, lambda one, other: one & other)


@example("tf.sets.set_difference([[1, 2, 3]], [[3, 1, 9]]).values", "[2]")
def set_difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """For each row the values that ``a`` has and ``b`` has not, or the other way round unless ``aminusb``.

    ``validate_indices=False`` is about speed alone.
    """
    return _combined("set_difference", a, b, lambda one, other: one - other if aminusb else other - one)


@example("tf.sets.set_union([[1, 2, 3]], [[3, 1, 9]]).values", "[1 2 3 9]")
def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """For each row the values that one of them has, in order.

    ``validate_indices=False`` is about speed alone.
    """
    return _combined("set_union", a, b, lambda one, other: one | other)


size, intersection, difference, union = set_size, set_intersection, set_difference, set_union
