"""What kernels that a thread writes do beside computing, and what programs that it plans may assume."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Mode(threading.local):
    on = False
    weights_stay = False


MODE = _Mode()
"""Whether kernels that this thread writes tell what is not finite, and whether weights are laid out once."""


@contextmanager
def finite_checks(on: bool) -> Iterator[None]:
    """Kernels that are written inside tell what is not finite if ``on``.

    >>> with finite_checks(True):
    ...     MODE.on
    True
    """
    before, MODE.on = MODE.on, on
    try:
        yield
    finally:
        MODE.on = before


@contextmanager
def staying_weights(on: bool) -> Iterator[None]:
    """Programs that are planned inside lay out inputs once for many runs if ``on``, so that this costs nothing."""
    before, MODE.weights_stay = MODE.weights_stay, on
    try:
        yield
    finally:
        MODE.weights_stay = before
