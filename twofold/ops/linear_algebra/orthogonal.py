"""The QR factorisation, and products of Householder reflections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import complex64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.types import Shape
from twofold.ops.base import apply, composite, host, ops, public
from twofold.ops.building_blocks import NoGradient
from twofold.ops.examples import example
from twofold.ops.linear_algebra.matrices import (
    Packed,
    Pieces,
    adjoint,
    check_matrix,
    check_same_dtype,
    diagonal_matrix,
    eye_like,
    linalg_function,
    scaled_diagonal,
)
from twofold.ops.linear_algebra.triangular import solve_left, solve_right
from twofold.ops.promotion import autocast
from twofold.ops.return_types import return_type
from twofold.ops.samples import Sample

_MODES = ("reduced", "complete", "r")


class QR(NamedTuple):
    """The factor with orthonormal columns, and the upper triangular one."""

    Q: Any
    R: Any


_LINALG_QR, _QR = return_type("linalg_qr", QR), return_type("qr", QR)


class Reflections(NamedTuple):
    """R above the diagonal and the vectors of the reflections below it, and their factors."""

    a: Any
    tau: Any


_GEQRF = return_type("geqrf", Reflections)


@host
class qr_packed(Packed):
    """Q and R; attributes ``(mode,)``: "reduced", "complete", or "r" for an empty Q.

    The gradient follows Seeger et al., Auto-differentiating linear algebra (2017), and for wide matrices Roberts
    and Roberts, QR and LQ decomposition matrix backpropagation algorithms (2020).
    """

    autograd_name = "LinalgQrBackward0"
    title = "linalg.qr"
    square = False

    def pieces(self, attrs: Any, shape: Shape) -> Pieces:
        rows, columns = shape[-2:]
        size = rows if attrs[0] == "complete" else min(rows, columns)
        return ((rows, size) if attrs[0] != "r" else (0,), (size, columns))

    @staticmethod
    def compute(a: Any, mode: Any) -> Any:
        if mode == "r":
            return numpy.zeros((*a.shape[:-2], 0), a.dtype), numpy.linalg.qr(a, "r")
        return numpy.linalg.qr(a, mode)

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        (gq, gr), (q, r), (a, mode) = ct, y, rest
        rows, columns = a.shape[-2:]
        if mode == "r" or (mode == "complete" and rows > columns):
            what = f"linalg.qr of shape {tuple(a.shape)} in mode {mode!r}"
            return (NoGradient(what, "A", "Use mode='reduced'."),)
        if rows >= columns:
            return (_qr_gradient(q, r, gq, gr),)
        left, right = ops.narrow(r, -1, 0, rows), ops.narrow(a, -1, rows, columns - rows)
        g_left, g_right = ops.narrow(gr, -1, 0, rows), ops.narrow(gr, -1, rows, columns - rows)
        first = _qr_gradient(q, left, gq + right @ adjoint(g_right), g_left)
        return (ops.cat((first, q @ g_right), -1),)

    def samples(self) -> Sequence[Sample]:
        shapes = ((3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1), (0, 0), (0, 3), (3, 0), (0, 2, 2))
        return [
            example((mode,), shape)
            for shape in shapes
            for mode in ("reduced", "complete")
            if mode == "reduced" or shape[-2] <= shape[-1]
        ] + [example(("reduced",), shape, dtype=complex64) for shape in ((3, 3), (3, 2), (2, 3))]


def _qr_gradient(q: Any, r: Any, gq: Any, gr: Any) -> Any:
    difference = gr @ adjoint(r) - adjoint(q) @ gq
    upper = ops.triu(difference)
    symmetric = scaled_diagonal(upper + adjoint(upper), 0.5)
    return solve_right(adjoint(r), gq + q @ symmetric, False)


@linalg_function()
@autocast("float32")
def qr(A: Any, mode: str = "reduced") -> QR:
    """Q with orthonormal columns and upper triangular R with ``A = Q R``.

    ``mode`` "complete" gives a square Q, "r" only R (and an empty Q). Raises ArgumentError for another mode.

    >>> import twofold as torch
    >>> Q, R = torch.linalg.qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> torch.allclose(Q @ R, torch.tensor([[3.0, 1.0], [4.0, 2.0]]), atol=1e-5)
    True
    """
    if mode not in _MODES:
        raise ArgumentError(f"mode={mode!r}", "Use 'reduced', 'complete' or 'r'.")
    q, r = qr_packed.results(A, attrs=(mode,))
    return _LINALG_QR(ops.reshape(q, (0,)) if mode == "r" and not _count(q) else q, r)


def _count(x: Any) -> int:
    size = 1
    for length in x.shape:
        size *= length
    return size


@public("qr", methods=("qr",))
@autocast("float32")
def qr_(input: Any, some: bool = True) -> QR:
    """Q and R of ``linalg.qr``; without ``some`` the complete Q.

    >>> import twofold as torch
    >>> Q, R = torch.qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> torch.allclose(Q @ R, torch.tensor([[3.0, 1.0], [4.0, 2.0]]), atol=1e-5)
    True
    """
    return _QR(*qr_packed.results(input, attrs=("reduced" if some else "complete",)))


@host
class geqrf_packed(Packed):
    """The reflections whose product is Q, and R, as LAPACK's ``geqrf`` leaves them."""

    title = "geqrf"
    without_gradient = (0,)
    square = False

    def pieces(self, attrs: Any, shape: Shape) -> Pieces:
        return (shape[-2:], (min(shape[-2:]),))

    @staticmethod
    def compute(a: Any) -> Any:
        transposed, factors = numpy.linalg.qr(a, "raw")
        return transposed.swapaxes(-1, -2), factors

    def samples(self) -> Sequence[Sample]:
        return [example((), shape) for shape in ((3, 3), (4, 2), (2, 2, 4), (0, 0), (3, 0))]


@public(methods=("geqrf",))
@autocast("float32")
def geqrf(input: Any) -> Reflections:
    """The QR factorisation as reflections, for ``linalg.householder_product`` and ``ormqr``.

    >>> import twofold as torch
    >>> a, tau = torch.geqrf(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> R = torch.triu(a)
    >>> torch.allclose(R.T @ R, torch.tensor([[25.0, 11.0], [11.0, 5.0]]), atol=1e-4)
    True
    """
    return _GEQRF(*geqrf_packed.results(input))


def _compact(vectors: Any, factors: Any, rows: int) -> tuple[Any, Any]:
    """V and T such that the product of the reflections is ``I - V T V^H``.

    Source: Schreiber and Van Loan, A storage-efficient WY representation for products of Householder
    transformations (1989); T solves ``(I + D U) T = D`` with D the factors and U the upper part of ``V^H V``
    (Puglisi 1992).
    """
    count = factors.shape[-1]
    shown = ops.narrow(vectors, -1, 0, count)
    v = ops.tril(shown, -1) + eye_like(shown, rows, count)
    d = ops.unsqueeze(factors, -1)
    system = ops.triu(adjoint(v) @ v, 1) * d
    return v, solve_left(system, diagonal_matrix(factors), True, True)


def _check_reflections(a: Any, tau: Any, tall: bool = True) -> None:
    check_matrix(a)
    check_same_dtype(a, tau)
    rows, columns = a.shape[-2:]
    fits = len(tau.shape) == len(a.shape) - 1 and tuple(tau.shape[:-1]) == tuple(a.shape[:-2])
    if not fits or tau.shape[-1] > min(rows, columns) or (tall and columns > rows):
        raise ShapeError(
            f"reflections of shape {tuple(a.shape)} with factors of shape {tuple(tau.shape)}",
            f"Give {'at most as many columns as rows, and ' if tall else ''}at most one factor per column and row.",
        )


@composite
class householder_product:
    """The first columns of the product of reflections, as many as ``input`` has: the Q of ``geqrf``.

    The reflection of column k is ``I - tau[k] v v^H`` with v the column below its diagonal element, which
    counts as 1. ``orgqr`` is another name.

    >>> import twofold as torch
    >>> Q = torch.linalg.householder_product(*torch.geqrf(torch.tensor([[3.0, 1.0], [4.0, 2.0]])))
    >>> torch.allclose(Q.T @ Q, torch.eye(2), atol=1e-5)
    True
    """

    autocast = "float32"
    memory = (28, "one product of matrices for each reflection")

    functions = ("linalg.householder_product", "orgqr")
    methods = ("orgqr",)
    signature = "input, tau"

    @staticmethod
    def compute(a: Any, tau: Any) -> Any:
        _check_reflections(a, tau)
        rows, columns = a.shape[-2:]
        v, t = _compact(a, tau, rows)
        top = adjoint(ops.narrow(v, -2, 0, columns))
        return eye_like(a, rows, columns) - v @ (t @ top)

    samples = lambda: [
        example((), (4, 3), (3,)),
        example((), (2, 3, 3), (2, 2)),
        example((), (3, 2), (0,)),
        example((), (0, 0), (0,)),
        example((), (4, 3), (3,), dtype=complex64),
    ]


@composite
class ormqr:
    """``Q other`` with Q the whole product of reflections; not ``left``: ``other Q``; ``transpose``: by ``Q^H``.

    >>> import twofold as torch
    >>> a, tau = torch.geqrf(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> torch.allclose(torch.ormqr(a, tau, torch.triu(a)), torch.tensor([[3.0, 1.0], [4.0, 2.0]]), atol=1e-5)
    True
    """

    autocast = "float32"
    memory = (18, "one product of matrices for each reflection")

    methods = ("ormqr",)
    signature = "input, tau, other"

    @staticmethod
    def call(input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
        return apply("ormqr", input, tau, other, attrs=(bool(left), bool(transpose)))

    @staticmethod
    def compute(a: Any, tau: Any, other: Any, left: bool, transpose: bool) -> Any:
        _check_reflections(a, tau, tall=False)
        check_same_dtype(a, other)
        rows = a.shape[-2]
        if len(other.shape) != len(a.shape) or other.shape[-2 if left else -1] != rows:
            raise ShapeError(
                f"reflections of {rows} elements for other of shape {tuple(other.shape)}",
                f"Give other {rows} {'rows' if left else 'columns'}.",
            )
        v, t = _compact(a, tau, rows)
        t = adjoint(t) if transpose else t
        if left:
            return other - v @ (t @ (adjoint(v) @ other))
        return other - ((other @ v) @ t) @ adjoint(v)

    samples = lambda: [
        example((left, transposed), (rows, 2), (min(rows, 2),), (rows, 4) if left else (4, rows))
        for left in (True, False)
        for transposed in (True, False)
        for rows in (3, 1, 0)
    ]
