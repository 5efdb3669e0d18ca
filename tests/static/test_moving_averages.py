"""Running averages; the expected values are TensorFlow's (2.21, ``tf.compat.v1``)."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def test_of_tensors_without_bias_and_with_few_updates(session):
    x, steps = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [])
    v, twice = tf.Variable([1.0, 2.0]), x * 2
    plain = tf.train.ExponentialMovingAverage(0.5)
    unbiased = tf.train.ExponentialMovingAverage(0.5, zero_debias=True, name="D")
    early = tf.train.ExponentialMovingAverage(0.9, num_updates=steps, name="N")
    updates = [plain.apply([twice, v]), unbiased.apply([twice]), early.apply([v])]
    assert [one.op.name for one in tf.global_variables()] == [
        "Variable",
        "mul/ExponentialMovingAverage",
        "Variable/ExponentialMovingAverage",
        "mul/D",
        "mul/D/biased",
        "mul/D/local_step",
        "Variable/N",
    ]
    session.run(tf.global_variables_initializer())
    expected = [
        [[0, 1], [1, 2], [0, 2], [1, 2]],
        [[1, 1.5], [1.5, 2.5], [1.3333334, 2], [1.8181818, 2.8181818]],
        [[2.5, 1.75], [2.25, 3.25], [2.857143, 2], [2.7045455, 3.7045455]],
    ]
    shown = [plain.average(twice), plain.average(v), unbiased.average(twice), early.average(v)]
    for k, row in enumerate(expected):
        session.run(updates, {x: [k, 1.0], steps: k})
        session.run(v.assign_add([1.0, 1.0]))
        numpy.testing.assert_allclose(session.run(shown), row, rtol=1e-6)
    assert plain.average(x) is None
    found = {name: one.op.name for name, one in plain.variables_to_restore().items()}
    assert found == {
        "Variable/ExponentialMovingAverage": "Variable",
        "mul/ExponentialMovingAverage": "mul/ExponentialMovingAverage",
        "mul/D": "mul/D",
        "mul/D/biased": "mul/D/biased",
        "mul/D/local_step": "mul/D/local_step",
        "Variable/N": "Variable/N",
    }


def test_unknown_sizes_are_refused(session):
    with pytest.raises(ValueError, match="has unknown sizes"):
        tf.train.ExponentialMovingAverage(0.5).apply([tf.placeholder(tf.float32, [None]) * 2])


def test_assigned_moving_average():
    from twofold.static.python.training import moving_averages

    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("norm"):
            zeros = tf.zeros_initializer()
            plain = tf.get_variable("plain", [2], initializer=zeros, trainable=False)
            ratio = tf.get_variable("ratio", [2], initializer=zeros, trainable=False)
            value = tf.placeholder(tf.float32, [2])
            first = moving_averages.assign_moving_average(plain, value, 0.75, zero_debias=False)
            second = moving_averages.assign_moving_average(ratio, value, 0.75)
        session.run(tf.global_variables_initializer())
        sums, averages = numpy.zeros(2), numpy.zeros(2)
        for step, given in enumerate([[4.0, 8.0], [1.0, -2.0], [3.0, 0.0]], 1):
            averages = 0.75 * averages + 0.25 * numpy.array(given)
            sums = 0.75 * sums + 0.25 * numpy.array(given)
            found = session.run([first, second], {value: given})
            numpy.testing.assert_allclose(found, [averages, sums / (1 - 0.75**step)], rtol=1e-5)
        names = [one.name for one in tf.global_variables()]
    assert names[2:] == ["norm/norm/ratio/biased:0", "norm/norm/ratio/local_step:0"]
