"""Linear algebra and Fourier transforms of declared graphs, against NumPy."""

import numpy
import pytest

import twofold.static as tf

G = numpy.random.default_rng(2)
X = G.normal(size=(2, 3, 3))
POSITIVE = X @ X.swapaxes(-1, -2) + numpy.eye(3)
B = G.normal(size=(2, 3, 2))


def adjoint(x):
    return x.swapaxes(-1, -2)


CALLS = {
    "cholesky": (lambda: tf.cholesky(POSITIVE), lambda: numpy.linalg.cholesky(POSITIVE)),
    "inverse": (lambda: tf.matrix_inverse(X), lambda: numpy.linalg.inv(X)),
    "adjoint inverse": (lambda: tf.linalg.inv(X, adjoint=True), lambda: adjoint(numpy.linalg.inv(X))),
    "determinant": (lambda: tf.matrix_determinant(X), lambda: numpy.linalg.det(X)),
    "solve": (lambda: tf.matrix_solve(X, B), lambda: numpy.linalg.solve(X, B)),
    "lower": (lambda: tf.matrix_triangular_solve(X, B), lambda: numpy.linalg.solve(numpy.tril(X), B)),
    "adjoint lower": (
        lambda: tf.matrix_triangular_solve(X, B, adjoint=True),
        lambda: numpy.linalg.solve(adjoint(numpy.tril(X)), B),
    ),
    "eigenvalues": (lambda: tf.self_adjoint_eig(POSITIVE)[0], lambda: numpy.linalg.eigvalsh(POSITIVE)),
    "svd": (lambda: tf.svd(X)[0], lambda: numpy.linalg.svd(X)[1]),
    "singular values": (lambda: tf.svd(X, compute_uv=False), lambda: numpy.linalg.svd(X)[1]),
    "qr": (lambda: tf.matmul(*tf.qr(X)), lambda: X),
    "norm": (lambda: tf.norm(X), lambda: numpy.linalg.norm(X)),
    "norm of rows": (lambda: tf.norm(X, 1, -1, keepdims=True), lambda: numpy.linalg.norm(X, 1, -1, True)),
    "norm of matrices": (lambda: tf.norm(X, 2, (-2, -1)), lambda: numpy.linalg.norm(X, 2, (-2, -1))),
    "rfft": (lambda: tf.abs(tf.rfft(X)), lambda: abs(numpy.fft.rfft(X))),
    "there and back": (lambda: tf.irfft(tf.rfft(X), [3]), lambda: X),
}


@pytest.mark.parametrize("name", CALLS)
def test_value(name):
    declare, reference = CALLS[name]
    with tf.Graph().as_default(), tf.Session() as session:
        numpy.testing.assert_allclose(session.run(declare()), reference(), atol=1e-12)


def test_gradient():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, (None, 3, 3))
        (slope,) = tf.gradients(tf.log(tf.abs(tf.matrix_determinant(x))), x)
        numpy.testing.assert_allclose(session.run(slope, {x: X}), adjoint(numpy.linalg.inv(X)), atol=1e-12)


def test_least_squares_and_diagonals():
    random = numpy.random.default_rng(5)
    with tf.Graph().as_default(), tf.Session() as session:
        for shape in ((5, 3), (3, 5)):
            a, b = random.standard_normal(shape), random.standard_normal((shape[0], 2))
            found = session.run(tf.matrix_solve_ls(a, b))
            numpy.testing.assert_allclose(found, numpy.linalg.lstsq(a, b, rcond=None)[0], rtol=1e-8)
        ridge = session.run(tf.matrix_solve_ls(a.T, b[[0, 1, 2, 0, 1]], 0.5))
        expected = numpy.linalg.solve(a @ a.T + 0.5 * numpy.eye(3), a @ b[[0, 1, 2, 0, 1]])
        numpy.testing.assert_allclose(ridge, expected, rtol=1e-8)
        square = random.standard_normal((2, 3, 3))
        sign, logarithm = session.run(tf.linalg.slogdet(square))
        numpy.testing.assert_allclose(sign * numpy.exp(logarithm), numpy.linalg.det(square), rtol=1e-8)
        changed = session.run(tf.matrix_set_diag(square, numpy.ones((2, 3))))
        assert (changed == numpy.where(numpy.eye(3), 1.0, square)).all()
        product = session.run(tf.linalg.matvec(square, square[:, 0], transpose_a=True))
        numpy.testing.assert_allclose(product, numpy.einsum("bji,bj->bi", square, square[:, 0]), rtol=1e-8)


def test_gradient_of_cholesky_solve_is_zero_above_the_diagonal():
    factor = numpy.array([[2.0, 9.0, 9.0], [0.5, 1.5, 9.0], [0.1, 0.2, 1.0]])
    right = numpy.array([[1.0], [2.0], [3.0]])

    def total(values):
        lower = numpy.tril(values)
        return numpy.linalg.solve(lower @ lower.T, right).sum()

    steps = 1e-6 * numpy.eye(9).reshape(9, 3, 3)
    expected = [(total(factor + step) - total(factor - step)) / 2e-6 for step in steps]
    with tf.Graph().as_default(), tf.Session() as session:
        chol = tf.constant(factor)
        slope = session.run(tf.gradients(tf.cholesky_solve(chol, right), chol)[0])
    numpy.testing.assert_allclose(slope.ravel(), expected, rtol=1e-5, atol=1e-8)


def test_parallel_stack_needs_a_known_shape():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="parallel_stack: a shape of"):
        tf.parallel_stack([tf.placeholder(tf.float32, [None])])
