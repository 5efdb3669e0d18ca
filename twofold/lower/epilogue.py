"""What becomes of the sums of a matrix product: a loop nest's values, computed sixteen columns at a time."""

from __future__ import annotations

import hashlib

from twofold.lower.builder import Builder
from twofold.lower.expression import Expression, Place
from twofold.lower.loopnest import LoopNest
from twofold.lower.values import LANES, Val


class NestEpilogue:
    """An ``Epilogue`` of a matrix product from a nest of the form ``epilogue``."""

    def __init__(self, nest: LoopNest, buffers: int) -> None:
        self.nest = nest
        self.buffers = buffers
        self.params = len(nest.parameters())
        self.key = "epilogue " + hashlib.sha256(repr(nest.key()).encode()).hexdigest()

    def emit(self, b: Builder, acc: Val, row: Val, col: Val, mask: Val | None, batch: Val) -> None:
        """Emit the nest for the sums ``acc`` of row ``row``, columns ``col`` to ``col`` + 15."""
        code, nest = Expression(self.nest, b), self.nest
        values: dict[int, Val] = {}
        pointers: list[Val | None] = [None] * len(code.accesses)
        place = Place(col, LANES, mask, pointers, values)
        for number, step in enumerate(nest.steps):
            if step.kind == "accumulator":
                values[number] = b.cast(acc, step.dtype)
                continue
            if step.access is not None:
                access = code.access_of(number)
                where = code.moved(access, code.start(access, values), range(2), [batch, row])
                pointers[access] = code.pointer(access, where)
            code.evaluate([number], place)
        for number in range(len(nest.stores)):
            access = code.access_of_store(number)
            where = code.moved(access, code.start(access, values), range(2), [batch, row])
            pointers[access] = code.pointer(access, where)
            code.store(number, place)
