"""Gradients of functions that have none, or one of zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.errors import UndefinedGradientError
from twofold.ir.bind import constant
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import REGISTRY, Op
from twofold.ir.types import tensor_type


def no_slope(cotangent: Node, output: Node, *inputs: Node) -> tuple[Node, ...]:
    """The ``vjp`` of a function that is constant between its jumps: zeros."""
    broadcast = REGISTRY["broadcast_to"]
    return tuple(
        make_node(broadcast, (x.shape,), (constant(0, x.dtype),), tensor_type(x.dtype, x.shape))
        for x in inputs
    )


def with_own_gradient(op: Op, attrs: Attributes, value: Node, inputs: Sequence[Node]) -> Node:
    """``value``, which parts of ``op`` computed from ``inputs``, with the gradient rule of ``op`` itself."""
    return make_node(REGISTRY["ruled"], (op.name, attrs), (value, *inputs), value.type)


class NoGradient:
    """Stands for the cotangent of an operand whose gradient has no formula; whoever uses it gets the error."""

    def __init__(self, operation: str, operand: str, fix: str = "") -> None:
        self._error = UndefinedGradientError(
            f"{operation} has no gradient with respect to {operand}", fix or f"Use {operand}.detach()."
        )

    def _raise(self) -> Any:
        raise self._error

    shape = property(_raise)
    type = property(_raise)
