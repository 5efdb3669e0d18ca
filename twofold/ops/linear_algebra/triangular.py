"""Triangular systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import complex64
from twofold.errors import ShapeError
from twofold.ir.types import TensorType
from twofold.ops.base import apply, composite, host, ops, public
from twofold.ops.examples import example
from twofold.ops.linear_algebra import matrix_routines
from twofold.ops.linear_algebra.matrices import (
    MatrixOperation,
    adjoint,
    check_matrix,
    check_same_dtype,
    common_batch,
    with_batch,
)
from twofold.ops.promotion import autocast
from twofold.ops.samples import Sample


class TriangularSolve(NamedTuple):
    """The solution, and the coefficients that were given."""

    solution: Any
    cloned_coefficient: Any


def triangle(x: Any, upper: bool, unit: bool = False) -> Any:
    """The part of ``x`` that a triangular system reads."""
    return ops.triu(x, int(unit)) if upper else ops.tril(x, -int(unit))


def well_conditioned(shape: tuple[int, ...], dtype: Any = numpy.float32) -> Any:
    """Matrices with a diagonal that outweighs the rest."""
    generator = numpy.random.default_rng(len(shape))
    rows, columns = shape[-2:]
    return (generator.standard_normal(shape) + (2 + rows) * numpy.eye(rows, columns)).astype(dtype)


def complex_matrices(shape: tuple[int, ...]) -> Any:
    """Complex matrices with a diagonal that outweighs the rest."""
    imaginary = numpy.random.default_rng(sum(shape)).standard_normal(shape)
    return (well_conditioned(shape) + 1j * imaginary).astype(numpy.complex64)


@host
class triangular_system(MatrixOperation):
    """X with ``A X = B`` for triangular A; equal batch axes; attributes ``(upper, unit diagonal)``."""

    signature = "A, B"
    title = "linalg.solve_triangular"
    compute = staticmethod(matrix_routines.solve_triangular)

    def type_of(self, attrs: Any, types: Sequence[TensorType]) -> TensorType:
        return types[1]

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        a, _, upper, unit = rest
        right = solve_left(adjoint(a), ct, not upper, unit)
        return -triangle(right @ adjoint(y), upper, unit), right

    def samples(self) -> Sequence[Sample]:
        shapes = (
            ((3, 3), (3, 2)),
            ((2, 4, 4), (2, 4, 1)),
            ((1, 1), (1, 3)),
            ((0, 0), (0, 2)),
            ((2, 2), (2, 0)),
        )
        return [
            example((upper, unit), well_conditioned(a), b)
            for a, b in shapes
            for upper in (False, True)
            for unit in (False, True)[: 1 + (a == (3, 3))]
        ] + [example((True, False), complex_matrices((2, 3, 3)), (2, 3, 1), dtype=complex64)]


def solve_left(a: Any, b: Any, upper: bool, unit: bool = False) -> Any:
    """X with ``A X = B``; equal batch axes."""
    return apply("triangular_system", a, b, attrs=(upper, unit))


def solve_right(a: Any, b: Any, upper: bool, unit: bool = False) -> Any:
    """X with ``X A = B``; equal batch axes."""
    return adjoint(solve_left(adjoint(a), adjoint(b), not upper, unit))


def check_system(a: Any, b: Any, left: bool = True) -> None:
    """Raise unless the matrices ``b`` can be the right-hand sides of systems with the square matrices ``a``."""
    check_matrix(a, square=True, name="A")
    check_matrix(b, name="B")
    check_same_dtype(a, b)
    size, axis = b.shape[-2 if left else -1], "rows" if left else "columns"
    if a.shape[-1] != size:
        raise ShapeError(
            f"B has {size} {axis}, A is {a.shape[-2]} by {a.shape[-1]}", f"Give B {a.shape[-1]} {axis}."
        )


@composite
class solve_triangular:
    """X with ``A X = B`` (or ``X A = B``) for triangular A, of which only one triangle is read.

    Batch axes broadcast. A zero on the diagonal gives infinities, as there is no check. The gradient follows
    Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008).

    >>> import twofold as torch
    >>> A = torch.tensor([[2.0, 0.0], [1.0, 4.0]])
    >>> torch.linalg.solve_triangular(A, torch.tensor([[2.0], [9.0]]), upper=False).tolist()
    [[1.0], [2.0]]
    """

    memory = (3, "values in between are stored")

    functions = ("linalg.solve_triangular",)
    signature = "A, B"

    @staticmethod
    def call(A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
        attrs = (bool(upper), bool(left), bool(unitriangular))
        return apply("solve_triangular", A, B, attrs=attrs)

    @staticmethod
    def compute(a: Any, b: Any, upper: bool, left: bool, unit: bool) -> Any:
        check_system(a, b, left)
        batch = common_batch(a, b)
        a, b = with_batch(a, batch), with_batch(b, batch)
        return (solve_left if left else solve_right)(a, b, upper, unit)

    samples = lambda: [
        example((False, True, False), well_conditioned((3, 3)), (2, 3, 2)),
        example((True, False, False), well_conditioned((2, 3, 3)), (1, 3)),
        example((False, False, True), well_conditioned((2, 1, 2, 2)), (3, 1, 2)),
    ]


@public(methods=("triangular_solve",))
@autocast("float32")
def triangular_solve(
    b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolve:
    """X with ``A X = b`` (``transpose``: of the transposed A) for triangular A, and A.

    >>> import twofold as torch
    >>> torch.triangular_solve(torch.tensor([[4.0], [2.0]]), torch.tensor([[1.0, 1.0], [0.0, 2.0]])).solution
    tensor([[3.],
            [1.]])
    """
    if transpose:
        transposed_a = ops.transpose(A, -2, -1)
        solution = apply("solve_triangular", transposed_a, b, attrs=(not upper, True, bool(unitriangular)))
    else:
        solution = apply("solve_triangular", A, b, attrs=(bool(upper), True, bool(unitriangular)))
    return TriangularSolve(solution, ops.copied(A))
