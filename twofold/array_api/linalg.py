"""The linear algebra extension of the standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from twofold import _core
from twofold.array_api.functions import functions, linear_algebra
from twofold.array_api.linear_algebra import matmul as matmul
from twofold.array_api.linear_algebra import matrix_transpose as matrix_transpose
from twofold.array_api.linear_algebra import tensordot as tensordot
from twofold.array_api.linear_algebra import vecdot as vecdot
from twofold.array_api.statistics import sum
from twofold.dtypes import DType
from twofold.errors import ArgumentError

Tensor = _core.Tensor


class Eigh(NamedTuple):
    """Eigenvalues in ascending order, and the eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    """The orthonormal and the upper triangular factor."""

    Q: Tensor
    R: Tensor


class SLogDet(NamedTuple):
    """Sign of a determinant and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


class SVD(NamedTuple):
    """Left singular vectors, singular values in descending order, and right singular vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The lower (or ``upper``) triangular factor of positive definite matrices."""
    return linear_algebra.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements along ``axis``; the other axes broadcast."""
    ndim = max(x1.ndim, x2.ndim)
    full = [functions.reshape(x, (1,) * (ndim - x.ndim) + tuple(x.shape)) for x in (x1, x2)]
    return linear_algebra.cross(*full, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinants of square matrices."""
    return linear_algebra.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices."""
    return functions.diagonal(x, offset, -2, -1)


def eigh(x: Tensor, /) -> Eigh:
    """Eigenvalues and eigenvectors of Hermitian matrices, of which the lower triangles are read."""
    return Eigh(*linear_algebra.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of Hermitian matrices."""
    return linear_algebra.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverses of square matrices."""
    return linear_algebra.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norms of matrices."""
    return linear_algebra.matrix_norm(x, ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Square matrices to an integer power."""
    return linear_algebra.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values exceed ``rtol`` times the largest (default: eps times the longer side)."""
    return linear_algebra.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of an element of one vector with one of the other."""
    return functions.outer(x1, x2)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The Moore-Penrose pseudo-inverses of matrices."""
    return linear_algebra.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QR:
    """Matrices as an orthonormal factor times an upper triangular one; ``mode`` is "reduced" or "complete"."""
    return QR(*linear_algebra.qr(x, mode))


def slogdet(x: Tensor, /) -> SLogDet:
    """Sign and logarithm of the absolute value of determinants."""
    return SLogDet(*linear_algebra.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solutions of ``x1 @ x = x2``; an ``x2`` of one axis is a vector, any other holds matrices."""
    if x2.ndim == 1:
        return linear_algebra.solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    return linear_algebra.solve(x1, x2)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVD:
    """Singular values and vectors of matrices."""
    return SVD(*linear_algebra.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of matrices."""
    return linear_algebra.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """The sums of diagonals."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Tensor, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """The norms of vectors along ``axis`` (None: of the flattened array)."""
    if isinstance(ord, str):
        raise ArgumentError(f"ord {ord!r}", "The norm of a vector is named by a number.")
    return linear_algebra.vector_norm(x, ord, axis, keepdims)
