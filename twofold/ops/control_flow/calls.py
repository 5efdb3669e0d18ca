"""``call``: a closed graph run once, for a trace that is a list of calls of bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.ir.graph import Graph
from twofold.ir.interpret import evaluate
from twofold.ir.node import Attributes
from twofold.ir.op import ControlFlowOp, register
from twofold.ir.types import TensorType


class Call(ControlFlowOp):
    """The results of a graph; inputs are those of the graph, attributes ``(Callee,)``.

    Differentiation, batching and the compiler see what the graph computes in its place, see ``ir.graph.inlined``.
    """

    name = "call"

    def results(self, attrs: Attributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return tuple(node.type for node in attrs[0].graph.outputs)

    def graphs(self, attrs: Attributes) -> tuple[Graph, ...]:
        return (attrs[0].graph,)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return evaluate(attrs[0].graph, arrays)


register(Call())
