"""Messages of training data: ``tf.train.Example``, its features, and a summary's.

Sources: ``example.proto`` and ``feature.proto`` of tensorflow/core/example.
"""

from __future__ import annotations

from typing import ClassVar

from twofold.static.protobuf.messages import Field, Message


class BytesList(Message):
    """Strings of bytes."""

    FIELDS: ClassVar[dict[str, Field]] = {"value": Field(1, "bytes", True)}


class FloatList(Message):
    """Numbers of float32."""

    FIELDS: ClassVar[dict[str, Field]] = {"value": Field(1, "float", True)}


class Int64List(Message):
    """Whole numbers."""

    FIELDS: ClassVar[dict[str, Field]] = {"value": Field(1, "int", True)}


class Feature(Message):
    """One list of values: of bytes, of float32 or of int64."""

    FIELDS: ClassVar[dict[str, Field]] = {
        "bytes_list": Field(1, BytesList, oneof=True),
        "float_list": Field(2, FloatList, oneof=True),
        "int64_list": Field(3, Int64List, oneof=True),
    }


class Features(Message):
    """Features by name."""

    FIELDS: ClassVar[dict[str, Field]] = {"feature": Field(1, Feature, map=True)}


class FeatureList(Message):
    """The features of the steps of a sequence."""

    FIELDS: ClassVar[dict[str, Field]] = {"feature": Field(1, Feature, True)}


class FeatureLists(Message):
    """Sequences by name."""

    FIELDS: ClassVar[dict[str, Field]] = {"feature_list": Field(1, FeatureList, map=True)}


class Example(Message):
    """One row of training data.

    >>> import twofold.static as tf
    >>> label = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
    >>> row = tf.train.Example(features=tf.train.Features(feature={"label": label}))
    >>> tf.train.Example.FromString(row.SerializeToString()).features.feature["label"].int64_list.value
    [3]
    """

    FIELDS: ClassVar[dict[str, Field]] = {"features": Field(1, Features)}


class SequenceExample(Message):
    """One row of training data with sequences: what holds for the row, and what for its steps."""

    FIELDS: ClassVar[dict[str, Field]] = {
        "context": Field(1, Features),
        "feature_lists": Field(2, FeatureLists),
    }
