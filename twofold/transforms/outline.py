"""Outlining: rewrites a long trace as a graph of a few calls, each of a body that stands for repeated instructions.

Traces repeat themselves: layers, steps of an unrolled loop, their backward passes, updates of parameters. The maximal
repetitions of the sequence of op instances (runs: Kolpakov and Kucherov, "Finding maximal repetitions in a word in
linear time", 1999) are divided into windows of whole periods, which become calls of one body; the instructions between
them become bodies that are called once. Views and constants are rematerialised in each body that reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, call, called
from twofold.ir.node import Node
from twofold.ir.types import TensorType

MIN_SAVED = 64
"""Least number of instructions that the windows of a run must save: less is not worth the fusion lost at their ends."""

_MIN_WINDOW = 32  # instructions: shorter periods are repeated up to this length
_GRAM = (
    8  # length of the n-grams by which a long period is found although single instructions repeat within it
)
_MAX_CHAIN = 8  # instructions rematerialised on top of each other

Ref = int
"""An operand, as in the core: the position of an instruction, or ``~k`` for trace input ``k``."""


class Instruction(NamedTuple):
    """One operation of a trace.

    Attributes:
        instance: The number of its op instance: equal for the same operation and attributes on the same types.
        operands: What it reads.
        recomputed: Whether an equal instruction comes before it, whose result is freed before it is read once more.
    """

    instance: int
    operands: Sequence[Ref]
    recomputed: bool = False


class InstanceInfo(NamedTuple):
    """What outlining asks of an op instance.

    Attributes:
        graph: The closed graph that it computes, with one output.
        nbytes: The size of the result.
        is_free: Whether it is a view or a constant, so that it is rematerialised where it is read.
        is_fusible: Whether it is a loop that may be fused with the producers of its operands.
    """

    graph: Graph
    nbytes: int
    is_free: bool
    is_fusible: bool


class Outlined(NamedTuple):
    """A graph of calls of bodies, which are graphs of calls of op instances.

    Attributes:
        graph: The graph, with the inputs and outputs of the trace.
        calls: Its calls in the order of the trace. Each maps to the positions of the instructions that it computes, in
            the order of the calls in its body. The call that copies inputs or repeated outputs comes last, with none.
    """

    graph: Graph
    calls: dict[Node, tuple[int, ...]]


def outline(
    types: Sequence[TensorType],
    instances: Sequence[InstanceInfo],
    instructions: Sequence[Instruction],
    outputs: Sequence[Ref],
    min_saved: int = MIN_SAVED,
) -> Outlined:
    r"""Rewrite a trace as calls of bodies.

    Args:
        types: The types of the trace inputs.
        instances: The op instances that instructions name by their number.
        instructions: The trace, in a topological order.
        outputs: What the trace returns; a reference may occur more than once.
        min_saved: Least number of instructions that the windows of a run must save.

    >>> import twofold.ops
    >>> from twofold.ir.text import format_graph, parse_graph, parse_type
    >>> sine = parse_graph("graph(%0 : float32[2]) {\n %1 = sin(%0) : float32[2]\n return %1\n}")
    >>> trace = [Instruction(0, (~0,)), Instruction(0, (0,)), Instruction(0, (1,))]
    >>> result = outline([parse_type("float32[2]")], [InstanceInfo(sine, 8, False, True)], trace, [2], 1)
    >>> print(format_graph(result.graph))
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
    live_out = {ref for ref in outputs if ref >= 0}
    free = _rematerialised(instructions, instances)
    segments = _Segmenter(instructions, instances, free, live_out).segments(min_saved)
    return _Outliner(types, instances, instructions, free, live_out).outlined(segments, outputs)


def _rematerialised(instructions: Sequence[Instruction], instances: Sequence[InstanceInfo]) -> bytearray:
    """A flag for each instruction: whether it is rematerialised where it is read."""
    depths = [0] * len(instructions)
    for position, (instance, operands, _) in enumerate(instructions):
        if instances[instance].is_free:
            depth = 1 + max([depths[ref] for ref in operands if ref >= 0], default=0)
            depths[position] = depth if depth <= _MAX_CHAIN else 0
    return bytearray([depth > 0 for depth in depths])


class _Run(NamedTuple):
    """A maximal repetition: in ``[start, end)`` each op instance equals the one ``period`` positions before it."""

    period: int
    start: int
    end: int


def _candidates(instances: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs ``(position, period)``: the distances between successive equal items, and between equal n-grams."""
    sequences: list[Sequence[object]] = [instances]
    if len(instances) > _GRAM:
        sequences.append(list(zip(*[instances[k:] for k in range(_GRAM)])))
    for sequence in sequences:
        last: dict[object, int] = {}
        for position, item in enumerate(sequence):
            previous = last.get(item)
            last[item] = position
            if previous is not None:
                yield previous, position - previous


def _runs(instances: Sequence[int], min_saved: int) -> list[_Run]:
    """Runs that would save ``min_saved`` instructions, shortest periods first."""
    runs = set()
    searched: dict[int, int] = {}  # by period: up to where its runs are known
    count = len(instances)
    for start, period in sorted(_candidates(instances)):
        low = searched.get(period, 0)
        if start < low:
            continue
        end = start
        while end + period < count and instances[end] == instances[end + period]:
            end += 1
        searched[period] = end
        while start > low and instances[start - 1] == instances[start - 1 + period]:
            start -= 1
        if end - start >= max(period, min_saved):
            runs.add(_Run(period, start, end + period))
    return sorted(runs)


class _Segmenter:
    """Divides a trace into the ranges of instructions that become bodies."""

    def __init__(
        self,
        instructions: Sequence[Instruction],
        instances: Sequence[InstanceInfo],
        free: bytearray,
        live_out: set[Ref],
    ) -> None:
        self._instructions = instructions
        self._instances = instances
        self._free = free
        self._live_out = live_out
        self._last_use = [0] * len(instructions)  # of each result, by itself or through a view
        for position in range(len(instructions) - 1, -1, -1):
            last = max(position, self._last_use[position]) if free[position] else position
            for ref in instructions[position].operands:
                if ref >= 0:
                    self._last_use[ref] = max(self._last_use[ref], last)

    def segments(self, min_saved: int) -> list[tuple[int, int]]:
        """Consecutive ranges ``(start, end)`` that cover the trace."""
        count = len(self._instructions)
        covered = bytearray(count)
        boundaries = {0, count}
        for run in _runs([instruction.instance for instruction in self._instructions], min_saved):
            for start, end in _gaps(covered, run.start, run.end):
                size = run.period * -(-min(_MIN_WINDOW, min_saved) // run.period)
                if (end - start) // size < 2 or end - start - size < min_saved:
                    continue
                # with few windows, none is given up for cheaper boundaries
                most = run.period - 1 if (end - start) // size >= 4 else (end - start) % size
                first = start + self._phase(run.period, start, end, min(most, run.period - 1))
                windows = range(first, end - size + 1, size)
                boundaries.update(windows)
                last = windows[-1] + size
                boundaries.add(last)
                covered[first:last] = b"\1" * (last - first)
        recomputed = [
            position
            for position, instruction in enumerate(self._instructions)
            if instruction.recomputed and not covered[position]
        ]
        # within one body it would be merged with the equal instruction before it, and its result kept
        boundaries.update(recomputed[:1])
        return list(pairwise(sorted(boundaries)))

    def _phase(self, period: int, start: int, end: int, most: int) -> int:
        """Offset of the first window in a run, at most ``most``: where boundaries cost the fewest bytes."""
        costs = self._boundary_bytes(period, start, end)
        return min(range(most + 1), key=lambda phase: costs[phase])

    def _boundary_bytes(self, period: int, start: int, end: int) -> list[int]:
        """By phase: bytes that a boundary there makes kernels store and load, which fusion would have avoided."""
        middle = start + ((end - start) // period - 1) // 2 * period
        bases: dict[Ref, tuple[Ref, ...]] = {}  # what each instruction reads, views looked through
        last_loop: dict[Ref, int] = {}  # the last fusible consumer near by
        beyond = middle + 2 * period
        stored_anyway = {
            position
            for position in range(middle, middle + period)
            if position in self._live_out or self._last_use[position] >= beyond
        }
        for position in range(middle, min(beyond, end)):
            instance, operands, _ = self._instructions[position]
            read: list[Ref] = []
            for ref in operands:
                if ref >= middle:
                    read += bases[ref] if self._free[ref] else (ref,)
            bases[position] = tuple(read)
            if not self._free[position] and self._instances[instance].is_fusible:
                for ref in read:
                    last_loop[ref] = position
        changes = [0] * (2 * period + 1)
        for ref, last in last_loop.items():
            if ref < middle + period and last <= ref + period:
                nbytes = self._instances[self._instructions[ref].instance].nbytes
                cost = nbytes if ref in stored_anyway else 2 * nbytes
                changes[ref + 1 - middle] += cost
                changes[last + 1 - middle] -= cost
        costs, live_bytes = [0] * period, 0
        for offset, change in enumerate(changes[:-1]):
            live_bytes += change
            costs[offset % period] += live_bytes
        shift = (middle - start) % period
        return [costs[(phase - shift) % period] for phase in range(period)]


def _gaps(covered: bytearray, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Ranges within ``[start, end)`` that are not covered."""
    while start < end:
        first = covered.find(0, start, end)
        if first < 0:
            return
        last = covered.find(1, first, end)
        start = end if last < 0 else last
        yield first, start


class _Segment:
    """A range of instructions in terms of a body's own inputs, which are in the order in which they are read.

    Attributes:
        arguments: What the body is called on, as operands in the trace.
        instructions: Those of the body, with operands in the body.
        positions: Of each of them, its position in the trace.
    """

    def __init__(self, trace: Sequence[Instruction], free: bytearray, start: int, end: int) -> None:
        self._trace = trace
        self._free = free
        self._local: dict[Ref, Ref] = {}  # operands in the trace -> in the body
        self.arguments: list[Ref] = []
        self.instructions: list[Instruction] = []
        self.positions: list[int] = []
        for position in range(start, end):
            if not free[position]:
                self._add(position)

    def _add(self, position: int) -> Ref:
        instance, operands, _ = self._trace[position]
        self.instructions.append(Instruction(instance, tuple([self.local(ref) for ref in operands])))
        self.positions.append(position)
        local = self._local[position] = len(self.instructions) - 1
        return local

    def local(self, ref: Ref) -> Ref:
        """The operand in the body that stands for an operand in the trace."""
        local = self._local.get(ref)
        if local is not None:
            return local
        if ref >= 0 and self._free[ref]:
            return self._add(ref)
        local = self._local[ref] = ~len(self.arguments)
        self.arguments.append(ref)
        return local


class _Outliner:
    """Builds the graph of calls from segments, equal segments as calls of one body."""

    def __init__(
        self,
        types: Sequence[TensorType],
        instances: Sequence[InstanceInfo],
        instructions: Sequence[Instruction],
        free: bytearray,
        live_out: set[Ref],
    ) -> None:
        self._types = types
        self._graphs = [instance.graph for instance in instances]
        self._instructions = instructions
        self._free = free
        self._live_out = live_out
        self._values = {~k: input_node(k, type) for k, type in enumerate(types)}
        self._bodies: dict[object, tuple[Graph, list[int]]] = {}

    def outlined(self, ranges: Sequence[tuple[int, int]], outputs: Sequence[Ref]) -> Outlined:
        """The graph that calls the bodies of all ranges."""
        free, live_out = self._free, self._live_out
        segments = []
        for start, end in ranges:
            segment = _Segment(self._instructions, free, start, end)
            for ref in range(start, end):
                if free[ref] and ref in live_out:
                    segment.local(ref)
            segments.append(segment)
        read = live_out.union(*[segment.arguments for segment in segments])
        calls: dict[Node, tuple[int, ...]] = {}
        for segment, (start, end) in zip(segments, ranges):
            results = [ref for ref in range(start, end) if ref in read and (ref in live_out or not free[ref])]
            if results:
                body, order = self._body_of(segment, tuple([segment.local(ref) for ref in results]))
                nodes = self._call(body, segment.arguments)
                self._values.update(zip(results, nodes))
                calls[nodes[0].inputs[0]] = tuple([segment.positions[k] for k in order])
        return Outlined(Graph(self._types, self._with_copies(outputs, calls)), calls)

    def _body_of(self, segment: _Segment, results: tuple[Ref, ...]) -> tuple[Graph, list[int]]:
        """See ``_build_body``; once for equal segments."""
        key = tuple(segment.instructions), results
        body = self._bodies.get(key)
        if body is None:
            types = [self._type_of(ref) for ref in segment.arguments]
            body = self._bodies[key] = _build_body(types, self._graphs, segment.instructions, results)
        return body

    def _type_of(self, ref: Ref) -> TensorType:
        if ref < 0:
            return self._types[~ref]
        return self._graphs[self._instructions[ref].instance].outputs[0].type

    def _call(self, body: Graph, arguments: Sequence[Ref]) -> list[Node]:
        return call(body, [self._values[ref] for ref in arguments])

    def _with_copies(self, outputs: Sequence[Ref], calls: dict[Node, tuple[int, ...]]) -> list[Node]:
        """The outputs, each a result of its own: inputs, and values that were returned before, are copied."""
        seen: set[Ref] = set()
        copied = []
        nodes: list[Node] = []
        for index, ref in enumerate(outputs):
            if ref < 0 or ref in seen:
                copied.append(index)
            seen.add(ref)
            nodes.append(self._values[ref])
        if copied and calls:
            types = [nodes[index].type for index in copied]
            identity = Graph(types, [input_node(k, type) for k, type in enumerate(types)])
            copies = self._call(identity, [outputs[index] for index in copied])
            calls[copies[0].inputs[0]] = ()
            for index, node in zip(copied, copies):
                nodes[index] = node
        return nodes


def _build_body(
    types: Sequence[TensorType],
    graphs: Sequence[Graph],
    instructions: Sequence[Instruction],
    results: Sequence[Ref],
) -> tuple[Graph, list[int]]:
    """A graph with one call for each instruction.

    Args:
        types: The types of its inputs.
        graphs: The closed graphs of op instances, by number.
        instructions: What it computes.
        results: What it returns.

    Returns:
        The graph, and for each of its calls, in the order of its nodes, the position of the instruction.
    """
    inputs = [input_node(k, type) for k, type in enumerate(types)]
    values: list[Node] = []
    positions: dict[Node, int] = {}
    for position, (instance, operands, _) in enumerate(instructions):
        values += call(graphs[instance], [values[ref] if ref >= 0 else inputs[~ref] for ref in operands])
        positions.setdefault(values[-1].inputs[0], position)
    body = Graph(types, [values[ref] for ref in results])
    return body, [positions[node] for node in body.nodes() if called(node) is not None]
