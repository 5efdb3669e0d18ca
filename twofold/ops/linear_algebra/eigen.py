"""Eigenvalues and eigenvectors of matrices that need not be symmetric; both are complex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import DType, complex64
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops.base import apply, host, ops
from twofold.ops.examples import example
from twofold.ops.linear_algebra.matrices import (
    MatrixOperation,
    Packed,
    Pieces,
    adjoint,
    diagonal_matrix,
    diagonal_of,
    linalg_function,
    real,
    safe_reciprocal,
)
from twofold.ops.linear_algebra.singular_values import Eigen, converged
from twofold.ops.promotion import autocast
from twofold.ops.return_types import return_type
from twofold.ops.samples import Sample


def _of_dtype(share: Any, a: Any) -> Any:
    """The cotangent of a real matrix is real."""
    return share if a.dtype.kind == "c" else ops.real(share)


@host
class eig_packed(Packed):
    """Eigenvalues and eigenvectors, the latter of length 1 with a real largest element.

    The gradient follows Boeddeker et al., On the computation of complex-valued gradients with application to
    statistically optimum beamforming (2017), equation 4.77, with the change of length taken out. Equal
    eigenvalues contribute nothing.
    """

    autograd_name = "LinalgEigBackward0"
    title = "linalg.eig"

    def pieces(self, attrs: Any, shape: Shape) -> Pieces:
        return (shape[-1:], shape[-2:])

    def packed_dtype(self, dtype: DType) -> DType:
        return dtype.complex

    @staticmethod
    def compute(a: Any) -> Any:
        return converged(numpy.linalg.eig, a)

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        (gl, gv), (values, v) = ct, y
        conjugated = adjoint(v)
        along = conjugated @ gv
        length = (conjugated @ v) * ops.unsqueeze(real(diagonal_of(along)), -2)
        apart = safe_reciprocal(ops.unsqueeze(values, -2) - ops.unsqueeze(values, -1))
        inner = (along - length) * ops.conj(apart) + diagonal_matrix(gl)
        return (_of_dtype(apply("solve_matrix", conjugated, inner @ conjugated, attrs=(False,)), rest[0]),)

    def samples(self) -> Sequence[Sample]:
        # the phases of the vectors are a choice: no finite differences here
        shapes = ((3, 3), (2, 2, 2), (0, 0), (0, 2, 2))
        return [example((), shape, dtype=complex64, smooth=False) for shape in shapes] + [
            example((), numpy.array([[0, 1], [-1, 0]], numpy.float32), smooth=False)
        ]


@host
class eigenvalues_alone(MatrixOperation):
    """The eigenvalues alone; their gradient is ``V^-H diag(ct) V^H``."""

    title = "linalg.eigvals"

    @staticmethod
    def compute(a: Any) -> Any:
        return converged(numpy.linalg.eigvals, a)

    def type_of(self, attrs: Any, types: Sequence[TensorType]) -> TensorType:
        return tensor_type(types[0].dtype.complex, types[0].shape[:-1])

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        _, v = eig_packed.results(rest[0])
        conjugated = adjoint(v)
        scaled = ops.unsqueeze(ct, -1) * conjugated
        return (_of_dtype(apply("solve_matrix", conjugated, scaled, attrs=(False,)), rest[0]),)

    def samples(self) -> Sequence[Sample]:
        whole = numpy.array([[0, 1, 2], [-1, 0, 1], [0, 3, 1]], numpy.float32)
        return [example((), whole), example((), (3, 3), dtype=complex64), example((), (0, 2, 2))]


_LINALG_EIG = return_type("linalg_eig", Eigen)


@linalg_function()
@autocast("float32")
def eig(A: Any) -> Eigen:
    """Complex eigenvalues and eigenvectors (in columns) of square matrices, in no particular order.

    The vectors have length 1 and are defined up to a phase; a gradient is meaningful for functions that do not
    depend on it. Raises LinAlgError for a matrix that is not finite.

    >>> import twofold as torch
    >>> torch.linalg.eig(torch.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.abs().tolist()
    [1.0, 1.0]
    """
    return _LINALG_EIG(*eig_packed.results(A))


@linalg_function()
@autocast("float32")
def eigvals(A: Any) -> Any:
    """The complex eigenvalues of square matrices, in no particular order.

    >>> import twofold as torch
    >>> torch.linalg.eigvals(torch.tensor([[0.0, -1.0], [1.0, 0.0]])).imag.sort().values.round()
    tensor([-1.,  1.])
    """
    return apply("eigenvalues_alone", A)
