"""Small functions of ``tf.keras.backend`` against NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy
import pytest

import twofold.static as tf

K = tf.keras.backend
X = numpy.random.default_rng(0).standard_normal((3, 4)).astype("f")


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize("name", ["prod", "min", "max", "var", "std", "mean", "sum"])
@pytest.mark.parametrize("axis", [None, 1])
def test_reductions(name: str, axis: int | None) -> None:
    found = K.eval(getattr(K, name)(tf.constant(X), axis))
    numpy.testing.assert_allclose(found, getattr(numpy, name)(X, axis), rtol=1e-5)


def test_truth_and_shapes() -> None:
    assert K.eval(K.any(tf.constant([0.0, 2.0]))) and not K.eval(K.all(tf.constant([0.0, 2.0])))
    assert (K.ndim(X), K.dtype(tf.constant(1)), K.dtype(K.variable(1))) == (2, "int32", "float32")
    assert K.batch_flatten(tf.zeros([2, 3, 4])).shape == (2, 12)
    assert K.eval(K.constant(2)) == 2.0 and K.eval(K.ones([2])).tolist() == [1.0, 1.0]


def test_choices() -> None:
    assert K.eval(K.switch(tf.constant(True), lambda: tf.constant(1.0), tf.constant(2.0))) == 1.0
    rows = tf.constant([True, False, True])
    found = K.eval(K.switch(rows, tf.constant(X), tf.zeros([3, 4])))
    numpy.testing.assert_array_equal(found, X * [[1], [0], [1]])


def test_functions_of_arrays() -> None:
    x, w = tf.placeholder(tf.float32, [None, 4]), K.variable(numpy.ones(4))
    loss = K.sum(x * w)
    step = K.function([x], [loss, *K.gradients(loss, [w])], updates=[(w, w - 0.5), K.update_add(w, w * 0.0)])
    total, slope = step([X])
    numpy.testing.assert_allclose([total, *slope], [X.sum(), *X.sum(0)], rtol=1e-5)
    assert K.eval(w).tolist() == [0.5] * 4 and K.function([x], loss)([X]) == pytest.approx(X.sum() / 2)
