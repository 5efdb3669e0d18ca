"""What is computed in a run, and where the run stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from twofold.static.graph import Operation
from twofold.static.values import Source


class Goal(NamedTuple):
    """What a step computes: ``fetches`` after ``operations`` have run too.

    ``purpose`` says what for: None for the results of the run; an operation whose function of the host is called with
    them; a source whose numbers they are; a variable that they initialise. These are inputs of ``consumer``. With
    ``keeps`` more steps may follow, which see the effects of this one.
    """

    fetches: tuple[Source, ...]
    operations: tuple[Operation, ...] = ()
    consumer: Operation | None = None
    purpose: Any = None
    keeps: bool = True


class Position:
    """Where a run stands: what is fed by now, which effects have happened, and which numbers are known.

    ``begin`` is the number of the first operation of the body of a loop, of which the run is one iteration.
    """

    __slots__ = ("begin", "done", "feeds", "key", "known")

    def __init__(
        self,
        feeds: tuple[Source, ...],
        done: frozenset[Operation] = frozenset(),
        begin: int = 0,
        known: dict[Source, Any] | None = None,
    ) -> None:
        self.feeds, self.done, self.begin = feeds, done, begin
        self.known = known or {}
        numbers = tuple((source, value.tobytes(), value.shape) for source, value in self.known.items())
        self.key = (feeds, done, begin, numbers)

    def is_past(self, operation: Operation) -> bool:
        """Whether an operation that something must wait for has run before."""
        return operation in self.done or operation.number < self.begin

    def after(
        self,
        feeds: Sequence[Source] = (),
        done: Sequence[Operation] = (),
        known: dict[Source, Any] | None = None,
    ) -> Position:
        """The position with more fed, done and known."""
        return Position(
            (*self.feeds, *feeds), self.done.union(done), self.begin, {**self.known, **(known or {})}
        )
