"""The numbers that say what a convolution computes, as its kernels read them, and those that decide how."""

from __future__ import annotations

from typing import NamedTuple

from twofold.ops.convolution.window_sizes import ConvolutionProblem

MOST_PANELS = 4
"""Most panels of a work item."""

NEAR_BYTES = 24 * 1024
"""What stays in the first level cache."""

ENOUGH_ITEMS = 4
"""Work items to make for two threads."""


def numbers_of(problem: ConvolutionProblem) -> dict[str, int]:
    """The run-time numbers that say what is computed."""
    axes = ("depth", "height", "width")
    found = {
        "images": problem.batch,
        "groups": problem.groups,
        "channels": problem.channels,
        "filters": problem.filters,
        "taps": problem.taps,
        "positions": problem.positions,
        "columns": problem.batch * problem.positions,
        "c_batch": problem.groups * problem.filters * problem.positions,
        "c_row": problem.positions,
        "weight_row": problem.channels * problem.taps,
    }
    moves = problem.windows
    kinds = {
        "": problem.image, "kernel_": problem.kernel, "result_": problem.result,
        "stride_": moves.strides, "low_": moves.lows, "dilation_": moves.dilations,
    }  # fmt: skip
    for prefix, values in kinds.items():
        found |= {prefix + axis: value for axis, value in zip(axes, values, strict=True)}
    return found


class Line(NamedTuple):
    """What the windows of a line of results see of a line of the image, and how that is copied."""

    column: int
    margin: int
    length: int
    span: int


def line_of(problem: ConvolutionProblem) -> Line | None:
    """The copy of a line; None if windows see nothing but zeros."""
    moves = problem.windows
    reach = (problem.kernel[2] - 1) * moves.dilations[2]
    left = min(reach, 0) - moves.lows[2]
    span = (problem.result[2] - 1) * moves.strides[2] + abs(reach) + 1
    column, margin = max(0, left), max(0, -left)
    count = min(problem.image[2] - column, span - margin)
    return Line(column, margin, count, span) if count > 0 else None
