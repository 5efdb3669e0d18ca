"""The cost model of rematerialisation, by which the core decides which values of a trace are kept in memory."""

from __future__ import annotations

from twofold.compiler.lower.expression import operation_cost
from twofold.ir.graph import Graph
from twofold.ir.sizes import example_of

_PER_INSTRUCTION = 0.02  # nanoseconds for an element: instructions are counted for sixteen
_PER_BYTE = 0.5  # nanoseconds that recomputing a byte may take; a store and a load take about half of that


def is_cheap(graph: Graph) -> bool:
    """Whether it takes less time to recompute the result of a graph than it is worth to keep it.

    That is so for loops with few instructions for each byte of the result; never for products, custom kernels and host
    functions.

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
