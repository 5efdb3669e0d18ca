"""Sequences and classes; the expected values are those of Keras 2 (``tf_keras``)."""

import numpy
import pytest

import twofold.static as tf

pad = tf.keras.preprocessing.sequence.pad_sequences
ROWS = [[1], [2, 3], [4, 5, 6], []]


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, [[0, 0, 1], [0, 2, 3], [4, 5, 6], [0, 0, 0]]),
        ({"maxlen": 2}, [[0, 1], [2, 3], [5, 6], [0, 0]]),
        ({"maxlen": 2, "truncating": "post"}, [[0, 1], [2, 3], [4, 5], [0, 0]]),
        ({"padding": "post", "value": 9}, [[1, 9, 9], [2, 3, 9], [4, 5, 6], [9, 9, 9]]),
    ],
)
def test_padding(options, expected):
    found = pad(ROWS, **options)
    assert found.dtype == numpy.int32 and found.tolist() == expected


def test_padding_of_vectors():
    found = pad([[[1.5, 2]], [[3, 4], [5, 6]]], dtype="float32")
    assert found.tolist() == [[[0, 0], [1.5, 2]], [[3, 4], [5, 6]]] and found.dtype == numpy.float32
    with pytest.raises(ValueError, match="one shape"):
        pad([[[1, 2]], [[1]]])
    with pytest.raises(ValueError, match="padding is 'left'"):
        pad(ROWS, padding="left")


def test_classes():
    found = tf.keras.utils.to_categorical([[0], [2]], 4)
    assert found.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]] and found.dtype == numpy.float32
    assert tf.keras.utils.to_categorical(1, 2, "int32").tolist() == [0, 1]
    with pytest.raises(ValueError, match="for 2 classes"):
        tf.keras.utils.to_categorical([2], 2)


def test_digits_are_never_downloaded(monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="nothing is downloaded"):
        tf.keras.datasets.mnist.load_data()
