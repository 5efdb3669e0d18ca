"""Linking: each body of an outlined trace is planned once, and its calls become one flat program.

Plans are cached by the closed graph of a body: traces of other lengths, or with other outputs, share most of them.
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
    NestedPrograms,
    compile_graphs,
)
from twofold.compiler.hoisted_values import hoist_values
from twofold.compiler.lower.mode import MODE, staying_weights
from twofold.compiler.portable_program import Label
from twofold.compiler.portable_trace import infers
from twofold.compiler.schedule.donation import matched, may_fail
from twofold.ir.bind import is_input
from twofold.ir.graph import Graph, called, graph_bytes, graph_of_calls, inline_calls
from twofold.ir.node import Node
from twofold.ir.op import Assembly
from twofold.ir.sizes import example_of, keys_by_identity
from twofold.ir.types import TensorType, type_from_code
from twofold.ir.views import assembly
from twofold.transforms.derived import graph_of_entry
from twofold.transforms.outline import MIN_SAVED, InstanceInfo, Instruction, Outlined, Ref, outline
from twofold.transforms.sparse_rows import is_sparse

Slot = tuple[int, int]


class Trace:
    """A trace as instructions of op instances, after common subexpression elimination.

    Attributes:
        input_types: The types of the trace inputs.
        graphs: The closed graphs of the op instances, by number.
        instructions: What is computed, equal instructions once.
        outputs: What the trace returns.
        infers: Whether it computes without gradients, see ``infers``.
    """

    def __init__(
        self,
        input_types: Sequence[TensorType],
        graphs: Sequence[Graph],
        recorded: Sequence[Instruction],
        outputs: Sequence[Ref],
        symbolic: bool = False,
        steps: Sequence[int] = (),
        infers: bool = False,
    ) -> None:
        """Merge equal instructions, and hoist values that are recomputed far apart (see ``compiler.hoisted_values``).

        Args:
            input_types: The types of the trace inputs.
            graphs: The closed graphs of the op instances, by number; some may be equal.
            recorded: The instructions as they were recorded.
            outputs: What the trace returns.
            symbolic: Whether sizes are symbols of one recording, so that no other trace has the same bodies.
            steps: Positions of the instructions in the order in which they run, if some run more than once.
            infers: Whether it computes without gradients, see ``infers``.
        """
        self.input_types = list(input_types)
        self.symbolic = symbolic
        self.infers = infers
        numbers: dict[Graph, int] = {}
        with keys_by_identity():
            same = [numbers.setdefault(graph, len(numbers)) for graph in graphs]
        self.graphs = list(numbers)
        self.instructions: list[Instruction] = []
        # pairs of a position here and that of a recorded instruction which it computes
        self._sources: list[tuple[Ref, int]] = []
        own = [Instruction(same[instance], operands) for instance, operands, _ in recorded]
        positions = self._merge(own, steps or range(len(own)))
        self._first_readers: dict[Ref, Ref] = {}  # of hoisted values
        hoisted = (
            hoist_values(self.graphs, self.instructions) if len(self.instructions) >= 2 * MIN_SAVED else None
        )
        if hoisted is not None:
            self.graphs, self.instructions, refs, readers = hoisted
            positions = [refs[ref] if ref >= 0 else ref for ref in positions]
            self._sources = [(refs[ref], number) for ref, number in self._sources]
            self._first_readers = {value: refs[number] for value, number in readers.items()}
        self.outputs = [positions[ref] if ref >= 0 else ref for ref in outputs]

    @classmethod
    def of(cls, description: tuple[Any, ...], without_gradients: bool | None = None) -> Trace:
        """The trace of ``(input types, entries, outputs)`` as the core describes it, perhaps with ``steps``.

        ``without_gradients`` is what ``infers`` told of an earlier description; None: it is asked now.
        """
        input_types, entries, outputs, *rest = description
        steps = rest[0] if rest else ()
        inference = infers(description) if without_gradients is None else without_gradients
        numbers: dict[int, int] = {}
        graphs: list[Graph] = []
        recorded: list[Instruction] = []
        for entry in entries:
            types = entry[5]  # one list for all entries of an op instance
            number = numbers.setdefault(id(types), len(graphs))
            if number == len(graphs):
                graphs.append(graph_of_entry(entry))
            recorded.append(Instruction(number, entry[1]))
        types = [type_from_code(*type) for type in input_types]
        return cls(types, graphs, recorded, outputs, steps=steps, infers=inference)

    def sources(self) -> list[list[int]]:
        """For each instruction, the positions of the recorded instructions that it computes."""
        sources: list[list[int]] = [[] for _ in self.instructions]
        for position, number in self._sources:
            if position >= 0:
                sources[position].append(number)
        for value, position in self._first_readers.items():
            sources[value] += sources[position]
        return sources

    def _merge(self, recorded: Sequence[Instruction], steps: Sequence[int]) -> list[Ref]:
        """Eliminate common subexpressions and identities; returns the operand that each instruction became."""
        forwarded = [_forwarded_input(graph) for graph in self.graphs]
        merged: dict[Instruction, Ref] = {}
        positions: list[Ref] = [0] * len(recorded)
        computed = bytearray(len(recorded))
        for number in steps:
            instance, operands, _ = recorded[number]
            own = tuple([positions[ref] if ref >= 0 else ref for ref in operands])
            operand = forwarded[instance]
            if operand is None:
                instruction = Instruction(instance, own, bool(computed[number]))
                positions[number] = merged.setdefault(instruction, len(merged))
                self._sources.append((positions[number], number))
            else:
                positions[number] = own[operand]
            computed[number] = True
        self.instructions = list(merged)
        return positions

    def inlined(self) -> Graph:
        """All calls as one closed primitive graph."""
        calls = [(operands, self.graphs[instance]) for instance, operands, _ in self.instructions]
        return inline_calls(graph_of_calls(self.input_types, calls, self.outputs))

    def outlined(self, min_saved: int = MIN_SAVED) -> Outlined:
        """The trace as a graph of calls of bodies, see ``transforms.outline``."""
        instances = [_instance_info(graph) for graph in self.graphs]
        return outline(self.input_types, instances, self.instructions, self.outputs, min_saved)


def _forwarded_input(graph: Graph) -> int | None:
    """The input that an identity returns; None if the graph computes something."""
    (output,) = graph.outputs
    number: int | None = output.attrs[0] if is_input(output) else None
    return number


def _instance_info(graph: Graph) -> InstanceInfo:
    (output,) = graph.outputs
    nodes = graph.nodes()
    # operations on scalars compute the offset of a view
    kinds = {node.op.kind for node in nodes if node is output or example_of(node.type.size) > 1}
    sums_rows = any(assembly(node) is Assembly.SEGMENT_SUM for node in nodes)
    free = kinds <= {"source", "view"} or (
        sums_rows and is_sparse(output, sum(type.nbytes for type in graph.input_types))
    )
    fusible = kinds <= {"source", "view", "elementwise", "reduction"}
    return InstanceInfo(graph, example_of(output.type.nbytes), free, fusible)


class BodyPlan(NamedTuple):
    """The program of a body, as far as linking needs it."""

    instructions: list[tuple[Any, ...]]
    buffer_sizes: list[int]
    labels: list[Label]
    possible_donations: list[tuple[int, int]]
    nested_nanoseconds: int
    may_fail: bool

    @classmethod
    def of(cls, program: CompiledProgram) -> BodyPlan:
        """The plan of a body that was compiled as a program."""
        fails = any(may_fail(instruction) for instruction in program.schedule.instructions)
        return cls(
            program.instructions,
            program.buffer_sizes,
            program.labels,
            program.possible_donations,
            program.nested_nanoseconds,
            fails,
        )


_INSTRUCTION_BYTES = 1024  # of memory, with its label, roughly


def _bytes(key: tuple[Graph, tuple[bool, bool]], plan: BodyPlan) -> int:
    return graph_bytes(key[0]) + _INSTRUCTION_BYTES * len(plan.instructions)


_plans: Cache[BodyPlan] = Cache("body plans", 1, _bytes)
"""By the closed graph of a body, and whether its kernels report values that are not finite and its weights stay."""


def compile_outlined(trace: Trace, min_saved: int = MIN_SAVED) -> FlatProgram:
    """Compile a trace, each of its bodies once."""
    with staying_weights(trace.infers):
        return _compiled(trace, min_saved)


def _compiled(trace: Trace, min_saved: int) -> FlatProgram:
    graph, calls = trace.outlined(min_saved)
    if sum(map(bool, calls.values())) <= 1:
        return compile_graphs([trace.inlined()])[0]
    bodies = list(dict.fromkeys(filter(None, map(called, calls))))
    mode = MODE.on, trace.infers
    known = {body: plan for body in bodies if not trace.symbolic and (plan := _plans.get((body, mode)))}
    missing = [body for body in bodies if body not in known]
    new = compile_graphs([inline_calls(body) for body in missing])
    for body, planned in zip(missing, new):
        plan = BodyPlan.of(planned)
        known[body] = plan if trace.symbolic else _plans.keep((body, mode), plan)
    program = _Linker(graph, {body: known[body] for body in bodies}).linked(calls)
    program.bodies, program.new_bodies, program.calls = len(bodies), len(new), len(calls)
    for made in new:
        program.new_kernels += made.new_kernels
        program.plan_seconds += made.plan_seconds
        program.kernel_seconds += made.kernel_seconds
    return program


class _Linker:
    """Concatenates the programs of bodies, with their buffers bound to the arguments and results of calls."""

    def __init__(self, graph: Graph, plans: dict[Graph, BodyPlan]) -> None:
        self._graph = graph
        self._plans = plans
        self._program = FlatProgram([node.type for node in graph.outputs], True)
        self._slots: dict[int, Slot] = {}  # by id of a node
        self._results: dict[int, list[Node]] = {}  # by id of a call
        for node in graph.nodes():
            if node.op.kind == "get_output":
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
        """The program that runs ``calls`` in this order."""
        order = [(call, body) for call in calls if (body := called(call)) is not None]
        for call, body in order:
            self._add(call, body)
        self._program.donations = self._donations(order)
        return self._program

    def _slot(self, node: Node) -> Slot:
        """The buffer of a result."""
        found = self._slots.get(node.id)
        if found is None:
            sizes = self._program.buffer_sizes
            found = self._slots[node.id] = ARENA, len(sizes)
            sizes.append(node.type.nbytes)
        return found

    def _add(self, call: Node, body: Graph) -> None:
        """Add the instructions of a body, on the buffers of a call."""
        made, program = self._plans[body], self._program
        arguments = [self._slots[value.id] for value in call.inputs]
        results = {node.attrs[0]: self._slot(node) for node in self._results[call.id]}
        first, label = len(program.buffer_sizes), self._labels[body]
        positions = arguments, results, [(ARENA, first + k) for k in range(len(made.buffer_sizes))]
        program.buffer_sizes += made.buffer_sizes
        program.nested_nanoseconds += made.nested_nanoseconds
        for address, buffers, params, work, grain, number, host in made.instructions:
            bound = tuple([positions[kind][index] for kind, index in buffers])
            host = host.relabelled(label) if isinstance(host, NestedPrograms) else host
            program.instructions.append((address, bound, params, work, grain, label + number, host))

    def _donations(self, calls: Sequence[tuple[Node, Graph]]) -> list[tuple[int, int]]:
        """Donations of bodies that hold for the program: no later call reads the input, and none may fail."""
        donations: list[tuple[int, int]] = []
        read_later: set[Node] = set()
        for call, body in reversed(calls):
            made = self._plans[body]
            results = {node.attrs[0]: node for node in self._results[call.id]}
            for source, target in made.possible_donations:
                kind, position = self._slots[results[target].id]
                value = call.inputs[source]
                if value.op.kind == "source" and value not in read_later and kind == OUTPUT:
                    donations.append((value.attrs[0], position))
            if made.may_fail:
                break
            read_later.update(call.inputs)
        return matched(donations)
