"""Messages of summaries and events, for programs that fill them themselves or read event files.

Sources: ``summary.proto`` of tensorflow/core/framework and ``event.proto`` of tensorflow/core/util.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from twofold.static.protobuf.graph_def import TensorProto
from twofold.static.protobuf.messages import Field, Message
from twofold.static.python_io import tf_record_iterator


class HistogramProto(Message):
    """How many values lie below each of some limits."""

    FIELDS: ClassVar[dict[str, Field]] = {
        "min": Field(1, "double"),
        "max": Field(2, "double"),
        "num": Field(3, "double"),
        "sum": Field(4, "double"),
        "sum_squares": Field(5, "double"),
        "bucket_limit": Field(6, "double", True),
        "bucket": Field(7, "double", True),
    }


class _Image(Message):
    FIELDS: ClassVar[dict[str, Field]] = {
        "height": Field(1, "int"),
        "width": Field(2, "int"),
        "colorspace": Field(3, "int"),
        "encoded_image_string": Field(4, "bytes"),
    }


class _Value(Message):
    FIELDS: ClassVar[dict[str, Field]] = {
        "tag": Field(1, "string"),
        "simple_value": Field(2, "float", oneof=True),
        "image": Field(4, _Image, oneof=True),
        "histo": Field(5, HistogramProto, oneof=True),
        "node_name": Field(7, "string"),
        "tensor": Field(8, TensorProto, oneof=True),
    }


class Summary(Message):
    """Values with tags: ``tf.summary.FileWriter.add_summary`` writes them.

    >>> import twofold.static as tf
    >>> made = tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=0.5)])
    >>> print(tf.Summary.FromString(made.SerializeToString()), end="")
    value {
      tag: "loss"
      simple_value: 0.5
    }
    """

    FIELDS: ClassVar[dict[str, Field]] = {"value": Field(1, _Value, True)}
    Value = _Value
    Image = _Image


class Event(Message):
    """One entry of an event file."""

    FIELDS: ClassVar[dict[str, Field]] = {
        "wall_time": Field(1, "double"),
        "step": Field(2, "int"),
        "file_version": Field(3, "string", oneof=True),
        "graph_def": Field(4, "bytes", oneof=True),
        "summary": Field(5, Summary, oneof=True),
    }


def summary_iterator(path: Any) -> Iterator[Event]:
    """The events of a file, one after the other.

    >>> import glob, tempfile
    >>> import twofold.static as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with tf.summary.FileWriter(folder) as writer:
    ...         value = tf.Summary.Value(tag="loss", simple_value=0.5)
    ...         writer.add_summary(tf.Summary(value=[value]), 3)
    ...     events = list(tf.train.summary_iterator(glob.glob(f"{folder}/*")[0]))
    >>> events[0].file_version, events[1].step, events[1].summary.value[0].simple_value
    ('brain.Event:2', 3, 0.5)
    """
    return (Event.FromString(record) for record in tf_record_iterator(path))
