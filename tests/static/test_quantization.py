"""Fake quantisation: values on the grid and straight-through gradients, against their definition."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


X = numpy.random.default_rng(3).normal(size=(50, 2)).astype(numpy.float32) * 2


def grid(low, high, bits, narrow):
    """All numbers that there are: the range moved so that 0 is one of them."""
    low, high = numpy.float64(low), numpy.float64(high)
    first, last = int(narrow), 2**bits - 1
    step = (high - low) / (last - first)
    zero = numpy.clip(numpy.floor(first - low / step + 0.5), first, last)
    return (numpy.arange(first, last + 1) - zero) * step


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("bits", [2, 5, 8])
@pytest.mark.parametrize("low, high", [(-6.0, 6.0), (-1.1, 0.3), (0.5, 2.0), (-3.0, -1.0)])
def test_values_and_gradients(session, low, high, bits, narrow):
    x, a, b = tf.constant(X), tf.constant(low), tf.constant(high)
    steps = grid(low, high, bits, narrow)
    nearest = steps[abs(X[..., None] - steps).argmin(-1)]
    weight = numpy.arange(100, dtype=numpy.float32).reshape(50, 2)
    under, over = steps[0] > X, steps[-1] < X
    shares = [numpy.where(under | over, 0, weight), (under * weight).sum(), (over * weight).sum()]
    args = tf.fake_quant_with_min_max_args(x, low, high, bits, narrow)
    learnt = tf.fake_quant_with_min_max_vars(x, a, b, num_bits=bits, narrow_range=narrow)
    found = session.run(
        [args, learnt, tf.gradients(args * weight, x), tf.gradients(learnt * weight, [x, a, b])]
    )
    numpy.testing.assert_allclose(found[0], nearest, rtol=1e-5, atol=1e-6)
    numpy.testing.assert_array_equal(found[1], found[0])
    numpy.testing.assert_array_equal(found[2][0], shares[0])
    asked = tf.fake_quant_with_min_max_vars_gradient(weight, x, a, b, bits, narrow)
    for given in (found[3], session.run(asked)):
        for one, share in zip(given, shares):
            numpy.testing.assert_allclose(one, share, rtol=1e-6)
    one = tf.fake_quant_with_min_max_args_gradient(weight, x, low, high, bits, narrow)
    numpy.testing.assert_array_equal(session.run(one), shares[0])


def test_a_range_for_each_channel(session):
    x, low, high = tf.constant(X), tf.constant([-1.0, 0.0]), tf.constant([1.25, 0.0])
    made = tf.quantization.fake_quant_with_min_max_vars_per_channel(x, low, high, 4)
    value, shares = session.run([made, tf.gradients(made, [x, low, high])])
    alone = session.run(tf.fake_quant_with_min_max_args(X[:, 0], -1.0, 1.25, 4))
    numpy.testing.assert_array_equal(value[:, 0], alone)
    assert not value[:, 1].any()  # an empty range: zeros, through which gradients pass
    steps = grid(-1, 1.25, 4, False)
    under, over = X[:, 0] < steps[0], X[:, 0] > steps[-1]
    assert shares[1].tolist() == [under.sum(), 0] and shares[2].tolist() == [over.sum(), 0]
    numpy.testing.assert_array_equal(shares[0], numpy.stack([~(under | over), numpy.ones(50)], 1))
    asked = tf.fake_quant_with_min_max_vars_per_channel_gradient(numpy.ones_like(X), x, low, high, 4)
    for one, share in zip(session.run(asked), shares):
        numpy.testing.assert_array_equal(one, share)


def test_what_tensorflow_refuses_raises():
    x = tf.zeros([3, 2])
    for bits in (1, 17):
        with pytest.raises(ValueError, match="num_bits"):
            tf.fake_quant_with_min_max_args(x, num_bits=bits)
    with pytest.raises(ValueError, match="below"):
        tf.fake_quant_with_min_max_args(x, 1.0, 1.0)
    with pytest.raises(ValueError, match="one number each"):
        tf.fake_quant_with_min_max_vars(x, [0.0, 0.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="each channel"):
        tf.fake_quant_with_min_max_vars_per_channel(x, [0.0] * 3, [1.0] * 3)
    with pytest.raises(TypeError, match="float32"):
        tf.fake_quant_with_min_max_args(tf.zeros([2], tf.float64))
    with pytest.raises(ValueError, match="gradients of shape"):
        tf.fake_quant_with_min_max_args_gradient(tf.zeros([2]), x)
