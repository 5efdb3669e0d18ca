"""Hoisting of values that a long trace computes more than once, far apart, as instructions of their own.

A backward pass recomputes the activations of its forward pass from the same operands. Within one body common
subexpression elimination merges them. It does not reach across bodies: so a value that takes many machine instructions
and few bytes (the gates of a recurrent cell) becomes an instruction, whose result one body returns and others read.
Large values are recomputed, as memory would cost more.
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
from twofold.transforms.outline import Instruction, Ref

_MIN_COST = (
    16  # machine instructions for sixteen lanes: fewer take less time than to store and load the result
)
_MAX_BYTES = 1 << 18
_FAR = 64  # instructions between two computations: nearer ones are in one body, or in adjacent ones


class _Value(NamedTuple):
    """A node inside the graph of an op instance, as a graph of the operands at ``positions`` of the instruction."""

    node: Node
    graph: Graph
    positions: tuple[int, ...]


class _Reader(NamedTuple):
    """A graph that reads hoisted values; its operands are positions of operands of the instruction, and values."""

    graph: Graph
    operands: tuple[int | _Value, ...]


class Hoisted(NamedTuple):
    """A trace with hoisted values.

    Attributes:
        graphs: The closed graphs of its op instances, by number.
        instructions: The instructions, hoisted values before the first that reads them.
        refs: The operand that each of the original instructions became.
        readers: For each hoisted value, the original instruction that reads it first.
    """

    graphs: list[Graph]
    instructions: list[Instruction]
    refs: list[Ref]
    readers: dict[Ref, int]


def hoist_values(graphs: Sequence[Graph], instructions: Sequence[Instruction]) -> Hoisted | None:
    """Hoist the values that are computed again at least ``_FAR`` instructions later.

    Args:
        graphs: The closed graphs of op instances, by number.
        instructions: A trace of them.

    Returns:
        The trace with hoisted values, or None if there are none.
    """
    values = [_candidates(graph) for graph in graphs]
    numbers: dict[Graph, int] = {}
    by_instance = [
        [(numbers.setdefault(value.graph, len(numbers)), value.positions) for value in own] for own in values
    ]
    first: dict[tuple[int, tuple[Ref, ...]], int] = {}
    far: set[int] = set()
    for position, (instance, operands, _) in enumerate(instructions):
        for value, positions in by_instance[instance]:
            key = value, tuple([operands[k] for k in positions])
            if position - first.setdefault(key, position) >= _FAR:
                far.add(value)
    hoisted = {graph for graph, number in numbers.items() if number in far}
    return _Hoister(graphs, hoisted).trace(instructions) if hoisted else None


def _candidates(graph: Graph) -> list[_Value]:
    """The nodes of a graph that are expensive and small enough to be hoisted."""
    found = []
    for node in graph.nodes():
        if (
            node.op.kind == "elementwise"
            and example_of(node.type.size) > 1
            and example_of(node.type.nbytes) <= _MAX_BYTES
            and operation_cost(node) >= _MIN_COST
        ):
            inputs = [value for value in topological([node]) if is_input(value)]
            positions = tuple([value.attrs[0] for value in inputs])
            found.append(_Value(node, renumbered([node], inputs), positions))
    return found


class _Hoister:
    """Rebuilds a trace with the values of the graphs ``hoisted`` as instructions."""

    def __init__(self, graphs: Sequence[Graph], hoisted: set[Graph]) -> None:
        self._graphs = graphs
        self._hoisted = hoisted
        self._readers: dict[tuple[Graph, bool], _Reader] = {}
        self._instances: dict[Graph, int] = {}
        self._instructions: dict[Instruction, Ref] = {}
        self._values: dict[tuple[Graph, tuple[Ref, ...]], Ref] = {}

    def trace(self, instructions: Sequence[Instruction]) -> Hoisted:
        """The rebuilt trace."""
        refs: list[Ref] = []
        readers: dict[Ref, int] = {}
        for position, (instance, own, recomputed) in enumerate(instructions):
            before = len(self._instructions)
            operands = tuple([refs[ref] if ref >= 0 else ref for ref in own])
            refs.append(self._emit(self._reader(self._graphs[instance], False), operands, recomputed))
            readers.update(dict.fromkeys(range(before, len(self._instructions)), position))
            readers.pop(refs[-1], None)
        return Hoisted(list(self._instances), list(self._instructions), refs, readers)

    def _emit(self, reader: _Reader, given: tuple[Ref, ...], recomputed: bool = False) -> Ref:
        """The instruction that computes a graph of the operands ``given``; for an identity its operand."""
        operands = tuple(
            [
                given[operand] if isinstance(operand, int) else self._value(operand, given)
                for operand in reader.operands
            ]
        )
        (output,) = reader.graph.outputs
        if is_input(output):
            return operands[output.attrs[0]]
        instance = self._instances.setdefault(reader.graph, len(self._instances))
        instruction = Instruction(instance, operands, recomputed)
        return self._instructions.setdefault(instruction, len(self._instructions))

    def _value(self, value: _Value, given: tuple[Ref, ...]) -> Ref:
        key = value.graph, tuple([given[k] for k in value.positions])
        ref = self._values.get(key)
        if ref is None:
            ref = self._values[key] = self._emit(self._reader(value.graph, True), key[1])
        return ref

    def _reader(self, graph: Graph, is_value: bool) -> _Reader:
        """``graph`` with the hoisted values in it as inputs, except its own output if it is one itself."""
        reader = self._readers.get((graph, is_value))
        if reader is None:
            values = [value for value in _candidates(graph) if value.graph in self._hoisted]
            if is_value:
                values = [value for value in values if value.node is not graph.outputs[0]]
            count = len(graph.input_types)
            inputs = {value.node.id: input_node(count + k, value.node.type) for k, value in enumerate(values)}
            outputs = rewrite(graph.outputs, lambda node: inputs.get(node.id))
            used = [node for node in topological(outputs) if is_input(node)]
            indices = [node.attrs[0] for node in used]
            operands = tuple(
                [position if position < count else values[position - count] for position in indices]
            )
            reader = self._readers[graph, is_value] = _Reader(renumbered(outputs, used), operands)
        return reader
