"""``profile`` with a schedule of steps, and ranges."""

from __future__ import annotations

import enum
import functools
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from twofold.debug.module_scopes import ModuleScopes
from twofold.debug.timeline import write_chrome_trace
from twofold.errors import ArgumentError
from twofold.files import atomic_write
from twofold.profiler.averages import Columns, EventList, events_of, ranges_of
from twofold.runtime.profiling import Event, Recorder, Recording
from twofold.runtime.tracing import here


class ProfilerActivity(enum.Enum):
    """Devices that a profile may watch; there is the processor alone."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a profile does during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be watched.

    >>> supported_activities()
    {<ProfilerActivity.CPU: 0>}
    """
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """What to do in each step: cycles of ``wait`` steps without, ``warmup`` that are thrown away, ``active`` measured.

    Args:
        wait: Steps of a cycle in which nothing is measured.
        warmup: Steps that are measured and thrown away.
        active: Steps that are kept.
        repeat: How many cycles; 0 for no end.
        skip_first: Steps before the first cycle.
        skip_first_wait: Other than 0 leaves out the ``wait`` of the first cycle.

    >>> plan = schedule(wait=1, warmup=1, active=2)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if active < 1 or min(wait, warmup, repeat, skip_first) < 0:
        raise ArgumentError(f"schedule: steps are counted from 0, at {here()}", "Measure one step at least.")

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        length = wait + warmup + active
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        cycle, step = divmod(step, length)
        if (repeat and cycle >= repeat) or step < wait:
            return ProfilerAction.NONE
        if step < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if step < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """A function for ``on_trace_ready`` that writes each time line to a file of its own in ``dir_name``."""

    def write(done: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        end = ".gz" if use_gzip else ""
        done.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json{end}"))

    return write


_ranges: list[Event] | None = None


class record_function:
    """A range of the program that profiles show under ``name``: a ``with`` block or a decorator.

    >>> import twofold as torch
    >>> with torch.profiler.profile() as p:
    ...     with torch.profiler.record_function("double"):
    ...         x = (torch.ones(3) * 2).sum().item()
    >>> [event.count for event in p.key_averages() if event.key == "double"]
    [1]
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name if args is None else f"{name}({args})"
        self._starts: list[int] = []

    def __enter__(self) -> record_function:
        self._starts.append(time.perf_counter_ns())
        return self

    def __exit__(self, *error: object) -> None:
        start = self._starts.pop()
        if _ranges is not None:
            _ranges.append(Event(self.name, "range", start, time.perf_counter_ns(), 0, (), len(self._starts)))

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return call


class profile:
    """Measures the block, or steps of it; results do not change.

    Args:
        activities: Devices to watch, which must be the processor; others warn that they are not there.
        schedule: A function from the number of the step to what to do in it; call ``step`` at the end of each.
        on_trace_ready: Called with the profile whenever one is complete.
        record_shapes: Whether to keep the shapes of inputs.
        profile_memory: Whether to keep the bytes of results.
        with_stack: Whether to keep lines.
        with_flops: Whether to count floating-point operations.
        with_modules: Whether to keep the module that called.
        experimental_config: None: there is nothing experimental.
        execution_trace_observer: None, as there is none.
        acc_events: Whether ``events`` and ``key_averages`` go over all cycles of the schedule, not the last alone.
        custom_trace_id_callback: None, as traces have no numbers.

    Raises ArgumentError for an argument that would have no effect.

    >>> import twofold as torch
    >>> with torch.profiler.profile(record_shapes=True) as p:
    ...     y = (torch.ones(4, 4) @ torch.ones(4, 4)).sum().item()
    >>> "matmul" in p.key_averages().table(sort_by="cpu_time_total", row_limit=10)
    True
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
    ) -> None:
        unused = experimental_config, execution_trace_observer, custom_trace_id_callback
        if any(one is not None for one in unused):
            raise ArgumentError(
                f"profile: experimental_config, execution_trace_observer and custom_trace_id_callback have nothing "
                f"to act on, at {here()}",
                "Leave them out.",
            )
        wanted = set(activities) if activities is not None else supported_activities()
        if ProfilerActivity.CPU not in wanted:
            raise ArgumentError(
                f"profile: the processor alone can be watched, at {here()}", "Add ProfilerActivity.CPU."
            )
        for missing in sorted(wanted - supported_activities(), key=lambda one: one.name):
            warnings.warn(
                f"{missing.name} is not available, disabling {missing.name} profiling", stacklevel=2
            )
        self._schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self._on_trace_ready = on_trace_ready
        self._columns = Columns(record_shapes, profile_memory, with_stack, with_flops, with_modules)
        self._accumulates = acc_events
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._recorder: Recorder | None = None
        self._scopes: ModuleScopes | None = None
        self._recordings: list[tuple[Recording, list[Event]]] = []

    def start(self) -> None:
        """Begin with step 0."""
        self._change(self._schedule(self.step_num))

    def stop(self) -> None:
        """End; what was measured is complete."""
        measured = self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        self._end(keep=measured)
        self.current_action = ProfilerAction.NONE

    def step(self) -> None:
        """The next step begins."""
        self.step_num += 1
        self._change(self._schedule(self.step_num))

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _change(self, action: ProfilerAction) -> None:
        before, self.current_action = self.current_action, action
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._end(keep=True)
        elif before is ProfilerAction.WARMUP and action is not ProfilerAction.WARMUP:
            self._end(keep=False)
        elif before is ProfilerAction.RECORD and action in (ProfilerAction.NONE, ProfilerAction.WARMUP):
            self._end(keep=True)
        if action is not ProfilerAction.NONE and self._recorder is None:
            self._begin()

    def _begin(self) -> None:
        global _ranges
        recorder = Recorder()
        recorder.start()
        self._recorder, self._scopes = recorder, ModuleScopes()
        self._scopes.__enter__()
        _ranges = []

    def _end(self, keep: bool) -> None:
        global _ranges
        if self._recorder is None or self._scopes is None:
            return
        self._scopes.__exit__()
        recording, ranges = self._recorder.stop(), _ranges or []
        self._recorder = self._scopes = _ranges = None
        if keep:
            self._recordings = [*(self._recordings if self._accumulates else []), (recording, ranges)]
            if self._on_trace_ready is not None:
                self._on_trace_ready(self)

    def _last(self) -> tuple[Recording, list[Event]]:
        if not self._recordings:
            raise ArgumentError(
                f"profile: nothing has been measured yet, at {here()}", "Look at it after its block."
            )
        return self._recordings[-1]

    def events(self) -> EventList:
        """One event for each operation at each position of the program, and for each pass through a range."""
        self._last()
        found = EventList((), self._columns)
        for recording, ranges in self._recordings:
            found += events_of(recording.calls(), self._columns)
            found += ranges_of(ranges, recording.timeline())
        return found

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Events summed up by name; by shapes (``record_shapes``) and lines (``with_stack``), too, if asked for."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: Any) -> None:
        """Write the last time line for Perfetto or ``chrome://tracing``; compressed where ``path`` ends in ``.gz``."""
        recording, ranges = self._last()
        write_chrome_trace(path, recording, ranges)

    def export_stacks(self, path: Any, metric: str = "self_cpu_time_total") -> None:
        """Write lines of callers, separated by semicolons, with their microseconds: what flame graphs are made of."""
        if metric != "self_cpu_time_total":
            raise ArgumentError(
                f"export_stacks: no times of {metric!r}, at {here()}", "Take self_cpu_time_total."
            )
        if not self._columns.stack:
            raise ArgumentError(f"export_stacks: lines were not kept, at {here()}", "Set with_stack=True.")
        lines = [
            ";".join([*reversed(one.stack), one.key]) + f" {int(one.self_cpu_time_total)}\n"
            for one in self.events()
            if one.stack
        ]
        with atomic_write(path) as file:
            file.write("".join(lines).encode())
