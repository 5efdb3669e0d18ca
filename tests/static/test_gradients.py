"""Gradients against formulas and differences, and what TensorFlow says about unconnected tensors."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def difference(session, y, x, value, step=1e-5):
    found = numpy.zeros(value.shape)
    for position in numpy.ndindex(value.shape):
        moved = [value.copy(), value.copy()]
        moved[0][position] += step
        moved[1][position] -= step
        high, low = (numpy.sum(session.run(y, {x: m})) for m in moved)
        found[position] = (high - low) / (2 * step)
    return found


FUNCTIONS = {
    "softmax": lambda x: tf.nn.softmax(x) * tf.constant([1.0, -2.0, 3.0], tf.float64),
    "matmul": lambda x: tf.matmul(x, x, transpose_b=True),
    "reshape": lambda x: tf.square(tf.reshape(x, [-1])) * 2.0,
    "slices": lambda x: x[0] * x[:, 1:2],
    "gather": lambda x: tf.square(tf.gather(x, [1, 0, 1])),
    "concat": lambda x: tf.concat([x, tf.exp(x)], 1),
    "split": lambda x: tf.multiply(*tf.split(x, [1, 1], 0)),
    "mean": lambda x: tf.square(tf.reduce_mean(x, 0)),
    "max": lambda x: tf.reduce_max(x, 1),
    "where": lambda x: tf.where(x > 0.1, x * x, -x),
    "clip": lambda x: tf.clip_by_value(x, -0.4, 0.4) * x,
    "moments": lambda x: tf.nn.moments(x, [0])[1],
    "stack": lambda x: tf.stack([x, x * x], 1),
    "entropy": lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 2], logits=x),
    "sigmoid": lambda x: tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones_like(x), logits=x),
    "norm": lambda x: tf.nn.l2_normalize(x, 1),
    "tile": lambda x: tf.square(tf.tile(x, [2, 1])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [[2, 3], [None, 3]], ids=["known", "unknown"])
def test_against_differences(session, name, shape):
    x = tf.placeholder(tf.float64, shape)
    value = numpy.random.default_rng(4).uniform(-1, 1, (2, 3))
    y = FUNCTIONS[name](x)
    (g,) = tf.gradients(y, x)
    numpy.testing.assert_allclose(
        session.run(tf.convert_to_tensor(g), {x: value}),
        difference(session, y, x, value),
        rtol=1e-5,
        atol=1e-7,
    )


def test_sums_over_ys_and_weights_them(session):
    x = tf.constant([1.0, 2.0])
    y, z = x * x, 3.0 * x
    assert session.run(tf.gradients([y, z], x)[0]).tolist() == [5.0, 7.0]
    assert session.run(
        tf.gradients([y, z], x, [tf.constant([1.0, 0.5]), tf.constant([0.0, 2.0])])[0]
    ).tolist() == [2.0, 8.0]


def test_none_where_there_is_no_path(session):
    x, n, other = tf.constant(2.0), tf.constant(2), tf.constant(1.0)
    y = x * tf.cast(tf.cast(x, tf.int32), tf.float32) + tf.stop_gradient(x * x)
    found = tf.gradients(y, [x, n, other])
    assert found[1:] == [None, None] and session.run(found[0]) == 2.0
    assert tf.gradients(tf.stop_gradient(x), x) == [None]
    with pytest.raises(RuntimeError, match="is not a floating tensor"):
        tf.gradients(n, x)


def test_inner_tensors_and_second_derivatives(session):
    x, w = tf.placeholder(tf.float32, [None]), tf.Variable(3.0)
    h = x * 2.0
    y = tf.reduce_sum(h * h * w)
    dh, dw = tf.gradients(y, [h, w])
    (second,) = tf.gradients(tf.reduce_sum(dh * dh), w)
    session.run(w.initializer)
    found = session.run([dh, dw, second], {x: [1.0, 2.0]})
    assert found[0].tolist() == [12.0, 24.0] and found[1:] == [20.0, 480.0]


def test_gradients_can_be_clipped_and_applied(session):
    w, unused = tf.Variable([3.0, 4.0]), tf.Variable(1.0)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(0.5 * tf.reduce_sum(w * w))
    assert pairs[1] == (None, unused)
    clipped, norm = tf.clip_by_global_norm([pair[0] for pair in pairs], 1.0)
    train = optimizer.apply_gradients(zip(clipped, [w, unused]))
    session.run(tf.global_variables_initializer())
    assert session.run([norm, train]) == [5.0, None]
    numpy.testing.assert_allclose(session.run(w), [2.4, 3.2], rtol=1e-6)


def test_the_values_of_a_dictionary_are_variables_to_change():
    with tf.Graph().as_default(), tf.Session() as session:
        weights = {"w": tf.Variable(1.0), "b": tf.Variable(2.0)}
        loss = tf.square(weights["w"] * 3 + weights["b"])
        assert len(tf.gradients(loss, weights.values())) == 2
        step = tf.train.GradientDescentOptimizer(0.01).minimize(loss, var_list=weights.values())
        session.run(tf.global_variables_initializer())
        session.run(step)
        found = session.run(weights)
        assert abs(found["w"] - 0.7) < 1e-6 and abs(found["b"] - 1.9) < 1e-6


@pytest.mark.parametrize("sizes", [[2, 3], [None, 3]])
def test_grad_ys_have_the_type_of_ys_or_are_refused(session, sizes):
    x = tf.placeholder(tf.float32, sizes)
    fed = {x: numpy.ones((2, 3))}

    def weighted(seed):
        return session.run(tf.gradients(x * x, x, grad_ys=seed)[0], fed).tolist()

    for seed in (2, 2.0, tf.constant(2.0), numpy.full(3, 2.0, numpy.float32), tf.fill([2, 3], 2.0)):
        assert weighted(seed) == [[4.0] * 3] * 2
    for seed in (tf.constant(True), tf.ones([2, 3], tf.float64)):
        with pytest.raises(TypeError, match="one of grad_ys is .*Cast it to float32"):
            weighted(seed)
    with pytest.raises(ValueError, match="does not broadcast"):
        weighted(tf.ones([4]))
    with pytest.raises(ValueError, match="1 ys and 2 grad_ys"):
        weighted([1.0, 2.0])


@pytest.mark.parametrize(("limit", "factor"), [(0.5, 0.2), (5.0, 1.0)])
def test_clipping_by_the_average_norm(limit, factor):
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.clip_by_average_norm(tf.constant([6.0, 8.0]), limit * 2)  # of the norm 5 for each element
        numpy.testing.assert_allclose(
            session.run(made), numpy.array([6.0, 8.0]) * min(factor, 1.0), rtol=1e-6
        )


def test_gradients_by_the_references_of_variables():
    """As programs of several workers take them, for the variables of each."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0])
        (found,) = tf.gradients(tf.reduce_sum(v * v), [v._ref()])
        session.run(v.initializer)
        assert session.run(found).tolist() == [2, 4]
