"""What looking on costs: training steps inside ``detect_anomaly`` and ``profile``, beside the same steps outside.

    python bench/watching.py [--only NAME] [--rounds 9]

The modes take turns in one process, on one thread: between processes a step of one and the same program differs by up
to a tenth, by where its memory lies and what else runs meanwhile. A figure is the least CPU time of a round inside over
the least outside, less one. What a profile takes to sum up after its block is no part of it. Then where the wall time
of a profile went.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable
from typing import Any

import twofold
from compile_time import classes, mlp, normal, perceptron, resnet18, trained, transformer6

SECONDS = 0.25


def dense(torch: Any) -> Callable[[], float]:
    """64-256-256-10, batch 256."""
    return perceptron(torch, 64, 256)


def lstm(torch: Any) -> Callable[[], float]:
    """64 hidden, 32 steps, batch 16."""
    nn = torch.nn

    class Tagger(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.out = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 10)

        def forward(self, x: Any) -> Any:
            return self.out(self.lstm(x)[0])

    return trained(torch, Tagger(), normal(torch, 16, 32, 32), classes(torch, 10, 16, 32))


def tiny(torch: Any) -> Callable[[], float]:
    """4-4, batch 2: steps that are Python's time."""
    return trained(torch, torch.nn.Linear(4, 4), normal(torch, 2, 4), classes(torch, 4, 2))


MODELS: dict[str, Callable[[Any], Callable[[], float]]] = {
    "tiny": tiny,
    "dense": dense,
    "mlp": mlp,
    "lstm": lstm,
    "resnet18": resnet18,
    "transformer6": transformer6,
}
MODES: dict[str, Callable[[], Any]] = {
    "outside": contextlib.nullcontext,
    "detect_anomaly": twofold.detect_anomaly,
    "profile": twofold.profile,
}


def cpu_of(step: Callable[[], float], mode: str, steps: int) -> float:
    """CPU seconds of a step, behind one that is not measured."""
    with MODES[mode]():
        step()
        begin = time.process_time()
        for _ in range(steps):
            step()
        return (time.process_time() - begin) / steps


def settled(name: str) -> Callable[[], float]:
    """The step of a model, run until all that any mode needs is compiled."""
    twofold.set_num_threads(1)
    step = MODELS[name](twofold)
    for mode in MODES:
        for _ in range(3):
            cpu_of(step, mode, 6)
            twofold.wait_for_compiler()
    return step


def report(name: str, rounds: int) -> None:
    """Measure one model, and print it as a line."""
    step = settled(name)
    begin = time.perf_counter()
    step()
    steps = max(2, int(SECONDS / (time.perf_counter() - begin)))
    found = [{mode: cpu_of(step, mode, steps) for mode in MODES} for _ in range(rounds)]
    least = {mode: min(one[mode] for one in found) for mode in MODES}
    cells = [f"{name:<14}{least['outside'] * 1e3:9.3f} ms"]
    cells += [f"{least[mode] / least['outside'] - 1:+9.1%}" for mode in list(MODES)[1:]]
    with twofold.profile() as p:
        for _ in range(steps):
            step()
    wall = p.wall
    parts = "kernels", "executor", "compiler", "python", "idle"
    cells += [f"{getattr(wall, part) / wall.total:9.1%}" for part in parts]
    print("  ".join(cells), flush=True)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--only", default="", help="names of models, with commas")
    parser.add_argument("--rounds", type=int, default=9)
    chosen = parser.parse_args()
    columns = "detect", "profile", "kernels", "executor", "compiler", "python", "idle"
    print(f"{'':<14}{'CPU a step':>12}  " + "  ".join(f"{column:>9}" for column in columns))
    for name in chosen.only.split(",") if chosen.only else MODELS:
        report(name, chosen.rounds)


if __name__ == "__main__":
    main()
