"""Which calls of a trace each kernel of its fused program computes, and what that costs.

A fused program keeps no such thing: it is found by running the passes and the schedule once more, and following each
node through them. A node that a pass makes comes from the node that it stands for, from those that go with it, and,
where a pass does not say, from the nodes that read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from twofold import _core
from twofold.compiler.linking import Trace
from twofold.compiler.lower.expression import operation_cost
from twofold.compiler.schedule.schedule import Instruction, Schedule
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, RewriteLog, called
from twofold.ir.node import Node, topological
from twofold.ir.op import ContractionOp, DerivedOp, TemplateOp
from twofold.ir.types import TensorType, type_from_code
from twofold.transforms.derived import graph_of_entry
from twofold.transforms.pipeline import PASSES

Origins = dict[int, frozenset[int]]
"""The entries of a trace that a node computes, by the number of the node."""


class KernelShare(NamedTuple):
    """One kernel of a program.

    ``shares`` are the entries that it computes with the part of its time that each is counted with; ``nbytes`` what it
    must read and write at least, ``flops`` its floating-point operations.
    """

    name: str
    shares: tuple[tuple[int, float], ...]
    nbytes: int
    flops: int
    operations: tuple[str, ...]


class TracedGraph(NamedTuple):
    """A trace as one primitive graph, and the entries that each node of it computes."""

    graph: Graph
    origins: Origins


def traced_graph(description: Any) -> TracedGraph:
    """All calls of a trace that the core describes, as one closed graph with the entries of its nodes."""
    leaves, entries, outputs, *_ = description
    types = [type_from_code(*type) for type in leaves]
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
    """Nodes and all that they are made of, up to those in ``stop`` and values that cost nothing."""
    found: dict[int, Node] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node.id in stop or node.id in found or node.op.kind == "source":
            continue
        found[node.id] = node
        waiting += node.inputs
    return list(found.values())


def followed(before: Graph, origins: Origins, after: Graph, noted: Sequence[tuple[Node, Node]]) -> Origins:
    """Where the nodes of ``after`` come from, made of ``before`` by rewrites that said what became of nodes."""
    found: dict[int, set[int]] = {key: set(entries) for key, entries in origins.items()}
    images: dict[int, list[Node]] = {}
    for node, made in noted:
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
    """What became of a node in the end, however many rewrites there were."""
    last, seen, waiting = [], set(), list(images.get(node.id, ()))
    while waiting:
        made = waiting.pop()
        if made.id not in seen:
            seen.add(made.id)
            last.append(made)
            waiting += images.get(made.id, ())
    return last


class _Noting:
    """Collects what rewrites do, for the length of a block."""

    def __enter__(self) -> list[tuple[Node, Node]]:
        self._before = RewriteLog.pairs
        found: list[tuple[Node, Node]] = []
        RewriteLog.pairs = found
        return found

    def __exit__(self, *error: object) -> None:
        RewriteLog.pairs = self._before


class Stage(NamedTuple):
    """The graph after a pass, with the entries of its nodes."""

    name: str
    graph: Graph
    origins: Origins


def stages_of(traced: TracedGraph) -> list[Stage]:
    """The graph in primitive operations, and after each pass that changes it."""
    found = [Stage("primitive", traced.graph, traced.origins)]
    for run in PASSES:
        with _Noting() as noted:
            after = run(found[-1].graph)
        if after.outputs != found[-1].graph.outputs:
            origins = followed(found[-1].graph, found[-1].origins, after, noted)
            found.append(Stage(run.__name__, after, origins))
    return found


class Scheduled(NamedTuple):
    """A schedule with the entries of the nodes of its graph."""

    schedule: Schedule
    origins: Origins


def scheduled(stage: Stage) -> Scheduled:
    """The kernels of the last stage."""
    with _Noting() as noted:
        schedule = Schedule(stage.graph)
    return Scheduled(schedule, followed(stage.graph, stage.origins, schedule.graph, noted))


def nodes_of(instruction: Instruction) -> list[Node]:
    """The nodes that a kernel computes, those that no buffer holds included."""
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
    """What a node takes in its kernel, in instructions on single elements, roughly."""
    size = node.type.size
    if node.op.kind == "elementwise":
        return float(operation_cost(node) * size)
    if isinstance(node.op, (ContractionOp, TemplateOp)):
        return node_flops(node) / 2
    return float(max([size, *[value.type.size for value in node.inputs]]))


def _traced_body(body: Graph) -> TracedGraph:
    """A graph of calls, whose entries are these."""
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
    """The graph of calls of bodies that a trace is planned as; None of one that is planned as a whole."""
    found = Trace.of(description).outlined()
    return found.graph if sum(map(bool, found.calls.values())) > 1 else None


def _calls_of(description: Any) -> list[tuple[Graph, list[list[int]]]]:
    """The calls of bodies that a trace is, with those of its entries that each entry of the body stands for.

    None of a trace that is planned as a whole.
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


def program_shares(description: Any) -> list[KernelShare]:
    """What each kernel of the fused program of a trace computes, and for which entries: body by body."""
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


class Part(NamedTuple):
    """What a fused program has once, however many times it runs it: ``entries`` are those of its first call.

    ``body`` is None for a program that is planned as a whole.
    """

    body: Graph | None
    calls: int
    entries: Sequence[int]
    scheduled: Scheduled


def parts_of(description: Any) -> list[Part]:
    """The bodies of the fused program of a trace, or all of it as one."""
    calls = _calls_of(description)
    if not calls:
        every = range(len(description[1]))
        return [Part(None, 1, every, scheduled(stages_of(traced_graph(description))[-1]))]
    found: dict[Graph, Part] = {}
    for body, sources in calls:
        if body in found:
            found[body] = found[body]._replace(calls=found[body].calls + 1)
        else:
            entries = [own[0] for own in sources]
            found[body] = Part(body, 1, entries, scheduled(stages_of(_traced_body(body))[-1]))
    return list(found.values())


def _shares(traced: TracedGraph) -> list[KernelShare]:
    return kernel_shares(*scheduled(stages_of(traced)[-1]))


def kernel_shares(schedule: Schedule, origins: Origins) -> list[KernelShare]:
    """What each kernel computes, and for which entries."""
    known = {node.id: node for node in schedule.graph.nodes()}
    return [_kernel_share(schedule, instruction, origins, known) for instruction in schedule.instructions]


def _kernel_share(
    schedule: Schedule, instruction: Instruction, origins: Origins, known: dict[int, Node]
) -> KernelShare:
    weights: dict[int, float] = {}
    nodes = nodes_of(instruction)
    for node in nodes:
        own = origins.get(node.id, frozenset())
        for entry in own:
            weights[entry] = weights.get(entry, 0.0) + (node_cost(node) + 1.0) / len(own)
    total = sum(weights.values())
    shares = tuple((entry, weight / total) for entry, weight in sorted(weights.items()))
    nbytes = sum(_buffer_bytes(schedule, key, known) for key in dict.fromkeys(instruction.buffers))
    packs = instruction.key is not None and instruction.nest is None and len(instruction.buffers) == 2
    flops = 0 if packs and instruction.name == "pack" else sum(node_flops(node) for node in nodes)
    names = tuple(node.op.name for node in nodes if node.op.kind not in ("view", "source"))
    return KernelShare(instruction.name, shares, nbytes, flops, names)


def _buffer_bytes(schedule: Schedule, key: Any, known: dict[int, Node]) -> int:
    kind, number = key
    if kind == "input":
        return schedule.graph.input_types[number].nbytes
    if kind == "output":
        return schedule.graph.outputs[number].type.nbytes
    return schedule.sizes.get(key, 0)


class EntryCost(NamedTuple):
    """What one call of a trace is and costs by itself."""

    name: str
    is_backward: bool
    types: tuple[TensorType, ...]
    output: TensorType
    nbytes: int
    flops: int


def entry_costs(description: Any) -> list[EntryCost]:
    """Name, bytes and floating-point operations of each entry of a trace."""
    known: dict[Any, EntryCost] = {}
    found = []
    for entry in description[1]:
        _, _, op, attrs, _, written = entry
        key = (op, attrs, id(written))
        if key not in known:
            graph = graph_of_entry(entry)
            types = tuple(graph.input_types)
            output = graph.outputs[0].type
            name, backward = entry_name(op, attrs)
            flops = sum(node_flops(node) for node in graph.nodes())
            nbytes = sum(type.nbytes for type in types) + output.nbytes
            known[key] = EntryCost(name, backward, types, output, nbytes, flops)
        found.append(known[key])
    return found


def entry_name(op: Any, attrs: Any) -> tuple[str, bool]:
    """The public name of what a call computes, and whether it is a gradient of that."""
    backward = False
    while isinstance(op, DerivedOp) and op.is_gradient:
        backward = True
        op, attrs = op.base(attrs)
    names = getattr(op, "functions", ())
    return (names[0] if names else op.name), backward


def description_of(executable: Any) -> Any:
    """What the core keeps of a trace."""
    return _core.describe_executable(executable)
