"""Whether equal calls run as one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twofold import _core


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
    before = _core.set_batching("off")
    try:
        yield
        _core.flush()
    finally:
        _core.set_batching(before)
