"""The client of the compile worker process, which leaves the GIL and most processors to the program.

The worker is started for the first long trace, or once compiling in this process has taken as long as a start does. It
runs at low priority, and ends with this process or when it has been idle for a while. It is optional: if it cannot be
started, or cannot serve a call, the caller makes the call itself.
"""

from __future__ import annotations

import atexit
import os
import pickle
import select
import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, TypeVar

from twofold.compiler import worker as compile_worker
from twofold.compiler.jit import Jit, shared
from twofold.compiler.lower.mode import MODE
from twofold.compiler.totals import TOTALS
from twofold.compiler.worker import Answer, Request, receive, send
from twofold.config import config

if TYPE_CHECKING:
    import subprocess

_START_SECONDS = 120.0
_PATIENCE_SECONDS = 20.0
"""How long the worker may wait for idle processors before another one shares them with the program."""

_LEAST_SHARE = 0.2
"""Of a processor, below which it waits."""

# Interrupts of the terminal are for the program, and go to its group of processes.
_PROGRAM = """import os, sys
os.setpgid(0, 0)
sys.path.extend({path!r})
from twofold.compiler.worker import serve
serve({idle})"""


T = TypeVar("T")
S = TypeVar("S")


def _processor_seconds(pid: int) -> float:
    """What a process has had of processors; infinity where that is not known."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return float("inf")


class CompileProcess:
    """The worker process; used by one thread at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._fails = False
        self._idle = True
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.stop)

    @property
    def runs(self) -> bool:
        """Whether the worker is running."""
        return self._process is not None and self._process.poll() is None

    def call(self, function: Callable[..., T], *arguments: object, otherwise: Callable[[], S]) -> T | S:
        """Call a function in the worker.

        Args:
            function: A function of a module of this package, which is pickled by its name.
            arguments: Its arguments.
            otherwise: Called if there is no worker, or the call or its result cannot be pickled, or it fails.

        Returns:
            The unpickled result, or what ``otherwise`` returns.
        """
        try:
            request = pickle.dumps(Request(function, arguments, MODE.on), pickle.HIGHEST_PROTOCOL)
        except Exception:  # whatever an object raises that cannot be pickled
            return otherwise()
        jit = shared()
        try:
            found = self._ask(request, jit)
        except Exception:
            self.stop()
            found = None
        if found is None:
            return otherwise()
        try:
            for payload in found.objects:
                jit.adopt(payload)
            result: T = pickle.loads(found.result)
        except LookupError:  # kernels are handed over through the disk cache, and there is none
            return otherwise()
        TOTALS.add(*found.planned)
        return result

    def _ask(self, request: bytes, jit: Jit) -> Answer | None:
        if not self.runs:
            self.stop()
            if self._fails or not self._start(jit):
                return None
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        send(process.stdin.fileno(), request)
        if self._waits_in_vain(process.pid, process.stdout):
            self._idle = False
            self.stop()
            return self._ask(request, jit)
        found: Answer | None = pickle.loads(receive(process.stdout.fileno()))
        return found

    def _waits_in_vain(self, pid: int, answers: IO[bytes]) -> bool:
        """Wait for an answer; returns whether the worker got hardly any time of processors instead."""
        while self._idle:
            before = _processor_seconds(pid)
            if select.select([answers], [], [], _PATIENCE_SECONDS)[0]:
                return False
            if _processor_seconds(pid) - before < _LEAST_SHARE * _PATIENCE_SECONDS:
                return True
        return False

    def _start(self, jit: Jit) -> bool:
        """Start the worker; returns whether it runs this library. After a failure it is not started again."""
        import subprocess

        self._fails = True
        name = os.path.basename(sys.executable or "")
        if not name.startswith(("python", "pypy")) or getattr(sys, "frozen", False):
            return False
        home = os.path.abspath(os.path.join(os.path.dirname(compile_worker.__file__), "..", ".."))
        path = [home, *[part for part in sys.path if part]]
        environment = os.environ | {"TWOFOLD_CACHE_DIR": jit.disk.path, "TWOFOLD_LOG": ""}
        if config.target_cpu:
            environment["TWOFOLD_TARGET_CPU"] = config.target_cpu
        self._process = process = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM.format(path=path, idle=self._idle)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=environment,
            cwd="/",
        )
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], _START_SECONDS)[0]:
            raise OSError("the compile worker does not start")
        if receive(process.stdout.fileno()) != compile_worker.__file__.encode():
            raise OSError("the compile worker has another version of the library")
        self._fails = False
        return True

    def stop(self) -> None:
        """Kill the worker."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait()

    def _forget(self) -> None:
        """In a forked child: close the pipes, as the worker is the parent's and ends when the parent closes them."""
        process, self._process = self._process, None
        if process is None:
            return
        process.returncode = 0
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
