"""``gradients``: derivatives of declared tensors, as declared tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from numpy import ndarray

from twofold.errors import ArgumentError, DTypeError, GradientError
from twofold.frontend.transforms import second_derivatives
from twofold.ir.types import tensor_type
from twofold.ops.base import apply
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_tensor, convert_to_tensor, is_tensor_like
from twofold.static.arrays import creation, shape_ops
from twofold.static.autodiff.derivatives import (
    Derivative,
    depends_on_argument,
    operations_between,
    rules_above,
)
from twofold.static.autodiff.indexed_slices import gradient_of_rows, table_of
from twofold.static.autodiff.loop_gradients import LoopGradient
from twofold.static.functions.bodies import ARGUMENT, source_of, sources_of, tensor_of
from twofold.static.functions.custom_gradients import refuse_rules, rule_of
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Operation, Tensor, describe, owner_of
from twofold.static.graph.graph_elements import Slot
from twofold.static.graph.inference import Source

_BLOCKING = "StopGradient"


def as_list(value: Any) -> list[Any]:
    """One value or several; views of a dictionary and generators count as several, as a list does."""
    if is_tensor_like(value) or isinstance(value, (str, bytes, ndarray)) or not isinstance(value, Iterable):
        return [value]
    return [value[key] for key in sorted(value)] if isinstance(value, Mapping) else list(value)


@example("print(tf.AggregationMethod.DEFAULT)", "0")
class AggregationMethod:
    """How ``gradients`` adds up terms; the choice changes nothing."""

    ADD_N = DEFAULT = 0
    EXPERIMENTAL_TREE, EXPERIMENTAL_ACCUMULATE_N = 1, 2


class UnconnectedGradients(Enum):
    """What ``gradients`` returns where there is no path: None, or zeros."""

    NONE = "none"
    ZERO = "zero"


def _source(value: Any, what: str) -> Source:
    tensor = as_tensor(value)
    found = owner_of(tensor) if isinstance(tensor, Tensor) else None
    if found is None:
        raise TypeError(
            f"gradients: {what} of type {type(value).__name__} is not a tensor of a graph, at "
            f"{here()}. Give tensors or variables."
        )
    return found


def _seed(root: Tensor, seed: Any) -> Source:
    """One of ``grad_ys`` in the type of its root, to whose shape it broadcasts."""
    made = convert_to_tensor(seed, None if is_tensor_like(seed) or isinstance(seed, ndarray) else root.dtype)
    if made.dtype is not root.dtype:
        what = f"gradients: one of grad_ys is {describe(made)}, of {describe(root)}, at {here()}"
        raise DTypeError(what, f"Cast it to {root.dtype.name}.")
    shape = root.get_shape()
    if not (shape.is_fully_defined() and made.get_shape().as_list() == shape.as_list()):
        made = creation.broadcast_to(made, shape if shape.is_fully_defined() else shape_ops.shape(root))
    return _source(made, "one of grad_ys")


def _reached(source: Source, blocked: set[Source], hosted: list[Operation]) -> set[Source]:
    """All tensors that one depends on through floating values, up to loops on the host, which are noted."""
    root = source[0]
    reached = {source}
    seen = {root}
    stack = [] if source in blocked else [root]
    while stack:
        operation = stack.pop()
        if operation.hosted:
            hosted.append(operation)
            continue
        if operation.type == _BLOCKING or operation.python is not None or operation.updates:
            continue
        for source in _differentiable(operation):
            owner, index = source
            if not owner.outputs[index].type_.dtype.is_differentiable:
                continue
            reached.add(source)
            if owner not in seen and source not in blocked:
                seen.add(owner)
                stack.append(owner)
    return reached


def _differentiable(operation: Operation) -> list[Source]:
    """The values that an operation may have derivatives by."""
    if operation.gradient is not None:
        return [operation.sources[position] for position in rule_of(operation).positions]
    return sources_of(operation)


@example("x = tf.constant(3.0)", "tf.gradients(x * x, x)[0]", "6.0")
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> list[Any]:
    """For each of ``xs`` the derivative of the sum of all elements of all ``ys``; None where there is no path.

    That by a table of which only rows are looked up (``gather``, ``embedding_lookup``) is an ``IndexedSlices``: the
    derivatives by the rows. It becomes a tensor where one is expected. Look-ups inside of loops and choices give the
    whole tensor.

    ``unconnected_gradients=tf.UnconnectedGradients.ZERO`` gives zeros where there is no path.
    ``colocate_gradients_with_ops``, ``gate_gradients`` and ``aggregation_method`` change nothing.

    ``grad_ys`` weights the elements of ``ys``. ``stop_gradients`` are taken for constants: no derivative passes
    through them, but those by them exist. The derivative by a variable is that by all its reads; none passes through
    an update. Raises GradientError for integer ``ys`` and second derivatives through loops with effects, TypeError
    for what is no tensor.
    """
    if at_once():
        raise RuntimeError(
            f"tf.gradients is not supported when eager execution is enabled, at {here()}. Use tf.GradientTape instead."
        )
    roots = [_source(y, "one of ys") for y in as_list(ys)]
    targets = [_source(x, "one of xs") for x in as_list(xs)]
    given = as_list(grad_ys) if grad_ys is not None else [None] * len(roots)
    blocked = {_source(item, "one of stop_gradients") for item in as_list(stop_gradients or [])}
    if len(given) != len(roots):
        what = f"gradients: {len(roots)} ys and {len(given)} grad_ys, at {here()}"
        raise ArgumentError(what, "Give one for each, None for ones.")
    _check_roots(roots, given)
    seeds = [None if seed is None else _seed(tensor_of(root), seed) for root, seed in zip(roots, given)]
    zeros = UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO
    look_ups = _look_ups(roots, targets, blocked)
    wanted = [target for target in targets if target not in look_ups]
    wanted += [(operation, 0) for found in look_ups.values() for operation in found]
    parts = dict(zip(wanted, derivatives(roots, seeds, wanted, blocked, name)))
    results: list[Any] = []
    for target in targets:
        if target in look_ups:
            rows = look_ups[target]
            found: Any = gradient_of_rows(target, rows, [parts[operation, 0] for operation in rows])
        else:
            part = parts[target]
            found = None if part is None else tensor_of(part)
        results.append(_zeros_of(tensor_of(target)) if found is None and zeros else found)
    return results


def _check_roots(roots: Sequence[Source], given: Sequence[Any]) -> None:
    """Raise unless these can be differentiated with the weights given."""
    for (owner, index), seed in zip(roots, given):
        root = owner.outputs[index]
        if not root.dtype.is_differentiable:
            raise GradientError(
                f"gradients: {describe(root)} is not a floating tensor, at {here()}", "Differentiate a loss."
            )
        if root.dtype.is_complex and seed is None:
            raise TypeError(
                f"Gradients of complex tensors must set grad_ys: {describe(root)}, at {here()}. Give weights."
            )


def _zeros_of(tensor: Tensor) -> Tensor:
    """Zeros of its shape, which need no value of a variable where that is known."""
    shape = tensor.get_shape()
    return creation.zeros(shape, tensor.dtype) if shape.is_fully_defined() else creation.zeros_like(tensor)


def _look_ups(
    roots: Sequence[Source], targets: Sequence[Source], blocked: set[Source]
) -> dict[Source, list[Operation]]:
    """The targets of which the roots read nothing but rows by number, with the operations that look these up."""
    declared = roots[0][0].graph.get_operations() if roots else ()
    tables = {table_of(operation) for operation in declared}
    readers: dict[Source, list[Operation]] = {t: [] for t in targets if t in tables and t not in roots}
    if not readers:
        return {}
    seen: set[Operation] = set()
    pending = list(roots)
    while pending:
        hosted: list[Operation] = []
        owners = {source[0] for source in _reached(pending.pop(), blocked, hosted)} | set(hosted)
        for operation in owners - seen:
            for source in {*sources_of(operation), *getattr(operation.hosted, "current", ())}:
                if source in readers:
                    readers[source].append(operation)
                if operation.hosted and _is_floating(source):
                    pending.append(source)  # a loop on the host is the end of what was reached
        seen |= owners
    return {
        target: sorted(found, key=lambda operation: operation.number)
        for target, found in readers.items()
        if found and all(table_of(operation) == target for operation in found)
    }


def derivatives(
    roots: Sequence[Source],
    seeds: Sequence[Source | None],
    targets: Sequence[Source],
    blocked: set[Source],
    name: str | None,
    fence: set[Source] | frozenset[Source] = frozenset(),
) -> list[Source | None]:
    """The derivatives of ``roots``, weighted by ``seeds``, by ``targets``; None where there is no path.

    Loops on the host are ends of paths of their own, and are gone through from the last to the first. Nothing behind
    ``fence`` is looked at.
    """
    ends, wished = blocked | fence, set(targets)
    loops: list[Operation] = []
    reached = [_reached(root, ends, loops) for root in roots]
    loops = [loop for loop in dict.fromkeys(loops) if inputs_towards(loop, wished, ends)]
    if not loops:
        return _compiled(roots, seeds, targets, blocked, reached, name)
    pending = [(list(roots), list(seeds))]
    open_: dict[Operation, None] = dict.fromkeys(loops)
    parts: dict[Source, list[Source]] = {}
    done: set[Operation] = set()
    while pending:
        ys, weights = pending.pop()
        found_loops: list[Operation] = []
        reached = [_reached(y, ends, found_loops) for y in ys]
        open_.update(dict.fromkeys(loop for loop in found_loops if loop not in done))
        results = [(loop, k) for loop in open_ for k in range(len(loop.outputs)) if _is_floating((loop, k))]
        wanted = list(dict.fromkeys([*targets, *results]))
        for target, found in zip(wanted, _compiled(ys, weights, wanted, blocked, reached, name)):
            if found is not None:
                parts.setdefault(target, []).append(found)
        if not pending and open_:
            loop = max(open_, key=lambda operation: operation.number)
            del open_[loop]
            done.add(loop)
            weights = [_total(parts.get((loop, k), [])) for k in range(len(loop.outputs))]
            ys = inputs_towards(loop, wished, ends)
            if ys and any(weight is not None for weight in weights):
                pending.append((ys, list(through_loop(loop, weights, ys, blocked, name))))
            elif open_:
                pending.append(([], []))
    return [_total(parts.get(target, [])) for target in targets]


def _is_floating(source: Source) -> bool:
    return tensor_of(source).type_.dtype.is_differentiable


def _total(parts: Sequence[Source]) -> Source | None:
    if not parts:
        return None
    total = tensor_of(parts[0])
    for part in parts[1:]:
        total = apply("add", total, tensor_of(part))
    return source_of(total)


def _compiled(
    roots: Sequence[Source],
    seeds: Sequence[Source | None],
    targets: Sequence[Source],
    blocked: set[Source],
    reached: Sequence[set[Source]],
    name: str | None,
) -> list[Source | None]:
    """Derivatives without loops on the host between, as outputs of one operation."""
    paths = [[k for k, target in enumerate(targets) if target in each] for each in reached]
    wanted = sorted({k for path in paths for k in path})
    if not wanted:
        return [None] * len(targets)
    positions = {k: position for position, k in enumerate(wanted)}
    chosen = [targets[k] for k in wanted]
    rules = rules_above(roots)
    sources = [*roots, *chosen, *[seed for seed in seeds if seed is not None], *_read_by(rules)]
    graph = roots[0][0].graph
    derivative = Derivative(
        len(roots),
        len(chosen),
        [seed is not None for seed in seeds],
        [[positions[k] for k in path] for path in paths],
        sorted(blocked, key=lambda source: (source[0].number, source[1])),
        operations_between(roots, blocked),
        rules,
    )
    types = [tensor_of(source).type_ for source in chosen]
    made = graph.add("Gradients", name, types, sources, flow=derivative)
    return [(made, positions[k]) if k in positions else None for k in range(len(targets))]


def _read_by(rules: Sequence[Operation]) -> list[Source]:
    """What gradient functions read that stands outside the bodies of loops and choices."""
    captured = dict.fromkeys(source for rule in rules for source in rule_of(rule).body.captured)
    return [source for source in captured if not depends_on_argument(source[0])]


def inputs_towards(loop: Operation, targets: set[Source], blocked: set[Source]) -> list[Source]:
    """The floating values that a loop on the host reads which depend on one of ``targets``."""
    if loop.hosted.__class__ is LoopGradient:
        raise GradientError(
            f"gradients: no second derivative passes through {loop.where}, a loop that writes variables, calls Python "
            f"or changes shapes, at {here()}",
            "Take these out of the loop, or stop the gradient before it.",
        )
    found = []
    for source in dict.fromkeys((*loop.sources, *loop.hosted.current)):
        if _is_floating(source):
            inner: list[Operation] = []
            reached = _reached(source, blocked, inner)
            if reached & targets or any(
                inputs_towards(other, targets, blocked) for other in dict.fromkeys(inner)
            ):
                found.append(source)
    return found


def through_loop(
    loop: Operation,
    weights: Sequence[Source | None],
    wanted: Sequence[Source],
    blocked: set[Source],
    name: str | None,
) -> list[Source]:
    """The derivatives of a loop on the host by what it reads, given those by its results."""
    flow = loop.hosted
    graph, body = loop.graph, flow.bodies[-1]
    flow.recorded = True
    with graph.name_scope(name or "gradients"):
        results = [k for k, source in enumerate(body.results) if _is_floating(source)]
        seeds = [graph.add(ARGUMENT, None, [tensor_of(body.results[k]).type_], ()) for k in results]
        arguments = [(argument, 0) for argument in body.arguments]
        by = [source for source in (*arguments, *wanted) if _is_floating(source)]
        found = derivatives(
            [body.results[k] for k in results],
            [(seed, 0) for seed in seeds],
            by,
            blocked,
            "iteration",
            {*flow.captured, *flow.current},
        )
        rule = LoopGradient(loop, dict(zip(results, seeds)), dict(zip(by, found)), wanted, weights)
        types = [tensor_of(source).type_ for source in wanted]
        given = [weight for weight in weights if weight is not None]
        made = graph.add("LoopGradients", None, types, given)
        made.control_inputs = tuple(dict.fromkeys((*made.control_inputs, loop)))
        made.python, made.hosted = rule.iterate, rule
    return [(made, k) for k in range(len(wanted))]


def _second_derivatives(y: Tensor, xs: Sequence[Tensor]) -> list[Tensor]:
    return [second_derivatives(y, x) for x in xs]


@example("x = tf.constant([1.0, 2.0])", "tf.hessians(tf.reduce_sum(x**3), x)[0]", "[[ 6.  0.]\n [ 0. 12.]]")
def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
) -> list[Any]:
    """For each of ``xs`` the second derivatives of the sum of ``ys``, of the shape of ``x`` twice.

    ``colocate_gradients_with_ops``, ``gate_gradients`` and ``aggregation_method`` change nothing.

    Raises GradientError for ``ys`` that are not floating scalars, or that ``gradients`` made.
    """
    roots = [_source(y, "one of ys") for y in as_list(ys)]
    targets = [_source(x, "one of xs") for x in as_list(xs)]
    for owner, index in roots:
        root = owner.outputs[index]
        if root.dtype.kind != "f" or root.type_.shape:
            raise GradientError(
                f"hessians: {describe(root)} is not a floating scalar, at {here()}",
                "Reduce it with reduce_sum.",
            )
    refuse_rules("hessians", rules_above(roots))
    types = [owner.outputs[index].type_ for owner, index in targets]
    found: list[Any] = []
    for source in roots:
        doubled = [tensor_type(type.dtype, (*type.shape, *type.shape)) for type in types]
        rows = (Slot(0), [Slot(1 + k) for k in range(len(targets))])
        parts = {"body": _second_derivatives, "arguments": rows}
        made = source[0].graph.add("Hessians", name, doubled, [source, *targets], **parts)
        found = [
            a if b is None else apply("add", b, a) for a, b in zip(made.outputs, found or [None] * len(types))
        ]
    return found
