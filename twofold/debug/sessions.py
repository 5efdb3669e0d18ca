"""Runs of sessions as frames of the program that declared their graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.debug.declared_stops import insert_stops
from twofold.debug.recording import Recording
from twofold.debug.stepping import BUDGET, Stepper
from twofold.debug.verification import check_closed, on_tier
from twofold.runtime.closure_conversion import as_tensor
from twofold.static.session.cached_run import Plan
from twofold.static.strings.string_table import decode


def recording_of(plan: Plan, feeds: Sequence[Any], stops: Sequence[int] = ()) -> tuple[Recording, list[int]]:
    """What a plan computes for feeds, with breakpoints at locations, and the numbers of its results."""
    closed, given = _closed(
        plan, feeds, differentiated=True
    )  # the forward pass, though only a gradient may read it
    recording = Recording()
    results = recording.add_closed(closed, given)
    for (owner, index), value in zip(plan.subgraph.position.feeds, given):
        number = recording.number_of(value)
        if number is not None:
            recording.position(number, _core.location_of(owner.outputs[index]))
    calls = [recording.stop(location) for location in stops]
    recording.begin_together(calls)
    insert_stops(recording.calls, calls)
    return recording, results


def _closed(plan: Plan, feeds: Sequence[Any], differentiated: bool = False) -> tuple[Any, list[Any]]:
    """The closed trace of a plan for feeds, and these as tensors."""
    given = [as_tensor(value) for value in feeds]
    mark = _core.declaration_mark()
    inputs, outputs = plan.calls(tuple(value.type_ for value in given), differentiated)
    return _core.close(inputs, outputs, mark), given


def fetch(plan: Plan, feeds: Sequence[Any], stops: Sequence[int]) -> list[Any]:
    """What ``plan.fetch`` gives for ``feeds``, computed call by call under the debugger."""
    recording, results = recording_of(plan, feeds, stops)
    stepper = Stepper(recording, {}, BUDGET)
    stepper.run()
    return _shown(plan, [stepper.interpreter.values[number] for number in results])


def verified_fetch(plan: Plan, feeds: Sequence[Any]) -> list[Any]:
    """What ``plan.fetch`` gives for ``feeds``; raises VerificationError unless its calls, one by one, give the same."""
    closed, given = _closed(plan, feeds)
    with on_tier("fused"):
        found = list(plan.function.fetch(tuple(given), 0))
    check_closed(closed, given, found)
    return _shown(plan, found)


def _shown(plan: Plan, found: list[Any]) -> list[Any]:
    """Results as a session returns them: those that are fetched are arrays."""
    for k in range(plan.arrays):
        array = as_tensor(found[k]).detach().numpy()
        found[k] = decode(array) if k in plan.strings else array.copy()[()]
    return found
