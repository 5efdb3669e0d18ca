"""Closed graphs: numbered inputs and outputs, without captured values; a graph may call others.

A ``call`` node is a handle of its results, which ``get_output`` nodes take. Its attribute, a ``Callee``, holds the
called graph.
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
        """The graph with every node replaced bottom-up by ``make(node, inputs)``."""
        return Graph(self.input_types, rebuild_nodes(self.outputs, make))


_NODE_BYTES = 512


def graph_bytes(graph: Graph) -> int:
    """The approximate memory of a graph; nodes that it shares with other graphs are counted.

    >>> graph_bytes(Graph((), ()))
    512
    """
    return _NODE_BYTES * (1 + len(graph.nodes()))


def rebuild(outputs: Sequence[Node], make: Callable[[Node, tuple[T, ...]], T]) -> tuple[T, ...]:
    """Interpret nodes bottom-up.

    Args:
        outputs: The nodes whose values are returned.
        make: The value of a node, from those of its inputs.
    """
    done: dict[int, T] = {}
    for node in topological(outputs):
        done[node.id] = make(node, tuple([done[value.id] for value in node.inputs]))
    return tuple([done[output.id] for output in outputs])


class RewriteLog:
    """Provenance of rewrites: pairs of a node and its replacement, in order, while ``pairs`` is a list."""

    pairs: list[tuple[Node, Node]] | None = None


def rebuild_nodes(
    outputs: Sequence[Node], make: Callable[[Node, tuple[Node, ...]], Node]
) -> tuple[Node, ...]:
    """``rebuild`` with nodes as values, where most stay: memory is taken for changed nodes only."""
    changed: dict[int, Node] = {}
    log = RewriteLog.pairs
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
            if log is not None:
                log.append((node, made))
    return tuple([changed.get(output.id, output) for output in outputs])


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The operation of ``node`` on other inputs of the same types."""
    return (
        node
        if inputs is node.inputs or inputs == node.inputs
        else make_node(node.op, node.attrs, inputs, node.type)
    )


def rewrite(outputs: Sequence[Node], replace: Callable[[Node], Node | None]) -> tuple[Node, ...]:
    """Rebuild ``outputs`` bottom-up; ``replace`` returns the substitute of a node, or None to keep its operation."""

    def make(node: Node, inputs: tuple[Node, ...]) -> Node:
        substitute = replace(node)
        return with_inputs(node, inputs) if substitute is None else substitute

    return rebuild_nodes(outputs, make)


HANDLE = tensor_type(uint8, (0,))
"""The type of a control flow node, a handle of its results."""


class GraphAttribute:
    """An attribute that holds graphs; equal ones are one object, with a unique ``content_key``."""

    __slots__ = ("__weakref__", "content_key")

    content_key: str

    def key(self) -> tuple[Any, ...]:
        """A hashable value that equal attributes share."""
        raise NotImplementedError

    def digest(self) -> str:
        """Text that equal attributes of its class share."""
        raise NotImplementedError

    def has_symbols(self) -> bool:
        """Whether one of its graphs has symbolic sizes."""
        return False


def has_symbols(value: Any) -> bool:
    """Whether there are symbols in attributes or in a graph, nested graphs included."""
    if isinstance(value, tuple):
        return any(map(has_symbols, value))
    if isinstance(value, Graph):
        return has_symbols(value.input_types) or any(has_symbols((n.type, n.attrs)) for n in value.nodes())
    if isinstance(value, GraphAttribute):
        return value.has_symbols()
    return has_symbols(value.shape) if isinstance(value, TensorType) else isinstance(value, Symbol)


_CONTENTS: WeakValueDictionary[tuple[Any, ...], GraphAttribute] = WeakValueDictionary()


def interned(made: Any) -> Any:
    """The interned object that equals ``made``."""
    key = (type(made).__name__, *made.key())
    found = _CONTENTS.get(key)
    if found is None:
        made.content_key = f"{type(made).__name__} {made.digest()}"
        found = _CONTENTS.setdefault(key, made)
    return found


_numbers = count()


class Callee(GraphAttribute):
    """The attribute of a call: the called graph."""

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
    return content.graph if isinstance(content, Callee) else None


def call(graph: Graph, inputs: Sequence[Node]) -> list[Node]:
    """The results of a call of ``graph`` on nodes of the types of its inputs."""
    node = make_node(REGISTRY["call"], (interned(Callee(graph)),), inputs, HANDLE)
    return [
        make_node(REGISTRY["get_output"], (k,), (node,), output.type)
        for k, output in enumerate(graph.outputs)
    ]


Ref = int
"""An operand, as in the core: the number of a call, or ``~k`` for input ``k``."""


def graph_of_calls(
    types: Sequence[TensorType], calls: Iterable[tuple[Sequence[Ref], Graph]], outputs: Iterable[Ref]
) -> Graph:
    """The closed graph of a sequence of calls.

    Args:
        types: The types of its inputs.
        calls: For each call its operands, and the callee, which has one result.
        outputs: What it returns.
    """
    inputs = [input_node(k, type) for k, type in enumerate(types)]
    values: list[Node] = []
    for refs, graph in calls:
        values += call(graph, [values[ref] if ref >= 0 else inputs[~ref] for ref in refs])
    return Graph(types, [values[ref] if ref >= 0 else inputs[~ref] for ref in outputs])


def inline_calls(graph: Graph) -> Graph:
    """``graph`` with all calls inlined, those in callees too."""
    outputs = inlined(graph.outputs)
    return graph if outputs is None else Graph(graph.input_types, outputs)


def inlined(outputs: Sequence[Node]) -> tuple[Node, ...] | None:
    """``outputs`` with all calls below inlined; None if there are none."""
    if all(called(node) is None for node in topological(outputs)):
        return None
    flat: dict[Graph, Graph] = {}

    def make(node: Node, operands: tuple[Any, ...]) -> Any:
        callee = called(node)
        if callee is not None:
            if callee not in flat:
                flat[callee] = inline_calls(callee)
            return flat[callee].inline(operands)
        if isinstance(node.op, GetOutputOp) and isinstance(operands[0], tuple):
            return operands[0][node.attrs[0]]
        return with_inputs(node, operands)

    return rebuild(outputs, make)
