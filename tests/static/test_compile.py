"""``Session.compile``: everything is planned and compiled before any data, and runs compile nothing more."""

import numpy
import pytest

import twofold
import twofold.static as tf


@pytest.fixture(autouse=True)
def _in_a_new_graph():
    with tf.Graph().as_default():
        yield


def network(rows):
    """Placeholders, a loss and a training step of a network with as many inner rows."""
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None])
    weights = tf.Variable(numpy.linspace(-1, 1, 3 * rows, dtype=numpy.float32).reshape(3, rows))
    hidden = tf.nn.relu(tf.matmul(x, weights))
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(hidden, 1) - y))
    return x, y, loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)


def spent():
    """How often something was planned, fused or compiled so far."""
    twofold.wait_for_compiler()
    now = twofold.stats()
    return now.plans, now.fused, now.kernels


FEEDS = (numpy.ones([4, 3], numpy.float32), numpy.zeros(4, numpy.float32))


def test_runs_after_it_compile_nothing_and_have_the_same_bits():
    found = []
    for compiled in (False, True):
        x, y, loss, train = network(17)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            if compiled:
                session.compile([loss, train], {x: [4, 3], y: [4]})
                before = spent()
            steps = [session.run([loss, train], dict(zip((x, y), FEEDS)))[0] for _ in range(9)]
            if compiled:
                assert spent() == before
            found.append(numpy.array(steps).tobytes())
    assert found[0] == found[1]


def test_variables_need_no_value_and_declared_shapes_can_stand():
    x, _, _, _ = network(19)
    inner = tf.placeholder(tf.float32, [2, 3])
    made = tf.matmul(inner, tf.Variable(tf.ones([3, 23])))
    with tf.Session() as session:
        session.compile(made, {inner: None})
        session.run(tf.global_variables_initializer())
        before = spent()
        assert session.run(made, {inner: numpy.ones([2, 3])}).tolist() == [[3.0] * 23] * 2
        assert spent() == before
        assert session.run(x * 2.0, {x: [[1.0, 2.0, 3.0]]}).tolist() == [[2.0, 4.0, 6.0]]


def test_other_shapes_run_as_ever():
    x, y, loss, _ = network(5)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.compile(loss, {x: [4, 3], y: [4]})
        few = session.run(loss, {x: numpy.ones([2, 3]), y: numpy.zeros(2)})
        assert few == session.run(loss, dict(zip((x, y), FEEDS)))


def test_what_does_not_fit_is_refused_with_words():
    x, y, loss, _ = network(5)
    with tf.Session() as session:
        with pytest.raises(tf.GraphError, match=r"\[4,2\] does not fit"):
            session.compile(loss, {x: [4, 2], y: [4]})
        with pytest.raises(tf.GraphError, match="leaves sizes open"):
            session.compile(loss, {x: None, y: [4]})
        with pytest.raises(tf.GraphError, match="is not fed"):
            session.compile(loss, {x: [4, 3]})
        free = tf.Variable(tf.zeros([1]), validate_shape=False)
        with pytest.raises(tf.GraphError, match="has no value yet"):
            session.compile(free + 1.0)
    with pytest.raises(tf.GraphError, match="closed"):
        session.compile(loss)


def test_what_runs_in_parts_is_refused_and_says_why():
    n = tf.placeholder(tf.int32, [])
    filled = tf.fill([n, 2], 1.0)
    (called,) = tf.py_func(lambda: numpy.float32(1), [], [tf.float32])
    with tf.Session() as session:
        for made, feeds in ((filled, {n: []}), (called, {})):
            with pytest.raises(tf.GraphError, match="only a run tells"):
                session.compile(made, feeds)
        assert session.run([filled, called], {n: 3})[0].shape == (3, 2)


def test_draws_updates_and_loops_are_compiled_too():
    counter = tf.Variable(0.0)
    drawn = tf.random_uniform([3], seed=4)
    looped = tf.while_loop(lambda k, v: k < 5, lambda k, v: (k + 1, v * 2.0), (0, drawn))[1]
    counted = tf.assign_add(counter, 1.0)
    with tf.Session() as session:
        session.run(counter.initializer)
        session.compile([looped, counted])
        before = spent()
        first, count = session.run([looped, counted])
        assert spent() == before
        assert count == 1.0 and (first != session.run([looped, counted])[0]).any()
