"""Graphs and curves as SVG."""

from __future__ import annotations

import math
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from tests.demo.sample_graph import classifier
from twofold.demo.charts import line_chart, nice_ticks
from twofold.demo.drawing import MOST_NODES, operations_as_nodes, tensors_as_nodes
from twofold.demo.graphs import GraphNode, graph_nodes


@pytest.mark.parametrize("draw", [operations_as_nodes, tensors_as_nodes])
def test_every_node_and_edge_is_drawn(draw: object) -> None:
    nodes = classifier()
    svg = ElementTree.fromstring(draw(nodes))  # type: ignore[operator]
    name = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in svg.iter(f"{name}text")]
    for node in nodes:
        assert node.name in texts and (node.op in texts or not node.inputs)
    arrows = [element for element in svg.iter(f"{name}path") if "marker-end" in element.attrib]
    assert len(arrows) == sum(len(node.inputs) for node in nodes)


@pytest.mark.parametrize("draw", [operations_as_nodes, tensors_as_nodes])
def test_large_and_empty_graphs(draw: object) -> None:
    many = [GraphNode(f"n{i}", "add", (), "[]") for i in range(MOST_NODES + 1)]
    assert "too large to draw" in draw(many)  # type: ignore[operator]
    ElementTree.fromstring(draw([]))  # type: ignore[operator]


def operation(name: str, kind: str, sizes: list[int | None], *inputs: SimpleNamespace) -> SimpleNamespace:
    shape = SimpleNamespace(as_list=lambda: sizes)
    tensor = SimpleNamespace(shape=shape, dtype=SimpleNamespace(name="float32"))
    tensor.op = SimpleNamespace(name=name, type=kind, inputs=inputs, outputs=[tensor])
    return tensor


def test_nodes_of_a_declared_graph() -> None:
    x = operation("x", "Placeholder", [None, 2])
    y = operation("y", "Tanh", [None, 2], x)
    z = operation("z", "Mul", [None, 2], y, x)
    assert graph_nodes(z) == [
        GraphNode("x", "Placeholder", (), "float32 [?, 2]"),
        GraphNode("y", "Tanh", (0,), "float32 [?, 2]"),
        GraphNode("z", "Mul", (1, 0), "float32 [?, 2]"),
    ]


def test_a_deep_graph_needs_no_recursion() -> None:
    value = operation("n0", "Placeholder", [])
    for index in range(1, 20_000):
        value = operation(f"n{index}", "Neg", [], value)
    nodes = graph_nodes(value)
    assert len(nodes) == 20_000 and nodes[-1].inputs == (19_998,)


@pytest.mark.parametrize("losses", [[], [1.0], [0.0, 0.0], [2.0, math.nan, 1.0, math.inf], [1e-7] * 5000])
def test_any_losses_can_be_drawn(losses: list[float]) -> None:
    svg = line_chart([("one <way>", losses), ("other", losses)])
    ElementTree.fromstring(svg)
    assert "nan" not in svg and "inf" not in svg


@pytest.mark.parametrize("high", [1e-6, 0.3, 1.0, 7.0, 99.0, 12345.0])
def test_ticks_are_few_and_inside(high: float) -> None:
    ticks = nice_ticks(0.0, high)
    assert 2 <= len(ticks) <= 8 and ticks[0] == 0 and ticks[-1] <= high * (1 + 1e-9)
