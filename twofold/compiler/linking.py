"""Linking: each body of an outlined trace is planned once, and its calls become one flat program.

Plans of bodies are kept by what the bodies compute: traces of other lengths, or with other results, share most of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from twofold.cache import Cache
from twofold.compiler.compile import (
    ARENA,
    INPUT,
    OUTPUT,
    CompiledProgram,
    FlatProgram,
    Inside,
    compile_graphs,
)
from twofold.compiler.kept_values import keep_values
from twofold.compiler.lower.memory import MODE
from twofold.compiler.portable_program import Label
from twofold.compiler.schedule.donation import matched, may_fail
from twofold.ir.bind import is_input
from twofold.ir.graph import Graph, called, graph_bytes, graph_of_calls, inline_calls
from twofold.ir.node import Node
from twofold.ir.op import Assembly
from twofold.ir.sizes import example_of, keys_by_identity
from twofold.ir.types import TensorType, type_from_code
from twofold.ir.views import assembly
from twofold.transforms.derived import graph_of_entry
from twofold.transforms.outline import LEAST, Entry, Kind, Outlined, Ref, outline
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
        steps: Sequence[int] = (),
    ) -> None:
        """``steps``: the entries in the order in which they run, where some are computed again."""
        self.leaf_types = list(leaf_types)
        self.symbolic = symbolic  # sizes are symbols of one recording: no other trace has its bodies
        kinds: dict[Graph, int] = {}
        with keys_by_identity():
            same = [kinds.setdefault(graph, len(kinds)) for graph in graphs]
        self.graphs = list(kinds)
        self.entries: list[Entry] = []
        # what is computed, for which of the entries that were given
        self._sources: list[tuple[Ref, int]] = []
        own = [Entry(same[entry.kind], entry.refs) for entry in entries]
        self._positions = self._numbered(own, steps or range(len(own)))
        self._first_of: dict[Ref, Ref] = {}  # kept values, by the entry that is the first to read them
        kept = keep_values(self.graphs, self.entries) if len(self.entries) >= 2 * LEAST else None
        if kept is not None:
            self.graphs, self.entries, refs, values = kept
            self._positions = [refs[ref] if ref >= 0 else ref for ref in self._positions]
            self._sources = [(refs[ref], number) for ref, number in self._sources]
            self._first_of = {value: refs[number] for value, number in values.items()}
        self.outputs = [self._positions[ref] if ref >= 0 else ref for ref in outputs]

    @classmethod
    def of(cls, description: tuple[Any, ...]) -> Trace:
        """A trace that the core describes, with the order in which its entries run or without."""
        leaves, described, outputs, *steps = description
        kinds: dict[int, int] = {}
        graphs: list[Graph] = []
        entries: list[Entry] = []
        for entry in described:
            types = entry[5]  # one list for all entries of an op instance
            kind = kinds.setdefault(id(types), len(graphs))
            if kind == len(graphs):
                graphs.append(graph_of_entry(entry))
            entries.append(Entry(kind, entry[1]))
        return cls([type_from_code(*type) for type in leaves], graphs, entries, outputs, False, *steps)

    def sources(self) -> list[list[int]]:
        """Which of the entries that were given each entry stands for."""
        found: list[list[int]] = [[] for _ in self.entries]
        for position, number in self._sources:
            if position >= 0:
                found[position].append(number)
        for value, position in self._first_of.items():
            found[value] += found[position]
        return found

    def _numbered(self, entries: Sequence[Entry], steps: Sequence[int]) -> list[Ref]:
        """Take entries in, equal ones once and those that return an operand not at all; what each stands for."""
        shown = [_shown(graph) for graph in self.graphs]
        known: dict[Entry, Ref] = {}
        positions: list[Ref] = [0] * len(entries)
        made = bytearray(len(entries))
        for number in steps:
            kind, refs, _ = entries[number]
            own = tuple([positions[ref] if ref >= 0 else ref for ref in refs])
            operand = shown[kind]
            if operand is None:
                entry = Entry(kind, own, bool(made[number]))
                positions[number] = known.setdefault(entry, len(known))
                self._sources.append((positions[number], number))
            else:
                positions[number] = own[operand]
            made[number] = True
        self.entries = list(known)
        return positions

    def inlined(self) -> Graph:
        """All calls as one closed primitive graph."""
        calls = [(entry.refs, self.graphs[entry.kind]) for entry in self.entries]
        return inline_calls(graph_of_calls(self.leaf_types, calls, self.outputs))

    def outlined(self, least: int = LEAST) -> Outlined:
        """It as a graph of calls of bodies, see ``transforms.outline``."""
        kinds = [_kind(graph) for graph in self.graphs]
        return outline(self.leaf_types, kinds, self.entries, self.outputs, least)


def _shown(graph: Graph) -> int | None:
    """The input that a graph returns as it is; None if it returns another value."""
    (output,) = graph.outputs
    number: int | None = output.attrs[0] if is_input(output) else None
    return number


def _kind(graph: Graph) -> Kind:
    (output,) = graph.outputs
    nodes = graph.nodes()
    # operations on numbers say where a view begins
    kinds = {node.op.kind for node in nodes if node is output or example_of(node.type.size) > 1}
    rows = any(assembly(node) is Assembly.SEGMENT_SUM for node in nodes)
    free = kinds <= {"source", "view"} or (
        rows and is_sparse(output, sum(type.nbytes for type in graph.input_types))
    )
    loops = kinds <= {"source", "view", "elementwise", "reduction"}
    return Kind(graph, example_of(output.type.nbytes), free, loops)


class BodyPlan(NamedTuple):
    """What linking takes from the program of a body."""

    instructions: list[tuple[Any, ...]]
    buffer_sizes: list[int]
    labels: list[Label]
    possible_donations: list[tuple[int, int]]
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
            program.possible_donations,
            program.further_work,
            fails,
        )


_INSTRUCTION_BYTES = 1024  # with its label, roughly


def _bytes(key: tuple[Graph, bool], plan: BodyPlan) -> int:
    return graph_bytes(key[0]) + _INSTRUCTION_BYTES * len(plan.instructions)


_plans: Cache[BodyPlan] = Cache("body plans", 1, _bytes)
"""By the closed graph of a body, and whether its kernels tell what is not finite."""


def compile_outlined(trace: Trace, least: int = LEAST) -> FlatProgram:
    """The program of a trace, each of its bodies planned once."""
    graph, calls = trace.outlined(least)
    if sum(map(bool, calls.values())) <= 1:
        return compile_graphs([trace.inlined()])[0]
    bodies = list(dict.fromkeys(filter(None, map(called, calls))))
    known = {body: plan for body in bodies if not trace.symbolic and (plan := _plans.get((body, MODE.on)))}
    missing = [body for body in bodies if body not in known]
    new = compile_graphs([inline_calls(body) for body in missing])
    for body, planned in zip(missing, new):
        plan = BodyPlan.of(planned)
        known[body] = plan if trace.symbolic else _plans.keep((body, MODE.on), plan)
    program = _Linker(graph, {body: known[body] for body in bodies}).linked(calls)
    program.bodies, program.new_bodies, program.calls = len(bodies), len(new), len(calls)
    for made in new:
        program.new_kernels += made.new_kernels
        program.plan_seconds += made.plan_seconds
        program.kernel_seconds += made.kernel_seconds
    return program


class _Linker:
    """One program of the calls of a graph."""

    def __init__(self, graph: Graph, plans: dict[Graph, BodyPlan]) -> None:
        self._graph = graph
        self._plans = plans
        self._program = FlatProgram([node.type for node in graph.outputs], True)
        self._slots: dict[int, Slot] = {}  # by id of a node
        self._results: dict[int, list[Node]] = {}  # by id of a call
        for node in graph.nodes():
            if node.op.kind == "part":
                self._results.setdefault(node.inputs[0].id, []).append(node)
            elif node.op.kind == "source":
                self._slots[node.id] = INPUT, node.attrs[0]
        for position, node in enumerate(graph.outputs):
            self._slots[node.id] = OUTPUT, position
        self._labels: dict[Graph, int] = {}
        for body, plan in plans.items():
            self._labels[body] = len(self._program.labels)
            self._program.labels += plan.labels

    def linked(self, calls: Iterable[Node]) -> FlatProgram:
        """The program of calls in this order."""
        order = [(call, body) for call in calls if (body := called(call)) is not None]
        for call, body in order:
            self._add(call, body)
        self._program.donations = self._donations(order)
        return self._program

    def _slot(self, node: Node) -> Slot:
        """Where a result lies."""
        found = self._slots.get(node.id)
        if found is None:
            sizes = self._program.buffer_sizes
            found = self._slots[node.id] = ARENA, len(sizes)
            sizes.append(node.type.nbytes)
        return found

    def _add(self, call: Node, body: Graph) -> None:
        """The instructions of a body on the buffers of a call."""
        made, program = self._plans[body], self._program
        arguments = [self._slots[value.id] for value in call.inputs]
        results = {node.attrs[0]: self._slot(node) for node in self._results[call.id]}
        first, label = len(program.buffer_sizes), self._labels[body]
        positions = arguments, results, [(ARENA, first + k) for k in range(len(made.buffer_sizes))]
        program.buffer_sizes += made.buffer_sizes
        program.further_work += made.further_work
        for address, buffers, params, work, grain, number, host in made.instructions:
            bound = tuple([positions[kind][index] for kind, index in buffers])
            host = host.behind(label) if isinstance(host, Inside) else host
            program.instructions.append((address, bound, params, work, grain, label + number, host))

    def _donations(self, calls: Sequence[tuple[Node, Graph]]) -> list[tuple[int, int]]:
        """Those of the bodies where the leaf is read last, and nothing that comes later may fail."""
        found: list[tuple[int, int]] = []
        later: set[Node] = set()
        for call, body in reversed(calls):
            made = self._plans[body]
            results = {node.attrs[0]: node for node in self._results[call.id]}
            for source, target in made.possible_donations:
                kind, position = self._slots[results[target].id]
                leaf = call.inputs[source]
                if leaf.op.kind == "source" and leaf not in later and kind == OUTPUT:
                    found.append((leaf.attrs[0], position))
            if made.may_fail:
                break
            later.update(call.inputs)
        return matched(found)
