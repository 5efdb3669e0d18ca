"""What a run of a session would compute, found from the types of what is fed.

Nothing runs but what tells the sizes of the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.debug.draw import operation_of, operations_above, session_of
from twofold.debug.sessions import given_to, types_of
from twofold.dtypes import uint8
from twofold.errors import ArgumentError, GraphError
from twofold.ir.types import TensorType, tensor_type
from twofold.runtime.closure_conversion import as_tensor
from twofold.runtime.tracing import here
from twofold.static.functions.bodies import sources_of
from twofold.static.graph.graph import Operation, describe, get_default_session
from twofold.static.session.conversions import apart
from twofold.static.session.run_arguments import Fetches, call_python, feed_type, feed_value, leaves
from twofold.static.session.session import BaseSession
from twofold.static.session.subgraph import Needed, Position, number_feeds


def planned_run(thing: Any, inputs: Sequence[Any], what: str) -> tuple[str, list[Any]] | None:
    """What to call the fetches of a session, and the closed traces of what a run computes for them.

    A session stands for its last run. None for what is no fetch of a declared graph.

    Args:
        thing: The fetches, or a session.
        inputs: Nothing, or what would be fed.
        what: What asks for it, for errors.
    """
    if (session := session_of(thing)) is not None:
        return "session", [closed for closed, _, _ in last_run(session, inputs, what)]
    operations = [operation_of(getattr(one, "op", one)) for one in leaves(thing)]
    if not operations or None in operations:
        return None
    if len(inputs) > 1 or not all(isinstance(one, Mapping) for one in inputs):
        raise ArgumentError(
            f"{what}: inputs of fetches, at {here()}", "Give one dictionary, as the feed_dict of session.run."
        )
    graph = operations[0].graph
    session = get_default_session()
    if session is None or session.graph is not graph:
        session = BaseSession(graph=graph)
    feeds = apart(dict(inputs[0]) if inputs else {})
    if graph.sequence_axes:
        graph.sequence_axes.refuse(what, feeds)
    title = operations[0].name if len(operations) == 1 else "fetches"
    run = _PlannedRun(session, _with_declared(operations, feeds, session), what)
    return title, list(run.parts(thing))


def last_run(
    session: Any, inputs: Sequence[Any], what: str
) -> list[tuple[Any, list[Any], dict[int, tuple[str, str]]]]:
    """The parts of the last run that compute something: closed traces, what each was given, and its names by key."""
    if inputs or not session._last:
        raise ArgumentError(
            f"{what}: {'inputs of a session' if inputs else 'the session has not run'}, at {here()}",
            "Give the fetches with their feed_dict, or the session after a run.",
        )
    parts = [_part_of_run(executable, fed) for executable, fed in session._last.items()]
    return [part for part in parts if part[0].describe()[1]] or parts[-1:]


def _part_of_run(executable: Any, fed: Sequence[Any]) -> tuple[Any, list[Any], dict[int, tuple[str, str]]]:
    given = given_to(executable, fed)
    closed = _closed(executable, types_of(given))[0]
    feeds = [(owner.outputs[k].name, "input") for owner, k in executable.subgraph.position.feeds]
    names = [*feeds, *[(variable.name, "parameter") for variable in executable.reads]]
    return closed, given, {_core.value_key(value): name for value, name in zip(given, names)}


def _closed(executable: Any, types: Sequence[TensorType]) -> tuple[Any, list[TensorType]]:
    """The closed trace of an executable, and the types of its results."""
    mark = _core.declaration_mark()
    inputs, outputs = executable.calls(types)
    return _core.close(inputs, outputs, mark), [as_tensor(one).type_ for one in outputs]


def _with_declared(operations: Sequence[Operation], feeds: Mapping[Any, Any], session: Any) -> dict[Any, Any]:
    """Feeds, and None for placeholders of known sizes that are not among them."""
    given = {session._feed_source(key) for key in feeds}
    missing = {
        one.outputs[0]: None
        for one in operations_above(operations)
        if one.type == "Placeholder"
        and (one, 0) not in given
        and min(one.outputs[0].type_.shape, default=0) >= 0
    }
    return {**feeds, **missing}


def _fed_types(sources: Sequence[Any], values: Iterable[Any], what: str) -> list[TensorType]:
    types = []
    for (owner, index), value in zip(sources, values):
        tensor = owner.outputs[index]
        shape = None if value is None else numpy.shape(feed_value(tensor, value))
        types.append(feed_type(tensor, shape, what))
    return types


class _PlannedRun:
    """A run of which only the numbers are computed that decide what it computes, such as sizes.

    ``types`` and ``values`` are those of what is fed by now; a value is None where none is known.
    """

    def __init__(self, session: Any, feeds: Mapping[Any, Any], what: str) -> None:
        self._session, self._what = session, what
        self._position = Position(tuple([session._feed_source(key) for key in feeds]))
        self.types = _fed_types(self._position.feeds, feeds.values(), what)
        self.values: list[Any] = list(feeds.values())
        self.sizes: list[Any] = []

    def parts(self, thing: Any) -> Iterator[Any]:
        """The closed traces of the parts of a run, between which functions of Python are called."""
        parsed = Fetches(self._session, thing)
        step = self._session._first_step(self._position, parsed.sources, parsed.operations, False)
        while True:
            while step.first is not None:
                step = step.first
            executable, request = step.executable, step.request
            sizes = [tensor_type(uint8, size.shape) for size in self.sizes]
            variable_type = functools.partial(self._session._type_of, what=self._what)
            try:
                closed, made = _closed(
                    executable, executable.input_types((*self.types, *sizes), variable_type)
                )
            except Needed as needed:
                step.meet(needed)
                continue
            if closed.describe()[1]:
                yield closed
            count = len(request.fetches)
            self._add(made[count : count + len(step.kept)])
            if request.purpose is None:
                return
            step = self._after(step, made[:count])

    def _add(self, types: Sequence[TensorType]) -> None:
        self.types += types
        self.values += [None] * len(types)

    def _after(self, step: Any, made: Sequence[TensorType]) -> Any:
        """The step after one that is there for another."""
        purpose = step.request.purpose
        if isinstance(purpose, tuple):
            number = as_tensor(self._computed(step)[0]).detach().numpy()
            following = step.following(number)
            if purpose in following.position.sizes:
                self.sizes += number_feeds(number)
            return following
        if isinstance(purpose, Operation):
            given = self._computed(step) if purpose.is_pure and not self._unknown(step) else None
            for operation in step.request.called:
                count, opened = len(operation.sources), step.open_outputs(operation)
                if given is None:
                    self._add([self._result_type(operation, k) for k in opened])
                    continue
                results, given = call_python(operation, given[:count]), given[count:]
                self.types += [tensor_type(operation.outputs[k].dtype, results[k].shape) for k in opened]
                self.values += [results[k] for k in opened]
        else:
            self._add(made)
        return step.following()

    def _result_type(self, operation: Operation, k: int) -> TensorType:
        """The declared type of what a function of Python returns."""
        tensor = operation.outputs[k]
        if min(tensor.type_.shape, default=0) < 0:
            raise GraphError(
                f"{self._what}: only a run tells the shape of {describe(tensor)}, which a function of Python returns, "
                f"at {here()}",
                "Declare it with set_shape, or run it and give the session.",
            )
        return feed_type(tensor, None, self._what)

    def _unknown(self, step: Any) -> list[Any]:
        """What a step reads of which no value is known."""
        executable = step.executable
        read = {source for one in executable.subgraph.operations for source in sources_of(one)}
        read.update(step.request.fetches)
        fed = zip(executable.subgraph.position.feeds, self.values)
        return [owner.outputs[k] for (owner, k), value in fed if value is None and (owner, k) in read]

    def _computed(self, step: Any) -> list[Any]:
        """The results of a step, computed of what is fed; raises GraphError where that is not enough."""
        executable, unknown = step.executable, self._unknown(step)
        if unknown or executable.written or executable.observers:
            waits = step.request.consumer
            of = f" of {', '.join(map(describe, unknown))}" if unknown else ""
            is_fed = bool(unknown) and all(one.op.type == "Placeholder" for one in unknown)
            raise GraphError(
                f"{self._what}: {waits.name} ({waits.where}) needs numbers{of} that only a run tells, at {here()}",
                "Feed values for it." if is_fed else "Run it, and give the session, whose last run is known.",
            )
        values = [
            numpy.zeros(type.shape, type.dtype.numpy)
            if value is None
            else feed_value(owner.outputs[k], value)
            for (owner, k), type, value in zip(executable.subgraph.position.feeds, self.types, self.values)
        ]
        last = self._session._last
        try:
            found: list[Any] = self._session._execute(
                executable, (*values, *self.sizes), self._session._next_run(), {}
            )
        finally:
            self._session._last = last
        return found[: len(step.request.fetches)]
