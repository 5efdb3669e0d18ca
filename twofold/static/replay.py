"""Making a graph concrete: its bodies run on placeholders of the very types that were fed.

So a declared program becomes the same calls, with the same sizes, as its define-by-run twin, and returns the
same bits. What is known before anything runs (constants, sizes) is computed on the way.

Variables: a plain read sees the value from before the run. Operations that write variables are replayed in
the order of their declaration, each on what the one before it left. Declared under ``control_dependencies``, an
operation reads what the updates among its control inputs left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.errors import GraphError, TwofoldError
from twofold.ir.op import REGISTRY
from twofold.ir.types import TensorType
from twofold.runtime.closing import varied
from twofold.runtime.tracing import here
from twofold.static.bodies import ARGUMENT
from twofold.static.graph import DERIVATIVES, InvalidArgumentError, Operation, describe, local
from twofold.static.infer import Source, Unforeseen, call_body, known_value

Tensor = _core.Tensor
_COPY = REGISTRY["positive"]


def _all_inside(operations: Sequence[Operation]) -> list[Operation]:
    """Operations, and those in the bodies of loops and choices among them."""
    found = list(operations)
    for operation in found:
        if operation.flow is not None:
            for body in operation.flow.bodies:
                found += body.operations
    return found


class Demand(Exception):
    """Raised when the numbers of ``source`` must be known before the graph can be made concrete."""

    def __init__(self, operation: Operation, source: Source | None) -> None:
        super().__init__(operation.name)
        self.operation = operation
        self.source = source


class Request:
    """What a run computes: tensors to fetch, operations to run, tensors that are fed."""

    def __init__(
        self, fetches: Sequence[Source], operations: Sequence[Operation], feeds: Sequence[Source]
    ) -> None:
        self.fetches = tuple(fetches)
        self.operations = tuple(operations)
        self.feeds = tuple(feeds)

    def roots(self) -> list[Operation]:
        """The operations that must run."""
        fed = set(self.feeds)
        return [owner for owner, index in self.fetches if (owner, index) not in fed] + list(self.operations)


class Walk:
    """The operations above a request, in order of declaration, and the variables they read and write."""

    def __init__(self, request: Request, known: dict[Source, Any]) -> None:
        self.request = request
        self.known = known
        self.fed = set(request.feeds)
        self.operations: list[Operation] = []
        self.reads: dict[Any, None] = {}
        self.numbers: list[Operation] = []
        self.draws = False
        self._collect()

    def _collect(self) -> None:
        seen: set[int] = set()
        stack: list[tuple[Operation, Operation | None]] = [(root, None) for root in self.request.roots()]
        while stack:
            operation, above = stack.pop()
            if id(operation) in seen:
                continue
            seen.add(id(operation))
            self._check(operation, above or operation)
            self.operations.append(operation)
            self.draws = (
                self.draws or operation.draws or (operation.flow is not None and operation.flow.draws)
            )
            if operation.number_of is not None:
                self.numbers.append(operation)
            if operation.reads_state:
                self.reads.update(dict.fromkeys(operation.updates))
            if operation.variable is not None and not operation.updates:
                self.reads[operation.variable] = None
            stack += [
                (source[0], operation) for source in self.sources_of(operation) if source not in self.fed
            ]
            stack += [(control, operation) for control in operation.control_inputs]
        self.operations.sort(key=lambda operation: operation.number)

    def sources_of(self, operation: Operation) -> list[Source]:
        """The inputs of an operation; of a choice only those of the branch that is taken."""
        if operation.python is not None:
            if (operation, 0) not in self.fed:
                raise Demand(operation, None)
            return []
        sources = [
            source
            for k, source in enumerate(operation.sources)
            if k not in operation.host or source not in self.known
        ]
        if not operation.branches:
            return sources
        predicate = operation.sources[0]
        chosen = int(self.value_known(operation, predicate))
        last = len(operation.branches) - 1
        return list(operation.branches[chosen if 0 <= chosen <= last else last])

    def value_known(self, operation: Operation, source: Source) -> Any:
        """The numbers of ``source``; raises Demand if they are not known yet."""
        if source in self.known:
            return self.known[source]
        try:
            value = known_value(source, {})
        except Unforeseen:
            raise Demand(operation, source) from None
        return value.detach().numpy() if isinstance(value, Tensor) else value

    def _check(self, operation: Operation, above: Operation) -> None:
        if operation.type == ARGUMENT and (operation, 0) not in self.fed:
            raise GraphError(
                f"{above.name} ({above.where}) is inside the body of a loop and has a value only there, at {here()}",
                "Let the body return it, as a loop variable or a stacked result.",
            )
        if operation.type == "Placeholder" and any(
            (operation, k) not in self.fed for k in range(len(operation.outputs))
        ):
            raise InvalidArgumentError(
                f"placeholder {describe(operation.outputs[0])} is not fed, but {above.name} "
                f"({above.where}) needs it, at {here()}",
                f"Add it to feed_dict: run(..., feed_dict={{{operation.name.split('/')[-1]}: value}}).",
            )


class Replay:
    """One replay, for the types of the inputs: feeds, variables read, numbers given, the number of the run."""

    def __init__(
        self, walk: Walk, reads: Sequence[Any], written: Sequence[Any], types: Sequence[TensorType]
    ) -> None:
        self.walk = walk
        self.written = written
        self.inputs = tuple(_core.placeholder(type) for type in types)
        feeds = len(walk.request.feeds)
        self.fed = dict(zip(walk.request.feeds, self.inputs))
        self.before = dict(zip(reads, self.inputs[feeds:]))
        self.state: dict[Any, Any] = dict(self.before)
        self.numbers = dict(zip(walk.numbers, self.inputs[feeds + len(reads) :]))
        self.counter = self.inputs[-1] if walk.draws else None
        self.values: dict[Operation, list[Any]] = {}
        self.targets = {
            source for op in _all_inside(walk.operations) if op.type in DERIVATIVES for source in op.sources
        }
        self._effects: dict[Operation, set[Operation]] = {}

    def run(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """(inputs, outputs): fetches, what observers see, then new values of the variables written."""
        local.replaying += 1
        try:
            for operation in self.walk.operations:
                self.values[operation] = self.outputs_of(operation)
            outputs = [self._fetch(source) for source in self.walk.request.fetches]
            for operation in self.walk.operations:
                if operation.observe is not None:
                    outputs += [self._fetch(source) for source in operation.sources]
            outputs += [self.symbolic(self.state[variable]) for variable in self.written]
        finally:
            local.replaying -= 1
            _core.declare_at(None)
        return self.inputs, tuple(outputs)

    def outputs_of(self, operation: Operation) -> list[Any]:
        """The values of an operation's outputs, those that are fed as they are fed."""
        count = len(operation.outputs)
        fed = [self.fed.get((operation, k)) for k in range(count)]
        if count and all(value is not None for value in fed):
            return fed
        made = self._compute(operation) if count else []
        for k in range(count):
            if fed[k] is not None:
                made[k] = fed[k]
            elif (operation, k) in self.targets:
                made[k] = self.symbolic(made[k])
        return made

    def _compute(self, operation: Operation) -> list[Any]:
        if operation.constant is not None:
            return [operation.constant]
        if operation.variable is not None and not operation.updates:
            return [self.before[operation.variable]]
        if operation in self.numbers:
            return [self.numbers[operation]]
        if operation.branches:
            return [self.value_of(source) for source in self.walk.sources_of(operation)]
        if operation.flow is not None:
            return self._flow(operation)
        values = [self._input(operation, k, source) for k, source in enumerate(operation.sources)]
        states = [self.state[variable] for variable in operation.updates] if operation.reads_state else []
        _core.declare_at(operation.outputs[0])
        try:
            made = call_body(operation, values, self._varied_counter(), states)
        except TwofoldError as error:
            raise type(error)(
                f"{operation.name}, declared at {operation.where}: {error.what}, at {here()}", error.fix
            ) from None
        made = [value if isinstance(value, Tensor) else _core.from_array(value, False) for value in made]
        for value in made:
            if not value._is_symbolic:
                value._realise()  # so that nothing stays behind in the trace of the define-by-run program around
        for variable, value in zip(operation.updates, made):
            self.state[variable] = value
        return made

    def _varied_counter(self) -> Any:
        return None if self.counter is None else varied(self.counter)

    def _flow(self, operation: Operation) -> list[Any]:
        _core.declare_at(operation.outputs[0])
        try:
            made: list[Any] = operation.flow.compute(self, operation)
        except TwofoldError as error:
            if error.located and f", declared at {operation.where}" in error.what:
                raise
            fix = error.fix
            worded = type(error)(f"{operation.name}, declared at {operation.where}: {error.what}", fix)
            worded.located = True
            raise worded from None
        return made

    def _input(self, operation: Operation, place: int, source: Source) -> Any:
        if place in operation.host:
            return self._number(operation, source)
        owner = source[0]
        if (
            owner.variable is not None
            and not owner.updates
            and operation.control_inputs
            and source not in self.fed
        ):
            return self._seen_after(operation, owner.variable)
        return self.value_of(source)

    def value_of(self, source: Source) -> Any:
        """The value of a tensor that was computed before."""
        return self.fed[source] if source in self.fed else self.values[source[0]][source[1]]

    def _number(self, operation: Operation, source: Source) -> Any:
        if source in self.walk.known:
            return self.walk.known[source]
        value = self.value_of(source)
        if value._is_symbolic:
            raise Demand(operation, source)
        return value

    def _seen_after(self, operation: Operation, variable: Any) -> Any:
        effects: set[Operation] = set()
        for control in operation.control_inputs:
            effects |= self._effects_of(control)
        updates = sorted(
            (effect for effect in effects if variable in effect.updates), key=lambda effect: effect.number
        )
        if not updates:
            return self.before[variable]
        return self.values[updates[-1]][updates[-1].updates.index(variable)]

    def _effects_of(self, operation: Operation) -> set[Operation]:
        if operation not in self._effects:
            found = {operation} if operation.updates else set()
            self._effects[operation] = found
            for below in (*[owner for owner, _ in operation.sources], *operation.control_inputs):
                found |= self._effects_of(below)
        return self._effects[operation]

    def symbolic(self, value: Any) -> Any:
        """``value`` as a declared one, so that it is computed when the graph runs."""
        return value if value._is_symbolic else _core.declare(_COPY, (), (value,))

    def _fetch(self, source: Source) -> Any:
        """A value to hand out; the memory of a variable is never handed out itself."""
        owner = source[0]
        value = self.value_of(source)
        if owner.variable is not None or owner.updates or not value._is_symbolic:
            return _core.declare(_COPY, (), (value,))
        return value
