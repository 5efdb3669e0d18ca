"""``tf.hessians``: second derivatives of placeholders, variables and constants."""

from __future__ import annotations

import numpy
import pytest

import twofold.static as tf


def test_values():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, (3,))
        v = tf.Variable([1.0, 2.0, 3.0])
        y = tf.reduce_sum(x**2 * v**2) * v[0]
        by_x, by_v = tf.hessians(y, [x, v])
        session.run(tf.global_variables_initializer())
        found_x, found_v = session.run([by_x, by_v], {x: [1, 2, 3]})
    numpy.testing.assert_allclose(found_x, numpy.diag([2, 8, 18]))
    numpy.testing.assert_allclose(found_v, [[6, 16, 54], [16, 8, 0], [54, 0, 18]])


def test_matrices_unknown_sizes_and_constants():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, (None, 2))
        (found,) = tf.hessians(tf.reduce_sum(x**3), x)
        assert session.run(found, {x: [[1, 2]]}).shape == (1, 2, 1, 2)
        assert session.run(found, {x: [[1, 2], [3, 4]]})[1, 1, 1, 1] == 24
        c = tf.constant([1.0, 2.0])
        assert session.run(tf.hessians(tf.reduce_sum(c**3), c)[0]).tolist() == [[6, 0], [0, 12]]
        twice = tf.hessians([tf.reduce_sum(c**3), tf.reduce_sum(c**2)], [c])[0]
        assert session.run(twice).tolist() == [[8, 0], [0, 14]]


def test_mistakes():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, (3,), name="x")
        with pytest.raises(RuntimeError, match=r"hessians: .* is not a floating scalar"):
            tf.hessians(x * 2, x)
