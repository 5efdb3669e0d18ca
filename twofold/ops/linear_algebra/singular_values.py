"""Singular values and eigenvalues of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import complex64
from twofold.errors import ArgumentError, LinAlgError
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops.base import apply, host, ops, public
from twofold.ops.examples import example
from twofold.ops.linear_algebra.matrices import (
    MatrixOperation,
    Packed,
    Pieces,
    adjoint,
    diagonal_matrix,
    linalg_function,
    real,
    safe_reciprocal,
)
from twofold.ops.promotion import autocast
from twofold.ops.return_types import return_type
from twofold.ops.samples import Sample


class SVD(NamedTuple):
    """Left singular vectors in columns, singular values in descending order, right ones in (conjugated) rows."""

    U: Any
    S: Any
    Vh: Any


_LINALG_SVD = return_type("linalg_svd", SVD)


class SVDColumns(NamedTuple):
    """Left singular vectors, singular values, right singular vectors, both in columns."""

    U: Any
    S: Any
    V: Any


_SVD = return_type("svd", SVDColumns)


class Eigen(NamedTuple):
    """Eigenvalues, and eigenvectors in columns."""

    eigenvalues: Any
    eigenvectors: Any


_LINALG_EIGH = return_type("linalg_eigh", Eigen)


def converged(function: Any, a: Any, *rest: Any) -> Any:
    """``function`` of all matrices; an input that is not finite, or that does not converge, is an error."""
    try:
        return function(a, *rest)
    except numpy.linalg.LinAlgError:
        what = (
            "the algorithm did not converge" if numpy.isfinite(a).all() else "an element is NaN or infinite"
        )
        raise LinAlgError(what, "Look for values that are not finite, or of very different sizes.") from None


@host
class svd_packed(Packed):
    """U, S and Vh; attributes ``(full_matrices,)``.

    The gradient follows Townsend, Differentiating the singular value decomposition (2016); equal singular
    values contribute nothing, which is right for functions that do not depend on the choice of their vectors.
    """

    autograd_name = "LinalgSvdBackward0"
    title = "linalg.svd"
    square = False

    def pieces(self, attrs: Any, shape: Shape) -> Pieces:
        rows, columns = shape[-2:]
        size = min(rows, columns)
        return ((rows, rows if attrs[0] else size), (size,), (columns if attrs[0] else size, columns))

    @staticmethod
    def compute(a: Any, full: bool) -> Any:
        return converged(numpy.linalg.svd, a, full)

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        size = min(rest[0].shape[-2:])
        (gu, gs, gvh), (u, s, vh) = ct, y
        gu, u = ops.narrow(gu, -1, 0, size), ops.narrow(u, -1, 0, size)
        gvh, vh = ops.narrow(gvh, -2, 0, size), ops.narrow(vh, -2, 0, size)
        return (_svd_gradient(u, s, vh, gu, gs, gvh),)

    def samples(self) -> Sequence[Sample]:
        shapes = ((3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1), (0, 0), (0, 3), (3, 0), (0, 2, 2))
        return [example((False,), shape) for shape in shapes] + [
            example((True,), shape, smooth=False) for shape in ((4, 2), (2, 4), (0, 3))
        ]


def _skew(x: Any) -> Any:
    return x - adjoint(x)


def _svd_gradient(u: Any, s: Any, vh: Any, gu: Any, gs: Any, gvh: Any) -> Any:
    s, gs = real(s), real(gs)
    row, column = ops.unsqueeze(s, -2), ops.unsqueeze(s, -1)
    apart = safe_reciprocal((row - column) * (row + column))
    inverse = safe_reciprocal(s)
    left, right = adjoint(u) @ gu, vh @ adjoint(gvh)
    inner = _skew(left) * apart * row + column * (_skew(right) * apart) + diagonal_matrix(gs)
    if u.dtype.kind == "c":
        phase = ops.imag(ops.diagonal(left - right, 0, -2, -1)) * inverse * 0.5
        inner = inner + diagonal_matrix(ops.complex(phase * 0, phase))
    if u.shape[-2] == vh.shape[-1]:
        return u @ inner @ vh
    outside = gu * ops.unsqueeze(inverse, -2)
    tall = (u @ inner + outside - u @ (adjoint(u) @ outside)) @ vh
    beside = gvh * ops.unsqueeze(inverse, -1)
    return tall + u @ (beside - (beside @ adjoint(vh)) @ vh)


@host
class singular_values(MatrixOperation):
    """The singular values alone, in descending order; their gradient is ``U diag(ct) Vh``."""

    title = "linalg.svdvals"
    square = False

    @staticmethod
    def compute(a: Any) -> Any:
        return converged(lambda x: numpy.linalg.svd(x, compute_uv=False), a)

    def type_of(self, attrs: Any, types: Sequence[TensorType]) -> TensorType:
        shape = types[0].shape
        return tensor_type(types[0].dtype.real, (*shape[:-2], min(shape[-2:])))

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        u, _, vh = svd_packed.results(rest[0], attrs=(False,))
        return ((u * ops.unsqueeze(ct, -2)) @ vh,)

    def samples(self) -> Sequence[Sample]:
        shapes = ((3, 3), (4, 2), (2, 2, 4), (0, 3), (0, 2, 2))
        return [example((), shape) for shape in shapes] + [example((), (3, 2), dtype=complex64)]


def _check_driver(driver: Any) -> None:
    if driver is not None:
        raise ArgumentError(f"driver {driver!r} is one of graphics cards", "Leave it out.")


@linalg_function()
@autocast("float32")
def svd(A: Any, full_matrices: bool = True, *, driver: Any = None) -> SVD:
    """U, S and Vh with ``A = U diag(S) Vh``, S in descending order; ``full_matrices``: square U and Vh.

    The vectors are defined up to a common sign (phase) of each pair. Raises ArgumentError for a ``driver``, which
    PyTorch has for graphics cards only.

    >>> import twofold as torch
    >>> torch.linalg.svd(torch.tensor([[3.0, 0.0], [0.0, 4.0]])).S.tolist()
    [4.0, 3.0]
    """
    _check_driver(driver)
    u, s, vh = svd_packed.results(A, attrs=(bool(full_matrices),))
    return _LINALG_SVD(u, real(s), vh)


@linalg_function()
@autocast("float32")
def svdvals(A: Any, *, driver: Any = None) -> Any:
    """The singular values in descending order; ``driver`` as in ``svd``.

    >>> import twofold as torch
    >>> torch.linalg.svdvals(torch.tensor([[0.0, 3.0], [4.0, 0.0]])).round()
    tensor([4., 3.])
    """
    _check_driver(driver)
    return apply("singular_values", A)


@public("svd", methods=("svd",))
@autocast("float32")
def svd_(input: Any, some: bool = True, compute_uv: bool = True) -> SVDColumns:
    """U, S and V with ``A = U diag(S) V^H``; without ``some`` square U and V; without ``compute_uv`` zeros.

    >>> import twofold as torch
    >>> U, S, V = torch.svd(torch.tensor([[0.0, 3.0], [4.0, 0.0], [0.0, 0.0]]))
    >>> torch.allclose(U @ torch.diag(S) @ V.T, torch.tensor([[0.0, 3.0], [4.0, 0.0], [0.0, 0.0]]), atol=1e-5)
    True
    """
    if not compute_uv:
        shape, rows, columns = tuple(input.shape), input.shape[-2], input.shape[-1]
        u, v = (ops.zeros(*shape[:-2], size, size, dtype=input.dtype) for size in (rows, columns))
        return _SVD(u, apply("singular_values", input), v)
    u, s, vh = svd_packed.results(input, attrs=(not some,))
    transposed = ops.transpose(vh, -2, -1)
    return _SVD(u, real(s), ops.conj(transposed) if transposed.dtype.kind == "c" else transposed)


@host
class eigh_packed(Packed):
    """Eigenvalues (ascending) and eigenvectors of symmetric matrices; attributes ``(triangle,)`` read: "L" or "U".

    The gradient follows Giles, Collected matrix derivative results (2008); equal eigenvalues contribute nothing.
    """

    autograd_name = "LinalgEighBackward0"
    title = "linalg.eigh"

    def pieces(self, attrs: Any, shape: Shape) -> Pieces:
        return (shape[-1:], shape[-2:])

    @staticmethod
    def compute(a: Any, triangle: str) -> Any:
        return converged(numpy.linalg.eigh, a, triangle)

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        (gl, gv), (values, v) = ct, y
        values = real(values)
        apart = safe_reciprocal(ops.unsqueeze(values, -2) - ops.unsqueeze(values, -1))
        inner = _skew(adjoint(v) @ gv) * 0.5 * apart + diagonal_matrix(real(gl))  # of a Hermitian argument
        return (v @ inner @ adjoint(v),)

    def samples(self) -> Sequence[Sample]:
        # one triangle is read, the gradient is that of a symmetric argument: no finite differences here
        return [
            example((triangle,), shape, smooth=False)
            for shape in ((3, 3), (2, 2, 2), (0, 0), (0, 2, 2))
            for triangle in "LU"
        ]


@host
class eigenvalues_symmetric(MatrixOperation):
    """The eigenvalues alone; their gradient is ``V diag(ct) V^H``."""

    title = "linalg.eigvalsh"

    @staticmethod
    def compute(a: Any, triangle: str) -> Any:
        return converged(numpy.linalg.eigvalsh, a, triangle)

    def type_of(self, attrs: Any, types: Sequence[TensorType]) -> TensorType:
        return tensor_type(types[0].dtype.real, types[0].shape[:-1])

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        a, triangle = rest
        _, v = eigh_packed.results(a, attrs=(triangle,))
        return ((v * ops.unsqueeze(ct, -2)) @ adjoint(v),)

    def samples(self) -> Sequence[Sample]:
        return [
            example((triangle,), shape, smooth=False)
            for shape in ((3, 3), (2, 2, 2), (0, 0))
            for triangle in "LU"
        ]


def _triangle(name: str) -> str:
    if name.upper() not in ("L", "U"):
        raise ArgumentError(f"UPLO={name!r}", "Use 'L' for the lower triangle or 'U' for the upper one.")
    return name.upper()


@linalg_function()
@autocast("float32")
def eigh(A: Any, UPLO: str = "L") -> Eigen:
    """Eigenvalues in ascending order and eigenvectors of symmetric (Hermitian) matrices.

    Only the triangle named by ``UPLO`` is read. The gradient is that of a symmetric argument.

    >>> import twofold as torch
    >>> torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues.tolist()
    [1.0, 3.0]
    """
    values, vectors = eigh_packed.results(A, attrs=(_triangle(UPLO),))
    return _LINALG_EIGH(real(values), vectors)


@linalg_function()
@autocast("float32")
def eigvalsh(A: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of symmetric (Hermitian) matrices in ascending order.

    >>> import twofold as torch
    >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).round()
    tensor([1., 3.])
    """
    return apply("eigenvalues_symmetric", A, attrs=(_triangle(UPLO),))
