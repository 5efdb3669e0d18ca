"""Closed graphs: numbered inputs, outputs, and nothing from outside; a graph may call others.

A ``call`` node is a handle of its results, which ``part`` nodes take. ``Called``, in its attributes, holds the called
graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from twofold.dtypes import uint8
from twofold.ir.bind import input_node, is_input
from twofold.ir.node import Node, make_node, topological
from twofold.ir.op import REGISTRY, ControlFlowOp, GetOutputOp
from twofold.ir.sizes import Symbol
from twofold.ir.types import TensorType, tensor_type

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
            return arguments[node.attrs[0]] if is_input(node) else None

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


HANDLE = tensor_type(uint8, (0,))
"""Type of the node that stands for all results of a program."""


class Content:
    """Attributes made of graphs; equal ones are one object, known by ``content_key``."""

    __slots__ = ("__weakref__", "content_key")

    content_key: str

    def key(self) -> tuple[Any, ...]:
        """Everything that tells it from others."""
        raise NotImplementedError

    def digest(self) -> str:
        """What tells it from others of its class, as text."""
        raise NotImplementedError

    def has_symbols(self) -> bool:
        """Whether a symbol stands in one of its graphs."""
        return False


def has_symbols(value: Any) -> bool:
    """Whether a symbol stands in attributes, in a graph, or in what graphs inside of it run."""
    if isinstance(value, tuple):
        return any(map(has_symbols, value))
    if isinstance(value, Graph):
        return has_symbols(value.input_types) or any(has_symbols((n.type, n.attrs)) for n in value.nodes())
    if isinstance(value, Content):
        return value.has_symbols()
    return has_symbols(value.shape) if isinstance(value, TensorType) else isinstance(value, Symbol)


_CONTENTS: WeakValueDictionary[tuple[Any, ...], Content] = WeakValueDictionary()


def interned(made: Any) -> Any:
    """The one object equal to ``made``."""
    key = (type(made).__name__, *made.key())
    found = _CONTENTS.get(key)
    if found is None:
        made.content_key = f"{type(made).__name__} {made.digest()}"
        found = _CONTENTS.setdefault(key, made)
    return found


_numbers = count()


class Called(Content):
    """A graph that is called."""

    __slots__ = ("graph",)

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def key(self) -> tuple[Any, ...]:
        return (self.graph,)

    def digest(self) -> str:
        return f"{next(_numbers)}"  # calls are inlined before anything is keyed by text; sizes may be symbols


def called(node: Node) -> Graph | None:
    """The graph that a node calls; None for other nodes."""
    content = node.attrs[0] if isinstance(node.op, ControlFlowOp) else None
    return content.graph if isinstance(content, Called) else None


def call(graph: Graph, inputs: Sequence[Node]) -> list[Node]:
    """The results of a call of ``graph`` on nodes of the types of its inputs."""
    node = make_node(REGISTRY["call"], (interned(Called(graph)),), inputs, HANDLE)
    return [make_node(REGISTRY["part"], (k,), (node,), output.type) for k, output in enumerate(graph.outputs)]


Ref = int
"""As in the core: number of a call, or ~number of an input."""


def graph_of_calls(
    types: Sequence[TensorType], calls: Iterable[tuple[Sequence[Ref], Graph]], outputs: Iterable[Ref]
) -> Graph:
    """The closed graph of calls of graphs with one result, on each other's results and on inputs of ``types``."""
    inputs = [input_node(k, type) for k, type in enumerate(types)]
    values: list[Node] = []
    for refs, graph in calls:
        values += call(graph, [values[ref] if ref >= 0 else inputs[~ref] for ref in refs])
    return Graph(types, [values[ref] if ref >= 0 else inputs[~ref] for ref in outputs])


def inline_calls(graph: Graph) -> Graph:
    """``graph`` with what they compute in place of all calls, those in called graphs too."""
    outputs = inlined(graph.outputs)
    return graph if outputs is None else Graph(graph.input_types, outputs)


def inlined(outputs: Sequence[Node]) -> tuple[Node, ...] | None:
    """``outputs`` with what they compute in place of all calls below; None if there are none."""
    if all(called(node) is None for node in topological(outputs)):
        return None
    flat: dict[Graph, Graph] = {}

    def make(node: Node, given: tuple[Any, ...]) -> Any:
        callee = called(node)
        if callee is not None:
            if callee not in flat:
                flat[callee] = inline_calls(callee)
            return flat[callee].inline(given)
        if isinstance(node.op, GetOutputOp) and isinstance(given[0], tuple):
            return given[0][node.attrs[0]]
        return with_inputs(node, given)

    return rebuild(outputs, make)
