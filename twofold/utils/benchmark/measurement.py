"""Times of one statement, and what was measured."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable
from typing import Any

_UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))


def unit_of(seconds: float) -> tuple[str, float]:
    """The unit in which a time has one to three digits before the point, and its length in seconds."""
    return next((unit for unit in reversed(_UNITS) if seconds >= unit[1]), _UNITS[0])


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """What a measurement is of: the statement, and the names under which ``Compare`` shows it."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        return (self.label or self.stmt) + (f": {self.sub_label}" if self.sub_label else "")


@dataclasses.dataclass(repr=False)
class Measurement:
    """Times of a statement that ran ``number_per_run`` times for each of ``raw_times``, in seconds.

    >>> from twofold.utils.benchmark import Measurement, TaskSpec
    >>> Measurement(10, [2.0, 4.0, 3.0], TaskSpec("f(x)", "pass")).median
    0.3
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if (name != "task_spec" and name in TaskSpec.__dataclass_fields__) or name == "title":
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds for one run of the statement, one for each of ``raw_times``."""
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean of ``times``."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """The median of ``times``."""
        return statistics.median(self.times)

    @property
    def iqr(self) -> float:
        """How far apart the first and the third quartile of ``times`` are; 0 for fewer than two."""
        if len(self.raw_times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return third - first

    @property
    def has_warnings(self) -> bool:
        """Whether the times differ by more than a tenth of the median."""
        return self.iqr > 0.1 * self.median

    @property
    def significant_figures(self) -> int:
        """How many digits of the median the spread of ``times`` leaves, at least one."""
        if len(self.raw_times) < 2 or not self.iqr:
            return 3
        error = self.iqr / math.sqrt(len(self.raw_times))
        return max(1, min(5, 1 - math.floor(math.log10(error / self.median))))

    @property
    def as_row_name(self) -> str:
        """The name of a row of ``Compare``."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of all that are of it."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for one in measurements:
            groups.setdefault(one.task_spec, []).append(one)
        return [
            Measurement(
                statistics.mode(one.number_per_run for one in group),
                [
                    time * statistics.mode(one.number_per_run for one in group)
                    for one in group
                    for time in one.times
                ],
                spec,
            )
            for spec, group in groups.items()
        ]

    def __repr__(self) -> str:
        unit, length = unit_of(self.median)
        lines = [f"<{type(self).__module__}.{type(self).__qualname__} object at {id(self):#x}>", self.title]
        if self.task_spec.setup != "pass":
            indented = self.task_spec.setup.replace("\n", "\n  ")
            lines.append(f"setup: {indented}" if "\n" not in indented else f"setup:\n  {indented}")
        count, threads = len(self.raw_times), self.task_spec.num_threads
        if count > 1:
            lines.append(f"  Median: {self.median / length:.2f} {unit}")
            low, high = self.median - self.iqr / 2, self.median + self.iqr / 2
            lines.append(
                f"  IQR:    {self.iqr / length:.2f} {unit} ({low / length:.2f} to {high / length:.2f})"
            )
        else:
            lines.append(f"  {self.median / length:.2f} {unit}")
        each = " per measurement" if count > 1 else ""
        lines.append(
            f"  {count} measurement{'s' if count > 1 else ''}, {self.number_per_run} runs{each}, "
            f"{threads} thread{'s' if threads > 1 else ''}"
        )
        return "\n".join(lines)
