"""Graphs as text and back, and the verifier."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings

sys.path.insert(0, str(Path(__file__).parent.parent / "schedule"))

from tests.compiler.schedule.random_graphs import graphs
from twofold.dtypes import bool_, float32
from twofold.errors import GraphError
from twofold.ir.bind import constant, input_node
from twofold.ir.graph import Graph
from twofold.ir.node import make_node
from twofold.ir.op import REGISTRY
from twofold.ir.text import format_graph, parse_attribute, parse_graph
from twofold.ir.types import tensor_type
from twofold.ir.verify import verify
from twofold.ops.base import ops


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_text_of_a_graph_reads_back_to_the_same_nodes(graph: Graph) -> None:
    verify(graph)
    again = parse_graph(format_graph(graph))
    assert again.outputs == graph.outputs and again.input_types == graph.input_types


def test_a_very_deep_graph_is_printed_read_and_verified() -> None:
    node = input_node(0, tensor_type(float32, (2,)))
    for _ in range(20_000):
        node = ops.negative(node)
    graph = Graph([tensor_type(float32, (2,))], [node])
    verify(graph)
    assert parse_graph(format_graph(graph)).outputs == graph.outputs


@pytest.mark.parametrize("value", [1.0, -0.0, float("inf"), float("-inf"), 0.1, 5e-324])
def test_constants_keep_their_bits(value: float) -> None:
    graph = Graph([], [constant(value, float32)])
    (again,) = parse_graph(format_graph(graph)).outputs
    assert again is graph.outputs[0]


def test_text_that_is_no_graph_is_refused() -> None:
    for text, word in (
        ("graph() {\n  %1 = nothing() : float32[]\n  return %1\n}", "nothing"),
        ("graph() {\n  return %1\n}", "%1"),
        ("graph() {\n  what\n}", "what"),
        ("graph() {\n}", "return"),
    ):
        with pytest.raises(GraphError, match=word):
            parse_graph(text)
    with pytest.raises(GraphError):
        parse_attribute("open('x')")


def test_the_verifier_names_the_broken_rule() -> None:
    x = input_node(0, tensor_type(float32, (2, 3)))
    y = input_node(1, tensor_type(float32, (3,)))
    wrong = {
        "one shape": make_node(REGISTRY["add"], (), (x, y), x.type),
        "kept axes": make_node(REGISTRY["sum"], ((0,),), (x,), tensor_type(float32, (2,))),
        "sorted": make_node(REGISTRY["sum"], ((1, 0),), (x,), tensor_type(float32)),
        "number of elements": make_node(REGISTRY["reshape"], ((5,),), (x,), tensor_type(float32, (5,))),
        "keeps the dtype": make_node(REGISTRY["reshape"], ((6,),), (x,), tensor_type(bool_, (6,))),
        "batch axes": make_node(REGISTRY["matmul"], (), (x, y), x.type),
        "contracted": make_node(REGISTRY["matmul"], (), (x, x), x.type),
        "composite": make_node(REGISTRY["mean"], ((0,), False), (x,), y.type),
        "graph has 2 inputs": input_node(2, x.type),
        "input 0 of the graph": input_node(0, y.type),
    }
    for words, node in wrong.items():
        with pytest.raises(GraphError, match=words):
            verify(Graph([x.type, y.type], [node]))
