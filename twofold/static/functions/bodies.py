"""Bodies of choices and loops: operations of the graph, declared to the core as a closed function.

A body's operations stand in the graph like all others, in the name scope of the operation they belong to. Those
that depend on the arguments of a loop have values only inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from twofold.ir.types import TensorType
from twofold.ops.base import apply
from twofold.ops.control_flow.observing import Observer
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.graph.graph import Graph, Operation, Tensor, get_default_graph, operation_of, owner_of
from twofold.static.graph.inference import Source

ARGUMENT = "Argument"
"""Type of the operations that stand for what a body is given."""


def source_of(value: Any) -> Source:
    """Operation and output number of a value, which becomes a tensor of the graph."""
    found = owner_of(convert_to_tensor(value))
    assert found is not None
    return get_default_graph().captured(found)


def sources_of(operation: Operation) -> list[Source]:
    """What an operation reads, or may read: its inputs, and the results of its branches."""
    return [*operation.sources, *[source for branch in operation.branches for source in branch]]


def above(
    roots: Iterable[Operation],
    inside: bool = False,
    without: Iterable[Operation] = (),
    controls: bool = False,
) -> Iterator[Operation]:
    """``roots`` and all operations that they depend on, each once; not through those ``without``.

    With ``inside`` also the operations in the bodies of loops and choices among them, with ``controls`` those that
    they wait for.
    """
    seen = set(without)
    stack = list(roots)
    while stack:
        operation = stack.pop()
        if operation in seen:
            continue
        seen.add(operation)
        yield operation
        stack += [owner for owner, _ in sources_of(operation)]
        if controls:
            stack += operation.control_inputs
        if inside and operation.flow is not None:
            stack += [inner for body in operation.flow.bodies for inner in body.operations]


def all_inside(operations: Iterable[Operation]) -> list[Operation]:
    """Operations, and those in the bodies of loops and choices among them."""
    found = list(operations)
    for operation in found:
        if operation.flow is not None:
            for body in operation.flow.bodies:
                found += body.operations
    return found


def written_by_bodies(operation: Any) -> set[Any]:
    """The variables that the bodies of an operation write, one by one on the host."""
    found: set[Any] = set()
    stack = [operation]
    while stack:
        for body in getattr(getattr(stack.pop(), "hosted", None), "bodies", ()):
            found.update(variable for one in body.operations for variable in one.updates)
            stack += body.operations
    return found


def reader_outside(roots: Sequence[Operation]) -> Operation | None:
    """Among what ``roots`` depend on, an operation that reads what a body computes and stands outside of it."""
    if not roots:
        return None
    flows = [one.flow or one.hosted for one in roots[0].graph.get_operations()]
    inside = {one for flow in flows if flow for body in flow.bodies for one in body.operations}
    for operation in above(roots):
        if operation in inside or operation.type == ARGUMENT or not operation.outputs:
            continue
        read = [owner for owner, _ in sources_of(operation) if owner in inside]
        if any(one.type == ARGUMENT for one in above(read)):
            return operation
    return None


def array_writes(body: Body, position: int) -> list[Operation]:
    """The writes that a body makes, in order, from the array that it is given to the one that it returns."""
    found: list[Operation] = []
    owner = body.results[position][0]
    while owner.type in ("TensorArrayWrite", "TensorArrayScatter"):
        found.insert(0, owner)
        owner = owner.sources[0][0]
    return found if owner is body.arguments[position] else []


def tensor_of(source: Source) -> Tensor:
    """The declared tensor of a source."""
    return source[0].outputs[source[1]]


class Body:
    """Operations between ``arguments`` and ``results``; ``captured`` are the tensors from outside that they read.

    ``controls`` are the operations outside that some inside wait for.
    """

    def __init__(self, begin: int, arguments: Sequence[Operation], results: Sequence[Any]) -> None:
        self.begin = begin
        self.arguments = list(arguments)
        self.results = [source_of(value) for value in results]
        self.operations: list[Operation] = []
        self.captured: list[Source] = []
        self.controls: list[Operation] = []
        self._collect()
        self.is_random = any(self._is_random(operation) for operation in self.operations)

    @staticmethod
    def _is_random(operation: Operation) -> bool:
        return operation.is_random or (operation.flow is not None and operation.flow.is_random)

    def _is_outside(self, operation: Operation) -> bool:
        reads = operation.variable is not None and not operation.updates
        return operation.number < self.begin or reads or operation.number_of is not None

    def _collect(self) -> None:
        captured: dict[Source, None] = {}
        seen: set[Operation] = set(self.arguments)
        stack = [owner for owner, _ in self.results if not self._is_outside(owner)]
        for source in self.results:
            if self._is_outside(source[0]):
                captured[source] = None
        while stack:
            operation = stack.pop()
            if operation in seen:
                continue
            seen.add(operation)
            self.operations.append(operation)
            for source in sources_of(operation):
                if self._is_outside(source[0]):
                    captured[source] = None
                else:
                    stack.append(source[0])
            for control in operation.control_inputs:
                (self.controls if self._is_outside(control) else stack).append(control)
        self.operations.sort(key=lambda operation: operation.number)
        self.captured = sorted(captured, key=lambda source: (source[0].number, source[1]))

    def with_effects(self) -> list[Operation]:
        """Operations inside that a closed function cannot do: writing variables, calling Python, varying types."""
        return [
            op
            for op in self.operations
            if op.updates
            or op.python is not None
            or op.branches
            or op.looks == "size"
            or (op.flow is not None and op.flow.varying)
        ]

    def looks_at_elements(self) -> bool:
        """Whether something inside looks at elements of an array that grows."""
        return any(
            op.looks is not None
            or (op.flow is not None and any(b.looks_at_elements() for b in op.flow.bodies))
            for op in self.operations
        )

    def declare(self, lowerer: Any, values: Sequence[Any]) -> list[Any]:
        """The results for ``values`` of the arguments, as ``lowerer`` declares them."""
        lowerer.depth += 1
        try:
            return self.declare_here(lowerer, values)
        finally:
            lowerer.depth -= 1

    def declare_here(self, lowerer: Any, values: Sequence[Any]) -> list[Any]:
        """As ``declare``, for a body that is computed once and is part of what is around it."""
        for argument, value in zip(self.arguments, values):
            lowerer.inner[argument] = [value]
        for operation in self.operations:
            made = lowerer.outputs_of(operation)
            if operation.observe is not None and made:
                made = [self._observed(lowerer, made[0], operation), *made[1:]]
            for check in self._checks(operation):
                made = [self._observed(lowerer, value, check) for value in made]
            lowerer.inner[operation] = made
        return [lowerer.value_of(source) for source in self.results]

    def _checks(self, operation: Operation) -> list[Operation]:
        """Operations with an observer that run before this one and that nothing else asks for."""
        found: dict[Operation, None] = {}
        stack = list(operation.control_inputs)
        while stack:
            control = stack.pop()
            if control.observe is not None and not self._is_outside(control):
                found[control] = None
            elif not control.outputs:
                stack += control.control_inputs
        return list(found)

    @staticmethod
    def _observed(lowerer: Any, value: Any, operation: Operation) -> Any:
        if isinstance(value, Tensor):
            shown = [lowerer.value_of(source) for source in operation.sources]
            if operation.observer is None:
                operation.observer = Observer(operation.observe)  # type: ignore[arg-type]
            value = apply("observed", lowerer.symbolic(value), *shown, attrs=(operation.observer,))
        return value


def trace_body(
    graph: Graph,
    function: Callable[..., Sequence[Any]],
    types: Sequence[TensorType],
    names: Sequence[str],
    after: Sequence[Tensor] = (),
) -> Body:
    """The body that ``function`` declares on arguments of ``types``; it is computed ``after`` other tensors.

    So what it reads of variables is what these leave, where they depend on updates.
    """
    begin = graph.version
    arguments = [graph.add(ARGUMENT, name, [type], ()) for name, type in zip(names, types)]
    with graph.control_dependencies([tensor for tensor in after if _changes_state(operation_of(tensor))]):
        results = function(*[argument.outputs[0] for argument in arguments])
    return Body(begin, arguments, results)


def _changes_state(root: Operation) -> bool:
    """Whether an operation, or one that it depends on or waits for, writes variables or calls Python."""
    return any(one.updates or one.python is not None for one in above([root], controls=True))
