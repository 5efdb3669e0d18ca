"""Runs of a session, step by step, and runs that go on when more is fed.

``Session.partial_run_setup`` prepares a run that goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import string
from twofold.errors import InvalidArgumentError
from twofold.runtime.tracing import here
from twofold.static.functions.bodies import sources_of
from twofold.static.graph.context import local
from twofold.static.graph.graph import Operation
from twofold.static.graph.inference import Source
from twofold.static.session.cached_run import Executable
from twofold.static.session.partition import Step
from twofold.static.session.run_arguments import call_python, feed_value
from twofold.static.session.subgraph import Needed, Position, number_feeds

Parts = dict[Executable, tuple[Any, ...]]
"""What a run executed, in order, and on what; of iterations the last."""


class Run:
    """One run of a session: where it stands, and the values of what is fed by now.

    ``number`` is that of the run, for operations that sample.
    """

    def __init__(self, session: Any, position: Position, values: Sequence[Any], number: int) -> None:
        self.session = session
        self.position = position
        self.values = tuple(values)
        self.number = number
        self.sizes: tuple[
            Any, ...
        ] = ()  # numbers that the position has the shapes of, as the core is given them
        self._before: dict[Any, Any] | None = None
        self._after: dict[Any, Any] | None = None
        self.records: dict[Operation, Any] = {}  # of loops that are differentiated
        self.results: list[Any] = []
        self.parts: Parts = {}

    @property
    def feeds(self) -> tuple[Source, ...]:
        """What is fed by now."""
        return self.position.feeds

    def result(self, fetches: Sequence[Source], operations: Sequence[Operation]) -> list[Any]:
        """The values of ``fetches`` after ``operations`` have run too."""
        return self.take(self.session._first_step(self.position, fetches, operations, False))

    def advance(self, fetches: Sequence[Source], operations: Sequence[Operation]) -> list[Any]:
        """As ``result``, after which more may be computed: no effect happens again."""
        return self.take(self.session._first_step(self.position, fetches, operations, True))

    def record(self, fetches: Sequence[Source]) -> None:
        """Compute ``results`` so that they can be differentiated later: effects and variables are remembered."""
        start = dict(self.session._state)
        self.results = self.advance(fetches, ())
        self._before, self._after = start, dict(self.session._state)

    def resumed(self, feeds: Sequence[Source], values: Sequence[Any]) -> Run:
        """What was recorded, to compute more of it: with the same samples, effects and variables."""
        made = Run(self.session, self.position.after(feeds), (*self.values, *values), self.number)
        made.sizes = self.sizes
        made._before, made._after, made.records = self._before, self._after, self.records
        made.parts = self.parts
        return made

    def inner(self, feeds: Sequence[Source], values: Sequence[Any], begin: int) -> Run:
        """One iteration of a loop, whose body begins with operation number ``begin``."""
        position = Position((*self.feeds, *feeds), self.position.done, begin)
        given = map(_fed, feeds, values)
        made = Run(self.session, position, (*self.values, *given), self.session._next_run())
        made.parts = self.parts
        return made

    def feed(self, sources: Sequence[Source], values: Sequence[Any]) -> None:
        """Give further tensors their values."""
        self.position = self.position.after(sources)
        self.values = (*self.values, *values)

    def take(self, step: Step) -> list[Any]:
        """Take a step and all that follow; the results of the last."""
        while True:
            while step.first is not None:
                step = step.first
            variable = self._uninitialised(step.executable)
            if variable is not None:
                step = step.initialising(variable)
                continue
            try:
                arrays = self._computed(step)
            except Needed as needed:
                step.meet(needed)
                continue
            request = step.request
            count = len(request.fetches)
            if step.kept:
                self.values += tuple(map(_fed, step.kept, arrays[count : count + len(step.kept)]))
            if request.purpose is None:
                self.position = step.end
                return arrays[:count]
            step = self._met(step, arrays[:count])
            self.position = step.position

    def _computed(self, step: Step) -> list[Any]:
        """The results of a step, whose effects then have happened."""
        executable = step.executable
        if not step.computes:
            return []
        feeds = (*self.values, *self.sizes)
        arrays: list[Any] = self.session._execute(
            executable, feeds, self.number, self.parts, self._before, self._after
        )
        executable.observe(arrays, step.position.done)
        if executable.written:
            state = self.session._state
            if self._before is None and step.request.keeps:
                self._before = dict(state)
            state.update(zip(executable.written, arrays[executable.arrays :]))
        return arrays

    def _met(self, step: Step, arrays: Sequence[Any]) -> Step:
        """Do what the results of a step were for; the step after it."""
        purpose = step.request.purpose
        if isinstance(purpose, Operation):
            self.position = step.end
            if self._before is None and step.written_inside:
                self._before = dict(self.session._state)  # iterations, which write, are runs of their own
            for operation in step.request.called:
                count = len(operation.sources)
                made, arrays = self._called(operation, arrays[:count]), arrays[count:]
                self.values += tuple(made[k] for k in step.open_outputs(operation))
        elif isinstance(purpose, tuple):
            number = _as_array(arrays[0])
            after = step.following(number)
            if purpose in after.position.sizes:
                self.sizes += tuple(number_feeds(number))
            return after
        else:
            self.values += tuple(arrays)
        return step.following()

    def _uninitialised(self, executable: Executable) -> Any:
        """A variable without a value that gets one from its initialiser in this very step, or None."""
        state = self.session._state
        for variable in executable.reads:
            if variable not in state and variable.initializer in executable.subgraph.operations:
                return variable
        return None

    def _called(self, operation: Operation, arrays: Sequence[Any]) -> list[Any]:
        """What a function of the host returns; it cannot add to the graph."""
        calling, thread = self.session.graph.calling, get_ident()
        is_inner = thread in calling
        calling.add(thread)
        outer = local.resources
        if outer is None or not self.session.belongs_to_run:
            local.resources = self.session._resources
        try:
            return call_python(operation, [self, *arrays] if operation.hosted else arrays)
        finally:
            local.resources = outer
            if not is_inner:
                calling.discard(thread)


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
        later = {source: _copy_of(array) for source, array in zip(fetches, arrays) if source not in fed}
        self.run.feed(list(later), list(later.values()))
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


def _copy_of(value: Any) -> Any:
    """A result that is handed out, as it stays where the program writes to it."""
    return value.copy() if isinstance(value, numpy.ndarray) else value


def _as_array(value: Any) -> Any:
    return _core.from_array(value, False).detach().numpy() if not hasattr(value, "tobytes") else value


def _fed(source: Source, value: Any) -> Any:
    """A result as it is fed to later steps."""
    tensor = source[0].outputs[source[1]]
    return feed_value(tensor, value) if tensor.dtype is string else value
