"""Linear least squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import complex64, int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import Shape, tensor_type
from twofold.ops.base import apply, host, ops, strong
from twofold.ops.examples import example
from twofold.ops.linear_algebra import matrix_routines
from twofold.ops.linear_algebra.matrices import (
    Packed,
    Pieces,
    adjoint,
    check_matrix,
    check_same_dtype,
    common_batch,
    linalg_function,
    real,
)
from twofold.ops.linear_algebra.matrix_functions import pseudo_inverse_gradient
from twofold.ops.linear_algebra.singular_values import svd_packed
from twofold.ops.promotion import autocast
from twofold.ops.return_types import return_type
from twofold.ops.samples import Sample

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


class LeastSquares(NamedTuple):
    """The solutions, sums of squared residuals, ranks and singular values; what a driver does not find is empty."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


_LINALG_LSTSQ = return_type("linalg_lstsq", LeastSquares)


def _pieces(count: int, shape: Shape) -> Pieces:
    return ((shape[-1], count), (count,), (), (min(shape[-2:]),))


@host
class least_squares_packed(Packed):
    """The solution of least norm, sums of squared residuals, rank and singular values: inputs A, B and rcond.

    Attributes ``(number of right-hand sides,)``. The gradient is that of ``pinv(A) B``.
    """

    signature = "A, B"
    title = "linalg.lstsq"
    square = False

    def pieces(self, attrs: Any, shape: Shape) -> Pieces:
        return _pieces(attrs[0], shape)

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        a, b, limit = inputs[0], inputs[1], strong(inputs[2])
        type = self.type_of(attrs, [a.type])
        return make_node(self, attrs, (a, b, limit), tensor_type(type.dtype, type.shape))

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        """The limit has no batch axes: samples run one by one."""
        return None

    @staticmethod
    def compute(a: Any, b: Any, limit: Any, count: int) -> Any:
        def one(a: Any, b: Any) -> Any:
            if not a.size:
                zero = numpy.zeros((a.shape[1], b.shape[1]), a.dtype)
                return zero, (abs(b) ** 2).sum(0), numpy.float64(0), numpy.zeros(0)
            x, _, rank, values = numpy.linalg.lstsq(a, b, rcond=float(limit))
            return x, (abs(b - a @ x) ** 2).sum(0), numpy.float64(rank), values

        if not a.shape[:-2] or a.shape[0]:
            return matrix_routines.each(one, a, b)
        return [numpy.zeros((*a.shape[:-2], *shape), a.dtype) for shape in _pieces(count, a.shape)]

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        (g, g_residuals, _, g_values), (x, _, _, _), (a, b, limit, _) = ct, y, rest
        u, _, vh = svd_packed.results(a, attrs=(False,))
        inverse = apply("pseudo_inverse", a, 0.0, limit)
        share_a = pseudo_inverse_gradient(g @ adjoint(b), inverse, a)
        apart = (b - a @ x) * ops.unsqueeze(real(g_residuals), -2) * 2
        share_a = share_a - apart @ adjoint(x) + (u * ops.unsqueeze(real(g_values), -2)) @ vh
        return share_a, adjoint(inverse) @ g + apart, None

    def samples(self) -> Sequence[Sample]:
        limit = numpy.array(1e-6)
        shapes = (
            ((4, 2), (4, 3)),
            ((2, 4), (2, 1)),
            ((2, 3, 3), (2, 3, 2)),
            ((0, 2), (0, 1)),
            ((0, 3, 2), (0, 3, 1)),
        )
        return [example((b[-1],), a, b, limit) for a, b in shapes] + [
            example((1,), (4, 2), (4, 1), limit, dtype=complex64)
        ]


@linalg_function()
@autocast("float32")
def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: str | None = None) -> LeastSquares:
    """X that makes the norm of ``A X - B`` smallest, that of least norm where there are many.

    Singular values up to ``rcond`` times the largest (default: the larger size times the rounding unit) count as
    0; driver "gels" takes all ranks for full, and ``rcond`` is not asked there. All drivers compute the same; they
    differ, as in PyTorch, in which of residuals, rank and singular values are returned. Raises ShapeError where the
    numbers of rows differ.

    >>> import twofold as torch
    >>> torch.linalg.lstsq(torch.tensor([[1.0], [1.0]]), torch.tensor([[1.0], [3.0]])).solution.item()
    2.0
    """
    driver = "gelsy" if driver is None else driver
    if driver not in _DRIVERS:
        raise ArgumentError(f"driver={driver!r}", f"Use one of {', '.join(_DRIVERS)}.")
    check_matrix(A, name="A")
    vector = len(B.shape) == len(A.shape) - 1 and tuple(B.shape) == tuple(A.shape[:-1])
    right = ops.unsqueeze(B, -1) if vector else B
    check_matrix(right, name="B")
    check_same_dtype(A, B)
    rows, columns = A.shape[-2:]
    if right.shape[-2] != rows:
        raise ShapeError(f"B has {right.shape[-2]} rows, A {rows}", f"Give B {rows} rows.")
    batch = common_batch(A, right)
    if tuple(A.shape[:-2]) != tuple(right.shape[:-2]):
        A = ops.broadcast_to(A, (*batch, *A.shape[-2:]))
        right = ops.broadcast_to(right, (*batch, *right.shape[-2:]))
    unit = float(numpy.finfo(A.dtype.real.numpy).eps)
    limit = unit * max(rows, columns) if rcond is None or driver == "gels" else float(rcond)
    found = least_squares_packed.results(A, right, limit, attrs=(right.shape[-1],))
    solution, residuals, rank, values = found
    nothing = ops.zeros(0, dtype=A.dtype.real)
    residuals = real(residuals)
    if driver == "gelsy" or rows <= columns:
        residuals = ops.narrow(ops.ravel(residuals), 0, 0, 0)
    return _LINALG_LSTSQ(
        ops.squeeze(solution, -1) if vector else solution,
        residuals,
        ops.zeros(0, dtype=int64) if driver == "gels" else apply("cast", real(rank), attrs=(int64,)),
        real(values) if driver in ("gelsd", "gelss") else nothing,
    )
