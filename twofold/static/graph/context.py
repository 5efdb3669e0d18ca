"""What holds in a thread: default graphs and sessions, whether operations are computed at once, and who steps.

And the graphs that were made last: a handle has no room for a reference to its graph. Sessions, operations and
variables have one; for programs that keep tensors alone, these are kept.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from twofold import _core
from twofold.config import config

RECENT: deque[Any] = deque()
_MOST_RECENT, _LEAST_RECENT = 64, 2


class _Local(threading.local):
    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.sessions: list[Any] = []
        self.eager = False  # whether a function of a run computes its operations at once
        self.in_body = 0  # whether bodies of operations run, which declare to the core
        self.tapes: list[dict[Any, list[Any]]] = []  # of open tapes: values read, by variable
        self.resources: Any = None  # of the session whose run calls a function of the host
        self.noted: Any = None  # who notes what is declared, see ``debug.declarations``


class _Mode:
    """Whether operations are computed at once, see ``eager.gradient_tape``."""

    def __init__(self) -> None:
        self.eager = False
        self._unrecorded: Any = None

    def start(self) -> None:
        """Compute operations at once; gradients are recorded inside tapes alone."""
        if not self.eager:
            self.eager, self._unrecorded = True, _core.GradientMode(False)
            self._unrecorded.__enter__()
            _core.set_hook("lists_at_once", True)

    def stop(self) -> None:
        """Declare operations."""
        if self.eager:
            self._unrecorded.__exit__(None, None, None)
            self.eager = False
            _core.set_hook("lists_at_once", None)


local = _Local()
mode = _Mode()


def keep_recent(graph: Any) -> None:
    """Keep a new graph, and let go of old ones where they are many, or have many bytes of constants."""
    RECENT.append(graph)
    most = config.cache_bytes // 4
    while len(RECENT) > _MOST_RECENT or (
        len(RECENT) > _LEAST_RECENT and sum([one.constant_bytes for one in RECENT]) > most
    ):
        RECENT.popleft()


def leave(stack: list[Any], entered: Any) -> None:
    """Take off what was entered last of a graph or session that may stand in the stack several times."""
    for index in reversed(range(len(stack))):
        if stack[index] is entered:
            del stack[index]
            return


def note_declared(what: Any) -> None:
    """Tell who notes what this thread declares, such as for a debugger, of an operation or breakpoint."""
    if local.noted is not None or sys.gettrace() is not None:
        import_module("twofold.debug.declarations").note(what)


def at_once() -> bool:
    """Whether an operation is computed when it is declared."""
    return (mode.eager or local.eager) and not local.graphs and not local.in_body


@contextmanager
def computed_at_once() -> Iterator[None]:
    """Operations of this thread are computed, whichever graph it declares or runs."""
    before = local.graphs, local.in_body, local.eager
    local.graphs, local.in_body, local.eager = [], 0, True
    try:
        yield
    finally:
        local.graphs, local.in_body, local.eager = before


class _Stepping(threading.local):
    """Whether a debugger steps through the run of this thread, whose own frames are hidden from it."""

    active = False


@contextmanager
def stepping(active: bool = True) -> Iterator[None]:
    """Inside, a debugger steps through functions of the program that a hidden run calls, or does not."""
    before, _stepping.active = _stepping.active, active
    try:
        yield
    finally:
        _stepping.active = before


_stepping = _Stepping()


def followed(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of the program returns; a debugger that steps through the run follows into it."""
    if not _stepping.active:
        return function(*arguments)
    with stepping(False):  # a run that the function starts is not hidden
        return _core.call_traced(function, *arguments)
