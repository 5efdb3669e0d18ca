"""Profiles: times of kernels and runs that the core measured, attributed to the calls that they computed."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy

from twofold import _core
from twofold.compiler.spans import Span, Spans
from twofold.errors import ArgumentError
from twofold.runtime.attribution import (
    EntryCost,
    KernelShare,
    description_of,
    entry_costs,
    program_shares,
)
from twofold.runtime.line_samples import LineSamples, Sample
from twofold.runtime.loop_costs import LoopRuns, inner_calls
from twofold.runtime.scopes import scope_name
from twofold.runtime.tracing import here

_EVENT = numpy.dtype(
    [
        ("start", "i8"),
        ("end", "i8"),
        ("run", "u4"),
        ("entry", "i4"),
        ("instruction", "u4"),
        ("thread", "u2"),
        ("kind", "u1"),
        ("depth", "u1"),
    ]
)
_KERNEL, _PIECE, _RUN = 0, 1, 2
_WHOLE = -1
_LONG, _HANDLED = (
    30_000,
    10_000,
)  # nanoseconds: runs into which a signal may fall; time after a run in which it is handled


class Frame(NamedTuple):
    """A source line: file, line, columns or None, function."""

    file: str
    line: int
    columns: tuple[int, int] | None
    function: str


class Call(NamedTuple):
    """A call of an operation, by its location, and its cost.

    Attributes:
        name: The public name of the operation.
        is_backward: Whether it is part of a backward pass.
        module: The module or name scope.
        frames: The stack of the call, innermost first; in a backward pass that of the forward call.
        times: How often it was run.
        seconds: Its share of the times of the kernels that computed it.
        floor_bytes: Its share of the bytes that these kernels read and wrote at least.
        flops: Its floating-point operations.
        cost: Its cost by itself.
        location: Its location.
        first: The start of the first of its kernels, in nanoseconds of ``time.perf_counter_ns``.
    """

    name: str
    is_backward: bool
    module: str
    frames: tuple[Frame, ...]
    times: int
    seconds: float
    floor_bytes: float
    flops: float
    cost: EntryCost
    location: int
    first: int


class KernelTime(NamedTuple):
    """The total of all calls of one kernel of one program."""

    name: str
    operations: tuple[str, ...]
    lines: tuple[Frame, ...]
    times: int
    seconds: float
    nbytes: int
    flops: int


class Event(NamedTuple):
    """An event of the time line, in nanoseconds of ``time.perf_counter_ns``; ``thread`` 0 is that of the program."""

    what: str
    category: str
    start: int
    end: int
    thread: int
    lines: tuple[Frame, ...]
    depth: int


class PythonTime(NamedTuple):
    """The time of Python on a line, in proportion to the samples."""

    frame: Frame
    samples: int
    seconds: float


class Wall(NamedTuple):
    """The breakdown of wall time in seconds; the parts sum to ``total``."""

    total: float
    kernels: float
    executor: float
    compiler: float
    python: float
    idle: float


class Record:
    """A trace that ran, with the locations of its instructions."""

    def __init__(self, executable: Any, provenance: Sequence[tuple[int, int]], launches: Any) -> None:
        self.provenance = provenance
        self.launches = launches
        self.description = description_of(executable)
        self._shares: list[KernelShare] | None = None
        self.costs = entry_costs(self.description)
        self.loops = LoopRuns(self.description[1], provenance)
        self._backward = self._calls_of_passes()

    def _calls_of_passes(self) -> list[bool]:
        found: list[bool] = []
        entries = self.description[1]
        for entry, cost, (location, forward) in zip(entries, self.costs, self.provenance):
            # a sum of gradients of one value stands at the line of the pass that made one of them
            is_sum = any(ref >= 0 and found[ref] and self.provenance[ref][0] == location for ref in entry[1])
            found.append(bool(forward) or cost.is_backward or is_sum)
        passes: dict[int, set[bool]] = {}  # whether what reads a value is of the pass at its own line
        for number, entry in enumerate(entries):
            for ref in entry[1]:
                if ref >= 0:
                    is_same = found[number] and self.provenance[number][0] == self.provenance[ref][0]
                    passes.setdefault(ref, set()).add(is_same)
        # what is made of nothing at the line of a pass and read by it alone is its first cotangent
        return [own or (not entries[k][1] and passes.get(k) == {True}) for k, own in enumerate(found)]

    @property
    def shares(self) -> list[KernelShare]:
        """The work of each kernel of the fused program."""
        if self._shares is None:
            self._shares = program_shares(self.description)
        return self._shares

    def origin(self, entry: int) -> int:
        """The location of an instruction; in a backward pass that of the call that it differentiates."""
        location, forward = self.provenance[entry]
        return forward or location

    def frames(self, entry: int) -> tuple[Frame, ...]:
        """The stack of an instruction."""
        return frames_of(self.origin(entry))

    def lines(self, entry: int) -> list[Frame]:
        """The innermost line of an instruction; those of the body of a loop."""
        if entry in self.loops.first:
            inner = inner_calls(self.description[1][entry], self.origin(entry), False, ())
            if inner:
                return [frame for one in inner for frame in frames_of(one.location)[:1]]
        return list(self.frames(entry)[:1])

    def module(self, entry: int) -> str:
        """The module or name scope of an instruction."""
        return scope_name(self.origin(entry))

    def is_backward(self, entry: int) -> bool:
        """Whether a backward pass recorded an instruction."""
        return self._backward[entry]

    def entries_of(self, entry: int, instruction: int) -> Sequence[tuple[int, float]]:
        """The instructions that a kernel computes, each with its share of the time."""
        if entry >= 0:
            return ((entry, 1.0),)
        if entry != _WHOLE and self.launches is not None:
            return self._by_cost(self.launches[_WHOLE - 1 - entry])
        if instruction < len(self.shares) and self.shares[instruction].shares:
            return self.shares[instruction].shares
        return self._by_cost(range(len(self.costs)))

    def _by_cost(self, entries: Sequence[int]) -> list[tuple[int, float]]:
        weights = [self.costs[entry].flops + self.costs[entry].nbytes + 1.0 for entry in entries]
        total = sum(weights)
        return [(entry, weight / total) for entry, weight in zip(entries, weights)]

    def kernel(self, entry: int, instruction: int) -> KernelShare:
        """The work of a kernel."""
        if entry == _WHOLE and instruction < len(self.shares):
            return self.shares[instruction]
        shares = tuple(self.entries_of(entry, instruction))
        costs = [self.costs[number] for number, _ in shares]
        names = tuple(dict.fromkeys(cost.name for cost in costs))
        # bytes and flops of the calls of a launch are counted once, with its first kernel
        nbytes, flops = (
            (sum(c.nbytes for c in costs), sum(c.flops for c in costs)) if instruction == 0 else (0, 0)
        )
        return KernelShare("+".join(names[:3]), shares, nbytes, flops, names)


def _inside(record: Record, number: int, whole: Call, counts: dict[int, list[float]]) -> list[Call]:
    """The calls of the body of a loop, which share its time; another call as it is."""
    if number not in record.loops.first:
        return [whole]
    runs = record.loops.count(number) * whole.times
    found = inner_calls(
        record.description[1][number], whole.location, whole.is_backward, counts.get(whole.location, ())
    )
    made = [
        whole._replace(
            name=one.cost.name,
            module=scope_name(one.location),
            frames=frames_of(one.location),
            times=round(runs * one.times),
            seconds=whole.seconds * one.part,
            floor_bytes=one.nbytes * runs,
            flops=one.flops * runs,
            cost=one.cost,
            location=one.location,
        )
        for one in found
    ]
    return made or [whole]


@functools.lru_cache(maxsize=1 << 14)
def frames_of(location: int) -> tuple[Frame, ...]:
    """The stack of a location, innermost frame first."""
    return tuple([Frame(*frame) for frame in _core.location_frames(location)])


class Recording:
    """The measurements between ``start`` and ``stop``; totals are computed on demand."""

    def __init__(
        self,
        measured: Any,
        spans: list[Span],
        samples: list[Sample],
        clock: tuple[int, int],
        occupied: float,
        thread: int,
    ) -> None:
        records, data, self.dropped, first, last = measured
        self.start, self.end = clock
        self.spans = spans
        self._samples = samples
        self._occupied, self._thread = occupied, thread
        self._records = records
        self._known: dict[int, Record | None] = {}
        self.events = numpy.frombuffer(data, _EVENT).copy()
        rate = (last[1] - first[1]) / max(last[0] - first[0], 1)
        for name in ("start", "end"):
            self.events[name] = first[1] + (self.events[name] - first[0]) * rate
        self.compiled: list[str] = []
        self._calls: list[Call] | None = None

    def record(self, number: int) -> Record | None:
        """The trace with a number; None if it is unknown."""
        if number not in self._known:
            found = self._records[number]
            self._known[number] = None if found is None else Record(*found)
        return self._known[number]

    def _kernel_groups(self) -> Iterator[tuple[Record | None, int, int, int, float, int]]:
        """Record, entry, instruction, count, seconds and first start of the kernels that ran in the foreground."""
        own = self.events[(self.events["kind"] == _KERNEL) & (self.events["depth"] == 0)]
        keys = own[["run", "entry", "instruction"]]
        unique, inverse, counts = numpy.unique(keys, return_inverse=True, return_counts=True)
        seconds = numpy.bincount(inverse.reshape(-1), (own["end"] - own["start"]) / 1e9, len(unique))
        first = numpy.full(len(unique), numpy.iinfo(numpy.int64).max)
        numpy.minimum.at(first, inverse.reshape(-1), own["start"])
        columns = unique.tolist(), counts.tolist(), seconds.tolist(), first.tolist()
        for key, count, took, start in zip(*columns):
            yield self.record(key[0]), key[1], key[2], count, took, start

    def calls(self) -> list[Call]:
        """Every call that was computed; of loops the calls of their bodies."""
        if self._calls is None:
            counts = self._loop_counts()
            self._calls = [
                call
                for record, number, whole in self._whole_calls()
                for call in _inside(record, number, whole, counts)
            ]
        return self._calls

    def recorded_calls(self) -> list[Call]:
        """Every call that was computed, as it was recorded: loops as one."""
        return [whole for _, _, whole in self._whole_calls()]

    def _whole_calls(self) -> list[tuple[Record, int, Call]]:
        seconds: dict[tuple[int, int], float] = {}
        touched: dict[tuple[int, int], float] = {}
        records: dict[int, Record] = {}
        firsts: dict[tuple[int, int], int] = {}
        for record, entry, instruction, count, took, start in self._kernel_groups():
            if record is None:
                continue
            records[id(record)] = record
            kernel = record.kernel(entry, instruction)
            for number, part in record.entries_of(entry, instruction):
                key = id(record), record.loops.first.get(number, number)
                seconds[key] = seconds.get(key, 0.0) + took * part
                firsts[key] = min(firsts.get(key, start), start)
                touched[key] = touched.get(key, 0.0) + kernel.nbytes * part * count
        times = self._run_counts()
        found = []
        for (where, number), took in seconds.items():
            record = records[where]
            cost, count = record.costs[number], times[where]
            whole = Call(
                cost.name,
                record.is_backward(number),
                record.module(number),
                record.frames(number),
                count,
                took,
                touched[where, number],
                float(cost.flops) * count,
                cost,
                record.origin(number),
                firsts[where, number],
            )
            found.append((record, number, whole))
        return found

    def _loop_counts(self) -> dict[int, list[float]]:
        """By the location of a loop, how often its body ran, then bodies inside of that, in each iteration."""
        outer = self.events[(self.events["kind"] == _KERNEL) & (self.events["depth"] == 0)]
        outer = outer[numpy.argsort(outer["start"], kind="stable")]
        inner = self.events[
            (self.events["kind"] == _KERNEL) & (self.events["depth"] > 0) & (self.events["instruction"] == 0)
        ]
        around = numpy.searchsorted(outer["start"], inner["start"], "right") - 1
        inside = (around >= 0) & (inner["end"] <= outer["end"][around])
        inner, around = inner[inside], around[inside]
        found: dict[int, list[float]] = {}
        keys, numbers = numpy.unique(outer[["run", "entry", "instruction"]], return_inverse=True)
        numbers = numbers.reshape(-1)
        runs = numpy.bincount(numbers, minlength=len(keys))
        depths = [
            numpy.bincount(numbers[around[inner["depth"] == depth]], minlength=len(keys))
            for depth in range(1, int(inner["depth"].max(initial=0)) + 1)
        ]
        for k, (run, entry, instruction) in enumerate(keys.tolist()):
            record = self.record(run)
            if record is None or not record.loops.first or not depths or not depths[0][k]:
                continue
            totals = [runs[k], *[own[k] for own in depths if own[k]]]
            counts = [float(below / above) for above, below in pairwise(totals)]
            for number, _ in record.entries_of(entry, instruction):
                where = record.origin(number)
                if number in record.loops.first and not record.is_backward(number):
                    found[where] = max(found.get(where, []), counts)
        return found

    def _run_counts(self) -> dict[int, int]:
        runs = self.events[self.events["kind"] == _RUN]
        numbers, counts = numpy.unique(runs["run"], return_counts=True)
        found: dict[int, int] = {}
        for number, count in zip(numbers.tolist(), counts.tolist()):
            found[id(self.record(number))] = count
        for record in self._known.values():  # a run that failed, or is running
            found.setdefault(id(record), 1)
        return found

    def kernels(self) -> list[KernelTime]:
        """The totals of every kernel."""
        found = []
        for record, entry, instruction, count, took, _ in self._kernel_groups():
            if record is None:
                continue
            kernel = record.kernel(entry, instruction)
            lines = dict.fromkeys(frame for number, _ in kernel.shares for frame in record.lines(number))
            found.append(
                KernelTime(
                    kernel.name, kernel.operations, tuple(lines), count, took, kernel.nbytes, kernel.flops
                )
            )
        return found

    def timeline(self) -> list[Event]:
        """All events in order: runs, kernels, their parts on other threads, and the compiler."""
        found = []
        no_lines: tuple[Frame, ...] = ()
        for event in self.events.tolist():
            start, end, run, entry, instruction, thread, kind, depth = event
            record = self.record(run)
            category = ("kernel", "piece", "run")[kind]
            name, lines = category, no_lines
            if record is not None and kind == _RUN:
                name = f"{len(record.costs)} operations"
                lines = record.frames(0)[:1] if record.costs else ()
            elif record is not None and kind == _KERNEL and depth == 0:
                kernel = record.kernel(entry, instruction)
                name = ", ".join(dict.fromkeys(kernel.operations)) or kernel.name
                first = dict.fromkeys(f for number, _ in kernel.shares for f in record.lines(number))
                lines = tuple(first)
            found.append(Event(name, category, start, end, thread, lines, depth))
        for span in self.spans:
            category = "compiler" if span.thread == self._thread else "compiler thread"
            found.append(Event(span.what, category, span.start, span.end, span.thread, (), 0))
        return sorted(found, key=lambda event: event.start)

    def python(self) -> list[PythonTime]:
        """The time of Python by line, the longest first."""
        samples = self._between_runs()
        counts: dict[Frame, int] = {}
        for sample in samples:
            code = sample.code
            frame = Frame(code.co_filename, sample.line, None, code.co_name)
            counts[frame] = counts.get(frame, 0) + 1
        each = self.wall().python / max(len(samples), 1)
        found = [PythonTime(frame, count, count * each) for frame, count in counts.items()]
        return sorted(found, key=lambda one: -one.samples)

    def _between_runs(self) -> list[Sample]:
        """Samples outside of runs and the compiler, after which a pending signal is handled."""
        runs = self.events[(self.events["kind"] == _RUN) & (self.events["depth"] == 0)]
        long = runs[runs["end"] - runs["start"] > _LONG]
        own = [(span.start, span.end) for span in self.spans if span.thread == self._thread]
        busy = sorted([*zip(long["start"].tolist(), long["end"].tolist()), *own])
        starts = numpy.array([start for start, _ in busy], numpy.int64)
        found = []
        for sample in self._samples:
            last = int(numpy.searchsorted(starts, sample.when)) - 1
            if last < 0 or sample.when > busy[last][1] + _HANDLED:
                found.append(sample)
        return found

    def wall(self) -> Wall:
        """The breakdown of the wall time of the profiled thread."""
        total = (self.end - self.start) / 1e9
        outer = self.events[(self.events["kind"] == _RUN) & (self.events["depth"] == 0)]
        own = self.events[(self.events["kind"] == _KERNEL) & (self.events["depth"] == 0)]
        kernels = float((own["end"] - own["start"]).sum()) / 1e9
        running = [(int(a), int(b)) for a, b in zip(outer["start"].tolist(), outer["end"].tolist())]
        compiling = [(span.start, span.end) for span in self.spans if span.thread == self._thread]
        runs, compiler = _length(running), _length(compiling)
        inside = runs + compiler - _length(running + compiling)
        executor = max(0.0, runs - kernels - inside)
        rest = max(0.0, total - kernels - executor - compiler)
        waited = min(rest, max(0.0, total - self._occupied))
        elsewhere = [(span.start, span.end) for span in self.spans if span.thread != self._thread]
        # the compiler thread and this one wait for each other to release the GIL
        beside = _length(running + compiling + elsewhere) - _length(running + compiling)
        locked = min(waited, beside)
        return Wall(total, kernels, executor, compiler + locked, rest - waited, waited - locked)


def _length(intervals: list[tuple[int, int]]) -> float:
    """The length of the union of intervals, in seconds."""
    covered, reached = 0, 0
    for start, end in sorted(intervals):
        if end > reached:
            covered += end - max(start, reached)
            reached = end
    return covered / 1e9


def _occupied() -> float:
    """Seconds so far that this thread ran or was runnable, without the time that it was blocked."""
    delayed = 0
    with (
        contextlib.suppress(OSError, ValueError),
        open("/proc/thread-self/schedstat", "rb", buffering=0) as file,
    ):
        delayed = int(file.read().split()[1])
    return time.thread_time() + delayed / 1e9


class Recorder:
    """Starts and stops a recording; one at a time in a process, on the thread that starts it."""

    running: Recorder | None = None

    def __init__(self) -> None:
        self._occupied = 0.0
        self._clock = 0
        self._samples = LineSamples()

    def start(self) -> None:
        """Start recording; raises ArgumentError if a profile is being recorded already."""
        if Recorder.running is not None:
            raise ArgumentError(f"profile: another one is being recorded, at {here()}", "End that one first.")
        _core.flush()
        Recorder.running = self
        Spans.recorded, Spans.compiled = [], []
        self._occupied = _occupied()
        self._clock = time.perf_counter_ns()
        _core.profile_start()
        self._samples.start()

    def stop(self) -> Recording:
        """Compute pending operations, and stop recording."""
        try:
            _core.flush()
        finally:
            samples = self._samples.stop()
            clock = self._clock, time.perf_counter_ns()
            occupied = _occupied() - self._occupied
            measured = _core.profile_stop()
            spans, Spans.recorded = Spans.recorded or [], None
            compiled, Spans.compiled = Spans.compiled or [], None
            Recorder.running = None
        made = Recording(measured, spans, samples, clock, occupied, threading.get_ident())
        made.compiled = compiled
        return made
