"""Loops of a declared graph: the user's functions declare their bodies once, a run repeats them.

Nothing is unrolled and no value is needed while declaring. Gradients, also of gradients, pass through
everything here; see ``twofold.ops.control_flow.programs`` for what they cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any

from twofold import _core
from twofold.dtypes import bool_, int64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.frontend.control import carried_names
from twofold.ir.shape_inference import UNKNOWN_RANK, new_unknown_size
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import apply
from twofold.runtime.calls import failed
from twofold.runtime.failures import end_in
from twofold.runtime.pytree import flatten, unflatten
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays.shape_ops import stack
from twofold.static.control_flow.choice import common_type, known_same
from twofold.static.functions.bodies import Body, source_of, tensor_of, trace_body
from twofold.static.functions.lowering import Repeat, Sizes, While
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Graph, Operation, Tensor, describe, get_default_graph, operation_of
from twofold.static.graph.inference import Source
from twofold.static.graph.tensor_shape import TensorShape, shape_text


@example(
    "i, x = tf.while_loop(lambda i, x: i < 5, lambda i, x: [i + 1, x * 2.0], [0, 1.0])",
    "print(*session.run([i, x]))",
    "5 32.0",
)
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """The loop variables after ``body`` has been repeated for as long as ``cond`` is true of them.

    Both functions declare their operations once. A variable keeps its dtype; ``shape_invariants`` says which of its
    sizes may change from iteration to iteration (None). A loop in which sizes do change, which writes variables or
    calls Python runs iteration by iteration: its first derivatives exist, no second ones. ``parallel_iterations``
    and ``swap_memory`` change nothing. With ``back_prop=False`` no derivative passes.
    """
    given = list(loop_vars) if isinstance(loop_vars, (list, tuple)) else [loop_vars]
    if at_once():
        return _looped(cond, body, given, maximum_iterations, back_prop, return_same_structure)
    values, _, structure = flatten(given, "loop_vars")
    names = carried_names(body, given, "loop_vars")
    arrays = Arrays(values)
    starts = [convert_to_tensor(value) for value in arrays.flows(values)]
    graph = operation_of(starts[0]).graph if starts else get_default_graph()
    types = _invariant_types(starts, names, shape_invariants)
    labels = [f"arg{k}" for k in range(len(types))]
    with graph.name_scope(name or "while"):
        condition = trace_body(
            graph, lambda *args: [cond(*unflatten(structure, arrays.put(args)))], types, labels, starts
        )
        (result,) = condition.results
        _check_condition(tensor_of(result))

        def declare(*args: Any) -> list[Any]:
            found = body(*unflatten(structure, arrays.put(args)))
            found = list(found) if isinstance(found, (list, tuple)) else [found]
            return arrays.flows(_returned("while_loop", found, structure, names, body))

        repeated = trace_body(graph, declare, types, labels, starts)
        outputs = _loop_types(types, starts, repeated, names)
        limit = [] if maximum_iterations is None else [convert_to_tensor(maximum_iterations)]
        given = [source_of(value) for value in (*starts, *limit)]
        varying = _is_varying(repeated, types, arrays)
        made = _repeated(graph, condition, repeated, names, given, outputs, arrays.growing(), varying)
        arrays.check_writes(made, repeated)
    results = list(made.outputs)
    if not back_prop:
        results = [apply("stop_gradient", value) for value in results]
    whole = unflatten(structure, arrays.after(made, results))
    return whole[0] if len(whole) == 1 and not return_same_structure else whole


def _looped(cond: Any, body: Any, carried: list[Any], most: Any, back_prop: bool, whole: bool) -> Any:
    """``while_loop`` on values."""
    made = 0
    carried = [value if hasattr(value, "with_flow") else _as_tensors(value) for value in carried]
    with _core.GradientMode(bool(_core.grad_enabled()) and back_prop):
        while (most is None or made < int(most)) and bool(cond(*carried)):
            found = body(*carried)
            carried = [_as_tensors(item) for item in (found if isinstance(found, (list, tuple)) else [found])]
            made += 1
    return carried[0] if len(carried) == 1 and not whole else carried


def _as_tensors(value: Any) -> Any:
    values, _, structure = flatten(value, "value")
    return unflatten(
        structure, [item if hasattr(item, "with_flow") else convert_to_tensor(item) for item in values]
    )


def _is_varying(body: Body, types: Sequence[TensorType], arrays: Arrays) -> bool:
    """Whether a variable may leave the body with other sizes than it entered with."""
    pairs = list(zip((tensor_of(source).type_ for source in body.results), types))
    return any(not known_same(*pair) for k, pair in enumerate(pairs) if k not in arrays.positions())


def _repeated(
    graph: Graph,
    condition: Body,
    body: Body,
    names: Sequence[str],
    given: list[Source],
    outputs: Sequence[TensorType],
    growing: Sequence[int],
    varying: bool,
) -> Operation:
    limited = len(given) > len(names)
    if varying or not growing or any(part.with_effects() for part in (condition, body)):
        flow = While(condition, body, names, limited, varying=varying)
        return flow.declare(graph, "While", "Exit", outputs, given)
    counts = [tensor_type(int64)] * len(growing)
    sizes = Sizes(condition, body, names, limited, growing)
    counted = sizes.declare(graph, "TensorArraySizes", None, counts, given)
    whole = [*given, *[(counted, k) for k in range(len(growing))]]
    made = While(condition, body, names, limited, growing).declare(graph, "While", "Exit", outputs, whole)
    made.host = frozenset(range(len(given), len(whole)))
    return made


def _returned(
    operation: str,
    found: Any,
    structure: Any,
    names: Sequence[str],
    body: Callable[..., Any],
    what_for: str = "loop variables",
) -> list[Any]:
    """What a body returned; an error ends at the line that returns something else than is carried."""
    values, _, shape = flatten(_in_order(found, structure), "")
    if len(values) != len(names):
        what = f"the body returns {len(values)} values for {len(names)} {what_for}"
        error = failed(operation, ArgumentError(what, "Return a value for each of them, in order."))
        raise end_in(error, body, None)
    if repr(shape) != repr(structure):
        what = f"the body returns the structure {shape!r} for {structure!r}"
        error = failed(operation, ArgumentError(what, f"Return the {what_for} in their structure."))
        raise end_in(error, body, None)
    return values


def _in_order(found: Any, structure: Any) -> Any:
    """What a body returned, with its dicts in the order of those of a structure."""
    if isinstance(structure, dict):
        if not isinstance(found, dict) or found.keys() != structure.keys():
            return found
        return {key: _in_order(found[key], kind) for key, kind in structure.items()}
    if not isinstance(structure, (list, tuple)) or not isinstance(found, (list, tuple)):
        return found
    if len(found) != len(structure):
        return found
    items = [_in_order(item, kind) for item, kind in zip(found, structure)]
    return type(found)(*items) if hasattr(found, "_fields") else type(found)(items)


def _invariant_types(starts: Sequence[Tensor], names: Sequence[str], invariants: Any) -> list[TensorType]:
    types = [start.type_ for start in starts]
    if invariants is None:
        return types
    shapes: list[Any] = []
    _collect_shapes(invariants, shapes)
    if len(shapes) != len(types):
        what = f"{len(shapes)} shape invariants for {len(types)} loop variables"
        raise failed("while_loop", ArgumentError(what, "Give one for each, in their structure."))
    found = []
    for start, name, shape in zip(starts, names, shapes):
        wanted = TensorShape(shape)
        if not wanted.is_compatible_with(TensorShape([None if n < 0 else n for n in start.type_.shape])):
            what = f"{name} enters as {describe(start)}, which its invariant {wanted} does not allow"
            raise failed("while_loop", ShapeError(what, "Leave the sizes open that differ (None)."))
        if wanted.dims is None:
            found.append(tensor_type(start.dtype, UNKNOWN_RANK))
            continue
        sizes = [dimension.value for dimension in wanted.dims]
        found.append(tensor_type(start.dtype, tuple(new_unknown_size() if n is None else n for n in sizes)))
    return found


def _collect_shapes(value: Any, shapes: list[Any]) -> None:
    if isinstance(value, TensorShape) or value is None:
        shapes.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            _collect_shapes(item, shapes)
    elif (
        isinstance(value, (list, tuple))
        and all(item is None or isinstance(item, int) for item in value)
        and value
    ):
        shapes.append(value)
    else:
        for item in value:
            _collect_shapes(item, shapes)


def _loop_types(
    types: Sequence[TensorType], starts: Sequence[Tensor], body: Body, names: Sequence[str]
) -> list[TensorType]:
    """The types of the loop's results; raises the error of a variable that changes its type."""
    outputs = []
    for type, start, source, name in zip(types, starts, body.results, names):
        found = tensor_of(source)
        _check_carried("while_loop", name, type, start, found, f"; its invariant is {shape_text(type.shape)}")
        unwritten = type.shape == UNKNOWN_RANK and start.type_.shape == UNKNOWN_RANK
        outputs.append(found.type_ if unwritten else common_type(type, found.type_))
    return outputs


def _check_condition(result: Tensor) -> None:
    """Raise DTypeError where the condition of a loop is no truth value."""
    if result.dtype is not bool_:
        fix = "Compare it with something, such as i < n."
        raise failed("while_loop", DTypeError(f"cond returns {describe(result)}, not bool", fix), result)


def _check_carried(
    operation: str, name: str, type: TensorType, start: Tensor, found: Tensor, more: str = ""
) -> None:
    """Raise DTypeError or ShapeError where a carried value leaves the body with another type."""
    what = f"{name} enters as {describe(start)} and leaves the body as {describe(found)}"
    if found.dtype is not type.dtype:
        fix = f"Make the body return the dtype that it was given, with tf.cast(..., tf.{type.dtype.name})."
        raise failed(operation, DTypeError(what, fix), _origin(found, start))
    if not _compatible(type, found.type_):
        fix = "Make the body return the shape that it was given, or leave its unknown sizes open."
        raise failed(operation, ShapeError(what + more, fix), _origin(found, start))


def _origin(found: Tensor, start: Tensor) -> Tensor:
    """The first value in the body with the wrong dtype or shape of one that leaves it, which enters as ``start``."""
    is_dtype = found.dtype is not start.dtype
    while True:
        inside = [one for one in found.op.inputs if one.op.inputs and one.op.number > start.op.number]
        wrong = [
            one
            for one in inside
            if (one.dtype is found.dtype if is_dtype else one.type_.shape == found.type_.shape)
        ]
        if not wrong:
            return found
        found = wrong[0]


class Arrays:
    """Which loop variables are tensor arrays: they go round as their flows."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._arrays = {k: value for k, value in enumerate(values) if hasattr(value, "with_flow")}

    def positions(self) -> list[int]:
        """The positions of all of them."""
        return list(self._arrays)

    def growing(self) -> list[int]:
        """The positions of those that may grow."""
        return [k for k, array in self._arrays.items() if array.dynamic_size]

    def flows(self, values: Sequence[Any]) -> list[Any]:
        """The values with arrays as their flows; raises ArgumentError for those that are split in the body."""
        for k, array in self._arrays.items():
            array.need_same_parts(values[k : k + 1])
        return [value.flow if hasattr(value, "with_flow") else value for value in values]

    def put(self, values: Sequence[Any]) -> list[Any]:
        """The values with flows as arrays again, as the body is given them."""
        return [
            self._arrays[k].inside(value) if k in self._arrays else value for k, value in enumerate(values)
        ]

    def after(self, made: Operation, values: Sequence[Any]) -> list[Any]:
        """The results of a loop with flows as arrays again."""
        arrays = self._arrays
        return [arrays[k].after(made, k, value) if k in arrays else value for k, value in enumerate(values)]

    def check_writes(self, made: Operation, body: Body) -> None:
        """Have runs check that each element is written once, where the body does not tell."""
        if not self._arrays:
            return
        rule = import_module("twofold.static.control_flow.written_once")  # loads much
        flow: Any = made.flow or made.hosted
        for k, array in self._arrays.items():
            if rule.writes_once(body, k) and array.written_before() == frozenset():
                continue
            flow.checked[k] = array.known_written()


def _compatible(a: TensorType, b: TensorType) -> bool:
    if a.shape == UNKNOWN_RANK or b.shape == UNKNOWN_RANK:
        return True
    return len(a.shape) == len(b.shape) and all(m == n or m < 0 or n < 0 for m, n in zip(a.shape, b.shape))


def repeat(
    operation: str,
    function: Callable[..., tuple[Sequence[Any], Sequence[Any]]],
    carried: Sequence[Tensor],
    names: Sequence[str],
    arrays: Sequence[Tensor],
    reverse: bool,
    scope: str,
) -> list[Tensor]:
    """The last carried values and the stacked results of a function of carried values and rows."""
    if at_once():
        return _along(function, list(carried), list(arrays), reverse)
    graph = operation_of(arrays[0]).graph
    for array in arrays:
        if not array.type_.shape:
            what = f"{describe(array)} has no axis to go along"
            raise failed(operation, ShapeError(what, "Give a tensor with at least one axis."))
    lengths = [array.type_.shape[0] if array.type_.shape != UNKNOWN_RANK else -1 for array in arrays]
    types = [value.type_ for value in carried]
    types += [
        tensor_type(array.dtype, array.type_.shape[1:] if array.type_.shape != UNKNOWN_RANK else UNKNOWN_RANK)
        for array in arrays
    ]

    def declare(*values: Any) -> list[Any]:
        new, rows = function(values[: len(carried)], values[len(carried) :])
        return [*new, *rows]

    inner = nullcontext() if scope == "while" else graph.name_scope("while")
    with graph.name_scope(scope), inner:
        own = [f"Identity_{k + 2 + (scope == 'while')}" for k in range(len(carried))]
        body = trace_body(graph, declare, types, [*own, *["TensorArrayReadV3"] * len(arrays)], carried)
        outputs = _carried_types(operation, types, carried, body, names)
        length = next((n for n in lengths if n >= 0), lengths[0] if lengths[0] < -1 else new_unknown_size())
        for source in body.results[len(carried) :]:
            type = tensor_of(source).type_
            shape = UNKNOWN_RANK if type.shape == UNKNOWN_RANK else (length, *type.shape)
            outputs.append(tensor_type(type.dtype, shape))
        flow = Repeat(operation, body, names, len(arrays), reverse)
        made = flow.declare(graph, "Scan", None, outputs, [source_of(v) for v in (*carried, *arrays)])
    return list(made.outputs)


def _along(function: Any, carried: list[Any], arrays: list[Any], reverse: bool) -> list[Any]:
    """``repeat`` on values."""
    count = arrays[0].shape[0]
    rows: list[Any] = []
    for k in range(count)[::-1] if reverse else range(count):
        new, row = function(carried, [array[k] for array in arrays])
        carried = list(new)
        rows.append(row)
    rows = rows[::-1] if reverse else rows
    return [*carried, *[stack([row[k] for row in rows]) for k in range(len(rows[0]) if rows else 0)]]


def _carried_types(
    operation: str, types: Sequence[TensorType], starts: Sequence[Tensor], body: Body, names: Sequence[str]
) -> list[TensorType]:
    found = []
    for type, start, source, name in zip(types, starts, body.results, names):
        value = tensor_of(source)
        _check_carried(operation, name, type, start, value)
        found.append(common_type(type, value.type_))
    return found
