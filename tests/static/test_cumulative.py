"""Running sums and products, exclusive and from the end."""

import numpy
import pytest

import twofold.static as tf


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cumulative(exclusive, reverse, axis):
    values = numpy.array([[2.0, 0.0, 3.0], [4.0, 5.0, 0.5]], numpy.float32)
    for function, reference, start in ((tf.cumsum, numpy.cumsum, 0), (tf.cumprod, numpy.cumprod, 1)):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [None, 3])
            found = session.run(function(x, axis=axis, exclusive=exclusive, reverse=reverse), {x: values})
        expected = reference(numpy.flip(values, axis) if reverse else values, axis=axis)
        if exclusive:
            expected = numpy.roll(expected, 1, axis)
            numpy.moveaxis(expected, axis, 0)[0] = start
        assert found.tolist() == (numpy.flip(expected, axis) if reverse else expected).tolist()
