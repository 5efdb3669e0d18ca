"""What takes less to compute again than to keep in memory; the core decides with it, for each trace, what it keeps."""

from __future__ import annotations

from twofold.compiler.lower.expression import operation_cost
from twofold.ir.graph import Graph
from twofold.ir.sizes import example_of

_PER_INSTRUCTION = 0.02  # nanoseconds an element: instructions are counted for sixteen
_PER_BYTE = 0.5  # nanoseconds that a byte may cost; to store and load it again takes about half of that


def is_cheap(graph: Graph) -> bool:
    """Whether a graph has loops alone, with few instructions for a byte of its result.

    Products, and what Python or a kernel of its own computes, are kept.

    >>> from twofold.ir.text import parse_graph
    >>> text = ("graph(%0 : float32[8]) {", "  %1 = exp(%0) : float32[8]", "  return %1", "}")
    >>> is_cheap(parse_graph(chr(10).join(text)))
    True
    """
    instructions = 0
    for node in graph.nodes():
        if node.op.kind == "elementwise":
            instructions += operation_cost(node) * example_of(node.type.size)
        elif node.op.kind == "reduction":
            instructions += example_of(node.inputs[0].type.size)
        elif node.op.kind not in ("source", "view"):
            return False
    (output,) = graph.outputs
    return _PER_INSTRUCTION * instructions <= _PER_BYTE * example_of(output.type.nbytes)
