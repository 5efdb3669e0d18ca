"""Lowering of fusion groups to loop nests: merged instructions, collapsed axes, vectorised axis, kept values, grain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from twofold.compiler.lower import target
from twofold.compiler.lower.expression import operation_cost
from twofold.compiler.lower.loopnest import (
    BLOCK,
    WIDE,
    Access,
    LoopNest,
    Step,
    Store,
    in_order,
    piece_length,
)
from twofold.compiler.lower.reducing import combiner
from twofold.compiler.lower.values import LANES
from twofold.compiler.schedule.fused_expressions import FusedExpression
from twofold.compiler.schedule.fusion_groups import FusionGroup, map_strides
from twofold.ir.node import Node
from twofold.ir.sizes import is_symbolic, maximum

BufferKey = Any
"""A buffer: ``("value", node id)``, ``("input", number)``, ``("output", number)`` or ``("scratch", number)``."""

RECOMPUTE = 12
"""Most instructions of a value that a later phase of a row recomputes rather than loads."""

_GRAIN_NANOSECONDS = 15_000
_STACK_BYTES = 64 * 1024

_STREAM_BYTES = 32 << 20
"""More than a share of the last level cache holds."""


class Kernel:
    """A loop nest with its buffers, the number of its work items, and the grain of a thread."""

    __slots__ = ("buffers", "grain", "nest", "nodes", "scratch", "work")

    def __init__(self, nest: LoopNest, buffers: list[BufferKey], nodes: list[Node]) -> None:
        self.nest = nest
        self.buffers = buffers
        self.nodes = nodes
        self.scratch: dict[BufferKey, int] = {}
        self.work = 0
        self.grain = 1


class NestBuilder:
    """Builds the loop nest of a group.

    Args:
        group: The group.
        stored: The buffers that the result of an expression is stored to.
    """

    def __init__(self, group: FusionGroup, stored: Callable[[FusedExpression], list[BufferKey]]) -> None:
        self.group = group
        self.rank = len(group.sizes)
        self.steps: list[Step] = []
        self.raw: list[
            tuple[int, ...] | None
        ] = []  # strides of the access of each step, over the axes of the group
        self.stores: list[Store] = []
        self.raw_stores: list[tuple[int, ...]] = []
        self.buffers: list[BufferKey] = []
        self._slots: dict[BufferKey, int] = {}
        self._known: dict[Any, int] = {}
        self._value: dict[int, int] = {}  # id of the root of an expression -> step
        self._stored = stored

    def build(self) -> Kernel:
        """The kernel of a group of loops."""
        self._collect()
        kernel = self._arrange()
        self._distribute(kernel)
        return kernel

    # Instructions

    def _collect(self) -> None:
        expressions = sorted(self.group.expressions, key=lambda expression: expression.number)
        results: list[tuple[FusedExpression, int]] = []
        for expression in expressions:
            number = self._expression(expression)
            if expression.output < 0:
                self._value[expression.root.id] = number
            results.append((expression, number))
        for expression, number in results:
            for buffer in self._stored(expression):
                access = Access(self._slot(buffer), expression.root.type.dtype, 0, ())
                self.stores.append(Store(number, access, expression.number in self.group.rows))
                placement = self.group.placements[expression.number]
                self.raw_stores.append(map_strides(expression.strides, placement, self.rank))

    def _expression(self, expression: FusedExpression) -> int:
        placement = self.group.placements[expression.number]
        numbers: list[int] = []
        for term in expression.terms:
            if term.kind == "load" and term.node.id in self._value:
                numbers.append(self._value[term.node.id])
                continue
            arguments = tuple([numbers[argument] for argument in term.args])
            if term.kind in ("op", "constant"):
                numbers.append(self._step(term.kind, term.node, arguments))
            else:
                strides = map_strides(term.strides, placement, self.rank)
                dynamic = tuple((numbers[step], stride) for step, stride in term.dynamic)
                numbers.append(self._access(term.kind, term.node, arguments, term.offset, strides, dynamic))
        if expression.kind == "reduction":
            return self._step("reduce", expression.root, (numbers[expression.value],))
        if expression.kind == "contraction":
            return self._step("accumulator", expression.root, ())
        return numbers[expression.value]

    def _step(self, kind: str, node: Node, arguments: tuple[int, ...]) -> int:
        key = (kind, node.id, arguments)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.steps)
            self.steps.append(Step(kind, node, arguments))
            self.raw.append(None)
        return found

    def _access(
        self, kind: str, node: Node, arguments: tuple[int, ...], offset: int, strides: tuple[int, ...],
        dynamic: tuple[tuple[int, int], ...],
    ) -> int:  # fmt: skip
        key = (kind, node.id if kind == "load" else 0, offset, strides, dynamic)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.steps)
            slot = self._slot(("value", node.id)) if kind == "load" else -1
            self.steps.append(Step(kind, node, arguments, Access(slot, node.type.dtype, offset, (), dynamic)))
            self.raw.append(strides)
        return found

    def _slot(self, buffer: BufferKey) -> int:
        found = self._slots.get(buffer)
        if found is None:
            found = self._slots[buffer] = len(self.buffers)
            self.buffers.append(buffer)
        return found

    # Axes

    def _arrange(self) -> Kernel:
        groups = self.group.tags
        outer = [axis for axis in range(self.rank) if groups is None or groups[axis] == 0]
        inner = [axis for axis in range(self.rank) if groups is not None and groups[axis] == 1]
        rows = [strides for strides in self.raw if strides is not None] + self.raw_stores
        axes = Axes(self.group.sizes, rows)
        outer_axes = axes.collapse(outer)
        if groups is None:
            form, outer_axes, inner_axes = _map_form(axes, outer_axes, len(self.raw_stores))
        else:
            ordered = any(step.kind == "reduce" and in_order(step.node) for step in self.steps)
            form, outer_axes, inner_axes = _reducing_form(
                axes, outer_axes, axes.collapse(inner, True), ordered
            )
        if self.group.blocked:
            form = {"rows": "blocks", "columns": "strips"}[form]
        order = [*outer_axes, *inner_axes]
        position = 0
        for step, strides in zip(self.steps, self.raw):
            if strides is not None:
                assert step.access is not None
                step.access.strides = axes.strides(position, order)
                position += 1
        for store in self.stores:
            store.access.strides = axes.strides(position, order)
            if () in order:
                # one column: a store still has contiguous lanes, all but the first masked off
                store.access.strides = (1, *store.access.strides[1:])
            position += 1
        sizes = axes.sizes(outer_axes)
        if self.group.blocked:
            sizes = self._number_blocks(form, sizes, axes.sizes(inner_axes))
        nest = LoopNest(form, sizes, axes.sizes(inner_axes), self.steps, self.stores)
        kernel = Kernel(nest, self.buffers, [expression.root for expression in self.group.expressions])
        if form in ("rows", "columns"):
            KeptValues(nest, kernel).decide()
        nest.streams = form in ("flat", "rows") and _streams(nest)
        # a single wide item would keep all threads but one from the work
        if (
            form in ("columns", "strips")
            and math.prod(nest.outer) > WIDE
            and nest.outer[-1] >= 3 * LANES
            and _one_phase(nest)
        ):
            nest.width = WIDE
        return kernel

    def _number_blocks(self, form: str, outer: tuple[int, ...], inner: tuple[int, ...]) -> tuple[int, ...]:
        """Add a loop axis over blocks, the first axis of the stored results."""
        at = len(outer) - (form == "strips")
        kept = reduced = 1
        for size in outer:
            kept *= size
        for size in inner:
            reduced *= size
        for step in self.steps:
            if step.access is not None:
                step.access.strides = (*step.access.strides[:at], 0, *step.access.strides[at:])
        for store in self.stores:
            strides = store.access.strides
            store.access.strides = (*strides[:at], kept if store.row else 0, *strides[at:])
        return (*outer[:at], -(-reduced // BLOCK), *outer[at:])

    def epilogue(self) -> Kernel:
        """The kernel of the epilogue of a matrix product, over its batch, rows and columns."""
        self._collect()
        groups, sizes = self.group.tags or [], self.group.sizes
        last = [max((k for k in range(self.rank) if groups[k] == group), default=-1) for group in (0, 1, 2)]
        rows = [strides for strides in self.raw if strides is not None] + self.raw_stores
        accesses = [step.access for step in self.steps if step.access is not None]
        accesses += [store.access for store in self.stores]
        for access, strides in zip(accesses, rows, strict=True):
            access.strides = tuple(strides[axis] if axis >= 0 else 0 for axis in last)
        if last[2] < 0:
            # one column: a store still has contiguous lanes, all but the first masked off
            for store in self.stores:
                store.access.strides = (*store.access.strides[:2], 1)
        lengths = [1, 1, 1]
        for size, group in zip(sizes, groups):
            lengths[group] *= size
        nest = LoopNest("epilogue", tuple(lengths[:2]), (lengths[2],), self.steps, self.stores)
        return Kernel(nest, self.buffers, [expression.root for expression in self.group.expressions])

    # Threads

    def _distribute(self, kernel: Kernel) -> None:
        nest = kernel.nest
        cost = sum(operation_cost(step.node) for step in nest.steps if step.kind == "op")
        moved = sum(access.dtype.itemsize for access in nest.accesses())
        element = max(0.02 * cost, 0.03 * moved) + 0.02
        rows = 1
        for size in nest.outer:
            rows *= size
        if nest.form in ("scalar", "small", "flat"):
            kernel.work = 1 if nest.form == "scalar" else rows * nest.reduced
            pieces = math.floor(_GRAIN_NANOSECONDS / (element * BLOCK)) + 1
            kernel.grain = pieces * BLOCK
            return
        if nest.form == "tiles":
            pieces = -(-nest.inner[0] // nest.piece) * -(-nest.outer[-1] // LANES)
            kernel.work = rows // maximum(nest.outer[-1], 1) * pieces
            each = element * nest.piece * LANES + 50
        elif nest.form == "grid":
            length = piece_length(nest.inner[0])
            kernel.work = rows * -(-nest.inner[0] // length) if length else 0
            each = element * maximum(length, LANES) + 5
        elif nest.form in ("columns", "strips"):
            kernel.work = rows // maximum(nest.outer[-1], 1) * -(-nest.outer[-1] // nest.width) if rows else 0
            each = element * (nest.reduced if nest.form == "columns" else BLOCK) * nest.width + 50
        else:
            kernel.work = rows
            length = BLOCK if nest.form == "blocks" else nest.reduced
            each = element * maximum(length, LANES) + 20
        kernel.grain = maximum(1, math.floor(_GRAIN_NANOSECONDS / each))


class Axes:
    """Loop axes that are collapsed where the strides of all accesses allow it, as tuples of the axes of the group."""

    def __init__(self, sizes: Sequence[int], rows: Sequence[tuple[int, ...]]) -> None:
        self._sizes = sizes
        self.rows = rows

    def collapse(self, axes: Sequence[int], at_least_one: bool = False) -> list[tuple[int, ...]]:
        """Collapse axes, without those of length 1 (but for one, with ``at_least_one``)."""
        kept = [axis for axis in axes if self._sizes[axis] != 1]
        if not kept and at_least_one:
            kept = list(axes[:1])
        return self.merge([(axis,) for axis in kept])

    def merge(self, axes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Collapse adjacent axes that are contiguous in every access."""
        merged: list[tuple[int, ...]] = []
        for axis in axes:
            if merged and self._contiguous(merged[-1], axis):
                merged[-1] = (*merged[-1], *axis)
            else:
                merged.append(axis)
        return merged

    def _contiguous(self, first: tuple[int, ...], second: tuple[int, ...]) -> bool:
        left, right, size = first[-1], second[-1], self.size(second)
        return all(row[left] == row[right] * size for row in self.rows)

    def size(self, axis: tuple[int, ...]) -> int:
        """The length of a collapsed axis."""
        size = 1
        for part in axis:
            size *= self._sizes[part]
        return size

    def sizes(self, axes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The lengths of collapsed axes."""
        return tuple([self.size(axis) for axis in axes])

    def strides(self, row: int, axes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The strides of an access over collapsed axes: those of the last axis of each."""
        found = self.rows[row]
        return tuple([found[axis[-1]] if axis else 0 for axis in axes])


Merged = list[tuple[int, ...]]


def _map_form(axes: Axes, outer: Merged, stores: int) -> tuple[str, Merged, Merged]:
    """Choose the vectorised axis of a nest without reductions, by rough cycles for an element."""
    if not outer:
        return "scalar", [], []
    if len(outer) == 1:
        size = axes.size(outer[0])
        # a symbol is not compared: each operation would have one more plan for few elements
        return ("small" if not is_symbolic(size) and 0 < size <= LANES else "flat"), [], outer
    best, best_cost, best_across = -1, 0.0, -1
    for number in range(len(outer) - 1, -1, -1):
        for across in (-1, *range(len(outer))):
            if across != number:
                cost = _cycles(axes, outer, number, across, stores)
                if best < 0 or cost < best_cost * 0.99:
                    best, best_cost, best_across = number, cost, across
    rest = [axis for number, axis in enumerate(outer) if number not in (best, best_across)]
    if best_across < 0:
        return "grid", axes.merge(rest), [outer[best]]
    return "tiles", [*axes.merge(rest), outer[best_across]], [outer[best]]


def _cycles(axes: Axes, outer: Merged, lanes: int, across: int, stores: int) -> float:
    """Estimate the cycles for an element.

    Args:
        axes: The axes of all accesses.
        outer: The loop axes.
        lanes: The vectorised axis.
        across: The axis with which tiles are transposed in registers; -1 for none.
        stores: The number of accesses that are stores, the last ones.
    """
    size, along = axes.size(outer[lanes]), outer[lanes][-1]
    vector, transposed = 0.0, False
    for number, row in enumerate(axes.rows):
        store = number >= len(axes.rows) - stores
        if row[along] in (0, 1):
            vector += 1.5 if row[along] or store else 0.5
        elif across >= 0 and not store and row[outer[across][-1]] == 1:
            vector += 8.0
            transposed = True
        else:
            vector += 60.0 if store else 40.0
    if across >= 0:
        if not transposed:
            return float("inf")
        height = axes.size(outer[across])
        vector *= -(-height // LANES) * LANES / max(height, 1)
        vector += 3.0
    vectors = -(-size // LANES)
    return (vectors * vector + (6.0 if across < 0 else 0.0)) / max(size, 1)


def _reducing_form(axes: Axes, outer: Merged, inner: Merged, ordered: bool) -> tuple[str, Merged, Merged]:
    """Choose the vectorised axis of a nest with reductions: the last reduced one, or a kept one.

    That is the kept axis along which most accesses are contiguous; if elements are combined in order it is always a
    kept one, perhaps of length 1.
    """
    empty = [axis for axis in inner if axes.size(axis) == 0]
    if empty:
        return "rows", outer, empty[:1]
    # only accesses that vary along both count, as others cost little either way
    outer_parts = [part for axis in outer for part in axis]
    inner_parts = [part for axis in inner for part in axis]
    whole = [
        row for row in axes.rows if any(row[p] for p in outer_parts) and any(row[p] for p in inner_parts)
    ]
    best, best_count = -1, sum(row[inner[-1][-1]] == 1 for row in whole)
    for number, axis in enumerate(outer):
        count = sum(row[axis[-1]] == 1 for row in whole)
        if count > best_count and axes.size(axis) > 1:
            best, best_count = number, count
    if best < 0 and not ordered:
        return "rows", outer, inner
    outer = outer or [()]
    best = best if best >= 0 else len(outer) - 1
    return "columns", [*axes.merge([*outer[:best], *outer[best + 1 :]]), outer[best]], inner


def _streams(nest: LoopNest) -> bool:
    """Whether a nest moves more than a cache holds, in runs, so that non-temporal stores pay."""
    along = [
        access for access in nest.accesses() if nest.form == "flat" or any(access.strides[len(nest.outer) :])
    ]
    runs = len(nest.inner) == 1 and all(
        access.strides[-1] == 1 and access.dtype.kind != "c" for access in along
    )
    if not target.streams() or not runs or not nest.streamed:
        return False
    moved = sum(access.dtype.itemsize for access in along) * nest.reduced
    for size in nest.outer:
        moved *= size
    return moved >= _STREAM_BYTES


def _one_phase(nest: LoopNest) -> bool:
    """Whether sums depend on no other sums, and values that vary along columns only are cheap to recompute."""
    phases, levels = nest.phases(), nest.levels()
    sinks = [step.args[0] for step in nest.steps if step.kind == "reduce"]
    sinks += [store.step for store in nest.stores if not store.row]
    if any(phases[number] for number in sinks):
        return False
    if any(not combiner(step.node) for step in nest.steps if step.kind == "reduce"):
        return False
    seen: set[int] = set()
    cost = 0
    while sinks:
        number = sinks.pop()
        if number not in seen:
            seen.add(number)
            step = nest.steps[number]
            cost += operation_cost(step.node) if step.kind == "op" and levels[number] == 1 else 0
            sinks += step.args
    return cost <= RECOMPUTE


class KeptValues:
    """Chooses the values of a phase that later phases load: from an output, the stack or a scratch buffer."""

    def __init__(self, nest: LoopNest, kernel: Kernel) -> None:
        self.nest = nest
        self.kernel = kernel

    def decide(self) -> None:
        """Set ``nest.kept``, with stores to scratch buffers if the stack is too small."""
        nest = self.nest
        phases = nest.phases()
        if max(phases, default=0) == 0 or nest.depth < 0:
            return
        levels = nest.levels()
        stored = {store.step: number for number, store in enumerate(nest.stores) if not store.row}
        computed: set[int] = set()
        on_stack = 0
        for phase in range(max(phases) + 1):
            sinks = [
                step.args[0] for step in nest.steps if step.kind == "reduce" and phases[step.args[0]] == phase
            ]
            sinks += [store.step for store in nest.stores if not store.row and phases[store.step] == phase]
            used: set[int] = set()
            waiting = sinks
            while waiting:
                number = waiting.pop()
                if number in used or levels[number] < 2:
                    continue
                used.add(number)
                step = nest.steps[number]
                if number in computed and step.kind == "op" and number not in nest.kept:
                    if number in stored:
                        nest.kept[number] = stored[number]
                    elif self._cost(number, levels) > RECOMPUTE:
                        size = BLOCK * step.dtype.itemsize
                        fits = nest.form == "rows" and nest.depth == 0 and on_stack + size <= _STACK_BYTES
                        on_stack += size if fits else 0
                        nest.kept[number] = -1 if fits else self._scratch(number)
                if number in computed and number in nest.kept:
                    continue
                waiting += step.args
            computed |= used

    def _cost(self, number: int, levels: Sequence[int]) -> int:
        """The instructions that recompute a value from loads and from values that do not vary along the row."""
        seen: set[int] = set()
        waiting, cost = [number], 0
        while waiting and cost <= RECOMPUTE:
            current = waiting.pop()
            if current in seen or levels[current] < 2 or (current in self.nest.kept and current != number):
                continue
            seen.add(current)
            step = self.nest.steps[current]
            cost += operation_cost(step.node) if step.kind == "op" else 2
            waiting += step.args
        return cost

    def _scratch(self, number: int) -> int:
        nest, step = self.nest, self.nest.steps[number]
        size = step.dtype.itemsize
        strides: list[int] = []
        count = 1
        for length in reversed((*nest.outer, *nest.inner)):
            strides.append(count)
            count *= length
        shape_strides = tuple(reversed(strides))
        if nest.form == "columns":
            # adjacent columns are adjacent in memory
            order = [
                *range(len(nest.outer) - 1),
                *range(len(nest.outer), len(shape_strides)),
                len(nest.outer) - 1,
            ]
            lengths = (*nest.outer, *nest.inner)
            moved, count = [0] * len(lengths), 1
            for axis in reversed(order):
                moved[axis] = count
                count *= lengths[axis]
            shape_strides = tuple(moved)
        key = ("scratch", len(self.kernel.scratch))
        self.kernel.scratch[key] = count * size
        self.kernel.buffers.append(key)
        access = Access(len(self.kernel.buffers) - 1, step.dtype, 0, shape_strides)
        nest.stores.append(Store(number, access))
        return len(nest.stores) - 1
