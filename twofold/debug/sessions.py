"""Runs of sessions as frames of the program that declared their graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.debug.declared_frames import DeclaredWriter
from twofold.debug.declared_lines import declared_lines, is_noted
from twofold.debug.declared_stops import insert_stops
from twofold.debug.frames import Frames
from twofold.debug.recording import Recording
from twofold.debug.stepping import BUDGET, Stepper, frames_of
from twofold.debug.verification import check_closed, on_tier
from twofold.dtypes import float64
from twofold.frontend.install import symbolic_observed
from twofold.ir.types import TensorType, tensor_type
from twofold.runtime.closure_conversion import as_tensor
from twofold.static.graph.inference import Source
from twofold.static.graph.string_table import decode
from twofold.static.session.cached_run import Executable
from twofold.static.session.run_arguments import fed_tensor

Tensor = _core.Tensor
_FLOAT = tensor_type(float64, (), True)  # of a Python number


def recording_of(
    executable: Executable, feeds: Sequence[Any], stops: Sequence[int] = ()
) -> tuple[Recording, list[int], Callable[[], Frames]]:
    """What an executable computes for feeds, the numbers of its results, and what writes its frames.

    ``stops`` are the locations of breakpoints.
    """
    given = given_to(executable, feeds)
    if is_noted(executable):
        noted = _noted_recording(executable, given)
        root = declared_lines(executable, noted[0], noted[2], bool(stops))
        return noted[0], noted[1], lambda: frames_of(noted[0], {}, root, DeclaredWriter)
    # the forward pass, too, though only a gradient may read it
    closed = _closed(executable, given, differentiated=True)
    recording = Recording()
    recording.is_declared = True
    results = recording.add_closed(closed, given)
    feeds = [owner.outputs[index] for owner, index in executable.subgraph.position.feeds]
    for declared, value in zip((*feeds, *[one.op.outputs[0] for one in executable.reads]), given):
        number = recording.number_of(value)
        if number is not None:
            recording.position(number, _core.location_of(declared))
    calls = [recording.stop(location) for location in stops]
    recording.begin_together(calls)
    insert_stops(recording.calls, calls)
    return recording, results, lambda: frames_of(recording, {}, None)


def _noted_recording(
    executable: Executable, given: Sequence[Any]
) -> tuple[Recording, list[int], dict[Source, int]]:
    """As ``recording_of``, with the numbers of what the operations give, by their outputs."""
    values: dict[Any, Any] = {}
    mark = _core.declaration_mark()
    inputs, outputs = executable.calls(types_of(given), True, values)
    sources = [(owner, k) for owner, made in values.items() for k in range(len(made))]
    made = {(owner, k): values[owner][k] for owner, k in sources}
    seen = {source: one for source, one in made.items() if isinstance(one, Tensor) and one._is_symbolic}
    recording = Recording()
    found = recording.add_closed(_core.close(inputs, (*outputs, *seen.values()), mark), given)
    numbers = dict(zip(seen, found[len(outputs) :]))
    for source, one in made.items():
        if isinstance(one, (Tensor, numpy.ndarray)) and source not in seen:
            numbers[source] = recording.give(as_tensor(one))
    numbers.update(zip(executable.subgraph.position.feeds, map(recording.give, given)))
    return recording, found[: len(outputs)], numbers


def given_to(executable: Executable, feeds: Sequence[Any]) -> list[Any]:
    """What an executable computes with, of what it is given: feeds of any dtype, then variables and numbers.

    Python's floats, such as a bias correction, stay: as tensors they would have another precision.
    """
    position = executable.subgraph.position.feeds
    given: list[Any] = [fed_tensor(owner.outputs[k], value) for (owner, k), value in zip(position, feeds)]
    given += [value if type(value) is float else as_tensor(value) for value in feeds[len(position) :]]
    for value in given:
        if isinstance(value, Tensor) and value._is_symbolic:
            symbolic_observed(value, "a feed")
    return given


def types_of(given: Sequence[Any]) -> tuple[TensorType, ...]:
    """The types of what ``given_to`` returns."""
    return tuple(value.type_ if isinstance(value, Tensor) else _FLOAT for value in given)


def _closed(executable: Executable, given: Sequence[Any], differentiated: bool = False) -> Any:
    """The closed trace of an executable for feeds."""
    mark = _core.declaration_mark()
    inputs, outputs = executable.calls(types_of(given), differentiated)
    return _core.close(inputs, outputs, mark)


def fetch(executable: Executable, feeds: Sequence[Any], stops: Sequence[int]) -> list[Any]:
    """What ``executable.fetch`` gives for ``feeds``, computed call by call under the debugger."""
    recording, results, frames = recording_of(executable, feeds, stops)
    stepper = Stepper(recording, frames(), BUDGET)
    stepper.run()
    if executable.checks_numerics:  # which names what made a value that is not finite
        executable.fetch(tuple(given_to(executable, feeds)), executable.arrays)
    return _shown(executable, [stepper.interpreter.values[number] for number in results])


def verified_fetch(executable: Executable, feeds: Sequence[Any]) -> list[Any]:
    """What ``executable.fetch`` gives; raises VerificationError unless its calls, one by one, give the same."""
    given = given_to(executable, feeds)
    closed = _closed(executable, given)
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
