"""``stop_gradients``: derivatives by what is stopped exist, none passes through it; and derivatives of variables."""

import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def test_the_derivative_by_what_is_stopped(session):
    a = tf.constant(3.0)
    b = a * a
    assert session.run(tf.gradients(b, [a], stop_gradients=[a])) == [6.0]
    assert session.run(tf.gradients(b, [b], stop_gradients=[b])) == [1.0]
    assert tf.gradients(b, [a], stop_gradients=[b]) == [None]


def test_one_of_two_paths_is_stopped(session):
    x = tf.constant(2.0)
    a = x * x
    y = a + x * 3.0
    assert session.run(tf.gradients(a * y, [a, x, y], stop_gradients=[a])) == [14.0, 12.0, 4.0]


def test_both_ends_of_a_path_are_stopped(session):
    a = tf.constant(0.0)
    b = 2.0 * a
    assert session.run(tf.gradients(a + b, [a, b], stop_gradients=[a, b])) == [1.0, 1.0]
    assert session.run(tf.gradients(a + b, [a, b])) == [3.0, 1.0]


def test_a_placeholder_and_a_variable_are_stopped(session):
    x, v, w = tf.placeholder(tf.float32, []), tf.Variable(2.0), tf.Variable(3.0)
    session.run(tf.global_variables_initializer())
    assert session.run(tf.gradients(tf.identity(x) * x, [x], stop_gradients=[x]), {x: 4.0}) == [8.0]
    assert session.run(tf.gradients(v * w + v * v, [v, w], stop_gradients=[v])) == [7.0, 2.0]


def test_the_derivative_by_a_variable_is_that_by_all_its_reads(session):
    v, x = tf.Variable(2.0), tf.constant(5.0)
    before = v * 1.0
    with tf.control_dependencies([v.assign(x * x)]):
        after = v.read_value()
    session.run(v.initializer)
    assert session.run(tf.gradients(after * after * x, [v, x])) == [250.0, 625.0]
    session.run(v.initializer)
    assert session.run(tf.gradients(before * after, [v])) == [27.0]


def test_no_derivative_passes_through_an_update(session):
    v, x = tf.Variable(2.0), tf.constant(5.0)
    updated = v.assign(x * x)
    session.run(v.initializer)
    assert tf.gradients(updated * 3.0, [x]) == [None]
    assert session.run(tf.gradients(updated * x, [x, updated])) == [25.0, 5.0]
