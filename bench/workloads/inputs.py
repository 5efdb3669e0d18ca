"""Sizes, inputs and initial weights, equal for every framework."""

from __future__ import annotations

import zlib
from itertools import pairwise

import numpy

Array = numpy.ndarray

LOOP = 1000
CHAIN = 100
SHIFT = 3
TINY = 10
BATCHES = 8
LEARNING_RATE = 1e-3
WIDTHS = {"mnist": (784, 256, 128, 10), "digits": (64, 256, 128, 10)}


def generator(name: str) -> numpy.random.Generator:
    """A generator that depends on the name alone."""
    return numpy.random.default_rng(zlib.crc32(name.encode()))


def tiny() -> tuple[Array, Array, Array]:
    """Three vectors of ten numbers."""
    random = generator("tiny")
    return tuple(random.uniform(0.9, 1.1, TINY).astype(numpy.float32) for _ in range(3))  # type: ignore[return-value]


def recipes() -> list[int]:
    """A long random list of numbers below four; each never-seen chain takes the next window of it."""
    return generator("recipes").integers(0, 4, 1_500_000).tolist()


def six() -> list[Array]:
    """Six small arrays: an input, the weights of a network 8-16-4, and something to add to its result."""
    random = generator("six")
    shapes = ((4, 8), (8, 16), (16,), (16, 4), (4,), (4, 4))
    return [random.standard_normal(shape).astype(numpy.float32) for shape in shapes]


def network(kind: str) -> list[Array]:
    """Weight [out, in] and bias [out] of each layer in turn."""
    random = generator(kind)
    arrays = []
    for fan_in, fan_out in pairwise(WIDTHS[kind]):
        scale = numpy.sqrt(2 / fan_in)
        arrays.append((random.standard_normal((fan_out, fan_in)) * scale).astype(numpy.float32))
        arrays.append(numpy.zeros(fan_out, numpy.float32))
    return arrays


def batches(kind: str, size: int) -> list[tuple[Array, Array]]:
    """Distinct batches of images and labels, taken in turn."""
    random = generator(f"{kind} {size}")
    return [
        (
            random.standard_normal((size, WIDTHS[kind][0])).astype(numpy.float32),
            random.integers(0, WIDTHS[kind][-1], size),
        )
        for _ in range(BATCHES)
    ]


def train_work(kind: str, size: int) -> tuple[float, float]:
    """Least floating-point operations and least bytes of one training step.

    A layer multiplies once forward, once for its weights' gradient and, but for the first, once for its
    input's gradient. Adam reads and writes the weights and both moments.
    """
    pairs = [a * b for a, b in pairwise(WIDTHS[kind])]
    flops = 2 * size * (3 * sum(pairs) - pairs[0])
    numbers = sum(pairs) + sum(WIDTHS[kind][1:])
    return float(flops), float(4 * 6 * numbers + 4 * size * WIDTHS[kind][0])
