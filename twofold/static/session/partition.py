"""A run as steps in order: parts of the graph, each computed as one function, and what the host does between them.

A function of the host (``py_func``, a queue) is called after everything that it reads and everything that it
waits for has been computed and written. So is what must be known in numbers before a body can be declared: a shape that
a run computes, the predicate of a choice between effects. Each effect happens once in a run.

Steps are found once. What follows a step depends on nothing but the numbers that it tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.static.functions.bodies import source_of, written_by_bodies
from twofold.static.graph.graph import Operation
from twofold.static.graph.inference import Source
from twofold.static.session.cached_run import Executable
from twofold.static.session.subgraph import Needed, Position, StepRequest, Subgraph, is_like_sizes


class Step:
    """One step towards the last of ``requests``, each of which is there for the one before it.

    ``kept`` are the results that later steps are fed. ``written_inside`` are the variables that the bodies of a loop or
    choice write which the host then runs. ``first``, if there is one, is a step to take before: what this
    one computes is planned again when that is done.
    """

    __slots__ = (
        "_following",
        "_initial",
        "_session",
        "end",
        "executable",
        "first",
        "kept",
        "position",
        "requests",
        "written_inside",
    )

    def __init__(self, session: Any, position: Position, requests: tuple[StepRequest, ...]) -> None:
        self._session, self.position, self.requests = session, position, requests
        self._following: dict[Any, Step] = {}
        self._initial: dict[Any, Step] = {}
        self.end = position  # where a run stands when this step is done
        self.kept: list[Source] = []
        self.first: Step | None = None
        self.written_inside = written_by_bodies(requests[-1].purpose)
        try:
            subgraph = Subgraph(requests[-1], position, session._soft, session._tasks)
        except Needed as needed:
            self.meet(needed)
            return
        if requests[-1].keeps:
            effects = [operation for operation in subgraph.operations if operation.updates]
            self.kept = self._lasting(subgraph, effects)
            self.end = position.after(self.kept, [*effects, *subgraph.observers])
        self.executable: Executable = session._executable(subgraph, self.kept)

    @property
    def request(self) -> StepRequest:
        """What this step computes."""
        return self.requests[-1]

    @property
    def computes(self) -> bool:
        """Whether there is anything to compute."""
        return bool(
            self.request.purpose is None or self.request.fetches or self.executable.subgraph.operations
        )

    def _lasting(self, subgraph: Subgraph, effects: Sequence[Operation]) -> list[Source]:
        """The outputs of effects, and of what has read a variable that these, or bodies, write and would read anew."""
        written = {variable for operation in effects for variable in operation.updates} | self.written_inside
        reads = [
            operation
            for operation in subgraph.operations
            if self.request.purpose is not None
            and not operation.updates
            and any(owner.variable in written for owner, _ in operation.sources)
        ]
        kept = [(operation, k) for operation in (*effects, *reads) for k in range(len(operation.outputs))]
        return [source for source in kept if source not in self.position.feeds]

    def meet(self, needed: Needed) -> None:
        """Let what is needed be computed first."""
        operation, source = needed.operation, needed.source
        if source is not None:
            request = StepRequest((source,), (), operation, source, decides=needed.decides)
        else:
            calls = (operation, *needed.also)
            sources = [source for call in calls for source in call.sources]
            controls = dict.fromkeys(control for call in calls for control in call.control_inputs)
            request = StepRequest(tuple(sources), tuple(controls), operation, operation, also=needed.also)
        self.first = Step(self._session, self.position, (*self.requests, request))

    def initialising(self, variable: Any) -> Step:
        """The step to the first value of a variable that has none yet."""
        found = self._initial.get(variable)
        if found is None:
            request = StepRequest((source_of(variable.initial_value),), (), variable.initializer, variable)
            found = self._initial[variable] = Step(self._session, self.position, (*self.requests, request))
        return found

    def open_outputs(self, operation: Operation) -> list[int]:
        """The outputs of a function of the host that are not fed."""
        return [k for k in range(len(operation.outputs)) if (operation, k) not in self.end.feeds]

    def following(self, number: Any = None) -> Step:
        """The step after this one, which may depend on the number that it told, or on its shape alone."""
        sized = number is not None and not self.request.decides and is_like_sizes(number)
        key = None if number is None else number.shape if sized else (number.tobytes(), number.shape)
        found = self._following.get(key)
        if found is None:
            purpose = self.request.purpose
            if isinstance(purpose, Operation):
                called = self.requests[-1].called
                opened = [(operation, k) for operation in called for k in self.open_outputs(operation)]
                more = self.end.after(opened, called)
            elif sized:
                more = self.end.after(sizes={purpose: number.shape})
            elif number is not None:
                more = self.end.after(known={purpose: number})
            else:
                more = self.end.after([(purpose.op, 0)])
            found = self._following[key] = Step(self._session, more, self.requests[:-1])
        return found
