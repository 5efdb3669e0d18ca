"""Single steps of optimizers; what TensorFlow 2.21 computes (``tensorflow.python.ops.gen_training_ops``)."""

import numpy
import pytest

import twofold.static as tf
from twofold.static.python.training import slot_creator, training_ops

P, G = [1.7640524, 0.4001572], [1.867558, -0.9772779]
KEPT = [[1.4636627, 0.8834415], [0.5680445, 0.9255967], [0.0020218, 0.0832620]]

STEPS = {
    "gradient_descent": (lambda p: (p, 0.1, G), {}, [[1.5772966, 0.497885]]),
    "proximal_gradient_descent": (lambda p: (p, 0.1, 0.01, 0.02, G), {}, [[1.5731503, 0.4958932]]),
    "momentum": (lambda p, a: (p, a, 0.1, G, 0.9), {}, [[1.4455669, 0.4183753], [3.1848545, -0.1821805]]),
    "adagrad": (lambda p, a: (p, a, 0.1, G), {}, [[1.680124, 0.4722322], [4.9514356, 1.8385136]]),
    "proximal_adagrad": (
        lambda p, a: (p, a, 0.1, 0.01, 0.02, G),
        {},
        [[1.6781663, 0.4708003], [4.9514356, 1.8385136]],
    ),
    "adadelta": (
        lambda p, a, b: (p, a, b, 0.1, 0.9, 1e-3, G),
        {},
        [[1.6549411, 0.4997843], [1.6660738, 0.8906046], [0.6302929, 0.9322925]],
    ),
    "adam": (
        lambda p, a, b: (p, a, b, 0.9, 0.999, 0.1, 0.9, 0.999, 1e-3, G),
        {},
        [[1.7011914, 0.3772596], [1.5040523, 0.6973695], [0.5709642, 0.9256262]],
    ),
    "rms_prop": (
        lambda p, a, b: (p, a, b, 0.1, 0.9, 0.5, 1e-3, G),
        {},
        [[1.3353873, 0.0408569], [1.6660738, 0.8906046], [0.428665, 0.3593003]],
    ),
    "centered_rms_prop": (
        lambda p, a, b, c: (p, c, a, b, 0.1, 0.9, 0.5, 1e-3, G),
        {},
        [[1.3338195, 0.0408871], [1.6660738, 0.8906046], [0.4302329, 0.3592702], [0.1885755, -0.022792]],
    ),
    "ftrl": (
        lambda p, a, b: (p, a, b, G, 0.1, 0.01, 0.02, -0.5),
        {},
        [[0.6937939, 0.1254741], [4.9514356, 1.8385136], [-15.4759293, -1.7163444]],
    ),
    "momentum of Nesterov": (
        lambda p, a: (p, a, 0.1, G, 0.9),
        {"use_nesterov": True},
        [[1.2906597, 0.5142813], [3.1848545, -0.1821805]],
    ),
    "adam of Nesterov": (
        lambda p, a, b: (p, a, b, 0.81, 0.998, 0.1, 0.9, 0.999, 1e-3, G),
        {"use_nesterov": True},
        [[1.7161326, 0.3872067], [1.5040523, 0.6973695], [0.5709642, 0.9256262]],
    ),
    "adagrad of fixed squares": (
        lambda p, a: (p, a, 0.1, G),
        {"update_slots": False},
        [[1.6096857, 0.5041323], [1.4636627, 0.8834415]],
    ),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("prefix", ["", "resource_"])
def test_a_step_is_that_of_tensorflow(step, prefix):
    arguments, options, expected = STEPS[step]
    function = getattr(training_ops, f"{prefix}apply_{step.partition(' of ')[0]}")
    with tf.Graph().as_default(), tf.Session() as session:
        variables = [tf.Variable(values) for values in [P, *KEPT][: len(expected)]]
        done = function(*arguments(*variables), **options)
        session.run(tf.global_variables_initializer())
        new = session.run(done)
        found = session.run(variables)
    numpy.testing.assert_allclose(found, expected, rtol=2e-5)
    if not prefix:
        numpy.testing.assert_array_equal(new, found[0])


def test_numbers_may_be_tensors_and_variables_are_needed():
    with tf.Graph().as_default(), tf.Session() as session:
        p, rate = tf.Variable(P), tf.placeholder(tf.float32, [])
        done = training_ops.apply_gradient_descent(p, rate, tf.constant(G))
        session.run(p.initializer)
        numpy.testing.assert_allclose(session.run(done, {rate: 0.1}), [1.5772966, 0.497885], rtol=1e-6)
        with pytest.raises(TypeError, match="is no variable"):
            training_ops.apply_gradient_descent(tf.constant(P), 0.1, G)


def test_slots_are_named_after_their_variable():
    with tf.Graph().as_default(), tf.Session() as session, tf.variable_scope("net"):
        p = tf.get_variable("p", initializer=P)
        zeros = slot_creator.create_zeros_slot(p, "Mom")
        ones = slot_creator.create_slot(p, tf.constant(1.0, shape=[2]), "Rms")
        more = slot_creator.create_slot_with_initializer(p, tf.ones_initializer(), [3], tf.float32, "More")
        session.run(tf.global_variables_initializer())
        values = [value.tolist() for value in session.run([zeros, ones, more])]
        assert tf.trainable_variables() == [p]
    assert values == [[0, 0], [1, 1], [1, 1, 1]]
    assert zeros.op.name.endswith("net/p/Mom") and ones.op.name.endswith("net/p/Rms")
