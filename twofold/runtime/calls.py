"""Calls of closed functions: one of several, or one again and again; both ways of declaring make theirs here.

Everything is flat: lists of tensors with their names. Types are checked before anything is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import bool_, int64
from twofold.errors import ArgumentError, DTypeError, ShapeError, TwofoldError, at_operation
from twofold.ir.graph import interned
from twofold.ir.op import REGISTRY
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import apply
from twofold.ops.control_flow.program_results import call_program
from twofold.ops.control_flow.programs import Branches, LoopSpec, with_parameters
from twofold.runtime.closures import as_tensor, close, in_iteration, note_calls, together
from twofold.runtime.failures import end_inside
from twofold.runtime.tracing import here

Tensor = _core.Tensor
Body = Callable[..., Sequence[Any]]


def failed(operation: str, error: TwofoldError, returned: Any = None) -> TwofoldError:
    """An error worded for the call of a control-flow operation in the user's line.

    Where a function given to it has made ``returned``, which is what is wrong, the traceback ends at that line.
    """
    worded = at_operation(error, operation, [], here())
    if isinstance(returned, Tensor):
        end_inside(worded, returned)
    return worded


def value_of(operation: str, name: str, value: Any, type: TensorType | None = None) -> Tensor:
    """A value given or returned, as a tensor; raises DTypeError for what does not become one."""
    try:
        return as_tensor(value, type)
    except TypeError:
        what = f"{name} is a {value.__class__.__name__}, not a tensor"
        raise failed(operation, DTypeError(what, "Give and return tensors or numbers.")) from None


def predicate_of(operation: str, value: Any, what: str) -> Tensor:
    """A truth value as a 0-d bool tensor; raises DTypeError or ShapeError for anything else."""
    tensor = value_of(operation, what, value)
    where = f" ({tensor._where})" if tensor._where else ""
    if tensor.dtype is not bool_:
        text = f"{what} is {tensor.type_}{where}, not bool"
        raise failed(operation, DTypeError(text, "Compare it with something, such as x > 0."), tensor)
    if tensor.type_.size != 1:
        text = f"{what} is {tensor.type_}{where}, not one truth value"
        raise failed(operation, ShapeError(text, "Reduce it with all() or any()."), tensor)
    return tensor if not tensor.type_.shape else apply("reshape", tensor, attrs=((),))


def call_branch(
    operation: str, choice: Tensor, functions: Sequence[Body], names: Sequence[str], operands: Sequence[Any]
) -> list[Any]:
    """The results of the function that ``choice`` (0-d, an integer or bool) selects, the only one that runs.

    ``names`` tells the functions apart in messages. Each returns ``(tensor, its name)`` pairs.
    """
    types = [value.type_ for value in operands]
    results: list[list[tuple[Any, str]]] = []

    def noted(function: Body) -> Body:
        def run(*values: Any) -> list[Any]:
            results.append(list(function(*values)))
            return [value for value, _ in results[-1]]

        return run

    parts = [close(noted(function), types) for function in functions]
    for other, name in zip(results[1:], names[1:]):
        _check_same(operation, results[0], other, names[0], name)
    graphs, captured = together(parts, len(types))
    content, sizes = with_parameters(interned(Branches(graphs)))
    for part in parts:
        part.note_lines()
    note_calls(content.content_key, parts, len(types) + len(captured))
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
            what = f"{name} is {_described(x)} from {a} and {_described(y)} from {b}"
            raise failed(operation, _mismatch(x.type_, y.type_, what, "Return the same type from both"), y)


def _is_same(a: TensorType, b: TensorType) -> bool:
    """Whether values of two types are of one; where sizes are symbols that is a decision on these."""
    return a is b or (a.dtype is b.dtype and a.weak is b.weak and a.shape == b.shape)


def _described(tensor: Tensor) -> str:
    return f"{tensor.type_} ({tensor._where})" if tensor._where else str(tensor.type_)


def _mismatch(wanted: TensorType, found: TensorType, what: str, fix: str) -> TwofoldError:
    if wanted.dtype is not found.dtype:
        return DTypeError(what, f"{fix}, such as with .to({wanted.dtype.name}).")
    return ShapeError(what, f"{fix}, such as with .reshape(...) or .expand(...).")


class LoopCall:
    """One call of a loop: what it carries, reads row by row, and how often it goes round."""

    def __init__(self, operation: str, carried: Sequence[Tensor], names: Sequence[str]) -> None:
        self.operation = operation
        self.carried = list(carried)
        self.names = list(names)
        self.rows: list[Tensor] = []
        self.limit: int | None = None
        self.most: Tensor | None = None  # iterations at most, as a 0-d int64 tensor
        self.descending = False

    def check_carried(self, returned: Sequence[Any]) -> list[Tensor]:
        """What an iteration returned as tensors; raises the error of the first that is not of the carried type."""
        if len(returned) != len(self.carried):
            what = f"the body returns {len(returned)} values for {len(self.carried)} that are carried"
            error = ArgumentError(what, "Return a new value for each of them, in order.")
            raise failed(self.operation, error, next(iter(returned), None))
        found = []
        for value, before, name in zip(returned, self.carried, self.names):
            tensor = value_of(self.operation, f"the new value of {name}", value, before.type_)
            if not _is_same(before.type_, tensor.type_):
                what = f"{name} enters as {_described(before)} and leaves the body as {_described(tensor)}"
                fix = "Make the body return the type that it was given"
                raise failed(self.operation, _mismatch(before.type_, tensor.type_, what, fix), tensor)
            found.append(tensor)
        return found

    def run(self, step: Body, start: Tensor | None = None) -> list[Any]:
        """The last carried values, the stacked rows, and the number of iterations.

        ``step`` takes carried values and rows and returns carried values, rows, and with ``start`` (whether to
        begin at all) whether to go on.
        """

        def numbered(number: Tensor, *values: Any) -> list[Any]:
            with in_iteration(number):
                return [number + 1, *step(*values)]

        row_types = [tensor_type(row.dtype, tuple(row.type_.shape[1:])) for row in self.rows]
        types = [tensor_type(int64), *[value.type_ for value in self.carried], *row_types]
        part = close(numbered, types)
        flags = (self.descending, start is not None, self.most is not None)
        repeated = interned(LoopSpec(part.graph, 1 + len(self.carried), len(self.rows), self.limit, *flags))
        content, sizes = with_parameters(repeated)
        part.note_lines()
        note_calls(content.content_key, [part], len(part.graph.input_types))
        first = [value for value in (start, self.most) if value is not None]
        zero = _core.from_array(numpy.zeros((), numpy.int64), False)
        inputs = [*first, zero, *self.carried, *self.rows, *part.captured]
        return call_program("loop", content, sizes, result_types(repeated), inputs)[1:]


def result_types(content: LoopSpec) -> list[TensorType]:
    """The types of the results of a loop."""
    op: Any = REGISTRY["loop"]
    return list(op.results((content,), ()))
