"""Pooling, resizing, normalisation, activations and rows of a table beside the floor and (if installed) PyTorch.

    python bench/pooling.py --threads 1,2 --only pool

Each line is one function of one input of float32; two groups of figures are the result alone, and the result with
the gradient of the input: milliseconds, the floor (the bytes of input, result and their gradients, each moved once,
at the speed of a copy timed in the same rounds) over that in percent, and the ratio of PyTorch's time to ours. Times
are the least of some rounds in which all take turns; ``--cpu`` counts the time of the processor, for one thread on
a machine with other work.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import twofold
from turns import for_each_number_of_threads, least

IMAGES = (16, 64, 56, 56)


class Work(NamedTuple):
    """A function of ``nn.functional`` and an input, with the shape of the input."""

    name: str
    call: Callable[[Any, Any], Any]
    shape: tuple[int, ...] = IMAGES


WORK = [
    Work("max pool 2", lambda f, x: f.max_pool2d(x, 2)),
    Work("max pool 3/2", lambda f, x: f.max_pool2d(x, 3, 2, 1)),
    Work("max pool 3/1", lambda f, x: f.max_pool2d(x, 3, 1, 1)),
    Work("max pool 2 of 14", lambda f, x: f.max_pool2d(x, 2), (64, 256, 14, 14)),
    Work("avg pool 2", lambda f, x: f.avg_pool2d(x, 2)),
    Work("avg pool 3/2", lambda f, x: f.avg_pool2d(x, 3, 2, 1)),
    Work("avg pool 3/1", lambda f, x: f.avg_pool2d(x, 3, 1, 1)),
    Work("avg pool 7 of 7", lambda f, x: f.avg_pool2d(x, 7), (64, 512, 7, 7)),
    Work("adaptive avg pool 7", lambda f, x: f.adaptive_avg_pool2d(x, 7), (16, 256, 13, 13)),
    Work("adaptive max pool 7", lambda f, x: f.adaptive_max_pool2d(x, 7), (16, 256, 13, 13)),
    Work("nearest, twice", lambda f, x: f.interpolate(x, scale_factor=2), (16, 32, 56, 56)),
    Work("bilinear, twice", lambda f, x: f.interpolate(x, None, 2, "bilinear"), (16, 32, 56, 56)),
    Work("bilinear, half", lambda f, x: f.interpolate(x, None, 0.5, "bilinear")),
    Work("bicubic, twice", lambda f, x: f.interpolate(x, None, 2, "bicubic"), (8, 32, 56, 56)),
    Work("batch norm", lambda f, x: f.batch_norm(x, None, None, training=True)),
    Work("group norm", lambda f, x: f.group_norm(x, 8)),
    Work("gelu", lambda f, x: f.gelu(x), (512, 1024)),
    Work("tanh", lambda f, x: f.tanh(x), (512, 1024)),
    Work("softmax", lambda f, x: f.softmax(x, -1), (512, 1024)),
    Work("columns", lambda f, x: x[:, (x[0, :512].abs() * 200).long()], (512, 1024)),
    Work("flip", lambda f, x: x.flip(1), (512, 1024)),
    Work("pad 1", lambda f, x: f.pad(x, (1, 1, 1, 1)), (8, 256, 14, 14)),
    Work("rows", lambda f, x: f.embedding((x[:, 0].abs() * 100).long(), x), (512, 1024)),
    Work("local response norm", lambda f, x: f.local_response_norm(x, 5)),
]


def calls_of(work: Work, module: Any) -> tuple[list[Callable[[], Any]], int]:
    """The result alone and with the gradient of its input, and how many elements the result has."""
    generator = numpy.random.default_rng(0)
    image = generator.standard_normal(work.shape).astype(numpy.float32)
    functions = module.nn.functional
    plain, leaf = module.tensor(image), module.tensor(image, requires_grad=True)
    shape = tuple(work.call(functions, plain).shape)
    share = module.tensor(generator.standard_normal(shape).astype(numpy.float32))

    def both() -> Any:
        made = work.call(functions, leaf)
        made.detach().numpy()
        return module.autograd.grad(made, leaf, share)[0].numpy()

    return [lambda: work.call(functions, plain).numpy(), both], int(numpy.prod(shape))


def measure(threads: int, rounds: int, only: str, clock: Callable[[], float]) -> None:
    """Print the table for one number of threads."""
    modules: list[Any] = [twofold]
    with contextlib.suppress(ImportError):
        modules.append(importlib.import_module("torch"))
    for module in modules:
        module.set_num_threads(threads)
    source = numpy.ones(1 << 23, numpy.float32)
    target = numpy.zeros_like(source)
    print(f"\n{threads} thread(s); ms, floor in % of it, times as fast as PyTorch")
    print(f"{'':>20} {'result':>22} {'with its gradient':>22}")
    for work in WORK:
        if only not in work.name:
            continue
        found = [calls_of(work, module) for module in modules]
        calls = [call for some, _ in found for call in some]
        for call in calls[:2] * 3:
            call()
        twofold.wait_for_compiler()
        times = least([*calls, lambda: numpy.copyto(target, source)], rounds, clock)
        moved = 4 * (int(numpy.prod(work.shape)) + found[0][1]) / (2 * source.nbytes / times[-1])
        row = f"{work.name:>20}"
        for number in range(2):
            floor = moved * (1 + number)
            ratio = times[number + 2] / times[number] if len(modules) > 1 else float("nan")
            row += f" {times[number] * 1e3:10.2f} {100 * floor / times[number]:4.0f} {ratio:6.2f}"
        print(row, flush=True)


if __name__ == "__main__":
    for_each_number_of_threads(measure, __doc__)
