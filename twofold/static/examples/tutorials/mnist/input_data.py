"""Handwritten digits in batches, from the four files of MNIST, which are never downloaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy

from twofold.data import load_mnist
from twofold.dtypes import float32
from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import as_dtype


class DataSet:
    """Images and labels, handed out in batches.

    >>> images, labels = numpy.zeros((4, 784)), numpy.arange(4)
    >>> data = DataSet(images, labels, seed=0)
    >>> sorted(label for _ in range(2) for label in data.next_batch(2)[1].tolist()), data.epochs_completed
    ([0, 1, 2, 3], 0)
    """

    def __init__(self, images: numpy.ndarray, labels: numpy.ndarray, seed: int | None = None) -> None:
        self._images, self._labels = images, labels
        self._random = numpy.random.default_rng(seed)
        self._epochs = 0
        self._left: Iterator[int] = iter(())
        self._begun = False

    @property
    def images(self) -> numpy.ndarray:
        """All images."""
        return self._images

    @property
    def labels(self) -> numpy.ndarray:
        """All labels."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """The number of images."""
        return len(self._images)

    @property
    def epochs_completed(self) -> int:
        """How often all images have been handed out and another round begun."""
        return self._epochs

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[numpy.ndarray, numpy.ndarray]:
        """The next images and labels, each once in a round; raises ValueError if there are none."""
        if not self.num_examples:
            raise failed(
                "next_batch", ArgumentError("there are no images", "Give a smaller validation_size.")
            )
        picked: list[int] = []
        while len(picked) < batch_size:
            number = next(self._left, None)
            if number is None:
                self._epochs += self._begun
                self._begun = True
                count = self.num_examples
                self._left = iter(
                    (self._random.permutation(count) if shuffle else numpy.arange(count)).tolist()
                )
            else:
                picked.append(number)
        return self._images[picked], self._labels[picked]


class Datasets(NamedTuple):
    """The parts of a data set."""

    train: DataSet
    validation: DataSet
    test: DataSet


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str | None = None,
) -> Datasets:
    """MNIST from the four files in ``train_dir``: images of 784 numbers of 0 to 1, or [28, 28, 1] if not reshaped.

    Labels are class numbers, or rows with a one if ``one_hot``. The first ``validation_size`` training images
    are those of ``validation``. Raises FileNotFoundError that names a missing file; nothing is downloaded.
    """
    (images, labels), (test_images, test_labels) = load_mnist(train_dir)
    if not 0 <= validation_size <= len(images):
        what = f"validation_size is {validation_size} of {len(images)} images"
        raise failed("read_data_sets", ArgumentError(what, "Give a number of images that there are."))

    def part(some: numpy.ndarray, classes: numpy.ndarray) -> DataSet:
        shaped = some if reshape else some.reshape(-1, 28, 28, 1)
        if as_dtype(dtype) is not float32:
            shaped = (shaped * 255).round().astype(as_dtype(dtype).numpy)
        return DataSet(shaped, numpy.eye(10)[classes] if one_hot else classes.astype(numpy.uint8), seed)

    cut = validation_size
    train, validation = part(images[cut:], labels[cut:]), part(images[:cut], labels[:cut])
    return Datasets(train, validation, part(test_images, test_labels))
