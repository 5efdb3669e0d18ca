"""Functions that are declared once and run many times without their Python: they may use their arguments only."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twofold import _core

_LOCK = threading.Lock()
_watching = [0]

stateful: list[Any] = []
"""Classes whose objects have a state beside their tensors; ``_hooked`` sends their calls to where that is said."""


class Impure(BaseException):
    """Leaves a function that looks at values, or uses anything but its arguments."""


@contextmanager
def arguments_only() -> Iterator[None]:
    """Inside, this thread may compute with declared tensors and numbers; raises Impure at anything else."""
    before = _core.refuse_impure(Impure)
    try:
        watch_calls(1)
        try:
            yield
        finally:
            watch_calls(-1)
    finally:
        _core.refuse_impure(before)


def watch_calls(more: int) -> None:
    """Count those for whom calls of stateful objects go by way of their hooks; ``more`` is 1, or -1 at the end."""
    with _LOCK:
        _watching[0] += more
        for kind in stateful:
            kind._hooked = _watching[0] > 0
