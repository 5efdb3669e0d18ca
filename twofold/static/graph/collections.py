"""Collections of the default graph: ``tf.add_to_collection``, ``tf.get_collection``."""

from __future__ import annotations

from typing import Any

from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph


@example('tf.add_to_collection("numbers", tf.constant(5))', 'tf.get_collection("numbers")[0]', "5")
def add_to_collection(name: str, value: Any) -> None:
    """Put ``value`` in a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


@example('tf.add_to_collections(["numbers", "odd"], tf.constant(5))', 'tf.get_collection("odd")[0]', "5")
def add_to_collections(names: Any, value: Any) -> None:
    """Put ``value`` in several collections of the default graph."""
    get_default_graph().add_to_collections(names, value)


@example('tf.add_to_collection("numbers", tf.constant(5))', 'tf.get_collection("numbers")[0]', "5")
def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """What a collection of the default graph holds."""
    return get_default_graph().get_collection(key, scope)


@example('tf.get_collection_ref("numbers").append(tf.constant(5))', 'tf.get_collection("numbers")[0]', "5")
def get_collection_ref(key: str) -> list[Any]:
    """The list that holds a collection of the default graph."""
    return get_default_graph().get_collection_ref(key)
