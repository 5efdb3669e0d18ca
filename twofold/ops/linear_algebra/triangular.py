"""Triangular systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import complex64
from twofold.errors import ShapeError
from twofold.ir.node import Attributes, Node
from twofold.ir.types import TensorType
from twofold.ops import kernels
from twofold.ops.base import apply, composite, custom, host, ops, public
from twofold.ops.examples import example
from twofold.ops.linear_algebra import matrix_routines
from twofold.ops.linear_algebra.matrices import (
    MatrixKernel,
    MatrixOperation,
    adjoint,
    by_kernel,
    check_matrix,
    check_same_dtype,
    common_batch,
    with_batch,
)
from twofold.ops.promotion import autocast
from twofold.ops.return_types import return_type
from twofold.ops.samples import Sample

_ROWS = 4  # of X that are found together
_VECTORS = 4  # of their columns
_COLUMNS = _VECTORS * kernels.LANES


class TriangularSolve(NamedTuple):
    """The solution, and the coefficients that were given."""

    solution: Any
    cloned_coefficient: Any


_TRIANGULAR_SOLVE = return_type("triangular_solve", TriangularSolve)


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


def _passed(ct: Any, y: Any, a: Any, upper: bool, unit: bool) -> tuple[Any, Any]:
    """The gradients of a system with the solution ``y``."""
    right = solve_left(adjoint(a), ct, not upper, unit)
    return -triangle(right @ adjoint(y), upper, unit), right


def _systems() -> list[Sample]:
    shapes = (
        ((3, 3), (3, 2)),
        ((2, 4, 4), (2, 4, 1)),
        ((1, 1), (1, 3)),
        ((6, 6), (6, 70)),
        ((0, 0), (0, 2)),
        ((2, 2), (2, 0)),
    )
    return [
        example((upper, unit), well_conditioned(a), b)
        for a, b in shapes
        for upper in (False, True)
        for unit in (False, True)[: 1 + (a == (3, 3))]
    ]


def rows_after_others(
    b: Any,
    numbers: Sequence[Any],
    given: Sequence[list[Any]],
    known: Callable[[Any], list[Any]],
    factor: Callable[[Any, Any], Any],
    finished: Callable[[int, list[Any]], list[Any]],
) -> None:
    """Emit rows that follow each other, without factors times all rows before them: FMA in the order of these.

    Args:
        b: The builder.
        numbers: Of the rows.
        given: The vectors that each starts as.
        known: Gives the vectors of a row before them.
        factor: Gives the factor that a row has for one before it.
        finished: Emits the rest of the k-th row, from the vectors that are left; gives those that the next ones take.
    """

    def without(scale: Any, row: Sequence[Any], left: Sequence[Any]) -> list[Any]:
        scale = b.splat(b.neg(scale))
        return [b.fma(scale, one, rest) for one, rest in zip(row, left, strict=True)]

    width = len(given[0])
    loop = b.loop(0, numbers[0], carry=[one for row in given for one in row])
    with loop as (j, left):
        row = known(j)
        parts = [left[k * width : (k + 1) * width] for k in range(len(numbers))]
        following = [without(factor(n, j), row, part) for n, part in zip(numbers, parts, strict=True)]
        b.loop_next([one for part in following for one in part])
    done: list[list[Any]] = []
    for k, number in enumerate(numbers):
        rest = list(loop.results[k * width : (k + 1) * width])
        for before, row in zip(numbers, done, strict=False):
            rest = without(factor(number, before), row, rest)
        done.append(finished(k, rest))


class Substitution:
    """Writes the code for triangular systems: rows of X, four at a time, whose products do not wait for each other.

    ``pointers`` are those of A, of B and of X, of which the last two may be the same.
    """

    def __init__(self, b: Any, dtype: Any, upper: bool, unit: bool, pointers: tuple[Any, Any, Any]) -> None:
        self.b, self.dtype, self.upper, self.unit = b, dtype, upper, unit
        self.a, self.given, self.x = pointers

    def emit(self, matrix: Any, rows: Any, columns: Any) -> None:
        """Emit the solution with one of the matrices."""
        with self.b.loop(0, self.b.idiv(self.b.add(columns, _COLUMNS - 1), _COLUMNS)) as block:
            self.block(matrix, block, rows, columns)

    def block(self, matrix: Any, block: Any, rows: Any, columns: Any) -> None:
        """Emit some columns of the solution with one of the matrices."""
        b = self.b
        low = b.mul(block, _COLUMNS)
        width = b.minimum(b.sub(columns, low), _COLUMNS)
        branch = b.if_(b.cmp("eq", width, _COLUMNS))
        with branch:
            self._columns((matrix, rows, columns), low, _VECTORS, None)
        with branch.else_(), b.loop(0, width, kernels.LANES) as j:
            self._columns((matrix, rows, columns), b.add(low, j), 1, b.lane_mask(b.sub(width, j)))

    def _columns(self, sizes: tuple[Any, Any, Any], low: Any, vectors: int, mask: Any) -> None:
        b, (matrix, rows, columns) = self.b, sizes
        first = b.mul(matrix, b.mul(rows, rows))
        start = b.add(b.mul(matrix, b.mul(rows, columns)), low)
        row_of = lambda i: b.sub(b.sub(rows, 1), i) if self.upper else i
        factor_at = lambda i, j: b.add(b.add(first, b.mul(row_of(i), rows)), row_of(j))
        values_at = lambda i, v: b.add(b.add(start, b.mul(row_of(i), columns)), v * kernels.LANES)
        whole = b.and_(rows, -_ROWS)
        with b.loop(0, whole, _ROWS) as i:
            self._rows([b.add(i, k) for k in range(_ROWS)], vectors, mask, factor_at, values_at)
        with b.loop(whole, rows) as i:
            self._rows([i], vectors, mask, factor_at, values_at)

    def _rows(
        self,
        numbers: Sequence[Any],
        vectors: int,
        mask: Any,
        factor_at: Callable[[Any, Any], Any],
        values_at: Callable[[Any, int], Any],
    ) -> None:
        """Emit rows that follow each other."""
        b = self.b

        def load(pointer: Any, row: Any) -> list[Any]:
            starts = [values_at(row, v) for v in range(vectors)]
            return [b.load(pointer, at, self.dtype, kernels.LANES, mask=mask) for at in starts]

        def factor(row: Any, before: Any) -> Any:
            return b.load(self.a, factor_at(row, before), self.dtype)

        def solved(k: int, left: list[Any]) -> list[Any]:
            if not self.unit:
                pivot = b.splat(factor(numbers[k], numbers[k]))
                left = [b.div(one, pivot) for one in left]
            for v, one in enumerate(left):
                b.store(self.x, values_at(numbers[k], v), one, mask=mask)
            return left

        rows_after_others(
            b,
            numbers,
            [load(self.given, one) for one in numbers],
            lambda row: load(self.x, row),
            factor,
            solved,
        )


@custom
class triangular_system(MatrixKernel):
    """X with ``A X = B`` for triangular A; equal batch axes; attributes ``(upper, unit diagonal)``.

    Products are subtracted by fused multiply-add in the order in which the rows of X are found: from the first, of an
    upper triangle from the last. A work item is a block of columns.
    """

    signature = "A, B"
    title = "linalg.solve_triangular"

    def type_of(self, attrs: Attributes, types: Sequence[TensorType]) -> TensorType:
        return types[1]

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        rows, columns = output.shape[-2:]
        return rows, columns, -(-columns // _COLUMNS)

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        rows, columns = output.shape[-2:]
        count = prod(output.shape[:-2]) * -(-columns // _COLUMNS)
        return count, kernels.grain(32768, rows * rows)

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b = builder
        code = Substitution(b, output.dtype, attrs[0], attrs[1], (b.input(0), b.input(1), b.buffer(2)))
        with b.loop(b.begin, b.end) as item:
            matrix, block = kernels.split(b, item, b.param(2))
            code.block(matrix, block, b.param(0), b.param(1))

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return _passed(cotangent, output, inputs[0], *attrs)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return matrix_routines.solve_triangular(*arrays, *attrs)

    samples = lambda self: _systems()


@host
class triangular_system_by_numpy(MatrixOperation):
    """The same by NumPy: of complex and of large matrices."""

    signature = "A, B"
    title = "linalg.solve_triangular"
    compute = staticmethod(matrix_routines.solve_triangular)

    def type_of(self, attrs: Any, types: Sequence[TensorType]) -> TensorType:
        return types[1]

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        a, _, upper, unit = rest
        return _passed(ct, y, a, upper, unit)

    def samples(self) -> Sequence[Sample]:
        return [
            example((upper, unit), complex_matrices((2, 3, 3)), (2, 3, 1), dtype=complex64)
            for upper, unit in ((False, False), (True, False), (True, True))
        ] + [example((True, False), well_conditioned((3, 3)), (3, 2))]


def solve_left(a: Any, b: Any, upper: bool, unit: bool = False) -> Any:
    """X with ``A X = B``; equal batch axes."""
    name = "triangular_system" if by_kernel(a) else "triangular_system_by_numpy"
    return apply(name, a, b, attrs=(upper, unit))


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
    return _TRIANGULAR_SOLVE(solution, ops.copied(A))
