"""What both programs of the demonstration are given: data, initial weights, batches and a stopwatch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from os import PathLike

import numpy

from twofold.data import load_mnist, split_digits
from twofold.demo.graphs import GraphNode
from twofold.demo.progress import Progress

HIDDEN = (256, 128)
CLASSES = 10

Arrays = tuple[numpy.ndarray, numpy.ndarray]


@dataclass(frozen=True)
class Task:
    """Images to learn, with everything that must be equal in both programs."""

    name: str
    train: Arrays
    test: Arrays
    epochs: int
    batch_size: int = 64
    learning_rate: float = 1e-3
    seed: int = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """Widths of the network's layers, from the pixels to the classes."""
        return (self.train[0].shape[1], *HIDDEN, CLASSES)

    @property
    def steps(self) -> int:
        """Number of training steps; the incomplete batch at the end of an epoch is left out."""
        return self.epochs * (len(self.train[0]) // self.batch_size)

    def initial_weights(self) -> list[numpy.ndarray]:
        """Weight [out, in] and bias [out] of each layer in turn, float32.

        Weights are normal with standard deviation sqrt(2 / in) (K. He et al., "Delving Deep into Rectifiers",
        2015), biases zero.

        >>> [array.shape for array in load_task(None, 1).initial_weights()]
        [(256, 64), (256,), (128, 256), (128,), (10, 128), (10,)]
        """
        random = numpy.random.default_rng(self.seed)
        arrays = []
        for fan_in, fan_out in pairwise(self.sizes):
            scale = numpy.sqrt(2 / fan_in)
            arrays.append((random.standard_normal((fan_out, fan_in)) * scale).astype(numpy.float32))
            arrays.append(numpy.zeros(fan_out, numpy.float32))
        return arrays

    def batches(self) -> Iterator[Arrays]:
        """The batches of all epochs, in a shuffled order that depends on the seed alone."""
        random = numpy.random.default_rng(self.seed + 1)
        images, labels = self.train
        for _ in range(self.epochs):
            order = random.permutation(len(images))
            for start in range(0, len(images) - self.batch_size + 1, self.batch_size):
                chosen = order[start : start + self.batch_size]
                yield images[chosen], labels[chosen]


def load_task(mnist: str | PathLike[str] | None, epochs: int | None) -> Task:
    """MNIST from a directory, or the digits that ship with the package.

    >>> load_task(None, None).steps
    440
    """
    if mnist is None:
        train, test = split_digits()
        return Task("8 x 8 digits", train, test, epochs or 20)
    train, test = load_mnist(mnist)
    return Task("MNIST", train, test, epochs or 2)


@dataclass
class Result:
    """What one program reached."""

    title: str
    losses: list[float]
    step_seconds: list[float]
    first_step_seconds: float
    accuracy: float
    weights: list[numpy.ndarray]
    graph: list[GraphNode] = field(default_factory=list)

    @property
    def median_step_seconds(self) -> float:
        """Median time of one step after the first tenth of them, which warms up."""
        return float(numpy.median(self.step_seconds[len(self.step_seconds) // 10 :]))


class Stopwatch:
    """Times the steps of one program and keeps their losses; showing the progress is not in the times."""

    def __init__(self, title: str, steps: int) -> None:
        self.losses: list[float] = []
        self.step_seconds: list[float] = []
        self.first_step_seconds = 0.0
        self._progress = Progress(title, steps)
        self._start = self._last = time.perf_counter()

    def step(self, loss: float) -> None:
        """Note that one step is done and what its loss was."""
        now = time.perf_counter()
        if not self.losses:
            self.first_step_seconds = now - self._start
        self.step_seconds.append(now - self._last)
        self.losses.append(loss)
        self._progress.advance(loss)
        self._last = time.perf_counter()

    def stop(self) -> None:
        """End the line of progress."""
        self._progress.close()


def accuracy(logits: numpy.ndarray, labels: numpy.ndarray) -> float:
    """Share of rows whose largest logit is that of the label.

    >>> accuracy(numpy.array([[1.0, 2.0], [3.0, 0.0]]), numpy.array([1, 1]))
    0.5
    """
    return float((logits.argmax(axis=1) == labels).mean())


def first_difference(ours: list[numpy.ndarray], theirs: list[numpy.ndarray]) -> str | None:
    """Where two lists of weights differ first, bit for bit, or None.

    >>> one, two = numpy.float32([0.0, 1.0]), numpy.float32([-0.0, 1.0])
    >>> first_difference([one], [one]), first_difference([one], [two])
    (None, 'array 0 differs in 1 of 2 elements')
    """
    for index, (left, right) in enumerate(zip(ours, theirs, strict=True)):
        if left.shape != right.shape or left.dtype != right.dtype:
            return f"array {index} is {left.dtype}{left.shape} and {right.dtype}{right.shape}"
        bits = [
            numpy.ascontiguousarray(array).view(numpy.uint8).reshape(left.size, -1) for array in (left, right)
        ]
        count = int((bits[0] != bits[1]).any(axis=1).sum())
        if count:
            return f"array {index} differs in {count} of {left.size} elements"
    return None
