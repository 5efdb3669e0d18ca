"""torch.utils.benchmark: what runs how often, and what is made of the times."""

import pytest

import twofold as torch
from twofold.utils import benchmark
from twofold.utils.benchmark import Compare, Measurement, TaskSpec, Timer


def measured(times: list[float], number: int = 1, **names: str) -> Measurement:
    return Measurement(number, times, TaskSpec("f(x)", "pass", **names))


def test_statements_run_as_often_as_asked_and_are_computed() -> None:
    counts = {"setup": 0, "run": 0}

    def run() -> torch.Tensor:
        counts["run"] += 1
        return torch.ones(2) + 1

    def prepare() -> None:
        counts["setup"] += 1

    timer = Timer("run()", "prepare()", globals={"run": run, "prepare": prepare})
    found = timer.timeit(50)
    assert counts == {"setup": 2, "run": 52} and found.number_per_run == 50 and len(found.raw_times) == 1
    assert found.median == found.mean == found.raw_times[0] / 50 > 0


def test_errors_of_values_are_raised_while_timing() -> None:
    timer = Timer("x[i]", globals={"x": torch.ones(2), "i": torch.tensor([5])})
    with pytest.raises(IndexError):
        timer.timeit(1)


def test_a_clock_of_the_program_is_read() -> None:
    ticks = iter(range(1000))
    timer = Timer("y = torch.ones(2)", timer=lambda: float(next(ticks)))
    found = timer.blocked_autorange(min_run_time=3.0)
    assert found.raw_times == [1.0, 1.0, 1.0]
    assert found.iqr == 0 and not found.has_warnings
    seen = []
    timer.adaptive_autorange(min_run_time=2.0, callback=lambda number, time: seen.append((number, time)))
    assert seen == [(1, 1.0)] * 4


def test_statistics_of_times() -> None:
    one = measured([2.0, 4.0, 3.0, 5.0], number=10)
    assert one.times == [0.2, 0.4, 0.3, 0.5] and one.median == pytest.approx(0.35)
    assert one.iqr == pytest.approx(0.15) and one.has_warnings
    assert one.significant_figures == 2
    merged = Measurement.merge([measured([1.0]), measured([3.0]), measured([2.0], label="other")])
    assert [each.raw_times for each in merged] == [[1.0, 3.0], [2.0]]


def test_a_measurement_says_what_it_is_of() -> None:
    text = repr(Measurement(100, [0.5e-3], TaskSpec("f(x)", "y = 2", label="matmul", sub_label="32 x 32")))
    assert text.splitlines()[1:] == [
        "matmul: 32 x 32",
        "setup: y = 2",
        "  5.00 us",
        "  1 measurement, 100 runs, 1 thread",
    ]
    assert "Median: 2.00 s" in repr(measured([1.0, 2.0, 3.0]))


def test_a_table_has_rows_and_columns() -> None:
    table = Compare(
        [
            measured([1e-6], label="dot", sub_label="small", description="mul"),
            measured([20e-6], label="dot", sub_label="small", description="bmm"),
            measured([3e-3], label="dot", sub_label="large", description="mul"),
        ]
    )
    lines = str(table).splitlines()
    assert lines[0].startswith("[-") and " dot " in lines[0]
    assert lines[1].split() == ["|", "mul", "|", "bmm"]
    assert lines[3].split() == ["small", "|", "1.0", "|", "20.0"]
    assert lines[4].split() == ["large", "|", "3000.0", "|"]
    assert lines[-1] == "Times are in microseconds (us)."
    with pytest.raises(ValueError, match="Measurement"):
        table.extend_results([1.0])  # type: ignore[list-item]


def test_other_languages_are_refused() -> None:
    with pytest.raises(ValueError, match="python"):
        benchmark.Timer("f();", language="c++")
