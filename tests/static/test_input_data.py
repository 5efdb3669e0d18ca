"""The tutorials' reader of handwritten digits."""

import gzip

import numpy
import pytest

import twofold.static as tf
from twofold.static.examples.tutorials.mnist import input_data


@pytest.fixture
def directory(tmp_path):
    random = numpy.random.default_rng(0)
    for name, count in (("train", 20), ("t10k", 6)):
        images = random.integers(0, 256, (count, 28, 28)).astype("u1")
        labels = (numpy.arange(count) % 10).astype("u1")
        head = b"".join(n.to_bytes(4, "big") for n in (2051, count, 28, 28))
        (tmp_path / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + images.tobytes()))
        head = b"".join(n.to_bytes(4, "big") for n in (2049, count))
        (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(head + labels.tobytes())
    return tmp_path


def test_batches_hold_each_image_once_in_a_round(directory):
    mnist = input_data.read_data_sets(str(directory), one_hot=True, validation_size=4, seed=1)
    assert (mnist.train.num_examples, mnist.validation.num_examples, mnist.test.num_examples) == (16, 4, 6)
    assert mnist.train.images.shape == (16, 784) and mnist.train.images.max() <= 1
    assert mnist.test.labels[3].tolist() == numpy.eye(10)[3].tolist()
    seen = numpy.concatenate([mnist.train.next_batch(4)[0] for _ in range(4)])
    assert len({image.tobytes() for image in seen}) == 16 and mnist.train.epochs_completed == 0
    images, labels = mnist.train.next_batch(20)
    assert images.shape == (20, 784) and labels.shape == (20, 10) and mnist.train.epochs_completed == 2
    assert tf.examples.tutorials.mnist.input_data is input_data


def test_forms_and_mistakes(directory):
    mnist = input_data.read_data_sets(str(directory), reshape=False, validation_size=0)
    assert mnist.train.images.shape == (20, 28, 28, 1)
    images, labels = mnist.train.next_batch(3, shuffle=False)
    assert labels.tolist() == [0, 1, 2] and (images == mnist.train.images[:3]).all()
    with pytest.raises(ValueError, match="21 of 20 images"):
        input_data.read_data_sets(str(directory), validation_size=21)
    with pytest.raises(ValueError, match="no images"):
        mnist.validation.next_batch(1)
    with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte"):
        input_data.read_data_sets(str(directory / "elsewhere"))
