"""Runs that go on when more is fed: what ``Session.partial_run_setup`` prepares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.errors import InvalidArgumentError
from twofold.runtime.tracing import here
from twofold.static.graph import Operation
from twofold.static.infer import Source
from twofold.static.staged import Run


class PartialRun:
    """One run whose ``feeds`` come bit by bit; each of ``fetches`` is handed out once."""

    def __init__(
        self, run: Run, fetches: Sequence[Source], operations: Sequence[Operation], feeds: Sequence[Source]
    ) -> None:
        self.run = run
        self.fetches, self.feeds = dict.fromkeys(fetches, False), dict.fromkeys(feeds, False)
        self.operations = list(operations)

    @property
    def is_done(self) -> bool:
        """Whether everything was fed and fetched."""
        return all(self.fetches.values()) and all(self.feeds.values()) and not self.operations

    def go_on(self, feeds: Sequence[Source], values: Sequence[Any], fetches: Sequence[Source]) -> list[Any]:
        """The values of ``fetches`` when ``feeds`` are fed besides what was before."""
        self._check(self.feeds, feeds, "feed", "fed")
        self._check(self.fetches, fetches, "fetch", "fetched")
        fed = {source for source, given in self.feeds.items() if given} | set(feeds)
        for source in fetches:
            missing = self._missing(source[0], fed) if source not in fed else None
            if missing is not None:
                raise InvalidArgumentError(
                    f"partial_run: fetch {_name(source)} ({source[0].where}) can't be computed from the feeds that "
                    f"have been fed so far, at {here()}",
                    f"Feed {_name(missing)} with it.",
                )
        self.run.feed(feeds, values)
        self.feeds.update(dict.fromkeys(feeds, True))
        ready = [operation for operation in self.operations if self._missing(operation, fed) is None]
        arrays = self.run.advance(fetches, ready)
        self.operations = [operation for operation in self.operations if operation not in ready]
        later = [(source, array) for source, array in zip(fetches, arrays) if source not in fed]
        self.run.feed([source for source, _ in later], [array for _, array in later])
        self.fetches.update(dict.fromkeys(fetches, True))
        return arrays

    @staticmethod
    def _check(known: dict[Source, bool], given: Sequence[Source], what: str, done: str) -> None:
        for source in given:
            if source not in known:
                raise InvalidArgumentError(
                    f"partial_run: the {what} {_name(source)} was not specified in partial_run_setup, at {here()}",
                    "Name it there.",
                )
            if known[source]:
                raise InvalidArgumentError(
                    f"partial_run: the {what} {_name(source)} has already been {done}, at {here()}",
                    "Leave it out.",
                )

    def _missing(self, operation: Operation, fed: set[Source]) -> Source | None:
        """A feed of the setup that ``operation`` needs and that was not fed."""
        seen = {operation}
        stack = [operation]
        while stack:
            above = stack.pop()
            branches = [source for branch in above.branches for source in branch]
            sources = [(above, k) for k in range(len(above.outputs)) if above.type == "Placeholder"]
            for source in (*sources, *above.sources, *branches):
                if source in fed:
                    continue
                if source in self.feeds:
                    return source
                if source[0] not in seen:
                    seen.add(source[0])
                    stack.append(source[0])
            stack += [control for control in above.control_inputs if control not in seen]
            seen.update(above.control_inputs)
        return None


def _name(source: Source) -> str:
    return f"{source[0].name}:{source[1]}"
