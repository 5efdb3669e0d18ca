"""Convolutions and their gradients against the peak of the processor and (if installed) PyTorch.

    python bench/convolution.py --threads 1,2 --only 3x3

Each line is one layer; three groups of figures are the result, the gradient of the image and that of the
kernels: GFLOP/s, their share of the peak (a loop of multiply-adds timed in the same rounds) and the ratio of
PyTorch's time to ours. Times are the least of some rounds in which all take turns; ``--cpu`` counts the time of
the processor, for one thread on a machine with other work.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import twofold
from matmul import PEAK_FLOPS, peak_program
from turns import for_each_number_of_threads, least
from twofold.ops.base import apply


class Layer(NamedTuple):
    """One convolution over two axes: shapes, stride, padding of both axes, groups."""

    name: str
    image: tuple[int, int, int, int]
    kernel: tuple[int, int, int, int]
    stride: int
    padding: tuple[int, int]
    groups: int = 1


LAYERS = [
    Layer("3x3 64 at 56", (8, 64, 56, 56), (64, 64, 3, 3), 1, (1, 1)),
    Layer("3x3 128 at 28", (8, 128, 28, 28), (128, 128, 3, 3), 1, (1, 1)),
    Layer("3x3 256 at 14", (8, 256, 14, 14), (256, 256, 3, 3), 1, (1, 1)),
    Layer("3x3 512 at 7", (8, 512, 7, 7), (512, 512, 3, 3), 1, (1, 1)),
    Layer("3x3 64 at 56, one", (1, 64, 56, 56), (64, 64, 3, 3), 1, (1, 1)),
    Layer("3x3 512 at 7, one", (1, 512, 7, 7), (512, 512, 3, 3), 1, (1, 1)),
    Layer("1x1 256 to 64 at 56", (4, 256, 56, 56), (64, 256, 1, 1), 1, (0, 0)),
    Layer("1x1/2 256 to 512", (4, 256, 56, 56), (512, 256, 1, 1), 2, (0, 0)),
    Layer("7x7/2 3 to 64", (4, 3, 224, 224), (64, 3, 7, 7), 2, (3, 3)),
    Layer("3x3 3 to 32 at 32", (64, 3, 32, 32), (32, 3, 3, 3), 1, (1, 1)),
    Layer("5x5 1 to 32 at 28", (64, 1, 28, 28), (32, 1, 5, 5), 1, (2, 2)),
    Layer("5x5 1 to 6 at 28", (64, 1, 28, 28), (6, 1, 5, 5), 1, (2, 2)),
    Layer("3x3/2 64 to 128", (8, 64, 56, 56), (128, 64, 3, 3), 2, (1, 1)),
    Layer("3x3 each of 128", (4, 128, 56, 56), (128, 1, 3, 3), 1, (1, 1), 128),
    Layer("3x3/2 each of 128", (4, 128, 56, 56), (128, 1, 3, 3), 2, (1, 1), 128),
    Layer("3x3 each of 256 at 8", (1, 256, 8, 8), (256, 1, 3, 3), 1, (1, 1), 256),
    Layer("3x3/2 each of 192 at 8", (1, 192, 8, 8), (192, 1, 3, 3), 2, (1, 1), 192),
    Layer("3x3 each of 144 at 14, 8", (8, 144, 14, 14), (144, 1, 3, 3), 1, (1, 1), 144),
    Layer("5x5/2 each of 96 at 28", (4, 96, 28, 28), (96, 1, 5, 5), 2, (2, 2), 96),
    Layer("3x3 32 groups", (8, 128, 28, 28), (128, 4, 3, 3), 1, (1, 1), 32),
    Layer("5 64 over 1024", (16, 64, 1, 1024), (64, 64, 1, 5), 1, (0, 2)),
    Layer("9 1 to 32 over 8192", (16, 1, 1, 8192), (32, 1, 1, 9), 1, (0, 4)),
]

_TURNS = 500

Calls = dict[str, list[Callable[[], Any]]]


def calls_of(layer: Layer, torch: Any) -> tuple[Calls, int]:
    """By contestant: result and both gradients; and the floating-point operations of each."""
    generator = numpy.random.default_rng(0)
    image, kernel = (generator.standard_normal(shape).astype(numpy.float32) for shape in layer[1:3])
    sizes = [
        (size + 2 * pad - positions) // layer.stride + 1
        for size, pad, positions in zip(image.shape[2:], layer.padding, kernel.shape[2:], strict=True)
    ]
    share = generator.standard_normal((image.shape[0], kernel.shape[0], *sizes)).astype(numpy.float32)
    x, w, y = (twofold.tensor(array[:, :, None]) for array in (image, kernel, share))
    moves = ((1, layer.stride, layer.stride), (0, *layer.padding), (1, 1, 1), layer.groups)
    pairs = {"convolution": (x, w, y), "convolution_transposed": (y, w, x), "convolution_weight": (x, y, w)}
    found: Calls = {
        "twofold": [
            lambda name=name, a=a, b=b, made=made: apply(
                name, a, b, attrs=(*moves, tuple(made.shape[2:]))
            ).numpy()
            for name, (a, b, made) in pairs.items()
        ]
    }
    if torch is not None:
        tx, tw, ty = (torch.from_numpy(array) for array in (image, kernel, share))
        settings = [layer.stride] * 2, list(layer.padding), [1, 1]

        def backward(*wanted: bool) -> Any:
            rule = torch.ops.aten.convolution_backward
            return rule(ty, tx, tw, None, *settings, False, [0, 0], layer.groups, wanted)

        found["torch"] = [
            lambda: torch.nn.functional.conv2d(tx, tw, None, *settings, layer.groups),
            lambda: backward(True, False, False),
            lambda: backward(False, True, False),
        ]
    return found, 2 * share.size * int(numpy.prod(kernel.shape[1:]))


def measure(threads: int, rounds: int, only: str, clock: Callable[[], float]) -> None:
    """Print the table for one number of threads."""
    try:
        torch = importlib.import_module("torch")
        torch.set_num_threads(threads)
    except ImportError:
        torch = None
    twofold.set_num_threads(threads)
    peak = peak_program(threads)
    print(f"\n{threads} thread(s); GFLOP/s, % of the peak, times as fast as PyTorch")
    print(f"{'layer':>22} {'MFLOP':>7} {'result':>20} {'of the image':>20} {'of the kernels':>20}")
    for layer in LAYERS:
        if only not in layer.name:
            continue
        found, flops = calls_of(layer, torch)
        calls = [call for some in found.values() for call in some]
        times = least([*calls, lambda: peak.seconds(_TURNS)], rounds, clock)
        top = PEAK_FLOPS * threads * _TURNS / times[-1]
        row = f"{layer.name:>22} {flops * 1e-6:7.0f}"
        for number in range(3):
            rate = flops / times[number]
            ratio = times[number + 3] / times[number] if torch is not None else float("nan")
            row += f" {rate * 1e-9:9.1f} {100 * rate / top:4.0f} {ratio:5.2f}"
        print(row, flush=True)


if __name__ == "__main__":
    for_each_number_of_threads(measure, __doc__)
