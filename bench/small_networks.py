"""Inference of small networks of 1x1 and depthwise convolutions against (if installed) PyTorch.

    python bench/small_networks.py --threads 1,2 --only 64

Each line is one size of image and batch, by run, in ``eval`` mode without gradients: milliseconds, the share of the
peak (a loop of multiply-adds timed in the same rounds) that the products of all convolutions are, and the ratio of
PyTorch's time to ours. Times are the least of some rounds in which all take turns; ``--cpu`` counts the time of the
processor, for one thread on a machine with other work.
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
from matmul import PEAK_FLOPS, peak_program
from turns import for_each_number_of_threads, least

BLOCKS = [(16, 24, 2), (24, 24, 1), (24, 48, 2), (48, 48, 1), (48, 96, 2), (96, 96, 1)]
"""Channels before and after a block, and the stride of its depthwise convolution."""

EXPANSION = 4
INPUTS = [(1, 32), (1, 64), (1, 128), (7, 64), (8, 96)]
"""Batches and sizes of images."""

_TURNS = 500


def network(nn: Any) -> Any:
    """Blocks that widen the channels, convolve each on its own and narrow them again."""
    layers = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    for before, after, stride in BLOCKS:
        wide = before * EXPANSION
        layers += [nn.Conv2d(before, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU()]
        layers += [
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU(),
        ]
        layers += [nn.Conv2d(wide, after, 1, bias=False), nn.BatchNorm2d(after)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(BLOCKS[-1][1], 10)).eval()


def flops(batch: int, size: int) -> int:
    """Floating-point operations of all convolutions."""
    size = -(-size // 2)
    total = 2 * 27 * 16 * size * size
    for before, after, stride in BLOCKS:
        wide, small = before * EXPANSION, -(-size // stride)
        total += 2 * before * wide * size * size + 2 * (9 + after) * wide * small * small
        size = small
    return batch * total


def call_of(module: Any, image: Any) -> Callable[[], Any]:
    """A function that runs the network of one library."""
    model, x = network(module.nn), module.tensor(image)

    def call() -> Any:
        with module.no_grad():
            return model(x).numpy()

    return call


def measure(threads: int, rounds: int, only: str, clock: Callable[[], float]) -> None:
    """Print the table for one number of threads."""
    modules: list[Any] = [twofold]
    with contextlib.suppress(ImportError):
        modules.append(importlib.import_module("torch"))
    for module in modules:
        module.set_num_threads(threads)
    peak = peak_program(threads)
    print(f"\n{threads} thread(s); ms, % of the peak, times as fast as PyTorch")
    for batch, size in INPUTS:
        name = f"batch {batch} of {size}"
        if only not in name:
            continue
        image = numpy.random.default_rng(0).standard_normal((batch, 3, size, size)).astype(numpy.float32)
        calls = [call_of(module, image) for module in modules]
        for _ in range(4):
            calls[0]()
        twofold.wait_for_compiler()
        times = least([*calls, lambda: peak.seconds(_TURNS)], rounds, clock)
        top = PEAK_FLOPS * threads * _TURNS / times[-1]
        ratio = times[1] / times[0] if len(modules) > 1 else float("nan")
        share = 100 * flops(batch, size) / times[0] / top
        print(f"{name:>16} {times[0] * 1e3:10.3f} {share:5.0f} {ratio:6.2f}", flush=True)


if __name__ == "__main__":
    for_each_number_of_threads(measure, __doc__)
