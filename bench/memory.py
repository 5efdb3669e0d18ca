"""Resident memory over 100,000 training steps of a small classifier, define-by-run: ``python bench/memory.py``."""

from __future__ import annotations

import argparse
import resource
from pathlib import Path

import numpy

import twofold as torch
from twofold.demo.progress import Progress


def resident_mebibytes() -> float:
    """Resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    """Train and print the memory at a few points."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    steps = parser.parse_args().steps
    random = numpy.random.default_rng(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters())
    loss_function = torch.nn.CrossEntropyLoss()
    images = torch.tensor(random.random((64, 64)), dtype=torch.float32)
    labels = torch.tensor(random.integers(0, 10, 64))
    marks = {steps * k // 10 for k in range(1, 11)} | {min(1000, steps)}
    rows = []
    progress = Progress("training", steps)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss = loss_function(model(images), labels)
        loss.backward()
        optimizer.step()
        progress.advance(0.0)
        if step in marks:
            rows.append((step, resident_mebibytes()))
    progress.close()
    print("| step | resident memory (MiB) |\n| ---: | ---: |")
    for step, size in rows:
        print(f"| {step:,} | {size:.1f} |")


if __name__ == "__main__":
    main()
