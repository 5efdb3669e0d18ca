"""What ``breakpoint()`` does where a program is recorded, and there are no values to look at yet."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_LOCK = threading.Lock()
_actions: dict[int, list[Callable[[], None]]] = {}  # by thread, innermost last
_before: Any = None


def stopping() -> bool:
    """Whether ``breakpoint()`` stops: ``PYTHONBREAKPOINT=0`` turns it off."""
    return os.environ.get("PYTHONBREAKPOINT") != "0"


@contextmanager
def breakpoints_as(action: Callable[[], None]) -> Iterator[None]:
    """Inside, ``breakpoint()`` of this thread calls ``action``."""
    global _before
    thread = threading.get_ident()
    with _LOCK:
        if not _actions:
            _before, sys.breakpointhook = sys.breakpointhook, _hook
        _actions.setdefault(thread, []).append(action)
    try:
        yield
    finally:
        with _LOCK:
            _actions[thread].pop()
            if not _actions[thread]:
                del _actions[thread]
            if not _actions:
                sys.breakpointhook = _before


def _hook(*arguments: Any, **named: Any) -> Any:
    here = _actions.get(threading.get_ident())
    if here is None:
        return _before(*arguments, **named)
    if stopping():
        here[-1]()
    return None
