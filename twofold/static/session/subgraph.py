"""What a set of fetches needs: the operations between feeds and fetches, and the variables that they read and write.

A plain read of a variable sees the value from before the run. Operations that write variables come in the order of
their declaration, each on what the one before it left. Declared under ``control_dependencies``, an operation reads
what the updates among its control inputs left. A fetch of a variable is its value after the run, see ``Session.run``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy

from twofold import _core
from twofold.dtypes import uint8
from twofold.errors import GraphError, InvalidArgumentError
from twofold.ir.shape_inference import new_unknown_size
from twofold.ir.types import tensor_type
from twofold.runtime.failures import end_at
from twofold.runtime.tracing import here
from twofold.static.autodiff.derivatives import operations_between
from twofold.static.functions.bodies import ARGUMENT, reader_outside
from twofold.static.graph.devices import HERE, trouble
from twofold.static.graph.graph import DERIVATIVES, Operation, describe
from twofold.static.graph.inference import Source, Unforeseen, known_value, read_of

Tensor = _core.Tensor


class Needed(Exception):
    """Raised for what must be done first: the numbers of ``source`` computed; without it, ``operation`` called.

    ``decides``: what comes then depends on the very numbers. ``also`` are further operations to call then, whose
    functions do nothing but make their results, and which read nothing that must be done before.
    """

    also: tuple[Operation, ...] = ()

    def __init__(self, operation: Operation, source: Source | None, decides: bool = False) -> None:
        super().__init__(operation.name)
        self.operation = operation
        self.source = source
        self.decides = decides


class StepRequest(NamedTuple):
    """What a step computes: ``fetches`` after ``operations`` have run too.

    ``purpose`` says what for: None for the results of the run; an operation whose function of the host is called with
    them, and so are those in ``also``, with results of their own; a source whose numbers they are; a variable that they
    initialise. These are inputs of ``consumer``. With ``keeps`` more steps may follow, which see the effects of this
    one; with ``decides`` the numbers decide what comes.
    """

    fetches: tuple[Source, ...]
    operations: tuple[Operation, ...] = ()
    consumer: Operation | None = None
    purpose: Any = None
    keeps: bool = True
    decides: bool = False
    also: tuple[Operation, ...] = ()

    @property
    def called(self) -> tuple[Operation, ...]:
        """The operations whose functions of the host are called with the results, in order."""
        return (self.purpose, *self.also) if isinstance(self.purpose, Operation) else ()


_FEW = 16


def is_like_sizes(number: Any) -> bool:
    """Whether an array may be given to executables as sizes: a few whole numbers, none of them negative."""
    return (
        number.dtype.kind in "iu" and number.ndim <= 1 and number.size <= _FEW and bool((number >= 0).all())
    )


def number_feeds(number: Any) -> list[Any]:
    """Numbers as the core is given them: each is a size of an array without elements."""
    return [numpy.empty((int(size), 0), numpy.uint8) for size in number.flat]


NUMBER = tensor_type(uint8, (new_unknown_size(), 0))
"""Declared type of the feed of a number."""


class Position:
    """Where a run stands: what is fed by now, which effects have happened, and which numbers are known.

    ``begin`` is the number of the first operation of the body of a loop, of which the run is one iteration.
    ``sizes`` are the shapes of numbers that are given to each executable as it runs, see ``number_feeds``.
    """

    __slots__ = ("begin", "done", "feeds", "key", "known", "sizes")

    def __init__(
        self,
        feeds: tuple[Source, ...],
        done: frozenset[Operation] = frozenset(),
        begin: int = 0,
        known: dict[Source, Any] | None = None,
        sizes: dict[Source, tuple[int, ...]] | None = None,
    ) -> None:
        self.feeds, self.done, self.begin = feeds, done, begin
        self.known, self.sizes = known or {}, sizes or {}
        numbers = tuple((source, value.tobytes(), value.shape) for source, value in self.known.items())
        self.key = (feeds, done, begin, numbers, tuple(self.sizes.items()))

    def is_past(self, operation: Operation) -> bool:
        """Whether an operation that something must wait for has run before."""
        return operation in self.done or operation.number < self.begin

    def after(
        self,
        feeds: Sequence[Source] = (),
        done: Sequence[Operation] = (),
        known: dict[Source, Any] | None = None,
        sizes: dict[Source, tuple[int, ...]] | None = None,
    ) -> Position:
        """The position with more fed, done and known."""
        return Position(
            (*self.feeds, *feeds),
            self.done.union(done),
            self.begin,
            {**self.known, **(known or {})},
            {**self.sizes, **(sizes or {})},
        )


class Subgraph:
    """The operations that a request needs, in order of declaration, and the variables they read and write.

    ``reads`` are the variables whose values from before the run are needed, ``states`` those whose values at the
    beginning of this part of the run are. ``carried`` are tensors that are fed and through which derivatives pass to
    what they are otherwise computed from, which is therefore needed, too.
    """

    def __init__(
        self, request: StepRequest, position: Position, soft: bool, tasks: Collection[tuple[str, int]]
    ) -> None:
        self.request = request
        self.position = position
        self.known = position.known
        self.fed = set(position.feeds)
        self._soft, self._tasks = soft, tasks
        self.operations: list[Operation] = []
        self.reads: dict[Any, None] = {}
        self.states: dict[Any, None] = {}
        self.numbers: list[Operation] = []
        self.chosen: dict[Operation, list[Source]] = {}
        self.is_random = False
        self.carried: set[Source] = set()
        self._effects: dict[Operation, tuple[frozenset[Operation], bool]] = {}
        self._collect()
        self._find_reads()
        self.written = tuple(dict.fromkeys(v for operation in self.operations for v in operation.updates))
        self.observers = [operation for operation in self.operations if operation.observe is not None]

    def _roots(self) -> list[Operation]:
        """The operations that must run."""
        owners = [source[0] for source in self.request.fetches if source not in self.fed]
        return owners + [op for op in self.request.operations if not self.position.is_past(op)]

    def _collect(self) -> None:
        seen: set[int] = set()
        unmet: list[Needed] = []
        stack: list[tuple[Operation, Operation | None]] = [(root, None) for root in self._roots()]
        while stack:
            operation, above = stack.pop()
            if id(operation) in seen:
                continue
            seen.add(id(operation))
            self._check(operation, above or operation)
            self.operations.append(operation)
            self.is_random = (
                self.is_random
                or operation.is_random
                or (operation.flow is not None and operation.flow.is_random)
            )
            if operation.number_of is not None:
                self.numbers.append(operation)
            try:
                sources = self.chosen[operation] = self._needed_by(operation)
            except Needed as needed:
                unmet.append(needed)
                sources = list(operation.sources)
            stack += [(source[0], operation) for source in sources if source not in self.fed]
            carried = self._carried(operation)
            self.carried.update(carried)
            stack += [(source[0], operation) for source in carried]
            stack += [(c, operation) for c in operation.control_inputs if not self.position.is_past(c)]
        self.operations.sort(key=lambda operation: operation.number)
        if unmet:
            raise self._first(unmet)

    def _first(self, unmet: Sequence[Needed]) -> Needed:
        """Of what must be done first the first; pure functions of the host with others that wait for nothing."""
        first = min(unmet, key=lambda needed: needed.operation.number)
        if first.source is not None or not first.operation.is_pure:
            return first
        calls = {needed.operation for needed in unmet}
        waiting: set[Operation] = set()
        for operation in self.operations:
            above = {
                source[0]
                for source in self.chosen.get(operation, operation.sources)
                if source not in self.fed
            }
            above.update(operation.control_inputs)
            if (
                operation in calls
                and operation.is_pure
                and operation is not first.operation
                and not above & waiting
            ):
                first.also += (operation,)
            if operation in calls or operation.updates or operation.observe or above & waiting:
                waiting.add(operation)
        return first

    def _carried(self, operation: Operation) -> list[Source]:
        """The tensors that are fed between what an operation differentiates and what by."""
        if operation.type not in DERIVATIVES:
            return []
        fed = [source for source in self.fed if source[0].sources and self._may_carry(*source)]
        targets = set(operation.sources[operation.flow.roots :]) if fed else set()
        between = operations_between(operation.sources[: operation.flow.roots], targets) if fed else []
        return [source for source in fed if source[0] in between]

    def _may_carry(self, operation: Operation, index: int) -> bool:
        computed = operation.python is None and not operation.updates and not self.position.is_past(operation)
        return computed and operation.outputs[index].dtype.kind in "fc"

    def _find_reads(self) -> None:
        written: set[Any] = set()
        for operation in self.operations:
            if operation.reads_state:
                self.states.update(dict.fromkeys(v for v in operation.updates if v not in written))
            written.update(operation.updates)
            for source in self.chosen[operation]:
                self._find_read(operation, source)
        for source in self.request.fetches:
            variable = self.held(source)
            if self.request.consumer is not None:
                self._find_read(self.request.consumer, source)
            elif variable is None:
                self._find_read(None, source)
            elif variable not in written:
                self.states[variable] = None
        if not self.position.done:
            self.reads.update(self.states)
            self.states = {}

    def _find_read(self, operation: Operation | None, source: Source) -> None:
        variable = read_of(source)
        if variable is None or source in self.fed:
            return
        update, past = (None, False) if operation is None else self.seen_after(operation, variable)
        if operation is not None and operation.flow is not None:
            self.reads[variable] = None
        if update is None:
            (self.states if past else self.reads)[variable] = None

    def _needed_by(self, operation: Operation) -> list[Source]:
        """The inputs that an operation needs computed; of a choice those of the branch that is taken."""
        if operation.python is not None:
            if any((operation, k) not in self.fed for k in range(max(len(operation.outputs), 1))):
                raise Needed(operation, None)
            return []
        sources = [
            source
            for k, source in enumerate(operation.sources)
            if k not in operation.host or not (source in self.known or source in self.position.sizes)
        ]
        if not operation.branches:
            return sources
        predicate = operation.sources[0]
        chosen = int(self.value_known(operation, predicate))
        last = len(operation.branches) - 1
        return list(operation.branches[chosen if 0 <= chosen <= last else last])

    def value_known(self, operation: Operation, source: Source) -> Any:
        """The numbers of ``source``; raises Needed if they are not known yet."""
        if source in self.known:
            return self.known[source]
        try:
            value = known_value(source)
        except Unforeseen:
            raise Needed(operation, source, True) from None
        return value.detach().numpy() if isinstance(value, Tensor) else value

    def held(self, source: Source) -> Any:
        """The variable whose memory a tensor is, as TensorFlow has it: a reference, its identity, an update."""
        operation, index = source
        while operation.type == "Identity" and source not in self.fed and operation.sources:
            source = operation.sources[0]
            operation, index = source
        if source in self.fed:
            return None
        variable = operation.updates[index] if operation.updates else operation.variable
        return None if variable is None or variable.use_resource else variable

    def seen_after(self, operation: Operation, variable: Any) -> tuple[Operation | None, bool]:
        """The last update of ``variable`` that ``operation`` waits for; whether it waits for an earlier part."""
        updates: list[Operation] = []
        past = False
        for control in operation.control_inputs:
            effects, earlier = self._effects_of(control)
            past = past or earlier
            updates += [effect for effect in effects if variable in effect.updates]
        return max(updates, key=lambda effect: effect.number, default=None), past

    def _effects_of(self, control: Operation) -> tuple[frozenset[Operation], bool]:
        if control not in self._effects:
            found: list[Operation] = []
            past = False
            seen: set[Operation] = set()
            stack = [control]
            while stack:
                operation = stack.pop()
                if self.position.is_past(operation):
                    past = past or operation in self.position.done
                    continue
                if operation in seen:
                    continue
                seen.add(operation)
                if operation.updates:
                    found.append(operation)
                sources = self.chosen.get(operation, operation.sources)
                past = past or any(owner in self.position.done for owner, _ in sources)
                stack += [source[0] for source in sources if source not in self.fed]
                stack += operation.control_inputs
            self._effects[control] = (frozenset(found), past)
        return self._effects[control]

    def _check(self, operation: Operation, above: Operation) -> None:
        if operation.type == ARGUMENT and (operation, 0) not in self.fed:
            consumer = self.request.consumer
            if consumer is not None:  # whose numbers these are, before the loop begins
                error = GraphError(
                    f"{consumer.name}, declared at {consumer.where}: an iteration of the loop computes {above.name}, "
                    "whose numbers are needed before the loop begins",
                    "Compute them outside of the loop, such as by tf.shape of a tensor that is there.",
                )
                raise end_at(error, _core.location_of(consumer.outputs[0]))
            error = GraphError(
                f"{above.name} ({above.where}) is inside the body of a loop and has a value only there, at {here()}",
                "Let the body return it, as a loop variable or a stacked result.",
            )
            reader = reader_outside([*[owner for owner, _ in self.request.fetches], *self.request.operations])
            raise end_at(error, _core.location_of(reader.outputs[0])) if reader is not None else error
        if operation.device and trouble(operation.device, self._soft, self._tasks):
            raise InvalidArgumentError(
                f"Cannot assign a device for operation {operation.name} ({operation.where}): it is for "
                f"{operation.device}, and the only device is {HERE}, at {here()}",
                "Leave tf.device out, or make the session with tf.ConfigProto(allow_soft_placement=True).",
            )
        if operation.type == "Placeholder" and any(
            (operation, k) not in self.fed for k in range(len(operation.outputs))
        ):
            raise InvalidArgumentError(
                f"placeholder {describe(operation.outputs[0])} is not fed, but {above.name} "
                f"({above.where}) needs it, at {here()}",
                f"Add it to feed_dict: run(..., feed_dict={{{operation.name.split('/')[-1]}: value}}).",
            )
