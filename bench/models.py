"""Whole models beside PyTorch: milliseconds of a step of inference or training, and the floor of its products.

    python bench/models.py [--only BERT] [--threads 2] [--rounds 5] [--peer PYTHON] [--json FILE]

Each library has a process of its own, in which all models live; they take turns, least times are shown. The floor is
the time that the multiply-adds of the model (three times those of its inference in training) take at the peak of the
processor, that of a loop of multiply-adds. A model counts after its first steps, once its programs are compiled. PYTHON
is an interpreter that has PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from matmul import PEAK_FLOPS, peak_program
from turns import Contestant
from workloads.models import MODELS

_WARM_UP, _SECONDS, _MOST = 12, 0.3, 400


def peak(threads: int) -> float:
    """Floating-point operations a second of a loop of multiply-adds, the most of some tries."""
    program, turns = peak_program(threads), 500
    best = 0.0
    for _ in range(5):
        begin = time.perf_counter()
        program.seconds(turns)
        best = max(best, PEAK_FLOPS * threads * turns / (time.perf_counter() - begin))
    return best


def work(library: Any, model: str) -> int:
    """Floating-point operations of a step."""
    return MODELS[model].flops(library) * (3 if MODELS[model].trains else 1)


def serve(name: str) -> None:
    """The process of one library: answers ``prepare NAME`` and ``run NAME`` by milliseconds, ``work NAME``."""
    library = __import__(name)
    steps: dict[str, Any] = {}
    for line in sys.stdin:
        command, _, model = line.strip().partition(" ")
        if command == "prepare":
            library.manual_seed(0)
            steps[model] = MODELS[model].step(library)
            begin = time.perf_counter()
            steps[model]()
            first = time.perf_counter() - begin
            for _ in range(_WARM_UP):
                steps[model]()
                if name == "twofold":
                    library.wait_for_compiler()
            print(1000 * first, flush=True)
            continue
        if command == "work":
            print(work(library, model), flush=True)
            continue
        begin, count = time.perf_counter(), 0
        while count < _MOST and time.perf_counter() - begin < _SECONDS:
            steps[model]()
            count += 1
        print(1000 * (time.perf_counter() - begin) / count, flush=True)


def _row(name: str, cells: list[str]) -> None:
    print(f"{name:40}" + "".join(f"{cell:>11}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer")
    parser.add_argument("--json")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    contestants = [Contestant(sys.executable, __file__, "twofold", options.threads)]
    if options.peer:
        contestants.append(Contestant(options.peer, __file__, "torch", options.threads))
    heads = [
        "floor",
        "twofold",
        *(("torch", "ratio") if options.peer else ()),
        *["first step"] * len(contestants),
    ]
    _row(f"ms a step, {options.threads} threads", heads)
    found, top = {}, peak(options.threads)
    for model in MODELS:
        if options.only not in model:
            continue
        first = [one.ask(f"prepare {model}") for one in contestants]
        rounds = [[one.ask(f"run {model}") for one in contestants] for _ in range(options.rounds)]
        times = [min(part) for part in zip(*rounds)]
        ratio = [times[1] / times[0]] if options.peer else []
        least = 1000 * contestants[0].ask(f"work {model}") / top
        found[model] = [least, *times, *ratio, *first]
        _row(model, [f"{number:.3f}" for number in found[model]])
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
