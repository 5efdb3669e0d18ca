"""Closed graphs: numbered inputs, outputs, and nothing from outside; callable as one node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from twofold.ir.node import Node, make_node, topological
from twofold.ir.types import TensorType

T = TypeVar("T")


class Graph:
    """A closed graph of primitive nodes; inputs are ``input`` nodes numbered from 0.

    Nodes are interned, so two graphs that compute the same thing the same way have identical outputs and are equal.
    """

    __slots__ = ("input_types", "outputs")

    def __init__(self, input_types: Sequence[TensorType], outputs: Sequence[Node]) -> None:
        self.input_types = tuple(input_types)
        self.outputs = tuple(outputs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self.input_types == other.input_types and self.outputs == other.outputs

    def __hash__(self) -> int:
        return hash((self.input_types, self.outputs))

    def nodes(self) -> list[Node]:
        """All nodes, inputs first."""
        return topological(self.outputs)

    def inline(self, arguments: Sequence[Node]) -> tuple[Node, ...]:
        """The outputs with the inputs replaced by ``arguments`` of the same types."""

        def replace(node: Node) -> Node | None:
            return arguments[node.attrs[0]] if node.op.name == "input" else None

        return rewrite(self.outputs, replace)

    def rebuilt(self, make: Callable[[Node, tuple[Node, ...]], Node]) -> Graph:
        """The graph with every node made again, bottom-up: ``make(node, inputs)`` gives what stands for it."""
        return Graph(self.input_types, remade(self.outputs, make))


_NODE_BYTES = 512


def graph_bytes(graph: Graph) -> int:
    """What a graph takes, roughly; nodes that other graphs have too are counted.

    >>> graph_bytes(Graph((), ()))
    512
    """
    return _NODE_BYTES * (1 + len(graph.nodes()))


def rebuild(outputs: Sequence[Node], make: Callable[[Node, tuple[T, ...]], T]) -> tuple[T, ...]:
    """What becomes of ``outputs``, bottom-up: ``make(node, inputs)`` gives it for a node, from that of its inputs."""
    done: dict[int, T] = {}
    for node in topological(outputs):
        done[node.id] = make(node, tuple([done[value.id] for value in node.inputs]))
    return tuple([done[output.id] for output in outputs])


class Rewrites:
    """What nodes became, in order, while somebody asks for it: ``noted`` is a list then."""

    noted: list[tuple[Node, Node]] | None = None


def remade(outputs: Sequence[Node], make: Callable[[Node, tuple[Node, ...]], Node]) -> tuple[Node, ...]:
    """As ``rebuild``, for nodes that mostly stay: only what changes costs memory."""
    changed: dict[int, Node] = {}
    noted = Rewrites.noted
    for node in topological(outputs):
        inputs = node.inputs
        if changed:
            for value in inputs:
                if value.id in changed:
                    inputs = tuple([changed.get(value.id, value) for value in inputs])
                    break
        made = make(node, inputs)
        if made is not node:
            changed[node.id] = made
            if noted is not None:
                noted.append((node, made))
    return tuple([changed.get(output.id, output) for output in outputs])


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The operation of ``node`` on other inputs of the same types."""
    return (
        node
        if inputs is node.inputs or inputs == node.inputs
        else make_node(node.op, node.attrs, inputs, node.type)
    )


def rewrite(outputs: Sequence[Node], replace: Callable[[Node], Node | None]) -> tuple[Node, ...]:
    """Rebuild ``outputs`` bottom-up; ``replace`` gives a leaf's or node's substitute, or None to keep its operation."""

    def make(node: Node, inputs: tuple[Node, ...]) -> Node:
        substitute = replace(node)
        return with_inputs(node, inputs) if substitute is None else substitute

    return remade(outputs, make)
