"""Summaries: accepted so that programs run, and written nowhere.

Differs from TensorFlow: a summary's value is empty bytes, and a FileWriter makes no files.
"""

from __future__ import annotations

from typing import Any

from twofold.static.define import constant
from twofold.static.graph import GraphKeys, get_default_graph


def _summary(name: str, *values: Any, **options: Any) -> Any:
    graph = get_default_graph()
    made = constant(b"", name=name.replace(" ", "_").replace(":", "_"))
    graph.add_to_collection(GraphKeys.SUMMARIES, made)
    return made


def scalar(name: str, tensor: Any, collections: Any = None, family: Any = None) -> Any:
    """A number to record.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.summary.scalar("loss", tf.constant(1.0))))
    b''
    """
    return _summary(name)


def histogram(name: str, values: Any, collections: Any = None, family: Any = None) -> Any:
    """A distribution to record."""
    return _summary(name)


def image(name: str, tensor: Any, max_outputs: int = 3, collections: Any = None, family: Any = None) -> Any:
    """Images to record."""
    return _summary(name)


def text(name: str, tensor: Any, collections: Any = None) -> Any:
    """Text to record."""
    return _summary(name)


def merge(inputs: Any, collections: Any = None, name: str | None = None) -> Any:
    """Several summaries as one."""
    return constant(b"", name=name or "MergeSummary")


def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Any:
    """All summaries of the default graph as one, or None if there are none."""
    return merge([]) if get_default_graph().get_collection(key) else None


class FileWriter:
    """Takes summaries and forgets them."""

    def __init__(self, logdir: Any = None, graph: Any = None, *options: Any, **more: Any) -> None:
        self._logdir = logdir

    def get_logdir(self) -> Any:
        """The directory given."""
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Forget a summary."""

    def add_graph(self, graph: Any, global_step: Any = None) -> None:
        """Forget a graph."""

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Forget a profile."""

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
