"""``profile()``: what a part of a program took, by line, module and operation, forward and backward."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

from twofold.debug.machine import Machine, machine
from twofold.debug.module_scopes import ModuleScopes
from twofold.debug.timeline import write_chrome_trace
from twofold.errors import ArgumentError
from twofold.runtime.profiling import Call, Frame, KernelTime, Recorder, Recording, Wall
from twofold.runtime.tracing import here


class Row(NamedTuple):
    """A line of a table.

    ``floor`` are the seconds that the bytes and floating-point operations take at least on this machine, of which
    ``share`` is the part of ``seconds``. ``nbytes`` are what the kernels touched in memory.
    """

    what: str
    direction: str
    times: int
    seconds: float
    nbytes: float
    flops: float
    floor: float

    @property
    def share(self) -> float:
        """The floor as a part of the time."""
        return self.floor / self.seconds if self.seconds else 0.0


def _line(call: Call) -> str:
    if not call.frames:
        return "(unknown line)"
    return _place(call.frames[0])


def _place(frame: Frame) -> str:
    return f"{os.path.basename(frame.file)}:{frame.line} in {frame.function}"


_KEYS: dict[str, Callable[[Call], str]] = {
    "line": _line,
    "module": lambda call: call.module or "(no module)",
    "operation": lambda call: call.name,
}


class profile:
    """Measures what is computed inside the block, while it runs as it does without.

    The time of a kernel that computes several calls is divided between them by the instructions that each takes. What
    is recorded before the block is computed before it; what the block records and nobody reads is computed at its end.

    >>> import twofold as torch
    >>> with torch.profile() as p:
    ...     x = (torch.ones(64, 64) @ torch.ones(64, 64)).sum().item()
    >>> sorted(row.what for row in p.by_operation())[:2]
    ['matmul', 'ones']
    >>> p.wall.total >= p.wall.kernels
    True
    """

    def __init__(self) -> None:
        self._recorder = Recorder()
        self._scopes = ModuleScopes()
        self._recording: Recording | None = None

    def __enter__(self) -> profile:
        self._recorder.start()
        self._scopes.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._scopes.__exit__()
        self._recording = self._recorder.stop()

    @property
    def recording(self) -> Recording:
        """What was measured. Raises ArgumentError before the end of the block."""
        if self._recording is None:
            raise ArgumentError(
                f"profile: nothing has been measured yet, at {here()}", "Look at it after its block."
            )
        return self._recording

    @property
    def wall(self) -> Wall:
        """Where the time went: kernels, executor, compiler, Python with recording, idle; they sum to ``total``."""
        return self.recording.wall()

    @property
    def compiled(self) -> list[str]:
        """A line for each trace that was compiled meanwhile: where, what, and how it differs from an earlier one."""
        return self.recording.compiled

    def python(self) -> list[Row]:
        """Rows by the line of the program that Python was found on between operations, in samples of its time."""
        return [
            Row(_place(one.frame), "python", one.samples, one.seconds, 0.0, 0.0, 0.0)
            for one in self.recording.python()
        ]

    def by_line(self) -> list[Row]:
        """Rows by the line of the program, the longest first."""
        return self._rows("line")

    def by_module(self) -> list[Row]:
        """Rows by the module that called, or the name scope."""
        return self._rows("module")

    def by_operation(self) -> list[Row]:
        """Rows by the operation."""
        return self._rows("operation")

    def kernels(self) -> list[KernelTime]:
        """The kernels, the longest first."""
        return sorted(self.recording.kernels(), key=lambda one: -one.seconds)

    def _rows(self, by: str) -> list[Row]:
        if by not in _KEYS:
            raise ArgumentError(f"profile: rows by {by!r}, at {here()}", f"Choose one of {', '.join(_KEYS)}.")
        return rows_of(self.recording.calls(), _KEYS[by], machine())

    def table(self, by: str = "line", row_limit: int = 20) -> str:
        """The rows and the rest of the time as text; by lines, with Python's time on each.

        Args:
            by: ``"line"``, ``"module"`` or ``"operation"``.
            row_limit: How many rows to show at most; the others are one row.
        """
        rows = self._rows(by)
        if by == "line":
            rows = sorted([*rows, *self.python()], key=lambda row: -row.seconds)
        return _table(rows, self.wall, by, row_limit, self.recording.dropped)

    def export_chrome_trace(self, path: Any) -> None:
        """Write the time line for Perfetto or ``chrome://tracing``; compressed where ``path`` ends in ``.gz``."""
        write_chrome_trace(path, self.recording)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        if self._recording is None:
            return "<profile, not ended>"
        wall = self.wall
        return f"<profile of {_time(wall.total)}, {_time(wall.kernels)} in kernels>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.table())}</pre>"


def rows_of(calls: Sequence[Call], key: Callable[[Call], str], on: Machine) -> list[Row]:
    """Calls summed up by a key and their direction, the longest first."""
    found: dict[tuple[str, str], list[float]] = {}
    for call in calls:
        sums = found.setdefault((key(call), "backward" if call.is_backward else "forward"), [0.0] * 5)
        floor = min(on.floor(call.flops, call.floor_bytes), call.seconds)
        for k, value in enumerate((call.times, call.seconds, call.floor_bytes, call.flops, floor)):
            sums[k] += value
    rows = [Row(what, direction, int(sums[0]), *sums[1:]) for (what, direction), sums in found.items()]
    return sorted(rows, key=lambda row: -row.seconds)


def _table(rows: Sequence[Row], wall: Wall, by: str, row_limit: int, dropped: int) -> str:
    shown = list(rows[:row_limit])
    left = rows[row_limit:]
    if left:
        parts = [(row.seconds, row.nbytes, row.flops, row.floor) for row in left]
        sums = [sum(column) for column in zip(*parts)]
        shown.append(Row(f"{len(left)} more", "", sum(row.times for row in left), *sums))
    width = max([len(row.what) for row in shown] + [20])
    head = f"{by:<{width}}  {'':8}{'calls':>8}{'time':>11}{'part':>7}{'bytes':>11}{'flop/s':>11}{'floor':>7}"
    lines = [head, "-" * len(head)]
    for row in shown:
        line = f"{row.what:<{width}}  {row.direction:8}{row.times:>8}{_time(row.seconds):>11}"
        line += f"{_percent(row.seconds, wall.total):>7}"
        if row.direction != "python":
            rate = row.flops / row.seconds if row.seconds else 0.0
            line += (
                f"{_count(row.nbytes, 'B'):>11}{_count(rate, ''):>11}{_percent(row.floor, row.seconds):>7}"
            )
        lines.append(line)
    lines.append("-" * len(head))
    for what in ("kernels", "executor", "compiler", "python", "idle", "total"):
        seconds = getattr(wall, what)
        name = "python and recording" if what == "python" else what
        lines.append(f"{name:<{width}}  {'':8}{'':8}{_time(seconds):>11}{_percent(seconds, wall.total):>7}")
    if dropped:
        lines.append(f"{dropped:,} events more than are kept: the times are those of the first ones.")
    return "\n".join(lines)


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1.0 or unit == "us":
            return f"{seconds * factor:.3f} {unit}"
    raise AssertionError(seconds)


def _count(number: float, unit: str) -> str:
    for prefix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= factor:
            return f"{number / factor:.1f} {prefix}{unit}"
    return f"{number:.0f} {unit}".rstrip()


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"
