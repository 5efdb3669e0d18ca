"""Making a graph concrete: its bodies run on placeholders of the very types that were fed.

So a declared program becomes the same calls, with the same sizes, as its define-by-run twin, and returns the
same bits. What is known before anything runs (constants, sizes) is computed on the way.

Variables: a plain read sees the value from before the run. Operations that write variables are replayed in
the order of their declaration, each on what the one before it left. Declared under ``control_dependencies``, an
operation reads what the updates among its control inputs left. A fetch of a variable is its value after the run,
see ``Session.run``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold import _core
from twofold.dtypes import uint8
from twofold.errors import GraphError, InvalidArgumentError, TwofoldError, invalid
from twofold.ir.op import REGISTRY
from twofold.ir.sizes import current_sizes
from twofold.ir.types import TensorType, tensor_type
from twofold.ir.unknown import new_unknown_size
from twofold.ops.base import apply, ops
from twofold.runtime.closures import varied
from twofold.runtime.tracing import here
from twofold.static.bodies import ARGUMENT, all_inside
from twofold.static.graph import DERIVATIVES, Operation, describe, local
from twofold.static.placement import HERE, trouble
from twofold.static.shapes import fits, shape_text
from twofold.static.values import (
    Numbers,
    Source,
    Unforeseen,
    call_body,
    evaluated,
    known_value,
    read_of,
    whole_numbers,
)

Tensor = _core.Tensor
_COPY = REGISTRY["positive"]


class Needed(Exception):
    """Raised for what must be done first: the numbers of ``source`` computed; without it, ``operation`` called.

    ``decides``: what comes then depends on the very numbers.
    """

    def __init__(self, operation: Operation, source: Source | None, decides: bool = False) -> None:
        super().__init__(operation.name)
        self.operation = operation
        self.source = source
        self.decides = decides


class Goal(NamedTuple):
    """What a step computes: ``fetches`` after ``operations`` have run too.

    ``purpose`` says what for: None for the results of the run; an operation whose function of the host is called with
    them; a source whose numbers they are; a variable that they initialise. These are inputs of ``consumer``. With
    ``keeps`` more steps may follow, which see the effects of this one; with ``decides`` the numbers decide what comes.
    """

    fetches: tuple[Source, ...]
    operations: tuple[Operation, ...] = ()
    consumer: Operation | None = None
    purpose: Any = None
    keeps: bool = True
    decides: bool = False


_FEW = 16


def is_like_sizes(number: Any) -> bool:
    """Whether an array may be given to plans as sizes: a few whole numbers, none of them negative."""
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
    ``sizes`` are the shapes of numbers that are given to each plan as it runs, see ``number_feeds``.
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


class Walk:
    """The operations that a goal needs, in order of declaration, and the variables they read and write.

    ``reads`` are the variables whose values from before the run are needed, ``states`` those whose values at the
    beginning of this part of the run are.
    """

    def __init__(self, goal: Goal, position: Position, soft: bool) -> None:
        self.goal = goal
        self.position = position
        self.known = position.known
        self.fed = set(position.feeds)
        self._soft = soft
        self.operations: list[Operation] = []
        self.reads: dict[Any, None] = {}
        self.states: dict[Any, None] = {}
        self.numbers: list[Operation] = []
        self.chosen: dict[Operation, list[Source]] = {}
        self.draws = False
        self._effects: dict[Operation, tuple[frozenset[Operation], bool]] = {}
        self._collect()
        self._find_reads()
        self.written = tuple(dict.fromkeys(v for operation in self.operations for v in operation.updates))
        self.observers = [operation for operation in self.operations if operation.observe is not None]

    def _roots(self) -> list[Operation]:
        """The operations that must run."""
        owners = [source[0] for source in self.goal.fetches if source not in self.fed]
        return owners + [op for op in self.goal.operations if not self.position.is_past(op)]

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
            self.draws = (
                self.draws or operation.draws or (operation.flow is not None and operation.flow.draws)
            )
            if operation.number_of is not None:
                self.numbers.append(operation)
            try:
                sources = self.chosen[operation] = self._needed_by(operation)
            except Needed as needed:
                unmet.append(needed)
                sources = list(operation.sources)
            stack += [(source[0], operation) for source in sources if source not in self.fed]
            stack += [(c, operation) for c in operation.control_inputs if not self.position.is_past(c)]
        if unmet:
            raise min(unmet, key=lambda needed: needed.operation.number)
        self.operations.sort(key=lambda operation: operation.number)

    def _find_reads(self) -> None:
        written: set[Any] = set()
        for operation in self.operations:
            if operation.reads_state:
                self.states.update(dict.fromkeys(v for v in operation.updates if v not in written))
            written.update(operation.updates)
            for source in self.chosen[operation]:
                self._find_read(operation, source)
        for source in self.goal.fetches:
            variable = self.held(source)
            if self.goal.consumer is not None:
                self._find_read(self.goal.consumer, source)
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
            if (operation, 0) not in self.fed:
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
            raise GraphError(
                f"{above.name} ({above.where}) is inside the body of a loop and has a value only there, at {here()}",
                "Let the body return it, as a loop variable or a stacked result.",
            )
        if operation.device and trouble(operation.device, self._soft):
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


def _placeholder(type: TensorType, declared: Any) -> Tensor:
    """What stands for a feed, at the line that declared it."""
    before = _core.declare_at(0 if declared is None else declared)
    try:
        return _core.placeholder(type)
    finally:
        _core.declare_at(before)


class Replay:
    """One replay, for the types of the inputs: feeds, variables read, numbers given, the number of the run."""

    def __init__(self, walk: Walk, kept: Sequence[Source], types: Sequence[TensorType]) -> None:
        self.walk = walk
        self.kept = kept
        declared = [owner.outputs[index] for owner, index in walk.position.feeds]
        self.inputs = tuple(_placeholder(type, tensor) for type, tensor in zip_longest(types, declared))
        self.fed = dict(zip(walk.position.feeds, self.inputs))
        feeds = len(walk.position.feeds) + sum(map(prod, walk.position.sizes.values()))
        self._sizes = iter(self.inputs[len(walk.position.feeds) : feeds])
        self.sizes = {source: self._number(source, shape) for source, shape in walk.position.sizes.items()}
        self.before = dict(zip(walk.reads, self.inputs[feeds:]))
        states = feeds + len(walk.reads)
        self.state: dict[Any, Any] = {**self.before, **dict(zip(walk.states, self.inputs[states:]))}
        self.started = dict(self.state)
        self.numbers = dict(zip(walk.numbers, self.inputs[states + len(walk.states) :]))
        self.counter = self.inputs[-1] if walk.draws else None
        self.values: dict[Operation, list[Any]] = {}
        self.depth = 0  # of bodies of compiled loops and choices
        self.differentiated: list[Any] = []  # values whose derivatives are taken
        self.targets = {
            source for op in all_inside(walk.operations) if op.type in DERIVATIVES for source in op.sources
        }

        flows = [op.flow for op in all_inside(walk.operations) if op.flow is not None]
        self.rules = {op for flow in flows for op in flow.rules}

    def _number(self, source: Source, shape: tuple[int, ...]) -> Any:
        """Numbers that the inputs have as sizes."""
        found = [next(self._sizes).type_.shape[0] for _ in range(prod(shape))]
        return whole_numbers(numpy.array(found, object).reshape(shape), source[0].outputs[source[1]].dtype)

    def run(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """(inputs, outputs): fetches, what observers see, then new values of the variables written."""
        local.replaying += 1
        recording = _core.GradientMode(True)  # what is declared does not depend on who runs it
        recording.__enter__()
        try:
            for operation in self.walk.operations:
                self.values[operation] = self.outputs_of(operation)
            outputs = [self._fetch(source) for source in self.walk.goal.fetches]
            outputs += [self._copied(source[0], self.value_of(source)) for source in self.kept]
            for operation in self.walk.observers:
                outputs += [self._copied(operation, self.read(operation, s)) for s in operation.sources]
            outputs += [self.symbolic(self.state[variable]) for variable in self.walk.written]
        finally:
            recording.__exit__(None, None, None)
            local.replaying -= 1
        return self.inputs, tuple(outputs)

    def outputs_of(self, operation: Operation) -> list[Any]:
        """The values of an operation's outputs, those that are fed as they are fed."""
        count = len(operation.outputs)
        fed = [self.fed.get((operation, k)) for k in range(count)]
        if count and all(value is not None for value in fed):
            return fed
        if not count:
            return []
        around = _core.declare_at(operation.outputs[0])
        try:
            made = self._compute(operation)
            if operation in self.rules:
                made = operation.pullback.attach(self, made)
            for k in range(count):
                if fed[k] is not None:
                    made[k] = fed[k]
                elif (operation, k) in self.targets and made[k] is not None:
                    made[k] = self.symbolic(made[k])
        finally:
            _core.declare_at(around)
        return made

    def _compute(self, operation: Operation) -> list[Any]:
        if operation.constant is not None:
            return [operation.constant]
        if operation.variable is not None and not operation.updates:
            return [self.before.get(operation.variable)]
        if operation in self.numbers:
            return [self.numbers[operation]]
        if operation.branches:
            return [self.read(operation, source) for source in self.walk.chosen[operation]]
        if operation.flow is not None:
            return self._flow(operation)
        values = [self._input(operation, k, source) for k, source in enumerate(operation.sources)]
        states = [self.state[variable] for variable in operation.updates] if operation.reads_state else []
        if any(isinstance(v, Numbers) and not self._is_known(operation, k) for k, v in enumerate(values)):
            try:
                return evaluated(operation, values)
            except Unforeseen:
                values = [self._as_input(operation, k, value) for k, value in enumerate(values)]
        made = self._called(operation, values, states)
        try:
            for value in made:
                if isinstance(value, Tensor) and not value._is_symbolic:
                    value._realise()  # so that nothing stays behind in the trace of the program around
        except TwofoldError:
            # constants that do not fit each other, perhaps in a branch that no run takes: it raises if it runs
            given = [self.symbolic(value) if isinstance(value, Tensor) else value for value in values]
            made = self._called(operation, given, states)
        if operation.updates:
            self._check_written(operation, made)
        if operation.updates and self.targets:
            made = [apply("stop_gradient", self.symbolic(value)) for value in made]
        for variable, value in zip(operation.updates, made):
            self.state[variable] = value
        return made

    def _called(self, operation: Operation, values: Sequence[Any], states: Sequence[Any]) -> list[Any]:
        """What the body of an operation returns, as tensors."""
        try:
            made = call_body(operation, values, self._varied_counter(), states)
        except TwofoldError as error:
            raise invalid(type(error))(
                f"{operation.name}, declared at {operation.where}: {error.what}, at {here()}", error.fix
            ) from None
        kinds = (Tensor, Numbers)
        return [value if isinstance(value, kinds) else _core.from_array(value, False) for value in made]

    @staticmethod
    def _is_known(operation: Operation, position: int) -> bool:
        """Whether a body is given the numbers of an input."""
        return position in operation.host or position in operation.wished

    def _as_input(self, operation: Operation, position: int, value: Any) -> Any:
        """An input for a body: numbers that it need not know are a tensor."""
        known = self._is_known(operation, position)
        return value if known or not isinstance(value, Numbers) else self.symbolic(value)

    @staticmethod
    def _check_written(operation: Operation, made: Sequence[Any]) -> None:
        for variable, value, output in zip(operation.updates, made, operation.outputs):
            if not fits(value.type_.shape, output.type_.shape):
                raise InvalidArgumentError(
                    f"{operation.name} ({operation.where}): a value {value.type_.dtype.name}"
                    f"{shape_text(value.type_.shape)} does not fit variable {variable.describe()}, at {here()}",
                    "Assign a value of its shape, or use tf.assign(..., validate_shape=False).",
                )

    def _varied_counter(self) -> Any:
        return None if self.counter is None else varied(self.counter)

    def _flow(self, operation: Operation) -> list[Any]:
        try:
            made: list[Any] = operation.flow.compute(self, operation)
        except TwofoldError as error:
            if error.located and f", declared at {operation.where}" in error.what:
                raise
            fix = error.fix
            worded = invalid(type(error))(
                f"{operation.name}, declared at {operation.where}: {error.what}", fix
            )
            worded.located = True
            raise worded from None
        return made

    def _input(self, operation: Operation, position: int, source: Source) -> Any:
        if self._is_known(operation, position) and (position in operation.host or not self.depth):
            return self.number(operation, source)
        return self.read(operation, source)

    def read(self, operation: Operation, source: Source) -> Any:
        """An input of an operation; of a variable what the updates that it waits for left."""
        variable = read_of(source)
        if variable is None or not operation.control_inputs or source in self.fed:
            return self.value_of(source)
        update, past = self.walk.seen_after(operation, variable)
        if update is None:
            return self.started[variable] if past else self.before[variable]
        return self.values[update][update.updates.index(variable)]

    def reads_of(self, variable: Any) -> list[Any]:
        """All values of a variable that an operation may have read by now."""
        found = [held[variable] for held in (self.before, self.started) if variable in held]
        for operation in self.walk.operations:
            if variable in operation.updates and operation in self.values:
                found.append(self.values[operation][operation.updates.index(variable)])
        return found

    def value_of(self, source: Source) -> Any:
        """The value of a tensor that was computed before."""
        return self.fed[source] if source in self.fed else self.values[source[0]][source[1]]

    def number(self, operation: Operation, source: Source) -> Any:
        """The numbers of an input, which a part of the run before this one may have to compute."""
        if source in self.walk.known:
            return self.walk.known[source]
        if source in self.sizes:
            return self.sizes[source]
        value = self.value_of(source)
        if not isinstance(value, Numbers) and value._is_symbolic:
            if current_sizes() is not None:
                raise Unforeseen  # it may follow from sizes, in a way that symbols do not offer
            raise Needed(operation, source)
        return value

    def symbolic(self, value: Any) -> Any:
        """``value`` as a declared one, so that it is computed when the graph runs."""
        if isinstance(value, Numbers):
            items = [self.symbolic(ops.full((), item, dtype=value.dtype)) for item in value.array.flat]
            return ops.reshape(ops.stack(items), value.shape) if value.ndim else items[0]
        return value if value._is_symbolic else _core.declare(_COPY, (), (value,))

    def _fetch(self, source: Source) -> Any:
        """A value to hand out."""
        consumer = self.walk.goal.consumer
        if consumer is not None:
            return self._copied(source[0], self.read(consumer, source))
        variable = self.walk.held(source)
        return self._copied(source[0], self.value_of(source) if variable is None else self.state[variable])

    def _copied(self, owner: Operation, value: Any) -> Any:
        """``value``, as a copy where it is the memory of a variable, which is never handed out itself."""
        if isinstance(value, Numbers):
            return self.symbolic(value)
        if owner.variable is not None or owner.updates or not value._is_symbolic:
            return _core.declare(_COPY, (), (value,))
        return value
