"""The mark on the result of a composite that differentiation takes its gradient rule from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.ir.node import Node
from twofold.ir.op import REGISTRY
from twofold.ops.base import view


@view
class ruled:
    """The result of a composite with a gradient rule of its own, and what it was called with.

    Inputs ``(value, *inputs of the composite)``, attributes ``(its name, its attributes)``. It is its first
    input; differentiation uses the rule in place of the composite's parts.
    """

    functions = ()
    index_map = lambda before, after, name, attrs: None
    reference = lambda value, *rest: value

    @staticmethod
    def vjp(ct: Node, y: Node, value: Node, *rest: Any) -> Sequence[Node | None]:
        *inputs, name, attrs = rest
        return (None, *REGISTRY[name].vjp(attrs, ct, y, tuple(inputs)))
