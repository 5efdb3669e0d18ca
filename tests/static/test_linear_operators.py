"""``tf.linalg.LinearOperator*`` against NumPy's dense matrices."""

import numpy
import pytest

import twofold.static as tf

R = numpy.random.default_rng(0)
A = R.standard_normal((2, 3, 3)).astype("f")
SPD = A @ A.transpose(0, 2, 1) + 3 * numpy.eye(3, dtype="f")
D = numpy.abs(R.standard_normal((2, 3))).astype("f") + 0.5
X, V = R.standard_normal((2, 3, 2)).astype("f"), R.standard_normal((2, 3)).astype("f")
LOWER = numpy.tril(A) + 2 * numpy.eye(3, dtype="f")
L = tf.linalg
KINDS = {
    "full": (lambda: L.LinearOperatorFullMatrix(A), A),
    "positive": (
        lambda: L.LinearOperatorFullMatrix(SPD, is_self_adjoint=True, is_positive_definite=True),
        SPD,
    ),
    "lower": (lambda: L.LinearOperatorLowerTriangular(LOWER + numpy.triu(A, 1)), LOWER),
    "diagonal": (lambda: L.LinearOperatorDiag(D), D[:, :, None] * numpy.eye(3, dtype="f")),
    "identity": (lambda: L.LinearOperatorIdentity(3, [2]), numpy.tile(numpy.eye(3, dtype="f"), (2, 1, 1))),
    "scaled": (
        lambda: L.LinearOperatorScaledIdentity(3, [2.0, -3.0]),
        numpy.float32([2, -3])[:, None, None] * numpy.eye(3, dtype="f"),
    ),
    "composed": (
        lambda: L.LinearOperatorComposition([L.LinearOperatorDiag(D), L.LinearOperatorFullMatrix(SPD)]),
        D[:, :, None] * SPD,
    ),
    "adjoint": (lambda: L.LinearOperatorFullMatrix(A).adjoint(), A.transpose(0, 2, 1)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_operator_is_its_matrices(kind):
    make, dense = KINDS[kind]
    turned = dense.transpose(0, 2, 1)
    with tf.Graph().as_default(), tf.Session() as session:
        operator = make()
        assert operator.shape.as_list() == [2, 3, 3] and operator.is_square
        expected = [
            (operator.to_dense(), dense),
            (operator.shape_tensor(), [2, 3, 3]),
            (operator.matmul(X), dense @ X),
            (operator.matmul(X, adjoint=True), turned @ X),
            (operator.matvec(V), (dense @ V[..., None])[..., 0]),
            (operator.solve(X), numpy.linalg.solve(dense, X)),
            (operator.solve(X, adjoint=True), numpy.linalg.solve(turned, X)),
            (operator.solvevec(V), numpy.linalg.solve(dense, V[..., None])[..., 0]),
            (operator.determinant(), numpy.linalg.det(dense)),
            (operator.log_abs_determinant(), numpy.linalg.slogdet(dense)[1]),
            (operator.trace(), numpy.trace(dense, axis1=1, axis2=2)),
            (operator.diag_part(), numpy.diagonal(dense, axis1=1, axis2=2)),
            (operator.add_to_tensor(SPD), dense + SPD),
            (operator.inverse().to_dense(), numpy.linalg.inv(dense)),
            (operator.H.to_dense(), turned),
        ]
        found = session.run([one for one, _ in expected])
    for one, (_, other) in zip(found, expected, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)


def test_batches_are_broadcast_and_factors_taken():
    with tf.Graph().as_default(), tf.Session() as session:
        one = L.LinearOperatorFullMatrix(LOWER[0]).matmul(X)
        two = L.LinearOperatorLowerTriangular(LOWER[0]).solve(X)
        factor = KINDS["positive"][0]().cholesky().to_dense()
        found = session.run([one, two, factor])
    numpy.testing.assert_allclose(found[0], LOWER[0] @ X, rtol=1e-5)
    numpy.testing.assert_allclose(found[1], numpy.linalg.solve(LOWER[0], X), rtol=1e-4, atol=1e-5)
    numpy.testing.assert_allclose(found[2], numpy.linalg.cholesky(SPD), rtol=1e-4, atol=1e-5)


def test_hints_are_held_to():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="self-adjoint and positive"):
            L.LinearOperatorFullMatrix(A).cholesky()
        with pytest.raises(NotImplementedError, match="singular"):
            L.LinearOperatorFullMatrix(A, is_non_singular=False).solve(X)
        with pytest.raises(NotImplementedError, match="not square"):
            L.LinearOperatorFullMatrix(X).determinant()
        with pytest.raises(ValueError, match="all properties"):
            L.LinearOperatorIdentity(2, is_square=False)
