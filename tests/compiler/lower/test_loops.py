"""Every form of loop nest, on sizes around its edges, against the definition computed by NumPy step by step."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "schedule"))

from tests.compiler.schedule.runner import KERNEL, aligned, run_program
from twofold.compiler.compile import CompiledProgram, compile_graph
from twofold.compiler.lower import target
from twofold.compiler.schedule import loop_nests
from twofold.dtypes import DType, bfloat16, bool_, float16, float32, float64, int8, int32, int64
from twofold.ir.bind import constant, input_node
from twofold.ir.graph import Graph
from twofold.ir.interpret import evaluate
from twofold.ir.node import Node
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, ops

Spec = tuple[DType, tuple[int, ...]]


def compiled(function: Callable[..., Any], *specs: Spec) -> tuple[Graph, CompiledProgram]:
    types = [tensor_type(dtype, shape) for dtype, shape in specs]
    made = function(*(input_node(k, type) for k, type in enumerate(types)))
    graph = Graph(types, list(made) if isinstance(made, (list, tuple)) else [made])
    return graph, compile_graph(graph)


def forms(program: CompiledProgram) -> list[str]:
    return [found.nest.form if found.nest else found.name for found in program.schedule.instructions]


def drawn(graph: Graph, seed: int = 0) -> list[numpy.ndarray]:
    generator = numpy.random.default_rng(seed)
    arrays = []
    for type in graph.input_types:
        if type.dtype is bfloat16:
            wide = generator.normal(size=type.shape).astype(numpy.float32)
            arrays.append((wide.view(numpy.uint32) >> 16).astype(numpy.uint16))
        elif type.dtype.kind == "f":
            arrays.append(numpy.asarray(generator.normal(size=type.shape)).astype(type.dtype.numpy))
        else:
            arrays.append(generator.integers(0, 2, size=type.shape).astype(type.dtype.numpy))
    return arrays


def fixed_sum(values: numpy.ndarray) -> numpy.float32:
    """The sum of a float32 sequence by its definition: lanes, a fixed tree, blocks of 4096, and again."""
    while True:
        results = []
        for start in range(0, max(len(values), 1), 4096):
            lanes = numpy.zeros(16, numpy.float32)
            block = values[start : start + 4096]
            for begin in range(0, len(block), 16):
                piece = block[begin : begin + 16]
                lanes[: len(piece)] += piece
            while len(lanes) > 1:
                half = len(lanes) // 2
                lanes = lanes[:half] + lanes[half:]
            results.append(lanes[0])
        if len(results) == 1:
            return results[0]
        values = numpy.array(results, numpy.float32)


LENGTHS = (1, 2, 15, 16, 17, 100, 4095, 4096, 4097, 9000, 70_000)


@pytest.mark.parametrize("length", LENGTHS)
def test_sums_along_rows_and_columns_follow_the_definition(length: int) -> None:
    for width in (1, 3, 16, 70):
        if length * width > 1_000_000:
            continue
        graph, program = compiled(lambda x: ops.sum(x, 1), (float32, (width, length)))
        (array,) = drawn(graph)
        expected = numpy.array([fixed_sum(row) for row in array])
        assert run_program(program, [array])[0].tobytes() == expected.tobytes()
        _, program = compiled(lambda x: ops.sum(x, 0), (float32, (length, width)))
        found = run_program(program, [numpy.ascontiguousarray(array.T)])[0]
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("length", [2, 3, 5, 8, 9, 15, 16, 17])
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "any", "all"])
def test_few_rows_of_many_columns_are_combined_as_rows_are(name: str, length: int) -> None:
    values = numpy.array([0.0, -0.0, 1.5, -2.0, numpy.inf, -numpy.inf, numpy.nan], numpy.float32)
    chances = [0.2, 0.6, 0.1, 0.07, 0.01, 0.01, 0.01]
    array = numpy.random.default_rng(length).choice(values, (70, length), p=chances)
    _, rows = compiled(lambda x: apply(name, x, attrs=((1,), False)), (float32, (70, length)))
    _, columns = compiled(lambda x: apply(name, x, attrs=((0,), False)), (float32, (length, 70)))
    assert forms(columns) == ["columns"]
    (expected,) = run_program(rows, [array])
    (found,) = run_program(columns, [numpy.ascontiguousarray(array.T)])
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(3, 5, 7), (20, 3, 37), (300, 4, 50), (2, 2, 5000)])
def test_sums_over_several_axes_count_row_major(shape: tuple[int, int, int]) -> None:
    graph, program = compiled(lambda x: ops.sum(x, (0, 2)), (float32, shape))
    (array,) = drawn(graph)
    expected = numpy.array([fixed_sum(numpy.ravel(array[:, k])) for k in range(shape[1])])
    assert run_program(program, [array])[0].tobytes() == expected.tobytes()


def test_long_sums_are_cut_into_blocks_for_threads_without_changing_a_bit() -> None:
    for shape, axes, form in (
        ((300_001,), 0, "blocks"),
        ((70_000, 5), 0, "strips"),
        ((2, 200_000), 1, "blocks"),
    ):
        graph, program = compiled(lambda x, axes=axes: ops.sum(x, axes), (float32, shape))
        assert form in forms(program)
        (array,) = drawn(graph)
        rows = numpy.atleast_2d(array.T if axes == 0 else array)
        expected = numpy.array([fixed_sum(numpy.ascontiguousarray(row)) for row in rows])
        for pieces in (1, 3):
            assert run_program(program, [array], pieces)[0].tobytes() == expected.reshape(-1).tobytes()


def test_sums_of_nothing_are_the_identity() -> None:
    for shape, axis in (((3, 0), 1), ((0, 3), 0), ((0,), 0), ((2, 0, 5), 1)):
        graph, program = compiled(
            lambda x, axis=axis: [ops.sum(x, axis), ops.prod(x, axis)], (float32, shape)
        )
        zeros, ones = run_program(program, drawn(graph))
        assert not zeros.any() and (ones == 1).all()


def test_the_sum_of_one_negative_zero_is_positive() -> None:
    _, program = compiled(lambda x: ops.sum(x, 1), (float32, (2, 1)))
    (found,) = run_program(program, [numpy.full((2, 1), -0.0, numpy.float32)])
    assert not numpy.signbit(found).any()


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_the_first_extreme_and_nan_win(axis: Any) -> None:
    array = numpy.zeros((40, 50), numpy.float32)
    array[7, 9] = array[7, 33] = array[30, 9] = 5.0
    array[20, 11] = array[21, 11] = numpy.nan
    for function, reference in ((ops.argmax, numpy.argmax), (ops.argmin, numpy.argmin)):
        _, program = compiled(
            lambda x, function=function: function(
                x if axis != (0, 1) else ops.reshape(x, (-1,)), axis if axis != (0, 1) else 0
            ),
            (float32, (40, 50)),
        )
        (found,) = run_program(program, [array])
        assert (found == reference(array, None if axis == (0, 1) else axis)).all()


@pytest.mark.parametrize("dtype", [float32, float64, float16, bfloat16, int32, int64, int8, bool_])
def test_maps_of_every_form_and_dtype(dtype: DType) -> None:
    add = lambda x, y: x + y
    cases: list[tuple[str, Callable[..., Node], tuple[tuple[int, ...], ...]]] = [
        ("scalar", add, ((), ())),
        ("small", add, ((16,), (16,))),
        ("flat", add, ((1000,), (1000,))),
        ("grid", add, ((30, 70), (70,))),
        ("grid", add, ((3, 9000), (3, 1))),
        ("tiles", lambda x, y: ops.permute(x, (1, 0)) + y, ((70, 35), (35, 70))),
        ("tiles", lambda x, y: ops.permute(x, (0, 2, 1)) + y, ((3, 70, 35), (35, 70))),
    ]
    for form, function, shapes in cases:
        graph, program = compiled(function, *((dtype, shape) for shape in shapes))
        assert forms(program) == [form]
        arrays = drawn(graph)
        for pieces in (1, 5):
            found = run_program(program, arrays, pieces)
            assert found[0].tobytes() == evaluate(graph, arrays)[0].tobytes(), form


@pytest.mark.parametrize("shape", [(35, 70), (16, 48), (1030, 33), (3, 35, 70)], ids=str)
def test_tiles_beside_what_varies_along_one_axis_or_none(shape: tuple[int, ...]) -> None:
    """What varies along the rows alone is computed once for each, what varies along none once for all."""
    *outer, rows, columns = shape

    def function(x: Node, y: Node, row: Node, column: Node, scalar: Node, batch: Node) -> Any:
        turned = ops.permute(x, (*range(len(outer)), len(outer) + 1, len(outer)))
        first = turned * (row * row + 1.0) + y * (column * column - 2.0)
        return [first * (scalar + 3.0), turned + row * scalar, y - turned * (batch * 0.5)]

    shapes = ((*outer, columns, rows), shape, (rows, 1), (columns,), (), (*outer, 1, 1))
    graph, program = compiled(function, *((float32, sizes) for sizes in shapes))
    assert set(forms(program)) == {"tiles"}
    arrays = drawn(graph)
    for pieces in (1, 5):
        found = run_program(program, arrays, pieces)
        for one, wanted in zip(found, evaluate(graph, arrays), strict=True):
            assert one.tobytes() == wanted.tobytes()


def _block(x: Node) -> Node:
    sizes, steps, axes = (6, 25), (2, 1), (0, 1)
    return apply("slice", x, constant(3), constant(5), attrs=(sizes, steps, axes))


def test_views_with_offsets_steps_and_flips_are_read_where_they_lie() -> None:
    generator = numpy.random.default_rng(0)
    array = generator.normal(size=(20, 30)).astype(numpy.float32)
    _, program = compiled(
        lambda x: [ops.flip(x, (1,)) * 2.0, ops.flip(_block(x), (0,)) + 1.0, ops.diagonal(x) * 3.0],
        (float32, (20, 30)),
    )
    assert all(form in ("grid", "flat") for form in forms(program))
    found = run_program(program, [array])
    expected = (array[:, ::-1] * 2, array[3:15:2, 5:][::-1] + 1, numpy.diagonal(array) * 3)
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("length", [2, 10, 16, 17, 1000, 5000, 20_000])
def test_rows_of_several_phases(length: int) -> None:
    graph, program = compiled(lambda x: ops.softmax(x, 1), (float32, (7, length)))
    assert forms(program) == ["rows"]
    (array,) = drawn(graph)
    for pieces in (1, 3):
        (found,) = run_program(program, [array], pieces)
        powers = numpy.exp(array.astype(float) - array.max(1, keepdims=True))
        numpy.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=2e-6)


@pytest.mark.parametrize("length", [2, 16, 100, 5000])
def test_columns_of_several_phases(length: int) -> None:
    graph, program = compiled(lambda x: ops.softmax(x, 0), (float32, (length, 37)))
    assert forms(program) == ["columns"]
    (array,) = drawn(graph)
    _, turned = compiled(lambda x: ops.softmax(x, 1), (float32, (37, length)))
    (found,) = run_program(program, [array])
    (expected,) = run_program(turned, [numpy.ascontiguousarray(array.T)])
    assert found.tobytes() == numpy.ascontiguousarray(expected.T).tobytes()


def test_equal_structure_is_one_kernel_whatever_the_sizes() -> None:
    keys = set()
    for shape in ((1000,), (50, 70), (4, 5, 6), (33,)):
        _, program = compiled(lambda x, y: x * y, (float32, shape), (float32, shape))
        keys |= {found.key for found in program.schedule.instructions}
    assert len(keys) == 1


def _three(x: Node, y: Node) -> list[Node]:
    return [x * y + x, ops.greater(x, y), ops.exp(apply("cast", y, attrs=(float64,)))]


def _of_rows(x: Node, y: Node) -> list[Node]:
    powers = ops.exp(x)  # a later phase loads them again from their result
    return [powers, y * powers / ops.sum(powers, -1, keepdim=True)]


@pytest.mark.skipif(not target.streams(), reason="vectors are not written past the caches here")
@pytest.mark.parametrize(
    "function, shape",
    [
        *((_three, (size,)) for size in (17, 48, 63, 1000)),
        *((_of_rows, shape) for shape in ((3, 17), (4, 48), (5, 63), (3, 5000))),
    ],
)
def test_results_written_past_the_caches_are_the_same_wherever_they_lie(
    function: Callable[..., list[Node]], shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, plain = compiled(function, (float32, shape), (float32, shape))
    arrays = drawn(graph)
    expected = run_program(plain, arrays)
    monkeypatch.setattr(loop_nests, "_STREAM_BYTES", 0)
    _, streamed = compiled(function, (float32, shape), (float32, shape))
    (instruction,) = streamed.schedule.instructions
    assert instruction.nest is not None and instruction.nest.streams
    address, buffers, params, work, *_ = streamed.instructions[0]
    numbers = (ctypes.c_int64 * max(len(params), 1))(*params)
    for shift in (0, 1, 5, 15, 16):
        rooms = [aligned(output.nbytes + 64 * output.itemsize) for output in expected]
        places = [
            room[(shift + 3 * k) * out.itemsize :][: out.nbytes]
            for k, (room, out) in enumerate(zip(rooms, expected))
        ]
        sides = {0: [array.ctypes.data for array in arrays], 1: [place.ctypes.data for place in places]}
        table = (ctypes.c_void_p * len(buffers))(*(sides[kind][index] for kind, index in buffers))
        for begin, end in ((0, work // 3), (work // 3, work // 3 + 1), (work // 3 + 1, work)):
            assert KERNEL(address)(table, numbers, begin, end) == 0
        for room, place, output in zip(rooms, places, expected):
            assert place.tobytes() == output.tobytes()
            place[:] = 0xA5
            assert (room == 0xA5).all(), "wrote outside of the result"


@pytest.mark.parametrize("dtype", [float32, float64, float16, bfloat16, int32, bool_], ids=str)
@pytest.mark.parametrize("channels", [5, 16, 33, 70, 128])
@pytest.mark.parametrize("positions", [(16, 16), (3, 7), (1, 50)], ids=str)
def test_columns_of_what_lies_along_the_reduced_axes(
    dtype: DType, channels: int, positions: tuple[int, int]
) -> None:
    """Images with the channels first are reduced to their channels in the order of channels last, as if they lay so."""
    shape, last = (3, channels, *positions), (3, *positions, channels)

    def function(x: Any, y: Any, z: Any, weight: Any) -> Any:
        moved = ops.permute(x, (0, 2, 3, 1))
        if dtype.kind == "b":
            values = ops.logical_and(ops.logical_or(moved, y), z)
            return [apply("sum", values, attrs=((0, 1, 2), False)), values]
        values = moved * y + z
        if dtype.kind != "f":
            return [apply(name, values, attrs=((0, 1, 2), False)) for name in ("sum", "amax")]
        centred = values - apply("ordered_sum", values, attrs=((0, 1, 2), True)) * weight
        names = ("sum", "amax", "ordered_sum")
        sums = [
            apply(name, one, attrs=((0, 1, 2), False)) for name in names for one in (moved, centred * centred)
        ]
        return [*sums, values]

    graph, program = compiled(function, (dtype, shape), (dtype, last), (dtype, last), (dtype, (channels,)))
    nests = [found.nest for found in program.schedule.instructions if found.nest]
    assert any(nest.form == "columns" and nest.transposed() for nest in nests)
    arrays = drawn(graph, channels)
    expected = run_program(compile_graph(graph, fuse=False), arrays)
    for pieces in (1, 5):
        for one, wanted in zip(run_program(program, arrays, pieces), expected, strict=True):
            assert one.tobytes() == wanted.tobytes()
