"""Convolutions against matrix products of the collected windows by a scalar triple loop, bit by bit."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from test_gemm import execute, random_matrix, reference

from twofold import dtypes
from twofold.compiler.lower import convolution_direct as direct
from twofold.compiler.lower import convolution_kernel as kernel
from twofold.compiler.lower import convolution_lines as lines
from twofold.compiler.lower import convolution_planes as planes
from twofold.compiler.lower import convolution_planes_weight as planes_weight
from twofold.compiler.lower import depthwise_channels
from twofold.compiler.lower import depthwise_kernel as depthwise
from twofold.compiler.lower import depthwise_unrolled as unrolled
from twofold.compiler.lower.convolution import is_matmul, plan_convolution, plan_convolution_weight
from twofold.ops.convolution.window_sizes import ConvolutionProblem, Windows, patches

FLOATS = [dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16]


def problem(
    batch: int, groups: int, channels: int, filters: int, image: Any, kernel: Any, result: Any, moves: Any
) -> ConvolutionProblem:
    return ConvolutionProblem(
        batch, groups, channels, filters, image, kernel, result, Windows(*moves), dtypes.float32
    )


FIXED = [
    # 3 by 3 with a border, several panels and a ragged end
    problem(2, 1, 3, 5, (1, 9, 11), (1, 3, 3), (1, 9, 11), ((1, 1, 1), (0, 1, 1), (1, 1, 1))),
    # one channel: lines with margins and without, strides, backwards, several panels of filters
    problem(3, 1, 1, 6, (1, 28, 28), (1, 5, 5), (1, 28, 28), ((1, 1, 1), (0, 2, 2), (1, 1, 1))),
    problem(5, 2, 1, 37, (1, 9, 11), (1, 2, 5), (1, 4, 8), ((1, 2, 1), (0, 0, 0), (1, 1, 1))),
    problem(2, 1, 1, 3, (1, 9, 40), (1, 3, 4), (1, 5, 20), ((1, 2, 2), (0, 1, 3), (1, 1, 2))),
    problem(2, 1, 1, 17, (1, 6, 17), (1, 3, 6), (1, 8, 22), ((1, 1, 1), (0, 0, 0), (1, -1, -1))),
    problem(2, 1, 1, 3, (1, 5, 30), (1, 3, 4), (1, 3, 24), ((1, 1, 1), (0, 0, -2), (1, 1, 1))),
    problem(1, 1, 1, 3, (1, 2, 600), (1, 1, 7), (1, 2, 600), ((1, 1, 1), (0, 0, 3), (1, 1, 1))),
    # more filters than a block of rows, more channels than a block of collected rows
    problem(1, 1, 90, 200, (1, 5, 6), (1, 3, 3), (1, 3, 4), ((1, 1, 1), (0, 0, 0), (1, 1, 1))),
    # a kernel larger than a block of collected rows
    problem(1, 1, 2, 3, (1, 1, 1300), (1, 1, 1030), (1, 1, 271), ((1, 1, 1), (0, 0, 0), (1, 1, 1))),
    # small images, so that panels hold several
    problem(7, 2, 4, 6, (1, 3, 3), (1, 2, 2), (1, 3, 3), ((1, 1, 1), (0, 0, 1), (1, 1, 1))),
    # strides of two and three, dilation, padding that cuts off
    problem(2, 1, 3, 4, (1, 8, 40), (1, 3, 3), (1, 4, 20), ((1, 2, 2), (0, 1, 1), (1, 1, 1))),
    problem(1, 1, 2, 4, (1, 9, 50), (1, 2, 3), (1, 2, 14), ((1, 3, 3), (0, -1, 2), (1, 2, 2))),
    # windows that run backwards, as in transposed convolutions
    problem(1, 1, 3, 4, (1, 6, 7), (1, 3, 2), (1, 8, 8), ((1, 1, 1), (0, 0, 0), (1, -1, -1))),
    # three axes
    problem(2, 1, 2, 3, (4, 5, 6), (2, 3, 2), (3, 3, 5), ((1, 1, 1), (0, 0, 0), (1, 1, 1))),
    # few channels: several images, rows in parts, strides, backwards, all of a margin cut off, filters in parts
    problem(11, 1, 1, 9, (1, 8, 7), (1, 3, 3), (1, 8, 7), ((1, 1, 1), (0, 1, 1), (1, 1, 1))),
    problem(2, 1, 3, 150, (1, 61, 60), (1, 7, 7), (1, 31, 30), ((1, 2, 2), (0, 3, 3), (1, 1, 1))),
    problem(2, 1, 9, 70, (1, 7, 7), (1, 3, 3), (1, 7, 7), ((1, 1, 1), (0, 1, 1), (1, 1, 1))),
    problem(2, 1, 40, 60, (1, 14, 14), (1, 3, 3), (1, 14, 14), ((1, 1, 1), (0, 1, 1), (1, 1, 1))),
    problem(1, 1, 3, 64, (1, 40, 300), (1, 5, 5), (1, 20, 100), ((1, 2, 3), (0, 2, 2), (1, 1, 1))),
    problem(3, 2, 2, 21, (1, 9, 12), (1, 3, 4), (1, 11, 15), ((1, 1, 1), (0, 0, 0), (1, -1, -1))),
    problem(2, 1, 2, 16, (1, 12, 20), (1, 3, 3), (1, 10, 14), ((1, 1, 1), (0, -1, -4), (1, 1, 1))),
    problem(5, 1, 2, 7, (1, 11, 13), (1, 2, 3), (1, 8, 7), ((1, 1, 1), (0, 0, 1), (1, 3, 4))),
    # many channels, positions that would leave lanes empty: channels in parts, short lines, strides, dilation, groups
    problem(5, 1, 33, 70, (1, 7, 7), (1, 3, 3), (1, 7, 7), ((1, 1, 1), (0, 1, 1), (1, 1, 1))),
    problem(3, 2, 30, 32, (1, 15, 14), (1, 3, 2), (1, 8, 7), ((1, 2, 2), (0, 1, 0), (1, 1, 1))),
    problem(1, 1, 21, 48, (1, 40, 37), (1, 5, 3), (1, 12, 16), ((1, 3, 2), (0, 1, 0), (1, 1, 2))),
    # the same where a line has no room, or where windows see nothing
    problem(1, 1, 3, 8, (1, 3, 9000), (1, 3, 3), (1, 3, 9000), ((1, 1, 1), (0, 1, 1), (1, 1, 1))),
    problem(1, 1, 2, 8, (1, 3, 4), (1, 1, 1), (1, 3, 2), ((1, 1, 1), (0, 0, -9), (1, 1, 1))),
    # whole planes: channels and positions in parts, backwards, cut off, filters in parts, lines next to each other
    problem(2, 1, 70, 20, (1, 30, 29), (1, 3, 3), (1, 30, 29), ((1, 1, 1), (0, 1, 1), (1, 1, 1))),
    problem(1, 2, 5, 37, (1, 25, 40), (1, 3, 4), (1, 27, 43), ((1, 1, 1), (0, 0, 0), (1, -1, -1))),
    problem(3, 1, 9, 130, (1, 20, 47), (1, 5, 2), (1, 10, 40), ((1, 1, 1), (0, -3, -2), (1, 2, 3))),
    problem(1, 1, 6, 10, (1, 50, 60), (1, 2, 3), (1, 49, 56), ((1, 1, 1), (0, 0, -2), (1, 1, 1))),
    problem(1, 1, 4, 6, (1, 1, 700), (1, 1, 5), (1, 1, 700), ((1, 1, 1), (0, 0, 2), (1, 1, 1))),
    # lines that are one vector: channels and filters in parts, a broken panel, backwards, cut off and apart
    problem(2, 1, 40, 37, (1, 16, 16), (1, 3, 3), (1, 16, 16), ((1, 1, 1), (0, 1, 1), (1, 1, 1))),
    problem(1, 2, 5, 150, (1, 11, 14), (1, 3, 3), (1, 13, 16), ((1, 1, 1), (0, 0, 0), (1, -1, -1))),
    problem(2, 1, 6, 5, (1, 30, 23), (1, 3, 4), (1, 29, 16), ((1, 1, 1), (0, 0, -1), (1, 1, 2))),
    # one position, also of so many channels that images are collected
    problem(2, 1, 200, 5, (1, 12, 13), (1, 1, 1), (1, 12, 13), ((1, 1, 1), (0, 0, 0), (1, 1, 1))),
    problem(3, 1, 5, 17, (1, 4, 5), (1, 1, 1), (1, 4, 5), ((1, 1, 1), (0, 0, 0), (1, 1, 1))),
    # each channel on its own: rows, one row, a wide row in pieces, backwards, strides
    problem(2, 19, 1, 1, (1, 9, 18), (1, 3, 3), (1, 9, 18), ((1, 1, 1), (0, 1, 1), (1, 1, 1))),
    problem(2, 3, 1, 2, (1, 1, 90), (1, 1, 5), (1, 1, 90), ((1, 1, 1), (0, 0, 2), (1, 1, 1))),
    problem(1, 2, 1, 1, (1, 3, 9000), (1, 3, 9), (1, 3, 9000), ((1, 1, 1), (0, 1, 4), (1, 1, 1))),
    problem(1, 17, 1, 1, (1, 7, 9), (1, 3, 3), (1, 9, 11), ((1, 1, 1), (0, 0, 0), (1, -1, -1))),
    problem(1, 4, 1, 1, (1, 9, 41), (1, 3, 3), (1, 5, 21), ((1, 2, 2), (0, 1, 1), (1, 1, 1))),
    problem(1, 4, 1, 1, (1, 9, 41), (1, 5, 4), (1, 1, 11), ((1, 3, 3), (0, 1, 2), (1, 2, 3))),
    # the same with large kernels: rows, and a wide row in pieces
    problem(1, 3, 1, 1, (1, 20, 21), (1, 9, 8), (1, 20, 20), ((1, 1, 1), (0, 4, 3), (1, 1, 1))),
    problem(1, 2, 1, 1, (1, 2, 9000), (1, 2, 60), (1, 2, 8970), ((1, 1, 1), (0, 1, 15), (1, 1, 1))),
    # small kernels: blocks of rows, narrow planes with strides of their own, all of a margin cut off
    problem(1, 2, 1, 1, (1, 130, 70), (1, 3, 3), (1, 130, 70), ((1, 1, 1), (0, 1, 1), (1, 1, 1))),
    problem(2, 3, 1, 2, (1, 130, 70), (1, 2, 7), (1, 65, 35), ((1, 2, 2), (0, 0, 3), (1, 2, 1))),
    problem(3, 2, 1, 1, (1, 9, 5), (1, 3, 3), (1, 5, 5), ((1, 2, 1), (0, 1, 1), (1, 1, 1))),
    problem(3, 2, 1, 1, (1, 9, 7), (1, 3, 2), (1, 9, 3), ((1, 1, 2), (0, 1, -1), (1, 1, 1))),
    problem(2, 2, 1, 1, (1, 4, 4), (1, 2, 2), (1, 4, 4), ((1, 1, 1), (0, -1, 0), (1, -1, -1))),
    # small planes of many channels: broken blocks of channels and positions, strides, backwards, what no window sees
    problem(3, 35, 1, 1, (1, 7, 7), (1, 3, 3), (1, 7, 7), ((1, 1, 1), (0, 1, 1), (1, 1, 1))),
    problem(2, 16, 1, 1, (1, 3, 3), (1, 3, 3), (1, 3, 3), ((1, 1, 1), (0, 1, 1), (1, 1, 1))),
    problem(1, 9, 1, 1, (1, 14, 13), (1, 5, 4), (1, 7, 5), ((1, 2, 3), (0, 2, 1), (1, 1, 1))),
    problem(2, 21, 1, 1, (1, 6, 9), (1, 2, 3), (1, 8, 5), ((1, 1, 2), (0, 0, -1), (1, -1, 2))),
    problem(1, 48, 1, 1, (1, 12, 12), (1, 7, 7), (1, 12, 12), ((1, 1, 1), (0, 3, 3), (1, 1, 1))),
    problem(4, 8, 1, 1, (1, 20, 20), (1, 3, 3), (1, 4, 5), ((1, 2, 1), (0, -3, -2), (1, 1, 1))),
    # several lines side by side: backwards, and dilated lines with a stride along them
    problem(1, 2, 1, 1, (1, 11, 50), (1, 5, 5), (1, 15, 54), ((1, 1, 1), (0, 0, 0), (1, -1, -1))),
    problem(1, 2, 1, 1, (1, 14, 70), (1, 3, 4), (1, 14, 35), ((1, 1, 2), (0, 2, 1), (1, 2, 1))),
]


def random_problem(seed: int) -> ConvolutionProblem:
    g = numpy.random.default_rng(seed)

    def draw(high: int, low: int = 1) -> tuple[int, int, int]:
        return tuple(int(v) for v in g.integers(low, high, 3))  # type: ignore[return-value]

    image, kernel, strides, dilations = draw(11), draw(4), draw(4), draw(3)
    lows = draw(3, -1)
    result = tuple(
        max(1, (size + 2 * low - dilation * (k - 1) - 1) // stride + 1)
        for size, low, dilation, k, stride in zip(image, lows, dilations, kernel, strides)
    )
    numbers = [int(v) for v in g.integers(1, 6, 4)]
    if seed % 3 == 0:
        image, kernel, result = ((1, *sizes[1:]) for sizes in (image, kernel, result))
        lows, numbers[2:] = (0, *lows[1:]), [1, 1 + seed % 2]
    return problem(*numbers, image, kernel, result, (strides, lows, dilations))


PROBLEMS = FIXED + [random_problem(seed) for seed in range(30)]


def collected(x: numpy.ndarray, p: ConvolutionProblem) -> numpy.ndarray:
    """The windows as (batch, group, rows, columns)."""
    seen = patches(x, p.windows, p.kernel, p.result)
    return seen.reshape((p.batch, p.groups, p.channels * p.taps, p.positions))


def arrays_of(p: ConvolutionProblem, dtype: Any) -> tuple[Any, Any, Any]:
    """Image, kernels and result, drawn at random, in storage form."""
    shapes = (
        (p.batch, p.groups * p.channels, *p.image),
        (p.groups * p.filters, p.channels, *p.kernel),
        (p.batch, p.groups * p.filters, *p.result),
    )
    drawn = [random_matrix(shape, dtype, seed) for seed, shape in enumerate(shapes)]
    return drawn[0], drawn[1], drawn[2]


def with_dtype(p: ConvolutionProblem, dtype: Any) -> ConvolutionProblem:
    return ConvolutionProblem(
        p.batch, p.groups, p.channels, p.filters, p.image, p.kernel, p.result, p.windows, dtype
    )


def check_forward(p: ConvolutionProblem, bits: int) -> Any:
    """Compare with the triple loop; gives the plan."""
    x, w, y = arrays_of(p, p.dtype)
    y.view(numpy.uint8)[...] = 0xFF
    plan = plan_convolution(p, vector_bits=bits)
    execute(plan, {"a": x, "b": w, "c": y}, cut=0.37)
    kernels = w.reshape((p.groups, p.filters, -1))
    seen = collected(x, p)
    for n, group in numpy.ndindex(p.batch, p.groups):
        wanted = reference(kernels[group], seen[n, group], p.dtype)
        found = y.reshape((p.batch, p.groups, p.filters, p.positions))[n, group]
        numpy.testing.assert_array_equal(found.view(f"u{found.itemsize}"), wanted.view(f"u{wanted.itemsize}"))
    return plan


@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize("number", range(len(PROBLEMS)))
def test_forward(number: int, bits: int) -> None:
    check_forward(with_dtype(PROBLEMS[number], FLOATS[number % 4 if number >= len(FIXED) else 0]), bits)


@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize("dtype", FLOATS)
def test_few_channels(dtype: Any, bits: int) -> None:
    p = problem(2, 2, 3, 70, (1, 18, 21), (1, 4, 3), (1, 9, 20), ((1, 2, 1), (0, 1, 0), (1, 1, 1)))
    assert by_channel(check_forward(with_dtype(p, dtype), bits)) == 4


@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize("number", range(len(PROBLEMS)))
def test_weight(number: int, bits: int) -> None:
    dtype = FLOATS[number % 4] if number >= len(FIXED) else dtypes.float32
    p = with_dtype(PROBLEMS[number], dtype)
    x, w, y = arrays_of(p, dtype)
    w.view(numpy.uint8)[...] = 0xFF
    execute(plan_convolution_weight(p, vector_bits=bits), {"a": x, "b": y, "c": w}, cut=0.37)
    results = y.reshape((p.batch, p.groups, p.filters, p.positions))
    seen = collected(x, p)
    for group in range(p.groups):
        left = numpy.concatenate(list(results[:, group]), 1)
        right = numpy.concatenate(list(seen[:, group]), 1)
        wanted = reference(left, numpy.ascontiguousarray(right.T), dtype)
        found = w.reshape((p.groups, p.filters, -1))[group]
        numpy.testing.assert_array_equal(found.view(f"u{found.itemsize}"), wanted.view(f"u{wanted.itemsize}"))


@pytest.mark.parametrize("number", range(0, len(PROBLEMS), 3))
def test_integers(number: int) -> None:
    p = with_dtype(PROBLEMS[number], dtypes.int32)
    x, w, y = arrays_of(p, dtypes.int32)
    execute(plan_convolution(p), {"a": x, "b": w, "c": y}, cut=0.5)
    kernels = w.reshape((p.groups, p.filters, -1))
    wanted = numpy.einsum("gok,ngkp->ngop", kernels, collected(x, p))
    numpy.testing.assert_array_equal(y.reshape(wanted.shape), wanted)


def test_an_image_alone_is_the_image_in_a_batch() -> None:
    p = problem(9, 1, 6, 13, (1, 7, 7), (1, 3, 3), (1, 7, 7), ((1, 1, 1), (0, 1, 1), (1, 1, 1)))
    x, w, y = arrays_of(p, dtypes.float32)
    execute(plan_convolution(p), {"a": x, "b": w, "c": y})
    alone = problem(1, 1, 6, 13, p.image, p.kernel, p.result, p.windows)
    for n in range(9):
        one = numpy.empty_like(y[:1])
        execute(plan_convolution(alone), {"a": x[n : n + 1].copy(), "b": w, "c": one})
        assert one.tobytes() == y[n].tobytes()


def test_positions_outside_the_image_are_zeros_that_are_multiplied() -> None:
    p = problem(1, 1, 1, 1, (1, 1, 2), (1, 1, 3), (1, 1, 2), ((1, 1, 1), (0, 0, 1), (1, 1, 1)))
    x, w, y = arrays_of(p, dtypes.float32)
    w[...] = numpy.inf
    execute(plan_convolution(p), {"a": abs(x), "b": w, "c": y})
    assert numpy.isnan(y).all()


BLOCKED = [
    (kernel.PARAMS, [("columns", "column"), ("filters", "row")]),
    (depthwise.PARAMS, [("result_height", "row"), ("result_width", "width")]),
    (unrolled.PARAMS, [("result_height", "row")]),
    (lines.PARAMS, []),
    (direct.PARAMS, [("images", "image"), ("result_height", "row"), ("filters", "filter")]),
    (planes.PARAMS, [("run", "column"), ("filters", "row")]),
    (depthwise_channels.PARAMS, []),
]
WEIGHT_BLOCKED = [
    (kernel.WEIGHT_PARAMS, [("filters", "filter"), ("channels", "channel"), ("taps", "tap")]),
    (depthwise.WEIGHT_PARAMS, [("result_height", "row"), ("result_width", "width")]),
    (unrolled.PARAMS, []),
    (lines.PARAMS, [("filters", "filter")]),
    (direct.PARAMS, []),
    (planes_weight.PARAMS, [("filters", "filter"), ("channels", "channel"), ("taps", "tap")]),
]


def by_channel(plan: Any) -> int:
    """Which of the layouts the numbers have: 0 is that of matrix products."""
    words = plan.calls[-1].text_key.split()
    for number, word in ((5, "planes"), (4, "direct"), (6, "channels")):
        if word in words[1:3]:
            return number
    return {"depthwise": 1, "unrolled": 2, "lines": 3}.get(words[0], 0)


def numbers_of(plan: Any, layouts: Any) -> tuple[dict[str, int], Any]:
    """The numbers of the last call by their names, and how it is cut into blocks."""
    names, axes = layouts[by_channel(plan)]
    return dict(zip(names, plan.calls[-1].params, strict=True)), axes


@pytest.mark.parametrize(
    "batch, filters, size, stride, stays, layout",
    [
        (8, 256, 14, 1, False, 4),
        (8, 64, 28, 2, False, 4),
        (1, 512, 7, 1, False, 5),
        (1, 512, 7, 1, True, 4),
        (1, 512, 5, 1, True, 5),
        (8, 64, 28, 1, True, 5),
        (1, 64, 14, 2, False, 0),
        (1, 64, 14, 2, True, 4),
    ],
)
def test_lanes_are_filters_where_positions_would_leave_them_empty(
    batch: int, filters: int, size: int, stride: int, stays: bool, layout: int
) -> None:
    image, result = (1, size, size), (1, -(-size // stride), -(-size // stride))
    moves = (1, stride, stride), (0, 1, 1), (1, 1, 1)
    given = problem(batch, 1, 128, filters, image, (1, 3, 3), result, moves)
    assert by_channel(plan_convolution(replace(given, weight_stays=stays))) == layout


@pytest.mark.parametrize("number", [n for n, p in enumerate(PROBLEMS) if not is_matmul(p)])
def test_blocks_cover_everything_once_and_none_is_empty(number: int) -> None:
    p = PROBLEMS[number]
    for plan, layouts in (
        (plan_convolution(p), BLOCKED),
        (plan_convolution_weight(p), WEIGHT_BLOCKED),
    ):
        found, axes = numbers_of(plan, layouts)
        count = 1
        for extent, name in axes:
            size, blocks = found[f"block_{name}{'s' if name != 'width' else ''}"], found[f"{name}_blocks"]
            if extent == "run":  # divided by panels
                panels = found["panels"]
                width, rest = divmod(size, -(-panels // blocks))
                assert (
                    rest == 0 and blocks <= panels and (panels - 1) * width < found["run"] <= panels * width
                )
            else:
                assert (blocks - 1) * size < found[extent] <= blocks * size
            count *= blocks
        if by_channel(plan) == 6:
            assert plan.calls[-1].work == p.batch * -(-p.groups // 16)
            continue
        each = plan.calls[-1].work // p.groups
        if axes and axes[0][0] == "images":
            assert each == count
        elif layouts is BLOCKED:
            each_of = {"result_height": p.batch * p.filters, "run": p.batch}
            assert each == count * each_of.get(axes[0][0], 1)
        elif axes[0][0] == "filters":
            assert each == count
            panels = found.get("panels", 0)
            assert not panels or (panels - 1) * 16 < p.filters
            assert [len(plan.calls), len(plan.scratch_bytes)] == ([2, 1] if panels else [1, 0])


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("width", [130, 209, 450, 1000, 1999])
def test_parts_of_wide_rows_are_whole_groups_of_chains(width: int, stride: int) -> None:
    """Four sums of sixteen positions are computed at a time, so parts of rows are multiples of 64 positions."""
    seen = 0
    for height in (3, 9, 31, 61, 121, 301):
        image, result = (1, height, width * stride + 2), (1, 1, width)
        p = problem(1, 3, 1, 1, image, (1, height, 3), result, ((1, 1, stride), (0, 0, 0), (1, 1, 1)))
        plan = plan_convolution(p)
        if by_channel(plan) != 1:
            continue
        part = numbers_of(plan, BLOCKED)[0]["block_width"]
        assert part == width or part % 64 == 0 or part in (16, 32, 48)
        seen += part != width
    assert seen
