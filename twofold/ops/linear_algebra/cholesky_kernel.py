"""The kernel of the Cholesky factorisation of real matrices."""

from __future__ import annotations

from typing import Any

from twofold.ops import kernels
from twofold.ops.linear_algebra.triangular import rows_after_others

LANES = kernels.LANES
_ROWS = 4  # that are finished together, so that their products do not wait for each other
_VECTORS = 4  # of their columns


class Factorisation:
    """Writes the code for one matrix: rows of U with ``A = U^T U``, of which only one triangle is read.

    A row is that of A without the products of the rows above, subtracted by fused multiply-add in their order, over
    the root of what is left on the diagonal. Source: Golub & Van Loan, Matrix Computations (2013), section 4.2.
    """

    def __init__(self, b: Any, dtype: Any, upper: bool, matrix: Any) -> None:
        self.b, self.dtype, self.upper = b, dtype, upper
        self.size, self.target = b.param(0), b.buffer(1)
        square = b.mul(self.size, self.size)
        self.source_at, self.base = b.mul(matrix, square), b.mul(matrix, b.add(square, 1))

    def at(self, row: Any, column: Any) -> Any:
        """The position in the result."""
        return self.b.add(self.base, self.b.add(self.b.mul(row, self.size), column))

    def _scalar(self, row: Any, column: Any) -> Any:
        return self.b.load(self.target, self.at(row, column), self.dtype)

    def copied(self, first: Any) -> None:
        """Emit the triangle of A from row ``first`` on."""
        b = self.b
        with b.loop(first, self.size) as row, b.loop(row, self.size) as column:
            inner = (
                b.add(b.mul(row, self.size), column) if self.upper else b.add(b.mul(column, self.size), row)
            )
            value = b.load(b.input(0), b.add(self.source_at, inner), self.dtype)
            b.store(self.target, self.at(row, column), value)

    def factored(self) -> Any:
        """Emit the rows of U; the number of the first pivot that is not positive, or 0."""
        b = self.b
        whole = b.and_(self.size, -_ROWS)
        blocks = b.loop(0, whole, _ROWS, carry=[b.const(0, self.size.dtype)])
        with blocks as (row, (info,)):
            b.loop_next([self._rows(row, _ROWS, info)])
        rest = b.loop(whole, self.size, carry=list(blocks.results))
        with rest as (row, (info,)):
            b.loop_next([self._rows(row, 1, info)])
        return rest.results[0]

    def _rows(self, row: Any, count: int, info: Any) -> Any:
        b, step = self.b, _VECTORS * LANES
        info = self._columns(row, count, row, 1, b.lane_mask(b.sub(self.size, row)), info)
        begin = b.minimum(b.add(row, LANES), self.size)
        whole = b.add(begin, b.mul(b.idiv(b.sub(self.size, begin), step), step))
        with b.loop(begin, whole, step) as column:
            self._columns(row, count, column, _VECTORS, None, None)
        with b.loop(whole, self.size, LANES) as column:
            self._columns(row, count, column, 1, b.lane_mask(b.sub(self.size, column)), None)
        return info

    def _vectors(self, row: Any, column: Any, vectors: int, mask: Any) -> list[Any]:
        b = self.b
        starts = [self.at(row, b.add(column, v * LANES)) for v in range(vectors)]
        return [b.load(self.target, start, self.dtype, LANES, mask=mask) for start in starts]

    def _columns(self, row: Any, count: int, column: Any, vectors: int, mask: Any, info: Any) -> Any:
        """Emit some columns of ``count`` rows; with ``info`` those of the pivots."""
        b = self.b
        numbers = [b.add(row, k) for k in range(count)]
        infos = [info]

        def divided(r: int, left: list[Any]) -> list[Any]:
            number = numbers[r]
            if info is None:
                pivot = self._scalar(number, number)
            else:
                square = b.extract(left[0], r)
                bad = b.and_(b.not_(b.cmp("gt", square, 0)), b.cmp("eq", infos[-1], 0))
                infos.append(b.select(bad, b.add(number, 1), infos[-1]))
                pivot = b.sqrt(square)
            left = [b.div(one, b.splat(pivot)) for one in left]
            for v, one in enumerate(left):
                b.store(self.target, self.at(number, b.add(column, v * LANES)), one, mask=mask)
            if info is not None:
                b.store(self.target, self.at(number, number), pivot)
            return left

        rows_after_others(
            b,
            numbers,
            [self._vectors(number, column, vectors, mask) for number in numbers],
            lambda k: self._vectors(k, column, vectors, mask),
            lambda number, before: self._scalar(before, number),
            divided,
        )
        return infos[-1]

    def finished(self) -> None:
        """Emit zeros in the other triangle, and for a lower factor the exchange of the two."""
        b, zero = self.b, self.b.const(0, self.dtype)
        if self.upper:
            with b.loop(0, self.size) as row:
                kernels.fill(b, self.dtype, self.target, self.at(row, 0), zero, row)
            return
        with b.loop(0, self.size) as row, b.loop(b.add(row, 1), self.size) as column:
            b.store(self.target, self.at(column, row), self._scalar(row, column))
            b.store(self.target, self.at(row, column), zero)
