"""Tables of operations as ``torch.profiler`` makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.profiling import Call, Event
from twofold.runtime.tracing import here


@dataclass
class FunctionEventAvg:
    """All calls of an operation, or all passes through a range, of one kind; times are in microseconds.

    ``self_cpu_time_total`` of a range leaves out the ranges and kernels inside it.
    """

    key: str
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    cpu_memory_usage: int = 0
    flops: int = 0
    input_shapes: list[list[int]] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    module: str = ""
    is_user_annotation: bool = False
    device_time_total: float = 0.0

    @property
    def cpu_time(self) -> float:
        """The average time of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def self_cpu_memory_usage(self) -> int:
        """The bytes of results: operations call no others here."""
        return self.cpu_memory_usage


FunctionEvent = FunctionEventAvg
"""An operation at one position of the program: the calls of ``profile.events()``."""

_SORTS: dict[str, Callable[[FunctionEventAvg], Any]] = {
    "cpu_time": lambda one: one.cpu_time,
    "cpu_time_total": lambda one: one.cpu_time_total,
    "self_cpu_time_total": lambda one: one.self_cpu_time_total,
    "cpu_memory_usage": lambda one: one.cpu_memory_usage,
    "self_cpu_memory_usage": lambda one: one.self_cpu_memory_usage,
    "count": lambda one: one.count,
    "flops": lambda one: one.flops,
}


@dataclass(frozen=True)
class Columns:
    """What the profile was told to keep beside times."""

    shapes: bool
    memory: bool
    stack: bool
    flops: bool
    modules: bool


def events_of(calls: Iterable[Call], columns: Columns) -> list[FunctionEvent]:
    """One event for each call of the program."""
    found = []
    for call in calls:
        took = call.seconds * 1e6
        one = FunctionEvent(
            f"{call.name} backward" if call.is_backward else call.name, call.times, took, took
        )
        if columns.shapes:
            one.input_shapes = [list(type.shape) for type in call.cost.types]
        if columns.memory:
            one.cpu_memory_usage = call.cost.output.nbytes * call.times
        if columns.stack:
            one.stack = [f"{frame.file}({frame.line}): {frame.function}" for frame in call.frames]
        if columns.flops:
            one.flops = int(call.flops)
        if columns.modules:
            one.module = call.module
        found.append(one)
    return found


def ranges_of(ranges: Iterable[Event], timeline: Iterable[Event]) -> list[FunctionEvent]:
    """One event for each pass through a range."""
    ordered = sorted(ranges, key=lambda one: (one.start, -one.end))
    kernels = [event for event in timeline if event.category == "kernel" and event.depth == 0]
    found = []
    for number, one in enumerate(ordered):
        total = (one.end - one.start) / 1e3
        inside: list[Event] = []
        for other in (*ordered[number + 1 :], *kernels):
            if one.start <= other.start and other.end <= one.end:
                inside.append(other)
        own = total - _covered(inside) / 1e3
        found.append(FunctionEvent(one.what, 1, total, own, is_user_annotation=True))
    return found


def _covered(events: list[Event]) -> int:
    total, reached = 0, 0
    for event in sorted(events, key=lambda one: one.start):
        if event.end > reached:
            total += event.end - max(event.start, reached)
            reached = event.end
    return total


class EventList(list[FunctionEventAvg]):
    """Events with the tables of PyTorch's."""

    def __init__(self, events: Iterable[FunctionEventAvg], columns: Columns) -> None:
        super().__init__(events)
        self._columns = columns

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Events of one name summed up; by shapes of inputs, too, or by the innermost ``group_by_stack_n`` lines."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            stack = event.stack[:group_by_stack_n]
            shapes = event.input_shapes if group_by_input_shape else []
            key = (event.key, str(shapes), tuple(stack), event.module)
            one = found.get(key)
            if one is None:
                one = found[key] = FunctionEventAvg(
                    event.key,
                    input_shapes=shapes,
                    stack=stack,
                    module=event.module,
                    is_user_annotation=event.is_user_annotation,
                )
            for name in ("count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "flops"):
                setattr(one, name, getattr(one, name) + getattr(event, name))
        return EventList(found.values(), self._columns)

    def total_average(self) -> FunctionEventAvg:
        """All events as one."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.count += event.count
            total.cpu_time_total += event.self_cpu_time_total
            total.self_cpu_time_total += event.self_cpu_time_total
            total.cpu_memory_usage += event.cpu_memory_usage
            total.flops += event.flops
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The events as text.

        Args:
            sort_by: The name of a column, the largest first; times of devices are zeros on a processor.
            row_limit: How many rows to show; negative for all.
            max_src_column_width: How wide the column of lines is at most; likewise those of names and shapes.
            header: A line above the table.
            top_level_events_only: Whether to show ranges alone.
        """
        rows = [event for event in self if event.is_user_annotation or not top_level_events_only]
        if sort_by is not None:
            name = sort_by.replace("cuda", "device").replace("xpu", "device")
            if name not in _SORTS and "device" not in name:
                raise ArgumentError(
                    f"table: no column {sort_by!r}, at {here()}", f"Take one of {', '.join(_SORTS)}."
                )
            rows.sort(key=_SORTS.get(name, lambda one: one.device_time_total), reverse=True)
        if row_limit >= 0:
            rows = rows[:row_limit]
        widths = max_name_column_width, max_shapes_column_width, max_src_column_width
        return _text(rows, self.self_cpu_time_total, self._columns, widths, header)

    def __str__(self) -> str:
        return self.table()


def _text(
    rows: list[FunctionEventAvg],
    total: float,
    columns: Columns,
    widths: tuple[int, int, int],
    header: str | None,
) -> str:
    heads = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    heads += ["CPU Mem", "Self CPU Mem"] if columns.memory else []
    heads += ["# of Calls"]
    heads += ["Input Shapes"] if columns.shapes else []
    heads += ["Source Location"] if columns.stack else []
    heads += ["Module"] if columns.modules else []
    heads += ["Total FLOPs"] if columns.flops else []
    lines = [heads]
    for one in rows:
        line = [
            _cut(one.key, widths[0]),
            _part(one.self_cpu_time_total, total),
            _time(one.self_cpu_time_total),
            _part(one.cpu_time_total, total),
            _time(one.cpu_time_total),
            _time(one.cpu_time),
        ]
        line += [f"{one.cpu_memory_usage} b"] * 2 if columns.memory else []
        line += [str(one.count)]
        line += [_cut(str(one.input_shapes), widths[1])] if columns.shapes else []
        line += [_cut(one.stack[0] if one.stack else "", widths[2])] if columns.stack else []
        line += [one.module] if columns.modules else []
        line += [str(one.flops) if one.flops else "--"] if columns.flops else []
        lines.append(line)
    sizes = [max(len(line[k]) for line in lines) for k in range(len(heads))]
    rule = "  ".join("-" * size for size in sizes)
    written = ["  ".join(f"{text:>{size}}" for text, size in zip(line, sizes)) for line in lines]
    top = [header] if header else []
    return "\n".join(
        [*top, rule, written[0], rule, *written[1:], rule, f"Self CPU time total: {_time(total)}", ""]
    )


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _part(time: float, total: float) -> str:
    return f"{100 * time / total:.2f}%" if total else "--"


def _time(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"
