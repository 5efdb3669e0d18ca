"""Rewrite rules as pairs of programs, and the driver that applies them bottom-up.

A rule's left side is written with the operations' own functions, so it reads as the mathematics it states. A
variable matches any node; a constant matches an equal constant however it was broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from twofold.dtypes import DType, float32
from twofold.ir.bind import input_node, is_constant, is_input
from twofold.ir.graph import Graph, with_inputs
from twofold.ir.node import Node
from twofold.ir.op import ElementwiseOp, Op
from twofold.ir.types import tensor_type
from twofold.ir.views import below, below_views, is_identity

Rewrite = Callable[[Node], "Node | None"]
"""Gives what a node becomes, None where it stays."""

_MOST_ROUNDS = 4


class Rule:
    """``left`` becomes ``right``, both functions of the same number of nodes.

    ``right`` may return None where the rule does not hold for the types at hand.
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
        """What ``node`` becomes if the left side matches it."""
        found: dict[int, Node] = {}
        if not _matches(self.pattern, node, found):
            return None
        result = self._right(*(found[k] for k in range(self._variables)))
        return result if result is not None and result.type is node.type else None


def _matches(pattern: Node, node: Node, found: dict[int, Node]) -> bool:
    """Whether ``node`` has the shape of ``pattern``; patterns are a few operations deep."""
    if is_input(pattern):
        return found.setdefault(pattern.attrs[0], node) is node
    if is_constant(pattern):
        node = below_views(node)
        return node.op is pattern.op and node.attrs[0] == pattern.attrs[0]
    node = below(node, lambda view: view.op is not pattern.op and is_identity(view))
    if node.op is not pattern.op or len(node.inputs) != len(pattern.inputs):
        return False
    if node.attrs != pattern.attrs and not isinstance(node.op, ElementwiseOp):
        return False
    return all(_matches(part, value, found) for part, value in zip(pattern.inputs, node.inputs))


def by_operation(rules: Iterable[Rule]) -> dict[Op, list[Rewrite]]:
    """Rules by the operation on top of their left side."""
    found: dict[Op, list[Rewrite]] = {}
    for rule in rules:
        found.setdefault(rule.pattern.op, []).append(rule)
    return found


def rewrite_once(graph: Graph, rewrite: Rewrite) -> Graph:
    """``graph`` with every node, once its inputs are rewritten, as what ``rewrite`` makes of it."""

    def make(node: Node, inputs: tuple[Node, ...]) -> Node:
        current = with_inputs(node, inputs)
        return rewrite(current) or current

    return graph.rebuilt(make)


def rewrite_bottom_up(
    graph: Graph, by_op: Mapping[Op, Sequence[Rewrite]], by_kind: Mapping[str, Sequence[Rewrite]]
) -> Graph:
    """``graph`` with rewrites applied where they match, until none does (each rewrite makes a node smaller)."""
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

    for _ in range(_MOST_ROUNDS):
        made = rewrite_once(graph, first)
        if made == graph:
            break
        graph = made
    return graph
