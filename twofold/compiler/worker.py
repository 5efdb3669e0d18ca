"""The compile worker process: reads calls from standard input, writes their results to standard output."""

from __future__ import annotations

import contextlib
import gc
import operator
import os
import pickle
import queue
import struct
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from twofold.compiler.jit import shared
from twofold.compiler.lower.mode import finite_checks
from twofold.compiler.totals import TOTALS

NICENESS = 10
_IDLE_SECONDS = 30.0


class Request(NamedTuple):
    """A call of a function of this package; ``tells_finite``: whether kernels report values that are not finite."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    tells_finite: bool


class Answer(NamedTuple):
    """A pickled result, what must be loaded before it is unpickled, and what making it took.

    Attributes:
        result: The pickled result.
        objects: The object files that were compiled for it.
        planned: The plans that were made and their seconds, as ``Totals.planned`` counts them.
    """

    result: bytes
    objects: list[bytes]
    planned: tuple[Any, ...]


_LENGTH = struct.Struct("=Q")


def send(target: int, message: bytes) -> None:
    """Write a message to a file descriptor."""
    left = memoryview(_LENGTH.pack(len(message)) + message)
    while left:
        left = left[os.write(target, left) :]


def receive(source: int) -> bytes:
    """Read the next message; raises EOFError if the other end is closed."""
    (length,) = _LENGTH.unpack(_read(source, _LENGTH.size))
    return _read(source, length)


def _read(source: int, count: int) -> bytes:
    chunks = []
    while count:
        chunk = os.read(source, min(count, 1 << 20))
        if not chunk:
            raise EOFError
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


def answer(request: bytes) -> bytes:
    """Serve a pickled ``Request``; returns a pickled ``Answer``, or a pickled None if the call raises."""
    jit, before = shared(), TOTALS.planned()
    jit.made = []
    try:
        call: Request = pickle.loads(request)
        with finite_checks(call.tells_finite):
            result = call.function(*call.arguments)
        made, after = pickle.dumps(result, pickle.HIGHEST_PROTOCOL), TOTALS.planned()
        found = Answer(made, jit.made, tuple(map(operator.sub, after, before)))
        return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return pickle.dumps(None)


def _listen(requests: queue.SimpleQueue[bytes]) -> None:
    """Queue requests; exits the process when its parent closes the pipe."""
    try:
        while True:
            requests.put(receive(0))
    finally:
        os._exit(0)


def _lower_priority(idle: bool) -> None:
    """Run when a processor is idle alone, else at low priority.

    Linux weighs sessions before the policies of threads, so that this process stays in that of the program.
    """
    if idle:
        with contextlib.suppress(AttributeError, OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            return
    os.nice(NICENESS)


def serve(idle: bool = True) -> None:
    """Answer requests until the pipe is closed, or none comes for a while.

    Args:
        idle: Whether this process is to run only when a processor is idle: a run of the program on all processors waits
            for the last of them, and would for the one that this process has.
    """
    _lower_priority(idle)
    gc.disable()  # it takes a third of the time and finds little
    target = os.dup(1)
    os.dup2(2, 1)  # for what libraries print
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    try:
        send(target, __file__.encode())
        while True:
            send(target, answer(requests.get(timeout=_IDLE_SECONDS)))
            gc.collect()
    except (BrokenPipeError, queue.Empty):  # the parent has exited, or is idle
        os._exit(0)
