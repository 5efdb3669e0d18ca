"""Runs functions of operations on NumPy arrays through nodes and the reference interpreter."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

sys.path.insert(0, str(Path(__file__).parent))

from differences import vjp_by_differences

import twofold.ops
from twofold.dtypes import as_dtype
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.interpret import evaluate
from twofold.ir.node import Node
from twofold.ir.types import tensor_type
from twofold.transforms.gradient_check import compare_gradients
from twofold.transforms.reverse import vjp_graph


class Calls:
    """Makes input nodes for arrays, also in the middle of a call, and evaluates the result."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.nodes: list[Node] = []

    def lift(self, array: Any) -> Node:
        array = numpy.asarray(array)
        node = input_node(len(self.arrays), tensor_type(as_dtype(array.dtype), array.shape))
        self.arrays.append(array)
        self.nodes.append(node)
        return node

    def value(self, result: Node) -> Any:
        return evaluate(self.graph(result), self.arrays)[0]

    def graph(self, result: Node) -> Graph:
        return Graph([node.type for node in self.nodes], [result])


def run(function: Callable[..., Any], *arrays: Any) -> Any:
    """The value of ``function`` of nodes (a tuple if it gives several)."""
    calls = Calls()
    result = function(*[calls.lift(array) for array in arrays])
    if isinstance(result, tuple):
        return tuple(calls.value(part) for part in result)
    return calls.value(result)


def same(function: Callable[..., Any], exact: Callable[..., Any], *arrays: Any, near: float = 1e-6) -> None:
    """Assert that ``function`` of nodes has the values and shapes of ``exact`` of arrays."""
    got, wanted = run(function, *arrays), exact(*arrays)
    if not isinstance(got, tuple):
        got, wanted = (got,), (wanted,)
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted):
        assert one.shape == numpy.shape(other)
        numpy.testing.assert_allclose(
            numpy.asarray(one, float), numpy.asarray(other, float), rtol=near, atol=near
        )


def gradients(function: Callable[..., Any], *arrays: Any, near: float = 1e-5, second: bool = True) -> None:
    """Assert first (and second) derivatives of ``function`` at float64 ``arrays`` against differences."""
    calls = Calls()
    inputs = [calls.lift(array) for array in arrays]
    graph = calls.graph(function(*inputs))
    generator = numpy.random.default_rng(2)
    cotangent = generator.normal(size=graph.outputs[0].shape)
    for index, array in enumerate(arrays):
        if numpy.asarray(array).dtype != numpy.float64:
            continue
        numeric = vjp_by_differences(graph, calls.arrays, cotangent, index)
        found = vjp_graph(graph, index)
        if found is None:
            assert not numeric.any()
            continue
        vjp, used = found
        given = {"cotangent": cotangent, "output": evaluate(graph, calls.arrays)[0]}
        got = evaluate(vjp, [given[what] if isinstance(what, str) else calls.arrays[what] for what in used])[
            0
        ]
        assert compare_gradients(got, numeric, near) is None, index
        if second:
            actual = {"cotangent": calls.lift(cotangent), "output": graph.outputs[0]}
            inner = vjp.inline([actual[what] if isinstance(what, str) else inputs[what] for what in used])[0]
            direction = calls.lift(generator.normal(size=inner.shape))
            scalar = twofold.ops.base.ops.sum(inner * direction)
            gradients_of_graph(calls, scalar, index, near * 100)
            del calls.arrays[len(arrays) :], calls.nodes[len(arrays) :]


def gradients_of_graph(calls: Calls, scalar: Node, index: int, near: float) -> None:
    graph = calls.graph(scalar)
    one = numpy.ones(())
    numeric = vjp_by_differences(graph, calls.arrays, one, index)
    found = vjp_graph(graph, index)
    if found is None:
        assert abs(numeric).max(initial=0) < 1e-4
        return
    given = {"cotangent": one, "output": evaluate(graph, calls.arrays)[0]}
    got = evaluate(found[0], [given[w] if isinstance(w, str) else calls.arrays[w] for w in found[1]])[0]
    assert compare_gradients(got, numeric, near) is None, index
