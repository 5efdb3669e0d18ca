"""Which call inside of a loop or branch goes wrong, and on what: found by running the bodies call by call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from twofold.debug.bodies import Bodies
from twofold.debug.recording import Call, Recording
from twofold.errors import TwofoldError


class InnerCall(NamedTuple):
    """A call of a body: what it computes, where, and of which values."""

    op: Any
    attrs: tuple[Any, ...]
    location: int
    operands: tuple[Any, ...]


class _Wrong(Exception):
    def __init__(self, call: Call, operands: Sequence[Any]) -> None:
        super().__init__(call.op.name)
        self.call = InnerCall(call.op, call.attrs, call.location, tuple(operands))


class _Watched(Bodies):
    """Stops at the first call that raises or gives what is wrong."""

    def __init__(self, recording: Recording, is_wrong: Callable[[Any], bool]) -> None:
        super().__init__(recording)
        self.is_wrong = is_wrong

    def _computed(self, call: Call) -> Any:
        try:
            value = super()._computed(call)
        except TwofoldError:
            raise _Wrong(call, [self.values[number] for number in call.operands]) from None
        if call.loop is None and self.is_wrong(value):
            raise _Wrong(call, [self.values[number] for number in call.operands])
        return value


def first_wrong(
    op: Any, attrs: tuple[Any, ...], operands: Sequence[Any], location: int, is_wrong: Callable[[Any], bool]
) -> InnerCall | None:
    """The first call that goes wrong inside of the loop or branch that was called at a location; None if none does."""
    recording = Recording()
    call = recording.add_call(op, attrs, [recording.give(value) for value in operands], location)
    if call.loop is None:
        return None
    try:
        for _ in _Watched(recording, is_wrong).run_quietly(call):
            pass
    except _Wrong as found:
        return found.call
    return None
