"""Numerically stable formulas in place of those that overflow or lose all digits.

These rewrites change bits, so they belong to the meaning of one operation: they run on its closed graph before anything
is compiled, never on whole traces, and every tier computes the same.
"""

from __future__ import annotations

from functools import cache

from twofold.ir.graph import Graph
from twofold.ir.op import ElementwiseOp, Op
from twofold.ops.base import ops
from twofold.transforms.rewriting import Rewrite, Rule, by_operation, rewrite_bottom_up


def stabilize(graph: Graph) -> Graph:
    """``graph`` with simplified logarithms of exponentials and sigmoids.

    Each rule removes a logarithm of a quotient, exponential or sigmoid and makes no new one, so rewriting ends.
    """
    if not any(isinstance(node.op, ElementwiseOp) and node.op.has_stable_forms for node in graph.nodes()):
        return graph
    return rewrite_bottom_up(graph, _rules(), {})


@cache
def _rules() -> dict[Op, list[Rewrite]]:
    return by_operation(
        [
            Rule(lambda x: ops.log(ops.exp(x)), lambda x: x),
            Rule(lambda u, b: ops.log(ops.divide(ops.exp(u), b)), lambda u, b: u - ops.log(b), variables=2),
            Rule(lambda x: ops.log(ops.sigmoid(x)), lambda x: -ops.softplus(-x)),
            Rule(lambda x: ops.log(ops.subtract(1.0, ops.sigmoid(x))), lambda x: -ops.softplus(x)),
            Rule(lambda x: ops.log(ops.add(1.0, ops.exp(x))), ops.softplus),
            Rule(lambda x: ops.log(ops.add(ops.exp(x), 1.0)), ops.softplus),
        ]
    )
