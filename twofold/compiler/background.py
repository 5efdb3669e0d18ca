"""The compiler thread: makes what was handed to it in order, is there again after a fork, never holds up the exit."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_SWITCH_SECONDS = 1e-4
"""After which another thread gets the interpreter lock that the work holds: by default 5 ms, as long as many a step."""


class Background:
    """Calls ``work`` on items one after the other, in a thread of its own that starts with the first item.

    What ``work`` raises is kept for ``wait``. Every step leaves a state that an exception of a signal handler
    between it and the next does not break.

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
        self.failures: list[BaseException] = []
        self.nanoseconds = 0  # CPU time that the work has taken
        self._interval: float | None = None  # of the program, while another one is set
        os.register_at_fork(after_in_child=self._start_again)

    def submit(self, item: Any) -> bool:
        """Have ``item`` worked on; False if that cannot be, since no thread can be started."""
        if not self._ensure_thread():
            return False
        entry = (item, threading.Event())
        self._queue.put(entry)
        self._outstanding = [*[other for other in self._outstanding if not other[1].is_set()], entry]
        return True

    def wait(self) -> None:
        """Block until everything submitted is done; raise the first failure that was not raised yet."""
        for _, done in self._outstanding:
            if not done.is_set() and not self._ensure_thread():
                break
            done.wait()
        if self.failures:
            raise self.failures.pop(0)

    def _ensure_thread(self) -> bool:
        if self._thread is None or not self._thread.is_alive():
            thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system gives no more threads
                return False
            self._thread = thread
        return True

    def _serve(self) -> None:
        source = self._queue
        while True:
            item, done = source.get()
            start = time.thread_time_ns()
            try:
                self._give_way()
                self._work(item)
            except BaseException as error:  # the program goes on without; tests read the failure
                self.failures.append(error)
            finally:
                self.nanoseconds += time.thread_time_ns() - start
                self._end_giving_way()
                done.set()

    def _give_way(self) -> None:
        """Let threads that wait for the interpreter lock have it soon."""
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(min(self._interval, _SWITCH_SECONDS))

    def _end_giving_way(self) -> None:
        if self._interval is not None and sys.getswitchinterval() <= 2 * _SWITCH_SECONDS:  # as it was set
            sys.setswitchinterval(self._interval)
        self._interval = None

    def _start_again(self) -> None:
        """In a forked child: the thread is gone, and with it what it was working on, which is then made here."""
        self._end_giving_way()
        left = [(item, threading.Event()) for item, done in self._outstanding if not done.is_set()]
        self._queue = queue.SimpleQueue()
        for entry in left:
            self._queue.put(entry)
        self._outstanding = left
        self._thread = None
