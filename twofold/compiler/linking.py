"""Linking: each body of an outlined trace is planned once, and its calls become one flat program.

Plans of bodies are kept by what the bodies compute: traces of other lengths, or with other results, share most of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from twofold.cache import Cache
from twofold.compiler.compile import ARENA, INPUT, OUTPUT, CompiledProgram, FlatProgram, compile_graphs
from twofold.compiler.portable_program import Label
from twofold.compiler.schedule.donation import may_fail
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, graph_bytes
from twofold.ir.node import Node
from twofold.ir.sizes import example_of, keys_by_identity
from twofold.ir.types import TensorType, type_from_code
from twofold.transforms.derived import graph_of_entry
from twofold.transforms.outline import LEAST, Body, Call, Entry, Kind, Outline, Ref, outline
from twofold.transforms.sparse_rows import is_sparse

Slot = tuple[int, int]


class Trace:
    """Calls of graphs on each other's results and on leaves, by what they are: ``graphs[kind]`` of each entry."""

    def __init__(
        self,
        leaf_types: Sequence[TensorType],
        graphs: Sequence[Graph],
        entries: Sequence[Entry],
        outputs: Sequence[Ref],
        symbolic: bool = False,
    ) -> None:
        self.leaf_types = list(leaf_types)
        self.symbolic = (
            symbolic  # sizes are symbols of one recording, so its bodies are of no use to other traces
        )
        kinds: dict[Graph, int] = {}
        with keys_by_identity():
            same = [kinds.setdefault(graph, len(kinds)) for graph in graphs]
        self.graphs = list(kinds)
        self._places = self._numbered([Entry(same[kind], refs) for kind, refs in entries])
        self.outputs = [self._places[ref] if ref >= 0 else ref for ref in outputs]

    @classmethod
    def of(cls, description: tuple[Any, ...]) -> Trace:
        """A trace that the core describes."""
        leaves, described, outputs = description
        kinds: dict[int, int] = {}
        graphs: list[Graph] = []
        entries: list[Entry] = []
        for entry in described:
            types = entry[5]  # one list for all entries of an op instance
            kind = kinds.setdefault(id(types), len(graphs))
            if kind == len(graphs):
                graphs.append(graph_of_entry(entry))
            entries.append(Entry(kind, entry[1]))
        return cls([type_from_code(*type) for type in leaves], graphs, entries, outputs)

    def sources(self) -> list[list[int]]:
        """Which of the entries that were given each entry stands for."""
        found: list[list[int]] = [[] for _ in self.entries]
        for number, place in enumerate(self._places):
            if place >= 0 and not self._is_shown[number]:
                found[place].append(number)
        return found

    def _numbered(self, entries: Sequence[Entry]) -> list[Ref]:
        """Take entries in, equal ones once and those that return an operand not at all; what each stands for."""
        shown = [_shown(graph) for graph in self.graphs]
        known: dict[Entry, Ref] = {}
        places: list[Ref] = []
        self._is_shown = bytearray([shown[entry.kind] is not None for entry in entries])
        for kind, refs in entries:
            own = tuple([places[ref] if ref >= 0 else ref for ref in refs])
            operand = shown[kind]
            places.append(known.setdefault(Entry(kind, own), len(known)) if operand is None else own[operand])
        self.entries = list(known)
        return places

    def type_of(self, ref: Ref) -> TensorType:
        """The type of a result or a leaf."""
        return self.leaf_types[~ref] if ref < 0 else self.graphs[self.entries[ref].kind].outputs[0].type

    def inlined(self) -> Graph:
        """All calls as one closed primitive graph."""
        return self._closed(self.leaf_types, self.entries, self.outputs)

    def outlined(self, least: int = LEAST) -> Outline:
        """Its calls of bodies, see ``outlining``."""
        return outline(self.entries, [_kind(graph) for graph in self.graphs], self.outputs, least)

    def body_graph(self, body: Body, call: Call) -> Graph:
        """What one body computes, as a closed primitive graph; ``call`` is any of its calls."""
        types = [self.type_of(ref) for ref in call.arguments]
        return self._closed(types, body.entries, body.results)

    def _closed(self, types: Sequence[TensorType], entries: Sequence[Entry], outputs: Sequence[Ref]) -> Graph:
        graphs = self.graphs
        return inlined(types, [(entry.refs, graphs[entry.kind].inline) for entry in entries], outputs)


Inline = tuple[Sequence[Ref], Callable[[list[Node]], Sequence[Node]]]
"""What a call of a trace reads, and what it makes of these nodes: one."""


def inlined(types: Sequence[TensorType], calls: Sequence[Inline], outputs: Sequence[Ref]) -> Graph:
    """Calls on each other's results, and on leaves of these types, as one closed primitive graph."""
    leaves = [input_node(k, type) for k, type in enumerate(types)]
    values: list[Node] = []
    for refs, make in calls:
        values.append(make([values[ref] if ref >= 0 else leaves[~ref] for ref in refs])[0])
    return Graph(types, [values[ref] if ref >= 0 else leaves[~ref] for ref in outputs])


def _shown(graph: Graph) -> int | None:
    """The input that a graph returns as it is; None if it returns another value."""
    (output,) = graph.outputs
    number: int | None = output.attrs[0] if output.op.name == "input" else None
    return number


def _kind(graph: Graph) -> Kind:
    (output,) = graph.outputs
    nodes = graph.nodes()
    # operations on numbers say where a view begins
    kinds = {node.op.kind for node in nodes if node is output or example_of(node.type.size) > 1}
    rows = any(node.op.lays == "added rows" for node in nodes)
    free = kinds <= {"source", "view"} or (
        rows and is_sparse(output, sum(type.nbytes for type in graph.input_types))
    )
    loops = kinds <= {"source", "view", "elementwise", "reduction"}
    return Kind(example_of(output.type.nbytes), free, loops)


class BodyPlan(NamedTuple):
    """What linking takes from the program of a body."""

    instructions: list[tuple[Any, ...]]
    buffer_sizes: list[int]
    labels: list[Label]
    donations: list[tuple[int, int]]
    further_work: int
    may_fail: bool

    @classmethod
    def of(cls, program: CompiledProgram) -> BodyPlan:
        """That of a body planned as a program of its own."""
        fails = any(may_fail(instruction) for instruction in program.schedule.instructions)
        return cls(
            program.instructions,
            program.buffer_sizes,
            program.labels,
            program.donations,
            program.further_work,
            fails,
        )


_INSTRUCTION_BYTES = 1024  # with its label, roughly


def _bytes(graph: Graph, plan: BodyPlan) -> int:
    return graph_bytes(graph) + _INSTRUCTION_BYTES * len(plan.instructions)


_plans: Cache[BodyPlan] = Cache("body plans", 1, _bytes)
"""By the closed graph of a body."""


def compile_outlined(trace: Trace, least: int = LEAST) -> FlatProgram:
    """The program of a trace, each of its bodies planned once."""
    bodies, calls = trace.outlined(least)
    if len(calls) <= 1:
        return compile_graphs([trace.inlined()])[0]
    first = {call.body: call for call in reversed(calls)}
    graphs = [trace.body_graph(body, first[number]) for number, body in enumerate(bodies)]
    copied = _copied(trace.outputs)
    if copied:
        refs = tuple([trace.outputs[place] for place in copied])
        types = [trace.type_of(ref) for ref in refs]
        calls = [*calls, Call(len(graphs), refs, (), ())]
        graphs.append(Graph(types, [input_node(k, type) for k, type in enumerate(types)]))
    known = [None if trace.symbolic else _plans.get(graph) for graph in graphs]
    programs = compile_graphs([graph for graph, plan in zip(graphs, known) if plan is None])
    new = iter(programs)
    plans = [BodyPlan.of(next(new)) if plan is None else plan for plan in known]
    if not trace.symbolic:
        plans = [_plans.keep(graph, plan) for graph, plan in zip(graphs, plans)]
    return _Linker(trace, plans).linked(calls, copied, programs)


def _copied(outputs: Sequence[Ref]) -> list[int]:
    """Places of outputs that no call of a body writes: leaves, and results that an earlier place has."""
    seen: set[Ref] = set()
    found = []
    for place, ref in enumerate(outputs):
        if ref < 0 or ref in seen:
            found.append(place)
        seen.add(ref)
    return found


class _Linker:
    """One program of the calls of bodies in order."""

    def __init__(self, trace: Trace, plans: Sequence[BodyPlan]) -> None:
        self._trace = trace
        self._plans = plans
        self._program = FlatProgram([trace.type_of(ref) for ref in trace.outputs], True)
        self._slots: dict[Ref, Slot] = {~k: (INPUT, k) for k in range(len(trace.leaf_types))}
        for place, ref in enumerate(trace.outputs):
            if ref >= 0:
                self._slots.setdefault(ref, (OUTPUT, place))
        self._labels: list[int] = []
        for plan in plans:
            self._labels.append(len(self._program.labels))
            self._program.labels += plan.labels

    def linked(
        self, calls: Sequence[Call], copied: Sequence[int], new: Sequence[CompiledProgram]
    ) -> FlatProgram:
        """The program, for which bodies ``new`` were planned.

        A call without results is the one that makes the outputs ``copied``.
        """
        program = self._program
        for call in calls:
            results = [self._result(ref) for ref in call.results] or [(OUTPUT, place) for place in copied]
            self._add(call, results)
        program.donations = self._donations(calls)
        program.bodies, program.new_bodies, program.calls = len(self._plans), len(new), len(calls)
        for made in new:
            program.new_kernels += made.new_kernels
            program.plan_seconds += made.plan_seconds
            program.kernel_seconds += made.kernel_seconds
        return program

    def _result(self, ref: Ref) -> Slot:
        """Where a result lies."""
        found = self._slots.get(ref)
        if found is None:
            sizes = self._program.buffer_sizes
            found = self._slots[ref] = ARENA, len(sizes)
            sizes.append(self._trace.type_of(ref).nbytes)
        return found

    def _add(self, call: Call, results: Sequence[Slot]) -> None:
        """The instructions of a body on the buffers of a call."""
        made, program = self._plans[call.body], self._program
        arguments = [self._slots[ref] for ref in call.arguments]
        first, label = len(program.buffer_sizes), self._labels[call.body]
        places = arguments, results, [(ARENA, first + k) for k in range(len(made.buffer_sizes))]
        program.buffer_sizes += made.buffer_sizes
        program.further_work += made.further_work
        for address, buffers, params, work, grain, number, host in made.instructions:
            bound = tuple([places[kind][index] for kind, index in buffers])
            program.instructions.append((address, bound, params, work, grain, label + number, host))

    def _donations(self, calls: Sequence[Call]) -> list[tuple[int, int]]:
        """Those of the bodies where the leaf is read last, and nothing that comes later may fail."""
        found: list[tuple[int, int]] = []
        later: set[Ref] = set()
        for call in reversed(calls):
            made = self._plans[call.body]
            for source, target in made.donations if call.results else ():
                kind, place = self._slots[call.results[target]]
                ref = call.arguments[source]
                if ref < 0 and ref not in later and kind == OUTPUT:
                    found.append((~ref, place))
            if made.may_fail:
                break
            later.update(call.arguments)
        return found
