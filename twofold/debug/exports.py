"""Pictures for other viewers: Graphviz and Netron (dot), Model Explorer (JSON with data over the nodes)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from twofold.debug.picture import Picture, Step, View


def write_json(value: Any) -> bytes:
    """JSON as bytes."""
    return json.dumps(value, separators=(",", ":")).encode()


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def to_dot(picture: Picture) -> str:
    """The first view for Graphviz: operations are boxes, values from outside ellipses, boxes are clusters."""
    view = picture.views[0]
    lines = ["digraph G {", "  rankdir=TB;", f"  label={_quoted(picture.title)};", "  node [shape=box];"]
    lines += _dot_boxes(view.steps, 0, "  ", [0])
    for datum in view.data:
        if datum.producer < 0 and datum.kind != "constant":
            lines.append(
                f"  d{datum.id} [shape=ellipse, label={_quoted(f'{datum.name or datum.kind} {datum.type}')}];"
            )
    for step in view.steps:
        for number in step.inputs:
            datum = view.data[number]
            if datum.producer >= 0:
                lines.append(f"  s{datum.producer} -> s{step.id} [label={_quoted(datum.type)}];")
            elif datum.kind != "constant":
                lines.append(f"  d{number} -> s{step.id};")
        lines += [f"  s{number} -> s{step.id} [style=dashed];" for number in step.after]
    return "\n".join([*lines, "}", ""])


def _dot_boxes(steps: Iterable[Step], depth: int, indent: str, count: list[int]) -> list[str]:
    """Operations within their boxes from ``depth`` on; ``count`` numbers the clusters."""
    lines: list[str] = []
    inside: dict[str, list[Step]] = {}
    for step in steps:
        if len(step.boxes) > depth:
            inside.setdefault(step.boxes[depth], []).append(step)
        else:
            tip = _quoted("; ".join(step.lines[:1] + ([step.source] if step.source else [])))
            lines.append(f"{indent}s{step.id} [label={_quoted(step.name)}, tooltip={tip}];")
    for name, members in inside.items():
        count[0] += 1
        lines += [f"{indent}subgraph cluster_{count[0]} {{", f"{indent}  label={_quoted(name)};"]
        lines += [*_dot_boxes(members, depth + 1, indent + "  ", count), f"{indent}}}"]
    return lines


def model_explorer(picture: Picture) -> dict[str, Any]:
    """A graph collection: one graph for each view."""
    return {"label": picture.title, "graphs": [_explored(view) for view in picture.views]}


def _pairs(**values: Any) -> list[dict[str, str]]:
    return [{"key": key, "value": str(value)} for key, value in values.items() if value not in ("", None)]


def _explored(view: View) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    for datum in view.data:
        if datum.producer < 0 and datum.kind != "constant":
            nodes.append(
                {
                    "id": f"d{datum.id}",
                    "label": datum.name or datum.kind,
                    "namespace": "",
                    "attrs": _pairs(kind=datum.kind, type=datum.type, holds=datum.shown),
                    "outputsMetadata": [{"id": "0", "attrs": _pairs(tensor_shape=datum.type)}],
                }
            )
    for step in view.steps:
        nodes.append(_explored_step(view, step))
    return {"id": view.name, "nodes": nodes}


def _explored_step(view: View, step: Step) -> dict[str, Any]:
    edges = []
    for position, number in enumerate(step.inputs):
        datum = view.data[number]
        if datum.producer < 0 and datum.kind == "constant":
            continue
        source, output = f"d{number}", "0"
        if datum.producer >= 0:
            source, output = f"s{datum.producer}", str(view.steps[datum.producer].outputs.index(number))
        edges.append(
            {"sourceNodeId": source, "sourceNodeOutputId": output, "targetNodeInputId": str(position)}
        )
    return {
        "id": f"s{step.id}",
        "label": step.name,
        "namespace": "/".join(part.replace("/", "∕") for part in step.boxes),
        "attrs": _pairs(
            line="; ".join(step.lines),
            source=step.source,
            attributes=step.attributes,
            direction="backward" if step.backward else "forward",
            flops=step.flops,
            bytes=step.nbytes,
        ),
        "incomingEdges": edges,
        "outputsMetadata": [
            {
                "id": str(k),
                "attrs": _pairs(tensor_shape=view.data[number].type, holds=view.data[number].shown),
            }
            for k, number in enumerate(step.outputs)
        ],
    }


_GRADIENT = [
    {"stop": 0, "bgColor": "#eef4fb"},
    {"stop": 0.5, "bgColor": "#f6c56b"},
    {"stop": 1, "bgColor": "#d3422b"},
]


def overlays(picture: Picture) -> dict[str, Any]:
    """Data over the nodes, by what they are: each is a file of its own for Model Explorer, by graph."""
    found: dict[str, Any] = {}
    for what, amount in (
        ("time (us)", lambda step: step.seconds * 1e6),
        ("bytes", lambda step: step.nbytes),
        ("flops", lambda step: step.flops),
    ):
        graphs = {
            view.name: {
                "results": {f"s{step.id}": {"value": amount(step)} for step in view.steps},
                "gradient": _GRADIENT,
            }
            for view in picture.views
            if any(amount(step) for step in view.steps)
        }
        if graphs:
            found[what] = graphs
    return found
