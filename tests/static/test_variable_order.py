"""A variable fetched beside its update is what it is after the run, as TensorFlow's reference variables are."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def started(session, value, **options):
    v = tf.Variable(value, **options)
    session.run(v.initializer)
    return v


def test_a_variable_is_fetched_after_the_run_wherever_it_stands(session):
    v = started(session, 1.0)
    update = v.assign_add(1.0)
    assert session.run([v, update]) == [2.0, 2.0]
    assert session.run([update, v]) == [3.0, 3.0]
    assert session.run({"v": v, "nothing": tf.group(update)})["v"] == 4.0
    assert session.run([v.value(), v.read_value(), tf.identity(v), update]) == [5.0, 5.0, 5.0, 5.0]


def test_what_is_computed_sees_the_value_before_the_run(session):
    v = started(session, [1.0, 2.0])
    loss = tf.reduce_sum(v * v)
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    fetched, copy, value, _ = session.run([v, v + 0.0, loss, step])
    assert (fetched.tolist(), copy.tolist(), value) == ([0.0, 0.0], [1.0, 2.0], 5.0)


def test_updates_are_fetched_as_the_variable_and_computed_with_as_they_left_it(session):
    v = started(session, 1.0)
    first, second = v.assign_add(1.0), v.assign_add(10.0)
    assert session.run([second, first, first + 0.0]) == [12.0, 12.0, 2.0]


def test_a_choice_that_writes(session):
    v = started(session, 1.0)
    chosen = tf.cond(tf.constant(True), lambda: v.assign(7.0), lambda: v.assign(8.0))
    assert session.run([chosen, v]) == [7.0, 7.0]


def test_slots_and_averages_too(session):
    v = started(session, 2.0)
    optimizer = tf.train.MomentumOptimizer(0.25, 0.5)
    step = optimizer.minimize(v * v)
    session.run(tf.global_variables_initializer())
    assert session.run([optimizer.get_slot(v, "momentum"), v, step]) == [4.0, 1.0, None]


def test_a_resource_is_fetched_as_it_was_when_read(session):
    v = started(session, 1.0, use_resource=True)
    update = v.assign_add(1.0)
    assert session.run([v, update, v.read_value()]) == [1.0, 2.0, 1.0]
    with tf.control_dependencies([update]):
        after = v.read_value()
    assert session.run([after, v]) == [3.0, 2.0]


def test_resources_by_default_and_by_scope(session):
    with tf.variable_scope("a", use_resource=True):
        assert tf.get_variable("v", []).use_resource
        with tf.variable_scope("b"):
            assert tf.get_variable("v", []).use_resource
            assert not tf.get_variable("w", [], use_resource=False).use_resource
    tf.enable_resource_variables()
    try:
        assert tf.resource_variables_enabled()
        assert tf.Variable(1.0).use_resource
    finally:
        tf.disable_resource_variables()
    assert not tf.resource_variables_enabled()
    assert not tf.Variable(1.0).use_resource


def test_one_fetched_value_is_not_the_variables_memory(session):
    v = started(session, [0.0] * 100)
    update = v.assign_add([1.0] * 100)
    for fetched in session.run([v, update]):
        fetched[:] = 7.0
    numpy.testing.assert_array_equal(session.run(v), [1.0] * 100)


@pytest.mark.parametrize("calls", [False, True])
@pytest.mark.parametrize("use_resource", [False, True])
def test_what_is_computed_sees_the_value_before_a_loop_that_writes(session, calls, use_resource):
    """What TensorFlow 2.21 gives where the loop waits for ``before``, which fixes the order there."""
    v = started(session, 1.0, use_resource=use_resource)
    before = v * 2.0
    with tf.control_dependencies([before]):

        def body(i, total):
            amount = tf.py_func(numpy.negative, [-2.0], tf.float32) if calls else tf.constant(2.0)
            with tf.control_dependencies([v.assign_add(tf.reshape(amount, []))]):
                return i + 1, total + v.read_value()

        total = tf.while_loop(lambda i, _: i < 3, body, (0, 0.0), parallel_iterations=1)[1]
    with tf.control_dependencies([total]):
        after = v.read_value() * 2.0
    assert session.run([before, total, after]) == [2.0, 15.0, 14.0]
    assert session.run([before, total]) == [14.0, 33.0]
    assert session.run([total, before]) == [51.0, 26.0]


@pytest.mark.parametrize("use_resource", [False, True])
def test_what_a_loop_waits_for_is_computed_before_it_and_after_the_one_before(session, use_resource):
    """What TensorFlow 2.21 gives, and the derivatives by the input and the variable as it was then."""
    v = started(session, 1.0, use_resource=use_resource)
    x = tf.placeholder(tf.float32, [])

    def loop(after):
        def body(i):
            with tf.control_dependencies([v.assign_add(2.0)]):
                return i + 1

        with tf.control_dependencies([after]):
            return tf.while_loop(lambda i: i < 3, body, (tf.identity(0),), parallel_iterations=1)

    with tf.control_dependencies([loop(x)]):
        between = v.read_value() * x * x
    after = loop(between)
    slope = tf.gradients(between, x)[0]
    assert session.run([between, after], {x: 3.0}) == [7.0 * 9, 3]
    assert session.run([between, slope, after], {x: 3.0}) == [(13.0 + 6) * 9, (13.0 + 6) * 6, 3]
    assert session.run(v) == 25.0
