"""Positions the boxes of a directed graph without circles in layers, top to bottom.

The four steps of K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual Understanding of Hierarchical System
Structures" (1981): layers, points where long edges cross a layer, order within layers, positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

SWEEPS = 12
MOST_SWEEPS = 300
STRAIGHT = 8.0


@dataclass
class Box:
    """Something with a position: a box to draw, or (with ``node`` None) a point that an edge goes through."""

    node: int | None
    width: float
    layer: int
    depth: int
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    x: float = 0.0


@dataclass
class Layout:
    """The finished drawing: ``boxes[i]`` is node i; an edge is (source, input number, target, its boxes)."""

    boxes: list[Box]
    layers: list[list[int]]
    edges: list[tuple[int, int, int, list[int]]]
    left: float
    right: float


def depths(inputs: Sequence[Sequence[int]]) -> list[int]:
    """Number of edges on the longest way to each node.

    >>> depths([(), (0,), (), (1, 2)])
    [0, 1, 0, 2]
    """
    result: list[int] = []
    for sources in inputs:
        result.append(1 + max((result[source] for source in sources), default=-1))
    return result


def assign_layers(inputs: Sequence[Sequence[int]]) -> list[int]:
    """The layer of each node: as low as its uses allow, so that side branches stand beside what they join.

    >>> assign_layers([(), (0,), (), (1, 2)])
    [0, 1, 1, 2]
    """
    depth = depths(inputs)
    layers: dict[int, int] = {}
    for node in reversed(range(len(inputs))):
        layer = layers.setdefault(node, depth[node])
        for source in inputs[node]:
            layers[source] = min(layers.get(source, layer - 1), layer - 1)
    return [layers[node] for node in range(len(inputs))]


def spread(wanted: Sequence[float], weights: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Positions nearest to the ``wanted`` ones by weighted squares, ``gaps[i]`` or more between i and i + 1.

    Pool adjacent violators: M. Ayer et al., "An Empirical Distribution Function for Sampling with Incomplete
    Information" (1955).

    >>> spread([0.0, 0.0, 10.0], [1.0, 3.0, 1.0], [2.0, 2.0])
    [-1.5, 0.5, 10.0]
    """
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    blocks: list[tuple[float, float, int]] = []
    for want, weight, offset in zip(wanted, weights, offsets):
        blocks.append((want - offset, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (left, left_weight, left_count), (right, right_weight, right_count) = blocks[-2:]
            weight = left_weight + right_weight
            mean = (left * left_weight + right * right_weight) / weight
            blocks[-2:] = [(mean, weight, left_count + right_count)]
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _connect(boxes: list[Box], upper: int, lower: int) -> None:
    boxes[upper].below.append(lower)
    boxes[lower].above.append(upper)


def _route(inputs: Sequence[Sequence[int]], boxes: list[Box]) -> list[tuple[int, int, int, list[int]]]:
    """All edges, with a new box of no width in each layer that an edge crosses."""
    edges = []
    for target, sources in enumerate(inputs):
        for number, source in enumerate(sources):
            path = [source]
            for layer in range(boxes[source].layer + 1, boxes[target].layer):
                boxes.append(Box(None, 0.0, layer, -9))
                _connect(boxes, path[-1], len(boxes) - 1)
                path.append(len(boxes) - 1)
            _connect(boxes, path[-1], target)
            edges.append((source, number, target, [*path, target]))
    return edges


def _crossings(boxes: list[Box], layers: list[list[int]]) -> int:
    """How many pairs of edges between neighbouring layers cross."""
    count = 0
    for upper, lower in pairwise(layers):
        place = {box: position for position, box in enumerate(lower)}
        ends = [place[target] for box in upper for target in sorted(boxes[box].below, key=place.__getitem__)]
        count += sum(left > right for i, left in enumerate(ends) for right in ends[i + 1 :])
    return count


def _order(boxes: list[Box], layers: list[list[int]]) -> list[list[int]]:
    """Sorts each layer by the mean position of its neighbours, down and up in turn; keeps the best order."""
    best, fewest = [list(layer) for layer in layers], _crossings(boxes, layers)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            place = {box: position for row in layers for position, box in enumerate(row)}
            keys = {
                box: _mean(
                    [place[other] for other in (boxes[box].above if down else boxes[box].below)], place[box]
                )
                for box in layer
            }
            layer.sort(key=keys.__getitem__)
        crossings = _crossings(boxes, layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    return best


def _position(boxes: list[Box], layers: list[list[int]], gap: float) -> None:
    """Makes the squares of the horizontal distances along edges small; long ways count most.

    Each layer in turn takes its best position for the others as they are, until nothing moves any more.
    """
    for layer in layers:
        for position, box in enumerate(layer):
            boxes[box].x = position * gap
    for _ in range(MOST_SWEEPS):
        moved = 0.0
        for layer in [*layers, *reversed(layers)]:
            pulls = [_pull(boxes, box) for box in layer]
            gaps = [(boxes[left].width + boxes[right].width) / 2 + gap for left, right in pairwise(layer)]
            wanted, weights = [want for want, _ in pulls], [weight for _, weight in pulls]
            for box, x in zip(layer, spread(wanted, weights, gaps)):
                moved = max(moved, abs(boxes[box].x - x))
                boxes[box].x = x
        if moved < 0.05:
            break


def _pull(boxes: list[Box], index: int) -> tuple[float, float]:
    """Where a box would like to be, and how much: an edge on a longest way pulls more than a side branch."""
    box = boxes[index]
    near = [(boxes[other].x, boxes[other].depth + 1 == box.depth) for other in box.above]
    near += [(boxes[other].x, box.depth + 1 == boxes[other].depth) for other in box.below]
    total = sum(STRAIGHT if main else 1.0 for _, main in near)
    pulled = sum(x * (STRAIGHT if main else 1.0) for x, main in near)
    return (pulled / total, total) if near else (box.x, 0.01)


def lay_out(inputs: Sequence[Sequence[int]], widths: Sequence[float], gap: float = 18.0) -> Layout:
    """The layout of the graph whose node i has the inputs ``inputs[i]``, all smaller than i.

    Raises ValueError if an input does not stand before the node that uses it.

    >>> layout = lay_out([(), (), (0, 1)], [10.0, 10.0, 10.0])
    >>> [(box.layer, box.x) for box in layout.boxes]
    [(0, -14.0), (0, 14.0), (1, 0.0)]
    """
    for node, sources in enumerate(inputs):
        if any(not 0 <= source < node for source in sources):
            raise ValueError(f"node {node} has inputs {tuple(sources)}; inputs must stand before their use.")
    assigned = assign_layers(inputs)
    depth = depths(inputs)
    boxes = [Box(node, widths[node], assigned[node], depth[node]) for node in range(len(inputs))]
    edges = _route(inputs, boxes)
    layers: list[list[int]] = [[] for _ in range(max(assigned, default=-1) + 1)]
    for index, box in enumerate(boxes):
        layers[box.layer].append(index)
    layers = _order(boxes, layers)
    _position(boxes, layers, gap)
    left = min((box.x - box.width / 2 for box in boxes), default=0.0)
    right = max((box.x + box.width / 2 for box in boxes), default=0.0)
    return Layout(boxes, layers, edges, left, right)
