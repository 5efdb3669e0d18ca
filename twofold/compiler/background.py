"""The compiler thread: a work queue that survives a fork and never delays the exit of the process."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_MOST_WAITING = 256
"""Items that wait at most: of structures that come faster than they compile, each keeps its trace in memory."""

_SWITCH_SECONDS = 1e-4
"""The switch interval while it works: after the default of 5 ms many a training step would be over."""


class Background:
    """A work queue with one thread, which starts with the first item; any thread may add items.

    An exception of ``work`` is raised by ``wait``. The state is consistent after each step, so that an exception of a
    signal handler between two steps does no harm.

    >>> made = []
    >>> background = Background(made.append, "example")
    >>> background.submit(1), background.submit(2)
    (True, True)
    >>> background.wait()
    >>> made
    [1, 2]
    """

    def __init__(self, work: Callable[[Any], None], name: str) -> None:
        self._work = work
        self._name = name
        self._queue: queue.SimpleQueue[tuple[Any, threading.Event]] = queue.SimpleQueue()
        self._outstanding: list[tuple[Any, threading.Event]] = []
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()  # a signal handler may add an item while one is added
        self.failures: list[BaseException] = []
        self.nanoseconds = 0  # CPU time of the work
        self._interval: float | None = None  # the switch interval of the program while it is changed
        os.register_at_fork(after_in_child=self._restart)

    def submit(self, item: Any) -> bool:
        """Add ``item`` to the queue; False if it is full or no thread can be started."""
        with self._lock:
            if self._queue.qsize() >= _MOST_WAITING or not self._ensure_thread():
                return False
            entry = (item, threading.Event())
            self._queue.put(entry)
            self._outstanding = [*[other for other in self._outstanding if not other[1].is_set()], entry]
            return True

    def wait(self) -> None:
        """Block until all items are done; raises the first exception that was not raised yet."""
        for _, done in self._outstanding:
            if not done.is_set() and not self._ensure_thread():
                break
            done.wait()
        try:
            failure = self.failures.pop(0)
        except IndexError:  # there is none, or another thread that waited has it
            return
        raise failure

    def drop(self) -> list[Any]:
        """Remove the items that were not begun, and return them."""
        dropped = []
        with contextlib.suppress(queue.Empty):
            while True:
                item, done = self._queue.get_nowait()
                dropped.append(item)
                done.set()
        return dropped

    def _ensure_thread(self) -> bool:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no more threads
                    return False
                self._thread = thread
            return True

    def _serve(self) -> None:
        source = self._queue
        while True:
            item, done = source.get()
            start = time.thread_time_ns()
            try:
                self._shorten_switch_interval()
                self._work(item)
            except BaseException as error:  # kept for ``wait``
                self.failures.append(error)
            finally:
                self.nanoseconds += time.thread_time_ns() - start
                self._restore_switch_interval()
                done.set()

    def _shorten_switch_interval(self) -> None:
        """Let threads that wait for the GIL have it soon."""
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(min(self._interval, _SWITCH_SECONDS))

    def _restore_switch_interval(self) -> None:
        if (
            self._interval is not None and sys.getswitchinterval() <= 2 * _SWITCH_SECONDS
        ):  # unless the program changed it
            sys.setswitchinterval(self._interval)
        self._interval = None

    def _restart(self) -> None:
        """In a forked child: queue unfinished items again, as the thread is gone."""
        self._restore_switch_interval()
        self._lock = threading.RLock()  # another thread of the parent may have held it
        left = [(item, threading.Event()) for item, done in self._outstanding if not done.is_set()]
        self._queue = queue.SimpleQueue()
        for entry in left:
            self._queue.put(entry)
        self._outstanding = left
        self._thread = None
