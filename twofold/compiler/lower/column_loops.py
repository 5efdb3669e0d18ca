"""Loops over the elements that the columns of a nest reduce, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twofold.compiler.lower.addresses import decompose, divide
from twofold.compiler.lower.expression import Expression
from twofold.compiler.lower.squares import ColumnSquares
from twofold.compiler.lower.values import LANES, Val
from twofold.dtypes import int64

Pointers = Sequence["Val | None"]
Body = Callable[[Val, Pointers, "Val | int", Sequence[Val]], "list[Val]"]
"""Emits one element: its number, its pointers, its line of the squares, what is carried; gives what is carried on."""


class ColumnLoops:
    """Emits the loops of one nest."""

    def __init__(self, code: Expression) -> None:
        self.code, self.b = code, code.b
        self.split, self.inner = len(code.nest.outer), len(code.nest.inner)
        self.last = self.split + self.inner - 1

    def moved(self, pointers: Pointers, axes: Sequence[int], coordinates: Sequence[Val]) -> list[Val | None]:
        """Pointers at coordinates along some axes."""
        b, result = self.b, []
        for number, pointer in enumerate(pointers):
            access = self.code.accesses[number]
            if pointer is not None and any(access.strides[axis] for axis in axes):
                where = self.code.moved(number, b.const(0, int64), axes, coordinates)
                pointer = b.add(pointer, where) if access.slot < 0 else b.offset(pointer, where, access.dtype)
            result.append(pointer)
        return result

    def elements(
        self,
        pointers: Pointers,
        squares: ColumnSquares,
        columns: tuple[Val, Val],
        low: Val,
        high: Val,
        carry: Sequence[Val],
        body: Body,
    ) -> list[Val]:
        """Every element [low, high) of columns [first, last).

        Args:
            pointers: Those of the first element.
            squares: The loads that are read in squares.
            columns: The first column, and the one behind the last.
            low: The first element.
            high: The element behind the last.
            carry: What the first element is given.
            body: Emits an element.

        Returns:
            What the last element gives.
        """
        b, code = self.b, self.code
        if self.inner == 1:
            return self._run(pointers, squares, columns, b.const(0, int64), (low, high), carry, body)
        length = code.size(self.last)
        first, end = divide(b, low, length), divide(b, b.add(high, b.sub(length, 1)), length)
        loop = b.loop(first, end, carry=list(carry))
        with loop as (segment, held):
            origin = b.mul(segment, length)
            axes = range(self.split, self.last)
            at_segment = self.moved(pointers, axes, decompose(code, segment, axes))
            part = b.maximum(b.sub(low, origin), 0), b.minimum(b.sub(high, origin), length)
            b.loop_next(self._run(at_segment, squares, columns, origin, part, held, body))
        return loop.results

    def _run(
        self,
        pointers: Pointers,
        squares: ColumnSquares,
        columns: tuple[Val, Val],
        origin: Val,
        part: tuple[Val, Val],
        carry: Sequence[Val],
        body: Body,
    ) -> list[Val]:
        """The elements of a part along the last axis, of which ``origin`` elements are before the first."""
        b = self.b

        def rows(first: Val, end: Val, given: Sequence[Val]) -> list[Val]:
            loop = b.loop(first, end, carry=list(given))
            with loop as (i, held):
                line = b.sub(i, first) if squares.memory else 0
                b.loop_next(body(b.add(origin, i), self.moved(pointers, [self.last], [i]), line, held))
            return loop.results

        if not squares.memory:
            return rows(*part, carry)
        blocks = b.loop(*part, LANES, carry=list(carry))
        with blocks as (begin, held):
            end = b.minimum(b.add(begin, LANES), part[1])
            squares.fill(self.moved(pointers, [self.last], [begin]), *columns, b.sub(end, begin))
            b.loop_next(rows(begin, end, held))
        return blocks.results
