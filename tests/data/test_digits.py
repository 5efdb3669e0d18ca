"""The digits that ship with the package."""

from __future__ import annotations

import zlib

import numpy

from twofold.data import load_digits, split_digits

IMAGE_CRC = 4087501628
LABEL_CRC = 4168075561


def test_values_and_types() -> None:
    images, labels = load_digits()
    assert images.shape == (1797, 64) and images.dtype == numpy.float32
    assert labels.shape == (1797,) and labels.dtype == numpy.int64
    assert images.min() == 0 and images.max() == 1
    levels = images * 16
    assert (levels == levels.round()).all()
    assert numpy.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_content_is_that_of_the_source() -> None:
    images, labels = load_digits()
    raw = (images * 16).astype(numpy.uint8)
    assert raw[0].reshape(8, 8)[0].tolist() == [0, 0, 5, 13, 9, 1, 0, 0]
    assert zlib.crc32(raw.tobytes()) == IMAGE_CRC
    assert zlib.crc32(labels.astype(numpy.uint8).tobytes()) == LABEL_CRC


def test_split_is_fixed_and_whole() -> None:
    images, labels = load_digits()
    (train_images, train_labels), (test_images, test_labels) = split_digits()
    assert (test_images == images[4::5]).all() and (test_labels == labels[4::5]).all()
    kept = numpy.delete(numpy.arange(len(images)), numpy.s_[4::5])
    assert (train_images == images[kept]).all() and (train_labels == labels[kept]).all()
    assert set(test_labels.tolist()) == set(range(10))


def test_arrays_are_fresh() -> None:
    load_digits()[0][:] = 7
    assert load_digits()[0].max() == 1
