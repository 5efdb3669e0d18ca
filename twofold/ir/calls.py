"""Graphs that call graphs: what stands in the attributes of a node that runs other closed graphs.

A ``call`` node is a handle of its results, which ``part`` nodes take. ``Called`` holds the graph that it calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from twofold.dtypes import uint8
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, rebuild, with_inputs
from twofold.ir.node import Node, make_node, topological
from twofold.ir.op import REGISTRY
from twofold.ir.types import TensorType, tensor_type

HANDLE = tensor_type(uint8, (0,))
"""Type of the node that stands for all results of a program."""


class Content:
    """Attributes made of graphs; equal ones are one object, known by ``content_key``."""

    __slots__ = ("__weakref__", "content_key")

    content_key: str

    def key(self) -> tuple[Any, ...]:
        """Everything that tells it from others."""
        raise NotImplementedError

    def text(self) -> str:
        """The graphs and numbers as text."""
        raise NotImplementedError

    def digest(self) -> str:
        """What tells it from others of its class, in other processes too."""
        return hashlib.sha256(self.text().encode()).hexdigest()


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
    content = node.attrs[0] if node.op.kind == "program" else None
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
        if node.op.kind == "part" and isinstance(given[0], tuple):
            return given[0][node.attrs[0]]
        return with_inputs(node, given)

    return rebuild(outputs, make)
