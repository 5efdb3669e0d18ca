"""Tables of measurements."""

from __future__ import annotations

from collections.abc import Iterable

from twofold.utils.benchmark.measurement import Measurement, unit_of

_NAMES = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


class Compare:
    """One table for each label: a row for each sub-label and number of threads, a column for each description.

    >>> from twofold.utils.benchmark import Compare, Measurement, TaskSpec
    >>> spec = TaskSpec("f(x)", "pass", label="f", description="old")
    >>> Compare([Measurement(1, [0.5e-3], spec)]).print()
    [----- f ------]
            |    old
    1 threads: -----
      f(x)  |  500.0
    <BLANKLINE>
    Times are in microseconds (us).
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements; raises ValueError for what is none."""
        results = list(results)
        for one in results:
            if not isinstance(one, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(one)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show as many digits as the spread of the times leaves."""
        self._trim = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        labels: dict[str, list[Measurement]] = {}
        for one in Measurement.merge(self._results):
            labels.setdefault(one.task_spec.label or one.task_spec.stmt, []).append(one)
        return "\n\n".join(self._table(label, group) for label, group in labels.items())

    def _cell(self, one: Measurement | None, length: float) -> str:
        if one is None:
            return ""
        value = one.median / length
        if not self._trim:
            return f"{value:.1f}"
        digits = one.significant_figures
        whole = len(str(int(value)))
        return f"{value:.{max(0, digits - whole)}f}"

    def _table(self, label: str, group: list[Measurement]) -> str:
        unit, length = unit_of(min(one.median for one in group))
        columns = list(dict.fromkeys(one.task_spec.description or "" for one in group))
        rows = list(
            dict.fromkeys((one.task_spec.num_threads, one.task_spec.env, one.as_row_name) for one in group)
        )
        cells = {
            (row, column): self._cell(
                next(
                    (
                        one
                        for one in group
                        if (one.task_spec.num_threads, one.task_spec.env, one.as_row_name) == row
                        and (one.task_spec.description or "") == column
                    ),
                    None,
                ),
                length,
            )
            for row in rows
            for column in columns
        }
        names = {row: (f"({row[1]}) " if row[1] else "") + row[2] for row in rows}
        first = max(len(name) for name in names.values())
        widths = {column: max(len(column), *(len(cells[row, column]) for row in rows)) for column in columns}

        def line(name: str, texts: Iterable[str]) -> str:
            return f"  {name:<{first}}" + "".join(
                f"  |  {text:>{widths[column]}}" for column, text in zip(columns, texts, strict=True)
            )

        width = max(len(line("", columns)), len(label) + 8) - 2
        lines = [f"[{f' {label} ':-^{width}}]", line("", columns).rstrip()]
        for threads in dict.fromkeys(row[0] for row in rows):
            lines.append(f"{f'{threads} threads: ':-<{width + 2}}")
            lines += [
                line(names[row], (cells[row, column] for column in columns)).rstrip()
                for row in rows
                if row[0] == threads
            ]
        return "\n".join(lines) + f"\n\nTimes are in {_NAMES[unit]} ({unit})."
