"""Graphs that call graphs: their text, the verifier, and the values of what they compute inlined."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.schedule.random_graphs import arrays_for, graphs
from tests.compiler.schedule.runner import run_graph
from twofold.dtypes import float32
from twofold.errors import GraphError
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, call, called, graph_of_calls, inline_calls
from twofold.ir.interpret import evaluate
from twofold.ir.node import Node
from twofold.ir.text import format_calls, format_graph, parse_graph
from twofold.ir.types import TensorType, tensor_type
from twofold.ir.verify import verify
from twofold.ops.base import ops
from twofold.transforms.reverse import backward
from twofold.transforms.vmap import batch_graph, batched_type

Draw = Any


@st.composite
def programs(draw: Draw) -> Graph:
    """Calls of random graphs on inputs and on each other's results; some are called again, or call others."""
    bodies = draw(st.lists(graphs(most=6), min_size=1, max_size=3))
    types: list[TensorType] = []
    values: list[Node] = []
    made: list[Node] = []

    def operand(type: TensorType) -> Node:
        known = [value for value in (*values, *made) if value.type is type]
        if known and draw(st.booleans()):
            return draw(st.sampled_from(known))
        types.append(type)
        values.append(input_node(len(types) - 1, type))
        return values[-1]

    for _ in range(draw(st.integers(1, 5))):
        body = draw(st.sampled_from(bodies))
        made += call(body, [operand(type) for type in body.input_types])
        if draw(st.booleans()):
            inputs = [input_node(k, type) for k, type in enumerate(body.input_types)]
            bodies.append(Graph(body.input_types, call(body, inputs)[-1:]))
    outputs = draw(st.lists(st.sampled_from(made), min_size=1, max_size=4))
    return Graph(types, outputs)


def same(found: list[Any], expected: list[Any]) -> bool:
    return [numpy.asarray(one).tobytes() for one in found] == [
        numpy.asarray(one).tobytes() for one in expected
    ]


@settings(max_examples=60, deadline=None)
@given(programs())
def test_calls_are_what_they_compute_inlined(graph: Graph) -> None:
    """Text and back gives the same nodes; interpreted and compiled, calls give the bits of the inlined graph."""
    verify(graph)
    again = parse_graph(format_graph(graph))
    assert again.outputs == graph.outputs and again.input_types == graph.input_types
    flat = inline_calls(graph)
    verify(flat)
    assert all(called(node) is None for node in flat.nodes())
    assert any(called(node) is not None for node in graph.nodes())
    arrays = arrays_for(graph)
    assert same(evaluate(graph, arrays), evaluate(flat, arrays))
    assert same(run_graph(graph, arrays), run_graph(flat, arrays, fuse=False))


X = tensor_type(float32, (3, 4))


def layer() -> Graph:
    """Two results of two operands."""
    x, y = input_node(0, X), input_node(1, X)
    return Graph([X, X], [ops.tanh(x * y), ops.sum(x, 1)])


TWICE = """@0 = graph(%0 : float32[3,4], %1 : float32[3,4]) {
  %2 = multiply(%0, %1) : float32[3,4]
  %3 = tanh(%2) : float32[3,4]
  %4 = sum(%0) {(1,)} : float32[3]
  return %3, %4
}
graph(%0 : float32[3,4], %1 : float32[3,4]) {
  %2, %3 = call @0(%0, %1) : float32[3,4], float32[3]
  %4, %5 = call @0(%2, %1) : float32[3,4], float32[3]
  return %4, %3
}"""


def twice() -> Graph:
    x, y = input_node(0, X), input_node(1, X)
    first = call(layer(), [x, y])
    return Graph([X, X], [call(layer(), [first[0], y])[0], first[1]])


def test_text_names_each_graph_once() -> None:
    assert format_graph(twice()) == TWICE
    alone = format_calls(twice(), {layer(): "@layer"})
    assert alone.replace("@layer", "@0") == TWICE[TWICE.index("\ngraph") + 1 :]
    assert parse_graph(TWICE).outputs == twice().outputs


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("call @0(%2", "call @1(%2", "@1 is called before its text"),
        ("%4, %5 = call", "%4 = call", "@0 has other results"),
        (": float32[3,4], float32[3]\n  %4", ": float32[3,4], float32[4]\n  %4", "@0 has other results"),
        ("call @0(%2", "call @0(%7", "%7 is used before its line"),
    ],
)
def test_text_that_calls_no_graph_is_refused(before: str, after: str, words: str) -> None:
    assert before in TWICE
    with pytest.raises(GraphError, match=words):
        parse_graph(TWICE.replace(before, after, 1))


def test_the_verifier_looks_at_calls_and_into_called_graphs() -> None:
    x, y = input_node(0, X), input_node(1, tensor_type(float32, (3,)))
    with pytest.raises(GraphError, match="the graph takes"):
        verify(Graph([X, y.type], [call(layer(), [x, y])[0]]))
    wrong = Graph([X], [input_node(1, X)])
    with pytest.raises(GraphError, match="the graph has 1 inputs"):
        verify(Graph([X], call(Graph([X], call(wrong, [x])), [x])))


def test_gradients_and_batches_of_calls_are_those_of_what_they_compute() -> None:
    graph = twice()
    seed = input_node(2, X)
    found, expected = (
        backward([one.outputs[0]], [seed], [input_node(k, X) for k in range(2)], {})
        for one in (graph, inline_calls(graph))
    )
    assert found == expected and None not in found
    inputs = [input_node(0, batched_type(X, 5)), input_node(1, X)]
    assert batch_graph(graph, inputs, (True, False)) == batch_graph(
        inline_calls(graph), inputs, (True, False)
    )


def test_a_long_chain_of_calls_is_inlined() -> None:
    body = Graph([X], [ops.tanh(input_node(0, X))])
    chain = graph_of_calls([X], [([k - 1], body) for k in range(5000)], [4999])
    assert parse_graph(format_graph(chain)).outputs == chain.outputs
    assert len(inline_calls(chain).nodes()) == 5001
