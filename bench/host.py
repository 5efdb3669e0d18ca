"""What runs on the host - sorting, searching, linear algebra, Fourier transforms - against the same call of NumPy.

    python bench/host.py --threads 1,2 --only sort

Each line is one call: milliseconds of NumPy and of ours, and the ratio of ours to NumPy's, the least of some rounds in
which both take turns. NumPy's OpenBLAS has the threads that it takes by itself, ours always one for each matrix. Where
both return positions NumPy's need not be stable, ours are. ``--cpu`` counts the time of the processor, for one thread
on a machine with other work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import twofold as torch
from turns import for_each_number_of_threads, least

MILLION = 1_000_000


class Work(NamedTuple):
    """The same call of NumPy and of ours, and what makes its arrays."""

    name: str
    numpy: Callable[..., Any]
    ours: Callable[..., Any]
    arrays: Callable[[Any], tuple[Any, ...]]


def floats(*shape: int) -> Callable[[Any], tuple[Any, ...]]:
    """Normal numbers."""
    return lambda random: (random.standard_normal(shape, numpy.float32),)


def matrices(*shape: int) -> Callable[[Any], tuple[Any, ...]]:
    """Symmetric positive definite matrices."""

    def make(random: Any) -> tuple[Any, ...]:
        x = random.standard_normal(shape, numpy.float32)
        return ((x + x.swapaxes(-1, -2)) / 2 + 2 * shape[-1] * numpy.eye(shape[-1], dtype=numpy.float32),)

    return make


def sorted_and_wanted(random: Any) -> tuple[Any, ...]:
    """A sorted vector, and what is looked for in it."""
    return numpy.sort(random.standard_normal(MILLION, numpy.float32)), random.standard_normal(
        MILLION, numpy.float32
    )


def integers(random: Any) -> tuple[Any, ...]:
    """Numbers of which many are equal."""
    return (random.integers(0, 10_000, MILLION),)


def leading(x: Any, k: int) -> Any:
    """The k largest in order."""
    positions = numpy.argpartition(x, -k, -1)[..., -k:]
    found = numpy.take_along_axis(x, positions, -1)
    return numpy.take_along_axis(positions, numpy.argsort(-found, -1), -1)


WORK = [
    Work("sort", numpy.sort, lambda x: torch.sort(x).values, floats(MILLION)),
    Work("sort rows", numpy.sort, lambda x: torch.sort(x).values, floats(1000, 1000)),
    Work("argsort", numpy.argsort, torch.argsort, floats(MILLION)),
    Work("argsort, stable", lambda x: numpy.argsort(x, kind="stable"), torch.argsort, floats(MILLION)),
    Work("argsort rows", numpy.argsort, torch.argsort, floats(1000, 1000)),
    Work("argsort int64", numpy.argsort, torch.argsort, integers),
    Work("topk 10", lambda x: leading(x, 10), lambda x: torch.topk(x, 10).indices, floats(MILLION)),
    Work("topk 10 of rows", lambda x: leading(x, 10), lambda x: torch.topk(x, 10).indices, floats(1000, 1000)),
    Work("topk 50 of a row", lambda x: leading(x, 50), lambda x: torch.topk(x, 50).indices, floats(50257)),
    Work("searchsorted", numpy.searchsorted, torch.searchsorted, sorted_and_wanted),
    Work("unique", lambda x: numpy.unique(x, sorted=True), torch.unique, integers),
    Work("unique, inverse", lambda x: numpy.unique(x, return_inverse=True)[1],
         lambda x: torch.unique(x, return_inverse=True)[1], integers),
    Work("fft", numpy.fft.fft, torch.fft.fft, floats(1 << 18)),
    Work("rfft rows", numpy.fft.rfft, torch.fft.rfft, floats(1000, 1024)),
    Work("fft2 of images", numpy.fft.fft2, torch.fft.fft2, floats(16, 256, 256)),
    Work("inverse", numpy.linalg.inv, torch.linalg.inv, matrices(500, 500)),
    Work("inverses", numpy.linalg.inv, torch.linalg.inv, matrices(256, 64, 64)),
    Work("cholesky", numpy.linalg.cholesky, torch.linalg.cholesky, matrices(256, 64, 64)),
    Work("eigh", numpy.linalg.eigvalsh, torch.linalg.eigvalsh, matrices(64, 64, 64)),
    Work("svd", lambda x: numpy.linalg.svd(x, compute_uv=False), torch.linalg.svdvals, matrices(300, 300)),
    Work("determinants", numpy.linalg.det, torch.linalg.det, matrices(10_000, 4, 4)),
]  # fmt: skip


def run(function: Callable[..., Any], *tensors: Any) -> Any:
    """The array that ``function`` gives."""
    return function(*tensors).numpy()


def measure(threads: int, rounds: int, only: str, clock: Callable[[], float]) -> None:
    """Print the lines of all calls whose name holds ``only``."""
    torch.set_num_threads(threads)
    print(f"{threads} thread(s)                numpy      ours     ratio")
    for work in WORK:
        if only in work.name:
            arrays = work.arrays(numpy.random.default_rng(0))
            tensors = [torch.tensor(array) for array in arrays]
            calls = [partial(work.numpy, *arrays), partial(run, work.ours, *tensors)]
            theirs, ours = (1e3 * seconds for seconds in least(calls, rounds, clock))
            print(f"{work.name:20} {theirs:12.2f} {ours:9.2f} {ours / theirs:9.2f}", flush=True)


if __name__ == "__main__":
    for_each_number_of_threads(measure, __doc__)
