"""Linear algebra and Fourier transforms under TensorFlow's names: ``tf.cholesky``, ``tf.linalg.inv``, ``tf.fft``."""

from __future__ import annotations

from typing import Any

from twofold.ops.base import FUNCTIONS, apply, ops
from twofold.ops.linear_algebra import norms, orthogonal, singular_values, solving
from twofold.static.api.aliases import renamed
from twofold.static.api.namespaces import look_up
from twofold.static.api.op_functions import Number, axis_of, counted, numbers, operation
from twofold.static.api.result_tuples import LogMatrixDeterminant, Qr
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph_elements import check_same_dtype as _check_same_dtype
from twofold.static.math import matmul, trace

__all__ = ["matmul", "trace"]


def _adjoint(x: Any) -> Any:
    transposed = ops.transpose(x, -2, -1)
    return ops.conj(transposed) if transposed.dtype.kind == "c" else transposed


@operation("Adjoint")
@example("tf.linalg.adjoint([[1.0, 2.0]])", "[[1.]\n [2.]]")
def adjoint(matrix: Any) -> Any:
    """The transpose of each matrix, of complex numbers with their conjugates."""
    return _adjoint(matrix)


cholesky = renamed("Cholesky", "linalg.cholesky", "input")
matrix_determinant = det = renamed("MatrixDeterminant", "linalg.det", "input")
logdet = renamed("LogDet", "logdet", "matrix")
matrix_exponential = expm = renamed("MatrixExponential", "linalg.matrix_exp", "input")
self_adjoint_eigvals = eigvalsh = renamed("SelfAdjointEigvals", "linalg.eigvalsh", "tensor")


@operation("MatrixInverse")
@example("tf.matrix_inverse([[2.0, 0.0], [0.0, 4.0]])", "[[0.5  0.  ]\n [0.   0.25]]")
def matrix_inverse(input: Any, adjoint: Number = False) -> Any:
    """The inverse of each matrix; ``adjoint``: of its adjoint."""
    return solving.inv(_adjoint(input) if adjoint else input)


@operation("MatrixSquareRoot")
@example("tf.linalg.sqrtm([[4.0, 1.0], [0.0, 9.0]])", "[[2.  0.2]\n [0.  3. ]]")
def matrix_square_root(input: Any) -> Any:
    """The square root of each matrix, whose eigenvalues have positive real parts; NaN where there is none."""
    return apply("matrix_square_root", input)


sqrtm = matrix_square_root


@operation("MatrixSolve")
@example("tf.matrix_solve([[2.0, 0.0], [0.0, 4.0]], [[2.0], [8.0]])", "[[1.]\n [2.]]")
def matrix_solve(matrix: Any, rhs: Any, adjoint: Number = False) -> Any:
    """X with ``matrix X = rhs``; ``adjoint``: with the adjoint matrix."""
    return apply("linear_solve", _adjoint(matrix) if adjoint else matrix, rhs, attrs=(True, True))


@operation("MatrixTriangularSolve")
@example("tf.matrix_triangular_solve([[2.0, 0.0], [1.0, 1.0]], [[2.0], [3.0]])", "[[1.]\n [2.]]")
def matrix_triangular_solve(matrix: Any, rhs: Any, lower: Number = True, adjoint: Number = False) -> Any:
    """X with ``matrix X = rhs`` for a triangular matrix; ``adjoint``: with its adjoint."""
    upper = bool(lower) if adjoint else not lower
    return apply("solve_triangular", _adjoint(matrix) if adjoint else matrix, rhs, attrs=(upper, True, False))


@operation("CholeskySolve")
@example("tf.cholesky_solve([[2.0, 0.0], [1.0, 2.0]], [[8.0], [12.0]])", "[[1.]\n [2.]]")
def cholesky_solve(chol: Any, rhs: Any) -> Any:
    """The solution of ``chol @ chol.T @ x = rhs``; what is above the diagonal of ``chol`` counts for nothing."""
    chol, rhs = _check_same_dtype(chol, rhs)
    return ops.cholesky_solve(rhs, ops.tril(chol))


inv, solve, triangular_solve = matrix_inverse, matrix_solve, matrix_triangular_solve


@operation("SelfAdjointEigV2", several=tuple)
@example("values, vectors = tf.self_adjoint_eig([[2.0, 1.0], [1.0, 2.0]])", "tf.round(values)", "[1. 3.]")
def self_adjoint_eig(tensor: Any) -> Any:
    """Eigenvalues in ascending order and eigenvectors of symmetric matrices."""
    return list(singular_values.eigh(tensor))


eigh = self_adjoint_eig


@operation("Svd", several=list)
def _svd(tensor: Any, full: Number) -> Any:
    u, s, vh = singular_values.svd(tensor, bool(full))
    return [s, u, _adjoint(vh)]


@operation("SingularValues")
def _singular_values(tensor: Any) -> Any:
    return singular_values.svdvals(tensor)


@example("tf.round(tf.svd([[0.0, 3.0], [4.0, 0.0]], compute_uv=False))", "[4. 3.]")
def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """S, U and V with ``tensor = U diag(S) V^H``; without ``compute_uv`` S alone."""
    if not compute_uv:
        return _singular_values(tensor, name=name or "Svd")
    return tuple(_svd(tensor, full_matrices, name=name))


@operation("Qr", several=Qr._make)
@example("q, r = tf.qr([[3.0, 1.0], [4.0, 2.0]])", "tf.round(tf.matmul(q, r))", "[[3. 1.]\n [4. 2.]]")
def qr(input: Any, full_matrices: Number = False) -> Any:
    """Q with orthonormal columns and upper triangular R whose product is the input."""
    return list(orthogonal.qr(input, "complete" if full_matrices else "reduced"))


@operation("Norm", default="norm", name_at=4, older={"keep_dims": "keepdims"})
@example("tf.norm([3.0, 4.0])", "5.0")
def norm(tensor: Any, ord: Number = "euclidean", axis: Number = None, keepdims: Number = None) -> Any:
    """The norm of vectors (one axis, or all elements as one vector) or of matrices (two axes)."""
    dim = axis_of(axis)
    order = 2 if ord in ("euclidean", "fro") else ord
    if isinstance(dim, (tuple, list)) and len(dim) == 2:
        return norms.matrix_norm(tensor, "fro" if ord in ("euclidean", "fro") else ord, dim, bool(keepdims))
    return norms.vector_norm(tensor, order, dim, bool(keepdims))


fft = renamed("FFT", "fft.fftn", "input", dim=(-1,))
fft2d = renamed("FFT2D", "fft.fftn", "input", dim=(-2, -1))
fft3d = renamed("FFT3D", "fft.fftn", "input", dim=(-3, -2, -1))
ifft = renamed("IFFT", "fft.ifftn", "input", dim=(-1,))
ifft2d = renamed("IFFT2D", "fft.ifftn", "input", dim=(-2, -1))
ifft3d = renamed("IFFT3D", "fft.ifftn", "input", dim=(-3, -2, -1))


@operation("RFFT")
@example("tf.rfft([1.0, 2.0, 3.0, 4.0])", "[10.+0.j -2.+2.j -2.+0.j]")
def rfft(input_tensor: Any, fft_length: Number = None) -> Any:
    """The first half of the Fourier transform of real values over the last axis."""
    return FUNCTIONS["fft.rfft"](input_tensor, _length(fft_length))


@operation("IRFFT")
@example("tf.irfft(tf.complex([4.0, 0.0, 0.0], [0.0, 0.0, 0.0]))", "[1. 1. 1. 1.]")
def irfft(input_tensor: Any, fft_length: Number = None) -> Any:
    """Real values from the first half of their Fourier transform over the last axis."""
    return FUNCTIONS["fft.irfft"](input_tensor, _length(fft_length))


def _length(fft_length: Any) -> Any:
    found = None if fft_length is None else numbers(fft_length)
    return int(found[0]) if isinstance(found, (list, tuple)) else found


@operation("MatVec")
@example("tf.linalg.matvec([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])", "[3. 7.]")
def matvec(
    a: Any,
    b: Any,
    transpose_a: Number = False,
    adjoint_a: Number = False,
    a_is_sparse: Number = False,
    b_is_sparse: Number = False,
) -> Any:
    """The products of matrices and vectors, of the transposed or of the adjoint matrices if asked for.

    ``a_is_sparse`` and ``b_is_sparse`` change no values.
    """
    left = _adjoint(a) if adjoint_a else ops.matrix_transpose(a) if transpose_a else a
    return ops.squeeze(ops.matmul(left, ops.unsqueeze(b, -1)), -1)


@operation("LogMatrixDeterminant", several=LogMatrixDeterminant._make)
@example("tf.linalg.slogdet([[-2.0, 0.0], [0.0, 2.0]]).sign", "-1.0")
def slogdet(input: Any) -> Any:
    """The sign of each determinant and the logarithm of its absolute value."""
    return list(ops.slogdet(input))


log_matrix_determinant = slogdet


matrix_set_diag = renamed("MatrixSetDiag", "diagonal_scatter", "input diagonal", offset=0, dim1=-2, dim2=-1)


set_diag = matrix_set_diag


@operation("MatrixSolveLs")
def _least_squares(matrix: Any, rhs: Any, ridge: Any) -> Any:
    transposed = (
        ops.conj(ops.matrix_transpose(matrix)) if matrix.dtype.kind == "c" else ops.matrix_transpose(matrix)
    )
    if matrix.shape[-2] >= matrix.shape[-1]:
        left = ops.matmul(transposed, matrix)
        return FUNCTIONS["linalg.solve"](_raised(left, ridge), ops.matmul(transposed, rhs))
    left = ops.matmul(matrix, transposed)
    return ops.matmul(transposed, FUNCTIONS["linalg.solve"](_raised(left, ridge), rhs))


@operation("MatrixSolveLs")
def _least_norm(matrix: Any, rhs: Any) -> Any:
    return ops.matmul(FUNCTIONS["linalg.pinv"](matrix), rhs)


def _scaled_eye(square: Any, ridge: float) -> Any:
    size = square.shape[-1]
    rows, columns = (ops.reshape(counted(size, square), shape) for shape in ((size, 1), (1, size)))
    return ops.multiply(ops.cast(ops.equal(rows, columns), square.dtype), ridge)


def _raised(square: Any, ridge: Any) -> Any:
    """A matrix with ``ridge`` added to its diagonal."""
    return ops.add(square, _scaled_eye(square, ridge)) if ridge else square


@example("tf.round(tf.matrix_solve_ls([[2.0, 0.0], [0.0, 4.0]], [[2.0], [8.0]]))", "[[1.]\n [2.]]")
def matrix_solve_ls(
    matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> Any:
    """The solutions of least squares, or those of least norm, by the normal equations.

    With ``fast=False`` by the pseudo-inverse, also of a matrix without full rank and without ``l2_regularizer``.
    """
    if not fast:
        return _least_norm(matrix, rhs, name=name)
    return _least_squares(matrix, rhs, float(l2_regularizer), name=name)


lstsq = matrix_solve_ls

__getattr__, __dir__ = look_up(__name__)
