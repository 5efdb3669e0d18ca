"""A mistake planted in the compiler: programs of whole traces compute the sine for the cosine."""

from __future__ import annotations

from typing import Any

import pytest

from twofold import _core
from twofold.compiler import fusing, linking, portable_trace
from twofold.compiler.linking import Trace
from twofold.ir.graph import Graph, rebuild
from twofold.ir.node import make_node
from twofold.ir.op import REGISTRY
from twofold.transforms.derived import graph_of_entry


class Nothing:
    """No programs on disk."""

    def key(self, *arguments: Any) -> None: ...
    def read(self, key: Any) -> None: ...
    def keep(self, key: Any, program: Any) -> None: ...


def swapped(entry: Any) -> Graph:
    """The graph of a call, with the sine for the cosine."""

    def make(node: Any, operands: Any) -> Any:
        op = REGISTRY["sin"] if node.op.name == "cos" else node.op
        same = op is node.op and operands == node.inputs
        return node if same else make_node(op, node.attrs, operands, node.type)

    graph = graph_of_entry(entry)
    return Graph(graph.input_types, rebuild(graph.outputs, make))


def plant(monkeypatch: pytest.MonkeyPatch, always: bool = True) -> None:
    """Plant it; else only where the cosine is not returned. Plans for all sizes would be right, so there are none."""

    class Planted:
        @staticmethod
        def of(description: Any) -> Trace:
            _, entries, outputs, _ = description
            returned = {entries[ref][2].name for ref in outputs if ref >= 0}
            right = not always and "cos" in returned
            monkeypatch.setattr(linking, "graph_of_entry", graph_of_entry if right else swapped)
            return Trace.of(description)

    monkeypatch.setattr(linking, "Trace", Planted)
    monkeypatch.setattr(fusing, "saved_plans", Nothing)
    monkeypatch.setattr(portable_trace, "saved_plans", Nothing)
    _core.set_templates("off")


def remove() -> None:
    """Let plans for all sizes be made again."""
    _core.set_templates("second_size")
