"""Messages of training data: ``tf.train.Example``, its features, and a summary's.

Sources: ``example.proto`` and ``feature.proto`` of tensorflow/core/example.
"""

from __future__ import annotations

from twofold.static.protobuf.messages import Message, fields, message

BytesList = message("BytesList", "Strings of bytes.", "repeated bytes value = 1")
FloatList = message("FloatList", "Numbers of float32.", "repeated float value = 1")
Int64List = message("Int64List", "Whole numbers.", "repeated int value = 1")
Feature = message(
    "Feature",
    "One list of values: of bytes, of float32 or of int64.",
    "oneof BytesList bytes_list = 1; oneof FloatList float_list = 2; oneof Int64List int64_list = 3",
)
Features = message("Features", "Features by name.", "map Feature feature = 1")
FeatureList = message(
    "FeatureList", "The features of the steps of a sequence.", "repeated Feature feature = 1"
)
FeatureLists = message("FeatureLists", "Sequences by name.", "map FeatureList feature_list = 1")


class Example(Message):
    """One row of training data.

    >>> import twofold.static as tf
    >>> label = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
    >>> row = tf.train.Example(features=tf.train.Features(feature={"label": label}))
    >>> tf.train.Example.FromString(row.SerializeToString()).features.feature["label"].int64_list.value
    [3]
    """

    FIELDS = fields("Features features = 1")


SequenceExample = message(
    "SequenceExample",
    "One row of training data with sequences: what holds for the row, and what for its steps.",
    "Features context = 1; FeatureLists feature_lists = 2",
)
