"""The switch that turns batching of equal calls off."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from twofold import _core


class _Switch:
    """A counter of those who turn batching off, as blocks of several threads may end in any order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._before = ""

    def acquire(self) -> None:
        with self._lock:
            if self._count == 0:
                self._before = _core.set_batching("off")
            self._count += 1

    def release(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                _core.set_batching(self._before)


_switch = _Switch()


@contextmanager
def no_batching() -> Iterator[None]:
    """Inside, equal calls are not batched; results have the same bits.

    Pending operations are computed at the start and at the end. It holds for all threads. See
    ``docs/batches.md``.

    >>> import twofold as torch
    >>> with torch.no_batching():
    ...     rows = [torch.tanh(torch.ones(2) * k) for k in range(3)]
    >>> rows[0]
    tensor([0., 0.])
    """
    _core.flush()
    _switch.acquire()
    try:
        yield
        _core.flush()
    finally:
        _switch.release()
