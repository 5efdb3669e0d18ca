"""A sampling profiler of the Python lines that the main thread runs, by CPU time of the process."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import CodeType, FrameType
from typing import Any, NamedTuple

from twofold.tracebacks import serves_the_package

_SECONDS = 0.001
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


class Sample(NamedTuple):
    """A sample: its time in nanoseconds of ``time.perf_counter_ns``, and the line of the program."""

    when: int
    code: CodeType
    line: int


class LineSamples:
    """Takes samples on the main thread, unless the program uses the profiling timer itself."""

    def __init__(self) -> None:
        self.found: list[Sample] = []
        self._before: Any = None

    def start(self) -> None:
        """Start sampling."""
        free = signal.getsignal(signal.SIGPROF) in (signal.SIG_DFL, signal.SIG_IGN)
        if free and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGPROF, self._take)
            signal.setitimer(signal.ITIMER_PROF, _SECONDS, _SECONDS)

    def stop(self) -> list[Sample]:
        """Stop sampling; returns the samples."""
        if self._before is not None and threading.current_thread() is threading.main_thread():
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(
                signal.SIGPROF, signal.SIG_IGN
            )  # one more may be under way, which would end the process
        return self.found

    def _take(self, number: int, frame: FrameType | None) -> None:
        when = time.perf_counter_ns()
        found = (
            None  # the innermost frame that is not of this package; better one that is not of Python itself
        )
        while frame is not None:
            file = frame.f_code.co_filename
            if not file.startswith(_PACKAGE) and not _is_generated(frame):
                found = found or frame
                if not serves_the_package(file):
                    found = frame
                    break
            frame = frame.f_back
        if found is not None:
            self.found.append(Sample(when, found.f_code, found.f_lineno))


def _is_generated(frame: FrameType) -> bool:
    """Whether this package, or Python's own modules, made the code that a frame runs, as for a data class."""
    if frame.f_code.co_filename != "<string>" or frame.f_back is None:
        return False
    file = frame.f_back.f_code.co_filename
    return file.startswith(_PACKAGE) or serves_the_package(file)
