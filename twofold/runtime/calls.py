"""Declaration of branches and loops, for both faces.

Arguments and results are flat lists of tensors with names. Types are checked before anything is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import bool_, int64
from twofold.errors import ArgumentError, DTypeError, ShapeError, TwofoldError, at_operation, described
from twofold.ir.graph import interned
from twofold.ir.op import REGISTRY
from twofold.ir.types import TensorType, tensor_type, type_from_code
from twofold.ops.base import apply
from twofold.ops.control_flow.program_results import call_program
from twofold.ops.control_flow.programs import Branches, LoopSpec, with_parameters
from twofold.runtime.closure_conversion import (
    as_tensor,
    closure_convert,
    in_iteration,
    record_calls,
    with_common_inputs,
)
from twofold.runtime.failures import end_inside
from twofold.runtime.tracing import here

Tensor = _core.Tensor
Body = Callable[..., Sequence[Any]]


def failed(operation: str, error: TwofoldError, returned: Any = None, location: int = 0) -> TwofoldError:
    """The error of a control-flow operation, with the line of its call.

    Args:
        operation: The name of the operation.
        error: What is wrong.
        returned: A wrong value that a body returned; the traceback ends at the line that made it.
        location: Where it ends instead, unless 0.
    """
    worded = at_operation(error, operation, [], here())
    if isinstance(returned, Tensor):
        end_inside(worded, location or _core.location_of(returned))
    return worded


def value_of(operation: str, name: str, value: Any, type: TensorType | None = None) -> Tensor:
    """Convert an argument or result to a tensor.

    Args:
        operation: The name of the operation.
        name: What messages call the value.
        value: The value.
        type: The type whose dtype a number takes.

    Raises:
        DTypeError: The value is no tensor, number or array.
    """
    try:
        return as_tensor(value, type)
    except TypeError:
        what = f"{name} is a {value.__class__.__name__}, not a tensor"
        raise failed(operation, DTypeError(what, "Give and return tensors or numbers.")) from None


def predicate_of(operation: str, value: Any, what: str) -> Tensor:
    """Convert a predicate to a scalar bool tensor.

    Args:
        operation: The name of the operation.
        value: The predicate.
        what: What messages call it.

    Raises:
        DTypeError: It is not bool.
        ShapeError: It has more than one element.
    """
    tensor = value_of(operation, what, value)
    if tensor.dtype is not bool_:
        text = f"{what} is {described(tensor)}, not bool"
        raise failed(operation, DTypeError(text, "Compare it with something, such as x > 0."), tensor)
    if tensor.type_.size != 1:
        text = f"{what} is {described(tensor)}, not one truth value"
        raise failed(operation, ShapeError(text, "Reduce it with all() or any()."), tensor)
    return tensor if not tensor.type_.shape else apply("reshape", tensor, attrs=((),))


def call_branch(
    operation: str, choice: Tensor, functions: Sequence[Body], names: Sequence[str], operands: Sequence[Any]
) -> list[Any]:
    """Declare a branch.

    Args:
        operation: The name of the operation.
        choice: A scalar integer or bool, the index of the function that runs.
        functions: The functions; each returns pairs of a tensor and its name.
        names: What messages call the functions.
        operands: Their arguments.

    Returns:
        The results of the branch.
    """
    types = [value.type_ for value in operands]
    results: list[list[tuple[Any, str]]] = []

    def recorded(function: Body) -> Body:
        def run(*values: Any) -> list[Any]:
            results.append(list(function(*values)))
            return [value for value, _ in results[-1]]

        return run

    bodies = [closure_convert(recorded(function), types) for function in functions]
    for other, name in zip(results[1:], names[1:]):
        _check_same(operation, results[0], other, names[0], name)
    graphs, captured = with_common_inputs(bodies, len(types))
    content, sizes = with_parameters(interned(Branches(graphs)))
    for body in bodies:
        body.record_lines()
    record_calls(content.content_key, bodies, len(types) + len(captured))
    index = apply("cast", choice, attrs=(int64,))
    inputs = [index, *operands, *captured]
    return call_program("branch", content, sizes, [node.type for node in graphs[0].outputs], inputs)


def _check_same(
    operation: str,
    first: Sequence[tuple[Any, str]],
    second: Sequence[tuple[Any, str]],
    a: str,
    b: str,
) -> None:
    if len(first) != len(second):
        what = f"{a} returns {len(first)} tensors and {b} returns {len(second)}"
        raise failed(operation, ArgumentError(what, "Return as many from both."))
    for (x, name), (y, _) in zip(first, second):
        if not _is_same(x.type_, y.type_):
            what = f"{name} is {described(x)} from {a} and {described(y)} from {b}"
            raise failed(operation, _mismatch(x.type_, y.type_, what, "Return the same type from both"), y)


def _is_same(a: TensorType, b: TensorType) -> bool:
    """Whether two types are equal, which adds a guard if sizes are symbols."""
    return a is b or (a.dtype is b.dtype and a.weak is b.weak and a.shape == b.shape)


def _mismatch(wanted: TensorType, found: TensorType, what: str, fix: str) -> TwofoldError:
    if wanted.dtype is not found.dtype:
        return DTypeError(what, f"{fix}, such as with .to({wanted.dtype.name}).")
    return ShapeError(what, f"{fix}, such as with .reshape(...) or .expand(...).")


class LoopCall:
    """The declaration of a loop, in the words of ``lax.scan``.

    Attributes:
        operation: The name of the operation.
        carried: The initial carry.
        names: What messages call the carried values.
        xs: Values whose rows the iterations read.
        limit: The number of iterations, if it is known.
        max_iterations: The largest number of iterations, as a scalar int64 tensor.
        descending: Whether rows are read from the last to the first.
    """

    def __init__(self, operation: str, carried: Sequence[Tensor], names: Sequence[str]) -> None:
        self.operation = operation
        self.carried = list(carried)
        self.names = list(names)
        self.xs: list[Tensor] = []
        self.limit: int | None = None
        self.max_iterations: Tensor | None = None
        self.descending = False
        self._declared: tuple[tuple[Tensor, ...], int] = ((), 0)
        """The inputs of the body that is being declared, and where that begins."""

    def check_carried(self, returned: Sequence[Any]) -> list[Tensor]:
        """Convert what an iteration returned to tensors; raises an error for the first of another type."""
        if len(returned) != len(self.carried):
            what = f"the body returns {len(returned)} values for {len(self.carried)} that are carried"
            error = ArgumentError(what, "Return a new value for each of them, in order.")
            raise failed(self.operation, error, next(iter(returned), None))
        found = []
        for value, before, name in zip(returned, self.carried, self.names):
            tensor = value_of(self.operation, f"the new value of {name}", value, before.type_)
            if not _is_same(before.type_, tensor.type_):
                what = f"{name} enters as {described(before)} and leaves the body as {described(tensor)}"
                fix = "Make the body return the type that it was given"
                wrong = _mismatch(before.type_, tensor.type_, what, fix)
                raise failed(self.operation, wrong, tensor, self._origin(tensor, before.type_))
            found.append(tensor)
        return found

    def _origin(self, value: Tensor, wanted: TensorType) -> int:
        """The location of the first call of the body that gives the wrong dtype or shape which ``value`` has."""
        inputs, mark = self._declared
        closed = _core.close(inputs, (value,), mark)
        _, entries, (ref,) = closed.describe()
        is_dtype = value.dtype is not wanted.dtype

        def is_wrong(type: TensorType) -> bool:
            return type.dtype is value.dtype if is_dtype else type.shape == value.type_.shape

        last = -1
        while ref >= 0:
            last = ref
            given = zip(entries[ref][1], entries[ref][5])
            ref = next((one for one, type in given if one >= 0 and is_wrong(type_from_code(*type))), -1)
        return _core.location_of(value) if last < 0 else int(closed.provenance[last][0])

    def run(self, step: Body, start: Tensor | None = None) -> list[Any]:
        """Declare the loop.

        Args:
            step: A function of the carry and a row of each of ``xs``; it returns the carry and ys, and with ``start``
                whether there is another iteration.
            start: Whether there is a first iteration.

        Returns:
            The last carry, the stacked ys, and the number of iterations.
        """

        def numbered(number: Tensor, *values: Any) -> list[Any]:
            self._declared = (number, *values), _core.declaration_mark()
            with in_iteration(number):
                return [number + 1, *step(*values)]

        row_types = [tensor_type(row.dtype, tuple(row.type_.shape[1:])) for row in self.xs]
        types = [tensor_type(int64), *[value.type_ for value in self.carried], *row_types]
        body = closure_convert(numbered, types)
        flags = (self.descending, start is not None, self.max_iterations is not None)
        spec = interned(LoopSpec(body.graph, 1 + len(self.carried), len(self.xs), self.limit, *flags))
        content, sizes = with_parameters(spec)
        body.record_lines()
        record_calls(content.content_key, [body], len(body.graph.input_types))
        first = [value for value in (start, self.max_iterations) if value is not None]
        zero = _core.from_array(numpy.zeros((), numpy.int64), False)
        inputs = [*first, zero, *self.carried, *self.xs, *body.captured]
        return call_program("loop", content, sizes, result_types(spec), inputs)[1:]


def result_types(content: LoopSpec) -> list[TensorType]:
    """The types of the results of a loop."""
    op: Any = REGISTRY["loop"]
    return list(op.results((content,), ()))
