"""The figures as tables in Markdown, each beside the floor that the machine sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from frameworks import FRAMEWORKS
from timing import Floors
from workloads import inputs

AGREEMENT = 1e-3


@dataclass(frozen=True)
class Row:
    """One line of the main table."""

    title: str
    unit: str
    scale: float
    floor: Callable[[Floors], float]


def _train_floor(kind: str, size: int) -> Callable[[Floors], float]:
    flops, moved = inputs.train_work(kind, size)
    return lambda floors: max(flops / floors.flops, moved / floors.bandwidth)


WORKLOADS = {
    "record": Row("`c = x * w`, ten elements, repeated", "ns an operation", 1e9, lambda f: f.operator),
    "record_deep": Row(
        "the same in the innermost of six functions", "ns an operation", 1e9, lambda f: f.operator
    ),
    "never_seen": Row("chain of 100 operations, never seen", "ns an operation", 1e9, lambda f: f.operator),
    "two_scalars": Row("`Session.run`, two operations, two scalar feeds", "µs", 1e6, lambda f: f.function),
    "call_six": Row("compiled function of six tensors", "µs", 1e6, lambda f: f.function),
    "chain": Row(
        "100 operations on ten elements, with gradient", "µs", 1e6, lambda f: inputs.CHAIN * f.operator
    ),
    "train_digits_64": Row("training step, 64-256-128-10, batch 64", "µs", 1e6, _train_floor("digits", 64)),
    "train_mnist_64": Row("training step, 784-256-128-10, batch 64", "µs", 1e6, _train_floor("mnist", 64)),
    "train_mnist_1024": Row(
        "training step, 784-256-128-10, batch 1024", "µs", 1e6, _train_floor("mnist", 1024)
    ),
}


def number(value: float) -> str:
    """Three digits.

    >>> number(12345.6), number(0.01234)
    ('12,300', '0.0123')
    """
    if value >= 1000:
        digits = 10 ** (len(str(int(value))) - 3)
        return f"{round(value / digits) * digits:,}"
    return f"{value:.3g}"


def spread(rounds: list[float]) -> float:
    """Half the distance between the second lowest and the second highest round, as a part of the median."""
    ordered = sorted(rounds)
    if len(ordered) > 3:
        ordered = ordered[1:-1]
    return (ordered[-1] - ordered[0]) / 2 / ordered[len(ordered) // 2]


def _cell(figure: dict[str, Any] | None, row: Row, best: float) -> str:
    if figure is None:
        return "-"
    text = number(figure["seconds"] * row.scale)
    if figure["seconds"] == best:
        text = f"**{text}**"
    noise = spread(figure["rounds"])
    return f"{text} ±{noise:.0%}" if noise > 0.1 else text


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main_table(results: dict[str, Any], floors: Floors) -> list[str]:
    """One line for each workload, one column for each framework."""
    shown = [name for name in WORKLOADS if results.get(name)]
    columns = [name for name in FRAMEWORKS if any(name in results[workload] for workload in shown)]
    if not shown:
        return []
    lines = [
        _line(["work", "unit", "floor", *(FRAMEWORKS[name].title for name in columns)]),
        _line(["---", "---", *["---:"] * (1 + len(columns))]),
    ]
    for workload in shown:
        row, figures = WORKLOADS[workload], results[workload]
        best = min(figure["seconds"] for figure in figures.values())
        cells = [_cell(figures.get(name), row, best) for name in columns]
        lines.append(_line([row.title, row.unit, number(row.floor(floors) * row.scale), *cells]))
    return lines


def disagreements(results: dict[str, Any]) -> list[str]:
    """A line for each framework whose numbers differ from the first one's."""
    lines = []
    for workload in WORKLOADS:
        figures = results.get(workload) or {}
        reference: list[float] | None = None
        for name, figure in figures.items():
            reference = reference or figure["check"]
            pairs = zip(figure["check"], reference)
            worst = max((abs(a - b) / max(abs(b), 1e-6) for a, b in pairs), default=0.0)
            if worst > AGREEMENT:
                lines.append(
                    f"- {workload}: {FRAMEWORKS[name].title} differs by {worst:.1e}: {figure['check']}"
                )
    return lines


def _simple(head: list[str], rows: list[list[str]]) -> list[str]:
    return [_line(head), _line(["---", *["---:"] * (len(head) - 1)]), *map(_line, rows), ""] if rows else []


def _optional(value: float | None, scale: float = 1.0) -> str:
    return "-" if value is None else number(value * scale)


def tables(results: dict[str, Any], floors: Floors, machine: str) -> str:
    """Everything that was measured."""
    first, sizes = results.get("first_step") or {}, results.get("footprint") or {}
    trained = results.get("train_mnist_64") or {}
    lines = [
        f"Machine: {machine}; {floors.flops / 1e9:.0f} GFLOP/s in the fastest matrix product, "
        f"{floors.bandwidth / 1e9:.0f} GB/s copied, {floors.operator * 1e9:.1f} ns for `c = x * w` on Python "
        f"floats, {floors.function * 1e9:.0f} ns for an empty function of six arguments.",
        "",
        *main_table(results, floors),
        "",
    ]
    rows = [
        [FRAMEWORKS[name].title, _optional(figure["cold"]), _optional(figure["warm"])]
        for name, figure in first.items()
    ]
    lines += _simple(["first step, 784-256-128-10, batch 64", "empty caches, s", "filled caches, s"], rows)
    rows = [
        [
            FRAMEWORKS[name].package,
            _optional(figure["import"]),
            _optional(figure["own_mib"]),
            _optional(figure["whole_mib"]),
        ]
        for name, figure in sizes.items()
    ]
    lines += _simple(["package", "import, s", "own size, MiB", "with requirements, MiB"], rows)
    rows = [[FRAMEWORKS[name].title, _optional(figure["peak_mib"])] for name, figure in trained.items()]
    lines += _simple(["peak memory, 784-256-128-10, batch 64", "MiB"], rows)
    lines += ["Numbers that do not agree:", "", *disagreements(results)] if disagreements(results) else []
    lines.append(
        "A cell is the median over rounds in which the frameworks took turns; ± is given where rounds "
        "differ by more than 10 %; the best is bold. Floor: for training, the larger of flops over the "
        "machine's rate and bytes over its bandwidth; for operators and calls, the same loop or call with "
        "plain Python objects. The first two lines measure recording: of a thousand products only the last is "
        "read, and Twofold does not compute what nobody reads; every other line needs all its results."
    )
    return "\n".join(lines)
