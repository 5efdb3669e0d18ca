"""What operations keep between the runs of a session, such as the elements of a queue: each session has its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from twofold.static.graph.context import local

State = TypeVar("State")


class Resource(Generic[State]):
    """What an operation keeps, made by ``make`` when a session first needs it."""

    def __init__(self, make: Callable[[], State]) -> None:
        self._make = make
        self._outside: dict[Any, State] = {}

    def in_run(self) -> State:
        """That of the session whose run calls a function in this thread; outside of runs that of the program."""
        return self._found(self._outside if local.resources is None else local.resources)

    def of(self, states: dict[Any, Any]) -> State:
        """That of a session, among the ``states`` of all it has."""
        return self._found(states)

    def outside(self) -> State:
        """That of the program, which what is computed at once has."""
        return self._found(self._outside)

    def _found(self, states: dict[Any, State]) -> State:
        found = states.get(self)
        return states.setdefault(self, self._make()) if found is None else found
