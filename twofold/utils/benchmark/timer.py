"""``Timer``: how long statements take until what they compute is there."""

from __future__ import annotations

import ast
import sys
import textwrap
import timeit as _timeit
from collections.abc import Callable
from typing import Any, NoReturn

from twofold import _core
from twofold.utils.benchmark.measurement import Measurement, TaskSpec


class Timer:
    """Measures a statement, whose results are computed before the next run of it starts.

    Args:
        stmt: The Python statements.
        setup: Statements that run before each measurement, in the same scope.
        global_setup: For C++ statements alone.
        timer: What tells the time in seconds.
        globals: The global names of the statements; ``torch`` is among them.
        label: What ``Compare`` makes one table of.
        sub_label: Names a row of the table.
        description: Names a column of the table.
        env: Names what differs between measurements of one label otherwise, such as a version.
        num_threads: How many threads kernels may run on meanwhile.
        language: "python".

    Raises:
        ValueError: For another language, or setup of it.

    >>> import twofold as torch
    >>> timer = torch.utils.benchmark.Timer("x + x", globals={"x": torch.ones(3)})
    >>> timer.timeit(10).number_per_run
    10
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = _timeit.default_timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ) -> None:
        if str(getattr(language, "value", language)).lower() not in ("python", "py", "0"):
            raise ValueError(f"language {language!r}: statements are timed in Python. Use 'python'.")
        if global_setup:
            raise ValueError("global_setup is for C++ statements. Use setup.")
        stmt, setup = textwrap.dedent(stmt).strip("\n"), textwrap.dedent(setup).strip("\n")
        self._spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)
        self._clock = timer
        self._loop = _loop(stmt, setup, dict(globals or {}))

    def _time(self, number: int) -> float:
        """Seconds for so many runs."""
        threads = _core.threads()
        _core.set_threads(self._spec.num_threads)
        try:
            return max(self._loop(number, self._clock, _core.flush), 1e-9)
        finally:
            _core.set_threads(threads)

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run the statement so often, after a hundredth of as many runs that are not measured."""
        self._time(max(number // 100, 2))
        return self._measurement(number, [self._time(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Raise NotImplementedError, as in PyTorch."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> NoReturn:
        """Raise NotImplementedError, as in PyTorch."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """How many runs take long enough that reading the clock does not matter."""
        self._time(2)
        number = 1
        while True:
            time = self._time(number)
            if (time >= min_run_time / 1000 and time >= 1e-4) or time > min_run_time:
                return number
            number *= 10

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measure blocks of runs until they have taken ``min_run_time`` seconds.

        ``callback`` is called with the number of runs and the time of each block.
        """
        number = self._block_size(min_run_time)
        times: list[float] = []
        while sum(times) < min_run_time:
            times.append(self._time(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measurement(number, times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measure blocks of runs until the spread of their times is below ``threshold`` of the median.

        At least three blocks and ``min_run_time`` seconds, at most ``max_run_time`` seconds.
        """
        number = self._block_size(0.05)
        times: list[float] = []
        while sum(times) < max_run_time:
            times.append(self._time(number))
            if callback is not None:
                callback(number, times[-1])
            found = self._measurement(number, times)
            if len(times) > 3 and sum(times) > min_run_time and found.iqr < threshold * found.median:
                break
        return self._measurement(number, times)


def _loop(stmt: str, setup: str, names: dict[str, Any]) -> Callable[..., float]:
    """A function of a number, a clock and what computes the results: it runs the statements so often.

    The value of a last expression is kept until it is computed: nothing else would want it.
    """
    body = ast.parse(stmt or "pass", "<timed statement>").body
    if body and isinstance(body[-1], ast.Expr):
        kept = ast.Assign([ast.Name("_result", ast.Store())], body[-1].value)
        body[-1] = ast.copy_location(kept, body[-1])
    frame = ast.parse(
        "def _timed(_number, _clock, _compute):\n"
        "    _compute()\n"
        "    _start = _clock()\n"
        "    for _ in range(_number):\n"
        "        _compute()\n"
        "    return _clock() - _start\n"
    )
    function: Any = frame.body[0]
    function.body[2].body[:0] = body
    function.body[:0] = ast.parse(setup or "pass", "<setup>").body
    names.setdefault("torch", sys.modules[__name__.partition(".")[0]])
    exec(compile(ast.fix_missing_locations(frame), "<timed statement>", "exec"), names)
    return names.pop("_timed")
