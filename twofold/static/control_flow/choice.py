"""Choices of a declared graph: each branch declares its body once, and a run computes one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.dtypes import bool_
from twofold.errors import ArgumentError, DTypeError
from twofold.ir.shape_inference import UNKNOWN_RANK, new_unknown_size
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import apply
from twofold.runtime.calls import failed
from twofold.runtime.pytree import flatten, unflatten
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.functions.bodies import Body, source_of, tensor_of, trace_body
from twofold.static.functions.lowering import Choice
from twofold.static.graph.context import at_once
from twofold.static.graph.graph import Operation, Tensor, describe, operation_of


def common_type(a: TensorType, b: TensorType) -> TensorType:
    """What is known of a value that is of either type."""
    if a is b:
        return a
    if a.shape == UNKNOWN_RANK or b.shape == UNKNOWN_RANK or len(a.shape) != len(b.shape):
        return tensor_type(a.dtype, UNKNOWN_RANK)
    return tensor_type(a.dtype, tuple(m if m == n else new_unknown_size() for m, n in zip(a.shape, b.shape)))


def choose(
    operation: str, choice: Tensor, functions: Sequence[Callable[[], Any]], names: Sequence[str], scope: str
) -> Any:
    """The results of the function that ``choice`` (a bool or an integer) selects when the graph runs.

    Where a function writes variables or calls Python, the choice is computed first, in a run of its own.
    """
    if at_once():
        number = int(choice.detach().numpy())
        return functions[number if 0 <= number < len(functions) else -1]()
    graph = operation_of(choice).graph
    shapes: list[Any] = [None] * len(functions)
    bodies: list[Any] = [None] * len(functions)
    found: list[Any] = [None] * len(functions)
    with graph.name_scope(scope):
        # Of a choice by truth the function for True is declared first, as in TensorFlow, though it is number 1.
        order = range(len(functions)) if choice.dtype is not bool_ else reversed(range(len(functions)))
        for k in order:

            def run(k: int = k) -> list[Any]:
                found[k], _, shapes[k] = flatten(functions[k](), "result")
                return [_as_value(value) for value in found[k]]

            bodies[k] = trace_body(graph, run, (), (), [choice])
        types = _merged_types(operation, bodies, names, shapes)
        flow = Choice(bodies, names, not _same_types(bodies))
        if any(body.with_effects() for body in bodies):
            made = graph.add("Merge", "Merge", types, [source_of(choice)])
            made.branches = tuple(tuple(body.results) for body in bodies)
            made.host = frozenset({0})
        else:
            made = flow.declare(graph, "Merge", "Merge", types, [source_of(choice)])
    if not made.outputs:
        return made
    flow.arrays = {
        k: [values[k].known_written() for values in found]
        for k, value in enumerate(found[0])
        if hasattr(value, "with_flow")
    }
    results = [
        value.chosen(output, [values[k] for values in found]) if hasattr(value, "with_flow") else output
        for k, (value, output) in enumerate(zip(found[0], made.outputs))
    ]
    return unflatten(shapes[0], results)


def _same_types(bodies: Sequence[Body]) -> bool:
    """Whether the results of all bodies are known to be of the same types."""
    types = [[tensor_of(source).type_ for source in body.results] for body in bodies]
    return all(known_same(a, b) for others in types[1:] for a, b in zip(types[0], others))


def known_same(a: TensorType, b: TensorType) -> bool:
    """Whether values of two types surely are of one shape."""
    return a is b and a.shape != UNKNOWN_RANK and -1 not in a.shape


def _as_value(value: Any) -> Any:
    """What a branch returns as a tensor; an operation as a number that it runs before."""
    if isinstance(value, Operation):
        with value.graph.control_dependencies([value]):
            return apply("copied", convert_to_tensor(0))
    return convert_to_tensor(getattr(value, "flow", value))


def _merged_types(
    operation: str, bodies: Sequence[Body], names: Sequence[str], shapes: Sequence[Any]
) -> list[TensorType]:
    first = bodies[0]
    types = [tensor_of(source).type_ for source in first.results]
    for body, name, shape in zip(bodies[1:], names[1:], shapes[1:]):
        if len(body.results) != len(types) or repr(shape) != repr(shapes[0]):
            what = f"{names[0]} returns {shapes[0]!r} and {name} returns {shape!r}"
            raise failed(operation, ArgumentError(what, "Return the same structure from both."))
        for position, (a, b) in enumerate(zip(first.results, body.results)):
            x, y = tensor_of(a), tensor_of(b)
            if x.dtype is not y.dtype:
                what = f"result {position} is {describe(x)} from {names[0]} and {describe(y)} from {name}"
                raise failed(operation, DTypeError(what, "Make them one dtype with tf.cast."), y)
            types[position] = common_type(types[position], y.type_)
    return types
