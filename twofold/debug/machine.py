"""What this machine can do at best: floating-point operations and bytes a second, measured."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy

from twofold import _core
from twofold.frontend.creation import from_numpy

_SIDE = 768
_COPIED = 1 << 24  # elements: more than the caches hold
_TRIES = 6


class Machine(NamedTuple):
    """Floating-point operations a second in float32, and bytes a second of main memory, with some threads."""

    threads: int
    flops: float
    bandwidth: float

    def floor(self, flops: float, nbytes: float) -> float:
        """The seconds that work takes at least.

        >>> Machine(1, 2e9, 1e9).floor(4e9, 1e9)
        2.0
        """
        return max(flops / self.flops, nbytes / self.bandwidth)


_known: dict[int, Machine] = {}


def machine() -> Machine:
    """The machine with the number of threads that is set; measured once in a process, in about half a second.

    The peak is that of a matrix product, the bandwidth that of a sum of two long vectors.

    >>> machine().flops > 1e8 and machine().bandwidth > 1e7
    True
    """
    threads = _core.threads()
    if threads not in _known:
        _known[threads] = Machine(threads, _peak(), _bandwidth())
    return _known[threads]


def _best(work: object, amount: float) -> float:
    """Amount of work a second, in the best of several tries."""
    best = float("inf")
    for _ in range(_TRIES):
        start = time.perf_counter()
        work()  # type: ignore[operator]
        best = min(best, time.perf_counter() - start)
    return amount / best


def _peak() -> float:
    side = from_numpy(numpy.ones((_SIDE, _SIDE), numpy.float32))

    def product() -> None:
        made = side @ side
        made._realise()

    product()
    return _best(product, 2.0 * _SIDE**3)


def _bandwidth() -> float:
    data = from_numpy(numpy.ones(_COPIED, numpy.float32))

    def total() -> None:
        made = data.sum()
        made._realise()

    total()
    return _best(total, 4.0 * _COPIED)
