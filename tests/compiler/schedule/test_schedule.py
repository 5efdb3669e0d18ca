"""How many kernels graphs become, that views are read in place, and that nothing recurses."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from tests.compiler.schedule.runner import run_graph
from twofold.compiler.compile import compile_graph
from twofold.compiler.explain import explain
from twofold.compiler.schedule.affine_maps import (
    NeedsLoopSplit,
    NotAffine,
    identity,
    linearized,
    row_major,
    through_reshape,
)
from twofold.compiler.schedule.fusion_groups import map_strides, refine
from twofold.compiler.schedule.memory import last_uses, plan
from twofold.compiler.schedule.schedule import Schedule
from twofold.dtypes import DType, float32, float64, int64
from twofold.ir.bind import constant, input_node
from twofold.ir.graph import Graph
from twofold.ir.node import Node
from twofold.ir.recording import Recording
from twofold.ir.sizes import Symbol
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, filled, iota, ops
from twofold.ops.shape.movement import slice_axis
from twofold.transforms.pipeline import run_passes
from twofold.transforms.reverse import grad_graph

Spec = tuple[DType, tuple[int, ...]]


def graph_of(function: Callable[..., Any], *specs: Spec) -> Graph:
    types = [tensor_type(dtype, shape) for dtype, shape in specs]
    made = function(*(input_node(k, type) for k, type in enumerate(types)))
    return Graph(types, list(made) if isinstance(made, (list, tuple)) else [made])


def kernels(graph: Graph) -> list[str]:
    schedule = Schedule(run_passes(graph))
    return [found.nest.form if found.nest else found.name for found in schedule.instructions]


def test_softmax_cross_entropy_and_norms_are_one_kernel_each() -> None:
    scores = (float32, (64, 10))
    assert kernels(graph_of(lambda x: ops.softmax(x, -1), scores)) == ["rows"]
    assert kernels(graph_of(lambda x: ops.log_softmax(x, -1), scores)) == ["rows"]
    weights = [(float32, (200,)), (float32, (200,))]
    norm = graph_of(lambda x, g, b: ops.layer_norm(x, (200,), g, b), (float32, (64, 200)), *weights)
    assert kernels(norm) == ["rows"]
    assert kernels(graph_of(lambda x: ops.softmax(x, 0), (float32, (10, 640)))) == ["columns"]


def test_the_gradient_of_layer_norm_is_a_kernel_over_rows_and_one_over_columns() -> None:
    weights = [(float32, (200,)), (float32, (200,))]
    loss = graph_of(lambda x, g, b: ops.sum(ops.layer_norm(x, (200,), g, b)), (float32, (64, 200)), *weights)
    assert len(kernels(grad_graph(loss, (0,)))) <= 2
    gradients = grad_graph(loss, (0, 1, 2))
    assert len(kernels(gradients)) <= 4
    # normalised values are computed again from means and deviations of rows, not stored
    assert sum(Schedule(run_passes(gradients)).sizes.values()) < 64 * 200 * 4


def test_what_follows_a_product_joins_it() -> None:
    dense = graph_of(
        lambda x, w, b: ops.relu(ops.linear(x, w, b)),
        (float32, (64, 100)),
        (float32, (30, 100)),
        (float32, (30,)),
    )
    assert [name for name in kernels(dense) if name != "pack"] == ["epilogue"]
    batched = graph_of(
        lambda x, w, b: ops.gelu(ops.linear(x, w, b)),
        (float32, (4, 16, 100)),
        (float32, (30, 100)),
        (float32, (30,)),
    )
    assert [name for name in kernels(batched) if name != "pack"] == ["epilogue"]


def test_hundreds_of_operations_on_a_few_elements_are_one_kernel() -> None:
    def program(*values: Node) -> Node:
        total = values[0]
        for k in range(200):
            total = ops.tanh(total) if k % 50 == 0 else total * values[k % 100] + values[(k + 1) % 100]
        return total

    for shape, form in (((), "scalar"), ((7,), "small")):
        assert kernels(graph_of(program, *[(float32, shape)] * 100)) == [form]


def test_an_update_of_several_states_is_one_kernel() -> None:
    def adam(p: Node, g: Node, m: Node, v: Node, lr: Node) -> list[Node]:
        m = m * 0.9 + g * 0.1
        v = v * 0.99 + g * g * 0.01
        return [p - lr * m / (ops.sqrt(v) + 1e-8), m, v]

    specs = [(float32, (50, 70))] * 4 + [(float32, ())]
    assert kernels(graph_of(adam, *specs)) == ["flat"]


def test_cheap_values_are_computed_again_rather_than_stored() -> None:
    def program(x: Node) -> list[Node]:
        mask = x > 0
        return [ops.sum(ops.where(mask, x, 0), 0), ops.sum(ops.where(mask, x, 1), 1)]

    schedule = Schedule(run_passes(graph_of(program, (float32, (50, 70)))))
    assert len(schedule.instructions) == 2 and not schedule.sizes


def test_a_reshaped_output_is_not_copied() -> None:
    graph = graph_of(
        lambda x, index: ops.reshape(ops.index_select(x, 0, index), (15, 2, 2)),
        (float32, (6, 4)), (int64, (5, 3)),
    )  # fmt: skip
    schedule = Schedule(run_passes(graph))
    assert kernels(graph) == ["gather_block"] and not schedule.sizes
    array, index = numpy.arange(24, dtype=numpy.float32).reshape(6, 4), numpy.arange(15).reshape(5, 3) % 6
    (found,) = run_graph(graph, [array, index])
    assert (found == array[index].reshape(15, 2, 2)).all()


def test_outputs_that_are_inputs_or_equal_are_copied() -> None:
    graph = graph_of(lambda x: [x, x + 1, x + 1, ops.permute(x, (1, 0))], (float32, (3, 4)))
    array = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    found = run_graph(graph, [array])
    for output, expected in zip(found, (array, array + 1, array + 1, array.T), strict=True):
        assert (output == expected).all()


def test_a_kernel_copies_what_the_host_computed_to_another_output() -> None:
    def program(a: Node, b: Node) -> list[Node]:
        solved = apply("solution_by_numpy", a, ops.unsqueeze(b, -1), attrs=(True,))
        return [solved, ops.squeeze(solved, -1)]

    compiled = compile_graph(graph_of(program, (float64, (4, 4)), (float64, (4,))))
    a, b = numpy.arange(16.0).reshape(4, 4) + 20 * numpy.eye(4), numpy.arange(4.0)
    found = [numpy.zeros((4, 1)), numpy.zeros(4)]
    compiled.program().run(*([array.ctypes.data for array in arrays] for arrays in ((a, b), found)))
    for output in found:
        numpy.testing.assert_allclose(a @ output.reshape(4), b, atol=1e-12)


def test_constants_and_numbers_can_be_outputs() -> None:
    graph = graph_of(lambda x: [filled(0, int64, (2, 3)), iota((5,)), x], (int64, ()))
    found = run_graph(graph, [numpy.array(7)])
    assert not found[0].any() and (found[1] == numpy.arange(5)).all() and found[2] == 7


def test_a_reshape_that_cuts_axes_is_followed_or_its_input_stored() -> None:
    array = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)
    graph = graph_of(lambda x: ops.reshape(ops.permute(x * 2, (1, 0)), (4, 6)) + 1, (float32, (4, 6)))
    (found,) = run_graph(graph, [array])
    assert (found == (array * 2).T.reshape(4, 6) + 1).all()


SHAPE = (3, 4, 5, 6)

JOINED: dict[str, tuple[Callable[[Any], list[Any]], int, int]] = {
    "columns": (lambda x: [x[..., 2:], x[..., :2]], 3, 0),
    "rows of blocks": (lambda x: [x[:, :, 1:], x[:, :, :1], x[:, :, 2:4]], 2, 0),
    "whole blocks": (lambda x: [x[1:], x[:1]], 0, 0),
    "single elements": (lambda x: [x[..., 5:], x[..., :1], x[..., 3:4]], 3, 0),
    "part of two axes": (lambda x: [x[:, 1:3, :, 2:], x[:, :2, :, :2]], 3, 2),
    "apart along two axes": (lambda x: [x[:, 1:, :, 3:], x[:, 1:, :, :3]], 2, 1),
    "every other element": (lambda x: [x[..., ::2], x[..., 1:]], 3, 1),
    "every other row": (lambda x: [x[:, :, ::2, 1:]], 3, 1),
    "one row of many": (lambda x: [x[:1, :1, :1, 2:], x[1:2, 1:2, 2:3, :3]], 3, 0),
}
"""Slices, the axis along which they are joined, and how many kernels copy some of them before."""


@pytest.mark.parametrize("name", JOINED)
def test_slices_are_joined_where_they_lie(name: str) -> None:
    parts, axis, copied = JOINED[name]

    def joined(x: Any) -> Any:
        many = parts(x)
        return ops.concatenate([*many, *many], axis)

    graph = graph_of(lambda x: joined(_Sliced(x)), (float32, SHAPE))
    assert kernels(graph).count("concatenate") == 1
    assert len(kernels(graph)) == 1 + copied
    array = numpy.arange(360, dtype=numpy.float32).reshape(SHAPE)
    expected = numpy.concatenate(parts(array) * 2, axis)
    for fuse in (True, False):
        for pieces in (1, 3):
            (found,) = run_graph(graph, [array], fuse, pieces)
            assert (found == expected).all()


class _Sliced:
    """A node that is indexed as an array is."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if keys[0] is Ellipsis:
            keys = (*[slice(None)] * (len(SHAPE) - len(keys) + 1), *keys[1:])
        found: Any = self.node
        for axis, part in enumerate(keys):
            start, stop, step = part.indices(SHAPE[axis])
            if (start, stop, step) != (0, SHAPE[axis], 1):
                size = len(range(start, stop, step))
                found = slice_axis(found, axis, constant(start, int64), size, step)
        return found


def test_nothing_recurses_over_a_long_graph() -> None:
    node = first = input_node(0, tensor_type(float32, (3, 4)))
    for k in range(30_000):
        node = ops.tanh(node) if k % 100 == 0 else ops.permute(ops.permute(node, (1, 0)), (1, 0)) * first
    schedule = Schedule(run_passes(Graph([first.type], [node])))
    assert schedule.instructions


def test_explain_shows_every_stage() -> None:
    text = explain(graph_of(lambda x: ops.softmax(x, -1), (float32, (64, 1000))))
    for words in ("declared", "canonicalize", "1 kernel;", "floor: 512000 bytes", "on the stack", "exp("):
        assert words in text


sizes = st.lists(st.sampled_from([1, 2, 3, 4, 6, 12]), max_size=4)


@given(sizes, sizes)
def test_refined_axes_count_as_both(first: list[int], second: list[int]) -> None:
    found = refine(first, second)
    if found is None:
        return
    common, *placements = found
    for shape, placement in zip((first, second), placements, strict=True):
        if numpy.prod(shape) == numpy.prod(common):
            strides = map_strides(row_major(tuple(shape)), placement, len(common))
            numbers = numpy.zeros(common, int)
            for axis, stride in enumerate(strides):
                numbers += stride * numpy.arange(common[axis]).reshape(-1, *[1] * (len(common) - axis - 1))
            assert (numbers.ravel() == numpy.arange(numpy.prod(common))).all()


def test_axes_that_divide_each_other_in_some_sizes_are_not_refined() -> None:
    recording = Recording([80], [1])
    (n,) = recording.inputs
    assert refine((10,), (n,)) is None and refine((n,), (10,)) is None
    assert refine((n, 4), (2 * n, 2)) is not None and refine((n, 10), (10 * n,)) is not None
    assert not any(
        isinstance(side, Symbol) and "modulo" in repr(side)
        for _, *sides, _ in recording.guards
        for side in sides
    )


@given(sizes, st.permutations([0, 1, 2, 3]))
def test_forms_through_reshapes_find_the_right_elements(shape: list[int], order: list[int]) -> None:
    before, after = tuple(shape), tuple(shape[k] for k in order if k < len(shape))
    try:
        forms = through_reshape(before, after, identity(after), after)
    except (NeedsLoopSplit, NotAffine):
        return
    constant, terms, _ = linearized(forms, before)
    numbers = numpy.full(after, constant)
    for axis, step in terms:
        numbers += step * numpy.arange(after[axis]).reshape(-1, *[1] * (len(after) - axis - 1))
    assert (numbers.ravel() == numpy.arange(numbers.size)).all()


@given(
    st.lists(st.lists(st.integers(0, 12), max_size=4), max_size=20),
    st.lists(st.integers(0, 5000), min_size=13),
)
def test_the_plan_keeps_live_buffers_apart(uses: list[list[int]], lengths: list[int]) -> None:
    named = dict(enumerate(lengths))
    offsets, arena = plan(uses, named)
    last = last_uses(uses)
    for position in range(len(uses)):
        live = [
            buffer
            for buffer in offsets
            if last[buffer] >= position and any(buffer in u for u in uses[: position + 1])
        ]
        placed = sorted((offsets[buffer], offsets[buffer] + max(named[buffer], 1)) for buffer in live)
        assert all(a[1] <= b[0] for a, b in pairwise(placed))
        assert all(start % 64 == 0 and end <= arena for start, end in placed)


def test_memory_is_used_again() -> None:
    _, arena = plan([[k, k + 1] for k in range(100)], dict.fromkeys(range(101), 1000))
    assert arena <= 3 * 1024


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_small_kernels_are_not_cut(threads: int) -> None:
    schedule = Schedule(run_passes(graph_of(lambda x: ops.softmax(x, -1), (float32, (16, 10)))))
    (found,) = schedule.instructions
    assert found.grain >= found.work


@pytest.mark.parametrize("name", ["sin", "tanh", "sqrt"])
def test_a_scalar_expression_beside_a_product_is_computed_once_and_may_branch(name: str) -> None:
    function = getattr(ops, name)
    graph = graph_of(
        lambda x, w, s: ops.matmul(x, w) * function(s), (float32, (20, 7)), (float32, (7, 30)), (float32, ())
    )
    assert "epilogue" in kernels(graph)
    generator = numpy.random.default_rng(0)
    arrays = [
        numpy.asarray(generator.uniform(0.5, 1, type.shape), numpy.float32) for type in graph.input_types
    ]
    fused, single = run_graph(graph, arrays), run_graph(graph, arrays, fuse=False)
    assert fused[0].tobytes() == single[0].tobytes()


def test_what_an_epilogue_would_compute_for_every_few_columns_is_stored_first() -> None:
    def scaled(x: Node, w: Node, variance: Node, mean: Node) -> Node:
        return ops.relu((ops.matmul(x, w) - mean) * ops.rsqrt(variance + 1e-5))

    column = (float32, (48, 1))
    forms = kernels(graph_of(scaled, (float32, (48, 16)), (float32, (16, 64)), column, column))
    assert [form for form in forms if form != "pack"][1:] == ["epilogue"]
