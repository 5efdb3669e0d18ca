"""How computations on the host use threads: NumPy's BLAS gets one, and batches are divided among our own.

OpenBLAS splits a product by the number of its threads, which changes the order of its sums, so the bits of what it
returns would depend on ``OPENBLAS_NUM_THREADS`` and on how many processors a process may use.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy

from twofold import _core
from twofold.errors import TwofoldError

try:
    from numpy.linalg import _umath_linalg as _lapack
except ImportError:
    _lapack = None  # type: ignore[assignment]

Array = Any


def _counters() -> tuple[Any, Any] | None:
    """Functions that tell and set the number of threads of the OpenBLAS that NumPy uses; None for another library."""
    if _lapack is None:
        return None
    try:
        # what this extension depends on is searched for symbols, too
        library = ctypes.PyDLL(_lapack.__file__)
    except OSError:
        return None
    for prefix, suffix in itertools.product(("scipy_", ""), ("64_", "_64", "")):
        names = (f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set"))
        try:
            tell, change = (getattr(library, name) for name in names)
        except AttributeError:
            continue
        tell.argtypes, tell.restype = (), ctypes.c_int
        change.argtypes, change.restype = (ctypes.c_int,), None
        return tell, change
    return None


class _OneBlasThread:
    """While any thread is inside, NumPy's OpenBLAS runs with one thread; the last one out restores its number."""

    def __init__(self) -> None:
        self._counters: tuple[Any, Any] | None = None
        self._known = False
        self._before = 1
        self.start_anew()

    def start_anew(self) -> None:
        """As if nobody were inside, as in a child process, whose other threads are gone."""
        self._lock = threading.Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._known:
                self._counters, self._known = _counters(), True
            self._inside += 1
            if self._counters is not None and self._inside == 1:
                tell, change = self._counters
                self._before = tell()
                if self._before != 1:
                    change(1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._counters is not None and self._inside == 0 and self._before != 1:
                tell, change = self._counters
                # another number was set by someone else in the meantime, and is theirs to keep
                if tell() == 1:
                    change(self._before)


one_blas_thread = _OneBlasThread()


class _Workers:
    """Python threads for functions of NumPy that release the interpreter's lock; made at first use."""

    def __init__(self) -> None:
        self.start_anew()

    def start_anew(self) -> None:
        """Without threads, as in a child process."""
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None

    def run(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """The results of all tasks, the first of which runs here."""
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(os.cpu_count() or 1, "twofold-host")
        others = [self._executor.submit(task) for task in tasks[1:]]
        try:
            first = tasks[0]()
        finally:
            # nothing may still write when this returns
            for other in others:
                other.exception()
        return [first, *(other.result() for other in others)]


_workers = _Workers()


def _after_fork() -> None:
    one_blas_thread.start_anew()
    _workers.start_anew()


os.register_at_fork(after_in_child=_after_fork)

_NANOSECONDS_A_THREAD = 300_000
"""Less work than this is not worth a thread of Python."""


def parts_of(count: int, nanoseconds: float) -> list[slice]:
    """``range(count)``, whose whole takes ``nanoseconds``, cut for the threads that may run it."""
    parts = max(1, min(_core.threads(), count, int(nanoseconds / _NANOSECONDS_A_THREAD)))
    ends = [count * part // parts for part in range(parts + 1)]
    return [slice(low, high) for low, high in itertools.pairwise(ends)]


def over_rows(function: Callable[..., Array], arrays: Sequence[Array], nanoseconds: float) -> Array:
    """``function`` of arrays that share their first axis, along which it works row by row, on several threads."""
    parts = parts_of(len(arrays[0]), nanoseconds)
    if len(parts) == 1:
        return function(*arrays)
    tasks = [partial(function, *[array[part] for array in arrays]) for part in parts]
    return numpy.concatenate(_workers.run(tasks))


def over_matrices(function: Callable[..., Any], arrays: Sequence[Array], nanoseconds: float) -> Any:
    """``function`` of batches of matrices, on several threads; it returns an array with their batch axes, or several.

    What has not the batch axes of the first array goes to all. Where a part fails, the whole is computed again for an
    error that counts all matrices.
    """
    batch = arrays[0].shape[:-2]
    count = int(numpy.prod(batch))
    parts = parts_of(count, nanoseconds)
    if len(parts) == 1:
        return function(*arrays)
    axes = len(batch)
    shared = [array.shape[:axes] != batch for array in arrays]
    flat = [
        array if whole else array.reshape(count, *array.shape[axes:]) for array, whole in zip(arrays, shared)
    ]

    def run(part: slice) -> Any:
        return function(*[array if whole else array[part] for array, whole in zip(flat, shared)])

    try:
        found = _workers.run([partial(run, part) for part in parts])
    except TwofoldError:
        return function(*arrays)
    if isinstance(found[0], numpy.ndarray):
        return _joined(found, batch)
    return [_joined(pieces, batch) for pieces in zip(*found, strict=True)]


def _joined(pieces: Sequence[Array], batch: tuple[int, ...]) -> Array:
    whole = numpy.concatenate(pieces)
    return whole.reshape(*batch, *whole.shape[1:])
