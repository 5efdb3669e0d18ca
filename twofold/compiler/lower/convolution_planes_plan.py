"""When convolutions read windows where planes of the image lie, and on which numbers."""

from __future__ import annotations

from dataclasses import replace

from twofold.compiler.lower import convolution_kernel as kernel
from twofold.compiler.lower import convolution_planes as planes
from twofold.compiler.lower import convolution_planes_weight as planes_weight
from twofold.compiler.lower.builder import LANES
from twofold.compiler.lower.convolution_calls import After, weight_call
from twofold.compiler.lower.convolution_kernel import Kinds
from twofold.compiler.lower.convolution_numbers import ENOUGH_ITEMS, MOST_PANELS, far, line_of, numbers_of
from twofold.compiler.lower.convolution_windows import MOST_STEPS
from twofold.compiler.lower.gemm import KernelCall, MatmulPlan, grain_of, known_text, up
from twofold.compiler.lower.gemm_tile import Tile
from twofold.ir.sizes import example_of, is_symbolic, maximum, minimum
from twofold.ops.convolution.window_sizes import ConvolutionProblem

_COLLECTED = 16
"""Filters by which a position is multiplied while it is collected."""

_STEPS = 288
"""Steps of the contracted index of which what a panel sees stays in the first level cache."""

_ENOUGH_ROWS = 64
"""Rows of a work item, for which reading the results takes less time than multiplying them."""

_MANY_CHANNELS = 128
"""Channels for which what a kernel prepares takes no time beside its products."""

_FEW_COLUMNS = 32
"""Positions of results below which visiting the sums takes too long."""


def _plane_numbers(problem: ConvolutionProblem) -> dict[str, int] | None:
    """How planes are copied; None where they are not flat or windows see nothing."""
    flat = problem.kernel[0] == problem.result[0] == problem.image[0] == 1 and not problem.windows.lows[0]
    line = line_of(problem)
    if not flat or problem.taps == 1 or line is None:
        return None
    reach = [
        (size - 1) * dilation
        for size, dilation in zip(problem.kernel[1:], problem.windows.dilations[1:], strict=True)
    ]
    return numbers_of(problem) | {
        "pitch": maximum(maximum(line.span - line.margin, line.margin + line.length), problem.result[2]),
        "reach": abs(reach[0]),
        "first_column": line.column,
        "margin": line.margin,
        "count": line.length,
        "top": minimum(reach[0], 0) - problem.windows.lows[1],
        "left": -minimum(reach[1], 0),
    }


def _lines_are_vectors(problem: ConvolutionProblem) -> bool:
    """Whether each line of results is one whole vector, so that none reaches over the end of a line."""
    width = problem.result[2]
    return not is_symbolic(width) and width == LANES


def _run(problem: ConvolutionProblem, numbers: dict[str, int]) -> int:
    """The columns of an image."""
    _, rows, positions = problem.result
    line = LANES if _lines_are_vectors(problem) else numbers["pitch"]
    return (rows - 1) * line + positions


def _forward_numbers(problem: ConvolutionProblem, kinds: Kinds) -> dict[str, int] | None:
    """The run-time numbers of the product with the kernels; None where windows are better collected."""
    size, width, (_, rows, positions) = kinds.compute.itemsize, kinds.tile.width, problem.result
    numbers = _plane_numbers(problem)
    if numbers is None or problem.taps > MOST_STEPS or problem.windows.strides[1:] != (1, 1):
        return None
    pitch, most_filters = numbers["pitch"], kernel.SUM_BYTES // size // (MOST_PANELS * width)
    run, row_blocks = _run(problem, numbers), -(-problem.filters // most_filters)
    line, apart = (LANES, pitch) if _lines_are_vectors(problem) else (pitch, LANES)
    filters = up(-(-problem.filters // row_blocks), 4)
    # collecting costs more than its instructions: the collected panel is written and read again
    collected = 4.0 * (filters + _COLLECTED) * rows * positions
    if collected < 3.0 * up(run, LANES) * filters:
        return None
    panels = -(-run // width)
    most = minimum(planes.MOST_COLUMNS, kernel.SUM_BYTES // size // filters) // width
    others = problem.batch * problem.groups * row_blocks
    blocks = maximum(-(-panels // most), minimum(panels, -(-2 * ENOUGH_ITEMS // others)))
    # an even number of items, for an even number of threads
    blocks = minimum(panels, blocks + blocks * others % 2)
    columns = -(-panels // blocks) * width
    lines = minimum(rows, (columns - 2) // line + 2) + numbers["reach"]
    plane = up(lines * pitch, 2 * LANES) + LANES
    channels = minimum(maximum(1, _STEPS // problem.taps), kernel.PACKED_BYTES // size // plane)
    if channels < 1:
        return None
    return numbers | {
        "block_columns": columns,
        "column_blocks": blocks,
        "panels": panels,
        "block_rows": filters,
        "row_blocks": -(-problem.filters // filters),
        "block_channels": -(-problem.channels // -(-problem.channels // channels)),
        "plane": plane,
        "line_columns": line,
        "apart": apart,
        "run": run,
    }


def leaves_lanes_empty(problem: ConvolutionProblem) -> bool:
    """Whether a run leaves a tenth more of its lanes empty, between lines or behind the last one, than filters.

    An eighteenth is enough where channels are many. Over symbols that is so for the planes of the example.
    """
    numbers, (_, rows, positions) = _plane_numbers(problem), problem.result
    if numbers is None:
        return False
    run = up(example_of(_run(problem, numbers)), LANES)
    parts = 18 if problem.channels >= _MANY_CHANNELS else 11
    return (
        parts * example_of(rows * positions) * up(problem.filters, LANES)
        <= (parts - 1) * run * problem.filters
    )


def _with_whole_panels(problem: ConvolutionProblem, kinds: Kinds, tall: Tile) -> Kinds:
    """Kinds with the wider tile ``tall`` where a run fills panels of it, but not of the other, or is one of them.

    Over symbols the planes of the example decide, without a guard: either tile computes all planes.
    """
    numbers = _plane_numbers(problem)
    if numbers is None:
        return kinds
    run, width = example_of(_run(problem, numbers)), kinds.tile.width
    is_better = width < run <= tall.width or (run % tall.width == 0 and run % width != 0)
    return replace(kinds, tile=tall) if is_better else kinds


def forward_call(
    problem: ConvolutionProblem,
    kinds: Kinds,
    tall: Tile,
    after: After,
    weight: str,
    weight_row: int,
) -> KernelCall | None:
    """The call of the product with the kernels, whose rows lie ``weight_row`` apart in the buffer ``weight``."""
    kinds = _with_whole_panels(problem, kinds, tall)
    numbers = _forward_numbers(problem, kinds)
    if numbers is None:
        return None
    numbers["weight_row"] = weight_row
    numbers["far"] = far(problem, after.streams)
    text = planes.planes_key(kinds, after.epilogue), lambda: planes.planes_text(kinds, after.epilogue)
    work = problem.batch * problem.groups * numbers["column_blocks"] * numbers["row_blocks"]
    steps = problem.channels * problem.taps + 8
    grain = grain_of(numbers["block_rows"] * numbers["block_columns"] * steps, LANES)
    return after.call(planes.PARAMS, numbers, text, work, grain, weight)


def _weight_numbers(problem: ConvolutionProblem, kinds: Kinds) -> dict[str, int] | None:
    """The run-time numbers of the product with the results; None where windows are better collected."""
    size, width, (_, rows, positions) = kinds.compute.itemsize, kinds.tile.width, problem.result
    numbers = _plane_numbers(problem)
    if numbers is None or positions > kernel.RESULT_COLUMNS or 2 * problem.filters < width:
        return None
    blocks = -(-rows // (kernel.RESULT_COLUMNS // positions))
    lines = -(-rows // blocks)
    if lines * positions < _FEW_COLUMNS:
        return None
    seen = (lines - 1) * problem.windows.strides[1] + numbers["reach"] + 1
    plane = up(seen * numbers["pitch"] + LANES, 2 * LANES) + LANES
    panels = -(-problem.filters // width)
    filters = minimum(up(problem.filters, LANES), width)
    most = minimum(kernel.SUM_BYTES // size // filters // LANES * LANES, planes_weight.MOST_ROWS)
    channels = minimum(most // problem.taps, kernel.PACKED_BYTES // size // plane)
    if channels < 1:
        return None
    # results are read anew for each block of channels, so their rows should be many
    few = maximum(1, problem.channels * problem.taps // _ENOUGH_ROWS)
    items = minimum(few, -(-2 * ENOUGH_ITEMS // (problem.groups * panels)))
    blocks = maximum(-(-problem.channels // channels), minimum(problem.channels, items))
    channels = -(-problem.channels // blocks)
    return numbers | {
        "block_columns": lines * positions,
        "block_filters": filters,
        "filter_blocks": -(-problem.filters // filters),
        "block_channels": channels,
        "block_taps": problem.taps,
        "channel_blocks": -(-problem.channels // channels),
        "tap_blocks": 1,
        "panels": panels,
        "span": problem.positions,
        "span_blocks": -(-rows // lines),
        "plane": plane,
    }


def weight_plan(problem: ConvolutionProblem, kinds: Kinds, accumulates: bool) -> MatmulPlan | None:
    """The calls that sum over all positions of results."""
    numbers, kinds = _weight_numbers(problem, kinds), replace(kinds, stride=1)
    if numbers is None:
        return None
    transpose, scratch = transpose_call(problem, kinds, numbers)
    key = planes_weight.planes_weight_key(kinds, accumulates)
    text = key, lambda: planes_weight.planes_weight_text(kinds, accumulates)
    work = problem.groups * numbers["channel_blocks"] * numbers["filter_blocks"]
    rows = numbers["block_channels"] * problem.taps
    grain = grain_of(rows * numbers["block_filters"] * (numbers["columns"] + 8), LANES)
    call = weight_call(planes_weight.PARAMS, numbers, text, work, grain, accumulates, ["scratch0"])
    return MatmulPlan([transpose, call], [scratch])


def transpose_call(
    problem: ConvolutionProblem, kinds: Kinds, numbers: dict[str, int]
) -> tuple[KernelCall, int]:
    """The call that transposes results once for all work items, and the bytes of its scratch."""
    blocks = numbers["columns"] // numbers["span"] * numbers["span_blocks"]
    each = (numbers["block_columns"] + kernel.SLACK) * kinds.tile.width
    key, text = known_text(kernel.transpose_key(kinds), lambda: kernel.transpose_text(kinds))
    params = tuple(numbers[name] for name in kernel.WEIGHT_PARAMS)
    work = problem.groups * numbers["panels"] * blocks
    call = KernelCall(key, "pack", text, ("b", "b", "scratch0"), params, work, grain_of(each * 24, LANES))
    return call, work * each * kinds.compute.itemsize
