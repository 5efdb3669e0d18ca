"""Values that a long trace computes again, far from where it has computed them, as entries of their own.

A backward pass computes the activations of its forward pass again, from the same operands. Where both are planned as
one body this costs nothing, as equal nodes are one. Bodies do not see into each other: a value that takes many
instructions and few bytes (the gates of a recurrent cell) becomes an entry of its own, which one body returns and
others read. Large values are computed again, as memory would cost more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twofold.compiler.lower.expression import operation_cost
from twofold.ir.bind import input_node, is_input
from twofold.ir.graph import Graph, rewrite
from twofold.ir.node import Node, topological
from twofold.ir.sizes import example_of
from twofold.ops.control_flow.programs import renumbered
from twofold.transforms.outline import Entry, Ref

_INSTRUCTIONS = 16  # of an operation on sixteen lanes: fewer take less time than to store and load its result
_BYTES = 1 << 18  # of a value at most
_FAR = 64  # entries between two computations: nearer ones stand in one body, or in two beside each other


class _Value(NamedTuple):
    """A node of an entry as a graph of its own, of the operands of the entry at ``positions``."""

    node: Node
    graph: Graph
    positions: tuple[int, ...]


class _Reading(NamedTuple):
    """A graph that reads kept values: its operands are those at positions of the entry, and values."""

    graph: Graph
    operands: tuple[int | _Value, ...]


class Kept(NamedTuple):
    """A trace that keeps values.

    ``refs`` are the new ones of the given entries; ``values`` says of added ones which given entry reads them first.
    """

    graphs: list[Graph]
    entries: list[Entry]
    refs: list[Ref]
    values: dict[Ref, int]


def keep_values(graphs: Sequence[Graph], entries: Sequence[Entry]) -> Kept | None:
    """Entries of kinds ``graphs`` with values that are computed once and kept; None if there are none."""
    values = [_values(graph) for graph in graphs]
    numbers: dict[Graph, int] = {}
    own = [
        [(numbers.setdefault(value.graph, len(numbers)), value.positions) for value in of] for of in values
    ]
    first: dict[tuple[int, tuple[Ref, ...]], int] = {}
    far: set[int] = set()
    for number, (kind, refs, _) in enumerate(entries):
        for value, positions in own[kind]:
            if number - first.setdefault((value, tuple([refs[k] for k in positions])), number) >= _FAR:
                far.add(value)
    kept = {graph for graph, number in numbers.items() if number in far}
    return _Keeper(graphs, kept).kept(entries) if kept else None


def _values(graph: Graph) -> list[_Value]:
    """The nodes of a graph that may be worth keeping."""
    found = []
    for node in graph.nodes():
        if (
            node.op.kind == "elementwise"
            and example_of(node.type.size) > 1
            and example_of(node.type.nbytes) <= _BYTES
            and operation_cost(node) >= _INSTRUCTIONS
        ):
            inputs = [value for value in topological([node]) if is_input(value)]
            positions = tuple([value.attrs[0] for value in inputs])
            found.append(_Value(node, renumbered([node], inputs), positions))
    return found


class _Keeper:
    """Makes entries again, of graphs that read kept values."""

    def __init__(self, graphs: Sequence[Graph], kept: set[Graph]) -> None:
        self._graphs = graphs
        self._kept = kept
        self._readings: dict[tuple[Graph, bool], _Reading] = {}
        self._kinds: dict[Graph, int] = {}
        self._entries: dict[Entry, Ref] = {}
        self._known: dict[tuple[Graph, tuple[Ref, ...]], Ref] = {}

    def kept(self, entries: Sequence[Entry]) -> Kept:
        """The entries with kept values in front of the first that reads them."""
        refs: list[Ref] = []
        values: dict[Ref, int] = {}
        for number, (kind, own, again) in enumerate(entries):
            before = len(self._entries)
            given = tuple([refs[ref] if ref >= 0 else ref for ref in own])
            refs.append(self._made(self._reading(self._graphs[kind], False), given, again))
            values.update(dict.fromkeys(range(before, len(self._entries)), number))
            values.pop(refs[-1], None)
        return Kept(list(self._kinds), list(self._entries), refs, values)

    def _made(self, reading: _Reading, given: tuple[Ref, ...], again: bool = False) -> Ref:
        """The entry that computes a graph of operands; an operand that it returns itself."""
        operands = tuple(
            [
                given[operand] if isinstance(operand, int) else self._value(operand, given)
                for operand in reading.operands
            ]
        )
        (output,) = reading.graph.outputs
        if is_input(output):
            return operands[output.attrs[0]]
        kind = self._kinds.setdefault(reading.graph, len(self._kinds))
        return self._entries.setdefault(Entry(kind, operands, again), len(self._entries))

    def _value(self, value: _Value, given: tuple[Ref, ...]) -> Ref:
        key = value.graph, tuple([given[k] for k in value.positions])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._made(self._reading(value.graph, True), key[1])
        return found

    def _reading(self, graph: Graph, is_value: bool) -> _Reading:
        """``graph`` reading the kept values in it, but for its own output if it is one itself."""
        found = self._readings.get((graph, is_value))
        if found is None:
            values = [value for value in _values(graph) if value.graph in self._kept]
            if is_value:
                values = [value for value in values if value.node is not graph.outputs[0]]
            count = len(graph.input_types)
            inputs = {value.node.id: input_node(count + k, value.node.type) for k, value in enumerate(values)}
            made = rewrite(graph.outputs, lambda node: inputs.get(node.id))
            used = [node for node in topological(made) if is_input(node)]
            indices = [node.attrs[0] for node in used]
            operands = tuple(
                [position if position < count else values[position - count] for position in indices]
            )
            found = self._readings[graph, is_value] = _Reading(renumbered(made, used), operands)
        return found
