"""Gradients where tensors that the graph computes are fed: values are what is fed, gradients pass, as in TensorFlow."""

import numpy
import pytest

import twofold.static as tf

START = numpy.array([0.5, -1.5, 2.0], numpy.float32)
FED = numpy.array([0.25, 2.0, -1.0], numpy.float32)

# How a tensor comes of x and w, and its derivatives by both times ct at x and w.
COMPUTED = {
    "product": (lambda x, w: x * w, lambda x, w, ct: (ct * w, ct * x)),
    "default": (lambda x, w: tf.placeholder_with_default(x * w, [3]), lambda x, w, ct: (ct * w, ct * x)),
    "loop": (
        lambda x, w: tf.while_loop(lambda k, v: k < 2, lambda k, v: (k + 1, v * w), [0, x])[1],
        lambda x, w, ct: (ct * w * w, 2 * ct * x * w),
    ),
    "choice": (
        lambda x, w: tf.cond(x[0] > 0, lambda: x * w, lambda: x - w),
        lambda x, w, ct: (ct * w, ct * x),
    ),
    "update": (lambda x, w: x + tf.exp(w), lambda x, w, ct: (ct, ct * numpy.exp(w))),
}


@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize("size", [3, None])
def test_gradients_pass_through_what_is_fed(name, size):
    compute, derivatives = COMPUTED[name]
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.placeholder(tf.float32, [size]), tf.Variable([2.0, 3.0, 0.5])
        y = compute(x, w)
        loss = tf.reduce_sum(y * y * x)
        dx, dw, dy = tf.gradients(loss, [x, w, y])
        train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
        session.run(tf.global_variables_initializer())
        weights = session.run(w)
        for given in (None, FED, FED * 2, None):
            feed = {x: START} if given is None else {x: START, y: given}
            found = session.run([loss, dx, dw, dy], feed)
            value = session.run(y, {x: START}) if given is None else given
            ct = 2 * value * START
            by_x, by_w = derivatives(START, weights, ct)
            wanted = [(value**2 * START).sum(), by_x + value**2, by_w, ct]
            for one, other in zip(found, wanted):
                numpy.testing.assert_allclose(one, other, rtol=1e-5)
            assert session.run(dw, feed).tolist() == found[2].tolist()
        session.run(train, {x: START, y: FED})
        step = derivatives(START, weights, 2 * FED * START)[1]
        numpy.testing.assert_allclose(session.run(w), weights - step, rtol=1e-5)


def test_what_gradients_do_not_pass_needs_nothing_when_it_is_fed():
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.placeholder(tf.float32, [2]), tf.Variable([2.0, 3.0])
        state, index = tf.exp(x), tf.argmax(x * w)
        loss = tf.reduce_sum(state * w) * tf.cast(index + 1, tf.float32)
        (dw,) = tf.gradients(loss, [w])
        session.run(w.initializer)
        assert session.run(dw, {state: [1.0, 5.0], index: 2}).tolist() == [3.0, 15.0]


def test_a_value_that_is_fed_has_the_shape_of_what_gradients_pass_to():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        y = x * 2.0
        (dx,) = tf.gradients(tf.reduce_sum(y * y), [x])
        assert session.run(dx, {x: [1.0, 1.0], y: [3.0, 4.0]}).tolist() == [12.0, 16.0]
        for value in ([3.0, 4.0, 5.0], [3.0]):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"shapes differ, \[2\] against"):
                session.run(dx, {x: [1.0, 1.0], y: value})
        assert session.run(dx, {x: [1.0] * 3, y: [3.0, 4.0, 5.0]}).tolist() == [12.0, 16.0, 20.0]
