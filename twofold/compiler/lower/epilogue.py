"""What becomes of the sums of a matrix product: a loop nest's values, computed sixteen columns at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twofold.compiler.lower.addresses import once
from twofold.compiler.lower.builder import Builder
from twofold.compiler.lower.expression import Expression, Position, weight
from twofold.compiler.lower.loopnest import LoopNest
from twofold.compiler.lower.values import LANES, Val
from twofold.hashing import content_hash


class NestEpilogue:
    """An ``Epilogue`` of a matrix product from a nest of the form ``epilogue``."""

    def __init__(self, nest: LoopNest, buffers: int) -> None:
        self.nest = nest
        self.buffers = buffers
        self.params = len(nest.parameters())
        self.streams = len(self._along_columns())
        self.instructions = weight(nest.steps) + len(list(nest.accesses()))
        self._builder: Builder | None = None
        self._values: dict[int, Val] = {}
        self.key = "epilogue " + content_hash(repr(nest.key()).encode()).hexdigest()

    def emit(self, b: Builder, acc: Val, row: Val, col: Val, mask: Val | None, batch: Val) -> None:
        """Emit the nest for the sums ``acc`` of row ``row``, columns ``col`` to ``col`` + 15."""
        code, nest = Expression(self.nest, b), self.nest
        values = self._uniform(code)
        pointers: list[Val | None] = [None] * len(code.accesses)
        position = Position(col, LANES, mask, pointers, values)
        for number, step in enumerate(nest.steps):
            if number in values:
                continue
            if step.kind == "accumulator":
                values[number] = b.cast(b.opened(acc), step.dtype)
                continue
            if step.access is not None:
                access = code.access_of(number)
                where = code.moved(access, code.start(access, values), range(2), [batch, row])
                pointers[access] = code.pointer(access, where)
            code.evaluate([number], position)
        for number in range(len(nest.stores)):
            access = code.access_of_store(number)
            where = code.moved(access, code.start(access, values), range(2), [batch, row])
            pointers[access] = code.pointer(access, where)
            code.store(number, position)

    def bring_near(self, b: Builder, row: Val, col: Val, batch: Val) -> None:
        """Emit prefetches of what lies along the columns among the memory that `emit` reads and writes."""
        code = Expression(self.nest, b)
        for number in self._along_columns():
            access = code.accesses[number]
            where = code.moved(number, code.start(number, {}), range(2), [batch, row])
            written = number >= code.access_of_store(0)
            b.prefetch(b.buffer(access.slot), b.add(where, col), access.dtype, written)

    def _along_columns(self) -> list[int]:
        """The accesses whose elements for the columns of a row are contiguous, at a known offset."""
        axis = self.nest.vector_axis
        return [
            number
            for number, access in enumerate(self.nest.accesses())
            if access.slot >= 0 and not access.dynamic and access.strides[axis] == 1
        ]

    def _uniform(self, code: Expression) -> dict[int, Val]:
        """What does not vary over the product, computed once at the kernel's entry.

        Python scalars meet there in float64, whose division would cost more than a row of sums.
        """
        varying: set[int] = set()
        uniform = []
        for number, step in enumerate(self.nest.steps):
            moves = step.access is not None and any(step.access.strides)
            if step.kind == "accumulator" or moves or any(argument in varying for argument in step.args):
                varying.add(number)
            else:
                uniform.append(number)
        if self._builder is not code.b:
            self._builder, self._values = code.b, {}
            with at_entry(code.b):
                self._values, _ = once(code, uniform, ends=False)
        return dict(self._values)


@contextmanager
def at_entry(b: Builder) -> Iterator[None]:
    """Within it, instructions go to the entry of the kernel, after what stands there and before all else.

    Used once for a builder: a branch ends the block that is called entry.
    """
    lines, known, scopes, before = b._lines, b._known, b._scopes, b._block
    # what is known where the kernel stands now need not be known at its entry
    b._lines, b._known, b._scopes, b._block = b._entry, {}, [], "entry"
    try:
        yield
    finally:
        b._lines, b._known, b._scopes, b._block = lines, known, scopes, before
