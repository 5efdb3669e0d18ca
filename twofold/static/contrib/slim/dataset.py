"""Records in files, and how they are read: ``slim.dataset``."""

from __future__ import annotations

from typing import Any


class Dataset:
    """Files of records with a reader and a decoder; further arguments become attributes.

    Args:
        data_sources: Names of files, or a pattern of them.
        reader: A class of readers, such as ``tf.TFRecordReader``.
        decoder: What has ``decode`` and ``list_items``, such as a ``TFExampleDecoder``.
        num_samples: How many records there are.
        items_to_descriptions: What each item is.
        **kwargs: More attributes, such as ``num_classes``.

    >>> import twofold.static as tf
    >>> tf.contrib.slim.dataset.Dataset("*.tfrecord", tf.TFRecordReader, None, 3, {}, num_classes=2).num_classes
    2
    """

    def __init__(
        self,
        data_sources: Any,
        reader: Any,
        decoder: Any,
        num_samples: int | None,
        items_to_descriptions: Any,
        **kwargs: Any,
    ) -> None:
        self.data_sources, self.reader, self.decoder = data_sources, reader, decoder
        self.num_samples, self.items_to_descriptions = num_samples, items_to_descriptions
        vars(self).update(kwargs)
