"""A program may write to the arrays that a run returns: nothing else changes, as in TensorFlow 1.15."""

import numpy
import pytest

import twofold.static as tf

ONES = numpy.ones(100, numpy.float32)  # large enough for its memory to be handed out

FETCHED = {
    "read": lambda v, c: v.value(),
    "identity of a variable": lambda v, c: tf.identity(v),
    "identity of identity": lambda v, c: tf.identity(tf.identity(v)),
    "tuple": lambda v, c: tf.tuple([v])[0],
    "sum of one": lambda v, c: tf.add_n([v]),
    "variable": lambda v, c: v,
    "assigned": lambda v, c: tf.assign(v, c * 1),
    "identity of what is assigned": lambda v, c: tf.identity(tf.assign(v, c * 1)),
    "constant": lambda v, c: c,
    "identity of a constant": lambda v, c: tf.identity(c),
}


@pytest.mark.parametrize("fetched", FETCHED.values(), ids=FETCHED)
def test_writing_to_a_fetched_array_changes_no_variable(fetched):
    with tf.Graph().as_default(), tf.Session() as session:
        variable, constant = tf.Variable(ONES), tf.constant(ONES)
        tensor = fetched(variable, constant)
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(tensor)[:] = 5
        for value in session.run([variable, constant, variable + 0]):
            numpy.testing.assert_array_equal(value, ONES)


def test_results_of_one_run_have_memory_of_their_own():
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.constant(ONES) * 2
        first, second, third = session.run([y, y, tf.identity(y)])
        first[:] = 5
        numpy.testing.assert_array_equal(second, 2 * ONES)
        third[:] = 7
        numpy.testing.assert_array_equal(second, 2 * ONES)


def test_a_run_that_goes_on_sees_what_it_computed():
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = tf.placeholder(tf.float32, [100]), tf.placeholder(tf.float32, [100])
        x = a * 2
        handle = session.partial_run_setup([x, y := x + b], [a, b])
        session.partial_run(handle, x, {a: ONES})[:] = 50
        numpy.testing.assert_array_equal(session.partial_run(handle, y, {b: ONES}), 3 * ONES)
