"""Passes keep every bit, end, and do what they say."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from scipy import special

sys.path.insert(0, str(Path(__file__).parent.parent / "schedule"))

from tests.compiler.schedule.random_graphs import arrays_for, graphs
from tests.compiler.schedule.runner import run_program
from twofold.compiler import compile as compiler
from twofold.dtypes import DType, bool_, float16, float32, float64, int32, int64
from twofold.ir.bind import constant, input_node, is_constant
from twofold.ir.graph import Graph
from twofold.ir.node import Node
from twofold.ir.types import tensor_type
from twofold.ir.verify import verify
from twofold.ops.base import apply, ops
from twofold.transforms import pipeline
from twofold.transforms.canonicalize import canonicalize, transpose_products
from twofold.transforms.fold import fold
from twofold.transforms.stabilize import stabilize


def build(function: Callable[..., Node], *types: tuple[DType, tuple[int, ...]]) -> Graph:
    made = [tensor_type(dtype, shape) for dtype, shape in types]
    return Graph(made, [function(*(input_node(k, type) for k, type in enumerate(made)))])


def check_bits(graph: Graph, arrays: list[Any]) -> None:
    """The compiled graph gives the same bits with and without passes."""
    found = run_program(compiler.compile_graph(graph), arrays)
    keep, pipeline.PASSES = pipeline.PASSES, ()
    try:
        plain = run_program(compiler.compile_graph(graph), arrays)
    finally:
        pipeline.PASSES = keep
    assert all(a.tobytes() == b.tobytes() for a, b in zip(found, plain, strict=True))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_every_pass_keeps_every_bit(graph: Graph) -> None:
    after = pipeline.run_passes(graph)
    verify(after)
    assert [node.type for node in after.outputs] == [node.type for node in graph.outputs]
    check_bits(graph, arrays_for(graph))


@pytest.mark.parametrize("dtype", [bool_, int32, int64, float16, float32, float64])
@pytest.mark.parametrize(
    "name", ["sum", "ordered_sum", "prod", "amax", "amin", "argmax", "argmin", "any", "all"]
)
def test_a_reduction_of_single_elements_is_element_wise(name: str, dtype: DType) -> None:
    if name == "ordered_sum" and dtype.kind != "f":
        pytest.skip("floats only")
    values = numpy.array([0.0, -0.0, 1.0, -3.0, numpy.inf, -numpy.inf, numpy.nan])
    values = (values if dtype.kind == "f" else numpy.arange(-3, 4)).astype(dtype.numpy)
    if dtype.kind == "f":
        # a NaN with a payload and a sign
        bits = values.view(f"u{dtype.itemsize}")
        bits[-1] |= 1 << (8 * dtype.itemsize - 1) | 5
    for shape, axes in (((7, 1), (1,)), ((1, 7), (0,)), ((7,), ()), ((7, 1, 1), (1, 2))):
        if not axes and name.startswith("arg"):
            continue
        graph = build(lambda x, over=axes: apply(name, x, attrs=(over, False)), (dtype, shape))
        assert all(node.op.kind != "reduction" for node in canonicalize(graph).nodes())
        check_bits(graph, [values.reshape(shape)])


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_passes_reach_a_fixed_point(graph: Graph) -> None:
    once = pipeline.run_passes(graph)
    assert pipeline.run_passes(once).outputs == once.outputs


@pytest.mark.parametrize("view", [lambda index: index, lambda index: ops.permute(index, ())])
def test_what_is_computed_from_the_index_of_the_only_element_is_a_constant_after_one_run(
    view: Callable[[Node], Node],
) -> None:
    graph = build(lambda x: ops.abs(view(apply("argmax", x, attrs=((0,), False)))), (float32, (1,)))
    once = pipeline.run_passes(graph)
    assert all(is_constant(output) for output in once.outputs)
    assert pipeline.run_passes(once).outputs == once.outputs


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ops.negative(ops.negative(x)),
        lambda x: ops.stop_gradient(x),
        lambda x: ops.reshape(ops.reshape(x, (6,)), (2, 3)),
        lambda x: ops.where(x > 0, x, x),
    ],
)
def test_what_does_nothing_vanishes(function: Callable[[Node], Node]) -> None:
    graph = build(function, (float32, (2, 3)))
    (found,) = canonicalize(graph).outputs
    assert found is input_node(0, graph.input_types[0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 1.0,
        lambda x: x / 1.0,
        lambda x: x - 0.0,
        lambda x: ops.cast(ops.cast(x, float64), float32),
    ],
)
def test_arithmetic_that_only_settles_nans_vanishes_behind_other_arithmetic(
    function: Callable[[Node], Node],
) -> None:
    graph = build(lambda x: function(ops.reshape(ops.exp(x), (6,))), (float32, (2, 3)))
    (found,) = canonicalize(graph).outputs
    assert found is build(lambda x: ops.reshape(ops.exp(x), (6,)), (float32, (2, 3))).outputs[0]
    (kept,) = canonicalize(build(function, (float32, (2, 3)))).outputs
    assert kept.op.name != "input"


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda x: x + 0.0, float32),  # -0.0 becomes 0.0
        (lambda x: ops.cast(ops.cast(x, float16), float32), float32),
        (lambda x: ops.cast(ops.cast(x, float32), int64), int64),
        (lambda x: ops.cast(ops.cast(x, bool_), int32), int32),
        (lambda x: ops.exp(ops.log(x)), float32),
    ],
)
def test_what_changes_bits_stays(function: Callable[[Node], Node], dtype: DType) -> None:
    graph = build(function, (dtype, (3,)))
    assert canonicalize(graph).outputs == graph.outputs


def test_reshape_of_reshape_is_one() -> None:
    graph = build(lambda x: ops.reshape(ops.reshape(x, (6,)), (3, 2)), (float32, (2, 3)))
    assert len(canonicalize(graph).nodes()) == 2


def test_exact_constant_expressions_are_folded_and_others_are_not() -> None:
    whole = Graph([], [ops.multiply(constant(6, int64), constant(7, int64))])
    assert fold(whole).outputs == (constant(42, int64),)
    wraps = Graph([], [ops.add(constant(2**31 - 1, int32), constant(1, int32))])
    assert fold(wraps).outputs == (constant(-(2**31), int32),)
    inexact = Graph([], [ops.exp(constant(1.0, float32))])
    assert fold(inexact).outputs == inexact.outputs


def test_a_product_that_is_only_read_transposed_is_turned() -> None:
    graph = build(
        lambda a, b: ops.relu(ops.permute(ops.matmul(a, b), (1, 0))), (float32, (5, 4)), (float32, (4, 3))
    )
    (relu,) = transpose_products(graph).outputs
    assert relu.inputs[0].op.kind == "contraction"
    both = build(lambda a, b: ops.matmul(a, b), (float32, (5, 4)), (float32, (4, 5)))
    product = both.outputs[0]
    kept = Graph(both.input_types, [product + ops.permute(product, (1, 0))])
    assert transpose_products(kept).outputs == kept.outputs


EXTREMES = numpy.array([-200.0, -87.0, -1.5, 0.0, 0.25, 3.0, 87.0, 200.0])


@pytest.mark.parametrize(
    ("function", "reference"),
    [
        (lambda x: ops.log(ops.exp(x)), lambda x: x),
        (lambda x: ops.log(ops.exp(x) / 3.0), lambda x: x - numpy.log(3)),
        (lambda x: ops.log(ops.exp(x) / (1.5 + x * x)), lambda x: x - numpy.log(1.5 + x * x)),
        (lambda x: ops.log(ops.softmax(x, 0)), lambda x: special.log_softmax(x)),
        (lambda x: ops.log(ops.sigmoid(x)), lambda x: -numpy.logaddexp(0, -x)),
        (lambda x: ops.log(1.0 - ops.sigmoid(x)), lambda x: -numpy.logaddexp(0, x)),
        (lambda x: ops.log(1.0 + ops.exp(x)), lambda x: numpy.logaddexp(0, x)),
        (lambda x: ops.log(ops.exp(x) + 1.0), lambda x: numpy.logaddexp(0, x)),
    ],
)
@pytest.mark.parametrize("shape", [(8,), (8, 1)], ids=str)
def test_stabilised_formulas_do_not_overflow(
    shape: tuple[int, ...], function: Callable[[Node], Node], reference: Callable[..., Any]
) -> None:
    graph = build(function, (float32, shape))
    points = EXTREMES.reshape(shape)
    (found,) = run_program(compiler.compile_graph(stabilize(graph)), [points.astype(numpy.float32)])
    numpy.testing.assert_allclose(found, reference(points), rtol=1e-6, atol=1e-7)


def test_only_formulas_that_mean_it_are_stabilised() -> None:
    for function in (
        lambda x: ops.log(2.0 + ops.exp(x)),
        lambda x: ops.log(2.0 - ops.sigmoid(x)),
        lambda x: ops.log(ops.exp(x) - 1.0),
        lambda x: ops.log(ops.sigmoid(x) - 1.0),
        lambda x: ops.log(3.0 / ops.exp(x)),
        lambda x: ops.log2(ops.exp(x)),
    ):
        graph = build(function, (float32, (2,)))
        assert stabilize(graph).outputs == graph.outputs


def test_passes_do_not_recurse() -> None:
    node = input_node(0, tensor_type(float32, (2,)))
    for _ in range(20_000):
        node = ops.tanh(ops.negative(ops.negative(node)))
    after = pipeline.run_passes(Graph([node.type], [node]))
    assert len(after.nodes()) == 20_001


def test_what_changes_nothing_the_second_time_is_computed_once():
    graph = Graph(
        [tensor_type(float32, (3,))], [ops.relu(ops.relu(input_node(0, tensor_type(float32, (3,)))))]
    )
    assert [node.op.name for node in canonicalize(graph).nodes()] == ["input", "relu"]


def test_a_negative_zero_is_no_zero_of_a_rule() -> None:
    graph = build(lambda x: ops.multiply(x, 2.0) - constant(-0.0, float32), (float32, (3,)))
    arrays = [numpy.array([-0.0, 0.0, 1.5], "f")]
    check_bits(graph, arrays)
    (found,) = run_program(compiler.compile_graph(graph), arrays)
    assert not numpy.signbit(found).any()
