"""Positions in tensors: keys in brackets, and the slices that an array of numbers points at."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError
from twofold.frontend.elements import __getitem__ as _index_tensor
from twofold.ir.node import Node
from twofold.ir.sizes import index
from twofold.ops.base import apply, ops
from twofold.ops.indexing.gather import NONNEGATIVE
from twofold.ops.indexing.keys import getitem, setitem
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import (
    Tensors,
    as_tensor,
    define,
    full_of,
    is_tensor_like,
    operation,
    whole,
)

_SLICE = type(numpy.s_[:])


def _index(value: Any, *parts: Any, form: Any) -> Any:
    return indexed(value, _restored(form, [whole(part) for part in parts]))


def indexed(value: Any, key: Any) -> Any:
    """``value[key]`` inside a body."""
    if isinstance(value, Node):
        return getitem(value, key, numpy.asarray, numpy.asarray)
    return _index_tensor(value, key)


def _flattened(key: Any, found: list[Any], scalars: list[Any]) -> Any:
    """The form of a key; ``found`` gets the tensors whose numbers it needs, ``scalars`` those that select."""
    if _selects(key):
        scalars.append(as_tensor(key))
        return ("at", len(scalars) - 1)
    if isinstance(key, _SLICE):
        return ("slice", *[_bound(item, found) for item in (key.start, key.stop, key.step)])
    if isinstance(key, tuple):
        return ("tuple", *[_flattened(item, found, scalars) for item in key])
    return _bound(key, found)


def _bound(key: Any, found: list[Any]) -> Any:
    if is_tensor_like(key):
        found.append(as_tensor(key))
        return ("part", len(found) - 1)
    if hasattr(key, "value") and hasattr(key, "__index__"):
        return ("is", int(key))
    return ("is", key)


def _selects(key: Any) -> bool:
    """Whether a key is an integer tensor of no axes, which may differ from run to run, or pass to pass of a loop."""
    if not is_tensor_like(key):
        return False
    found = as_tensor(key)
    return found.type_.ndim == 0 and found.type_.shape == () and found.dtype.kind in "iu"


def _selected_axes(form: Any, ndim: int) -> list[int]:
    """The axes that scalar tensors of a key select on, of what the rest of the key shows."""
    parts = form[1:] if form[0] == "tuple" else (form,)
    used = sum(part not in (("is", None), ("is", Ellipsis)) for part in parts)
    axes, axis = [], 0
    for part in parts:
        if part[0] == "at":
            axes.append(axis)
        if part == ("is", Ellipsis):
            axis += ndim - used
        elif part == ("is", None) or part[0] in ("slice", "at"):
            axis += 1
    return axes


def _restored(form: Any, parts: Sequence[Any]) -> Any:
    kind, *rest = form
    if kind == "part":
        return parts[rest[0]]
    if kind == "at":
        return _SLICE(None)
    if kind == "slice":
        return _SLICE(*[_restored(item, parts) for item in rest])
    if kind == "tuple":
        return tuple(_restored(item, parts) for item in rest)
    return rest[0]


def strided_slice_of(tensor: Any, key: Any) -> Any:
    """``tensor[key]`` for a declared tensor."""
    found: list[Any] = []
    scalars: list[Any] = []
    form = _flattened(key, found, scalars)
    keywords = {f"part{k}": part for k, part in enumerate(found)}

    def body(value: Any, *positions: Any, form: Any, **parts: Any) -> Any:
        made = _index(value, *parts.values(), form=form)
        axes = _selected_axes(form, len(value.shape)) if positions else []
        for axis, position in zip(reversed(axes), reversed(positions)):
            made = apply("index", made, position, attrs=((axis,),))
        return made

    return define(
        "StridedSlice",
        body,
        (tensor, *scalars),
        {"form": _Frozen(form), **keywords},
        "strided_slice",
        frozenset(keywords),
    ).outputs[0]


def written_at(key: Any) -> Callable[[Any, Any], Any]:
    """What a tensor is after ``tensor[key] = value``, for a body; raises ArgumentError for tensors in ``key``."""
    for item in key if isinstance(key, tuple) else (key,):
        bounds = (item.start, item.stop, item.step) if isinstance(item, _SLICE) else (item,)
        if any(is_tensor_like(bound) for bound in bounds):
            what = f"a tensor in the brackets of what is assigned to, at {here()}"
            raise ArgumentError(what, "Give numbers and slices, or use tf.scatter_nd_update.")
    return lambda state, value: setitem(state, key, value, numpy.asarray, numpy.asarray)


class _Frozen(tuple):
    """A tuple that argument handling leaves alone."""


def flat_indices(indices: Any, shape: tuple[int, ...], checked: bool = True) -> Any:
    """The numbers, in row-major order, of the slices that the last axis of ``indices`` points at.

    A run raises IndexRangeError for a position outside, unless ``checked`` is false.
    """
    depth = index(indices.shape[-1])
    if depth > len(shape):
        raise ArgumentError(
            f"positions of {depth} numbers in shape {shape}", "Give at most one for each axis."
        )
    parts = [ops.reshape(ops.cast(ops.select(indices, -1, axis), int64), (-1,)) for axis in range(depth)]
    if checked and depth:
        return apply("linear_index", *parts, attrs=(tuple(shape[:depth]), NONNEGATIVE))
    position: Any = full_of(0, (math.prod(tuple(indices.shape)[:-1]),), int64, indices)
    for size, part in zip(shape, parts):
        position = ops.add(ops.multiply(position, size), part)
    return position


def scattered(base: Any, indices: Any, updates: Any, how: str) -> Any:
    """``base`` with slices put at, added at or subtracted at (set, add, sub) the positions ``indices``."""
    shape, depth = tuple(base.shape), index(indices.shape[-1])
    count = 1
    for size in shape[:depth]:
        count *= size
    rows = ops.reshape(base, (count, *shape[depth:]))
    given = ops.reshape(updates, (-1, *shape[depth:]))
    positions = flat_indices(indices, shape)
    if how == "set":
        made = ops.index_copy(rows, 0, positions, given)
    else:
        made = ops.index_add(rows, 0, positions, ops.negative(given) if how == "sub" else given)
    return ops.reshape(made, shape)


@operation("Max")
def count_up_to(indices: Tensors) -> Any:
    """One more than the largest of the numbers, 0 if there are none."""
    flat = [ops.cast(ops.reshape(positions, (-1,)), int64) for positions in indices]
    return ops.add(ops.amax(ops.concat([*flat, full_of(-1, (1,), int64, flat[0])], 0)), 1)
