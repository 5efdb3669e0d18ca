"""Square roots of matrices and tridiagonal systems, against SciPy and whole matrices."""

import numpy
import pytest
import scipy.linalg

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


G = numpy.random.default_rng(5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_roots(session, dtype):
    given = G.normal(size=(2, 3, 6, 6)) + 4 * numpy.eye(6)
    if dtype == "complex128":
        given = given + 1j * G.normal(size=given.shape)
    given = given.astype(dtype)
    found = session.run(tf.linalg.sqrtm(given))
    assert found.dtype == given.dtype
    tight = 1e-4 if dtype == "float32" else 1e-10
    for one, whole in zip(found.reshape(6, 6, 6), given.reshape(6, 6, 6)):
        numpy.testing.assert_allclose(one, scipy.linalg.sqrtm(whole), atol=tight)


def test_roots_of_special_matrices(session):
    block = [[4.0, 1.0, 0.0], [0.0, 4.0, 1.0], [0.0, 0.0, 4.0]]  # one eigenvalue, one eigenvector
    rotation = [[0.0, -1.0], [1.0, 0.0]]
    negative = [[-4.0, 0.0], [0.0, 9.0]]
    found = session.run([tf.matrix_square_root(one) for one in (block, rotation, negative)])
    numpy.testing.assert_allclose(found[0] @ found[0], block, atol=1e-5)
    numpy.testing.assert_allclose(found[1], numpy.array([[1, -1], [1, 1]]) / 2**0.5, rtol=1e-6)
    assert numpy.isnan(found[2]).all()  # as in TensorFlow, whose dtype it keeps
    root = session.run(tf.linalg.sqrtm(tf.cast(tf.constant(negative), tf.complex64)))
    numpy.testing.assert_allclose(root, [[2j, 0], [0, 3]], atol=1e-6)
    with pytest.raises(ValueError, match="square"):
        tf.linalg.sqrtm(tf.zeros([2, 3]))


def test_gradients_of_roots(session):
    given, weight = G.normal(size=(4, 4)) + 4 * numpy.eye(4), G.normal(size=(4, 4))
    x = tf.constant(given)
    (found,) = session.run(tf.gradients(tf.linalg.sqrtm(x) * weight, x))
    root = scipy.linalg.sqrtm(given)
    numpy.testing.assert_allclose(found, scipy.linalg.solve_sylvester(root.T, root.T, weight), rtol=1e-8)


def whole(diagonals):
    above, middle, below = diagonals
    return numpy.diag(middle) + numpy.diag(above[:-1], 1) + numpy.diag(below[1:], -1)


@pytest.mark.parametrize("size", [1, 2, 9])
@pytest.mark.parametrize("dtype", [numpy.float64, numpy.complex128])
def test_tridiagonal_systems(session, size, dtype):
    rows = G.normal(size=(2, 3, size)).astype(dtype)
    right = G.normal(size=(2, size, 4)).astype(dtype)
    if dtype is numpy.complex128:
        rows, right = rows + 1j * rows[:, ::-1], right * (1 + 2j)
    rows[0, 1] = 0.01  # rows are exchanged
    matrices = numpy.stack([whole(one) for one in rows])
    solve, multiply = tf.linalg.tridiagonal_solve, tf.linalg.tridiagonal_matmul
    expected = numpy.linalg.solve(matrices, right)
    three = [rows[:, k] for k in range(3)]
    short = [rows[:, 0, :-1], rows[:, 1], rows[:, 2, 1:]]
    made = [
        solve(rows, right),
        solve(three, right, "sequence"),
        solve(short, right, diagonals_format="sequence"),
        solve(matrices, right, "matrix"),
        solve(rows, right.swapaxes(1, 2), transpose_rhs=True),
        solve(rows, right.swapaxes(1, 2).conj(), transpose_rhs=True, conjugate_rhs=True),
    ]
    for found in session.run(made):
        numpy.testing.assert_allclose(found, expected, rtol=1e-8)
    vector = session.run(solve(rows, right[..., 0].conj(), conjugate_rhs=True))
    numpy.testing.assert_allclose(vector, expected[..., 0], rtol=1e-8)
    products = [
        multiply(rows, right),
        multiply(short, right, "sequence"),
        multiply(matrices, right, diagonals_format="matrix"),
    ]
    for found in session.run(products):
        numpy.testing.assert_allclose(found, matrices @ right, rtol=1e-10)


def test_gradients_of_tridiagonal_systems(session):
    rows, right, weight = G.normal(size=(3, 5)), G.normal(size=(5, 2)), G.normal(size=(5, 2))
    a, b = tf.constant(rows), tf.constant(right)
    shares = session.run(tf.gradients(tf.linalg.tridiagonal_solve(a, b) * weight, [a, b]))
    inverse = numpy.linalg.inv(whole(rows))
    back = inverse.T @ weight
    outer = -back @ (inverse @ right).T
    numpy.testing.assert_allclose(shares[1], back, rtol=1e-8)
    numpy.testing.assert_allclose(shares[0][1], numpy.diag(outer), rtol=1e-8)
    numpy.testing.assert_allclose(shares[0][0, :-1], numpy.diag(outer, 1), rtol=1e-8)
    numpy.testing.assert_allclose(shares[0][2, 1:], numpy.diag(outer, -1), rtol=1e-8)
    product = session.run(tf.gradients(tf.linalg.tridiagonal_matmul(a, b) * weight, [a, b]))
    numpy.testing.assert_allclose(product[1], whole(rows).T @ weight, rtol=1e-8)
    numpy.testing.assert_allclose(product[0][1], (weight * right).sum(1), rtol=1e-8)


def test_sizes_that_a_run_tells(session):
    a, b = tf.placeholder(tf.float64, [3, None]), tf.placeholder(tf.float64, [None])
    made = tf.linalg.tridiagonal_solve(a, b)
    for size in (3, 6):
        rows, right = G.normal(size=(3, size)), G.normal(size=size)
        found = session.run(made, {a: rows, b: right})
        numpy.testing.assert_allclose(found, numpy.linalg.solve(whole(rows), right), rtol=1e-8)


def test_tridiagonal_systems_that_raise(session):
    rows, solve = tf.zeros([3, 4]), tf.linalg.tridiagonal_solve
    with pytest.raises(tf.errors.InvalidArgumentError, match="singular"):
        session.run(solve(rows, tf.ones([4])))
    with pytest.raises(ValueError, match="diagonals"):
        solve(rows, tf.ones([5]))
    with pytest.raises(ValueError, match="diagonals_format"):
        solve(rows, tf.ones([4]), "other")
    with pytest.raises(ValueError, match="perturb_singular"):
        solve(rows, tf.ones([4]), perturb_singular=True)
    with pytest.raises(ValueError, match="one less"):
        solve([tf.zeros([2]), tf.zeros([4]), tf.zeros([4])], tf.ones([4]), "sequence")
    with pytest.raises(ValueError, match="square"):
        solve(tf.zeros([3, 4]), tf.ones([4]), "matrix")
