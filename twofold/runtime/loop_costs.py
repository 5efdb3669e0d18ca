"""What the calls in the body of a loop of the graph cost, for profiles: kernels know the loop alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from twofold.ir.graph import Graph
from twofold.ir.node import mapped
from twofold.ir.op import ControlFlowOp, DerivedOp
from twofold.ir.sizes import Symbol, declared_over
from twofold.ops.control_flow.bounded_loops import Family
from twofold.ops.control_flow.programs import LoopSpec, Parametric, resized
from twofold.runtime.attribution import EntryCost, entry_cost, node_flops
from twofold.runtime.closure_conversion import BODY_CALLS
from twofold.transforms.derived import graph_of_entry


class InnerCall(NamedTuple):
    """A call in the body of a loop.

    Attributes:
        location: Its location.
        cost: Its cost in one iteration.
        part: Its part of the loop's time.
        times: How often it runs in one run of the loop.
        flops: Its floating-point operations in one run of the loop.
        nbytes: Its part of what the iterations of one run read and write at least.
    """

    location: int
    cost: EntryCost
    part: float
    times: float
    flops: float
    nbytes: float


def loop_of(entry: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The attributes of the loop that an instruction of a trace runs, or differentiates; None for others."""
    op, attrs = entry[2], entry[3]
    while isinstance(op, DerivedOp) and op.is_gradient:
        op, attrs = op.base(attrs)
    is_loop = op.returns_program and isinstance(attrs[1].at(attrs[3]), LoopSpec)
    return attrs if is_loop else None


def inner_calls(
    entry: tuple[Any, ...], location: int, is_backward: bool, counts: Sequence[float]
) -> list[InnerCall]:
    """The calls of the body of a loop; none where they are not known.

    Args:
        entry: The instruction that runs the loop, as the core describes it.
        location: Where the loop was called, of a backward pass that of the forward call.
        is_backward: Whether the instruction is of a backward pass.
        counts: How often the body runs, and of loops inside of one another how often the next body runs in each.
    """
    attrs = loop_of(entry)
    found = [] if attrs is None else _of_body(attrs, location, counts)
    if attrs is None or not found:
        return []
    if not is_backward:
        return found
    forward = sum(call.cost.flops for call in found)  # which the graph of the gradient has as well
    ratio = max(_loop_flops(graph_of_entry(entry)) / forward - 1.0, 0.0) if forward else 0.0
    return [call._replace(flops=call.flops * ratio) for call in found]


def _operands(entry: tuple[Any, ...]) -> tuple[int | None, ...]:
    """The operands of an instruction; None for Python numbers, of which each instruction has its own."""
    return tuple(None if ref < 0 and type[2] else ref for ref, type in zip(entry[1], entry[5]))


class LoopRuns:
    """Which instructions of a trace are one run of a loop: there is one for each dtype of its results."""

    def __init__(self, entries: Sequence[tuple[Any, ...]], provenance: Sequence[tuple[int, int]]) -> None:
        self.first: dict[int, int] = {}
        """The first instruction of the run that an instruction is of."""
        self._runs: dict[Any, int] = {}  # how many runs of a loop there are at a location
        known: dict[Any, tuple[int, list[Any]]] = {}
        for number, (entry, (location, forward)) in enumerate(zip(entries, provenance)):
            if (attrs := loop_of(entry)) is None:
                continue
            dtype = number if forward else attrs[2]
            key = (location, forward, attrs[1], () if forward else _operands(entry))
            first, dtypes = known.get(key, (number, []))
            if dtype in dtypes:  # the same loop on the same values again
                first, dtypes = number, []
            if not dtypes and not forward:
                self._runs[location, attrs[1]] = self._runs.get((location, attrs[1]), 0) + 1
            known[key] = first, [*dtypes, dtype]
            self.first[number] = first
        self._entries, self._provenance = entries, provenance

    def count(self, number: int) -> int:
        """How many runs of a loop an instruction stands for: of a backward pass those of the forward pass."""
        _, forward = self._provenance[number]
        attrs = loop_of(self._entries[number])
        return self._runs.get((forward, attrs[1]), 1) if forward and attrs is not None else 1


def _of_body(attrs: tuple[Any, ...], location: int, counts: Sequence[float]) -> list[InnerCall]:
    times, body = counts[0] if counts else 1.0, attrs[1].at(attrs[3]).body
    own = sum(type.nbytes for type in (*body.input_types, *[node.type for node in body.outputs]))
    found: list[InnerCall] = []
    weights: list[float] = []
    for part in (BODY_CALLS.get(location) or {}).get(attrs[1].content_key, ()):
        for one, (inner, forward) in zip(part.entries, part.provenance):
            inside, graph = _with_sizes(one, attrs)
            if loop_of((*one[:3], inside)) is not None and (nested := _of_body(inside, inner, counts[1:])):
                weights += [call.times * _weight(call.cost) for call in nested]
            else:
                cost = entry_cost(one[2], inside, graph)
                nested = [InnerCall(forward or inner, cost, 1.0, 1.0, float(cost.flops), 0.0)]
                weights.append(_weight(cost))
            found += nested
    total = sum(weights)
    return [
        InnerCall(
            call.location,
            call.cost,
            weight / total,
            call.times * times,
            call.flops * times,
            (call.nbytes or own * weight / total) * times,
        )
        for call, weight in zip(found, weights)
    ]


def _weight(cost: EntryCost) -> float:
    return cost.flops + cost.nbytes + 1.0


def _with_sizes(entry: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[tuple[Any, ...], Graph]:
    """The attributes and the graph of an instruction of a body for the sizes that the call of the loop gives it."""
    if not isinstance(attrs[1], Parametric):
        return entry[3], graph_of_entry(entry)
    sizes = attrs[1].sizes_at(attrs[3])
    recordings: list[Any] = []  # that the symbols of the body are of

    def note(size: Symbol) -> Symbol:
        recordings.append(size.recording)
        return size

    attrs[1].content.resized(note)
    with declared_over(recordings[0]):
        return mapped(entry[3], sizes), resized(graph_of_entry(entry), sizes)


def _loop_flops(graph: Graph) -> float:
    """Floating-point operations of all bodies of loops in a graph, each run once."""
    total = 0.0
    for node in graph.nodes():
        if not isinstance(node.op, ControlFlowOp):
            continue
        family = node.attrs[0]
        if isinstance(family, Family):
            total += _loop_flops(family.graph(1))
            continue
        for body in node.op.graphs(node.attrs):
            total += sum(node_flops(one) for one in body.nodes()) + _loop_flops(body)
    return total
