"""What is written for other programs has the form that these publish: Model Explorer, Graphviz, trace viewers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from tests.debug import stepped_programs as programs
from twofold.debug.draw import Drawing
from twofold.protobuf import fields

COLLECTION: dict[str, Any] = {
    "GraphCollection": {"label!": str, "graphs!": ["Graph"], "graphSorting": str},
    "Graph": {"id!": str, "nodes!": ["Node"], "groupNodeAttributes": dict, "layoutConfigs": dict},
    "Node": {
        "id!": str,
        "label!": str,
        "namespace": str,
        "subgraphIds": [str],
        "attrs": ["KeyValue"],
        "incomingEdges": ["Edge"],
        "outputsMetadata": ["Metadata"],
        "inputsMetadata": ["Metadata"],
        "style": dict,
        "config": dict,
    },
    "Edge": {"sourceNodeId!": str, "sourceNodeOutputId": str, "targetNodeInputId": str},
    "KeyValue": {"key!": str, "value!": str},
    "Metadata": {"id!": str, "attrs": ["KeyValue"]},
    "NodeData": {"results!": dict, "thresholds": ["Threshold"], "gradient": ["Stop"]},
    "Result": {"value!": (int, float), "bgColor": str, "textColor": str},
    "Threshold": {"value!": (int, float), "bgColor!": str, "textColor": str},
    "Stop": {"stop!": (int, float), "bgColor": str, "textColor": str},
}
"""Classes of Model Explorer's ``graph_builder`` and ``node_data_builder``: fields, ``!`` those without a default."""


def conforms(value: Any, kind: Any, path: str = "") -> None:
    """Fails where JSON does not have the fields of a class."""
    if isinstance(kind, list):
        assert isinstance(value, list), path
        for k, one in enumerate(value):
            conforms(one, kind[0], f"{path}[{k}]")
    elif isinstance(kind, str):
        known = {name.rstrip("!"): inner for name, inner in COLLECTION[kind].items()}
        assert isinstance(value, dict) and set(value) <= set(known), (path, value)
        assert {name[:-1] for name in COLLECTION[kind] if name.endswith("!")} <= set(value), (path, value)
        for name, inner in value.items():
            conforms(inner, known[name], f"{path}.{name}")
    else:
        assert isinstance(value, kind) and not isinstance(value, bool), (path, value)


def module() -> Drawing:
    torch.manual_seed(0)
    return torch.draw(programs.Network(3), torch.ones(2, 3), backward=True, times=True)


def tree() -> Drawing:
    return torch.draw(programs.tree(3, torch.ones(2)), times=True)


def declared() -> Drawing:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2])
        tf.gradients(programs.declared(x), [x])
        return torch.draw(graph)


DRAWINGS = [module, tree, declared]


@pytest.mark.parametrize("drawn", DRAWINGS, ids=lambda one: one.__name__)
def test_model_explorer_can_read_it(drawn: Callable[[], Drawing], tmp_path: Path) -> None:
    drawing = drawn()
    drawing.save(tmp_path / "net.json")
    found = json.loads((tmp_path / "net.json").read_text())
    conforms(found, "GraphCollection")
    for graph in found["graphs"]:
        nodes = {node["id"]: node for node in graph["nodes"]}
        assert len(nodes) == len(graph["nodes"])
        for node in graph["nodes"]:
            for edge in node.get("incomingEdges", ()):
                outputs = [one["id"] for one in nodes[edge["sourceNodeId"]]["outputsMetadata"]]
                assert edge["sourceNodeOutputId"] in outputs
    for what in drawing.to_overlays().values():
        for name, data in json.loads(json.dumps(what)).items():
            conforms(data, "NodeData")
            assert [one["stop"] for one in data["gradient"]][:: len(data["gradient"]) - 1] == [0, 1]
            (graph,) = [one for one in found["graphs"] if one["id"] == name]
            assert set(data["results"]) <= {node["id"] for node in graph["nodes"]}
            for key, result in data["results"].items():
                conforms(result, "Result", key)


TOKEN = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*")|([A-Za-z_][A-Za-z_0-9]*|-?[0-9.]+)|(->|[{}\[\]=;,]))', re.DOTALL
)
KEYWORDS = {"graph", "node", "edge", "digraph", "subgraph", "strict"}


class Dot:
    """A reader of Graphviz's language: statements of nodes, edges, attributes and subgraphs."""

    def __init__(self, text: str) -> None:
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[tuple[str, str]] = []
        self.clusters: dict[str, dict[str, str]] = {}
        self._tokens: list[str] = []
        position = 0
        while text[position:].strip():
            match = TOKEN.match(text, position)
            assert match, text[position : position + 40]
            self._tokens.append(match.group().strip())
            position = match.end()
        self._expect("digraph")
        self._name()
        self._statements({})
        assert not self._tokens

    def _expect(self, token: str) -> None:
        assert self._tokens.pop(0) == token

    def _name(self) -> str:
        token = self._tokens.pop(0)
        if token.startswith('"'):
            return re.sub(r"\\(.)", r"\1", token[1:-1])
        assert token not in KEYWORDS and re.fullmatch(r"[\w.-]+", token), token
        return token

    def _attributes(self) -> dict[str, str]:
        found = {}
        while self._tokens[0] == "[":
            self._expect("[")
            while self._tokens[0] != "]":
                name = self._name()
                self._expect("=")
                found[name] = self._name()
                if self._tokens[0] in (",", ";"):
                    self._tokens.pop(0)
            self._expect("]")
        return found

    def _statements(self, own: dict[str, str]) -> None:
        self._expect("{")
        while self._tokens[0] != "}":
            self._statement(own)
            if self._tokens[0] == ";":
                self._tokens.pop(0)
        self._expect("}")

    def _statement(self, own: dict[str, str]) -> None:
        if self._tokens[0] in ("graph", "node", "edge"):
            self._tokens.pop(0)
            self._attributes()
        elif self._tokens[0] == "subgraph":
            self._tokens.pop(0)
            name = self._name()
            assert name not in self.clusters
            self.clusters[name] = {}
            self._statements(self.clusters[name])
        else:
            name = self._name()
            if self._tokens[0] == "=":
                self._expect("=")
                own[name] = self._name()
            elif self._tokens[0] == "->":
                self._expect("->")
                self.edges.append((name, self._name()))
                self._attributes()
            else:
                assert name not in self.nodes
                self.nodes[name] = self._attributes()


@pytest.mark.parametrize("drawn", DRAWINGS, ids=lambda one: one.__name__)
def test_graphviz_can_read_it(drawn: Callable[[], Drawing], tmp_path: Path) -> None:
    """The nodes, edges and boxes in Graphviz's language are those for Model Explorer."""
    drawing = drawn()
    drawing.save(tmp_path / "net.dot")
    drawing.save(tmp_path / "net.json")
    found = Dot((tmp_path / "net.dot").read_text())
    nodes = json.loads((tmp_path / "net.json").read_text())["graphs"][0]["nodes"]
    assert set(found.nodes) == {node["id"] for node in nodes}
    edges = [(edge["sourceNodeId"], node["id"]) for node in nodes for edge in node.get("incomingEdges", ())]
    assert sorted(found.edges) == sorted(edges)
    boxes = {
        tuple(node["namespace"].split("/")[: k + 1])
        for node in nodes
        for k in range(node["namespace"].count("/") + 1)
    }
    assert len(found.clusters) == len(boxes - {("",)})
    assert all(name.startswith("cluster_") and "label" in own for name, own in found.clusters.items())


def test_trace_viewers_can_read_a_time_line(tmp_path: Path) -> None:
    """Events have the fields of the Trace Event Format; those of a thread lie in each other or apart."""
    x = torch.ones(64, 64, requires_grad=True)
    with torch.profile() as p:
        for _ in range(3):
            (x @ x).tanh().sum().backward()
            x.grad.tolist()
    p.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    phases: dict[str, set[str]] = {"X": {"ts", "dur"}, "M": {"args"}, "i": {"ts"}, "C": {"ts", "args"}}
    for event in events:
        assert {"name", "ph", "pid"} | phases[event["ph"]] <= set(event), event
        assert "tid" in event or event["name"] == "process_name"
        assert all(
            isinstance(event[key], (int, float)) for key in ("ts", "dur", "tid", "pid") if key in event
        )
    spans = [event for event in events if event["ph"] == "X"]
    assert {"kernel"} < {event["cat"] for event in spans}
    for thread in {(event["pid"], event["tid"]) for event in spans}:
        own = [event for event in spans if (event["pid"], event["tid"]) == thread]
        own.sort(key=lambda event: (event["ts"], -event["dur"]))
        ends: list[float] = []
        for event in own:
            while ends and ends[-1] <= event["ts"] + 1e-3:
                ends.pop()
            end = event["ts"] + event["dur"]
            assert not ends or end <= ends[-1] + 1e-3, event
            ends.append(end)


def test_metadata_of_a_run_is_the_message_of_tensorflow() -> None:
    """RunMetadata.step_stats (1) > dev_stats (1) > device (1), node_stats (2) > names, times and labels."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [8, 8], name="x")
        total = tf.reduce_sum(tf.matmul(x, x, name="product"), name="total")
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(total, {x: numpy.ones((8, 8))}, options=options, run_metadata=metadata)
    ((number, steps),) = fields(metadata.SerializeToString())
    ((inner, device),) = fields(steps)
    assert (number, inner) == (1, 1)
    parts = list(fields(device))
    assert dict(parts)[1] == b"/job:localhost/replica:0/task:0/device:CPU:0"
    nodes = [dict(fields(content)) for number, content in parts if number == 2]
    assert {b"product", b"total"} <= {node[1] for node in nodes}
    for node in nodes:
        assert node[2] > 0 and node[5] > 0 and all(isinstance(node[k], int) for k in (2, 5))
        assert isinstance(node[8], bytes) and set(node) <= set(range(1, 15))
