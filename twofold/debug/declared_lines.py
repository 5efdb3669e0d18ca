"""The lines that a program came by as it declared a graph, with what they compute in a run of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from twofold.debug.declarations import Declarations
from twofold.debug.line_trace import Ran, Resolver, Step, Stretch
from twofold.debug.names import Held
from twofold.debug.recording import Call, Recording
from twofold.debug.snapshots import Declared, Snapshot
from twofold.ops.control_flow.programs import LoopSpec
from twofold.runtime.closure_conversion import as_tensor
from twofold.runtime.scopes import operation_name
from twofold.static.functions.bodies import all_inside
from twofold.static.functions.lowering import Flow, Sizes, While
from twofold.static.graph.graph import Operation
from twofold.static.session.cached_run import Executable

Source = tuple[Operation, int]


class Bodies:
    """A loop or branch of the graph, with what the functions do that declared its bodies; without, nobody looks."""

    def __init__(self, call: Call, bodies: Sequence[Sequence[Any]]) -> None:
        self.call, self.bodies = call, bodies


class Pool:
    """Calls of a run or of a body, by the operations that they belong to; each is taken once."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._order = {call.result: k for k, call in enumerate(calls)}
        self._calls = list(calls)
        self._left = set(self._order)
        self._by_name: dict[str, list[Call]] = {}
        for call in calls:
            self._by_name.setdefault(operation_name(call.location), []).append(call)

    def of(self, operation: Operation) -> list[Call]:
        """The calls that an operation makes."""
        return self._by_name.get(operation.name, [])

    def take(self, call: Call) -> list[Call]:
        """A call and all that it reads, as far as nobody has taken them, in order."""
        found: list[int] = []
        stack = [call.result]
        while stack:
            one = stack.pop()
            if one in self._left:
                self._left.remove(one)
                found.append(one)
                stack += self._calls[self._order[one]].operands
        return [self._calls[self._order[one]] for one in sorted(found, key=self._order.__getitem__)]

    def rest(self) -> list[Call]:
        """What nobody has taken, in order."""
        return [one for call in self._calls for one in self.take(call)]

    def results_of(self, operation: Operation, recording: Recording) -> list[int]:
        """The numbers of the outputs of an operation, none where its calls do not tell."""
        calls, count = self.of(operation), len(operation.outputs)
        if not calls or not count:
            return []
        if calls[-1].loop is not None or any(call.op.is_program_result for call in calls):
            loop: Any = next(call.loop for call in calls if call.loop is not None)
            first = 1 if isinstance(loop.content, LoopSpec) else 0
            return recording.results_of(loop)[first : first + count]
        read = {one for call in calls for one in call.operands}
        last = [call.result for call in calls if call.result not in read]
        return [calls[-1].result] if count == 1 else last if len(last) == count else []


class _Values:
    """What sources hold in a run, or inside of a body."""

    def __init__(self, pool: Pool, numbers: Mapping[Source, int], outer: _Values | None) -> None:
        self.pool, self.numbers, self.outer = pool, dict(numbers), outer
        self.done: dict[int, Any] = {}  # shapes of variables that are resolved

    def number_of(self, source: Source, recording: Recording) -> int | None:
        """The number of what a source holds, None where the run has none."""
        operation, index = source
        found = self.numbers.get(source)
        if found is not None:
            return found
        if operation.constant is not None:
            made = recording.give(as_tensor(operation.constant))
            return self.numbers.setdefault(source, made)
        results = self.pool.results_of(operation, recording)
        if index < len(results):
            return self.numbers.setdefault(source, results[index])
        return None if self.outer is None else self.outer.number_of(source, recording)


class _Notes:
    """What was noted, with the stretches of functions that declared bodies of loops and choices."""

    def __init__(self, notes: Declarations) -> None:
        self.tape = notes.tape
        self.position = {one: k for k, one in enumerate(self.tape) if isinstance(one, Operation)}
        self.by_name = {one.name: one for one in self.position}
        self._numbered = {(one.graph, one.number): k for one, k in self.position.items()}
        self.bodies: dict[Operation, list[list[Stretch]]] = {}
        self.owners: dict[Stretch, list[Operation]] = {}
        self.stepped: set[Operation] = set()  # loops and choices with functions in their bodies
        self._declared: dict[Stretch, Any] = {}  # which body
        for stretch in _inside(notes.root):
            for step in (stretch.before, *stretch.steps):
                self._find_bodies(step)

    def operations(self, ran: Ran) -> list[Any]:
        """The entries of the tape that a line made."""
        return self.tape[ran.begin : ran.end]

    def _find_bodies(self, step: Step) -> None:
        called = [one for one in step.did if isinstance(one, Stretch)]
        ran = [one for item in step.did if isinstance(item, Ran) for one in self.operations(item)]
        for operation in [one for one in ran if isinstance(one, Operation)] if called else ():
            flow = flow_of(operation)
            if flow is None:
                continue
            end = self.position[operation]
            begins = [self._numbered.get((operation.graph, body.begin), end) for body in flow.bodies]
            order = sorted(range(len(begins)), key=begins.__getitem__)  # False is declared after True
            ends = {k: begins[later] for k, later in pairwise(order)}
            found: list[list[Stretch]] = [[] for _ in begins]
            for one in called:
                fitting = [k for k in order if begins[k] <= one.begin <= ends.get(k, end)]
                if fitting:
                    self.stepped.add(operation)
                if fitting and self._declared.get(one, flow.bodies[0]) in flow.bodies:  # not one inside of it
                    k = next((k for k in fitting if not found[k]), fitting[-1])
                    found[k].append(one)
                    self._declared[one] = flow.bodies[k]
                    self.owners.setdefault(one, []).append(operation)
            self.bodies[operation] = found


def flow_of(operation: Operation) -> Any:
    """What computes a loop or choice from its bodies, on the host or not; None for other operations."""
    if operation.flow is not None and getattr(operation.flow, "bodies", None):
        return operation.flow
    return operation.hosted if isinstance(operation.hosted, Flow) else None


def _inside(stretch: Stretch) -> Iterator[Stretch]:
    stack = [stretch]
    while stack:
        one = stack.pop()
        yield one
        stack += [
            inner for step in (one.before, *one.steps) for inner in step.did if isinstance(inner, Stretch)
        ]


class DeclaredLines(Resolver):
    """What was noted, as a run of an executable computes it."""

    def __init__(
        self, notes: _Notes, executable: Executable, recording: Recording, values: _Values, stops: bool
    ) -> None:
        self._notes, self._recording, self._values, self._stops = notes, recording, values, stops
        subgraph = executable.subgraph
        stands = subgraph.position
        purpose = subgraph.request.purpose
        done = stands.done or stands.known or stands.sizes or stands.begin
        self._is_first = not done  # of the parts of a run
        self._is_last = purpose is None and not stands.begin
        self._run = set(all_inside(one for one in notes.position if values.pool.of(one)))
        if self._is_first and self._is_last:
            self._needed = {*all_inside(subgraph.operations), *(owner for owner, _ in stands.feeds)}
        else:
            self._needed = {purpose, *subgraph.request.also, *self._run}
            if not self._needed & notes.position.keys():
                self._needed |= {owner for owner, _ in stands.feeds if owner.body is None}
        self._relevant: dict[Stretch, bool] = {}
        self._kept: set[Stretch] = set()  # those of the bodies that are resolved now

    def root(self, noted: Stretch) -> Stretch:
        """The outermost functions, as they were in the run."""
        made = Stretch(None, 0)
        called = [one for one in noted.before.did if isinstance(one, Stretch) and self._is_relevant(one)]
        made.before.did = list(map(self.resolved, called))
        return made

    def resolved(self, stretch: Stretch) -> Stretch:
        is_over = stretch.after is not None
        if is_over and (stretch in self._kept or (self._is_first and self._is_last)):
            return super().resolved(stretch)
        there = [k for k, step in enumerate(stretch.steps) if self._computes(step)]
        if is_over and self._is_first:
            there.insert(0, 0)
        if is_over and self._is_last:
            there.append(len(stretch.steps) - 1)
        whole = Stretch(stretch.code, stretch.offset)
        whole.begin, whole.before, whole.ends_loop = stretch.begin, stretch.before, stretch.ends_loop
        if not there:
            return super().resolved(whole)
        whole.steps = stretch.steps[there[0] : there[-1] + 1]
        is_end = there[-1] + 1 == len(stretch.steps)
        whole.after = stretch.after if is_end else stretch.steps[there[-1] + 1].names
        whole.returned = stretch.returned if is_end else None
        return super().resolved(whole)

    def variables(self, names: Snapshot) -> dict[str, Held]:
        values = self._values

        def number_of(held: Any) -> int | None:
            if isinstance(held, Declared):
                return values.number_of((held.operation, held.output), self._recording)
            return self._recording.give(held)

        return names.resolved(number_of, values.done)

    def did(self, step: Step) -> list[Any]:
        found: list[Any] = []
        for one in step.did:
            if isinstance(one, Ran):
                for entry in self._notes.operations(one):
                    if isinstance(entry, int):
                        found += [self._recording.stop(entry)] if self._stops else []
                    else:
                        found += self._declared(entry)
            elif not isinstance(one, Stretch):
                found.append(one)
            elif self._is_shown(one):
                found.append(self.resolved(one))
        return found

    def rest(self) -> list[Any]:
        """What the run computes beside what was noted."""
        return [made for call in self._values.pool.rest() for made in self._called(call)]

    # Which lines are shown

    def _computes(self, step: Step) -> bool:
        """Whether a line does something in the run."""
        for one in step.did:
            if isinstance(one, Ran) and any(entry in self._needed for entry in self._notes.operations(one)):
                return True
            if isinstance(one, Stretch) and self._is_relevant(one):
                return True
        return False

    def _is_relevant(self, stretch: Stretch) -> bool:
        if stretch not in self._relevant:
            steps = (stretch.before, *stretch.steps)
            self._relevant[stretch] = any(self._computes(step) for step in steps)
        return self._relevant[stretch]

    def _is_shown(self, stretch: Stretch) -> bool:
        """Whether a function is stepped through: not one that declares what the run does not need."""
        owners = self._notes.owners.get(stretch, ())
        if any(one in self._run for one in owners):
            return False  # shown where the loop or branch runs
        if self._is_relevant(stretch) or stretch.raises:
            return True
        is_empty = not any(
            isinstance(one, Ran)
            for inner in _inside(stretch)
            for step in (inner.before, *inner.steps)
            for one in step.did
        )
        return is_empty and not owners and self._is_first and self._is_last

    # What operations compute

    def _declared(self, operation: Operation) -> list[Any]:
        calls = [call for one in self._values.pool.of(operation) for call in self._values.pool.take(one)]
        return [made for call in calls for made in self._called(call)]

    def _called(self, call: Call) -> list[Any]:
        """A call, below what runs the bodies of a loop or branch."""
        if not call.parts:
            return [call]
        operation = self._notes.by_name.get(operation_name(call.location))
        noted = self._notes.bodies.get(operation, ()) if operation is not None else ()
        flow = None if operation is None else flow_of(operation)
        if operation not in self._notes.stepped or isinstance(flow, Sizes):
            return [Bodies(call, []), call]
        before: list[Any] = []
        bodies: list[list[Any]] = []
        for k, part in enumerate(call.parts):
            pool = Pool(part.calls)
            if isinstance(call.content, LoopSpec):
                before, made = self._loop(flow, noted, call, pool)
            else:
                made = self._body(noted[k], pool, {})
            outside, self._values = self._values, _Values(pool, {}, self._values)
            bodies.append([*made, *self.rest()])
            self._values = outside
        return [*before, Bodies(call, bodies), call]

    def _loop(
        self, flow: Any, noted: Sequence[list[Stretch]], call: Call, pool: Pool
    ) -> tuple[list[Any], list[Any]]:
        """What is done before a loop, and in each of its iterations."""
        part, first = call.parts[0], call.content.first + 1
        if not isinstance(flow, While):
            arguments = flow.bodies[0].arguments
            return [], self._body(noted[0], pool, _numbers(arguments, part.inputs[1:]))
        condition, body = flow.bodies
        start = self._body(noted[0], self._values.pool, _numbers(condition.arguments, call.operands[first:]))
        made = self._body(noted[1], pool, _numbers(body.arguments, part.inputs[1:]))
        return start, made + self._body(noted[0], pool, _numbers(condition.arguments, part.results[1:]))

    def _body(self, noted: Sequence[Stretch], pool: Pool, numbers: Mapping[Source, int]) -> list[Any]:
        """What functions do that declared a body, where its arguments have these numbers."""
        outside, self._values = self._values, _Values(pool, numbers, self._values)
        kept, self._kept = self._kept, {*self._kept, *noted}
        try:
            return [self.resolved(one) for one in noted]
        finally:
            self._values, self._kept = outside, kept


def _numbers(arguments: Sequence[Operation], given: Sequence[int]) -> dict[Source, int]:
    return {(argument, 0): number for argument, number in zip(arguments, given)}


def declared_lines(
    executable: Executable,
    recording: Recording,
    values: Mapping[Source, int],
    stops: bool,
) -> Stretch:
    """The lines of the program that declared an executable."""
    found = Stretch(None, 0)
    scope = _Values(Pool(recording.calls), values, None)
    for one in _notes_of(executable):
        lines = DeclaredLines(_Notes(one), executable, recording, scope, stops)
        found.before.did += lines.root(one.root).before.did
    found.before.did += lines.rest()
    return found


def _notes_of(executable: Executable) -> list[Declarations]:
    return [one for one in executable.graph.notes if one.is_complete()]


def is_noted(executable: Executable) -> bool:
    """Whether all operations of an executable were noted as they were declared."""
    known = {entry for one in _notes_of(executable) for entry in one.tape}
    needed = [one for one in executable.subgraph.operations if one.body is not None or one.flow is not None]
    return bool(known) and all(one in known for one in needed)
