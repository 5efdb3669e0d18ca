"""Summaries: accepted so that programs run, and written nowhere; both warn once.

Differs from TensorFlow: a summary's value is empty bytes, and a FileWriter makes no files.
"""

from __future__ import annotations

from typing import Any

from twofold.static.config import warn_once
from twofold.static.define import constant
from twofold.static.graph import get_default_graph
from twofold.static.keys import GraphKeys


def _summary(name: str, collections: Any, family: Any = None) -> Any:
    warn_once("tf.summary", "summaries record nothing yet, their values are empty bytes")
    graph = get_default_graph()
    label = f"{family}/{name}" if family else name
    made = constant(b"", name=label.replace(" ", "_").replace(":", "_"))
    graph.add_to_collections([GraphKeys.SUMMARIES] if collections is None else collections, made)
    return made


def scalar(name: str, tensor: Any, collections: Any = None, family: Any = None) -> Any:
    """A number to record.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.summary.scalar("loss", tf.constant(1.0))))
    b''
    """
    return _summary(name, collections, family)


def histogram(name: str, values: Any, collections: Any = None, family: Any = None) -> Any:
    """A distribution to record."""
    return _summary(name, collections, family)


def image(name: str, tensor: Any, max_outputs: int = 3, collections: Any = None, family: Any = None) -> Any:
    """Images to record."""
    return _summary(name, collections, family)


def text(name: str, tensor: Any, collections: Any = None) -> Any:
    """Text to record."""
    return _summary(name, collections)


def merge(inputs: Any, collections: Any = None, name: str | None = None) -> Any:
    """Several summaries as one."""
    made = constant(b"", name=name or "MergeSummary")
    get_default_graph().add_to_collections(collections or [], made)
    return made


def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Any:
    """All summaries of the default graph as one, or None if there are none."""
    found = get_default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None


class FileWriter:
    """Takes summaries and forgets them."""

    def __init__(
        self,
        logdir: Any = None,
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        warn_once("FileWriter", "summaries are written nowhere yet")
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
