"""Input pipelines: ``tf.data``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from twofold.static.dataset_iterators import Iterator as Iterator
from twofold.static.datasets import Dataset as Dataset
from twofold.static.file_datasets import FixedLengthRecordDataset as FixedLengthRecordDataset
from twofold.static.file_datasets import TextLineDataset as TextLineDataset
from twofold.static.file_datasets import TFRecordDataset as TFRecordDataset

AUTOTUNE = -1
"""For ``num_parallel_calls`` and ``buffer_size`` of ``prefetch``, which change no elements."""


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """``dataset.make_one_shot_iterator()``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     following = tf.data.make_one_shot_iterator(tf.data.Dataset.range(2)).get_next()
    ...     print(session.run(following), session.run(following))
    0 1
    """
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """``dataset.make_initializable_iterator(shared_name)``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(2))
    ...     following = iterator.get_next()
    ...     session.run(iterator.initializer)
    ...     print(session.run(following), session.run(following))
    0 1
    """
    return dataset.make_initializable_iterator(shared_name)


def get_output_types(dataset_or_iterator: Dataset | Iterator) -> Any:
    """The dtypes of an element, in its structure.

    >>> import twofold.static as tf
    >>> tf.data.get_output_types(tf.data.Dataset.range(2)).name
    'int64'
    """
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Dataset | Iterator) -> Any:
    """The shapes of an element, in its structure.

    >>> import twofold.static as tf
    >>> print(tf.data.get_output_shapes(tf.data.Dataset.range(4).batch(2)))
    (?,)
    """
    return dataset_or_iterator.output_shapes


def __getattr__(name: str) -> Any:
    if name == "experimental":
        return import_module("twofold.static.contrib.data")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
