"""Rows of variables changed by number: ``tf.scatter_update`` and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.dtypes import int64
from twofold.errors import ShapeError
from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays.indexing import scattered
from twofold.static.autodiff.indexed_slices import IndexedSlices
from twofold.static.graph.docstrings import START, described
from twofold.static.variables.variable import Variable, update, variable_of


def _flat(state: Any, indices: Any, updates: Any) -> tuple[Any, Any]:
    positions = ops.reshape(ops.cast(indices, int64), (-1,))
    rest = tuple(state.shape)[1:]
    if tuple(updates.shape) not in ((), (*indices.shape, *rest)):
        what = f"updates of shape {tuple(updates.shape)} for {tuple(indices.shape)} slices of {rest}"
        raise ShapeError(what, f"Give the shape {(*indices.shape, *rest)}, or a number for all.")
    return positions, ops.reshape(ops.broadcast_to(updates, (*indices.shape, *rest)), (-1, *rest))


def _put(state: Any, indices: Any, updates: Any) -> Any:
    return ops.index_copy(state, 0, *_flat(state, indices, updates))


def _add(state: Any, indices: Any, updates: Any) -> Any:
    return ops.index_add(state, 0, *_flat(state, indices, updates))


def _sub(state: Any, indices: Any, updates: Any) -> Any:
    return _add(state, indices, ops.negative(updates))


def _reduced(how: str) -> Callable[[Any, Any, Any], Any]:
    return lambda state, indices, updates: ops.index_reduce(state, 0, *_flat(state, indices, updates), how)


def _div(state: Any, indices: Any, updates: Any) -> Any:
    return ops.index_reduce(state, 0, *_flat(state, indices, ops.reciprocal(updates)), "prod")


def _positions(how: str) -> Callable[[Any, Any, Any], Any]:
    return lambda state, indices, updates: scattered(state, indices, updates, how)


def _method(own: str, function: Callable[..., Any]) -> None:
    """Give variables ``function`` as a method: of ``IndexedSlices``, or of positions and what goes there."""

    def at_positions(self: Variable, indices: Any, updates: Any, name: str | None = None) -> Any:
        return function(self, indices, updates, name=name)

    def of_slices(
        self: Variable, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(
                f"sparse_delta is not IndexedSlices: {sparse_delta}, at {here()}. Give tf.IndexedSlices."
            )
        return function(self, sparse_delta.indices, sparse_delta.values, name=name)

    method = at_positions if "_nd_" in own else of_slices
    setattr(Variable, own, described(method, own, f"``tf.{own}`` of this variable."))


def _rows(
    name: str, body: Callable[[Any, Any, Any], Any], words: str, update_with: str, result: str
) -> Callable[..., Any]:
    type = name.title().replace("_", "")

    def function(
        ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
    ) -> Any:
        variable = variable_of(ref)
        values = convert_to_tensor(updates, variable.dtype)
        given = [convert_to_tensor(indices), values]
        return update(type, [variable], body, given, {}, name).outputs[0]

    text = f"{words} a variable at ``indices``; the result is the new value."
    _method(name, function)
    shown = f"tf.{name}(v, {'[[0]]' if '_nd_' in name else '[0]'}, [{update_with}])"
    return described(function, name, text, "v = tf.Variable([1.0, 2.0])", START, shown, result)


scatter_update = _rows("scatter_update", _put, "Put ``updates`` in the rows of", "10.0", "[10. 2.]")
scatter_add = _rows("scatter_add", _add, "Add ``updates`` to the rows of", "10.0", "[11. 2.]")
scatter_sub = _rows("scatter_sub", _sub, "Subtract ``updates`` from the rows of", "10.0", "[-9. 2.]")
scatter_mul = _rows(
    "scatter_mul", _reduced("prod"), "Multiply by ``updates`` the rows of", "10.0", "[10. 2.]"
)
scatter_div = _rows("scatter_div", _div, "Divide by ``updates`` the rows of", "4.0", "[0.25 2. ]")
scatter_min = _rows(
    "scatter_min", _reduced("amin"), "Keep the smaller of ``updates`` and the rows of", "-1.0", "[-1. 2.]"
)
scatter_max = _rows(
    "scatter_max", _reduced("amax"), "Keep the larger of ``updates`` and the rows of", "10.0", "[10. 2.]"
)
scatter_nd_update = _rows("scatter_nd_update", _positions("set"), "Put ``updates`` in", "10.0", "[10. 2.]")
scatter_nd_add = _rows("scatter_nd_add", _positions("add"), "Add ``updates`` to", "10.0", "[11. 2.]")
scatter_nd_sub = _rows("scatter_nd_sub", _positions("sub"), "Subtract ``updates`` from", "10.0", "[-9. 2.]")
