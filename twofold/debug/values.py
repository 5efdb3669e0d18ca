"""Any value of a run after it: computed again from what the run was given, and from nothing else."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from twofold import _core
from twofold.debug.bodies import Bodies
from twofold.debug.draw import session_of
from twofold.debug.evaluation import computed
from twofold.debug.frames import Frames
from twofold.debug.names import Held, numbers_of, object_of
from twofold.debug.recording import GIVEN, Call, Recording, calls_inside, recorded
from twofold.debug.sessions import recording_of
from twofold.debug.snapshots import MOST_SHARED_BYTES
from twofold.debug.source import position_of
from twofold.debug.stepping import Run, frames_of, uncompiled
from twofold.errors import ArgumentError
from twofold.static.session.session import BaseSession

Tensor = _core.Tensor


class Found(NamedTuple):
    """A value of a run, and what it took to compute it again: calls of operations, and seconds."""

    value: Any
    calls: int
    seconds: float


class record:
    """A ``with`` block whose run ``value``, ``story``, ``explain`` and ``draw`` can look into: what was computed there.

    What the block reads is held as long as the object. Compiled functions and sessions are given to ``value``
    themselves; a session whose last run was in the block shows fed arrays of up to 4 MB as they were fed.

    >>> import twofold as torch
    >>> with torch.debug.record() as run:
    ...     x = torch.tensor([1.0, 2.0])
    ...     y = x * 3
    ...     total = (y + 1).sum()
    >>> torch.debug.value("y", run).value
    tensor([3., 6.])
    """

    def __init__(self) -> None:
        self.tape: list[Any] = []
        """What ran in the block, as the core keeps it."""
        self._block: Any = None
        self._before = -1

    def __enter__(self) -> record:
        self._block = recorded()
        self.tape = self._block.__enter__()
        self._before, BaseSession.most_kept = BaseSession.most_kept, MOST_SHARED_BYTES
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        BaseSession.most_kept = self._before
        self._block.__exit__(kind, error, trace)

    @property
    def recording(self) -> Recording:
        """The calls of the block."""
        made = Recording()
        made.add_tape(self.tape)
        return made


def value(where: str | int, run: Any, *arguments: Any, **named: Any) -> Found:
    """A value inside a run, whether or not the run returned it, and what it cost to find.

    Only what the value depends on is computed again, operation by operation, from what the run was given.

    Args:
        where: The name of a variable of the program, which may hold a list, tuple or dictionary of tensors,
            ``"file.py:12"`` for what the last call on a line gave, or the number of a call in the order of the graph.
            In the body of a loop of the graph that of the last iteration.
        run: A session, whose last run it is, in all parts where ``py_func`` divides it, on arrays as they are now, or
            as they were if it ran in a ``record`` block; such a block; or a function or module, compiled or not, which
            is called.
        arguments: What the function is called with.
        named: Keyword arguments of the function.

    Returns:
        ``(value, calls, seconds)``.

    Raises:
        ArgumentError: If the session has not run, or nothing is found there.

    >>> import twofold as torch
    >>> def f(x):
    ...     y = x * 3
    ...     return (y + 1).sum()
    >>> found = torch.debug.value("y", torch.compile(f), torch.tensor([1.0, 2.0]))
    >>> found.value, found.calls
    (tensor([3., 6.]), 1)
    """
    recording, held = _found(_recordings_of(run, arguments, named), where)
    start = time.perf_counter()
    values, calls = _computed(recording, set(numbers_of(held)))
    return Found(object_of(held, values.__getitem__), calls, time.perf_counter() - start)


_Recordings = list[tuple[Recording, Callable[[], Frames]]]


def _recordings_of(run: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> _Recordings:
    """The calls of each part of a run in order, and what writes its frames."""
    if isinstance(run, record):
        recording = run.recording
        return [(recording, lambda: frames_of(recording, {}, None))]
    if callable(run):
        for one in (*arguments, *named.values()):
            if isinstance(one, Tensor):
                one._realise()  # what made it is no part of the run
        made = Run(uncompiled(run), arguments, named)
        return [(made.recording, lambda: frames_of(made.recording, made.given, made.root))]
    session = session_of(run)
    if session is None:
        raise ArgumentError(
            f"debug.value: {type(run).__name__} is no run",
            "Give a session, a record block, or a function or module with its arguments.",
        )
    if not session._last:
        raise ArgumentError("debug.value: the session has not run", "Run what computes the value first.")
    parts = [recording_of(executable, feeds) for executable, feeds in session._last.items()]
    return [(recording, frames) for recording, _, frames in parts]


def _found(recordings: _Recordings, where: str | int) -> tuple[Recording, Held]:
    """The last part of a run that has a value, and what is there: its number, or what several are held in."""
    calls = [[call for call in recording.calls if call.op is not GIVEN] for recording, _ in recordings]
    if isinstance(where, int):
        every = [(part, call.result) for (part, _), own in zip(recordings, calls) for call in own]
        if not 0 <= where < len(every):
            raise ArgumentError(
                f"debug.value: there is no call {where}", f"The run has calls 0 to {len(every) - 1}."
            )
        return every[where]
    for (recording, frames), own in zip(reversed(recordings), reversed(calls)):
        own = list(calls_inside(own))
        found = _on_line(own, where) if ":" in where else _named(recording, where, frames())
        if found is not None:
            return recording, found
    raise ArgumentError(
        f"debug.value: the run computed nothing at {where!r}",
        "Name a variable, a line or the number of a call.",
    )


def _on_line(calls: list[Call], where: str) -> int | None:
    file, _, line = where.rpartition(":")
    for call in reversed(calls):
        site = call.chain[-1] if call.chain else None
        if site is not None and call.forward is None and str(position_of(site).line) == line:
            name = site.code.co_filename
            if name == file or os.path.basename(name) == file:
                return call.result
    return None


def _named(recording: Recording, name: str, frames: Frames) -> Held:
    """What a variable held last: a value, or a list or other object with values in it."""
    recording.calls += frames.storage.derived.values()  # views of what was written to
    there = {call.result for call in calls_inside(recording.calls)} | set(recording.given)
    held: list[Held] = frames.held.get(name, [])
    return next((one for one in reversed(held) if there.issuperset(numbers_of(one))), None)


def _computed(recording: Recording, numbers: set[int]) -> tuple[dict[int, Any], int]:
    """Values that some depend on, by the numbers of their calls, and how many calls were computed."""
    inside = {one: around for around in recording.calls for one in numbers if _is_inside(around, one)}
    arounds = [one for one in recording.calls if any(one is around for around in inside.values())]
    needed, calls = numbers - set(inside), []
    for around in arounds:
        needed.update(around.operands)
    for call in reversed(recording.calls):
        if call.result in needed and call.op is not GIVEN:
            calls.append(call)
            needed.update(call.operands)
    values = {one: recording.given[one] for one in needed if one in recording.given}
    for call in reversed(calls):
        values[call.result] = computed(call.op, call.attrs, [values[one] for one in call.operands])
    bodies = _CountedBodies(recording)
    bodies.values = values
    for around in arounds:
        for _ in bodies.run_quietly(around):
            pass
    if not numbers <= set(values):
        raise ArgumentError(
            "debug.value: no iteration computed it", "Name a value of the branch that was chosen."
        )
    return values, len(calls) + bodies.calls


def _is_inside(call: Call, number: int) -> bool:
    """Whether a value is computed in the bodies of a loop or branch."""
    return any(one.result == number for part in call.parts for one in calls_inside(part.calls))


class _CountedBodies(Bodies):
    """Loops and branches that run call by call; ``calls`` is how many it took."""

    calls = 0

    def _computed(self, call: Call) -> Any:
        self.calls += 1
        return super()._computed(call)
