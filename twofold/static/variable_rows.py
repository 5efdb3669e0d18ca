"""Rows of variables changed by number: ``tf.scatter_update`` and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.dtypes import int64
from twofold.ops.base import ops
from twofold.static.define import convert_to_tensor
from twofold.static.docstrings import declared as _declared
from twofold.static.positions import scattered
from twofold.static.variables import update, variable_of


def _flat(state: Any, indices: Any, updates: Any) -> tuple[Any, Any]:
    places = ops.reshape(ops.cast(indices, int64), (-1,))
    rest = tuple(state.shape)[1:]
    return places, ops.reshape(ops.broadcast_to(updates, (*indices.shape, *rest)), (-1, *rest))


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


def _rows(name: str, type: str, body: Callable[[Any, Any, Any], Any], words: str) -> Callable[..., Any]:
    def function(
        ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
    ) -> Any:
        variable = variable_of(ref)
        values = convert_to_tensor(updates, variable.dtype)
        places = convert_to_tensor(indices)
        return update(type, [variable], body, [places, values], {}, name).outputs[0]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _declared(f"{words} a variable at ``indices``; the result is the new value.", name)
    return function


scatter_update = _rows("scatter_update", "ScatterUpdate", _put, "Put ``updates`` in the rows of")
scatter_add = _rows("scatter_add", "ScatterAdd", _add, "Add ``updates`` to the rows of")
scatter_sub = _rows("scatter_sub", "ScatterSub", _sub, "Subtract ``updates`` from the rows of")
scatter_mul = _rows("scatter_mul", "ScatterMul", _reduced("prod"), "Multiply by ``updates`` the rows of")
scatter_div = _rows("scatter_div", "ScatterDiv", _div, "Divide by ``updates`` the rows of")
scatter_min = _rows(
    "scatter_min", "ScatterMin", _reduced("amin"), "Keep the smaller of ``updates`` and the rows of"
)
scatter_max = _rows(
    "scatter_max", "ScatterMax", _reduced("amax"), "Keep the larger of ``updates`` and the rows of"
)
scatter_nd_update = _rows("scatter_nd_update", "ScatterNdUpdate", _positions("set"), "Put ``updates`` in")
scatter_nd_add = _rows("scatter_nd_add", "ScatterNdAdd", _positions("add"), "Add ``updates`` to")
scatter_nd_sub = _rows("scatter_nd_sub", "ScatterNdSub", _positions("sub"), "Subtract ``updates`` from")
