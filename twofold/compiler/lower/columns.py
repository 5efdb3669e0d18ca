"""Loops of nests that reduce leading axes: sixteen columns at a time, each with the sixteen lanes of its sum.

The lanes of a column's sum lie in memory, one vector of columns per lane, so the order of additions is that
of a sum along a row. Reductions that combine their elements in order have one lane, which is a register.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.compiler.lower.addresses import decompose, divide, once
from twofold.compiler.lower.column_loops import Body, ColumnLoops, Pointers
from twofold.compiler.lower.expression import Expression, Position, weight
from twofold.compiler.lower.loopnest import BLOCK, block_length
from twofold.compiler.lower.reducing import Accumulators, Plan, combiner, positions_of
from twofold.compiler.lower.squares import ColumnSquares
from twofold.compiler.lower.values import LANES, Val
from twofold.compiler.lower.wide_columns import WideColumns
from twofold.dtypes import int64

_LIGHT = 6


class ColumnEmitter:
    """Emits the phases of sixteen columns."""

    def __init__(self, code: Expression, plan: Plan) -> None:
        self.code = code
        self.b = code.b
        self.plan = plan
        self.loops = ColumnLoops(code)
        self.lanes = code.nest.lanes
        self.memory: dict[tuple[int, int, int], Val] = {}
        self.squares = [ColumnSquares(code, LANES, steps) for steps in plan.elements]

    def block(
        self, pointers: Pointers, uniform: dict[int, Val], column: Val, width: Val, low: Val, high: Val
    ) -> None:
        """All phases over elements [low, high) of the columns from ``column`` on, of ``width`` in all."""
        code, plan, nest = self.code, self.plan, self.code.nest
        self.pointers, self.column = pointers, column
        self.columns = column, self.b.minimum(self.b.add(column, LANES), width)
        self.mask = mask = self.b.lane_mask(self.b.sub(width, column))
        self.low, self.high = low, high
        self.values = dict(uniform)
        at_columns = Position(column, LANES, mask, pointers, self.values)
        self.done: set[int] = set()
        for phase in range(plan.count):
            code.evaluate(plan.rows[phase], at_columns)
            if plan.reductions[phase] or plan.stores[phase]:
                self._phase(phase)
                self.done.update(plan.elements[phase])
        for number, store in enumerate(nest.stores):
            if store.row:
                code.store(number, at_columns)

    def _phase(self, phase: int) -> None:
        code, nest, plan = self.code, self.code.nest, self.plan
        steps = plan.reductions[phase]
        accumulators = Accumulators(self.b, [nest.steps[number].node for number in steps], positions_of(nest))
        self.memory.update(self._memory(phase, accumulators))

        def body(element: Val, pointers: Pointers, line: Val | int, held: Sequence[Val]) -> list[Val]:
            position = self._position(phase, pointers, line)
            self._evaluate(phase, position)
            for number in plan.stores[phase]:
                code.store(number, position)
            values = [code.widened(position.values[nest.steps[number].args[0]]) for number in steps]
            return self._add(phase, accumulators, element, values, held)

        totals, pairs = self._blocks(
            phase, nest.depth, accumulators, self.low, self.high, body, accumulators.fresh_indexed()
        )
        results = accumulators.in_order(totals, pairs[1::2])
        self.values.update(zip(steps, results, strict=True))

    def _position(self, phase: int, pointers: Pointers, line: Val | int) -> Position:
        squares = self.squares[phase]
        values, found = dict(self.values), squares.at(pointers, line)
        return Position(self.column, LANES, self.mask, found, values, squares.memory)

    def _evaluate(self, phase: int, position: Position) -> None:
        """The values at one element of each column; what an earlier phase kept is loaded."""
        for number in self.plan.elements[phase]:
            how = self.code.nest.kept.get(number)
            if number in self.done and how is not None:
                position.values[number] = self.code.reload(how, position)
            else:
                self.code.evaluate([number], position)

    def _memory(self, phase: int, accumulators: Accumulators) -> dict[tuple[int, int, int], Val]:
        depth = max(self.code.nest.depth, 0)
        return {
            (phase, level, number): self.b.alloca(node.inputs[0].type.dtype.compute, self.lanes * LANES)
            for level in range(depth + 1)
            for number, node in enumerate(accumulators.ordered)
        }

    def _add(
        self, phase: int, accumulators: Accumulators, element: Val, values: Sequence[Val], held: Sequence[Val]
    ) -> list[Val]:
        ordered = [v for node, v in zip(accumulators.nodes, values) if combiner(node)]
        carried: list[Val] = []
        if self._is_carried(phase, accumulators):
            before, held = held[: len(ordered)], held[len(ordered) :]
            carried = [
                self.b.combine(combiner(node), total, self.b.splat(value))
                for node, total, value in zip(accumulators.ordered, before, ordered, strict=True)
            ]
        else:
            self._join(phase, 0, accumulators, element, ordered)
        indexed = Accumulators(self.b, accumulators.indexed, accumulators.positions)
        others = [v for node, v in zip(accumulators.nodes, values) if not combiner(node)]
        return carried + indexed.add(
            held, others, self.b.splat(self.b.cast(element, indexed.positions)), None
        )

    def _join(
        self, phase: int, level: int, accumulators: Accumulators, element: Val, values: Sequence[Val]
    ) -> None:
        """Add a vector of columns to the lane of each sum that ``element`` falls on."""
        b = self.b
        lane = b.mul(b.and_(element, self.lanes - 1), LANES)
        for number, (node, value) in enumerate(zip(accumulators.ordered, values, strict=True)):
            memory = self.memory[phase, level, number]
            wide = b.splat(value)
            assert wide.dtype is not None
            before = b.load(memory, lane, wide.dtype, LANES)
            b.store(memory, lane, b.combine(combiner(node), before, wide), settle=False)

    def _blocks(
        self, phase: int, depth: int, accumulators: Accumulators, low: Val, high: Val, body: Body,
        pairs: Sequence[Val],
    ) -> tuple[list[Val], list[Val]]:  # fmt: skip
        """Totals of the ordered reductions over elements [low, high) of each column, and the carried pairs."""
        b = self.b
        if depth == 0 or not accumulators.ordered:
            if self._is_light(phase, accumulators):
                low = self._sixteen_rows(phase, accumulators, low, high)
            elif self._is_carried(phase, accumulators):
                sums = accumulators.fresh()
                after = self._elements(phase, low, high, [*sums, *pairs], body)
                return [b.opened(total) for total in after[: len(sums)]], after[len(sums) :]
            else:
                self._clear(phase, 0, accumulators)
            after = self._elements(phase, low, high, pairs, body)
            return self._tree(phase, 0, accumulators), after
        self._clear(phase, depth, accumulators)
        length = block_length(depth)
        count = b.shr(b.add(b.sub(high, low), length - 1), length.bit_length() - 1)
        loop = b.loop(0, count, carry=list(pairs))
        with loop as (block, held):
            start = b.add(low, b.mul(block, length))
            stop = b.minimum(b.add(start, length), high)
            totals, after = self._blocks(phase, depth - 1, accumulators, start, stop, body, held)
            self._join(phase, depth, accumulators, block, totals)
            b.loop_next(after)
        return self._tree(phase, depth, accumulators), loop.results

    def _elements(self, phase: int, low: Val, high: Val, carry: Sequence[Val], body: Body) -> list[Val]:
        return self.loops.elements(self.pointers, self.squares[phase], self.columns, low, high, carry, body)

    def _is_carried(self, phase: int, accumulators: Accumulators) -> bool:
        """Whether the sums, of one lane each, are registers from element to element."""
        return self.lanes == 1 and not self._is_light(phase, accumulators)

    def _is_light(self, phase: int, accumulators: Accumulators) -> bool:
        """Whether all lanes of the one sum fit into registers and its expression may be repeated for each."""
        steps = [self.code.nest.steps[number] for number in self.plan.elements[phase]]
        alone = len(accumulators.nodes) == len(accumulators.ordered) == 1 and not self.plan.stores[phase]
        return alone and self.loops.inner == 1 and weight(steps) <= _LIGHT

    def _sixteen_rows(self, phase: int, accumulators: Accumulators, low: Val, high: Val) -> Val:
        """Add whole groups of sixteen elements with the lanes in registers; gives where the rest begins."""
        b, code, nest = self.b, self.code, self.code.nest
        (node,) = accumulators.ordered
        (number,) = self.plan.reductions[phase]
        moved, last = self.loops.moved, self.loops.last
        whole = b.add(low, b.and_(b.sub(high, low), -LANES))
        loop = b.loop(low, whole, LANES, carry=accumulators.fresh() * self.lanes)
        with loop as (element, held):
            sums = list(held)
            first = moved(self.pointers, [last], [element])
            self.squares[phase].fill(first, *self.columns, b.const(LANES, int64))
            for row in range(LANES):
                position = self._position(phase, moved(self.pointers, [last], [b.add(element, row)]), row)
                self._evaluate(phase, position)
                value = b.splat(code.widened(position.values[nest.steps[number].args[0]]))
                lane = row % self.lanes
                sums[lane] = b.combine(combiner(node), sums[lane], value)
            b.loop_next(sums)
        for lane, total in enumerate(loop.results):
            b.store(self.memory[phase, 0, 0], lane * LANES, total, settle=False)
        return whole

    def _clear(self, phase: int, level: int, accumulators: Accumulators) -> None:
        b = self.b
        if accumulators.ordered:
            with b.loop(0, self.lanes * LANES, LANES) as lane:
                for number, start in enumerate(accumulators.fresh()):
                    b.store(self.memory[phase, level, number], lane, start)

    def _tree(self, phase: int, level: int, accumulators: Accumulators) -> list[Val]:
        b, totals = self.b, []
        for number, node in enumerate(accumulators.ordered):
            memory, dtype = self.memory[phase, level, number], node.inputs[0].type.dtype.compute
            lanes = [b.load(memory, lane * LANES, dtype, LANES) for lane in range(self.lanes)]
            while len(lanes) > 1:
                half = len(lanes) // 2
                lanes = [b.combine(combiner(node), lanes[k], lanes[k + half]) for k in range(half)]
            totals.append(b.opened(lanes[0]))
        return totals


def emit_columns(code: Expression) -> None:
    """A nest of the form ``columns`` or ``strips``: a work item is sixteen adjacent columns, or a block of them."""
    b, nest = code.b, code.nest
    uniform, starts = once(code)
    emitter, wide = ColumnEmitter(code, Plan(nest)), WideColumns(code)
    axis = len(nest.outer) - 1
    width = code.size(axis)
    groups = b.shr(b.add(width, nest.width - 1), nest.width.bit_length() - 1)
    reduced = code.size(axis + 1)
    for inner in range(axis + 2, axis + 1 + len(nest.inner)):
        reduced = b.mul(reduced, code.size(inner))
    with b.loop(b.begin, b.end) as item:
        row = divide(b, item, groups)
        column = b.mul(b.sub(item, b.mul(row, groups)), nest.width)
        coordinates = decompose(code, row, range(axis))
        pointers: list[Val | None] = [
            code.pointer(number, code.moved(number, where, range(axis), coordinates))
            for number, where in enumerate(starts)
        ]
        low, high = b.const(0, int64), reduced
        if nest.form == "strips":
            # the axis before the columns numbers the blocks
            low = b.mul(coordinates[-1], BLOCK)
            high = b.minimum(b.add(low, BLOCK), reduced)
        if nest.width > LANES:
            wide.block(pointers, uniform, column, b.minimum(b.add(column, nest.width), width), low, high)
        else:
            emitter.block(pointers, uniform, column, width, low, high)
