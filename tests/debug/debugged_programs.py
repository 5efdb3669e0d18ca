"""Runs each program as it is and as a graph under a debugger; a process of its own, which an editor attaches to."""

from __future__ import annotations

from typing import Any

import twofold.static as tf
from tests.debug.test_stepping import BY_RUN, DECLARED
from twofold import debug

VALUE = [0.5, -1.0]


def mark(what: str) -> None:
    """Tells an editor that stops here what runs next."""
    del what  # stops here


def run_declared(function: Any) -> None:
    """A declared graph computed at once, and stepped through in a session."""
    mark(f"{function.__name__} plain")
    tf.enable_eager_execution()
    try:
        function(tf.constant(VALUE))
    finally:
        tf.disable_eager_execution()
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        mark("")
        fetched = function(x)
        mark(f"{function.__name__} stepped")
        session.run(fetched, {x: VALUE}, debug=True)


def run_all() -> None:
    """Run all of them."""
    for name, (function, arguments) in BY_RUN.items():
        mark(f"{name} plain")
        function(*arguments())
        given = arguments()
        mark(f"{name} stepped")
        debug.run(function, *given)
    for function in DECLARED:
        run_declared(function)
    mark("end")
