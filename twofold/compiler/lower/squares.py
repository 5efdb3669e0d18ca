"""Loads that lie along another axis than the lanes: squares of sixteen by sixteen elements, transposed on the stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from twofold.compiler.lower.expression import Expression
from twofold.compiler.lower.gemm_tile import transposed
from twofold.compiler.lower.values import LANES, Val
from twofold.dtypes import DType, uint8, uint16

_LATER = 4 * LANES
"""Elements by which a column is brought near before it is read."""


def _bits(dtype: DType) -> DType:
    """A dtype whose vectors may be shuffled as they lie in memory."""
    return uint8 if dtype.kind == "b" else uint16 if dtype.kind == "f" and dtype.itemsize == 2 else dtype


def square(code: Expression, access: int, count: int = 1) -> Val:
    """Memory on the stack for squares of a load, one behind the other."""
    return code.b.alloca(_bits(code.accesses[access].dtype), count * LANES * LANES)


def fill_square(
    code: Expression, access: int, memory: Val, pointer: Val, column: Val, last: Val, rows: Val
) -> None:
    """Store sixteen columns of a load, read along the rows of a mask, as sixteen rows of a square."""
    b, dtype = code.b, code.accesses[access].dtype
    stride = code.stride(access, code.vector_axis)
    vectors = []
    for k in range(LANES):
        position = b.add(column, k)
        mask = b.and_(rows, b.splat(b.cmp("lt", position, last)))
        begin = b.mul(position, stride)
        vectors.append(b.load(pointer, begin, _bits(dtype), LANES, mask=mask))
        b.prefetch(pointer, b.add(begin, _LATER), dtype)
    lines, names = transposed([vector.ref for vector in vectors], vectors[0].type, b._fresh()[1:] + "_")
    b._lines += lines
    for k, name in enumerate(names):
        b.store(memory, k * LANES, Val(name, _bits(dtype), LANES))


class ColumnSquares:
    """The loads of columns that lie along the reduced axis.

    Args:
        code: The nest's code.
        width: The number of columns.
        steps: The steps that are evaluated.
    """

    def __init__(self, code: Expression, width: int, steps: Iterable[int]) -> None:
        self.code = code
        wanted = set(steps)
        accesses = [code.access_of(number) for number in code.nest.transposed() if number in wanted]
        self.memory = {access: square(code, access, width // LANES) for access in accesses}

    def fill(self, pointers: Sequence[Val | None], first: Val, last: Val, rows: Val) -> None:
        """Read ``rows`` elements, at most sixteen, of the columns [first, last); pointers are those of element 0."""
        b = self.code.b
        mask = b.lane_mask(rows)
        for access, memory in self.memory.items():
            pointer = pointers[access]
            assert pointer is not None
            with b.loop(first, last, LANES) as column:
                begin = b.offset(
                    memory, b.mul(b.sub(column, first), LANES), _bits(self.code.accesses[access].dtype)
                )
                fill_square(self.code, access, begin, pointer, column, last, mask)

    def at(self, pointers: Sequence[Val | None], line: Val | int, offset: Val | int = 0) -> list[Val | None]:
        """Pointers of the columns from ``offset`` on where the squares hold the element on ``line``."""
        b, found = self.code.b, list(pointers)
        if not self.memory:
            return found
        where = b.mul(b.add(b.index(offset), b.index(line)), LANES)
        for access, memory in self.memory.items():
            found[access] = b.offset(memory, where, _bits(self.code.accesses[access].dtype))
        return found
