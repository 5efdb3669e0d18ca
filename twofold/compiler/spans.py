"""What the compiler works at and when, while somebody asks for it."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Span(NamedTuple):
    """A piece of work: what, the thread, and its beginning and end in nanoseconds of ``time.perf_counter_ns``."""

    what: str
    thread: int
    start: int
    end: int


class Spans:
    """``found`` is a list while spans are kept, ``compiled`` has a line for each trace compiled meanwhile."""

    found: list[Span] | None = None
    compiled: list[str] | None = None


def spanned(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keep when a function runs, under the name ``what``.

    >>> Spans.found = []
    >>> spanned("example")(lambda: 3)()
    3
    >>> [span.what for span in Spans.found]
    ['example']
    >>> Spans.found = None
    """

    def wrapped(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            found = Spans.found
            if found is None:
                return function(*args, **kwargs)
            start = time.perf_counter_ns()
            try:
                return function(*args, **kwargs)
            finally:
                found.append(Span(what, threading.get_ident(), start, time.perf_counter_ns()))

        return call

    return wrapped
