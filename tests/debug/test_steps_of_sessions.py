"""A training step of a session has the same bits under a debugger, in ``verify`` and where values are asked for."""

from __future__ import annotations

import sys
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from tests.debug.step_recorder import StepRecorder
from twofold import debug


def trained(way: str) -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.placeholder(tf.float32, [None, 4]), tf.Variable(tf.ones([4, 1]) * 0.1)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
        step = tf.train.AdamOptimizer(0.05).minimize(loss)  # whose corrections are numbers of 64 bits
        session.run(tf.global_variables_initializer())
        losses = []
        for k in range(4):
            feeds = {x: numpy.random.default_rng(k).normal(size=(8, 4))}
            if way == "verify":
                with debug.verify():
                    losses.append(session.run([loss, step], feeds)[0])
            else:
                losses.append(session.run([loss, step], feeds, debug=way == "debug")[0])
            if way == "value":
                debug.value("loss", session)
                torch.explain(session)
                torch.draw(session)
        return [*map(float, losses), *session.run(w).ravel().tolist()]


@pytest.mark.parametrize("way", ["debug", "verify", "value"])
def test_the_bits_are_those_of_a_run_without(way: str) -> None:
    assert trained(way) == trained("plain")


def doubled(a: Any) -> Any:
    twice = a * 2
    return twice.astype("float32")


def tripled(t: Any) -> Any:
    return t * 3.0


def ignored(a: Any) -> None:
    assert a is not None


def calling_python() -> list[Any]:
    """Python outside of loops, in one, with tensors, and without results."""

    def body(i: Any, h: Any) -> Any:
        made = tf.py_func(doubled, [h], tf.float32)
        made.set_shape([2])
        return i + 1, made + 1.0

    x = tf.placeholder(tf.float32, [2], name="x")
    once = tf.py_func(doubled, [x + 1.0], tf.float32)
    _, looped = tf.while_loop(lambda i, h: i < 2, body, [tf.constant(0), x])
    return [once, looped, tf.py_function(tripled, [once], tf.float32), tf.py_func(ignored, [once], [])]


def test_functions_that_a_run_calls_are_stepped_through() -> None:
    recorder = StepRecorder(__file__)
    with tf.Graph().as_default(), tf.Session() as session:
        fetches = calling_python()
        plain = session.run(fetches, {"x:0": [1.0, 2.0]})
        recorder.run_steps(lambda: session.run(fetches, {"x:0": [1.0, 2.0]}, debug=True))
    assert [one.tolist() for one in recorder.result[:3]] == [one.tolist() for one in plain[:3]]
    first = doubled.__code__.co_firstlineno
    assert [one.line - first for one in recorder.seen if one.function == "doubled"] == [1, 2] * 3
    names = [one.function for one in recorder.seen]
    assert names.count("tripled") == names.count("ignored") == 1


def test_a_run_inside_of_such_a_function_is_followed_as_any() -> None:
    inner = tf.Graph()
    with inner.as_default():
        y = tf.py_func(doubled, [tf.placeholder(tf.float32, [2], name="y")], tf.float32)

    def nested(a: Any) -> Any:
        with tf.Session(graph=inner) as session:
            return session.run(y, {"y:0": a})

    recorder = StepRecorder(__file__)
    with tf.Graph().as_default(), tf.Session() as session:
        z = tf.py_func(nested, [tf.constant([1.0, 2.0])], tf.float32)
        recorder.run_steps(lambda: session.run(z, debug=True))
    assert recorder.result.tolist() == [2.0, 4.0] and sys.gettrace() is None
    assert [one.function for one in recorder.seen].count("doubled") == 2
