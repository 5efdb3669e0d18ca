"""Loops over the first axis of tensors: ``map_fn``, ``scan`` and folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.errors import ArgumentError, DTypeError
from twofold.ops.base import apply
from twofold.runtime.calls import failed
from twofold.runtime.pytree import flatten, unflatten
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.arrays.shape_ops import concat, expand_dims
from twofold.static.control_flow.while_loop import _returned, repeat
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import described, example
from twofold.static.graph.graph import Tensor, get_default_graph, operation_of


def _elements(operation: str, elems: Any) -> tuple[list[Tensor], Any]:
    values, _, structure = flatten(elems, "elems")
    arrays = [convert_to_tensor(value) for value in values]
    if not arrays:
        raise failed(operation, ArgumentError("elems holds no tensor", "Give at least one."))
    return arrays, structure


@example("tf.map_fn(lambda x: x * x, tf.constant([1, 2, 3]))", "[1 4 9]")
def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """``fn`` of each slice of ``elems`` along the first axis, stacked; both may be nested structures.

    ``parallel_iterations``, ``swap_memory`` and ``infer_shape`` change nothing.

    ``dtype`` gives the dtypes of the results in their structure, where these are not those of ``elems``. Raises
    DTypeError for results of other dtypes, ArgumentError for another structure.
    """
    arrays, structure = _elements("map_fn", elems)
    kinds, names, wanted = [array.dtype for array in arrays], flatten(elems, "elems")[1], structure
    if dtype is not None:
        given, names, wanted = flatten(dtype, "dtype")
        kinds = [as_dtype(item) for item in given]

    def step(_: Sequence[Any], rows: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        found = fn(unflatten(structure, rows))
        return [], [
            convert_to_tensor(value) for value in _returned("map_fn", found, wanted, names, fn, "results")
        ]

    results = repeat("map_fn", step, [], [], arrays, False, name or "map")
    if [value.dtype for value in results] != kinds:
        found = ", ".join(value.dtype.name for value in results)
        who = "elems are" if dtype is None else "dtype says"
        what = f"fn returns {found}, and {who} {', '.join(item.name for item in kinds)}"
        raise failed("map_fn", DTypeError(what, "Cast in fn, or give dtype."), results[0])
    return unflatten(wanted, _without_gradient(results, back_prop))


def _without_gradient(results: list[Tensor], back_prop: bool) -> list[Tensor]:
    return results if back_prop else [apply("stop_gradient", value) for value in results]


def _accumulate(
    operation: str,
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any,
    reverse: bool,
    stacked: bool,
    scope: str,
    back_prop: bool,
) -> Any:
    arrays, structure = _elements(operation, elems)
    graph = get_default_graph() if at_once() else operation_of(arrays[0]).graph
    with graph.name_scope(scope) as path:
        first: list[Any] = []
        if initializer is None:
            position = -1 if reverse else 0
            first = [array[position] for array in arrays]
            starts, names, carry = first, flatten(elems, "elems")[1], structure
            arrays = [array[:-1] if reverse else array[1:] for array in arrays]
        else:
            values, names, carry = flatten(initializer, "initializer")
            starts = [convert_to_tensor(value) for value in values]

        def step(carried: Sequence[Any], rows: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
            found = fn(unflatten(carry, carried), unflatten(structure, rows))
            new = [convert_to_tensor(value) for value in _returned(operation, found, carry, names, fn)]
            return new, new if stacked else []

        results = repeat(operation, step, starts, names, arrays, reverse, path)
        found = results[len(starts) :] if stacked else results
        if stacked and first:
            joined = []
            for start, rest in zip(first, found):
                row = expand_dims(start, 0)
                joined.append(concat([rest, row] if reverse else [row, rest], 0))
            found = joined
        return unflatten(carry, _without_gradient(found, back_prop))


@example("tf.scan(lambda total, x: total + x, tf.constant([1, 2, 3]))", "[1 3 6]")
def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All running results of ``fn(accumulated, slice)`` along the first axis of ``elems``, stacked.

    ``parallel_iterations``, ``swap_memory`` and ``infer_shape`` change nothing.

    Without ``initializer`` the first slice is the first result. With ``reverse`` the last slice comes first.
    """
    return _accumulate("scan", fn, elems, initializer, reverse, True, name or "scan", back_prop)


def _fold(operation: str, reverse: bool, text: str, example: str) -> Callable[..., Any]:
    def fold(
        fn: Callable[[Any, Any], Any],
        elems: Any,
        initializer: Any = None,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str | None = None,
    ) -> Any:
        return _accumulate(operation, fn, elems, initializer, reverse, False, name or operation, back_prop)

    more = "``parallel_iterations`` and ``swap_memory`` change nothing."
    return described(fold, operation, f"{text}\n\n{more}", f"tf.{operation}({example})", "7")


foldl = _fold(
    "foldl", False, "The last result of ``scan``.", "lambda total, x: total - x, tf.constant([10, 1, 2])"
)
foldr = _fold(
    "foldr",
    True,
    "The last result of ``scan`` from the last slice to the first.",
    "lambda total, x: total - x, tf.constant([1, 2, 10])",
)
