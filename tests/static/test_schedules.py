"""Learning rates by step, and optimisers that programs use less, against formulas."""

import math

import numpy
import pytest

import twofold.static as tf

train = tf.train


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def restarts(k, first, longer, lower, alpha):
    length, height = first, 1.0
    while k >= length:
        k, length, height = k - length, length * longer, height * lower
    return (1 - alpha) * height * 0.5 * (1 + math.cos(math.pi * k / length)) + alpha


SCHEDULES = {
    "exponential": (lambda k: train.exponential_decay(0.5, k, 4, 0.9), lambda k: 0.5 * 0.9 ** (k / 4)),
    "staircase": (lambda k: train.exponential_decay(0.5, k, 4, 0.9, True), lambda k: 0.5 * 0.9 ** (k // 4)),
    "natural": (lambda k: train.natural_exp_decay(0.5, k, 4, 0.9), lambda k: 0.5 * math.exp(-0.9 * k / 4)),
    "inverse": (lambda k: train.inverse_time_decay(0.5, k, 4, 0.9), lambda k: 0.5 / (1 + 0.9 * k / 4)),
    "polynomial": (
        lambda k: train.polynomial_decay(0.5, k, 6, 0.1, 2.0),
        lambda k: 0.4 * (1 - min(k, 6) / 6) ** 2 + 0.1,
    ),
    "cycle": (
        lambda k: train.polynomial_decay(0.5, k, 6, 0.1, cycle=True),
        lambda k: 0.4 * (1 - k / (6 * max(1, math.ceil(k / 6)))) + 0.1,
    ),
    "piecewise": (
        lambda k: train.piecewise_constant(k, [2, 5], [1.0, 0.5, 0.1]),
        lambda k: 1.0 if k <= 2 else 0.5 if k <= 5 else 0.1,
    ),
    "cosine": (
        lambda k: train.cosine_decay(0.5, k, 6, 0.2),
        lambda k: 0.5 * (0.8 * 0.5 * (1 + math.cos(math.pi * min(k, 6) / 6)) + 0.2),
    ),
    "restarts": (
        lambda k: train.cosine_decay_restarts(0.5, k, 3, 2.0, 0.5, 0.1),
        lambda k: 0.5 * restarts(k, 3, 2, 0.5, 0.1),
    ),
    "equal restarts": (
        lambda k: train.cosine_decay_restarts(0.5, k, 3, 1.0),
        lambda k: 0.5 * restarts(k, 3, 1, 1.0, 0.0),
    ),
    "linear cosine": (
        lambda k: train.linear_cosine_decay(0.5, k, 6),
        lambda k: 0.5 * ((1 - min(k, 6) / 6) * 0.5 * (1 + math.cos(math.pi * min(k, 6) / 6)) + 0.001),
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates(session, name):
    make, formula = SCHEDULES[name]
    step = tf.placeholder(tf.int64, [])
    rate = make(step)
    assert rate.dtype is tf.float32
    found = [session.run(rate, {step: k}) for k in range(10)]
    numpy.testing.assert_allclose(found, [formula(k) for k in range(10)], rtol=1e-5, atol=1e-7)


def test_a_rate_that_follows_the_training(session):
    step = tf.train.get_or_create_global_step()
    w = tf.Variable(0.0)
    rate = train.piecewise_constant(step, [1], [1.0, 10.0])
    run = train.GradientDescentOptimizer(rate).minimize(w * 1.0, step)
    session.run(tf.global_variables_initializer())
    found = []
    for _ in range(4):
        session.run(run)
        found.append(float(session.run(w)))
    assert found == [-1.0, -2.0, -12.0, -22.0]
    with pytest.raises(ValueError, match="2 values for 2 boundaries"):
        train.piecewise_constant(step, [1, 2], [1.0, 2.0])


def adadelta(w, g, state):
    state.setdefault("v", 0.0)
    state.setdefault("d", 0.0)
    state["v"] = 0.9 * state["v"] + 0.1 * g * g
    change = numpy.sqrt(state["d"] + 1e-6) / numpy.sqrt(state["v"] + 1e-6) * g
    state["d"] = 0.9 * state["d"] + 0.1 * change * change
    return w - 0.5 * change


def shrink(w, rate, l1, l2):
    return numpy.sign(w) * numpy.maximum(abs(w) - rate * l1, 0) / (1 + rate * l2)


def proximal_adagrad(w, g, state):
    state["v"] = state.get("v", 0.1) + g * g
    rate = 0.5 / numpy.sqrt(state["v"])
    return shrink(w - rate * g, rate, 0.3, 0.2)


def ftrl(w, g, state):
    before = state.get("v", 0.1)
    state["v"] = before + g * g
    sigma = (numpy.sqrt(state["v"]) - numpy.sqrt(before)) / 0.5
    state["z"] = state.get("z", 0.0) + g - sigma * w
    curvature = numpy.sqrt(state["v"]) / 0.5 + 2 * 0.2
    return numpy.where(abs(state["z"]) > 0.3, (numpy.sign(state["z"]) * 0.3 - state["z"]) / curvature, 0.0)


RULES = {
    "adadelta": (lambda: train.AdadeltaOptimizer(0.5, 0.9, 1e-6), adadelta),
    "proximal": (
        lambda: train.ProximalGradientDescentOptimizer(0.5, 0.3, 0.2),
        lambda w, g, state: shrink(w - 0.5 * g, 0.5, 0.3, 0.2),
    ),
    "proximal adagrad": (lambda: train.ProximalAdagradOptimizer(0.5, 0.1, 0.3, 0.2), proximal_adagrad),
    "ftrl": (lambda: train.FtrlOptimizer(0.5, -0.5, 0.1, 0.3, 0.2), ftrl),
}


@pytest.mark.parametrize("name", RULES)
def test_steps_of_optimizers(session, name):
    make, rule = RULES[name]
    start = numpy.array([1.0, -2.0, 0.1])
    w = tf.Variable(start.astype("f"))
    run = make().minimize(tf.reduce_sum(0.5 * w * w + 0.3 * w))
    session.run(tf.global_variables_initializer())
    state = {}
    for _ in range(5):
        session.run(run)
        start = rule(start, start + 0.3, state)
        numpy.testing.assert_allclose(session.run(w), start, rtol=1e-4, atol=1e-6)


def test_piecewise_constants_have_the_dtype_of_their_values(session):
    step = tf.constant(5)
    whole = train.piecewise_constant(step, [3, 9], [1, 10, 2])
    assert whole.dtype is tf.int32 and session.run(whole) == 10
    exact = train.piecewise_constant(step, [3, 9], [tf.constant(one, tf.float64) for one in (1.0, 0.1, 0.2)])
    assert exact.dtype is tf.float64 and session.run(exact) == 0.1
    with pytest.raises(ValueError, match="the same dtype, but got float32, int32"):
        train.piecewise_constant(step, [3], [1.0, 2])
