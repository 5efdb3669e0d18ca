"""What the benchmarks of single operations share: contestants that take turns, and the command line."""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Callable
from typing import Any


def least(calls: list[Callable[[], Any]], rounds: int, clock: Callable[[], float]) -> list[float]:
    """The least time of each call; they take turns."""
    times = [float("inf")] * len(calls)
    for turn in range(rounds + 2):
        for number, call in enumerate(calls):
            begin = clock()
            call()
            elapsed = clock() - begin
            if turn > 1:
                times[number] = min(times[number], elapsed)
    return times


def for_each_number_of_threads(
    measure: Callable[[int, int, str, Callable[[], float]], None], doc: Any
) -> None:
    """``measure(threads, rounds, only, clock)`` as the command line asks."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--threads", default="1,2", help="numbers of threads, with commas")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="part of a name, such as '3x3'")
    parser.add_argument("--cpu", action="store_true", help="time of the processor, for one thread")
    chosen = parser.parse_args()
    clock = time.process_time if chosen.cpu else time.perf_counter
    for threads in chosen.threads.split(","):
        measure(int(threads), chosen.rounds, chosen.only, clock)


class Contestant:
    """A library in a process of its own, which answers each line by a number.

    Args:
        python: The interpreter that has the library.
        file: The benchmark, which is run with ``--serve`` and the library.
        library: Its name.
        threads: How many threads it may use.
    """

    def __init__(self, python: str, file: str, library: str, threads: int) -> None:
        own = {"TWOFOLD_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
        self._process = subprocess.Popen(
            [python, file, "--serve", library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | own,
        )

    def ask(self, question: str) -> float:
        """The number that it answers."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())
