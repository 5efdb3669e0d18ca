"""What the compiler's process runs: traces come in by standard input, programs go out by standard output."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import queue
import struct
import threading
import time
from typing import NamedTuple

from twofold.compiler.jit import shared
from twofold.compiler.linking import compile_outlined
from twofold.compiler.lower.memory import finite_checks
from twofold.compiler.portable_program import PortableProgram
from twofold.compiler.portable_trace import PortableTrace

NICENESS = 10  # gives way to the program, which may have a thread for each core, and still comes to an end
_IDLE_SECONDS = 30.0


class Answer(NamedTuple):
    """A program with the objects that were compiled for it, or what went wrong."""

    program: PortableProgram | None
    objects: list[bytes]
    nanoseconds: int
    error: str


_LENGTH = struct.Struct("=Q")


def send(target: int, message: bytes) -> None:
    """Write a message to a file descriptor."""
    left = memoryview(_LENGTH.pack(len(message)) + message)
    while left:
        left = left[os.write(target, left) :]


def receive(source: int) -> bytes:
    """The next message; EOFError where the other end is gone."""
    (length,) = _LENGTH.unpack(_read(source, _LENGTH.size))
    return _read(source, length)


def _read(source: int, count: int) -> bytes:
    parts = []
    while count:
        part = os.read(source, min(count, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def answer(trace: PortableTrace) -> bytes:
    """A pickled ``Answer``."""
    jit = shared()
    jit.made = []
    start = time.thread_time_ns()
    try:
        with finite_checks(trace.tells_finite):
            program = PortableProgram.of(compile_outlined(trace.trace()))
        found = Answer(program, jit.made, time.thread_time_ns() - start, "")
        return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return pickle.dumps(Answer(None, [], 0, repr(error)))


def _listen(requests: queue.SimpleQueue[bytes]) -> None:
    """The process ends when its parent does, whatever it is doing then."""
    try:
        while True:
            requests.put(receive(0))
    finally:
        os._exit(0)


def _give_way() -> None:
    """Lower the priority of this process, and of its session: Linux may weigh sessions before the processes in them."""
    os.nice(NICENESS)
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as file:
        file.write(str(NICENESS))


def serve() -> None:
    """Answer requests until there are no more, or none for a while."""
    _give_way()
    gc.disable()  # it takes a third of the time, and finds next to nothing
    target = os.dup(1)
    os.dup2(2, 1)  # what libraries print
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    send(target, __file__.encode())
    while True:
        try:
            request = requests.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            os._exit(0)
        try:
            send(target, answer(pickle.loads(request)))
        except BrokenPipeError:  # its program ended meanwhile
            os._exit(0)
        gc.collect()
