"""Sums of many columns at a time in one phase: every row is read as a run of whole cache lines."""

from __future__ import annotations

from collections.abc import Sequence

from twofold.compiler.lower.column_loops import ColumnLoops, Pointers
from twofold.compiler.lower.expression import Expression, Position, weight
from twofold.compiler.lower.loopnest import block_length
from twofold.compiler.lower.reducing import Accumulators, combiner, positions_of
from twofold.compiler.lower.squares import ColumnSquares
from twofold.compiler.lower.values import LANES, Val
from twofold.ir.node import Node

_LIGHT = 12


class WideColumns:
    """Emits a work item of ``nest.width`` columns; what varies along columns alone is computed where it is used."""

    def __init__(self, code: Expression) -> None:
        self.code = code
        self.b = code.b
        self.nest = code.nest
        self.lanes = code.nest.lanes
        self.loops = ColumnLoops(code)
        self.steps = [number for number, step in enumerate(self.nest.steps) if step.kind == "reduce"]
        nodes = [self.nest.steps[number].node for number in self.steps]
        self.accumulators = Accumulators(self.b, nodes, positions_of(self.nest))
        self.before = self._before_reductions()
        self.squares = ColumnSquares(code, code.nest.width, self.before)
        self.memory: list[list[Val]] = []
        self.whole = False

    def _before_reductions(self) -> list[int]:
        """The steps that sums and stores along whole columns need."""
        needed: set[int] = set()
        waiting = [self.nest.steps[number].args[0] for number in self.steps]
        waiting += [store.step for store in self.nest.stores if not store.row]
        while waiting:
            number = waiting.pop()
            if number not in needed and self.code.levels[number] > 0:
                needed.add(number)
                waiting += self.nest.steps[number].args
        return sorted(needed)

    def block(
        self, pointers: Pointers, uniform: dict[int, Val], first: Val, last: Val, low: Val, high: Val
    ) -> None:
        """Elements [low, high) of columns [first, last)."""
        b = self.b
        if not self.memory:
            self.memory = [
                [
                    b.alloca(node.inputs[0].type.dtype.compute, self.lanes * self.nest.width)
                    for node in self.accumulators.ordered
                ]
                for _ in range(self.nest.depth + 1)
            ]
        self.pointers, self.uniform, self.first, self.last = pointers, uniform, first, last
        if weight([self.nest.steps[number] for number in self.before]) <= _LIGHT:
            # items that are whole, as most are, need no masks and no inner loop
            branch = b.if_(b.cmp("eq", b.sub(last, first), self.nest.width))
            with branch:
                self.whole = True
                self._blocks(self.nest.depth, low, high)
            with branch.else_():
                self.whole = False
                self._blocks(self.nest.depth, low, high)
        else:
            self._blocks(self.nest.depth, low, high)
        with b.loop(first, last, LANES) as column:
            totals = self._tree(self.nest.depth, b.sub(column, first), b.sub(high, low))
            position = Position(column, LANES, b.lane_mask(b.sub(last, column)), pointers, dict(uniform))
            results = self.accumulators.in_order(totals, [])
            position.values.update(zip(self.steps, results, strict=True))
            self.code.evaluate(
                [number for number, level in enumerate(self.code.levels) if level == 1], position
            )
            for number, store in enumerate(self.nest.stores):
                if store.row:
                    self.code.store(number, position)

    def _blocks(self, depth: int, low: Val, high: Val) -> None:
        b = self.b
        if self.whole and self.lanes == 1:
            self._in_registers(low, high)
            return
        lanes = b.index(self.lanes) if depth else b.minimum(b.sub(high, low), self.lanes)
        for memory, start in zip(self.memory[depth], self.accumulators.fresh()):
            with b.loop(0, b.mul(lanes, self.nest.width), LANES) as lane:
                b.store(memory, lane, start)
        if depth == 0:
            self._elements(low, high, [])
            return
        length = block_length(depth)
        count = b.shr(b.add(b.sub(high, low), length - 1), length.bit_length() - 1)
        with b.loop(0, count) as block:
            start_at = b.add(low, b.mul(block, length))
            end = b.minimum(b.add(start_at, length), high)
            self._blocks(depth - 1, start_at, end)
            with b.loop(self.first, self.last, LANES) as column:
                offset = b.sub(column, self.first)
                self._join(depth, block, offset, self._tree(depth - 1, offset, b.sub(end, start_at)))

    def _in_registers(self, low: Val, high: Val) -> None:
        """Elements [low, high) of whole items, whose sums have one lane."""
        vectors, fresh = self.nest.width // LANES, self.accumulators.fresh()
        totals = iter(self._elements(low, high, fresh * vectors))
        for vector in range(vectors):
            for memory in self.memory[0]:
                self.b.store(memory, vector * LANES, next(totals), settle=False)

    def _elements(self, low: Val, high: Val, carry: Sequence[Val]) -> list[Val]:
        """Elements [low, high); ``carry`` are sums that are not in memory."""
        columns = self.first, self.last
        return self.loops.elements(self.pointers, self.squares, columns, low, high, carry, self._row)

    def _row(self, element: Val, pointers: Pointers, line: Val | int, held: Sequence[Val]) -> list[Val]:
        """One element of every column, on ``line`` of the squares."""
        b, sums = self.b, list(held)
        if not self.whole:
            with b.loop(self.first, self.last, LANES) as column:
                mask = b.lane_mask(b.sub(self.last, column))
                self._join(0, element, b.sub(column, self.first), self._vector(pointers, line, column, mask))
            return sums
        for number, offset in enumerate(range(0, self.nest.width, LANES)):
            values = self._vector(pointers, line, b.add(self.first, offset), None)
            if not sums:
                self._join(0, element, b.index(offset), values)
                continue
            for k, (node, value) in enumerate(zip(self.accumulators.ordered, values, strict=True)):
                at = number * len(values) + k
                sums[at] = b.combine(combiner(node), sums[at], b.splat(value))
        return sums

    def _vector(self, pointers: Pointers, line: Val | int, column: Val, mask: Val | None) -> list[Val]:
        """What one element of sixteen columns adds to their sums."""
        b, code = self.b, self.code
        pointers = self.squares.at(pointers, line, b.sub(column, self.first))
        position = Position(column, LANES, mask, pointers, dict(self.uniform), self.squares.memory)
        code.evaluate(self.before, position)
        for number, store in enumerate(self.nest.stores):
            if not store.row:
                code.store(number, position)
        return [code.widened(position.values[self.nest.steps[number].args[0]]) for number in self.steps]

    def _join(self, depth: int, element: Val, offset: Val, values: Sequence[Val]) -> None:
        """Add a vector of columns to the lane of each sum that ``element`` falls on."""
        b = self.b
        where = b.add(b.mul(b.and_(element, self.lanes - 1), self.nest.width), offset)
        for memory, node, value in zip(self.memory[depth], self.accumulators.ordered, values, strict=True):
            wide = b.splat(value)
            assert wide.dtype is not None
            before = b.load(memory, where, wide.dtype, LANES)
            b.store(memory, where, b.combine(combiner(node), before, wide), settle=False)

    def _tree(self, depth: int, offset: Val, count: Val) -> list[Val]:
        """The lanes of ``count`` elements combined."""
        b = self.b
        if depth or self.lanes == 1:
            return self._whole_tree(depth, offset)
        branch = b.if_(b.cmp("ge", count, self.lanes))
        with branch:
            branch.give(self._whole_tree(depth, offset))
        with branch.else_():
            branch.give(self._tree_of_few(offset, count))
        return branch.results

    def _whole_tree(self, depth: int, offset: Val) -> list[Val]:
        b, totals = self.b, []
        for memory, node in zip(self.memory[depth], self.accumulators.ordered):
            lanes = [self._lane(memory, node, b.index(lane), offset) for lane in range(self.lanes)]
            while len(lanes) > 1:
                half = len(lanes) // 2
                lanes = [b.combine(combiner(node), lanes[k], lanes[k + half]) for k in range(half)]
            totals.append(b.opened(lanes[0]))
        return totals

    def _tree_of_few(self, offset: Val, count: Val) -> list[Val]:
        """The same of fewer elements than lanes: what the other lanes begin with changes nothing."""
        b, totals = self.b, []
        for memory, node in zip(self.memory[0], self.accumulators.ordered):
            half = self.lanes // 2
            while half:
                pairs = b.maximum(b.sub(b.minimum(count, 2 * half), half), 0)
                with b.loop(0, pairs) as lane:
                    first, second = (self._lane(memory, node, b.add(lane, k), offset) for k in (0, half))
                    where = b.add(b.mul(lane, self.nest.width), offset)
                    b.store(memory, where, b.combine(combiner(node), first, second), settle=False)
                half //= 2
            totals.append(b.opened(self._lane(memory, node, b.index(0), offset)))
        return totals

    def _lane(self, memory: Val, node: Node, lane: Val, offset: Val) -> Val:
        where = self.b.add(self.b.mul(lane, self.nest.width), offset)
        return self.b.load(memory, where, node.inputs[0].type.dtype.compute, LANES)
