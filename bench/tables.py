"""A training step on a large table of which few rows are looked up, beside (if installed) PyTorch.

    python bench/tables.py --threads 1 --only SGD

Each line is one optimiser: milliseconds of a step, the memory that it takes beside what lives before it in MB, and
the ratio of PyTorch's time to ours, once with ordinary gradients and once with ``sparse=True``. Here both are the
same; a momentum, Adam's means and a decay change all rows in every step.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import twofold
from turns import for_each_number_of_threads, least
from twofold import _core

ROWS, WIDTH, LOOKED_UP = 1_000_000, 64, 32
OPTIMIZERS: dict[str, tuple[str, dict[str, float], tuple[bool, ...]]] = {
    "SGD": ("SGD", {"lr": 0.1}, (False, True)),
    "SGD with momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}, (False,)),
    "Adagrad": ("Adagrad", {"lr": 0.1}, (False, True)),
    "Adam": ("Adam", {"lr": 0.1}, (False,)),
    "SparseAdam": ("SparseAdam", {"lr": 0.1}, (True,)),
}


def step_of(module: Any, name: str, sparse: bool) -> Callable[[], None]:
    """One step on new indices."""
    kind, settings, _ = OPTIMIZERS[name]
    table = module.nn.Embedding(ROWS, WIDTH, sparse=sparse)
    optimizer = getattr(module.optim, kind)(table.parameters(), **settings)
    generator = numpy.random.default_rng(0)

    def step() -> None:
        optimizer.zero_grad()
        rows = table(module.tensor(generator.integers(0, ROWS, LOOKED_UP)))
        (rows * rows).sum().backward()
        optimizer.step()

    return step


def measure(threads: int, rounds: int, only: str, clock: Callable[[], float]) -> None:
    """Print the table for one number of threads."""
    modules: list[Any] = [twofold]
    with contextlib.suppress(ImportError):
        modules.append(importlib.import_module("torch"))
    for module in modules:
        module.set_num_threads(threads)
    print(f"\n{threads} thread(s); ms, MB beside what lives, times as fast as PyTorch (dense, sparse)")
    for name, (_, _, kinds) in OPTIMIZERS.items():
        if only not in name:
            continue
        own = step_of(twofold, name, False)
        for _ in range(4):
            own()
            twofold.wait_for_compiler()
        before = _core.statistics()["pool_in_use_bytes"]
        _core.reset_peak()
        own()
        extra = _core.statistics()["pool_peak_bytes"] - before
        peers = [step_of(module, name, sparse) for module in modules[1:] for sparse in kinds]
        times = least([own, *peers], rounds, clock)
        ratios = "".join(f" {time / times[0]:8.2f}" for time in times[1:])
        print(f"{name:>20} {times[0] * 1e3:10.3f} {extra / 1e6:8.1f} {ratios}", flush=True)


if __name__ == "__main__":
    for_each_number_of_threads(measure, __doc__)
