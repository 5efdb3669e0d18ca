"""Declarative rewrite rules, and the driver that applies them bottom-up.

The left side of a rule is written with the functions of the operations, so it reads as mathematics. A variable matches
any node; a constant matches an equal constant, however it is broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from twofold.dtypes import DType, float32
from twofold.ir.bind import input_node, is_constant, is_input
from twofold.ir.graph import Graph, with_inputs
from twofold.ir.node import Node
from twofold.ir.op import ElementwiseOp, Op
from twofold.ir.types import tensor_type
from twofold.ir.views import below, below_views, is_identity

Rewrite = Callable[[Node], "Node | None"]
"""The replacement of a node; None where it stays."""

_MAX_ITERATIONS = 4


class Rule:
    """A rewrite of ``left`` to ``right``.

    Args:
        left: The pattern, a function of nodes that stand for variables.
        right: The replacement, a function of what the variables match; None where the rule does not hold for its types.
        variables: The number of variables.
        dtypes: The dtypes of the variables in the pattern; nodes of other dtypes match, too.
    """

    def __init__(
        self,
        left: Callable[..., Node],
        right: Callable[..., Node | None],
        variables: int = 1,
        dtypes: Sequence[DType] = (float32, float32),
    ) -> None:
        self._right = right
        self._variables = variables
        self.pattern = left(*(input_node(k, tensor_type(dtypes[k])) for k in range(variables)))

    def __call__(self, node: Node) -> Node | None:
        """The replacement of ``node`` if the left side matches it."""
        bindings: dict[int, Node] = {}
        if not _matches(self.pattern, node, bindings):
            return None
        result = self._right(*(bindings[k] for k in range(self._variables)))
        return result if result is not None and result.type is node.type else None


def _matches(pattern: Node, node: Node, bindings: dict[int, Node]) -> bool:
    """Whether ``node`` matches ``pattern``; binds variables to nodes in ``bindings``."""
    if is_input(pattern):
        return bindings.setdefault(pattern.attrs[0], node) is node
    if is_constant(pattern):
        node = below_views(node)
        return node.op is pattern.op and _is_same(node.attrs[0], pattern.attrs[0])
    node = below(node, lambda view: view.op is not pattern.op and is_identity(view))
    if node.op is not pattern.op or len(node.inputs) != len(pattern.inputs):
        return False
    if node.attrs != pattern.attrs and not isinstance(node.op, ElementwiseOp):
        return False
    return all(_matches(operand, value, bindings) for operand, value in zip(pattern.inputs, node.inputs))


def _is_same(value: Any, wanted: Any) -> bool:
    """Whether a constant has the value of a pattern, and its sign where that is a zero: ``x - -0.0`` is not ``x``."""
    return bool(value == wanted) and (
        bool(wanted) or str(value).startswith("-") == str(wanted).startswith("-")
    )


def by_operation(rules: Iterable[Rule]) -> dict[Op, list[Rewrite]]:
    """Rules by the root operation of their left side."""
    found: dict[Op, list[Rewrite]] = {}
    for rule in rules:
        found.setdefault(rule.pattern.op, []).append(rule)
    return found


def rewrite_once(graph: Graph, rewrite: Rewrite) -> Graph:
    """Apply ``rewrite`` to every node of ``graph``, inputs before consumers."""

    def make(node: Node, inputs: tuple[Node, ...]) -> Node:
        current = with_inputs(node, inputs)
        return rewrite(current) or current

    return graph.rebuilt(make)


def rewrite_bottom_up(
    graph: Graph, by_op: Mapping[Op, Sequence[Rewrite]], by_kind: Mapping[str, Sequence[Rewrite]]
) -> Graph:
    """Apply rewrites bottom-up until none matches.

    Args:
        graph: The graph.
        by_op: Rewrites for nodes of an operation.
        by_kind: Rewrites for nodes of a kind of operation, tried first.
    """
    known: dict[Op, Sequence[Rewrite]] = {}

    def first(node: Node) -> Node | None:
        rules = known.get(node.op)
        if rules is None:
            rules = known[node.op] = (*by_kind.get(node.op.kind, ()), *by_op.get(node.op, ()))
        for rule in rules if node.inputs else ():
            simpler = rule(node)
            if simpler is not None:
                return simpler
        return None

    for _ in range(_MAX_ITERATIONS):
        rewritten = rewrite_once(graph, first)
        if rewritten == graph:
            break
        graph = rewritten
    return graph
