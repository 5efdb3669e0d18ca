"""Messages of summaries and events, for programs that fill them themselves or read event files.

Sources: ``summary.proto`` of tensorflow/core/framework and ``event.proto`` of tensorflow/core/util.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import twofold.static.protobuf.graph_def  # noqa: F401  the fields below name its TensorProto
from twofold.static.protobuf.messages import Message, fields, message
from twofold.static.python_io import tf_record_iterator

HistogramProto = message(
    "HistogramProto",
    "How many values lie below each of some limits.",
    "double min = 1; double max = 2; double num = 3; double sum = 4; double sum_squares = 5; "
    "repeated double bucket_limit = 6; repeated double bucket = 7",
)
_Image = message(
    "_Image",
    "A picture.",
    "int height = 1; int width = 2; int colorspace = 3; bytes encoded_image_string = 4",
)
_Audio = message(
    "_Audio",
    "A sound.",
    "float sample_rate = 1; int num_channels = 2; int length_frames = 3; bytes encoded_audio_string = 4; "
    "string content_type = 5",
)
_Value = message(
    "_Value",
    "A value with a tag.",
    "string tag = 1; oneof float simple_value = 2; oneof _Image image = 4; "
    "oneof HistogramProto histo = 5; oneof _Audio audio = 6; string node_name = 7; oneof TensorProto tensor = 8",
)


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

    FIELDS = fields("repeated _Value value = 1")
    Value = _Value
    Image = _Image
    Audio = _Audio


class Event(Message):
    """One entry of an event file."""

    FIELDS = fields(
        "double wall_time = 1; int step = 2; oneof string file_version = 3; oneof bytes graph_def = 4; "
        "oneof Summary summary = 5"
    )


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
