"""The placing of a graph's boxes."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tests.demo.sample_graph import classifier
from twofold.demo.layout import Layout, assign_layers, lay_out, spread

GAP = 18.0


def random_inputs(seed: int) -> list[tuple[int, ...]]:
    generator = random.Random(seed)
    count = generator.randrange(1, 40)
    return [
        tuple(generator.randrange(node) for _ in range(generator.randrange(min(node, 3) + 1)))
        for node in range(count)
    ]


def check(layout: Layout, inputs: list[tuple[int, ...]]) -> None:
    for node, sources in enumerate(inputs):
        assert all(layout.boxes[source].layer < layout.boxes[node].layer for source in sources)
    for layer in layout.layers:
        for left, right in pairwise(layout.boxes[box] for box in layer):
            assert right.x - left.x >= (left.width + right.width) / 2 + GAP - 1e-6
    wanted = [
        (source, number, node) for node, sources in enumerate(inputs) for number, source in enumerate(sources)
    ]
    assert sorted(edge[:3] for edge in layout.edges) == sorted(wanted)
    for source, _, target, path in layout.edges:
        assert path[0] == source and path[-1] == target
        assert all(layout.boxes[b].layer == layout.boxes[a].layer + 1 for a, b in pairwise(path))


@pytest.mark.parametrize("seed", range(25))
def test_boxes_of_random_graphs_do_not_overlap(seed: int) -> None:
    inputs = random_inputs(seed)
    check(lay_out(inputs, [20.0 + 7 * (node % 5) for node in range(len(inputs))], GAP), inputs)


def test_the_same_graph_is_laid_out_the_same_way() -> None:
    inputs = random_inputs(3)
    first, second = (lay_out(inputs, [30.0] * len(inputs)) for _ in range(2))
    assert [box.x for box in first.boxes] == [box.x for box in second.boxes]


def test_a_chain_is_straight() -> None:
    layout = lay_out([(), (0,), (1,), (2,)], [10.0, 50.0, 20.0, 30.0])
    assert max(box.x for box in layout.boxes) - min(box.x for box in layout.boxes) < 0.1


def test_leaves_stand_above_their_use() -> None:
    nodes = classifier()
    layers = assign_layers([node.inputs for node in nodes])
    for node, layer in zip(nodes, layers):
        for source in node.inputs:
            if not nodes[source].inputs and nodes[source].op == "variable":
                assert layers[source] == layer - 1


def test_spread_keeps_what_fits() -> None:
    assert spread([0.0, 5.0, 20.0], [1.0] * 3, [2.0, 3.0]) == [0.0, 5.0, 20.0]
    assert spread([], [], []) == []


def test_empty_graph() -> None:
    assert lay_out([], []).boxes == []


def test_inputs_must_come_first() -> None:
    with pytest.raises(ValueError, match="inputs must stand before their use"):
        lay_out([(1,), ()], [1.0, 1.0])
