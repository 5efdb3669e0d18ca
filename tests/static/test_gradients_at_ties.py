"""Derivatives where a function has a corner, or a factor is 0: those of TensorFlow's kernels."""

import numpy
import pytest

import twofold.static as tf

SCALE = 1.0507009873554804


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


@pytest.mark.parametrize(
    ("function", "slopes"),
    [
        (lambda x: tf.maximum(x, 0.0), [0, 1, 1]),
        (lambda x: tf.maximum(0.0, x), [0, 0, 1]),
        (lambda x: tf.minimum(x, 0.0), [1, 1, 0]),
        (lambda x: tf.minimum(0.0, x), [1, 0, 0]),
        (lambda x: tf.maximum(x, 0.2 * x), [0.2, 1, 1]),
        (lambda x: tf.maximum(0.2 * x, x), [0.2, 0.2, 1]),
        (lambda x: tf.clip_by_value(x, 0.0, 2.0), [0, 1, 1]),
        (lambda x: tf.clip_by_value(x, -1.0, 0.0), [1, 1, 0]),
        (lambda x: tf.clip_by_norm(x, 1.0, axes=[1]), [0, 1, 0]),
        (tf.nn.selu, [SCALE * 1.6732632423543772 * numpy.exp(-1), SCALE, SCALE]),
    ],
)
def test_slope_below_at_and_above_zero(session, function, slopes):
    x = tf.constant([[-1.0], [0.0], [2.0]])
    (slope,) = tf.gradients(function(x), x)
    numpy.testing.assert_allclose(session.run(slope)[:, 0], slopes, rtol=1e-5)


@pytest.mark.parametrize("function", [tf.maximum, tf.minimum])
def test_extremes_broadcast_and_keep_nan(session, function):
    x, y = tf.constant([[1.0, numpy.nan], [3.0, 4.0]]), tf.constant([3.0, 1.0])
    found, slopes = session.run([function(x, y), tf.gradients(function(x, y), [x, y])])
    plain = numpy.maximum if function is tf.maximum else numpy.minimum
    numpy.testing.assert_array_equal(found, plain([[1, numpy.nan], [3, 4]], [3, 1]))
    larger = function is tf.maximum
    assert slopes[0].tolist() == ([[0, 0], [1, 1]] if larger else [[1, 0], [1, 0]])
    assert slopes[1].tolist() == ([1, 1] if larger else [0, 2])
    assert session.run(function([1, 5], [3, 2])).tolist() == plain([1, 5], [3, 2]).tolist()


@pytest.mark.parametrize(
    ("function", "logarithm", "at_zero"),
    [(tf.math.xlogy, numpy.log, 0.0), (tf.math.xlog1py, numpy.log1p, -1.0)],
)
def test_products_with_logarithms_are_flat_where_the_factor_is_zero(session, function, logarithm, at_zero):
    x, y = tf.constant([0.0, 2.0]), tf.constant([at_zero, 0.5])
    found, slopes = session.run([function(x, y), tf.gradients(function(x, y), [x, y])])
    numpy.testing.assert_allclose(found, [0, 2 * logarithm(0.5)], rtol=1e-6)
    numpy.testing.assert_allclose(slopes[0], [0, logarithm(0.5)], rtol=1e-6)
    numpy.testing.assert_allclose(slopes[1], [0, 2 / (0.5 - at_zero)], rtol=1e-6)
