"""The time line of a profile in the Trace Event Format, which Perfetto and ``chrome://tracing`` show."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from typing import Any

from twofold.files import atomic_write
from twofold.runtime.profiling import Event, Recording

_PROGRAM, _KERNELS, _COMPILER, _IDLE, _RANGES = 0, 1, 2, 3, 4
_WORKERS = 100
_NAMES = {_PROGRAM: "runs", _KERNELS: "kernels", _COMPILER: "compiler", _IDLE: "idle", _RANGES: "ranges"}
_LEAST_IDLE = 1000  # nanoseconds


def _lane(event: Event) -> int:
    if event.category == "run":
        return _PROGRAM
    if event.category == "kernel":
        return _KERNELS
    if event.category == "piece":
        return _WORKERS + event.thread
    return _RANGES if event.category == "range" else _COMPILER


def _entry(event: Event, base: int, process: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ph": "X",
        "name": event.what,
        "cat": event.category,
        "ts": (event.start - base) / 1000,
        "dur": max(event.end - event.start, 1) / 1000,
        "pid": process,
        "tid": _lane(event),
    }
    if event.lines:
        found["args"] = {"lines": [f"{frame.file}:{frame.line}" for frame in event.lines]}
    return found


def _idle(recording: Recording, process: int) -> list[dict[str, Any]]:
    """Between runs, while the program is in Python or waits."""
    found = []
    reached = recording.start
    for event in recording.timeline():
        if event.category not in ("run", "compiler"):
            continue
        if event.start - reached > _LEAST_IDLE:
            gap = Event("no kernel", "idle", reached, event.start, 0, (), 0)
            found.append({**_entry(gap, recording.start, process), "tid": _IDLE})
        reached = max(reached, event.end)
    return found


def trace_events(recording: Recording, ranges: Iterable[Event] = ()) -> dict[str, Any]:
    """The time line as what is written: times in microseconds from the start of the profile."""
    process = os.getpid()
    events = [_entry(event, recording.start, process) for event in (*recording.timeline(), *ranges)]
    events += _idle(recording, process)
    names = dict(_NAMES)
    for event in events:
        names.setdefault(event["tid"], f"thread {event['tid'] - _WORKERS} of the pool")
    named: list[dict[str, Any]] = [
        {"ph": "M", "name": "thread_name", "pid": process, "tid": lane, "args": {"name": name}}
        for lane, name in sorted(names.items())
    ]
    named.append({"ph": "M", "name": "process_name", "pid": process, "args": {"name": "twofold"}})
    return {"traceEvents": named + events, "displayTimeUnit": "ms"}


def write_chrome_trace(path: Any, recording: Recording, ranges: Iterable[Event] = ()) -> None:
    """Write the time line to a file; compressed where its name ends in ``.gz``."""
    data = json.dumps(trace_events(recording, ranges)).encode()
    if os.fspath(path).endswith(".gz"):
        data = gzip.compress(data)
    with atomic_write(path) as file:
        file.write(data)
