"""Replacing what matches a pattern in a graph."""

from __future__ import annotations

from typing import Any, NamedTuple

from twofold.fx.graph import Graph
from twofold.fx.graph_module import GraphModule
from twofold.fx.node import Node
from twofold.fx.tracing import symbolic_trace


class Match(NamedTuple):
    """A part of a graph that a pattern matches: its last node, and the node of the graph for each of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


def _graph_of(one: Any) -> Graph:
    if isinstance(one, Graph):
        return one
    return one.graph if isinstance(one, GraphModule) else symbolic_trace(one).graph


def _matches(pattern: Any, found: Any, nodes: dict[Node, Node]) -> bool:
    """Whether an argument of the pattern, a node or another value, matches one of the graph; notes the nodes."""
    if isinstance(pattern, Node):
        if not isinstance(found, Node):
            return False
        if pattern in nodes:
            return nodes[pattern] is found
        nodes[pattern] = found
        return pattern.op == "placeholder" or (
            (pattern.op, pattern.target) == (found.op, found.target)
            and _matches(pattern.args, found.args, nodes)
            and _matches(pattern.kwargs, found.kwargs, nodes)
        )
    if isinstance(pattern, (tuple, list)) and isinstance(found, (tuple, list)):
        return len(pattern) == len(found) and all(
            _matches(a, b, nodes) for a, b in zip(pattern, found, strict=True)
        )
    if isinstance(pattern, dict) and isinstance(found, dict):
        return pattern.keys() == found.keys() and all(
            _matches(one, found[key], nodes) for key, one in pattern.items()
        )
    return bool(type(pattern) is type(found) and pattern == found)


def _is_closed(pattern: Graph, match: Match) -> bool:
    """Whether nothing outside of a match uses what is inside, but for its result."""
    inner = {match.nodes_map[node] for node in pattern.nodes if node.op not in ("placeholder", "output")}
    return all(user in inner for node in inner - {match.anchor} for user in node.users)


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace all parts of the graph of a module that a pattern matches, which do not overlap.

    Args:
        gm: The module; its code is made anew.
        pattern: A function, module or graph with one result: the same operations on any arguments match it.
        replacement: What takes the place of a match, with the arguments of the pattern in their order. The module
            gets what it calls and reads, where it has nothing of that name.

    Returns:
        The matches, in their order. Raises NotImplementedError for a pattern whose result is not that of an operation.

    >>> import twofold as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.exp(torch.neg(x)) + 1)
    >>> found = torch.fx.replace_pattern(traced, lambda a: torch.exp(torch.neg(a)), lambda a: torch.sigmoid(a))
    >>> len(found), traced(torch.zeros(2))
    (1, tensor([1.5000, 1.5000]))
    """
    searched, wanted = _graph_of(pattern), _graph_of(replacement)
    last = searched.output_node().args[0]
    if not isinstance(last, Node) or last.op == "placeholder":
        raise NotImplementedError(
            f"replace_pattern: the pattern returns {last}. Let it return the result of one operation."
        )
    arguments = [node for node in searched.nodes if node.op == "placeholder"]
    matches: list[Match] = []
    taken: set[Node] = set()
    for node in list(gm.graph.nodes):
        match = Match(node, {})
        if node.op in ("placeholder", "output") or not _matches(last, node, match.nodes_map):
            continue
        inner = {match.nodes_map[one] for one in match.nodes_map if one.op != "placeholder"}
        if inner & taken or not _is_closed(searched, match):
            continue
        taken |= inner
        matches.append(match)
    replaced: dict[Node, Node] = {}
    for match in matches:
        given = [match.nodes_map[one] for one in arguments]
        placeholders = [node for node in wanted.nodes if node.op == "placeholder"]
        # an argument may itself be the result of a match that has been replaced
        value_map = {one: replaced.get(value, value) for one, value in zip(placeholders, given, strict=True)}
        user = next((node for node in gm.graph.nodes if node in match.anchor.users), match.anchor)
        with gm.graph.inserting_before(user):
            result = gm.graph.graph_copy(wanted, value_map)
        match.anchor.replace_all_uses_with(result)
        replaced[match.anchor] = result
        for one in reversed(list(searched.nodes)):
            if one.op not in ("placeholder", "output"):
                gm.graph.erase_node(match.nodes_map[one])
    gm._complete(wanted)
    gm.recompile()
    return matches
