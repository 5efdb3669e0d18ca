"""Outlining: a long trace as a graph of a few calls of bodies, each of which stands for entries that repeat.

Entries repeat where layers, steps of an unrolled loop, their backward passes and the updates of their parameters
stand behind each other. Windows of a period become calls of one body; what stands between them becomes bodies that
are called once. Entries that only show memory, or make constants, are made again in each body that reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, call, called
from twofold.ir.node import Node
from twofold.ir.types import TensorType

LEAST = 64
"""Entries that windows of one period must save together to be cut out: less is not worth what fusion loses there."""

_WINDOW = 32  # entries of a window at least: fewer periods than that make are one window
_GRAM = 8  # entries by which a long period is found where single ones repeat within it
_DEEPEST = 8  # entries made again on top of each other

Ref = int
"""As in the core: entry number, or ~leaf number."""


class Entry(NamedTuple):
    """One operation of a trace: entries of one ``kind`` are the same operation on the same types.

    One that is computed ``again`` has an equal one before it, whose result is not kept until it is read once more.
    """

    kind: int
    refs: Sequence[Ref]
    again: bool = False


class Kind(NamedTuple):
    """What outlining knows of an operation."""

    graph: Graph  # what it computes: one result
    nbytes: int  # of the result
    is_free: bool  # shows its operands, or is a constant: costs nothing to make again
    is_loop: bool  # may be fused with what makes its operands


class Outlined(NamedTuple):
    """A graph of calls of bodies, which are graphs of calls of operations.

    ``calls`` are its calls in the order of the trace, with the entries that they compute: in the order of the calls in
    the body. What only copies leaves or results to further outputs comes last, and has none.
    """

    graph: Graph
    calls: dict[Node, tuple[int, ...]]


def outline(
    types: Sequence[TensorType],
    kinds: Sequence[Kind],
    entries: Sequence[Entry],
    outputs: Sequence[Ref],
    least: int = LEAST,
) -> Outlined:
    r"""The calls that compute ``outputs`` of a trace on leaves of ``types``.

    >>> import twofold.ops
    >>> from twofold.ir.text import format_graph, parse_graph, parse_type
    >>> sine = parse_graph("graph(%0 : float32[2]) {\n %1 = sin(%0) : float32[2]\n return %1\n}")
    >>> entries = [Entry(0, (~0,)), Entry(0, (0,)), Entry(0, (1,))]
    >>> found = outline([parse_type("float32[2]")], [Kind(sine, 8, False, True)], entries, [2], least=1)
    >>> print(format_graph(found.graph))
    @0 = graph(%0 : float32[2]) {
      %1 = sin(%0) : float32[2]
      return %1
    }
    @1 = graph(%0 : float32[2]) {
      %1 = call @0(%0) : float32[2]
      return %1
    }
    graph(%0 : float32[2]) {
      %1 = call @1(%0) : float32[2]
      %2 = call @1(%1) : float32[2]
      %3 = call @1(%2) : float32[2]
      return %3
    }
    """
    wanted = {ref for ref in outputs if ref >= 0}
    free = _free(entries, kinds)
    segments = _Cutter(entries, kinds, free, wanted).segments(least)
    return _Outliner(types, kinds, entries, free, wanted).outlined(segments, outputs)


def _free(entries: Sequence[Entry], kinds: Sequence[Kind]) -> bytearray:
    """Which entries are made again where they are read."""
    depths = [0] * len(entries)
    for number, (kind, refs, _) in enumerate(entries):
        if kinds[kind].is_free:
            depth = 1 + max([depths[ref] for ref in refs if ref >= 0], default=0)
            depths[number] = depth if depth <= _DEEPEST else 0
    return bytearray([depth > 0 for depth in depths])


class _Run(NamedTuple):
    """Entries ``start`` to ``end``, each of the kind of the one ``period`` entries before it, where that is in it."""

    period: int
    start: int
    end: int


def _candidates(kinds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Entries with the distance to the next one that is alike, or that begins as many alike ones."""
    grams: list[Sequence[object]] = [kinds]
    if len(kinds) > _GRAM:
        grams.append(list(zip(*[kinds[k:] for k in range(_GRAM)])))
    for gram in grams:
        last: dict[object, int] = {}
        for number, item in enumerate(gram):
            before = last.get(item)
            last[item] = number
            if before is not None:
                yield before, number - before


def _runs(kinds: Sequence[int], least: int) -> list[_Run]:
    """Runs that would save ``least`` entries, shortest periods first."""
    found = set()
    seen: dict[int, int] = {}  # by period: up to where runs of it are known
    count = len(kinds)
    for start, period in sorted(_candidates(kinds)):
        if start < seen.get(period, 0):
            continue
        low = seen.get(period, 0)
        end = start
        while end + period < count and kinds[end] == kinds[end + period]:
            end += 1
        seen[period] = end
        while start > low and kinds[start - 1] == kinds[start - 1 + period]:
            start -= 1
        if end - start >= max(period, least):
            found.add(_Run(period, start, end + period))
    return sorted(found)


class _Cutter:
    """Where a trace is cut."""

    def __init__(
        self, entries: Sequence[Entry], kinds: Sequence[Kind], free: bytearray, wanted: set[Ref]
    ) -> None:
        self._entries = entries
        self._kinds = kinds
        self._free = free
        self._wanted = wanted
        self._last = [0] * len(entries)  # what reads a result last, itself or by showing it
        for number in range(len(entries) - 1, -1, -1):
            last = max(number, self._last[number]) if free[number] else number
            for ref in entries[number].refs:
                if ref >= 0:
                    self._last[ref] = max(self._last[ref], last)

    def segments(self, least: int) -> list[tuple[int, int]]:
        """Consecutive ranges of entries."""
        count = len(self._entries)
        taken = bytearray(count)
        starts = {0, count}
        for run in _runs([entry.kind for entry in self._entries], least):
            for start, end in _gaps(taken, run.start, run.end):
                size = run.period * -(-min(_WINDOW, least) // run.period)
                if (end - start) // size < 2 or end - start - size < least:
                    continue
                # with few windows, none is given up for a better cut
                most = run.period - 1 if (end - start) // size >= 4 else (end - start) % size
                first = start + self._phase(run.period, start, end, min(most, run.period - 1))
                windows = range(first, end - size + 1, size)
                starts.update(windows)
                last = windows[-1] + size
                starts.add(last)
                taken[first:last] = b"\1" * (last - first)
        again = [number for number, entry in enumerate(self._entries) if entry.again and not taken[number]]
        starts.update(again[:1])  # within one body it would not be computed again
        ordered = sorted(starts)
        return list(pairwise(ordered))

    def _phase(self, period: int, start: int, end: int, most: int) -> int:
        """Where in a run its first window begins: where the fewest bytes pass from window to window in vain."""
        costs = self._costs(period, start, end)
        return min(range(most + 1), key=lambda phase: costs[phase])

    def _costs(self, period: int, start: int, end: int) -> list[int]:
        """By phase: bytes of results that a cut there stores, and of those that are read again for it."""
        middle = start + ((end - start) // period - 1) // 2 * period
        sources: dict[Ref, tuple[Ref, ...]] = {}
        lasts: dict[Ref, int] = {}  # the last loop near by that reads a result
        beyond = middle + 2 * period
        far = {n for n in range(middle, middle + period) if n in self._wanted or self._last[n] >= beyond}
        for number in range(middle, min(beyond, end)):
            kind, refs, _ = self._entries[number]
            read: list[Ref] = []
            for ref in refs:
                if ref >= middle:
                    read += sources[ref] if self._free[ref] else (ref,)
            sources[number] = tuple(read)
            if not self._free[number] and self._kinds[kind].is_loop:
                for ref in read:
                    lasts[ref] = number
        changes = [0] * (2 * period + 1)
        for ref, last in lasts.items():
            if ref < middle + period and last <= ref + period:
                nbytes = self._kinds[self._entries[ref].kind].nbytes
                cost = nbytes if ref in far else 2 * nbytes
                changes[ref + 1 - middle] += cost
                changes[last + 1 - middle] -= cost
        costs, open_bytes = [0] * period, 0
        for position, change in enumerate(changes[:-1]):
            open_bytes += change
            costs[position % period] += open_bytes
        shift = (middle - start) % period
        return [costs[(phase - shift) % period] for phase in range(period)]


def _gaps(taken: bytearray, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Ranges between ``start`` and ``end`` that are not taken."""
    while start < end:
        first = taken.find(0, start, end)
        if first < 0:
            return
        last = taken.find(1, first, end)
        start = end if last < 0 else last
        yield first, start


class _Segment:
    """A range of entries as a body: what it reads becomes arguments, in the order in which it is read."""

    def __init__(self, entries: Sequence[Entry], free: bytearray, start: int, end: int) -> None:
        self._entries = entries
        self._free = free
        self._known: dict[Ref, Ref] = {}  # refs of the trace -> of the body
        self.arguments: list[Ref] = []
        self.own: list[Entry] = []
        self.numbers: list[int] = []
        for number in range(start, end):
            if not free[number]:
                self._add(number)

    def _add(self, number: int) -> Ref:
        kind, refs, _ = self._entries[number]
        self.own.append(Entry(kind, tuple([self.local(ref) for ref in refs])))
        self.numbers.append(number)
        found = self._known[number] = len(self.own) - 1
        return found

    def local(self, ref: Ref) -> Ref:
        """What the body calls a result or a leaf."""
        found = self._known.get(ref)
        if found is not None:
            return found
        if ref >= 0 and self._free[ref]:
            return self._add(ref)
        found = self._known[ref] = ~len(self.arguments)
        self.arguments.append(ref)
        return found


class _Outliner:
    """Makes segments calls of bodies."""

    def __init__(
        self,
        types: Sequence[TensorType],
        kinds: Sequence[Kind],
        entries: Sequence[Entry],
        free: bytearray,
        wanted: set[Ref],
    ) -> None:
        self._types = types
        self._graphs = [kind.graph for kind in kinds]
        self._entries = entries
        self._free = free
        self._wanted = wanted
        self._values = {~k: input_node(k, type) for k, type in enumerate(types)}
        self._bodies: dict[object, tuple[Graph, list[int]]] = {}

    def outlined(self, segments: Sequence[tuple[int, int]], outputs: Sequence[Ref]) -> Outlined:
        """The calls of all segments."""
        free, wanted = self._free, self._wanted
        made = []
        for start, end in segments:
            segment = _Segment(self._entries, free, start, end)
            for ref in range(start, end):
                if free[ref] and ref in wanted:
                    segment.local(ref)
            made.append(segment)
        read = wanted.union(*[segment.arguments for segment in made])
        calls: dict[Node, tuple[int, ...]] = {}
        for segment, (start, end) in zip(made, segments):
            results = [ref for ref in range(start, end) if ref in read and (ref in wanted or not free[ref])]
            if results:
                body, order = self._body(segment, tuple([segment.local(ref) for ref in results]))
                nodes = self._called(body, segment.arguments)
                self._values.update(zip(results, nodes))
                calls[nodes[0].inputs[0]] = tuple([segment.numbers[k] for k in order])
        return Outlined(Graph(self._types, self._with_copies(outputs, calls)), calls)

    def _body(self, segment: _Segment, results: tuple[Ref, ...]) -> tuple[Graph, list[int]]:
        """What a segment computes, and which of its entries each call in that is."""
        key = tuple(segment.own), results
        found = self._bodies.get(key)
        if found is None:
            types = [self._type_of(ref) for ref in segment.arguments]
            found = self._bodies[key] = _body(types, self._graphs, segment.own, results)
        return found

    def _type_of(self, ref: Ref) -> TensorType:
        return self._types[~ref] if ref < 0 else self._graphs[self._entries[ref].kind].outputs[0].type

    def _called(self, body: Graph, arguments: Sequence[Ref]) -> list[Node]:
        return call(body, [self._values[ref] for ref in arguments])

    def _with_copies(self, outputs: Sequence[Ref], calls: dict[Node, tuple[int, ...]]) -> list[Node]:
        """The outputs, each a result of its own: leaves, and results that are wanted once more, are copied."""
        seen: set[Ref] = set()
        copied = []
        found: list[Node] = []
        for position, ref in enumerate(outputs):
            if ref < 0 or ref in seen:
                copied.append(position)
            seen.add(ref)
            found.append(self._values[ref])
        if copied and calls:
            types = [found[position].type for position in copied]
            same = Graph(types, [input_node(k, type) for k, type in enumerate(types)])
            nodes = self._called(same, [outputs[position] for position in copied])
            calls[nodes[0].inputs[0]] = ()
            for position, node in zip(copied, nodes):
                found[position] = node
        return found


def _body(
    types: Sequence[TensorType], graphs: Sequence[Graph], own: Sequence[Entry], results: Sequence[Ref]
) -> tuple[Graph, list[int]]:
    """The graph of calls of entries, and which entry each call is, in the order of its nodes."""
    inputs = [input_node(k, type) for k, type in enumerate(types)]
    values: list[Node] = []
    numbers: dict[Node, int] = {}
    for number, (kind, refs, _) in enumerate(own):
        values += call(graphs[kind], [values[ref] if ref >= 0 else inputs[~ref] for ref in refs])
        numbers.setdefault(values[-1].inputs[0], number)
    body = Graph(types, [values[ref] for ref in results])
    return body, [numbers[node] for node in body.nodes() if called(node) is not None]
