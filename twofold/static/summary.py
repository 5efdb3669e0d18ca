"""Summaries: operations whose values are messages for TensorBoard, and the writer of event files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from time import monotonic
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import float32, string
from twofold.errors import ArgumentError, TwofoldError, at_operation
from twofold.event_files import (
    EventFile,
    audio_summary,
    histogram_summary,
    image_summary,
    scalar_summary,
    text_summary,
)
from twofold.runtime.failures import end_at
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import constant, convert_to_tensor
from twofold.static.functions.host_calls import py_func
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.scopes import name_scope
from twofold.static.protobuf.summary import Event as Event
from twofold.static.protobuf.summary import Summary as Summary


def _clean(name: str) -> str:
    """A name without the characters that names of operations cannot have."""
    return re.sub(r"[^-/\w.]", "_", name, flags=re.ASCII).lstrip("/")


def _summary(
    make: Callable[..., bytes], name: str, value: Any, collections: Any, family: Any = None, *more: Any
) -> Any:
    """An operation whose value is what ``make(tag, array, *more)`` gives, on the list of summaries.

    The tag is the name of the operation, so that it is unique and tells the scopes; a family stands
    before it again.
    """
    graph = get_default_graph()
    name, family = _clean(name), _clean(family) if family else None
    with name_scope(f"{family}/{name}" if family else name) as scope:
        label = scope.rstrip("/")
    tag = f"{family}/{label}" if family else label

    def message(*arrays: Any) -> Any:
        try:
            return numpy.array(make(tag, *arrays), object)
        except TwofoldError as error:
            where = _core.location_of(made)
            raise end_at(at_operation(error, label, [], _core.location_text(where)), where) from None

    made = py_func(message, [value, *more], string, name=scope)
    graph.add_to_collections([GraphKeys.SUMMARIES] if collections is None else collections, made)
    return made


def scalar(name: str, tensor: Any, collections: Any = None, family: Any = None) -> Any:
    """A number to record; its value is a message in bytes.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     found = session.run(tf.summary.scalar("loss", tf.constant(1.0)))
    >>> b"loss" in found
    True
    """

    def make(tag: str, array: Any) -> bytes:
        if array.shape:
            raise ArgumentError(
                f"a value of shape {array.shape} for one number", "Reduce it, such as to its mean."
            )
        return scalar_summary(tag, float(array))

    return _summary(make, name, tensor, collections, family)


def histogram(name: str, values: Any, collections: Any = None, family: Any = None) -> Any:
    """A distribution to record; raises TypeError for values that are no real numbers.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     found = session.run(tf.summary.histogram("weights", tf.ones([3])))
    >>> b"weights" in found
    True
    """
    given = convert_to_tensor(values)
    if not (given.dtype.is_floating or given.dtype.is_integer):
        raise TypeError(f"histogram: values of dtype {given.dtype.name}, at {here()}. Cast them to numbers.")
    return _summary(histogram_summary, name, given, collections, family)


def image(name: str, tensor: Any, max_outputs: int = 3, collections: Any = None, family: Any = None) -> Any:
    """The first ``max_outputs`` images of a batch to record: bytes, or numbers that are scaled to their largest.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     found = session.run(tf.summary.image("digits", tf.ones([2, 4, 4, 1])))
    >>> b"digits/image/1" in found
    True
    """

    def make(tag: str, array: Any) -> bytes:
        tags = _tags(f"{tag}/image", max_outputs)
        return b"".join(image_summary(one, _pixels(pixels)) for one, pixels in zip(tags, array))

    return _summary(make, name, tensor, collections, family)


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Any = None,
    family: Any = None,
) -> Any:
    """The first ``max_outputs`` sounds of a batch to record: numbers from -1 to 1, [batch, frames, channels].

    Args:
        name: The name.
        tensor: The sounds; those of one channel may lack the last axis.
        sample_rate: How many frames a second has, a number or tensor.
        max_outputs: How many are recorded.
        collections: Of summaries; that of all unless given.
        family: Stands before the name.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     found = session.run(tf.summary.audio("speech", tf.zeros([1, 8, 2]), 16000.0))
    >>> b"speech/audio/0" in found
    True
    """

    def make(tag: str, array: Any, rate: Any) -> bytes:
        sounds = array if array.ndim == 3 else array[..., None]
        tags = _tags(f"{tag}/audio", max_outputs)
        return b"".join(audio_summary(one, sound, float(rate)) for one, sound in zip(tags, sounds))

    return _summary(make, name, tensor, collections, family, convert_to_tensor(sample_rate, float32))


def _tags(tag: str, count: int) -> list[str]:
    """The tags of the elements of a batch, of which so many are recorded."""
    return [tag] if count == 1 else [f"{tag}/{k}" for k in range(count)]


def _pixels(image: Any) -> Any:
    """Numbers as bytes: without negative ones 0 is black, else 127 is zero; the largest magnitude is full."""
    if image.dtype == numpy.uint8:
        return image
    most = float(numpy.abs(image).max()) or 1.0
    scaled = image / most * 127.0 + 128.0 if image.min() < 0 else image / most * 255.0
    return numpy.clip(scaled, 0, 255).astype(numpy.uint8)


def text(name: str, tensor: Any, collections: Any = None) -> Any:
    """Text to record."""

    def make(tag: str, array: Any) -> bytes:
        parts = [
            one.decode() if isinstance(one, bytes) else str(one) for one in numpy.asarray(array).reshape(-1)
        ]
        return text_summary(tag, "\n\n".join(parts))

    return _summary(make, name, tensor, collections)


def merge(inputs: Any, collections: Any = None, name: str | None = None) -> Any:
    """Several summaries as one."""
    parts = list(inputs)
    if not parts:
        made = constant(b"", name=name or "MergeSummary")
    else:
        made = py_func(
            lambda *found: numpy.array(b"".join(found), object), parts, string, name=name or "MergeSummary"
        )
    get_default_graph().add_to_collections(collections or [], made)
    return made


def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Any:
    """All summaries of the default graph as one, or None if there are none."""
    found = get_default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None


class FileWriter:
    """Writes summaries, graphs and profiles to an event file in ``logdir``.

    Args:
        logdir: The directory.
        graph: A graph that is written at once.
        max_queue: How many summaries may wait to be written.
        flush_secs: After how many seconds the next summary has all written.
        graph_def: A message of a graph that is written at once.
        filename_suffix: The end of the file's name.
        session: Not None raises ArgumentError: there are no summaries by way of sessions.
    """

    def __init__(
        self,
        logdir: Any,
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        if session is not None:
            raise ArgumentError(f"FileWriter: a session writes nothing, at {here()}", "Leave it out.")
        self._file = EventFile(logdir, filename_suffix or "")
        self._waiting, self._most = 0, max_queue
        self._last, self._seconds = monotonic(), flush_secs
        if graph is not None:
            self.add_graph(graph)
        if graph_def is not None:
            self._file.add_graph(graph_def.SerializeToString())

    def get_logdir(self) -> Any:
        """The directory given."""
        return self._file.folder

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write what running a summary gave."""
        content = summary.SerializeToString() if hasattr(summary, "SerializeToString") else bytes(summary)
        self._file.add_summary(content, None if global_step is None else int(global_step))
        self._waiting += 1
        if self._waiting >= self._most or monotonic() - self._last >= self._seconds:
            self.flush()

    def add_graph(self, graph: Any = None, global_step: Any = None, graph_def: Any = None) -> None:
        """Write a graph, or its message, which has no step in TensorBoard."""
        given = graph_def if graph is None else graph
        if given is None or (graph is not None and graph_def is not None):
            raise ValueError(f"add_graph: give graph or graph_def, at {here()}.")
        message = given.as_graph_def() if hasattr(given, "as_graph_def") else given
        self._file.add_graph(message.SerializeToString())

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Write the profile of a run."""
        step = None if global_step is None else int(global_step)
        self._file.add_run_metadata(run_metadata.SerializeToString(), tag, step)

    def flush(self) -> None:
        """Let TensorBoard see all that was written."""
        self._file.flush()
        self._waiting, self._last = 0, monotonic()

    def close(self) -> None:
        """Write everything, and close the file."""
        self._file.close()

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


@example(
    "import tempfile",
    "with tempfile.TemporaryDirectory() as folder:",
    "    same = tf.summary.FileWriterCache.get(folder) is tf.summary.FileWriterCache.get(folder)",
    "    tf.summary.FileWriterCache.clear()",
    "print(same)",
    "True",
)
class FileWriterCache:
    """One ``FileWriter`` for each directory, which all who write there share."""

    _writers: dict[str, FileWriter] = {}

    @classmethod
    def get(cls, logdir: Any) -> FileWriter:
        """The writer of a directory."""
        folder = os.fspath(logdir)
        if folder not in cls._writers:
            cls._writers[folder] = FileWriter(folder, graph=get_default_graph())
        return cls._writers[folder]

    @classmethod
    def clear(cls) -> None:
        """Close all writers, and forget them."""
        for writer in cls._writers.values():
            writer.close()
        cls._writers.clear()
