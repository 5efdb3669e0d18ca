"""Optimisers of ``tf.contrib.opt`` beside the same steps in NumPy."""

import numpy
import pytest

import twofold.static as tf

FIRST = numpy.array([[1.0, -2.0], [0.5, 3.0]], "f")
opt = tf.contrib.opt


def adam(w, gradient, state, rate, beta1=0.9, beta2=0.999, epsilon=1e-8, nesterov=False):
    t, m, v = state or (0, numpy.zeros_like(w), numpy.zeros_like(w))
    t, m, v = t + 1, beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
    rate = rate * numpy.sqrt(1 - beta2**t) / (1 - beta1**t)
    ahead = beta1 * m + (1 - beta1) * gradient if nesterov else m
    return w - rate * ahead / (numpy.sqrt(v) + epsilon), (t, m, v)


def momentum(w, gradient, state, rate):
    state = 0.9 * (0 if state is None else state) + gradient
    return w - rate * state, state


CASES = {
    "adam": (opt.AdamWOptimizer, (0.1, 0.05), 0.1, lambda w, g, s: adam(w, g, s, 0.05)),
    "momentum": (opt.MomentumWOptimizer, (0.1, 0.05, 0.9), 0.1, lambda w, g, s: momentum(w, g, s, 0.05)),
    "nadam": (opt.NadamOptimizer, (0.05,), 0.0, lambda w, g, s: adam(w, g, s, 0.05, nesterov=True)),
    "extended": (
        opt.extend_with_decoupled_weight_decay(tf.train.MomentumOptimizer),
        (0.1, 0.05, 0.9),
        0.1,
        lambda w, g, s: momentum(w, g, s, 0.05),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_steps_equal_those_in_numpy(case):
    made, arguments, decay, step = CASES[case]
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable(FIRST)
        train = made(*arguments).minimize(tf.reduce_sum(w**3))
        session.run(tf.global_variables_initializer())
        wanted, state = FIRST.astype(float), None
        for _ in range(4):
            session.run(train)
            wanted, state = step(wanted * (1 - decay), 3 * wanted**2, state)
        numpy.testing.assert_allclose(session.run(w), wanted, rtol=2e-5)


def test_only_chosen_variables_decay():
    with tf.Graph().as_default(), tf.Session() as session:
        w, v = tf.Variable(FIRST), tf.Variable(FIRST)
        made = opt.MomentumWOptimizer(0.5, 0.0, 0.9)
        train = made.minimize(tf.reduce_sum(w + v), decay_var_list=[v])
        session.run(tf.global_variables_initializer())
        session.run(train)
        numpy.testing.assert_array_equal(session.run(w), FIRST)
        numpy.testing.assert_array_equal(session.run(v), FIRST / 2)


def test_lazy_adam_changes_the_rows_that_were_looked_up():
    found = {}
    for made in (opt.LazyAdamOptimizer, tf.train.AdamOptimizer):
        with tf.Graph().as_default(), tf.Session() as session:
            table, row = tf.Variable(FIRST), tf.placeholder(tf.int32, [1])
            train = made(0.1).minimize(tf.reduce_sum(tf.nn.embedding_lookup(table, row) ** 2))
            session.run(tf.global_variables_initializer())
            session.run(train, {row: [0]})
            first = session.run(table)
            numpy.testing.assert_array_equal(first[1], FIRST[1])
            session.run(train, {row: [1]})
            found[made] = first, session.run(table)
    first, last = found[opt.LazyAdamOptimizer]
    numpy.testing.assert_array_equal(first[0], last[0])
    assert (found[tf.train.AdamOptimizer][1][0] != first[0]).all()
