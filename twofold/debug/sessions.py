"""Runs of sessions as frames of the program that declared their graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.debug.declared_stops import insert_stops
from twofold.debug.recording import Recording
from twofold.debug.stepping import BUDGET, Stepper
from twofold.debug.verification import check_closed, on_tier
from twofold.frontend.install import symbolic_observed
from twofold.runtime.closure_conversion import as_tensor
from twofold.static.graph.string_table import decode
from twofold.static.session.cached_run import Executable


def recording_of(
    executable: Executable, feeds: Sequence[Any], stops: Sequence[int] = ()
) -> tuple[Recording, list[int]]:
    """What an executable computes for feeds, with breakpoints at locations, and the numbers of its results."""
    closed, given = _closed(
        executable, feeds, differentiated=True
    )  # the forward pass, though only a gradient may read it
    recording = Recording()
    recording.is_declared = True
    results = recording.add_closed(closed, given)
    for (owner, index), value in zip(executable.subgraph.position.feeds, given):
        number = recording.number_of(value)
        if number is not None:
            recording.position(number, _core.location_of(owner.outputs[index]))
    calls = [recording.stop(location) for location in stops]
    recording.begin_together(calls)
    insert_stops(recording.calls, calls)
    return recording, results


def _closed(
    executable: Executable, feeds: Sequence[Any], differentiated: bool = False
) -> tuple[Any, list[Any]]:
    """The closed trace of an executable for feeds, and these as tensors."""
    given = [as_tensor(value) for value in feeds]
    for value in given:
        if value._is_symbolic:
            symbolic_observed(value, "a feed")
    mark = _core.declaration_mark()
    inputs, outputs = executable.calls(tuple(value.type_ for value in given), differentiated)
    return _core.close(inputs, outputs, mark), given


def fetch(executable: Executable, feeds: Sequence[Any], stops: Sequence[int]) -> list[Any]:
    """What ``executable.fetch`` gives for ``feeds``, computed call by call under the debugger."""
    recording, results = recording_of(executable, feeds, stops)
    stepper = Stepper(recording, {}, BUDGET)
    stepper.run()
    if executable.checks_numerics:  # which names what made a value that is not finite
        executable.fetch(tuple(as_tensor(value) for value in feeds), executable.arrays)
    return _shown(executable, [stepper.interpreter.values[number] for number in results])


def verified_fetch(executable: Executable, feeds: Sequence[Any]) -> list[Any]:
    """What ``executable.fetch`` gives; raises VerificationError unless its calls, one by one, give the same."""
    closed, given = _closed(executable, feeds)
    with on_tier("fused"):
        found = list(executable.function.fetch(tuple(given), 0))
    check_closed(closed, given, found)
    return _shown(executable, found)


def _shown(executable: Executable, found: list[Any]) -> list[Any]:
    """Results as a session returns them: those that are fetched are arrays."""
    for k in range(executable.arrays):
        array = as_tensor(found[k]).detach().numpy()
        found[k] = decode(array) if k in executable.strings else array.copy()[()]
    return found
