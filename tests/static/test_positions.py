"""Scalar tensors in brackets; the expected values are TensorFlow's (2.21, ``tf.compat.v1``)."""

import numpy
import pytest

import twofold.static as tf

X = numpy.arange(24, dtype="f").reshape(2, 3, 4)


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


KEYS = {
    "first": lambda x, i, j: x[i],
    "middle": lambda x, i, j: x[:, i],
    "last": lambda x, i, j: x[..., i],
    "around an ellipsis": lambda x, i, j: x[i, ..., j],
    "around a slice": lambda x, i, j: x[i, :, j],
    "behind a new axis": lambda x, i, j: x[None, i],
    "beside new axes": lambda x, i, j: x[:, i, None, j],
    "beside slices": lambda x, i, j: x[i, 1:, ::2],
    "behind a number": lambda x, i, j: x[1, i],
    "beside a bound": lambda x, i, j: x[i, j:],
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("i, j", [(1, 0), (-1, 2)])
def test_selects_as_a_number_does(session, name, i, j):
    first, second = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    found = session.run(KEYS[name](tf.constant(X), first, second), {first: i, second: j})
    numpy.testing.assert_array_equal(found, KEYS[name](X, i, j))


def test_its_gradient(session):
    x, i = tf.constant(X), tf.placeholder(tf.int32, [])
    slope = tf.gradients(tf.reduce_sum(x[:, i] * x[i, 0]), x)[0]
    expected = numpy.zeros_like(X)
    expected[:, -1] += X[-1, 0]
    expected[-1, 0] += X[:, -1].sum(0)
    numpy.testing.assert_array_equal(session.run(slope, {i: -1}), expected)
    with pytest.raises(tf.errors.InvalidArgumentError, match="index 5 is outside an axis of size 2"):
        session.run(x[i], {i: 5})


def test_a_loop_may_select_by_its_variables(session):
    table = tf.constant([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    words = tf.placeholder(tf.int32, [None])

    def step(state, word):
        state = state * table[:, word]
        return state / tf.reduce_sum(state)

    states = tf.scan(step, words, initializer=table[:, words[0]])
    slope = tf.gradients(states[-1][0], table)[0]
    found, grown = session.run([states, slope], {words: [0, 2, 1]})
    numpy.testing.assert_allclose(found[:, 0], [0.05882353, 0.03030303, 0.01234568], rtol=1e-6)
    expected = [[0.24386524, 0.06096632, 0.04064421], [-0.06096631, -0.02438653, -0.0203221]]
    numpy.testing.assert_allclose(grown, expected, rtol=1e-5)
