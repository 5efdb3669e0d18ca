"""Whether equal calls run as one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from twofold import _core


class _Switch:
    """Off while anybody holds it: blocks of several threads may end in any order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._before = ""

    def hold(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._before = _core.set_batching("off")
            self._holders += 1

    def release(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                _core.set_batching(self._before)


_switch = _Switch()


@contextmanager
def no_batching() -> Iterator[None]:
    """Inside, calls that could stand together in a batch run one by one; every result has the same bits.

    What was recorded before is computed first, and what is recorded inside at its end. It holds for all threads. See
    ``docs/batches.md``.

    >>> import twofold as torch
    >>> with torch.no_batching():
    ...     rows = [torch.tanh(torch.ones(2) * k) for k in range(3)]
    >>> rows[0]
    tensor([0., 0.])
    """
    _core.flush()
    _switch.hold()
    try:
        yield
        _core.flush()
    finally:
        _switch.release()
