"""Draws a graph as SVG in the two usual conventions: operations as nodes, or tensors as nodes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise

from twofold.demo.graphs import GraphNode
from twofold.demo.layout import Box, Layout, lay_out

TEXT_WIDTH = 6.7
MARGIN = 14.0
MOST_NODES = 150


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="middle">{escape(text)}</text>'


def _rectangle(x: float, y: float, width: float, height: float, radius: float, style: str) -> str:
    return (
        f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius:.1f}" class="{style}"/>'
    )


def _curve(points: Sequence[tuple[float, float]], style: str, arrow: str) -> str:
    """A smooth line that leaves and reaches every point vertically."""
    parts = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        parts.append(f"C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}")
    return f'<path d="{" ".join(parts)}" class="{style}" marker-end="url(#{arrow})"/>'


def _page(layout: Layout, height: float, label: str, arrow: str, parts: Sequence[str]) -> str:
    left, width = layout.left - MARGIN, layout.right - layout.left + 2 * MARGIN
    marker = (
        f'<defs><marker id="{arrow}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0,0.8 L7.5,4 L0,7.2 z" class="arrow"/></marker></defs>'
    )
    view = f'viewBox="{left:.1f} 0 {width:.1f} {height:.1f}" style="max-width:{width:.0f}px"'
    return (
        f'<svg class="graph" role="img" aria-label="{escape(label)}" {view} '
        f'xmlns="http://www.w3.org/2000/svg">{marker}{"".join(parts)}</svg>'
    )


def _too_large(nodes: Sequence[GraphNode]) -> str:
    return f'<p class="note">A graph of {len(nodes)} nodes is too large to draw.</p>'


def _kind(node: GraphNode) -> str:
    return "inner" if node.inputs else "leaf"


def _ends(layout: Layout, number: int, target: int, inputs: int) -> float:
    """Where the ``number``-th edge from the left arrives on the upper side of a box."""
    box = layout.boxes[target]
    return box.x + (number - (inputs - 1) / 2) * min(16.0, box.width / (inputs + 1))


def _arrival_order(layout: Layout, inputs: Sequence[Sequence[int]]) -> dict[tuple[int, int], int]:
    """The rank from the left of each (target, input number), so that arriving edges do not cross."""
    arriving: dict[int, list[tuple[float, int]]] = {}
    for _, number, target, path in layout.edges:
        arriving.setdefault(target, []).append((layout.boxes[path[-2]].x, number))
    return {
        (target, number): rank
        for target, ends in arriving.items()
        for rank, (_, number) in enumerate(sorted(ends))
    }


def operations_as_nodes(nodes: Sequence[GraphNode]) -> str:
    """SVG with a box for every operation; the tensor that flows along an edge is written beside it.

    >>> x, y = GraphNode("x", "placeholder", (), "[2]"), GraphNode("y", "tanh", (0,), "[2]")
    >>> svg = operations_as_nodes([x, y])
    >>> svg.count("<rect"), svg.count("<path d")
    (2, 2)
    """
    if len(nodes) > MOST_NODES:
        return _too_large(nodes)
    box_height, pitch = 36.0, 84.0
    widths = [max(len(node.op) + 1, len(node.name), len(node.shape) - 2) * TEXT_WIDTH + 20 for node in nodes]
    layout = lay_out([node.inputs for node in nodes], widths, gap=22.0)
    ranks = _arrival_order(layout, [node.inputs for node in nodes])

    def center(box: Box) -> float:
        return MARGIN + box_height / 2 + box.layer * pitch

    edges, boxes, labels = [], [], []
    for source, number, target, path in layout.edges:
        end = _ends(layout, ranks[target, number], target, len(nodes[target].inputs))
        inner = [(layout.boxes[box].x, center(layout.boxes[box])) for box in path[1:-1]]
        start = (layout.boxes[source].x, center(layout.boxes[source]) + box_height / 2)
        edges.append(
            _curve([start, *inner, (end, center(layout.boxes[target]) - box_height / 2)], "edge", "arrow-a")
        )
    for node, box in zip(nodes, layout.boxes):
        y = center(box)
        title = f"<title>{escape(f'{node.name}: {node.op} gives {node.shape}')}</title>"
        boxes.append(f"<g>{title}{_rectangle(box.x, y, box.width, box_height, 7, f'box {_kind(node)}')}")
        boxes.append(_text(box.x, y - 2, node.op, "op") + _text(box.x, y + 12, node.name, "name") + "</g>")
        if box.below:
            labels.append(_text(box.x, y + box_height / 2 + 14, node.shape, "shape halo"))
    height = 2 * MARGIN + box_height + (len(layout.layers) - 1) * pitch
    return _page(layout, height, "Graph with operations as nodes", "arrow-a", edges + boxes + labels)


def tensors_as_nodes(nodes: Sequence[GraphNode]) -> str:
    """SVG with an oval for every tensor; the operation is written where the edges from its inputs meet.

    >>> x, y = GraphNode("x", "placeholder", (), "[2]"), GraphNode("y", "tanh", (0,), "[2]")
    >>> svg = tensors_as_nodes([x, y])
    >>> svg.count('class="tag"'), svg.count("oval")
    (1, 2)
    """
    if len(nodes) > MOST_NODES:
        return _too_large(nodes)
    oval_height, tag_height, pitch = 38.0, 18.0, 96.0
    widths = [max(len(node.op) + 2, len(node.name), len(node.shape)) * TEXT_WIDTH + 26 for node in nodes]
    layout = lay_out([node.inputs for node in nodes], widths, gap=22.0)
    ranks = _arrival_order(layout, [node.inputs for node in nodes])

    def center(box: Box) -> float:
        return MARGIN + oval_height / 2 + box.layer * pitch

    def tag_center(box: Box) -> float:
        return center(box) - oval_height / 2 - 8 - tag_height / 2

    edges, boxes = [], []
    for source, number, target, path in layout.edges:
        goal = layout.boxes[target]
        end = (
            goal.x + (_ends(layout, ranks[target, number], target, len(nodes[target].inputs)) - goal.x) * 0.7
        )
        inner = [(layout.boxes[box].x, center(layout.boxes[box])) for box in path[1:-1]]
        start = (layout.boxes[source].x, center(layout.boxes[source]) + oval_height / 2)
        edges.append(_curve([start, *inner, (end, tag_center(goal) - tag_height / 2)], "edge", "arrow-b"))
    for node, box in zip(nodes, layout.boxes):
        y = center(box)
        title = f"<title>{escape(f'{node.name}: {node.shape}, made by {node.op}')}</title>"
        oval = _rectangle(box.x, y, box.width, oval_height, oval_height / 2, f"oval {_kind(node)}")
        boxes.append(f"<g>{title}{oval}")
        boxes.append(
            _text(box.x, y - 2, node.name, "op") + _text(box.x, y + 12, node.shape, "shape") + "</g>"
        )
        if node.inputs:
            top = tag_center(box)
            tag_width = len(node.op) * TEXT_WIDTH + 14
            boxes.append(f'<path d="M{box.x:.1f},{top:.1f} V{y - oval_height / 2:.1f}" class="edge"/>')
            boxes.append(_rectangle(box.x, top, tag_width, tag_height, 4, "tag"))
            boxes.append(_text(box.x, top + 4, node.op, "tag-text"))
    height = 2 * MARGIN + oval_height + (len(layout.layers) - 1) * pitch
    return _page(layout, height, "Graph with tensors as nodes", "arrow-b", edges + boxes)
