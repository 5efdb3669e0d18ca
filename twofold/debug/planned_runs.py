"""What a run of a session would compute, found from the types of what is fed: nothing runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.debug.draw import operation_of, operations_above
from twofold.errors import ArgumentError, GraphError
from twofold.ir.types import TensorType
from twofold.runtime.closure_conversion import as_tensor
from twofold.runtime.tracing import here
from twofold.static.graph.graph import Operation, get_default_session
from twofold.static.session.feeds import feed_type, feed_value
from twofold.static.session.session import BaseSession, Fetches, apart, leaves
from twofold.static.session.subgraph import Needed, Position


def planned_run(thing: Any, inputs: Sequence[Any], what: str) -> tuple[str, list[Any]] | None:
    """What to call the fetches of a session, and the closed traces of what a run computes for them.

    A session stands for the last part of its last run. None for what is no fetch of a declared graph.

    Args:
        thing: The fetches, or a session.
        inputs: Nothing, or what would be fed.
        what: What asks for it, for errors.
    """
    if isinstance(thing, BaseSession):
        return "session", [last_run(thing, inputs, what)[0]]
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
    feeds = dict(inputs[0]) if inputs else {}
    title = operations[0].name if len(operations) == 1 else "fetches"
    return title, list(_parts(session, thing, _with_declared(operations, apart(feeds), session), what))


def last_run(
    session: Any, inputs: Sequence[Any], what: str
) -> tuple[Any, list[Any], dict[int, tuple[str, str]]]:
    """The closed trace of the last part of the last run, the values that it was given, and their names by key."""
    if inputs or session._last is None:
        raise ArgumentError(
            f"{what}: {'inputs of a session' if inputs else 'the session has not run'}, at {here()}",
            "Give the fetches with their feed_dict, or the session after a run.",
        )
    executable, fed = session._last
    given = [as_tensor(one) for one in fed]
    closed = _closed(executable, [one.type_ for one in given])[0]
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


def _parts(session: Any, thing: Any, feeds: Mapping[Any, Any], what: str) -> Iterator[Any]:
    """The closed traces of the parts of a run, between which functions of Python are called."""
    if session.graph.sequence_axes:
        session.graph.sequence_axes.refuse(what, feeds)
    position = Position(tuple([session._feed_source(key) for key in feeds]))
    types = _fed_types(position.feeds, feeds.values(), what)
    parsed = Fetches(session, thing)
    step = session._first_step(position, parsed.sources, parsed.operations, False)
    while True:
        while step.first is not None:
            step = step.first
        executable, request = step.executable, step.request
        given = executable.input_types(types, lambda variable: session._type_of(variable, what))
        try:
            closed, made = _closed(executable, given)
        except Needed as needed:
            step.meet(needed)
            continue
        if closed.describe()[1]:
            yield closed
        count = len(request.fetches)
        types += made[count : count + len(step.kept)]
        if request.purpose is None:
            return
        if isinstance(request.purpose, tuple):
            waits = request.consumer
            raise GraphError(
                f"{what}: {waits.name} ({waits.where}) needs numbers that only a run tells, at {here()}",
                "Run it, and give the session, whose last run is known.",
            )
        if isinstance(request.purpose, Operation):
            opened = [(request.purpose, k) for k in step.open_outputs(request.purpose)]
            types += _fed_types(opened, [None] * len(opened), what)
        else:
            types += made[:count]
        step = step.following()
