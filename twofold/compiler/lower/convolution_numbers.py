"""The numbers that say what a convolution computes, as its kernels read them, and those that decide how.

Sizes of images may be symbols, and what is decided about one is a guard of the plan. So nothing but the choice of a
kernel is decided: blocks are minima and maxima, which symbols have, too.
"""

from __future__ import annotations

from typing import NamedTuple

from twofold.ir.sizes import maximum, minimum
from twofold.ops.convolution.window_sizes import ConvolutionProblem

MOST_PANELS = 4
"""Most panels of a work item."""

NEAR_BYTES = 24 * 1024
"""What stays in the first level cache."""

ENOUGH_ITEMS = 4
"""Work items to make for two threads."""


_FAR_BYTES = 2 * 1024 * 1024
"""What does not stay in the caches of a core between kernels."""


def of_enough_items(most: int, whole: int, others: int) -> int:
    """The size of blocks of ``whole``, at most ``most``, that makes enough work items if there is one; else 1.

    Args:
        most: The largest size of a block.
        whole: What is divided into blocks.
        others: How many work items each block is.

    >>> [of_enough_items(8, 20, others) for others in (1, 2, 4)]
    [6, 8, 8]
    >>> of_enough_items(3, 2, 1)
    1
    """
    blocks = -(-ENOUGH_ITEMS // maximum(1, others))
    largest = maximum(1, (whole - 1) // maximum(1, blocks - 1))
    # any size makes one block
    size: int = most - minimum(1, blocks - 1) * maximum(0, most - largest)
    return size


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


def far(problem: ConvolutionProblem, streams: int) -> int:
    """1 where what is read and written beside the products lies far, so that it is better brought near before; else 0.

    Args:
        problem: What is computed.
        streams: How many values there are of each result, as `Epilogue.streams` counts them.
    """
    count = problem.batch * problem.groups * problem.filters * problem.positions * streams
    found: int = minimum(1, count * problem.dtype.itemsize // (_FAR_BYTES + 1))
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
    left = minimum(reach, 0) - moves.lows[2]
    span = (problem.result[2] - 1) * moves.strides[2] + abs(reach) + 1
    column, margin = maximum(0, left), maximum(0, -left)
    count = minimum(problem.image[2] - column, span - margin)
    return Line(column, margin, count, span) if count > 0 else None
