"""Kernels that run a recurrent cell over all steps of a sequence, forward and backward.

A row is one sequence of the batch at one step. The rows of a step lie together, those of sequences that have
ended left out, so sequences must be sorted by falling length; ``sizes`` says how many rows each step has. The
initial states are rows, too: before all others, or after them where time runs backwards. ``previous`` names
for every row the row of its state before.

Rows of different sequences never meet, so a work item takes some sequences through all steps, and threads
need not wait for each other. The products of one gate are accumulated by FMA in the order of the hidden
units, as in every matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from twofold.dtypes import DType, int64
from twofold.ops import kernels
from twofold.ops.sequence.recurrent_formulas import Cell, Lane, LaneFunctions

LANES = kernels.LANES
TILE = 4
"""Sequences whose products are summed at once: each weight loaded is used for so many."""
COLUMNS = 2
"""Vectors of hidden units summed at once on the way back."""

PARAMETERS = ("steps", "batch", "hidden", "rows")


class Frame:
    """What both directions share: sizes, the rows of a work item, and the walk over the steps."""

    def __init__(self, b: Any, cell: Cell, reverse: bool, dtype: DType, one: bool) -> None:
        self.b, self.cell, self.reverse, self.dtype = b, cell, reverse, dtype
        self.steps, self.batch, self.hidden, self.rows = (b.param(k) for k in range(len(PARAMETERS)))
        self.tile = 1 if one else TILE
        self.first = b.mul(b.begin, self.tile)
        self.last = b.minimum(b.mul(b.end, self.tile), self.batch)
        self.shift = b.index(0) if reverse else self.batch
        self.start = self.rows if reverse else b.index(0)
        """The first row of the initial states."""

    @contextmanager
    def walk(self, sizes: Any, forward: bool) -> Iterator[tuple[Any, Any, Any]]:
        """Over the steps in the order of time or against it: first row, its count, and that of the step behind.

        Rows count the initial ones. The step behind is the one that was walked before.
        """
        b, rising = self.b, forward != self.reverse
        begin = self.shift if rising else b.add(self.rows, self.shift)
        with b.loop(0, self.steps, carry=[begin, b.index(0)]) as (turn, (at, behind)):
            t = turn if rising else b.sub(b.sub(self.steps, 1), turn)
            count = b.load(sizes, t, int64)
            low = at if rising else b.sub(at, count)
            yield low, b.minimum(count, self.last), behind
            b.loop_next([b.add(at, count) if rising else low, count])

    def at(self, row: Any, parts: int, part: int) -> Any:
        """The element where a part of a row begins."""
        return self.b.mul(self.b.add(self.b.mul(row, parts), part), self.hidden)

    def tiles(self, first: Any, high: Any) -> Any:
        """A loop over tiles of the rows from ``first`` to ``high``."""
        return self.b.loop(first, high, self.tile)

    def members(self, row: Any, high: Any) -> list[Any]:
        """The rows of a tile; a row that is missing at the end is the last one again."""
        b = self.b
        return [b.minimum(b.add(row, k), b.sub(high, 1)) if k else row for k in range(self.tile)]

    def blocks(self, width: int) -> Any:
        """How many blocks of ``width`` hidden units there are."""
        return self.b.idiv(self.b.add(self.hidden, width - 1), width)

    def mask(self, unit: Any) -> Any:
        """The hidden units that exist of the vector from ``unit`` on."""
        return self.b.lane_mask(self.b.sub(self.hidden, unit))

    def load(self, pointer: Any, at: Any, unit: Any, mask: Any) -> Lane:
        """Sixteen units of a part."""
        return Lane(self.b, self.b.load(pointer, self.b.add(at, unit), self.dtype, LANES, mask=mask))

    def store(self, pointer: Any, at: Any, unit: Any, value: Any, mask: Any) -> None:
        """Write sixteen units of a part."""
        self.b.store(pointer, self.b.add(at, unit), value, mask=mask)

    def clear(self, pointer: Any, row: Any, parts: int, first: int, count: int) -> None:
        """Zeros in some parts of a row."""
        length = self.b.mul(self.hidden, count)
        kernels.fill(
            self.b, self.dtype, pointer, self.at(row, parts, first), self.b.const(0, self.dtype), length
        )

    def products(
        self, left: Any, starts: Sequence[Any], right: Any, begin: Any, depth: Any, vectors: int
    ) -> list[list[Any]]:
        """Per start the sums over ``depth`` of elements of ``left`` times lines of ``vectors`` of ``right``.

        At a time as many as there are registers for.
        """
        most = self.b.accumulators(self.dtype)
        rows = min(len(starts), most)
        width = max(v for v in range(1, vectors + 1) if vectors % v == 0 and (v * rows <= most or v == 1))
        sums: list[list[Any]] = [[] for _ in starts]
        for v in range(0, vectors, width):
            for r in range(0, len(starts), rows):
                some = self._sums(
                    left, starts[r : r + rows], right, begin, depth, range(v, v + width), vectors
                )
                for k, found in enumerate(some):
                    sums[r + k] += found
        return sums

    def _sums(
        self, left: Any, starts: Sequence[Any], right: Any, begin: Any, depth: Any, some: range, vectors: int
    ) -> list[list[Any]]:
        """Those of ``some`` vectors of each line."""
        b, dtype = self.b, self.dtype
        loop = b.loop(0, depth, carry=[b.const(0, dtype, LANES)] * (len(starts) * len(some)))
        with loop as (k, carried):
            line = b.add(begin, b.mul(k, vectors * LANES))
            weights = [b.load(right, b.add(line, v * LANES), dtype, LANES) for v in some]
            following: list[Any] = []
            for start in starts:
                factor = b.splat(b.load(left, b.add(start, k), dtype))
                for weight in weights:
                    following.append(b.fma(factor, weight, carried[len(following)]))
            b.loop_next(following)
        return [loop.results[r * len(some) : (r + 1) * len(some)] for r in range(len(starts))]


class Forward(Frame):
    """Emits the steps in the order of time; buffers as of the operation."""

    def emit(self) -> None:
        """The whole kernel."""
        b, cell = self.b, self.cell
        self.x, self.bias, self.weight, sizes, self.previous = (b.input(k) for k in range(5))
        self.target = b.buffer(5 + cell.states)
        with b.loop(self.first, self.last) as row:
            self._begin(row)
        with (
            self.walk(sizes, True) as (at, high, _),
            b.loop(0, self.blocks(LANES)) as block,
            self.tiles(self.first, high) as row,
        ):
            self._tile(at, high, block, row)

    def _begin(self, row: Any) -> None:
        """The initial states as a row."""
        b, cell = self.b, self.cell
        position = b.add(self.start, row)
        self.clear(self.target, position, cell.kept, 0, cell.kept - cell.states)
        for k in range(cell.states):
            to = self.at(position, cell.kept, cell.kept - cell.states + k)
            kernels.copy(b, self.dtype, self.target, to, b.input(5 + k), b.mul(row, self.hidden), self.hidden)

    def _before(self, at: Any, row: Any) -> Any:
        return self.b.load(self.previous, self.b.sub(self.b.add(at, row), self.shift), int64)

    def _tile(self, at: Any, high: Any, block: Any, row: Any) -> None:
        """One vector of hidden units of some rows: first their sums, kept where the gates will be."""
        b, cell = self.b, self.cell
        unit = b.mul(block, LANES)
        mask = self.mask(unit)
        rows = self.members(row, high)
        state = cell.kept - cell.states
        starts = [self.at(self._before(at, member), cell.kept, state) for member in rows]
        begin = b.mul(b.mul(block, self.hidden), cell.gates * LANES)
        sums = self.products(self.target, starts, self.weight, begin, self.hidden, cell.gates)
        for member, gates in zip(rows, sums, strict=True):
            for k, value in enumerate(gates):
                self.store(self.target, self.at(b.add(at, member), cell.kept, k), unit, value, mask)
        with b.loop(row, b.minimum(b.add(row, self.tile), high)) as member:
            self._step(at, member, unit, mask)

    def _step(self, at: Any, member: Any, unit: Any, mask: Any) -> None:
        b, cell = self.b, self.cell
        position = b.add(at, member)
        before = self._before(at, member)
        source = b.sub(position, self.shift)
        x = [self.load(self.x, self.at(source, cell.gates, k), unit, mask) for k in range(cell.gates)]
        s = [
            self.load(self.target, self.at(position, cell.kept, k), unit, mask)
            + self.load(self.bias, b.mul(self.hidden, k), unit, mask)
            for k in range(cell.gates)
        ]
        states = [
            self.load(self.target, self.at(before, cell.kept, cell.kept - cell.states + k), unit, mask)
            for k in range(cell.states)
        ]
        for k, part in enumerate(cell.step(LaneFunctions(b), x, s, states)):
            self.store(self.target, self.at(position, cell.kept, k), unit, part.value, mask)


class Backward(Frame):
    """Emits the steps against the order of time; buffers as of the operation."""

    def emit(self) -> None:
        """The whole kernel."""
        b, cell = self.b, self.cell
        self.cotangent, self.states, self.weight, sizes, self.previous = (b.input(k) for k in range(5))
        self.target = b.buffer(5)
        self.inner = cell.gates + len(cell.own)
        self.parts = self.inner + cell.states
        with b.loop(self.first, self.last) as row:
            self.clear(self.target, b.add(self.start, row), self.parts, 0, self.inner)
        with self.walk(sizes, False) as (at, high, behind):
            with b.loop(b.maximum(self.first, behind), high) as row:
                self.clear(self.target, b.add(at, row), self.parts, self.inner, cell.states)
            with b.loop(self.first, high) as row:
                self._step(at, row)
            with b.loop(0, self.blocks(COLUMNS * LANES)) as block, self.tiles(self.first, high) as row:
                self._tile(at, high, block, row)

    def _before(self, at: Any, row: Any) -> Any:
        return self.b.load(self.previous, self.b.sub(self.b.add(at, row), self.shift), int64)

    def _step(self, at: Any, row: Any) -> None:
        """The cotangents of all gates of one row."""
        b, cell = self.b, self.cell
        position, before = b.add(at, row), self._before(at, row)
        source = b.sub(position, self.shift)
        first = cell.kept - cell.states
        with b.loop(0, self.hidden, LANES) as unit:
            mask = self.mask(unit)
            given = [
                self.load(self.cotangent, self.at(source, cell.states, k), unit, mask)
                + self.load(self.target, self.at(position, self.parts, self.inner + k), unit, mask)
                for k in range(cell.states)
            ]
            kept = [
                self.load(self.states, self.at(position, cell.kept, k), unit, mask) for k in range(cell.kept)
            ]
            states = [
                self.load(self.states, self.at(before, cell.kept, first + k), unit, mask)
                for k in range(cell.states)
            ]
            gates, own, direct = cell.gradient(LaneFunctions(b), given, kept, states)
            for k, value in enumerate((*gates, *own)):
                self.store(self.target, self.at(position, self.parts, k), unit, value.value, mask)
            for k, share in enumerate(direct):
                value = b.const(0, self.dtype, LANES) if share is None else share.value
                self.store(self.target, self.at(before, self.parts, self.inner + k), unit, value, mask)

    def _tile(self, at: Any, high: Any, block: Any, row: Any) -> None:
        """What some rows pass on to the hidden states before them."""
        b, cell = self.b, self.cell
        rows = self.members(row, high)
        depth = b.mul(self.hidden, cell.gates)
        starts = [self.at(b.add(at, member), self.parts, 0) for member in rows]
        begin = b.mul(b.mul(block, depth), COLUMNS * LANES)
        sums = self.products(self.target, starts, self.weight, begin, depth, COLUMNS)
        for v in range(COLUMNS):
            unit = b.add(b.mul(block, COLUMNS * LANES), v * LANES)
            mask = self.mask(unit)
            positions = [self.at(self._before(at, member), self.parts, self.inner) for member in rows]
            # a row may stand twice in a tile: all are read before one is written
            direct = [self.load(self.target, position, unit, mask) for position in positions]
            for position, share, values in zip(positions, direct, sums, strict=True):
                self.store(self.target, position, unit, b.add(share.value, values[v]), mask)
