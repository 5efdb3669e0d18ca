"""The kernel of the gradient of kernels over few channels, such as those of a first layer.

Collecting windows would take longer here than multiplying them. What the positions of one row of the kernel meet along
a line of results lies a dilation apart in one line of the image, so a product reads its left operand from a copy of
that line with zeros around it.
"""

from __future__ import annotations

from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.convolution_kernel import (
    IMAGE,
    Kinds,
    Writer,
    load_transposed,
    resumes,
    store_transposed,
    transpose_results,
)

MOST_COLUMNS = 1024
"""Positions of results that are taken at a time: whole lines."""

PARAMS = [
    *IMAGE,
    "block_columns",
    "block_filters",
    "filter_blocks",
    "first_column",
    "margin",
    "count",
    "start",
    "zeros",
]
"""The run-time numbers.

Of each line of the image ``count`` elements from ``first_column`` on are copied ``margin`` elements behind the start of
the copy; the first position of the kernel meets the one at ``start`` first. ``zeros`` elements behind that lies a line
of zeros.
"""


def lines_key(kinds: Kinds, accumulates: bool) -> str:
    """Names the text of `lines_text`."""
    return f"lines {kinds.key}{' from start' if accumulates else ''}"


def lines_text(kinds: Kinds, accumulates: bool) -> str:
    """The module; its buffers: images, results and kernels. A work item is sixteen filters.

    Where it ``accumulates``, the sums begin with a buffer in front of the kernels.
    """
    w = Writer(kinds, PARAMS)
    b, p, dtype, size = w.b, w.p, kinds.compute, kinds.compute.itemsize
    own, square = b.alloca(dtype, (MOST_COLUMNS + LANES) * LANES), b.alloca(dtype, LANES * LANES)
    with b.loop(0, b.mul(p["zeros"], 2), LANES) as i:
        b.store(w.packed, i, b.const(0, dtype, LANES))
    whole = b.and_(b.sub(p["count"], 1), -LANES)
    ends = whole, b.lane_mask(b.sub(p["count"], whole))
    row_step, step = b.mul(p["dilation_width"], size), b.index(LANES * size)
    with b.loop(b.begin, b.end) as item:
        group, panel = b.split(item, p["filter_blocks"])
        low = b.mul(panel, LANES)
        high = b.smaller(b.add(low, LANES), p["filters"])
        rows = b.mul(p["channels"], p["taps"])
        start = b.mul(b.mul(group, p["filters"]), rows)
        if accumulates:
            load_transposed(w, (low, high), rows, start)
        with b.loop(0, p["columns"], p["block_columns"]) as first:
            end = b.smaller(b.add(first, p["block_columns"]), p["columns"])
            transpose_results(w, own, group, low, (first, end), LANES)
            top, bottom = (b.split(column, p["result_width"])[0] for column in (first, end))
            taps = b.loop(0, b.mul(p["channels"], p["kernel_height"]))
            with taps as part, b.loop(top, bottom) as line:
                left = _line(w, (group, part), line, ends)
                column = b.sub(b.mul(line, p["result_width"]), first)
                row = b.mul(part, p["kernel_width"])
                b.call_rows(
                    left, row_step, b.mul(p["stride_width"], size),
                    b.offset(own, b.mul(column, LANES), dtype), step, p["result_width"],
                    b.offset(w.sums, b.mul(row, LANES), dtype), step, resumes(w, line, accumulates),
                    p["kernel_width"], b.sub(high, low),
                )  # fmt: skip
        store_transposed(w, square, (low, high), rows, b.buffer(2 + accumulates), start)
    return w.finish()


def _line(w: Writer, part: tuple[Val, Val], line: Val, ends: tuple[Val, Val]) -> Val:
    """Emit the copy of the line that a row of the kernel meets at a line of results; gives what is met first.

    ``part`` is the group, and channel and row of the kernel as one number; ``ends`` where the last vector of a copy
    starts, and its mask.
    """
    b, p, kinds = w.b, w.p, w.kinds
    (whole, mask), group = ends, part[0]
    channel, tap = b.split(part[1], p["kernel_height"])
    number, y = b.split(line, p["result_height"])
    y = b.sub(b.add(b.mul(y, p["stride_height"]), b.mul(tap, p["dilation_height"])), p["low_height"])
    inside = w.within(y, "height")
    plane = b.add(b.mul(b.add(b.mul(number, p["groups"]), group), p["channels"]), channel)
    source = b.add(b.mul(b.add(b.mul(plane, p["height"]), y), p["width"]), p["first_column"])
    with b.if_(inside):
        with b.loop(0, whole, LANES) as v:
            values = b.load(b.buffer(0), b.add(source, v), kinds.stored, LANES)
            b.store(w.packed, b.add(p["margin"], v), b.cast(values, kinds.compute))
        values = b.load(b.buffer(0), b.add(source, whole), kinds.stored, LANES, mask)
        b.store(w.packed, b.add(p["margin"], whole), b.cast(values, kinds.compute))
    first = b.choose(inside, p["start"], b.add(p["start"], p["zeros"]))
    return b.offset(w.packed, first, kinds.compute)
