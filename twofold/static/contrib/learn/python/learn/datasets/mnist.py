"""Handwritten digits: the loader of ``tf.examples.tutorials.mnist.input_data``."""

from twofold.static.examples.tutorials.mnist.input_data import DataSet as DataSet
from twofold.static.examples.tutorials.mnist.input_data import Datasets as Datasets
from twofold.static.examples.tutorials.mnist.input_data import read_data_sets as read_data_sets


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """``read_data_sets`` of a directory."""
    return read_data_sets(train_dir)
