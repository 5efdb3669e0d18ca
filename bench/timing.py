"""How a time is taken: chunks of calls long enough for the clock, medians, and the floors of this machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

try:
    import twofold
except ImportError:
    twofold = None  # type: ignore[assignment]

CHUNK_SECONDS = 0.03


def _nothing(_: Any) -> None:
    pass


@dataclass
class Case:
    """One workload in one framework, ready to be timed."""

    call: Callable[[], Any]
    """One repetition."""
    operations: int = 1
    """Times are given for one of these."""
    finish: Callable[[Any], Any] = _nothing
    """Waits until the result of the last call is there."""
    check: Callable[[], Sequence[float]] = field(default=list)
    """Runs first; its numbers must agree between frameworks."""


def chunk_seconds(case: Case, calls: int) -> float:
    """Seconds of one call, over ``calls`` of them in a row."""
    begin = time.perf_counter()
    result = None
    for _ in range(calls):
        result = case.call()
    case.finish(result)
    return (time.perf_counter() - begin) / calls


def calibrate(case: Case) -> int:
    """Warms up, and finds how many calls make a chunk that the clock can measure."""
    calls = 1
    chunk_seconds(case, 1)
    while calls < 1 << 22:
        each = chunk_seconds(case, calls)
        if each * calls >= CHUNK_SECONDS:
            return calls
        calls = max(calls + 1, min(int(1.2 * CHUNK_SECONDS / max(each, 1e-9)), 20 * calls))
    return calls


def sample(case: Case, calls: int, seconds: float) -> float:
    """Median seconds of one call over chunks that fill ``seconds``, at least three of them."""
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds:
        times.append(chunk_seconds(case, calls))
    return statistics.median(times)


def _best(call: Callable[[], Any], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


@dataclass(frozen=True)
class Floors:
    """What this machine can do at best, measured with NumPy and plain Python."""

    flops: float
    """Multiplications and additions of float32 in a second, both counted."""
    bandwidth: float
    """Bytes read and written in a second when large arrays are copied."""
    operator: float
    """Seconds of ``c = x * w`` on Python floats in a loop."""
    function: float
    """Seconds of a call of an empty Python function with six arguments."""


def _generated_product(size: int) -> float:
    """Floating-point operations a second of Twofold's matrix product; 0 where it is not installed."""
    if twofold is None:
        return 0.0
    left, right = (twofold.ones(size, size) for _ in range(2))
    product = twofold.compile(lambda a, b: a @ b)
    for _ in range(4):
        product(left, right)
    twofold.wait_for_compiler()
    return 2 * size**3 / _best(lambda: product(left, right), 12)


def measure_floors() -> Floors:
    """Measures the floors, about three seconds."""
    flops = 0.0
    for size in (512, 1024, 1536):
        left, right = (numpy.ones((size, size), numpy.float32) for _ in range(2))
        out = numpy.empty_like(left)
        best = _best(lambda a=left, b=right, c=out: numpy.matmul(a, b, out=c), 12)  # type: ignore[misc]
        flops = max(flops, 2 * size**3 / best)
        flops = max(flops, _generated_product(size))
    source = numpy.ones(1 << 25, numpy.float32)
    target = numpy.zeros_like(source)
    bandwidth = 2 * source.nbytes / _best(lambda: numpy.copyto(target, source), 8)

    def operators(x: float = 1.5, w: float = 0.5) -> None:
        for _ in range(100_000):
            c = x * w  # noqa: F841

    def empty(a: int, b: int, c: int, d: int, e: int, f: int) -> None:
        pass

    def functions() -> None:
        for _ in range(100_000):
            empty(1, 2, 3, 4, 5, 6)

    return Floors(flops, bandwidth, _best(operators, 10) / 100_000, _best(functions, 10) / 100_000)
