"""Anomaly detection: the error for the first value of a run that is not finite, with its call, operands and reason.

The core checks the results of a run and finds the call (``csrc/bad_value.cc``). Here the primitive operations of the
call are interpreted on its operands, to find the one that overflowed, and for which values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from twofold import _core
from twofold.dtypes import bfloat16
from twofold.errors import AnomalyError, TwofoldError, at_operation
from twofold.ir.interpret import evaluate, narrow, observing, widen
from twofold.ir.node import Attributes, Node
from twofold.ir.op import CompositeOp, ElementwiseOp, Op
from twofold.runtime.closure_conversion import as_tensor, inner_line
from twofold.runtime.failures import differentiated_at, end_at, first_wrong, pass_of, position
from twofold.runtime.tracing import described, parameter_names, public_name
from twofold.tracebacks import positions
from twofold.transforms.derived import PULLBACK, stable_graph

Tensor = _core.Tensor
Array = Any
_FIX = "Keep the operands in range, such as with clamp or a small number added, or use a stable formula."


class Step(NamedTuple):
    """A primitive operation that was evaluated."""

    node: Node
    operands: tuple[Array, ...]
    value: Array


def bad_value(*call: Any) -> BaseException | None:
    """See ``_bad_value``; detection is off for what it computes itself."""
    before = _core.set_anomaly("off")
    try:
        return _bad_value(*call)
    finally:
        _core.set_anomaly(before)


def _bad_value(
    op: Op,
    attrs: Attributes,
    operands: Sequence[Any],
    result: Tensor,
    location: tuple[int, int],
    where: str,
    differentiated: str | None,
) -> BaseException | None:
    """The error for a call with a result that is not finite; None if infinity is among its attributes.

    Args:
        op: The operation.
        attrs: The attributes.
        operands: Tensors and Python numbers; None for one whose buffer was reused.
        result: The result, which has a NaN or infinity.
        location: Of the call and, in a backward pass, of the pass.
        where: The location as a string.
        differentiated: The operation whose gradient this is, if it is known.
    """
    values = _values(result)
    is_nan = bool(numpy.isnan(values).any())
    if not is_nan and _holds_infinity(attrs):
        return None
    gone = any(value is None for value in operands)
    held = _held_before(op, operands, result, location) if is_nan else None
    if held is not None:
        line = pass_of(location) or location[0]
        return end_at(_accumulation_error(held, _core.location_text(line)), line)
    steps = [] if gone else _steps(op, attrs, operands)
    step = _origin_of(steps) if steps else None
    reason = _reason(step) if step is not None else "of finite operands, written over since" if gone else ""
    inside = 0
    if step is not None:
        node = step.node
        inside = inner_line(location[0], (node.op, node.attrs, tuple(value.type for value in node.inputs)))
    if not inside or step is None:
        operands = () if gone else operands
        names, name = parameter_names(op, attrs), public_name(op, attrs)
    elif pass_of(location):
        inner = differentiated_at(steps, step.node.op, location[0], inside)
        operands = () if inner is None else inner.operands
        names = () if inner is None else parameter_names(inner.op, inner.attrs)
        name = (
            step.node.op.name if inner is None else f"backward pass of {public_name(inner.op, inner.attrs)}"
        )
        if inner is not None:
            op, attrs, differentiated = inner.op, inner.attrs, public_name(inner.op, inner.attrs)
    else:
        inner = first_wrong(op, attrs, operands, location, _is_not_finite)
        found = inner is not None and inner.location == inside
        op, attrs, operands = (inner.op, inner.attrs, inner.operands) if found else (op, attrs, ())
        names, name = parameter_names(op, attrs), step.node.op.name
    if inside and step is not None:
        values = widen(step.value, step.node.dtype)
    if pass_of(location) and is_nan:
        error = _gradient_error(op, attrs, location, differentiated, reason)
    else:
        error = _call_error(name, names, values, operands, _core.location_text(inside) or where, reason)
    return position(error, location, operands, names, inside)


def _held_before(op: Op, operands: Sequence[Any], result: Tensor, location: tuple[int, int]) -> Tensor | None:
    """The value of ``.grad`` before a backward pass that accumulates into it, if that has a NaN.

    A plain sum has the location of the pass only, whose line calls ``backward``.
    """
    adds = isinstance(op, ElementwiseOp) and op.is_addition
    adds = adds and not pass_of(location) and "backward(" in positions(location[0])[0].source
    accumulates = pass_of(location) and isinstance(op, CompositeOp) and op.accumulates
    begin = operands[-1:] if accumulates else operands[:1] if adds else ()
    for value in begin:
        if isinstance(value, Tensor) and value.type_ == result.type_ and numpy.isnan(_values(value)).any():
            return value
    return None


def _accumulation_error(held: Tensor, where: str) -> TwofoldError:
    index = list(_bad_position(_values(held)))
    what = (
        f"backward: .grad held nan{f' at index {index}' if index else ''} before this pass, which adds to it"
    )
    error = AnomalyError(
        f"{what}: {described(('.grad',), [held.type_], [held])[0]}, at {where}",
        "Clear it before, such as with optimizer.zero_grad(), or look for the NaN in the pass that left it.",
    )
    error.located = True
    return error


def _is_not_finite(value: Any) -> bool:
    return (
        isinstance(value, Tensor)
        and value.dtype.kind in "fc"
        and not bool(numpy.isfinite(_values(value)).all())
    )


def _call_error(
    name: str, names: Sequence[str], values: Array, operands: Sequence[Any], where: str, reason: str
) -> TwofoldError:
    bad = _bad_position(values)
    at = f" at index {list(bad)}" if bad else ""
    what = f"the first value that is not finite: {_number(values[bad])}{at}"
    if reason:
        what += f", {reason}"
    shown = [(k, value) for k, value in enumerate(operands) if isinstance(value, Tensor)]
    names = [names[k] if k < len(names) else "" for k, _ in shown] if any(names) else ()
    tensors = [value for _, value in shown]
    texts = described(names, [value.type_ for value in tensors], tensors)
    return at_operation(AnomalyError(what, _FIX), name, texts, where)


def _gradient_error(
    op: Op, attrs: Attributes, location: tuple[int, int], differentiated: str | None, reason: str
) -> TwofoldError:
    name, number = (attrs[0], attrs[3]) if op is PULLBACK else (differentiated or op.name, 0)
    title = "".join(part.capitalize() for part in str(name).replace(".", "_").split("_"))
    calls = [f"{one.file}:{one.line}, in {one.code.co_name}" for one in positions(location[0])]
    what = f"Function '{title}Backward' returned nan values in its {number}th output"
    if reason:
        what += f" ({reason})"
    what += f", in the backward pass at {_core.location_text(location[1])}"
    called = ", called at ".join(calls) or "an unknown line"
    error = AnomalyError(what, f"The forward call that it belongs to is at {called}.")
    error.located = True
    return error


def _values(value: Any) -> Array:
    return numpy.asarray(value._read() if isinstance(value, Tensor) else value)


def _stored(value: Any) -> Array:
    if not isinstance(value, Tensor):
        return numpy.asarray(value)
    array = numpy.asarray(value._read())
    return narrow(array, value.dtype) if value.dtype is bfloat16 else array


def _holds_infinity(attrs: Any) -> bool:
    if isinstance(attrs, (tuple, list)):
        return any(_holds_infinity(item) for item in attrs)
    return isinstance(attrs, float) and math.isinf(attrs)


def _is_bad(node: Node, value: Array) -> bool:
    return node.dtype.kind in "fc" and not bool(numpy.isfinite(widen(value, node.dtype)).all())


def _is_nan(node: Node, value: Array) -> bool:
    return node.dtype.kind in "fc" and bool(numpy.isnan(widen(value, node.dtype)).any())


def _steps(op: Op, attrs: Attributes, operands: Sequence[Any]) -> list[Step]:
    """What a call computes, primitive operation by primitive operation, its result last; empty where nobody can."""
    steps: list[Step] = []
    types = [value.type_ if isinstance(value, Tensor) else None for value in operands]
    if any(type is None for type in types):
        types = [type or _type_of_number(value) for type, value in zip(types, operands)]
    try:
        graph = stable_graph(op, attrs, types)  # type: ignore[arg-type]
        with observing(lambda *seen: steps.append(Step(*seen))):
            evaluate(graph, [_stored(value) for value in operands])
    except (TwofoldError, NotImplementedError):
        return []
    outputs = {id(node) for node in graph.outputs}
    last = [k for k, step in enumerate(steps) if id(step.node) in outputs]
    return steps[: last[-1] + 1] if last else []


def _type_of_number(value: Any) -> Any:
    return as_tensor(value).type_


def _origin_of(steps: Sequence[Step]) -> Step:
    """The origin of the bad values of the last step: for NaN the step that made it, for infinity the overflow."""
    made = {id(one.value): one for one in steps if one.node.op.kind != "source"}

    def origin(step: Step, seen: set[int]) -> Step:
        seen.add(id(step))
        above = [
            made[id(value)]
            for node, value in zip(step.node.inputs, step.operands)
            if _is_bad(node, value) and id(value) in made and id(made[id(value)]) not in seen
        ]
        for one in above:
            if _is_nan(one.node, one.value):
                return origin(one, seen)
        for one in above:
            found = origin(one, seen)
            if _makes_bad(found):
                return found
        return step

    step = origin(steps[-1], set())
    if step.node.op.kind not in ("control_flow", "get_output"):
        return step
    inner = [
        one
        for one in steps
        if one.node.op.kind not in ("control_flow", "get_output", "source") and _makes_bad(one)
    ]
    return inner[0] if inner else step


def _makes_bad(step: Step) -> bool:
    inputs = zip(step.node.inputs, step.operands)
    return _is_bad(step.node, step.value) and not any(_is_bad(node, value) for node, value in inputs)


def _bad_position(values: Array) -> tuple[int, ...]:
    """The index of the first NaN, or else of the first infinity."""
    nan = numpy.isnan(values)
    return tuple(int(k) for k in numpy.argwhere(nan if nan.any() else ~numpy.isfinite(values))[0])


def _number(value: Any) -> str:
    return repr(value.item() if hasattr(value, "item") else value)


def _reason(step: Step) -> str:
    """Why an operation is not finite, with its operands at the index of its first bad value."""
    node = step.node
    values = widen(step.value, node.dtype)
    if numpy.isfinite(values).all():
        return ""
    if any(_is_nan(one, value) for one, value in zip(node.inputs, step.operands)):
        return "of NaN that came in"
    index = _bad_position(values)
    shown = [
        float(numpy.real(widen(value, one.dtype)[index]))
        for one, value in zip(node.inputs, step.operands)
        if value.shape == values.shape and one.dtype.kind in "fciu"
    ]
    value = float(numpy.real(values[index]))
    given = ", ".join(f"{number:g}" for number in shown)
    return _reason_at(node.op, shown, given, math.isnan(value))


def _reason_at(op: Op, at: Sequence[float], given: str, is_nan: bool) -> str:
    rules = op if isinstance(op, ElementwiseOp) else None
    if rules is not None and rules.nonfinite is not None and (reason := rules.nonfinite(at, is_nan)):
        return reason
    name = op.name
    if is_nan and any(map(math.isinf, at)):
        return f"{name}({given}) of infinity"
    if is_nan:
        # of a whole matrix the elements at one index are not what it is computed of
        return (
            f"{name}({given}) is not defined"
            if rules is not None
            else f"{name} is not defined for these operands"
        )
    if rules is not None and rules.has_poles:
        return f"{name}({given})"
    return f"overflow of {name}({given})" if given else f"overflow of {name}"
