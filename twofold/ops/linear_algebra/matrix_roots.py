"""Square roots of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import complex64
from twofold.ops.base import apply, host, ops
from twofold.ops.examples import example
from twofold.ops.linear_algebra import matrix_routines
from twofold.ops.linear_algebra.matrices import MatrixOperation, adjoint
from twofold.ops.linear_algebra.triangular import complex_matrices, well_conditioned
from twofold.ops.samples import Sample

_STEPS = 40
"""So many iterations for each eigenvalue, far more than the QR algorithm takes."""


def _shift(a: Any, step: int) -> Any:
    """The eigenvalue of the last two rows and columns that is nearer to the last element (Wilkinson's shift)."""
    if step % 10 == 9:  # leaves a cycle
        return a[-1, -1] + abs(a[-1, -2])
    half = (a[-2, -2] - a[-1, -1]) / 2
    product = a[-2, -1] * a[-1, -2]
    root = numpy.sqrt(half * half + product)
    larger = half + root if abs(half + root) > abs(half - root) else half - root
    return a[-1, -1] - (product / larger if larger else 0)


def _schur(a: Any) -> tuple[Any, Any]:
    """Upper triangular T and unitary Q with ``a = Q T Q^H``, by the QR algorithm with shifts.

    It begins with an orthonormal basis of the eigenvectors, with which T is triangular unless some of them are nearly
    parallel. Source: Golub & Van Loan, Matrix Computations (2013), sections 7.1.3 and 7.3.
    """
    _, vectors = numpy.linalg.eig(a)
    q, _ = numpy.linalg.qr(vectors)
    t = q.conj().T @ a @ q
    small = numpy.finfo(a.dtype).eps * numpy.linalg.norm(a)
    last, step = len(a) - 1, 0
    while last > 0 and step < _STEPS:
        if abs(t[last, :last]).max() <= small:
            t[last, :last] = 0
            last, step = last - 1, 0
            continue
        end = last + 1
        shift = _shift(t[:end, :end], step) * numpy.eye(end)
        unitary, _ = numpy.linalg.qr(t[:end, :end] - shift)
        t[:end] = unitary.conj().T @ t[:end]
        t[:, :end] = t[:, :end] @ unitary
        q[:, :end] = q[:, :end] @ unitary
        step += 1
    return t, q


def _root(a: Any) -> tuple[Any]:
    """Source: Björck & Hammarling, A Schur method for the square root of a matrix, 1983."""
    if not numpy.isfinite(a).all():
        return (numpy.full_like(a, numpy.nan),)
    t, q = _schur(a.astype(numpy.complex128))
    root = numpy.diag(numpy.sqrt(t.diagonal()))
    for column in range(1, len(t)):
        for row in reversed(range(column)):
            inside = root[row, row + 1 : column] @ root[row + 1 : column, column]
            root[row, column] = (t[row, column] - inside) / (root[row, row] + root[column, column])
    found = q @ root @ q.conj().T
    if a.dtype.kind == "c":
        return (found.astype(a.dtype),)
    real = abs(found.imag).max(initial=0) <= 1e-7 * abs(found.real).max(initial=0)
    return (found.real.astype(a.dtype) if real else numpy.full_like(a, numpy.nan),)


@host
class matrix_square_root(MatrixOperation):
    """The square roots of square matrices whose eigenvalues have positive real parts.

    NaN where there is none; of a real matrix with a negative eigenvalue, whose root is complex, too. The gradient is
    the upper right block of the root of ``[[A^H, ct], [0, A^H]]`` (Higham, Functions of matrices, 2008, theorem 3.6).
    """

    title = "linalg.sqrtm"

    @staticmethod
    def compute(a: Any) -> Any:
        return matrix_routines.each(_root, a)[0] if a.size else a.copy()

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        conjugated, size = adjoint(rest[0]), y.shape[-1]
        upper = ops.cat((conjugated, ct), -1)
        lower = ops.cat((conjugated * 0, conjugated), -1)
        whole = apply("matrix_square_root", ops.cat((upper, lower), -2))
        return (ops.narrow(ops.narrow(whole, -2, 0, size), -1, size, size),)

    def samples(self) -> Sequence[Sample]:
        turned = numpy.array([[[0.0, -1.0], [1.0, 0.0]], [[4.0, 1.0], [0.0, 4.0]]], numpy.float32)
        return [
            example((), well_conditioned((3, 3))),
            example((), turned),
            example((), (0, 0)),
            example((), complex_matrices((2, 2)), dtype=complex64),
        ]
