"""What the compiler's process runs: calls come in by standard input, results go out by standard output."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import queue
import struct
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from twofold.compiler.jit import shared
from twofold.compiler.lower.memory import finite_checks

NICENESS = 10  # gives way to the program, which may have a thread for each core, and still comes to an end
_IDLE_SECONDS = 30.0


class Request(NamedTuple):
    """A call of a function of this package; ``tells_finite`` where kernels are to tell what is not finite."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    tells_finite: bool


class Answer(NamedTuple):
    """A pickled result, and the objects that were compiled for it, without which it may not be readable."""

    result: bytes
    objects: list[bytes]


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


def answer(request: bytes) -> bytes:
    """A pickled ``Answer`` to a pickled ``Request``; a pickled None where the call raises."""
    jit = shared()
    jit.made = []
    try:
        call: Request = pickle.loads(request)
        with finite_checks(call.tells_finite):
            result = call.function(*call.arguments)
        found = Answer(pickle.dumps(result, pickle.HIGHEST_PROTOCOL), jit.made)
        return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return pickle.dumps(None)


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
            send(target, answer(request))
        except BrokenPipeError:  # its program ended meanwhile
            os._exit(0)
        gc.collect()
