"""Threads that stop together: ``tf.train.Coordinator``."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from twofold.static.errors import OutOfRangeError


class Coordinator:
    """Tells threads when to stop, and waits for them; the first error of a thread is raised by ``join``.

    >>> import twofold.static as tf
    >>> import threading
    >>> coordinator = tf.train.Coordinator()
    >>> def work():
    ...     while not coordinator.should_stop():
    ...         coordinator.request_stop()
    >>> threads = [threading.Thread(target=work) for _ in range(2)]
    >>> for thread in threads:
    ...     thread.start()
    >>> coordinator.join(threads)
    """

    def __init__(self, clean_stop_exception_types: tuple[type[BaseException], ...] | None = None) -> None:
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._threads: set[threading.Thread] = set()
        self._clean = (OutOfRangeError,) if clean_stop_exception_types is None else clean_stop_exception_types
        self.joined = False

    def should_stop(self) -> bool:
        """Whether threads should stop."""
        return self._stop.is_set()

    def request_stop(self, ex: Any = None) -> None:
        """Have all threads stop, because of an error perhaps; running out of data is none."""
        error = ex[1] if isinstance(ex, tuple) else ex
        with self._lock:
            if error is not None and not self._stop.is_set() and not isinstance(error, self._clean):
                self._error = error
            self._stop.set()

    def clear_stop(self) -> None:
        """Clear the request to stop, so that threads run again."""
        with self._lock:
            self._error, self.joined = None, False
            self._stop.clear()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until threads should stop; whether they should."""
        return self._stop.wait(timeout)

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Inside, an error makes all threads stop and ends the block."""
        try:
            yield
        except Exception as error:
            self.request_stop(error)

    def register_thread(self, thread: threading.Thread) -> None:
        """Have ``join`` wait for a thread, too."""
        self._threads.add(thread)

    def raise_requested_exception(self) -> None:
        """Raise the error that made the threads stop, if one did."""
        if self._error is not None:
            raise self._error

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait for all threads, not much longer than asked once they should stop; then raise their error.

        Raises RuntimeError for threads that do not stop in time, unless they are ignored.
        """
        left = [*self._threads, *(threads or ())]
        while any(thread.is_alive() for thread in left) and not self.wait_for_stop(0.05):
            pass
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in left:
            thread.join(max(0.0, deadline - time.monotonic()))
        self.joined = True
        self._threads.clear()
        late = [thread.name for thread in left if thread.is_alive()]
        self.raise_requested_exception()
        if late and not ignore_live_threads:
            raise RuntimeError(f"join: {', '.join(late)} did not stop. Let them ask should_stop().")
