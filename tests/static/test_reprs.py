"""Graphs and sessions say what they are."""

from __future__ import annotations

import twofold.static as tf


def test_graphs_and_sessions_say_what_they_hold() -> None:
    with tf.Graph().as_default() as graph:
        v = tf.Variable([1.0], name="v")
        count = len(graph.get_operations())
        assert repr(graph) == f"<tf.Graph of {count} operations>"
        session = tf.Session()
        assert repr(session) == f"<tf.Session of {graph!r}, 0 variables have values>"
        session.run(v.initializer)
        assert "1 variables have values" in repr(session)
        session.close()
        assert repr(session).endswith("closed>")
