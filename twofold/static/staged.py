"""Runs in parts: what a part needs in numbers, or from Python, is computed in parts before it.

A function of the host (``py_func``, a queue) is called after everything that it reads and everything that it
waits for has been computed and written; a choice between effects is made when its predicate is known; a loop with
effects runs its body again and again. Each effect happens once in a run. ``Session.partial_run_setup`` prepares a run
that goes on when more is fed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.errors import InvalidArgumentError
from twofold.runtime.tracing import here
from twofold.static.bodies import source_of, sources_of
from twofold.static.graph import Operation
from twofold.static.plan import Plan, call_python
from twofold.static.replay import Demand, Request
from twofold.static.values import Source


class Run:
    """One run of a session: what is fed, what is known by now, and which effects have happened.

    ``number`` is that of the run, for operations that draw; ``begin`` that of the first operation of the body of a
    loop, of which this is one iteration.
    """

    def __init__(
        self,
        session: Any,
        feeds: Sequence[Source],
        values: Sequence[Any],
        number: int,
        done: frozenset[Operation] = frozenset(),
        begin: int = 0,
    ) -> None:
        self.session = session
        self.feeds = tuple(feeds)
        self.values = tuple(values)
        self.number = number
        self.begin = begin
        self._done = done
        self._observed: set[Operation] = set()
        self._known: dict[Source, Any] = {}
        self._before: dict[Any, Any] | None = None
        self._after: dict[Any, Any] | None = None
        self.records: dict[Operation, Any] = {}  # of loops that are differentiated
        self.results: list[Any] = []

    def result(self, fetches: Sequence[Source], operations: Sequence[Operation]) -> list[Any]:
        """The values of ``fetches`` after ``operations`` have run too."""
        return self._computed(self._request(fetches, operations))[: len(fetches)]

    def record(self, fetches: Sequence[Source]) -> None:
        """Compute ``results`` so that they can be differentiated later: effects and variables are remembered."""
        start = dict(self.session._state)
        self.results = self.advance(fetches, ())
        self._before, self._after = start, dict(self.session._state)

    def advance(self, fetches: Sequence[Source], operations: Sequence[Operation]) -> list[Any]:
        """As ``result``, after which more may be computed: no effect happens again."""
        plan = self._planned(self._request(fetches, operations))
        effects = [operation for operation in plan.walk.operations if operation.updates]
        kept = [(operation, k) for operation in effects for k in range(len(operation.outputs))]
        kept = [source for source in kept if source not in self.feeds]
        arrays = self._computed(self._request(fetches, operations, None, kept))
        self.feed(kept, arrays[len(fetches) : len(fetches) + len(kept)])
        self._done |= {*effects, *plan.observers}
        return arrays[: len(fetches)]

    def resumed(self, feeds: Sequence[Source], values: Sequence[Any]) -> Run:
        """What was recorded, to compute more of it: with the same samples, effects and variables."""
        made = Run(
            self.session,
            (*self.feeds, *feeds),
            (*self.values, *values),
            self.number,
            self._done,
            self.begin,
        )
        made._before, made._after, made.records = self._before, self._after, self.records
        made._known = dict(self._known)
        return made

    def inner(self, feeds: Sequence[Source], values: Sequence[Any], begin: int) -> Run:
        """One iteration of a loop, whose body begins with operation number ``begin``."""
        number = self.session._next_run()
        return Run(self.session, (*self.feeds, *feeds), (*self.values, *values), number, self._done, begin)

    def _request(
        self,
        fetches: Sequence[Source],
        operations: Sequence[Operation],
        consumer: Operation | None = None,
        kept: Sequence[Source] = (),
    ) -> Request:
        soft = self.session._soft
        return Request(fetches, operations, self.feeds, self._done, consumer, kept, self.begin, soft)

    def _again(self, request: Request) -> Request:
        return self._request(request.fetches, request.operations, request.consumer, request.kept)

    def _computed(self, request: Request) -> list[Any]:
        while True:
            request = self._again(request)
            plan: Plan = self.session._plan(request, self._known)
            if plan.demand is None and self._initialised(plan):
                continue
            if plan.demand is None:
                arrays: list[Any] = self.session._execute(
                    plan, self.values, self.number, self._before, self._after
                )
            if plan.demand is None:
                self._commit(plan, arrays)
                return arrays
            self._meet(plan.demand)

    def _initialised(self, plan: Plan) -> bool:
        """Whether variables without a value got one: that of their initialiser, if it is part of the run."""
        state = self.session._state
        missing = [v for v in plan.reads if v not in state and v.initializer in plan.walk.operations]
        for variable in missing:
            found = self._part([source_of(variable.initial_value)], variable.initializer, ())
            self.feed([(variable.op, 0)], found)
        return bool(missing)

    def _commit(self, plan: Plan, arrays: Sequence[Any]) -> None:
        state = self.session._state
        plan.observe(arrays, self._observed)
        self._observed.update(plan.observers)
        if plan.written:
            if self._before is None:
                self._before = dict(state)
            state.update(zip(plan.written, arrays[plan.arrays :]))

    def _meet(self, demand: Demand) -> None:
        operation, source = demand.operation, demand.source
        if source is not None:
            self._known[source] = _as_array(self._part([source], operation, ())[0])
            return
        arrays = self._part(operation.sources, operation, operation.control_inputs)
        made = self._called(operation, arrays)
        self.feed([(operation, k) for k in range(len(made))], made)
        self._done |= {operation}

    def _part(
        self, sources: Sequence[Source], consumer: Operation, controls: Sequence[Operation]
    ) -> list[Any]:
        """Inputs of ``consumer``, after all that they and ``controls`` do."""
        plan = self._planned(self._request(sources, controls, consumer))
        if not sources and not plan.walk.operations:
            return []
        effects = [operation for operation in plan.walk.operations if operation.updates]
        written = {variable for operation in effects for variable in operation.updates}
        # what has read a variable that this part writes would read something else in a later part
        reads = [
            operation
            for operation in plan.walk.operations
            if not operation.updates and any(owner.variable in written for owner, _ in operation.sources)
        ]
        kept = [(operation, k) for operation in (*effects, *reads) for k in range(len(operation.outputs))]
        kept = [source for source in kept if source not in self.feeds]
        arrays = self._computed(self._request(sources, controls, consumer, kept))
        self.feed(kept, arrays[len(sources) : len(sources) + len(kept)])
        self._done |= {*effects, *plan.observers}
        return arrays[: len(sources)]

    def _planned(self, request: Request) -> Plan:
        """The plan of a part after what it demands before it can be made."""
        while True:
            plan: Plan = self.session._plan(request, self._known)
            if plan.demand is None or hasattr(plan, "walk"):
                return plan
            self._meet(plan.demand)
            request = self._again(request)

    def feed(self, sources: Sequence[Source], values: Sequence[Any]) -> None:
        """Give further tensors their values."""
        self.feeds = (*self.feeds, *sources)
        self.values = (*self.values, *values)

    def _called(self, operation: Operation, arrays: Sequence[Any]) -> list[Any]:
        """What a function of the host returns; the graph cannot be added to meanwhile."""
        graph = self.session.graph
        graph.running += 1
        try:
            return call_python(operation, [self, *arrays] if operation.hosted else arrays)
        finally:
            graph.running -= 1


class PartialRun:
    """One run whose ``feeds`` come bit by bit; each of ``fetches`` is handed out once."""

    def __init__(
        self, run: Run, fetches: Sequence[Source], operations: Sequence[Operation], feeds: Sequence[Source]
    ) -> None:
        self.run = run
        self.fetches, self.feeds = dict.fromkeys(fetches, False), dict.fromkeys(feeds, False)
        self.operations = list(operations)

    @property
    def is_done(self) -> bool:
        """Whether everything was fed and fetched."""
        return all(self.fetches.values()) and all(self.feeds.values()) and not self.operations

    def go_on(self, feeds: Sequence[Source], values: Sequence[Any], fetches: Sequence[Source]) -> list[Any]:
        """The values of ``fetches`` when ``feeds`` are fed besides what was before."""
        self._check(self.feeds, feeds, "feed", "fed")
        self._check(self.fetches, fetches, "fetch", "fetched")
        fed = {source for source, given in self.feeds.items() if given} | set(feeds)
        for source in fetches:
            missing = self._missing(source[0], fed) if source not in fed else None
            if missing is not None:
                raise InvalidArgumentError(
                    f"partial_run: fetch {_name(source)} ({source[0].where}) can't be computed from the feeds that "
                    f"have been fed so far, at {here()}",
                    f"Feed {_name(missing)} with it.",
                )
        self.run.feed(feeds, values)
        self.feeds.update(dict.fromkeys(feeds, True))
        ready = [operation for operation in self.operations if self._missing(operation, fed) is None]
        arrays = self.run.advance(fetches, ready)
        self.operations = [operation for operation in self.operations if operation not in ready]
        later = [(source, array) for source, array in zip(fetches, arrays) if source not in fed]
        self.run.feed([source for source, _ in later], [array for _, array in later])
        self.fetches.update(dict.fromkeys(fetches, True))
        return arrays

    @staticmethod
    def _check(known: dict[Source, bool], given: Sequence[Source], what: str, done: str) -> None:
        for source in given:
            if source not in known:
                raise InvalidArgumentError(
                    f"partial_run: the {what} {_name(source)} was not specified in partial_run_setup, at {here()}",
                    "Name it there.",
                )
            if known[source]:
                raise InvalidArgumentError(
                    f"partial_run: the {what} {_name(source)} has already been {done}, at {here()}",
                    "Leave it out.",
                )

    def _missing(self, operation: Operation, fed: set[Source]) -> Source | None:
        """A feed of the setup that ``operation`` needs and that was not fed."""
        seen = {operation}
        stack = [operation]
        while stack:
            above = stack.pop()
            sources = [(above, k) for k in range(len(above.outputs)) if above.type == "Placeholder"]
            for source in (*sources, *sources_of(above)):
                if source in fed:
                    continue
                if source in self.feeds:
                    return source
                if source[0] not in seen:
                    seen.add(source[0])
                    stack.append(source[0])
            stack += [control for control in above.control_inputs if control not in seen]
            seen.update(above.control_inputs)
        return None


def _name(source: Source) -> str:
    return f"{source[0].name}:{source[1]}"


def _as_array(value: Any) -> Any:
    return _core.from_array(value, False).detach().numpy() if not hasattr(value, "tobytes") else value
