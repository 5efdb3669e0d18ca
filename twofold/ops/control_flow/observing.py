"""``observed``: a value that shows itself, and others, to a Python function whenever it is computed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from twofold.ir.node import Attributes, Node, make_node
from twofold.ops.base import Host, host, strong

_numbers = itertools.count()


class Observer:
    """A function of arrays, told from all others by being this object."""

    __slots__ = ("content_key", "function")

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function
        self.content_key = f"Observer {next(_numbers)}"


@host
class observed(Host):
    """The first input; a function is called with the arrays of the others first, and may raise.

    Attributes ``(Observer,)``.
    """

    functions = ()
    keeps_nan = True
    pure = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        values = [strong(node) for node in inputs]
        return make_node(self, attrs, values, values[0].type)

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        attrs[0].function(*[array.copy() for array in arrays[1:]])
        return arrays[0]

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return (cotangent, *[None] * (len(inputs) - 1))
