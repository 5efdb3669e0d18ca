"""Graphs as messages: the names, types, devices and inputs of operations (TensorFlow's ``GraphDef``)."""

from __future__ import annotations

from typing import Any

from twofold.static.protobuf import nested


class NodeDef:
    """One operation; ``input`` lists ``name``, ``name:index`` for a later output, and ``^name`` for a control input."""

    def __init__(self, name: str, op: str, input: list[str], device: str) -> None:
        self.name, self.op, self.input, self.device = name, op, input, device

    def SerializeToString(self) -> bytes:
        """The message in protocol buffers' wire format."""
        content = nested(1, self.name.encode()) + nested(2, self.op.encode())
        content += b"".join(nested(3, item.encode()) for item in self.input)
        return content + (nested(4, self.device.encode()) if self.device else b"")

    def __str__(self) -> str:
        rows = [f'name: "{self.name}"', f'op: "{self.op}"', *[f'input: "{item}"' for item in self.input]]
        return "\n".join([*rows, *([f'device: "{self.device}"'] if self.device else [])])

    __repr__ = __str__


class GraphDef:
    """The operations of a graph in the order of their declaration. Attributes, such as dtypes, are not in it yet.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default() as graph:
    ...     x = tf.placeholder(tf.float32, name="x")
    ...     y = tf.exp(x, name="y")
    >>> [(node.name, node.op, node.input) for node in graph.as_graph_def().node]
    [('x', 'Placeholder', []), ('y', 'Exp', ['x'])]
    """

    def __init__(self, node: list[NodeDef]) -> None:
        self.node = node

    def SerializeToString(self) -> bytes:
        """The message in protocol buffers' wire format."""
        return b"".join(nested(1, node.SerializeToString()) for node in self.node)

    def __str__(self) -> str:
        indented = ["\n".join(f"  {row}" for row in str(node).splitlines()) for node in self.node]
        return "".join(f"node {{\n{rows}\n}}\n" for rows in indented)

    __repr__ = __str__


def graph_def_of(operations: Any) -> GraphDef:
    """The message of some operations."""
    nodes = []
    for operation in operations:
        inputs = [f"{owner.name}:{index}" if index else owner.name for owner, index in operation.sources]
        controls = [f"^{control.name}" for control in operation.control_inputs]
        nodes.append(NodeDef(operation.name, operation.type, [*inputs, *controls], operation.device))
    return GraphDef(nodes)
