"""Runs that go on when more is fed; the behaviour was recorded from TensorFlow 2.21, ``tf.compat.v1``."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


@pytest.fixture
def pair(session):
    """Two placeholders; the first and one; that times the second."""
    a, b = tf.placeholder(tf.float32, [], "a"), tf.placeholder(tf.float32, [], "b")
    x = tf.add(a, 1.0, name="x")
    return a, b, x, tf.multiply(x, b, name="y")


def test_a_run_goes_on(session, pair):
    a, b, x, y = pair
    handle = session.partial_run_setup([x, y], [a, b])
    first = session.partial_run(handle, x, {a: 2.0})
    assert (first, session.partial_run(handle, [y], {b: first})) == (3.0, [9.0])
    handle = session.partial_run_setup({"x": x, "y": y}, [a, b])
    assert session.partial_run(handle, [], {a: 1.0}) == []
    assert session.partial_run(handle, {"x": x, "y": (y,)}, {b: 4.0}) == {"x": 2.0, "y": (8.0,)}


def test_samples_and_effects_happen_once(session):
    calls = []
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    v, sample = tf.Variable(1.0), tf.random_uniform([])
    noted = tf.py_func(lambda x: calls.append(float(x)) or x, [a], tf.float32)
    up, y, z = tf.assign_add(v, noted), noted * b, sample * b
    session.run(tf.global_variables_initializer())
    handle = session.partial_run_setup([up, y, z, sample], [a, b])
    assert session.partial_run(handle, up, {a: 2.0}) == 3.0
    first = session.partial_run(handle, sample)
    assert session.partial_run(handle, [y, z], {b: 3.0}) == [6.0, numpy.float32(first * numpy.float32(3.0))]
    assert (calls, session.run(v)) == ([2.0], 3.0)


def test_operations_run_when_they_can(session, pair):
    a, b, x, _ = pair
    v = tf.Variable(1.0)
    step = tf.assign_add(v, b).op
    session.run(tf.global_variables_initializer())
    handle = session.partial_run_setup([x, step], [a, b])
    session.partial_run(handle, x, {a: 1.0})
    assert session.run(v) == 1.0
    session.partial_run(handle, [], {b: 5.0})
    assert session.run(v) == 6.0
    handle = session.partial_run_setup([step], [b])
    with pytest.raises(RuntimeError, match="Name it in the setup alone"):
        session.partial_run(handle, step, {b: 1.0})


def test_what_is_between_may_be_fed(session, pair):
    _, b, x, y = pair
    handle = session.partial_run_setup([y], [x, b])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Feed x:0 with it"):
        session.partial_run(handle, y, {b: 2.0})
    assert session.partial_run(handle, y, {x: 100.0, b: 2.0}) == 200.0


def test_mistakes(session, pair):
    a, b, x, y = pair

    def refused(text, fetches, feeds):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            session.partial_run(handle, fetches, feeds)

    handle = session.partial_run_setup([x], [a])
    refused("the fetch y:0 was not specified in partial_run_setup", y, {a: 1.0})
    refused("the feed b:0 was not specified in partial_run_setup", x, {a: 1.0, b: 1.0})
    handle = session.partial_run_setup([x, y], [a, b])
    refused("fetch y:0 .* can't be computed from the feeds that have been fed so far", y, {a: 1.0})
    session.partial_run(handle, x, {a: 1.0})
    refused("the feed a:0 has already been fed", y, {a: 5.0, b: 1.0})
    refused("the fetch x:0 has already been fetched", x, {b: 1.0})
    session.partial_run(handle, y, {b: 1.0})
    refused("Must run 'setup' before performing partial runs", y, None)
    with pytest.raises(tf.errors.InvalidArgumentError, match="nothing is fetched"):
        session.partial_run_setup([])
