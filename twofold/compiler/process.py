"""The compiler in a process of its own, which leaves the interpreter lock and most of the processors to the program.

It is started for the first long trace, or once compiling in this process has taken as long as a start does; runs at low
priority, ends with this process or when it has had nothing to do
for a while, and is no condition: where it cannot be started, or cannot do what is asked, the caller compiles itself.
"""

from __future__ import annotations

import atexit
import os
import pickle
import select
import subprocess
import sys
from collections.abc import Callable
from typing import TypeVar

from twofold.compiler import worker as compile_worker
from twofold.compiler.jit import Jit, shared
from twofold.compiler.lower.memory import MODE
from twofold.compiler.worker import Answer, Request, receive, send
from twofold.config import config

_START_SECONDS = 120.0
_PROGRAM = "import sys; sys.path.extend({path!r}); from twofold.compiler.worker import serve; serve()"


T = TypeVar("T")
S = TypeVar("S")


class CompileProcess:
    """Calls functions of the compiler elsewhere; used by one thread at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._fails = False
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.stop)

    @property
    def runs(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def call(self, function: Callable[..., T], *arguments: object, otherwise: Callable[[], S]) -> T | S:
        """What a function of a module of this package returns in that process.

        Args:
            function: Pickled by its name; its arguments and its result by what they hold.
            arguments: What it is called with.
            otherwise: Called where there is no process, or the call cannot be sent, fails, or has a result that cannot
                be sent.
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
        except LookupError:  # no disk by which to hand over older kernels
            return otherwise()
        return result

    def _ask(self, request: bytes, jit: Jit) -> Answer | None:
        if not self.runs:
            self.stop()
            if self._fails or not self._start(jit):
                return None
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        send(process.stdin.fileno(), request)
        found: Answer | None = pickle.loads(receive(process.stdout.fileno()))
        return found

    def _start(self, jit: Jit) -> bool:
        """Whether it runs this library; the only try if not."""
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
            [sys.executable, "-I", "-c", _PROGRAM.format(path=path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=environment,
            cwd="/",
            start_new_session=True,  # an interrupt from the terminal is for the program
        )
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], _START_SECONDS)[0]:
            raise OSError("the compiler's process does not start")
        if receive(process.stdout.fileno()) != compile_worker.__file__.encode():
            raise OSError("the compiler's process has another library")
        self._fails = False
        return True

    def stop(self) -> None:
        """End it; whatever it is doing is lost."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait()

    def _forget(self) -> None:
        """In a forked child: it is the parent's, and ends with the parent only if nobody else holds its pipes."""
        process, self._process = self._process, None
        if process is None:
            return
        process.returncode = 0
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
