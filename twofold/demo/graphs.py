"""A graph as the drawing code wants it: a plain list of nodes, inputs before what uses them."""

from __future__ import annotations

from typing import Any, NamedTuple


class GraphNode(NamedTuple):
    """One operation and the tensor it makes; ``inputs`` are positions in the list of nodes."""

    name: str
    op: str
    inputs: tuple[int, ...]
    shape: str


def _shape_text(tensor: Any) -> str:
    sizes = ["?" if size is None else str(size) for size in tensor.shape.as_list()]
    return f"{tensor.dtype.name} [{', '.join(sizes)}]"


def graph_nodes(output: Any) -> list[GraphNode]:
    """The nodes below a define-then-run tensor, in an order that depends on the structure alone.

    Every operation is taken as it was declared, with its first result.
    """
    position: dict[str, int] = {}
    nodes: list[GraphNode] = []
    stack = [(output.op, False)]
    while stack:
        operation, ready = stack.pop()
        if operation.name in position:
            continue
        producers = [tensor.op for tensor in operation.inputs]
        if ready:
            position[operation.name] = len(nodes)
            inputs = tuple(position[producer.name] for producer in producers)
            nodes.append(GraphNode(operation.name, operation.type, inputs, _shape_text(operation.outputs[0])))
        else:
            stack.append((operation, True))
            stack += [(producer, False) for producer in reversed(producers)]
    return nodes
