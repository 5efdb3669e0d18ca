"""Plans of convolutions: which generated kernels compute them, on which numbers.

As with matrix products, the bits of an element depend on nothing that is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold import dtypes
from twofold.compiler.lower import convolution_direct as direct
from twofold.compiler.lower import convolution_kernel as kernel
from twofold.compiler.lower import convolution_lines as lines
from twofold.compiler.lower import convolution_planes_plan as planes_plan
from twofold.compiler.lower import target
from twofold.compiler.lower.builder import LANES
from twofold.compiler.lower.convolution_calls import After, weight_call
from twofold.compiler.lower.convolution_kernel import Kinds
from twofold.compiler.lower.convolution_numbers import (
    MOST_PANELS,
    NEAR_BYTES,
    far,
    line_of,
    numbers_of,
    of_enough_items,
)
from twofold.compiler.lower.convolution_windows import MOST_STEPS
from twofold.compiler.lower.depthwise_plan import plan_depthwise, plan_depthwise_weight
from twofold.compiler.lower.gemm import (
    Epilogue,
    KernelCall,
    MatmulPlan,
    MatmulProblem,
    Operand,
    Planner,
    grain_of,
    plan_matmul,
    tall_tile,
    up,
)
from twofold.compiler.lower.gemm_tile import SQUARE, TALL, Tile
from twofold.ir.sizes import example_of, maximum, minimum
from twofold.ops.convolution.window_sizes import ConvolutionProblem

__all__ = ["is_matmul", "plan_convolution", "plan_convolution_weight"]

_HALVES = (dtypes.float16, dtypes.bfloat16)
_NEAR_STEPS = 128
"""Steps of the contracted index of which a panel stays there."""
_PANEL_BYTES = 12 * 1024
"""What is collected of a panel at a time: beside it rows of kernels stay near that often share few sets of a cache."""
_FEW_CHANNELS = 3
"""Channels of an image, for which collecting windows takes as long as multiplying them."""
_FEW_LANES = 6
"""Filters below which most of a vector would stay empty."""
_ENOUGH_FILTERS = 32
"""Filters that fill vectors as well as positions do."""
_ENOUGH_POSITIONS, _FILLED_POSITIONS = 128, 32
"""Positions of all images for which packing the kernels takes less time than empty lanes, and such that fill tiles."""
_FAR_STEPS = 192
"""Channels that lie too far apart to be read anew for each panel, if there are as many positions of all images."""
_COLLECTED_FILTERS = 128
"""Filters for which collecting far channels takes little time beside the products."""
_FEW_POSITIONS = 144
"""Positions of an image below which a product with filters as lanes fills vectors better, wherever channels lie."""


def _kinds(problem: ConvolutionProblem, vector_bits: int | None, filters_are_columns: bool) -> Kinds:
    compute = problem.dtype.compute
    stride = problem.windows.strides[2] if problem.result[2] > 1 else 1
    bits = vector_bits or target.vector_bits()
    # numbers of filters are multiples of eight more often than of six; positions are many
    tile = SQUARE[bits][compute.itemsize]
    if filters_are_columns:
        tile = tall_tile(problem.filters, bits, compute.itemsize)
    return Kinds(compute, problem.dtype, tile, next((known for known in (1, 2) if known == stride), 0))


def _rows_of(problem: ConvolutionProblem, most: int) -> tuple[int, int]:
    """Channels and kernel positions of a block of at most ``most`` rows."""
    if problem.taps > most:
        return 1, most
    blocks = -(-problem.channels // (most // problem.taps))
    return -(-problem.channels // blocks), problem.taps


def is_matmul(problem: ConvolutionProblem) -> bool:
    """Whether a convolution is better computed as the product that it is, images read where they lie."""
    if not problem.plain or problem.groups != 1 or problem.dtype.kind != "f":
        return False
    if problem.channels < _FAR_STEPS or problem.filters < _COLLECTED_FILTERS:
        return True
    if example_of(problem.positions) < _FEW_POSITIONS:
        return True
    return bool(problem.batch * problem.positions < _FAR_STEPS)


def _as_matmul(problem: ConvolutionProblem) -> MatmulProblem:
    """The product that a convolution with one position and no groups is: kernels times images."""
    m, n, k = problem.filters, problem.positions, problem.channels
    sides = Operand(0, k, 1), Operand(k * n, n, 1), Operand(m * n, n, 1)
    return MatmulProblem(problem.batch, m, n, k, *sides, problem.dtype, stay=(problem.weight_stays, False))


def plan_convolution(
    problem: ConvolutionProblem,
    epilogue: Epilogue | None = None,
    epilogue_params: Sequence[int] = (),
    vector_bits: int | None = None,
) -> MatmulPlan:
    """The kernel calls that compute a convolution; "a" is the image, "b" the kernels, "c" the result.

    ``epilogue`` and its numbers are as in `plan_matmul`, with the image as batch, the filter as row and the
    position of the result as column.
    """
    if is_matmul(problem):
        plan = plan_matmul(_as_matmul(problem), epilogue, epilogue_params, vector_bits)
        exchanged = {"a": "b", "b": "a"}
        for call in plan.calls:
            call.buffers = tuple(exchanged.get(role, role) for role in call.buffers)
        return plan
    after = After(epilogue, epilogue_params)
    if problem.dtype.kind != "f":
        plain = problem.dtype, problem.dtype.compute, epilogue
        text = kernel.plain_key(*plain), lambda: kernel.plain_text(*plain)
        numbers = dict.fromkeys(kernel.PARAMS, 0) | numbers_of(problem)
        work = problem.batch * problem.groups * problem.filters * problem.result[0] * problem.result[1]
        return MatmulPlan([after.call(kernel.PARAMS, numbers, text, work, 1)], [])
    kinds = _kinds(problem, vector_bits, False)
    each = plan_depthwise(problem, kinds, after)
    if each is not None:
        return MatmulPlan([each], [])
    wide = _kinds(problem, vector_bits, True)
    direct_numbers = _direct_numbers(problem, wide)
    if direct_numbers is not None:
        return _direct(problem, after, wide, direct_numbers)
    tall = TALL[vector_bits or target.vector_bits()][kinds.compute.itemsize]
    return _tiled(problem, after, kinds, tall)


def _takes_filters_as_lanes(problem: ConvolutionProblem) -> bool:
    """Whether lanes are better filled with filters than with positions, in spite of kernels being packed.

    Over symbols the images of the example decide, without a guard: either kernel computes all images.
    """
    if not 1 < problem.taps <= MOST_STEPS or problem.filters < _ENOUGH_FILTERS:
        return False
    enough = _FILLED_POSITIONS if problem.weight_stays else _ENOUGH_POSITIONS
    if example_of(problem.batch * problem.positions) < enough:
        return False
    return problem.windows.strides[1:] != (1, 1) or planes_plan.leaves_lanes_empty(problem)


def _direct_numbers(problem: ConvolutionProblem, kinds: Kinds) -> dict[str, int] | None:
    """The run-time numbers of the direct kernel; None where windows are better collected, or lines have no room."""
    moves, size, width = problem.windows, kinds.compute.itemsize, kinds.tile.width
    flat = problem.kernel[0] == problem.result[0] == problem.image[0] == 1 and not moves.lows[0]
    few = problem.channels <= _FEW_CHANNELS and problem.taps * problem.channels <= MOST_STEPS
    if not flat or not (few or _takes_filters_as_lanes(problem)) or problem.filters < _FEW_LANES:
        return None
    line = line_of(problem)
    if line is None:
        return None
    reach = (problem.kernel[1] - 1) * moves.dilations[1]
    rows, positions = problem.result[1], problem.result[2]
    room = kernel.PACKED_BYTES // size
    seen = (abs(reach) + 1) * line.span
    channels = minimum(problem.channels, maximum(1, _NEAR_STEPS // problem.taps))
    channels = maximum(1, minimum(channels, NEAR_BYTES // (seen * size)))
    filters = minimum(up(problem.filters, LANES), max(direct.MOST_FILTERS // width, 1) * width)
    most = kernel.SUM_BYTES // size // filters
    # one channel has room if several have, which stay near
    if seen > room or positions > most:
        return None
    near = NEAR_BYTES // size // (channels * line.span)
    block = minimum(minimum(rows, most // positions), (near - abs(reach) - 1) // moves.strides[1] + 1)
    block = maximum(1, block)
    row_blocks = -(-rows // block)
    block = -(-rows // row_blocks)
    # some images where their rows are one block
    several = maximum(0, minimum(problem.batch, most // (rows * positions)) - 1)
    images = 1 + (1 - minimum(1, rows - block)) * several
    filter_blocks = -(-problem.filters // filters)
    images = of_enough_items(images, problem.batch, problem.groups * filter_blocks)
    # an even number of items, for an even number of threads
    image_blocks = -(-problem.batch // images)
    odd = image_blocks * problem.groups * filter_blocks * row_blocks % 2
    images = -(-problem.batch // minimum(problem.batch, image_blocks + odd))
    block = of_enough_items(block, rows, problem.groups * filter_blocks * problem.batch)
    block = -(-rows // -(-rows // block))
    return numbers_of(problem) | {
        "block_images": images,
        "image_blocks": -(-problem.batch // images),
        "block_rows": block,
        "row_blocks": -(-rows // block),
        "block_filters": filters,
        "filter_blocks": filter_blocks,
        "block_channels": channels,
        "panels": -(-problem.filters // width),
        "panel_size": up(problem.channels * problem.taps, 16) * width,
        "pitch": line.span,
        "lines": (block - 1) * moves.strides[1] + abs(reach) + 1,
        "first_column": line.column,
        "margin": line.margin,
        "count": line.length,
        "top": minimum(reach, 0) - moves.lows[1],
        "left": -minimum((problem.kernel[2] - 1) * moves.dilations[2], 0),
    }


def _direct(problem: ConvolutionProblem, after: After, kinds: Kinds, numbers: dict[str, int]) -> MatmulPlan:
    """The calls of a convolution that reads windows where lines of the image lie."""
    length, width = problem.channels * problem.taps, kinds.tile.width
    whole = Operand(problem.filters * length, 1, length)
    planner = Planner(
        MatmulProblem(problem.groups, 1, problem.filters, length, whole, whole, whole, problem.dtype),
        None,
        (),
    )
    weight = planner.pack(whole, "b", (length, problem.filters), "columns", width)
    text = direct.direct_key(kinds, after.epilogue), lambda: direct.direct_text(kinds, after.epilogue)
    numbers["far"] = far(problem, after.streams)
    work = problem.groups * numbers["image_blocks"] * numbers["row_blocks"] * numbers["filter_blocks"]
    sums = numbers["block_images"] * numbers["block_rows"] * problem.result[2] * numbers["block_filters"]
    grain = grain_of(sums * (length + 8), LANES)
    planner.plan.calls.append(after.call(direct.PARAMS, numbers, text, work, grain, weight))
    return planner.plan


def _tiled(problem: ConvolutionProblem, after: After, kinds: Kinds, tall: Tile) -> MatmulPlan:
    """The calls of a convolution of floats; ``tall`` is a wider tile for planes that fit one panel of it."""
    numbers, size, width = numbers_of(problem), kinds.compute.itemsize, kinds.tile.width
    length = numbers["weight_row"]
    whole = Operand(0, length, 1)
    planner = Planner(
        MatmulProblem(1, problem.groups * problem.filters, 1, length, whole, whole, whole, problem.dtype),
        None,
        (),
    )
    weight = "b"
    if problem.dtype in _HALVES:
        left, weight = planner.widen_left(whole, "b", (problem.groups * problem.filters, length))
        numbers["weight_row"] = left.row
    in_planes = planes_plan.forward_call(problem, kinds, tall, after, weight, numbers["weight_row"])
    if in_planes is not None:
        planner.plan.calls.append(in_planes)
        return planner.plan
    panels = -(-numbers["columns"] // width)
    panels = of_enough_items(minimum(MOST_PANELS, panels), panels, problem.groups)
    columns = panels * width
    most_rows = kernel.SUM_BYTES // size // (MOST_PANELS * width)
    row_blocks = -(-problem.filters // most_rows)
    rows = minimum(most_rows, up(-(-problem.filters // row_blocks), 4))
    channels, taps = _rows_of(problem, _PANEL_BYTES // size // width)
    numbers |= {
        "block_columns": columns,
        "column_blocks": -(-numbers["columns"] // columns),
        "block_rows": rows,
        "row_blocks": -(-problem.filters // rows),
        "block_channels": channels,
        "block_taps": taps,
    }
    text = kernel.forward_key(kinds, after.epilogue), lambda: kernel.forward_text(kinds, after.epilogue)
    work = problem.groups * numbers["column_blocks"] * numbers["row_blocks"]
    grain = grain_of(rows * columns * (length + 8), LANES)
    planner.plan.calls.append(after.call(kernel.PARAMS, numbers, text, work, grain, weight))
    return planner.plan


def plan_convolution_weight(
    problem: ConvolutionProblem, vector_bits: int | None = None, accumulates: bool = False
) -> MatmulPlan:
    """The kernel calls that sum images "a" times results "b" over all positions to kernels "c".

    Where it ``accumulates``, the sums begin with the elements of "start", perhaps in the memory of "c".
    """
    kinds = _kinds(problem, vector_bits, True)
    each = plan_depthwise_weight(problem, kinds, accumulates) or _lines_weight(problem, kinds, accumulates)
    if each is not None:
        return MatmulPlan([each], [])
    return planes_plan.weight_plan(problem, kinds, accumulates) or _collected_weight(
        problem, kinds, accumulates
    )


def _collected_weight(problem: ConvolutionProblem, kinds: Kinds, accumulates: bool) -> MatmulPlan:
    """The calls that sum over all positions what they collected."""
    numbers, size, width = numbers_of(problem), kinds.compute.itemsize, kinds.tile.width
    columns = minimum(kernel.RESULT_COLUMNS, up(numbers["columns"], LANES))
    # sums of one panel lie as closely as whole vectors allow, so that there is room for more rows
    filters = minimum(
        up(problem.filters, LANES if problem.filters <= width else width),
        MOST_PANELS * width,
    )
    most = minimum(
        kernel.SUM_BYTES // size // maximum(filters, 2 * LANES),
        kernel.PACKED_BYTES // size // (kernel.RESULT_COLUMNS + kernel.SLACK),
    )
    most = most // LANES * LANES
    if problem.filters <= width and problem.groups == 1:
        # two work items, so that two threads have one each
        half = -(-problem.channels // 2) * problem.taps if problem.channels > 1 else -(-problem.taps // 2)
        most = minimum(most, maximum(LANES // 2, half))
    channels, taps = _rows_of(problem, most)
    channel_blocks, tap_blocks = -(-problem.channels // channels), -(-problem.taps // taps)
    if problem.filters > width:
        others = problem.groups * channel_blocks * tap_blocks
        filters = width * of_enough_items(filters // width, -(-problem.filters // width), others)
    numbers |= {
        "block_columns": columns,
        "block_filters": filters,
        "filter_blocks": -(-problem.filters // filters),
        "block_channels": channels,
        "block_taps": taps,
        "channel_blocks": channel_blocks,
        "tap_blocks": tap_blocks,
        "span": numbers["columns"],
        "span_blocks": -(-numbers["columns"] // columns),
    }
    calls, scratch = _transposed_before(problem, kinds, numbers)
    text = kernel.weight_key(kinds, accumulates), lambda: kernel.weight_text(kinds, accumulates)
    work = problem.groups * channel_blocks * tap_blocks * numbers["filter_blocks"]
    grain = grain_of(channels * taps * filters * (numbers["columns"] + 8), LANES)
    read = ["scratch0" if scratch else "b"]
    calls.append(weight_call(kernel.WEIGHT_PARAMS, numbers, text, work, grain, accumulates, read))
    return MatmulPlan(calls, scratch)


def _lines_numbers(problem: ConvolutionProblem, kinds: Kinds) -> dict[str, int] | None:
    """The run-time numbers of `convolution_lines`; None where windows are better collected."""
    flat = problem.kernel[0] == problem.result[0] == problem.image[0] == 1 and not problem.windows.lows[0]
    # fewer positions of a row would be too few sums side by side
    if not flat or problem.channels > 1 or problem.kernel[2] < 4:
        return None
    positions, size = problem.result[2], kinds.compute.itemsize
    if (
        not LANES // 2 <= positions <= lines.MOST_COLUMNS
        or problem.channels * problem.taps * LANES * size > kernel.SUM_BYTES
    ):
        return None
    line = line_of(problem)
    if line is None:
        return None
    room = up(line.span, LANES) + LANES
    if 2 * room * size > kernel.PACKED_BYTES:
        return None
    return numbers_of(problem) | {
        "block_columns": maximum(1, kernel.RESULT_COLUMNS // positions) * positions,
        "block_filters": LANES,
        "filter_blocks": -(-problem.filters // LANES),
        "first_column": line.column,
        "margin": line.margin,
        "count": line.length,
        "start": -minimum((problem.kernel[2] - 1) * problem.windows.dilations[2], 0),
        "zeros": room,
    }


def _lines_weight(problem: ConvolutionProblem, kinds: Kinds, accumulates: bool) -> KernelCall | None:
    """The call that sums over all positions for few channels; None where windows are better collected."""
    numbers = _lines_numbers(problem, kinds)
    if numbers is None:
        return None
    text = lines.lines_key(kinds, accumulates), lambda: lines.lines_text(kinds, accumulates)
    work = problem.groups * numbers["filter_blocks"]
    return weight_call(lines.PARAMS, numbers, text, work, 1, accumulates)


def _transposed_before(
    problem: ConvolutionProblem, kinds: Kinds, numbers: dict[str, int]
) -> tuple[list[KernelCall], list[int]]:
    """The call that transposes the results once, where several work items read them, and its scratch.

    Sets ``panels`` of ``numbers``. Few filters would leave most of a panel empty, so these are transposed each time.
    """
    width = kinds.tile.width
    readers = numbers["channel_blocks"] * numbers["tap_blocks"]
    panels = -(-problem.filters // width) if readers > 2 and 2 * problem.filters >= width else 0
    numbers["panels"] = panels
    if not panels:
        return [], []
    call, scratch = planes_plan.transpose_call(problem, kinds, numbers)
    return [call], [scratch]
