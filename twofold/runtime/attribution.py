"""Attribution: which instructions of a trace each kernel of its fused program computes, and what they cost.

Programs keep no provenance. It is recomputed by running the passes and the schedule again, with a log of rewrites.
A node that a pass makes has the provenance of the node that it replaces and of nodes that are removed with it; without
an entry in the log, that of its consumers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from twofold import _core
from twofold.compiler.linking import Trace, infers
from twofold.compiler.lower.expression import operation_cost
from twofold.compiler.lower.mode import staying_weights
from twofold.compiler.schedule.schedule import Instruction, Schedule
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, RewriteLog, called
from twofold.ir.node import Node, topological
from twofold.ir.op import ContractionOp, DerivedOp, TemplateOp
from twofold.ir.types import TensorType, type_from_code
from twofold.transforms.derived import graph_of_entry
from twofold.transforms.pipeline import PASSES

Origins = dict[int, frozenset[int]]
"""Provenance: the instructions of a trace that a node computes, by id of the node."""


class KernelShare(NamedTuple):
    """The work of one kernel of a program.

    Attributes:
        name: Its name.
        shares: Instructions that it computes, each with its share of the time.
        nbytes: A lower bound of the bytes that it reads and writes.
        flops: Its floating-point operations.
        operations: The names of the operations that it computes.
    """

    name: str
    shares: tuple[tuple[int, float], ...]
    nbytes: int
    flops: int
    operations: tuple[str, ...]


class TracedGraph(NamedTuple):
    """A trace as one primitive graph, with provenance."""

    graph: Graph
    origins: Origins


def traced_graph(description: Any) -> TracedGraph:
    """Inline all calls of a trace that the core describes."""
    inputs, entries, outputs, *_ = description
    types = [type_from_code(*type) for type in inputs]
    return _traced(types, [(entry[1], graph_of_entry(entry)) for entry in entries], outputs)


def _traced(
    types: Sequence[TensorType], calls: Iterable[tuple[Sequence[int], Graph]], outputs: Sequence[int]
) -> TracedGraph:
    inputs = [input_node(k, type) for k, type in enumerate(types)]
    values: list[Node] = []
    origins: dict[int, set[int]] = {}
    for number, (refs, callee) in enumerate(calls):
        operands = [values[ref] if ref >= 0 else inputs[~ref] for ref in refs]
        made = callee.inline(operands)[0]
        stop = {node.id for node in operands}
        for node in _above([made], stop):
            origins.setdefault(node.id, set()).add(number)
        values.append(made)
    graph = Graph(types, [values[ref] if ref >= 0 else inputs[~ref] for ref in outputs])
    return TracedGraph(graph, {key: frozenset(found) for key, found in origins.items()})


def _above(nodes: Iterable[Node], stop: set[int]) -> list[Node]:
    """Nodes and their transitive operands, up to those in ``stop``, without inputs and constants."""
    found: dict[int, Node] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node.id in stop or node.id in found or node.op.kind == "source":
            continue
        found[node.id] = node
        waiting += node.inputs
    return list(found.values())


def propagate(before: Graph, origins: Origins, after: Graph, log: Sequence[tuple[Node, Node]]) -> Origins:
    """Propagate provenance through a pass.

    Args:
        before: The graph before the pass.
        origins: The provenance of its nodes.
        after: The graph after the pass.
        log: Pairs of a node and its replacement, in order.

    Returns:
        The provenance of the nodes of ``after``.
    """
    found: dict[int, set[int]] = {key: set(entries) for key, entries in origins.items()}
    images: dict[int, list[Node]] = {}
    for node, made in log:
        images.setdefault(node.id, []).append(made)
        if made.op.kind != "source":
            found.setdefault(made.id, set()).update(found.get(node.id, ()))
    order = topological(after.outputs)
    alive = {node.id for node in order}
    carriers: dict[int, set[int]] = {}
    users: dict[int, list[int]] = {}
    for node in before.nodes():
        for value in node.inputs:
            users.setdefault(value.id, []).append(node.id)
    for node in reversed(before.nodes()):
        own = {made.id for made in _last_images(node, images) if made.id in alive}
        if node.id in alive:
            own.add(node.id)
        if not own:
            own = set().union(*[carriers.get(user, ()) for user in users.get(node.id, ())])
            for carrier in own:
                found.setdefault(carrier, set()).update(found.get(node.id, ()))
        carriers[node.id] = own
    readers: dict[int, set[int]] = {}
    for node in reversed(order):
        if node.op.kind == "source":
            continue
        if not found.get(node.id):
            found[node.id] = readers.get(node.id, set())
        for value in node.inputs:
            readers.setdefault(value.id, set()).update(found[node.id])
    return {node.id: frozenset(found.get(node.id, ())) for node in order}


def _last_images(node: Node, images: dict[int, list[Node]]) -> list[Node]:
    """The transitive replacements of a node."""
    last, seen, waiting = [], set(), list(images.get(node.id, ()))
    while waiting:
        made = waiting.pop()
        if made.id not in seen:
            seen.add(made.id)
            last.append(made)
            waiting += images.get(made.id, ())
    return last


class _LoggedRewrites:
    """A context in which rewrites are logged."""

    def __enter__(self) -> list[tuple[Node, Node]]:
        self._before = RewriteLog.pairs
        found: list[tuple[Node, Node]] = []
        RewriteLog.pairs = found
        return found

    def __exit__(self, *error: object) -> None:
        RewriteLog.pairs = self._before


class Stage(NamedTuple):
    """The graph after a pass, with provenance."""

    name: str
    graph: Graph
    origins: Origins


def stages_of(traced: TracedGraph) -> list[Stage]:
    """The primitive graph, and the graph after each pass that changes it."""
    found = [Stage("primitive", traced.graph, traced.origins)]
    for run in PASSES:
        with _LoggedRewrites() as log:
            after = run(found[-1].graph)
        if after.outputs != found[-1].graph.outputs:
            origins = propagate(found[-1].graph, found[-1].origins, after, log)
            found.append(Stage(run.__name__, after, origins))
    return found


class Scheduled(NamedTuple):
    """A schedule, with the provenance of the nodes of its graph."""

    schedule: Schedule
    origins: Origins


def scheduled(stage: Stage) -> Scheduled:
    """Schedule the graph of a stage."""
    with _LoggedRewrites() as log:
        schedule = Schedule(stage.graph)
    return Scheduled(schedule, propagate(stage.graph, stage.origins, schedule.graph, log))


def nodes_of(instruction: Instruction) -> list[Node]:
    """The nodes that a kernel computes, those without a buffer included."""
    found = {node.id: node for node in instruction.nodes}
    if instruction.nest is not None:
        for step in instruction.nest.steps:
            if step.kind in ("op", "reduce", "accumulator"):
                found[step.node.id] = step.node
    return list(found.values())


def node_flops(node: Node) -> int:
    """Floating-point operations of a node."""
    count: int = node.op.flops(node.attrs, [value.type for value in node.inputs], node.type)
    return count


def node_cost(node: Node) -> float:
    """The approximate cost of a node in its kernel, in scalar instructions."""
    size = node.type.size
    if node.op.kind == "elementwise":
        return float(operation_cost(node) * size)
    if isinstance(node.op, (ContractionOp, TemplateOp)):
        return node_flops(node) / 2
    return float(max([size, *[value.type.size for value in node.inputs]]))


def _traced_body(body: Graph) -> TracedGraph:
    """Inline all calls of a body; the provenance refers to its calls."""
    numbers: dict[int, int] = {}
    calls: list[tuple[Sequence[int], Graph]] = []
    for node in body.nodes():
        callee = called(node)
        if callee is not None:
            numbers[node.id] = len(calls)
            calls.append(([numbers[value.id] for value in node.inputs], callee))
        else:
            numbers[node.id] = numbers[node.inputs[0].id] if node.inputs else ~node.attrs[0]
    return _traced(body.input_types, calls, [numbers[output.id] for output in body.outputs])


def outlined_graph(description: Any) -> Graph | None:
    """The outlined graph of a trace; None if it has a single body."""
    found = Trace.of(description).outlined()
    return found.graph if sum(map(bool, found.calls.values())) > 1 else None


def _calls_of(description: Any) -> list[tuple[Graph, list[list[int]]]]:
    """The calls of bodies of an outlined trace.

    Each comes with the instructions of the trace that each call in the body computes. Empty if there is a single body.
    """
    trace = Trace.of(description)
    calls = {call: entries for call, entries in trace.outlined().calls.items() if entries}
    if len(calls) <= 1:
        return []
    sources = trace.sources()
    return [
        (body, [sources[number] for number in entries])
        for call, entries in calls.items()
        if (body := called(call)) is not None
    ]


@contextmanager
def planned_as(description: Any) -> Iterator[None]:
    """Inside, schedules are those of the fused program of a trace."""
    with staying_weights(infers(description)):
        yield


def program_shares(description: Any) -> list[KernelShare]:
    """The work of each kernel of the fused program of a trace."""
    with planned_as(description):
        return _program_shares(description)


def _program_shares(description: Any) -> list[KernelShare]:
    calls = _calls_of(description)
    if not calls:
        return _shares(traced_graph(description))
    known: dict[Graph, list[KernelShare]] = {}
    found: list[KernelShare] = []
    for body, sources in calls:
        if body not in known:
            known[body] = _shares(_traced_body(body))
        for kernel in known[body]:
            shares = [
                (source, part / len(sources[number]))
                for number, part in kernel.shares
                for source in sources[number]
            ]
            found.append(kernel._replace(shares=tuple(shares)))
    return found


class ProgramBody(NamedTuple):
    """A body of a fused program.

    Attributes:
        body: Its graph; None if the program has a single body.
        calls: The number of its calls.
        entries: The instructions that its first call computes.
        scheduled: Its schedule.
    """

    body: Graph | None
    calls: int
    entries: Sequence[int]
    scheduled: Scheduled


def bodies_of(description: Any) -> list[ProgramBody]:
    """The bodies of the fused program of a trace."""
    with planned_as(description):
        return _bodies_of(description)


def _bodies_of(description: Any) -> list[ProgramBody]:
    calls = _calls_of(description)
    if not calls:
        every = range(len(description[1]))
        return [ProgramBody(None, 1, every, scheduled(stages_of(traced_graph(description))[-1]))]
    found: dict[Graph, ProgramBody] = {}
    for body, sources in calls:
        if body in found:
            found[body] = found[body]._replace(calls=found[body].calls + 1)
        else:
            entries = [own[0] for own in sources]
            found[body] = ProgramBody(body, 1, entries, scheduled(stages_of(_traced_body(body))[-1]))
    return list(found.values())


def _shares(traced: TracedGraph) -> list[KernelShare]:
    return kernel_shares(*scheduled(stages_of(traced)[-1]))


def kernel_shares(schedule: Schedule, origins: Origins) -> list[KernelShare]:
    """The work of each kernel of a schedule."""
    return [_kernel_share(schedule, instruction, origins) for instruction in schedule.instructions]


def _kernel_share(schedule: Schedule, instruction: Instruction, origins: Origins) -> KernelShare:
    weights: dict[int, float] = {}
    nodes = nodes_of(instruction)
    for node in nodes:
        own = origins.get(node.id, frozenset())
        for entry in own:
            weights[entry] = weights.get(entry, 0.0) + (node_cost(node) + 1.0) / len(own)
    total = sum(weights.values())
    shares = tuple((entry, weight / total) for entry, weight in sorted(weights.items()))
    nbytes = sum(_buffer_bytes(schedule, key) for key in dict.fromkeys(instruction.buffers))
    packs = instruction.key is not None and instruction.nest is None and len(instruction.buffers) == 2
    flops = 0 if packs and instruction.name == "pack" else sum(node_flops(node) for node in nodes)
    names = tuple(node.op.name for node in nodes if node.op.kind not in ("view", "source"))
    return KernelShare(instruction.name, shares, nbytes, flops, names)


def _buffer_bytes(schedule: Schedule, key: Any) -> int:
    kind, number = key
    if kind == "input":
        return schedule.graph.input_types[number].nbytes
    if kind == "output":
        return schedule.graph.outputs[number].type.nbytes
    return schedule.sizes.get(key, 0)


class EntryCost(NamedTuple):
    """The operation, types and cost of one instruction of a trace by itself."""

    name: str
    is_backward: bool
    types: tuple[TensorType, ...]
    output: TensorType
    nbytes: int
    flops: int


def entry_costs(description: Any) -> list[EntryCost]:
    """The cost of each instruction of a trace."""
    known: dict[Any, EntryCost] = {}
    found = []
    for entry in description[1]:
        _, _, op, attrs, _, written = entry
        key = (op, attrs, id(written))
        if key not in known:
            known[key] = entry_cost(op, attrs, graph_of_entry(entry))
        found.append(known[key])
    return found


def entry_cost(op: Any, attrs: Any, graph: Graph) -> EntryCost:
    """The cost of a call of an operation, whose closed graph is ``graph``."""
    types = tuple(graph.input_types)
    output = graph.outputs[0].type
    name, backward = entry_name(op, attrs)
    flops = sum(node_flops(node) for node in graph.nodes())
    nbytes = sum(type.nbytes for type in types) + output.nbytes
    return EntryCost(name, backward, types, output, nbytes, flops)


def entry_name(op: Any, attrs: Any) -> tuple[str, bool]:
    """The public name of an operation, or of the one that it differentiates; and whether it is a gradient."""
    backward = False
    while isinstance(op, DerivedOp) and op.is_gradient:
        backward = True
        op, attrs = op.base(attrs)
    if op.returns_program:  # a loop or choice, which says its name
        return str(attrs[0]), backward
    names = getattr(op, "functions", ())
    return (names[0] if names else op.name), backward


def description_of(executable: Any) -> Any:
    """The description of the trace of an executable."""
    return _core.describe_executable(executable)
