"""Systems with real matrices, and their inverses, by elimination with partial pivoting."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.ir.node import Attributes, Node
from twofold.ir.types import TensorType
from twofold.ops import kernels
from twofold.ops.base import apply, custom
from twofold.ops.examples import example
from twofold.ops.linear_algebra import matrix_routines
from twofold.ops.linear_algebra.matrices import MatrixKernel, adjoint, raise_first
from twofold.ops.linear_algebra.triangular import Substitution, well_conditioned
from twofold.ops.samples import Sample

_PIVOTS = 4  # whose rows are subtracted together
_ROWS = 2  # from which they are subtracted at a time

_FIX = "Use linalg.pinv or linalg.lstsq, or add a small multiple of the identity."


def _text(which: str, order: int) -> str:
    """What is wrong with a matrix whose pivot of that number is 0."""
    return f"{which} is singular: pivot {order} of its LU factorisation is 0"


def singular(a: Any) -> Any:
    """For each matrix the number of the first zero pivot of its LU factorisation, 0 if there is none."""
    info = numpy.zeros(a.shape[:-2], numpy.int32)
    sign, _ = numpy.linalg.slogdet(a)
    zero = sign == 0
    if zero.any():
        info[zero] = matrix_routines.lu_factor(a[zero])[2]
    return info


def regular(function: Any, a: Any, check: bool, *rest: Any) -> Any:
    """``function(a, *rest)``; a singular matrix is an error, or without ``check`` gives NaN."""
    try:
        return function(a, *rest)
    except numpy.linalg.LinAlgError:
        bad = singular(a)
    if check:
        raise_first(bad, _text, _FIX)
    hidden = numpy.where((bad != 0)[..., None, None], numpy.eye(a.shape[-1], dtype=a.dtype), a)
    found = function(hidden, *rest)
    found[bad != 0] = numpy.nan
    return found


class Elimination:
    """Writes the code for one matrix: rows are exchanged and subtracted in a copy of A and in X, which starts as B.

    Source: outer-product elimination with partial pivoting, Golub & Van Loan, Matrix Computations (2013), section 3.4.
    """

    def __init__(self, b: Any, dtype: Any, copy: Any, x: Any, matrix: Any) -> None:
        self.b, self.dtype, self.copy, self.x = b, dtype, copy, x
        self.size, self.columns = b.param(0), b.param(1)
        self.first = b.mul(matrix, b.mul(self.size, self.size))
        self.start = b.mul(matrix, b.mul(self.size, self.columns))

    def _at(self, row: Any, column: Any) -> Any:
        return self.b.add(self.first, self.b.add(self.b.mul(row, self.size), column))

    def _row(self, row: Any) -> Any:
        return self.b.add(self.start, self.b.mul(row, self.columns))

    def _pivot(self, k: Any) -> Any:
        """Emit the row of the largest element of column ``k`` from the diagonal on, the first of equal ones."""
        b = self.b
        load = lambda row: b.abs(b.load(self.copy, self._at(row, k), self.dtype))
        loop = b.loop(b.add(k, 1), self.size, carry=[load(k), k])
        with loop as (row, (best, where)):
            value = load(row)
            larger = b.cmp("gt", value, best)
            b.loop_next([b.select(larger, value, best), b.select(larger, row, where)])
        return loop.results[1]

    def _exchanged(self, pointer: Any, one: Any, other: Any, count: Any) -> None:
        b = self.b

        def body(j: Any, lanes: int, mask: Any) -> None:
            ends = [b.add(start, j) for start in (one, other)]
            values = [b.load(pointer, at, self.dtype, lanes, mask=mask) for at in ends]
            for at, value in zip(ends, reversed(values), strict=True):
                b.store(pointer, at, value, mask=mask)

        kernels.run(b, count, body)

    def _subtracted(
        self, pointer: Any, above: Sequence[Any], rows: Sequence[Any], factors: Sequence[Any], count: Any
    ) -> None:
        """Emit ``count`` elements of the rows without their factors times those at ``above``, in this order."""
        b = self.b

        def body(j: Any, lanes: int, mask: Any) -> None:
            known = [b.load(pointer, b.add(one, j), self.dtype, lanes, mask=mask) for one in above]
            for row, own in zip(rows, factors, strict=True):
                at = b.add(row, j)
                left = b.load(pointer, at, self.dtype, lanes, mask=mask)
                for factor, one in zip(own, known, strict=True):
                    left = b.fma(factor, one, left)
                b.store(pointer, at, left, mask=mask)

        kernels.run(b, count, body)

    def _without(self, pivots: Sequence[Any], rows: Sequence[Any], behind: Any) -> None:
        """Emit rows, behind the columns of the pivots and in X, without their multiples of the rows of the pivots."""
        b = self.b
        factors = [
            [b.splat(b.neg(b.load(self.copy, self._at(row, pivot), self.dtype))) for pivot in pivots]
            for row in rows
        ]
        above, below = ([self._at(row, behind) for row in some] for some in (pivots, rows))
        self._subtracted(self.copy, above, below, factors, b.sub(self.size, behind))
        above, below = ([self._row(row) for row in some] for some in (pivots, rows))
        self._subtracted(self.x, above, below, factors, self.columns)

    def _pivoted(self, column: Any, behind: Any, info: Any) -> Any:
        """Emit the exchange of the pivot's row, and the factors of the rows below for the columns up to ``behind``."""
        b = self.b
        row = self._pivot(column)
        with b.if_(b.cmp("ne", row, column)):
            self._exchanged(self.copy, self._at(column, 0), self._at(row, 0), self.size)
            self._exchanged(self.x, self._row(column), self._row(row), self.columns)
        pivot, after = b.load(self.copy, self._at(column, column), self.dtype), b.add(column, 1)
        with b.loop(after, self.size) as i:
            factor = b.div(b.load(self.copy, self._at(i, column), self.dtype), pivot)
            b.store(self.copy, self._at(i, column), factor)
            with b.loop(after, behind) as j:
                one = b.load(self.copy, self._at(column, j), self.dtype)
                old = b.load(self.copy, self._at(i, j), self.dtype)
                b.store(self.copy, self._at(i, j), b.fma(b.neg(factor), one, old))
        zero = b.and_(b.cmp("eq", pivot, 0), b.cmp("eq", info, 0))
        return b.select(zero, after, info)

    def _panel(self, first: Any, count: int, info: Any) -> Any:
        """Emit the elimination by ``count`` pivots, which touches each of the other elements once."""
        b = self.b
        pivots, behind = [b.add(first, p) for p in range(count)], b.add(first, count)
        for pivot in pivots:
            info = self._pivoted(pivot, behind, info)
        for p in range(1, count):
            self._without(pivots[:p], [pivots[p]], behind)
        whole = b.add(behind, b.and_(b.sub(self.size, behind), -_ROWS))
        with b.loop(behind, whole, _ROWS) as i:
            self._without(pivots, [b.add(i, r) for r in range(_ROWS)], behind)
        with b.loop(whole, self.size) as i:
            self._without(pivots, [i], behind)
        return info

    def eliminated(self) -> Any:
        """Emit the elimination below the diagonal; the number of the first pivot that is 0, or 0."""
        b = self.b
        whole = b.and_(self.size, -_PIVOTS)
        panels = b.loop(0, whole, _PIVOTS, carry=[b.const(0, int64)])
        with panels as (k, (info,)):
            b.loop_next([self._panel(k, _PIVOTS, info)])
        rest = b.loop(whole, self.size, carry=list(panels.results))
        with rest as (k, (info,)):
            b.loop_next([self._panel(k, 1, info)])
        return rest.results[0]


class Solution(MatrixKernel):
    """What the solution of systems and the inverse share; attributes ``(whether a singular matrix is an error,)``.

    Without an error a singular matrix gives NaN. A work item is a matrix.
    """

    checks = True
    fix = _FIX
    wrong = staticmethod(_text)

    def scratch(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """A copy of A."""
        return prod(inputs[0].shape) * output.dtype.itemsize

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return output.shape[-2], output.shape[-1]

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        size = output.shape[-2]
        return prod(output.shape[:-2]), kernels.grain(32768, size * size)

    def begin(self, b: Any, dtype: Any, target: Any, start: Any) -> None:
        """Emit what X starts as."""
        raise NotImplementedError

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype, (check,) = builder, output.dtype, attrs
        target, copy = b.buffer(len(inputs)), b.buffer(len(inputs) + 1)
        size, columns = b.param(0), b.param(1)
        with b.loop(b.begin, b.end) as matrix:
            code = Elimination(b, dtype, copy, target, matrix)
            kernels.copy(b, dtype, copy, code.first, b.input(0), code.first, b.mul(size, size))
            self.begin(b, dtype, target, code.start)
            info = code.eliminated()
            singular = b.if_(b.cmp("ne", info, 0))
            with singular:
                if check:
                    self.report(b, matrix, size, info)
                else:
                    nothing = b.const(numpy.nan, dtype)
                    kernels.fill(b, dtype, target, code.start, nothing, b.mul(size, columns))
            with singular.else_():
                Substitution(b, dtype, True, False, (copy, target, target)).emit(matrix, size, columns)


@custom
class real_inverse(Solution):
    """The inverses of real matrices: what turns the identity into A by elimination."""

    autograd_name = "LinalgInvExBackward0"
    title = "linalg.inv"

    def begin(self, b: Any, dtype: Any, target: Any, start: Any) -> None:
        """The identity."""
        size = b.param(0)
        kernels.fill(b, dtype, target, start, b.const(0, dtype), b.mul(size, size))
        with b.loop(0, size) as k:
            b.store(target, b.add(start, b.mul(k, b.add(size, 1))), b.const(1, dtype))

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        transposed = adjoint(output)
        return (-(transposed @ cotangent @ transposed),)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return regular(numpy.linalg.inv, arrays[0], *attrs)

    def samples(self) -> Sequence[Sample]:
        shapes = ((3, 3), (2, 1, 2, 2), (1, 1), (7, 7), (0, 0), (0, 2, 2))
        return [example((True,), well_conditioned(shape)) for shape in shapes]


@custom
class real_solution(Solution):
    """X with ``A X = B`` for real A; equal batch axes."""

    title = "linalg.solve"
    signature = "A, B"

    def type_of(self, attrs: Attributes, types: Sequence[TensorType]) -> TensorType:
        return types[1]

    def begin(self, b: Any, dtype: Any, target: Any, start: Any) -> None:
        """B."""
        kernels.copy(b, dtype, target, start, b.input(1), start, b.mul(b.param(0), b.param(1)))

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        right = apply("real_solution", adjoint(inputs[0]), cotangent, attrs=attrs)
        return -(right @ adjoint(output)), right

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return regular(numpy.linalg.solve, arrays[0], attrs[0], arrays[1])

    def samples(self) -> Sequence[Sample]:
        shapes = (
            ((3, 3), (3, 2)),
            ((2, 2, 2), (2, 2, 1)),
            ((7, 7), (7, 70)),
            ((0, 0), (0, 2)),
            ((2, 2), (2, 0)),
        )
        return [example((True,), well_conditioned(a), b) for a, b in shapes]
