"""Time spans of the work of the compiler, recorded for profiles."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Span(NamedTuple):
    """A piece of work: its name, its thread, and its start and end in nanoseconds of ``time.perf_counter_ns``."""

    what: str
    thread: int
    start: int
    end: int


class Spans:
    """While a profile runs, ``recorded`` is a list of spans, and ``compiled`` of a line for each trace compiled."""

    recorded: list[Span] | None = None
    compiled: list[str] | None = None


def spanned(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Record the calls of a function as spans of the name ``what``.

    >>> Spans.recorded = []
    >>> spanned("example")(lambda: 3)()
    3
    >>> [span.what for span in Spans.recorded]
    ['example']
    >>> Spans.recorded = None
    """

    def wrapped(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            found = Spans.recorded
            if found is None:
                return function(*args, **kwargs)
            start = time.perf_counter_ns()
            try:
                return function(*args, **kwargs)
            finally:
                found.append(Span(what, threading.get_ident(), start, time.perf_counter_ns()))

        return call

    return wrapped
