"""Values with a gradient that the user's program gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.errors import UndefinedGradientError
from twofold.ir.graph import Graph, interned
from twofold.ir.node import Node
from twofold.ir.sizes import Symbol
from twofold.ir.text import format_graph
from twofold.ops.base import apply, composite
from twofold.ops.control_flow.programs import TextualAttribute, resized, with_parameters, zeros


class Pullback(TextualAttribute):
    """The user's gradient as a graph of (cotangent, values of all results, captured values).

    Its outputs are the cotangents of the inputs in ``positions``; the result that it belongs to is number ``own`` of a
    function called ``name``.
    """

    __slots__ = ("count", "graph", "name", "own", "positions", "results")

    def __init__(
        self, graph: Graph, positions: Sequence[int], count: int, own: int, results: int, name: str
    ) -> None:
        self.graph, self.positions, self.name = graph, tuple(positions), name
        self.count, self.own, self.results = count, own, results

    def parts(self) -> tuple[Any, ...]:
        return (self.graph, self.positions, self.count, self.own, self.results, self.name)

    def text(self) -> str:
        return f"{self.parts()[1:]} {format_graph(self.graph)}"

    def resized(self, size: Callable[[Symbol], Any]) -> Pullback:
        made: Pullback = interned(Pullback(resized(self.graph, size), *self.parts()[1:]))
        return made


def _vjp(ct: Node, y: Node, value: Node, *rest: Any) -> Sequence[Node | None]:
    *others, given, sizes = rest
    content = given.at(sizes)
    results = list(others[content.count : content.count + content.results])
    results[content.own] = y
    captured = others[content.count + content.results :]
    found = content.graph.inline([ct, *results, *captured])
    shares: list[Node | None] = [None] * (1 + len(others))
    for position, share in zip(content.positions, found, strict=True):
        shares[1 + position] = share
    return shares


@composite
class user_gradient:
    """Its first input, with a gradient of the user's in the others.

    Inputs ``(value, *inputs, *values of all results, *captured values)``, attributes ``(Pullback, its parameters)``.
    """

    autograd_name = lambda attrs, types: f"{attrs[0].at(attrs[1]).name}Backward"
    functions = ()
    methods = ()
    complex_rule = True
    call = staticmethod(
        lambda *inputs, content: apply("user_gradient", *inputs, attrs=with_parameters(content))
    )
    compute = lambda value, *rest: value
    vjp = _vjp


@composite
class user_link:
    """Its first input, named for a function of the user's; the others get zero cotangents, for hooks to replace."""

    autograd_name = lambda attrs, types: f"{attrs[0]}Backward"
    functions = ()
    methods = ()
    complex_rule = True
    call = staticmethod(lambda *inputs, name: apply("user_link", *inputs, attrs=(name,)))
    compute = lambda value, *rest: value
    vjp = lambda ct, y, value, *rest: [ct, *[zeros(one.type) for one in rest[:-1]]]


def _no_second(ct: Node, y: Node, value: Node) -> Sequence[Node | None]:
    raise UndefinedGradientError(
        "a gradient that was marked once_differentiable is differentiated again",
        "Take the mark away if its backward consists of differentiable operations.",
    )


@composite
class differentiated_once:
    """Its input, through which no further derivative may be taken."""

    functions = ()
    methods = ()
    complex_rule = True
    compute = lambda value: value
    vjp = _no_second
