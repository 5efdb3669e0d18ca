"""The kernel of the gradient of kernels that reads windows where planes of the image lie.

Positions of the kernel, with their channels, are the rows of a matrix product, filters its columns; the sums run over
the positions of results. Lines of the image are copied once, zeros around them: a row begins where its position of the
kernel lies, and all rows take the same steps from there.
"""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.convolution_kernel import (
    RESULT_COLUMNS,
    WEIGHT_PARAMS,
    Kinds,
    Writer,
    load_transposed,
    store_transposed,
    transposed_at,
)
from twofold.compiler.lower.convolution_windows import copy_lines, distances, reach

MOST_ROWS = 512
"""Most rows of a work item."""

PARAMS = [*WEIGHT_PARAMS, "pitch", "plane", "first_column", "margin", "count", "top", "left"]
"""The run-time numbers, see `convolution_planes`; a block of positions is some lines of an image."""


def planes_weight_key(kinds: Kinds, accumulates: bool) -> str:
    """Names the text of `planes_weight_text`."""
    return f"convolution weight planes {kinds.key}{' from start' if accumulates else ''}"


def planes_weight_text(kinds: Kinds, accumulates: bool) -> str:
    """The module; buffers and work items are those of `convolution_kernel.weight_text`, results transposed before."""
    w = Writer(kinds, PARAMS)
    b, p, dtype, size, width = w.b, w.p, kinds.compute, kinds.compute.itemsize, kinds.tile.width
    square = b.alloca(dtype, LANES * LANES)
    starts, steps = b.alloca(dtypes.int64, MOST_ROWS), b.alloca(dtypes.int64, RESULT_COLUMNS)
    result = 2 + accumulates
    _tables(w, starts, steps)
    with b.loop(0, b.mul(p["block_channels"], p["plane"]), LANES) as i:
        b.store(w.packed, i, b.const(0, dtype, LANES))
    with b.loop(b.begin, b.end) as item:
        rest, filter_block = b.split(item, p["filter_blocks"])
        group, channel_block = b.split(rest, p["channel_blocks"])
        c = b.mul(channel_block, p["block_channels"])
        channels = c, b.smaller(b.add(c, p["block_channels"]), p["channels"])
        rows = b.mul(b.sub(channels[1], c), p["taps"])
        low = b.mul(filter_block, p["block_filters"])
        high = b.smaller(b.add(low, p["block_filters"]), p["filters"])
        start = b.mul(b.mul(group, p["filters"]), b.mul(p["channels"], p["taps"]))
        start = b.add(start, b.mul(c, p["taps"]))
        if accumulates:
            load_transposed(w, (low, high), rows, start)
        with b.loop(0, p["images"]) as number, b.loop(0, p["span_blocks"]) as part:
            first = b.mul(part, p["block_columns"])
            count = b.smaller(p["block_columns"], b.sub(p["span"], first))
            origin = b.mul(b.add(b.mul(number, p["groups"]), group), p["channels"])
            line = b.split(first, p["result_width"])[0]
            last = b.sub(b.add(line, b.split(count, p["result_width"])[0]), 1)
            top, bottom = (b.add(b.mul(at, p["stride_height"]), p["top"]) for at in (line, last))
            seen = top, b.add(b.add(bottom, reach(b, p)), 1)
            # the next copy begins below these lines, or in the next image
            plane = b.mul(p["height"], p["width"])
            begin = b.mul(b.mul(line, p["stride_height"]), p["width"])
            image = b.sub(b.mul(b.mul(p["groups"], p["channels"]), plane), begin)
            below = b.mul(b.mul(b.sub(b.add(last, 1), line), p["stride_height"]), p["width"])
            ahead = b.choose(b.cmp("lt", b.add(part, 1), p["span_blocks"]), below, image)
            copied = b.add(origin, c), b.sub(channels[1], c)
            copy_lines(b, p, kinds, (b.buffer(0), w.packed), copied, seen, ahead)
            block = b.add(b.mul(number, p["span_blocks"]), part)
            resume = b.cmp("ge" if accumulates else "gt", block, 0)
            with b.loop(low, high, width) as panel:
                b.call_rows(
                    starts, b.index(8), steps,
                    b.offset(b.buffer(result + 1), transposed_at(w, group, panel, block), dtype), b.index(width * size),
                    count, b.offset(w.sums, b.sub(panel, low), dtype), b.mul(p["block_filters"], size), resume,
                    rows, b.sub(high, panel),
                )  # fmt: skip
        store_transposed(w, square, (low, high), rows, b.buffer(result), start)
    return w.finish("rows")


def _tables(w: Writer, starts: Val, steps: Val) -> None:
    """Emit the tables of the addresses where rows begin and of the steps that all take, in bytes."""
    b, p, size = w.b, w.p, w.kinds.compute.itemsize
    with distances(b, p) as (row, at):
        b.store(starts, row, b.address(b.offset(w.packed, at, w.kinds.compute)))
    with b.loop(0, b.split(p["block_columns"], p["result_width"])[0]) as line:
        at = b.mul(b.mul(line, p["stride_height"]), p["pitch"])
        first = b.mul(line, p["result_width"])
        with b.loop(0, p["result_width"]) as x:
            b.store(steps, b.add(first, x), b.mul(b.add(at, b.mul(x, p["stride_width"])), size))
