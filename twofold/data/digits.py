"""The optical digits of E. Alpaydin and C. Kaynak (UCI, 1998; CC BY 4.0), which ship with the package."""

from __future__ import annotations

from pathlib import Path

import numpy

TEST_EVERY = 5
_FILE = Path(__file__).with_name("digits.npz")

Arrays = tuple[numpy.ndarray, numpy.ndarray]


def load_digits() -> Arrays:
    """The 1,797 images, float32 [1797, 64] with values 0 to 1, and their labels, int64 [1797].

    A stored value v (0 to 16) becomes v / 16, which float32 holds exactly.

    >>> images, labels = load_digits()
    >>> images.shape, str(images.dtype), float(images.max()), labels[:10].tolist()
    ((1797, 64), 'float32', 1.0, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    with numpy.load(_FILE) as arrays:
        images = arrays["images"].astype(numpy.float32) / numpy.float32(16)
        labels = arrays["labels"].astype(numpy.int64)
    return images, labels


def split_digits() -> tuple[Arrays, Arrays]:
    """``(train images, train labels), (test images, test labels)``: every fifth digit is for the test.

    The split is fixed and nothing is shuffled, so results of different programs can be compared. The writers of
    the digits follow one another in the data, so both parts have digits of all of them.

    >>> (images, labels), (test_images, test_labels) = split_digits()
    >>> len(images), len(labels), len(test_images), len(test_labels)
    (1438, 1438, 359, 359)
    """
    images, labels = load_digits()
    test = numpy.arange(len(images)) % TEST_EVERY == TEST_EVERY - 1
    return (images[~test], labels[~test]), (images[test], labels[test])
