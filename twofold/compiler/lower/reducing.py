"""Loops of nests that reduce: phases over the inner axes of a row, lanes along the row or across columns.

A sum's order is fixed: in a block of 4096 elements, lane ``r mod 16`` accumulates element ``r``; a fixed tree
combines the lanes; the results of blocks are one more sequence, combined by the same rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twofold.compiler.lower.addresses import decompose, divide, once
from twofold.compiler.lower.builder import Builder
from twofold.compiler.lower.expression import Expression, Position, weight
from twofold.compiler.lower.loopnest import BLOCK, LoopNest, block_length, in_order
from twofold.compiler.lower.values import LANES, Val
from twofold.dtypes import DType, int32, int64
from twofold.ir.node import Node
from twofold.ir.op import ReductionOp

COMBINERS = {"sum": "sum", "prod": "prod", "max": "max", "min": "min", "any": "or", "all": "and"}
"""How a reduction's ``combine`` is called by the builder; ``argmax`` and ``argmin`` are pairs, see ``_ArgCarry``."""

_HEAVY = 48


class Plan:
    """Which steps each phase computes, what it reduces and stores."""

    def __init__(self, nest: LoopNest) -> None:
        levels, phases = nest.levels(), nest.phases()
        self.levels = levels
        self.rows: list[list[int]] = []
        self.reductions: list[list[int]] = []
        self.stores: list[list[int]] = []
        self.elements: list[list[int]] = []
        self.count = 1 + max(phases, default=0)
        reduce_steps = [number for number, step in enumerate(nest.steps) if step.kind == "reduce"]
        done: set[int] = set()
        for phase in range(self.count):
            self.rows.append([n for n, level in enumerate(levels) if level == 1 and phases[n] == phase])
            self.reductions.append([n for n in reduce_steps if phases[nest.steps[n].args[0]] == phase])
            self.stores.append(
                [k for k, store in enumerate(nest.stores) if not store.row and phases[store.step] == phase]
            )
            sinks = [nest.steps[n].args[0] for n in self.reductions[phase]]
            sinks += [nest.stores[k].step for k in self.stores[phase]]
            self.elements.append(self._needed(nest, sinks, done))
            done.update(self.elements[phase])

    def _needed(self, nest: LoopNest, sinks: Sequence[int], done: set[int]) -> list[int]:
        """The steps that vary along a row and lead to ``sinks``, stopping at what an earlier phase kept."""
        needed: set[int] = set()
        waiting = list(sinks)
        while waiting:
            number = waiting.pop()
            if number in needed or self.levels[number] < 2:
                continue
            needed.add(number)
            if number not in done or number not in nest.kept:
                waiting += nest.steps[number].args
        return sorted(needed)


def combination(node: Node) -> str:
    """The name of how a reduction combines."""
    assert isinstance(node.op, ReductionOp)
    return node.op.combine


def combiner(node: Node) -> str:
    """The name by which the builder knows how a reduction combines; empty for an index of an extreme."""
    return COMBINERS.get(combination(node), "")


def positions_of(nest: LoopNest) -> DType:
    """The integers that hold the number of any reduced element; narrow ones take half the registers."""
    return int32 if nest.depth <= 1 else int64


def _value_dtype(node: Node) -> DType:
    return node.inputs[0].type.dtype.compute


class Accumulators:
    """The running values of one phase's reductions, as a flat list of vectors that loops carry.

    A sum or extreme is one vector; the index of an extreme is a pair of value and index, whose result does not
    depend on order, so it runs through all blocks.
    """

    def __init__(self, b: Builder, nodes: Sequence[Node], positions: DType) -> None:
        self.b = b
        self.nodes = nodes
        self.positions = positions
        self.ordered = [node for node in nodes if combiner(node)]
        self.indexed = [node for node in nodes if not combiner(node)]

    def fresh(self) -> list[Val]:
        """Starting values of the ordered reductions."""
        b = self.b
        return [
            # -0.0 is what leaves every number as it is when added to
            b.const(-0.0, _value_dtype(node), LANES)
            if in_order(node)
            else b.splat(b.identity(combiner(node), _value_dtype(node)))
            for node in self.ordered
        ]

    def fresh_indexed(self) -> list[Val]:
        """Starting pairs of the reductions that give an index."""
        b, pairs = self.b, []
        for node in self.indexed:
            pairs.append(b.splat(b.identity(_extreme(node), _value_dtype(node))))
            pairs.append(b.const((1 << 8 * self.positions.itemsize - 1) - 1, self.positions, LANES))
        return pairs

    def numbered(self, element: Val | int) -> Val:
        """The numbers of sixteen elements, the first of which is given."""
        b = self.b
        return b.add(b.cast(b.index(element), self.positions), b.cast(b.iota(), self.positions))

    def add(self, state: Sequence[Val], values: Sequence[Val], position: Val, mask: Val | None) -> list[Val]:
        """``state`` (ordered, then pairs) with one vector of elements added to each."""
        b, result, pairs = self.b, [], []
        at = len(self.ordered)
        held = iter(state)
        for node, value in zip(self.nodes, values, strict=True):
            value = b.splat(value)
            if combiner(node):
                before = next(held)
                after = b.combine(combiner(node), before, value)
                result.append(after if mask is None else b.select(mask, after, before))
            else:
                pairs += self._better(node, state[at], state[at + 1], value, position, mask)
                at += 2
        return result + pairs

    def _better(
        self, node: Node, best: Val, where: Val, value: Val, position: Val, mask: Val | None
    ) -> list[Val]:
        b = self.b
        better = b.cmp("gt" if _extreme(node) == "max" else "lt", value, best)
        if _value_dtype(node).kind == "f":
            better = b.or_(better, b.and_(b.is_nan(value), b.not_(b.is_nan(best))))
        # the first element wins even when it equals the identity
        better = b.or_(better, b.and_(b.cmp("eq", value, best), b.cmp("lt", position, where)))
        if mask is not None:
            better = b.and_(better, mask)
        return [b.select(better, value, best), b.select(better, position, where)]

    def totals(self, vectors: Sequence[Val]) -> list[Val]:
        """The lanes of the ordered reductions combined by the fixed tree."""
        return [
            self.b.reduce_lanes(combiner(node), vector)
            for node, vector in zip(self.ordered, vectors, strict=True)
        ]

    def indices(self, pairs: Sequence[Val]) -> list[Val]:
        """The first index of the extreme among the lanes."""
        b, result = self.b, []
        for position, node in enumerate(self.indexed):
            best, where = pairs[2 * position], pairs[2 * position + 1]
            top = b.splat(b.reduce_lanes(_extreme(node), best))
            chosen = b.cmp("eq", best, top)
            if _value_dtype(node).kind == "f":
                chosen = b.or_(chosen, b.and_(b.is_nan(best), b.is_nan(top)))
            result.append(b.reduce_lanes("min", where, chosen))
        return result

    def in_order(self, totals: Sequence[Val], indices: Sequence[Val]) -> list[Val]:
        """Results in the order of ``nodes``, each in its own dtype."""
        ordered, indexed = iter(totals), iter(indices)
        return [
            self.b.cast(next(ordered) if combiner(node) else next(indexed), node.type.dtype)
            for node in self.nodes
        ]


def _extreme(node: Node) -> str:
    return combination(node)[3:]


Body = Callable[[Val, "Val | int", "Val | None", Sequence[Val]], "list[Val]"]
"""What a sweep does at one vector: (index along the last axis, element number, mask, carried) -> carried."""


class RowSweep:
    """Loops over the inner axes of one row, in order, sixteen elements at a time."""

    def __init__(self, code: Expression, pointers: Sequence[Val | None], light: bool) -> None:
        self.code = code
        self.row = pointers
        self.light = light
        self.pointers = list(pointers)
        self.split = len(code.nest.outer)
        self.inner = len(code.nest.inner)
        self.length = code.size(self.split + self.inner - 1)

    def chunks(self, low: Val, high: Val, carry: Sequence[Val], body: Body) -> list[Val]:
        """Elements [low, high) of the row, ``low`` being a multiple of 16."""
        if self.inner == 1:
            self.pointers = list(self.row)
            return self._run(low, high, carry, lambda i, mask, held: body(i, i, mask, held))
        return self._segments(low, high, carry, body)

    def _run(
        self,
        low: Val,
        high: Val,
        carry: Sequence[Val],
        body: Callable[[Val, Val | None, Sequence[Val]], list[Val]],
    ) -> list[Val]:
        b = self.code.b
        if not self.light:
            loop = b.loop(low, high, LANES, carry=list(carry))
            with loop as (i, held):
                b.loop_next(body(i, b.lane_mask(b.sub(high, i)), held))
            return loop.results
        whole = b.add(low, b.and_(b.sub(high, low), -LANES))
        loop = b.loop(low, whole, LANES, carry=list(carry))
        with loop as (i, held):
            b.loop_next(body(i, None, held))
        branch = b.if_(b.cmp("lt", whole, high))
        with branch:
            branch.give(body(whole, b.lane_mask(b.sub(high, whole)), loop.results))
        with branch.else_():
            branch.give(loop.results)
        return branch.results

    def _segments(self, low: Val, high: Val, carry: Sequence[Val], body: Body) -> list[Val]:
        """Runs along the last axis, each begun at the lane that its first element falls on."""
        b = self.code.b
        first = divide(b, low, self.length)
        last = divide(b, b.add(high, b.sub(self.length, 1)), self.length)
        loop = b.loop(first, last, carry=list(carry))
        with loop as (segment, held):
            origin = b.mul(segment, self.length)
            start = b.maximum(b.sub(low, origin), 0)
            stop = b.minimum(b.sub(high, origin), self.length)
            aligned = b.sub(start, b.and_(b.add(origin, start), LANES - 1))
            axes = range(self.split, self.split + self.inner - 1)
            coordinates = decompose(self.code, segment, axes)
            self.pointers = [
                self._moved(number, pointer, axes, coordinates) for number, pointer in enumerate(self.row)
            ]

            def masked(i: Val, inside: Sequence[Val]) -> list[Val]:
                lane = b.iota(i)
                mask = b.and_(b.cmp("ge", lane, b.splat(start)), b.cmp("lt", lane, b.splat(stop)))
                return body(i, b.add(origin, i), mask, inside)

            def whole(i: Val, inside: Sequence[Val]) -> list[Val]:
                return body(i, b.add(origin, i), None, inside)

            if self.light:
                b.loop_next(self._vectors(aligned, start, stop, held, masked, whole))
            else:
                b.loop_next(self._each(aligned, stop, held, masked))
        return loop.results

    def _each(
        self, low: Val, high: Val, carry: Sequence[Val], vector: Callable[[Val, Sequence[Val]], list[Val]]
    ) -> list[Val]:
        b = self.code.b
        run = b.loop(low, high, LANES, carry=list(carry))
        with run as (i, inside):
            b.loop_next(vector(i, inside))
        return run.results

    def _vectors(
        self,
        aligned: Val,
        start: Val,
        stop: Val,
        carry: Sequence[Val],
        masked: Callable[[Val, Sequence[Val]], list[Val]],
        whole: Callable[[Val, Sequence[Val]], list[Val]],
    ) -> list[Val]:
        """The vectors from ``aligned`` on that [start, stop) meets, in order: masks only where it fills one in part.

        Two iterations, of a masked vector and whole ones, so that each is emitted once: the second has the last vector.
        """
        b = self.code.b
        first = b.select(b.cmp("lt", aligned, start), b.add(aligned, LANES), aligned)
        last = b.maximum(b.add(aligned, b.and_(b.sub(stop, aligned), -LANES)), first)
        both = b.loop(0, 2, carry=list(carry))
        with both as (number, held):
            begins = b.cmp("eq", number, 0)
            at = b.select(begins, aligned, last)
            branch = b.if_(b.cmp("lt", at, b.select(begins, first, stop)))
            with branch:
                branch.give(masked(at, held))
            with branch.else_():
                branch.give(held)
            b.loop_next(self._each(b.select(begins, first, last), last, branch.results, whole))
        return both.results

    def _moved(self, number: int, pointer: Val | None, axes: range, coordinates: Sequence[Val]) -> Val | None:
        if pointer is None:
            return None
        b, access = self.code.b, self.code.accesses[number]
        where = self.code.moved(number, b.const(0, int64), axes, coordinates)
        return b.add(pointer, where) if access.slot < 0 else b.offset(pointer, where, access.dtype)


class RowEmitter:
    """Emits the phases of one row."""

    def __init__(self, code: Expression, plan: Plan) -> None:
        self.code = code
        self.plan = plan
        self.b = code.b
        nest = code.nest
        self.stacks = {
            step: code.b.alloca(nest.steps[step].dtype, BLOCK) for step, how in nest.kept.items() if how < 0
        }
        self.values: dict[int, Val] = {}
        self.elements: dict[int, Val] = {}
        self.lie: dict[int, Val] = {}

    def row(self, pointers: Sequence[Val | None], uniform: dict[int, Val], low: Val, high: Val) -> None:
        """All phases over elements [low, high) of the row whose accesses begin at ``pointers``."""
        code, plan = self.code, self.plan
        self.pointers = pointers
        self.values = dict(uniform)
        self.elements = {}
        self.low, self.high = low, high
        self.lie = self._begin_vectors() if code.nest.streams else {}
        at_row = Position(0, 1, None, pointers, self.values)
        done: set[int] = set()
        for phase in range(plan.count):
            code.evaluate(plan.rows[phase], at_row)
            if plan.reductions[phase] or plan.stores[phase]:
                self._phase(phase, done)
                done.update(plan.elements[phase])
        for number, store in enumerate(code.nest.stores):
            if store.row:
                code.store(number, at_row)

    def _begin_vectors(self) -> dict[int, Val]:
        """For each store that may write past the caches, whether the row begins where a vector does."""
        found = {}
        for number in self.code.nest.streamed:
            access = self.code.access_of_store(number)
            pointer = self.pointers[access]
            assert pointer is not None
            found[number] = self.b.begins_vector(pointer, self.low, self.code.accesses[access].dtype)
        return found

    def _phase(self, phase: int, done: set[int]) -> None:
        code, nest = self.code, self.code.nest
        steps = self.plan.reductions[phase]
        accumulators = Accumulators(self.b, [nest.steps[number].node for number in steps], positions_of(nest))
        light = weight([nest.steps[number] for number in self.plan.elements[phase]]) <= _HEAVY
        sweep = RowSweep(code, self.pointers, light)

        def body(index: Val, element: Val | int, mask: Val | None, held: Sequence[Val]) -> list[Val]:
            offset = Position(index, LANES, mask, sweep.pointers, dict(self.values))
            offset.values.update(self.elements)
            self._elements(phase, offset, element, done)
            values = [code.widened(offset.values[nest.steps[number].args[0]]) for number in steps]
            if nest.depth < 0:
                self.elements = {n: v for n, v in offset.values.items() if self.plan.levels[n] == 2}
            if not steps:
                return []
            return accumulators.add(held, values, accumulators.numbered(element), mask)

        totals, pairs = self._blocks(nest.depth, sweep, accumulators, self.low, self.high, body)
        results = accumulators.in_order(totals, accumulators.indices(pairs))
        self.values.update(zip(steps, results, strict=True))

    def _elements(self, phase: int, index: Position, element: Val | int, done: set[int]) -> None:
        """The values that vary along the row, what was kept taken from where it is kept; then the stores."""
        code, b, nest = self.code, self.b, self.code.nest
        for number in self.plan.elements[phase]:
            if number in index.values:
                continue
            how = nest.kept.get(number)
            if number in done and how is not None:
                if how >= 0:
                    index.values[number] = code.reload(how, index)
                else:
                    dtype = nest.steps[number].dtype
                    index.values[number] = b.load(self.stacks[number], element, dtype, LANES, mask=index.mask)
                continue
            code.evaluate([number], index)
            if how is not None and how < 0:
                b.store(self.stacks[number], element, b.splat(index.values[number]), mask=index.mask)
        for number in self.plan.stores[phase]:
            code.store(number, index, streams=self.lie.get(number) if index.mask is None else None)

    def _blocks(
        self, depth: int, sweep: RowSweep, accumulators: Accumulators, low: Val, high: Val, body: Body,
        pairs: Sequence[Val] | None = None,
    ) -> tuple[list[Val], list[Val]]:  # fmt: skip
        """Totals of the ordered reductions over [low, high), and the carried pairs of the others."""
        b = self.b
        ordered = len(accumulators.ordered)
        pairs = accumulators.fresh_indexed() if pairs is None else pairs
        fresh = accumulators.fresh()
        if depth < 0:
            state = body(low, 0, b.lane_mask(high), [*fresh, *pairs])
            return accumulators.totals(state[:ordered]), state[ordered:]
        if depth == 0 or not ordered:
            state = sweep.chunks(low, high, [*fresh, *pairs], body)
            return accumulators.totals(state[:ordered]), state[ordered:]
        length = block_length(depth)
        count = b.shr(b.add(b.sub(high, low), length - 1), length.bit_length() - 1)
        loop = b.loop(0, count, carry=[*fresh, *pairs])
        with loop as (block, held):
            start = b.add(low, b.mul(block, length))
            stop = b.minimum(b.add(start, length), high)
            totals, after = self._blocks(depth - 1, sweep, accumulators, start, stop, body, held[ordered:])
            lane = b.cmp("eq", b.iota(), b.splat(b.and_(block, LANES - 1)))
            joined = [
                b.select(lane, b.combine(combiner(node), before, b.splat(total)), before)
                for node, before, total in zip(accumulators.ordered, held, totals)
            ]
            b.loop_next([*joined, *after])
        return accumulators.totals(loop.results[:ordered]), loop.results[ordered:]


def emit_rows(code: Expression) -> None:
    """A nest of the form ``rows`` or ``blocks``."""
    b, nest = code.b, code.nest
    uniform, starts = once(code)
    emitter = RowEmitter(code, Plan(nest))
    reduced = code.size(len(nest.outer))
    for axis in range(len(nest.outer) + 1, len(nest.outer) + len(nest.inner)):
        reduced = b.mul(reduced, code.size(axis))
    with b.loop(b.begin, b.end) as item:
        coordinates = decompose(code, item, range(len(nest.outer)))
        pointers: list[Val | None] = [
            code.pointer(number, code.moved(number, where, range(len(nest.outer)), coordinates))
            for number, where in enumerate(starts)
        ]
        low, high = b.const(0, int64), reduced
        if nest.form == "blocks":
            # the last outer axis numbers the blocks
            low = b.mul(coordinates[-1], BLOCK)
            high = b.minimum(b.add(low, BLOCK), reduced)
        emitter.row(pointers, uniform, low, high)
