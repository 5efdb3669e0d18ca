"""Plans of convolutions of each channel on its own: which kernel computes them, on which numbers."""

from __future__ import annotations

from typing import NamedTuple

from twofold.compiler.lower import convolution_kernel as kernel
from twofold.compiler.lower import depthwise_channels as by_lanes
from twofold.compiler.lower import depthwise_kernel as depthwise
from twofold.compiler.lower import depthwise_unrolled as unrolled
from twofold.compiler.lower.builder import LANES
from twofold.compiler.lower.convolution_calls import After, weight_call
from twofold.compiler.lower.convolution_kernel import Kinds
from twofold.compiler.lower.convolution_numbers import NEAR_BYTES, line_of, numbers_of
from twofold.compiler.lower.depthwise_unrolled import Taps
from twofold.compiler.lower.gemm import KernelCall, grain_of, up
from twofold.ir.sizes import maximum, minimum
from twofold.ops.convolution.window_sizes import ConvolutionProblem

_FEW_FILTERS = 2
_TURN_ROWS = 4
_ENOUGH_CHANNELS = 8
"""Channels that fill lanes well enough where planes fill none."""


def _by_channel(problem: ConvolutionProblem) -> bool:
    """Whether so few filters share a channel, and so few channels a filter, that matrix products gain nothing."""
    flat = problem.kernel[0] == problem.result[0] == problem.image[0] == 1
    return flat and problem.channels == 1 and problem.filters <= _FEW_FILTERS and not problem.windows.lows[0]


def plan_depthwise(problem: ConvolutionProblem, kinds: Kinds, after: After) -> KernelCall | None:
    """The call that computes a convolution of each channel on its own; None if it is not one, or has no room."""
    if not _by_channel(problem):
        return None
    taps = _taps(problem)
    if taps is not None:
        seen = _seen_numbers(problem, taps)
        if seen is not None:
            return _by_lanes(problem, after, kinds, taps, seen)
        numbers = _unrolled_numbers(problem, kinds, taps)
        if numbers is not None:
            return _unrolled(problem, after, kinds, taps, numbers)
    block = _lines(problem, kinds, 1)
    return None if block is None else _of_lines(problem, after, kinds, block)


def plan_depthwise_weight(problem: ConvolutionProblem, kinds: Kinds, accumulates: bool) -> KernelCall | None:
    """The call that sums over all positions for each channel on its own; None as for `plan_depthwise`."""
    block = _lines(problem, kinds, LANES) if _by_channel(problem) else None
    if block is None or problem.taps * LANES * kinds.compute.itemsize > kernel.SUM_BYTES:
        return None
    numbers = _block_numbers(problem, block)
    text = depthwise.weight_key(kinds, accumulates), lambda: depthwise.weight_text(kinds, accumulates)
    work = -(-problem.groups * problem.filters // LANES)
    return weight_call(depthwise.WEIGHT_PARAMS, numbers, text, work, 1, accumulates)


class _Lines(NamedTuple):
    """A block of the result of one channel: rows, positions of a row, and how far apart copied lines lie."""

    rows: int
    width: int
    line: int


def _lines(problem: ConvolutionProblem, kinds: Kinds, depth: int) -> _Lines | None:
    """The block for which a copy of what its windows see fits, ``depth`` elements a position; None if none does.

    Either all positions of some rows, or some positions of one row.
    """
    room = kernel.PACKED_BYTES // kinds.compute.itemsize // depth - 2 * LANES
    (_, stride_y, stride_x), _, (_, dilation_y, dilation_x) = problem.windows
    (_, size_y, size_x), (_, rows, width) = problem.kernel, problem.result
    more = (size_y - 1) * abs(dilation_y) + 1

    def length(width: int) -> int:
        # sums of 16 positions are computed, and lines copied, in whole vectors
        return up((up(width, LANES) - 1) * stride_x + (size_x - 1) * abs(dilation_x) + 1, LANES) + LANES

    extra = 0 if depth > 1 else _TURN_ROWS - 1
    most = room // length(width)
    if most >= more + extra * stride_y:
        near = minimum(most, NEAR_BYTES // kinds.compute.itemsize // length(width))
        few = maximum(more + extra * stride_y, near)
        fitting = (few - more) // stride_y + 1 - extra
        return _Lines(minimum(rows, maximum(1, fitting)), width, length(width))
    narrow = width
    while narrow > LANES and more * length(narrow) > room:
        narrow = up(narrow // 2, 4 * LANES if narrow > 8 * LANES else LANES)
    return _Lines(1, narrow, length(narrow)) if more * length(narrow) <= room else None


def _block_numbers(problem: ConvolutionProblem, block: _Lines) -> dict[str, int]:
    return numbers_of(problem) | {
        "block_rows": block.rows,
        "row_blocks": -(-problem.result[1] // block.rows),
        "block_width": block.width,
        "width_blocks": -(-problem.result[2] // block.width),
        "line": block.line,
    }


def _taps(problem: ConvolutionProblem) -> Taps | None:
    """What the texts of kernels with all products in them depend on; None if there are none for this problem."""
    moves = problem.windows
    if problem.taps > unrolled.MOST_TAPS or any(stride > 2 for stride in moves.strides[1:]):
        return None
    kernel, strides, dilations = (
        (int(numbers[1]), int(numbers[2])) for numbers in (problem.kernel, moves.strides, moves.dilations)
    )
    width = problem.result[2]
    return Taps(kernel, strides, dilations, 4.0 * width < 3.0 * up(width, LANES))


def _seen_numbers(problem: ConvolutionProblem, taps: Taps) -> dict[str, int] | None:
    """The run-time numbers of the kernel with channels as lanes; None where planes are large or channels few."""
    (_, height, width), (_, rows, columns) = problem.image, problem.result
    few = height * width <= by_lanes.MOST_GIVEN and rows * columns <= by_lanes.MOST_RESULTS
    if not few or problem.filters > 1 or problem.groups < _ENOUGH_CHANNELS:
        return None
    (_, stride_y, stride_x), lows = problem.windows.strides, problem.windows.lows
    (before_y, behind_y), (before_x, behind_x) = taps.reach(0), taps.reach(1)
    seen_height = (rows - 1) * stride_y + behind_y - before_y + 1
    seen_width = (columns - 1) * stride_x + behind_x - before_x + 1
    if seen_height * seen_width > by_lanes.MOST_SEEN:
        return None
    return numbers_of(problem) | {
        "seen_height": seen_height,
        "seen_width": seen_width,
        "top": before_y - lows[1],
        "left": before_x - lows[2],
    }


def _by_lanes(
    problem: ConvolutionProblem, after: After, kinds: Kinds, taps: Taps, numbers: dict[str, int]
) -> KernelCall:
    """The call that computes sixteen channels at a time."""
    epilogue = after.epilogue
    text = by_lanes.key(kinds, taps, epilogue), lambda: by_lanes.text(kinds, taps, epilogue)
    given, results = problem.image[1] * problem.image[2], problem.positions
    grain = grain_of(given * 6 + results * (20 + problem.taps))
    return after.call(by_lanes.PARAMS, numbers, text, -(-problem.groups // LANES) * problem.batch, grain)


def _unrolled_numbers(problem: ConvolutionProblem, kinds: Kinds, taps: Taps) -> dict[str, int] | None:
    """The run-time numbers of the unrolled kernel; None if what the windows of a row see has no room."""
    (_, stride_y, stride_x), (before_y, behind_y) = problem.windows.strides, taps.reach(0)
    source, rows = line_of(problem), problem.result[1]
    if source is None:
        return None
    line = -(-source.span // stride_x)
    # what a line's copy stores begins at whole vectors, unless sums run on across its end
    firsts = [0, 0]
    if not taps.across:
        line = up(line, LANES)
        for column in (source.margin, source.margin + 1)[:stride_x]:
            firsts[column % stride_x] = -(column // stride_x) % LANES
    room = NEAR_BYTES // kinds.compute.itemsize // (stride_x * line)
    more = behind_y - before_y + 1
    # rows of the result that share a copy near the processor, or one row and the lines that it sees
    block = minimum(rows, maximum(1, (room - more) // stride_y + 1))
    lines = (block - 1) * stride_y + more
    plane = -(-lines // stride_y) * line + LANES
    copied = stride_x * stride_y * plane + LANES
    if copied * kinds.compute.itemsize > kernel.PACKED_BYTES:
        return None
    if taps.across and block * line * kinds.compute.itemsize > kernel.SUM_BYTES:
        return None
    margin, second = source.margin, source.margin + 1
    return numbers_of(problem) | {
        "block_rows": block,
        "row_blocks": -(-rows // block),
        "line": line,
        "first": firsts[0],
        "across": plane + firsts[1] - firsts[0],
        "down": stride_x * plane,
        "copied": copied,
        "first_column": source.column,
        "count": source.length,
        "even": margin % stride_x * (plane + firsts[1] - firsts[0]) + margin // stride_x,
        "odd": second % stride_x * (plane + firsts[1] - firsts[0]) + second // stride_x,
        "top": before_y - problem.windows.lows[1],
        "lines": lines,
    }


def _unrolled(
    problem: ConvolutionProblem, after: After, kinds: Kinds, taps: Taps, numbers: dict[str, int]
) -> KernelCall:
    """The call of a convolution of each channel on its own with a small kernel."""
    epilogue = after.epilogue
    text = unrolled.key(kinds, taps, epilogue), lambda: unrolled.text(kinds, taps, epilogue)
    work = problem.batch * problem.groups * problem.filters * numbers["row_blocks"]
    cycles = numbers["block_rows"] * up(numbers["line"], LANES) // LANES * (2 * problem.taps + 20)
    return after.call(unrolled.PARAMS, numbers, text, work, grain_of(cycles + numbers["lines"] * 10))


def _of_lines(problem: ConvolutionProblem, after: After, kinds: Kinds, block: _Lines) -> KernelCall:
    """The call of a convolution of each channel on its own."""
    epilogue, numbers = after.epilogue, _block_numbers(problem, block)
    numbers |= (
        {"chain_rows": 1, "chain_width": 0} if block.rows > 1 else {"chain_rows": 0, "chain_width": LANES}
    )
    text = depthwise.forward_key(kinds, epilogue), lambda: depthwise.forward_text(kinds, epilogue)
    planes = problem.batch * problem.groups * problem.filters
    work = planes * numbers["row_blocks"] * numbers["width_blocks"]
    grain = grain_of(block.rows * block.width * (problem.taps + 4), 8)
    return after.call(depthwise.PARAMS, numbers, text, work, grain)
