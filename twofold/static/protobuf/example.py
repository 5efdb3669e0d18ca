"""Messages of training data: ``tf.train.Example``, its features, and a summary's.

Sources: ``example.proto`` and ``feature.proto`` of tensorflow/core/example.
"""

from __future__ import annotations

from twofold.static.protobuf.messages import Message, fields


class BytesList(Message):
    """Strings of bytes."""

    FIELDS = fields("repeated bytes value = 1")


class FloatList(Message):
    """Numbers of float32."""

    FIELDS = fields("repeated float value = 1")


class Int64List(Message):
    """Whole numbers."""

    FIELDS = fields("repeated int value = 1")


class Feature(Message):
    """One list of values: of bytes, of float32 or of int64."""

    FIELDS = fields(
        "oneof BytesList bytes_list = 1; oneof FloatList float_list = 2; oneof Int64List int64_list = 3"
    )


class Features(Message):
    """Features by name."""

    FIELDS = fields("map Feature feature = 1")


class FeatureList(Message):
    """The features of the steps of a sequence."""

    FIELDS = fields("repeated Feature feature = 1")


class FeatureLists(Message):
    """Sequences by name."""

    FIELDS = fields("map FeatureList feature_list = 1")


class Example(Message):
    """One row of training data.

    >>> import twofold.static as tf
    >>> label = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
    >>> row = tf.train.Example(features=tf.train.Features(feature={"label": label}))
    >>> tf.train.Example.FromString(row.SerializeToString()).features.feature["label"].int64_list.value
    [3]
    """

    FIELDS = fields("Features features = 1")


class SequenceExample(Message):
    """One row of training data with sequences: what holds for the row, and what for its steps."""

    FIELDS = fields("Features context = 1; FeatureLists feature_lists = 2")
