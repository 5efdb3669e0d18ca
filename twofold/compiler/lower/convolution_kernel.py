"""The kernels of convolutions: matrix products whose one operand is collected from an image piece by piece.

A row of the collected matrix is one position of the kernel in one channel, a column one position of the result in one
image of the batch. No more of it exists at a time than fits on the stack beside the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.gemm_kernel import Epilogue, KernelBuilder, Store
from twofold.compiler.lower.gemm_tile import Tile, tile_functions
from twofold.dtypes import DType

PACKED_BYTES = 128 * 1024
"""Room for collected rows."""

SUM_BYTES = 96 * 1024
"""Room for the sums of a work item."""

_CHANNELS = 4
"""Channels that are collected in one iteration of a loop."""

_LATER = 4 * LANES
"""Positions by which results are brought near before they are transposed."""

SLACK = LANES
"""Elements between collected rows: whole vectors are stored over the end of a row."""

IMAGE = [
    "images", "groups", "channels", "filters", "depth", "height", "width", "kernel_depth", "kernel_height",
    "kernel_width", "result_depth", "result_height", "result_width", "stride_depth", "stride_height",
    "stride_width", "low_depth", "low_height", "low_width", "dilation_depth", "dilation_height",
    "dilation_width", "taps", "positions", "columns",
]  # fmt: skip
"""The run-time numbers that say what is computed; channels and filters are those of one group."""

PARAMS = [
    *IMAGE, "c_batch", "c_row", "weight_row", "block_columns", "column_blocks", "block_rows", "row_blocks",
    "block_channels", "block_taps",
]  # fmt: skip
"""The run-time numbers of the product with the kernels, after those of its epilogue."""

WEIGHT_PARAMS = [
    *IMAGE, "block_columns", "block_filters", "filter_blocks", "block_channels", "block_taps",
    "channel_blocks", "tap_blocks", "panels", "span", "span_blocks",
]  # fmt: skip
"""The run-time numbers of the product with the results; ``panels`` is 0 if these were not transposed before.

Positions of results are cut into blocks of ``block_columns``, in spans: ``span`` is the number of all, or of an image.
"""


@dataclass(frozen=True)
class Kinds:
    """What the machine code depends on beside the epilogue; ``stride`` is 1, 2 or 0 for any other."""

    compute: DType
    stored: DType
    tile: Tile
    stride: int

    @property
    def key(self) -> str:
        """Names the text."""
        tile = f"{self.tile.height}x{self.tile.vectors}x{self.tile.lanes}"
        return f"{self.compute.name} {self.stored.name} {tile} stride {self.stride}"


class Block:
    """A part of the collected matrix: channels and kernel positions of its rows, and its columns, as (first, end)."""

    __slots__ = ("channels", "columns", "group", "taps")

    def __init__(
        self, group: Val, channels: tuple[Val, Val], taps: tuple[Val, Val], columns: tuple[Val, Val]
    ) -> None:
        self.group = group
        self.channels = channels
        self.taps = taps
        self.columns = columns


class Writer:
    """What both kernels share."""

    def __init__(self, kinds: Kinds, names: list[str], epilogue: Epilogue | None = None) -> None:
        self.kinds = kinds
        self.b = b = KernelBuilder("convolution")
        self.first_buffer = 0 if epilogue is None else epilogue.buffers
        first_param = 0 if epilogue is None else epilogue.params
        self.p = {name: b.param(first_param + i) for i, name in enumerate(names)}
        dtype = kinds.compute
        self.packed = b.alloca(dtype, PACKED_BYTES // dtype.itemsize + LANES)
        self.sums = b.alloca(dtype, SUM_BYTES // dtype.itemsize + LANES)

    def finish(self, indexed: str = "") -> str:
        """The module."""
        text = self.b.finish()
        return text + tile_functions(self.kinds.tile, self.kinds.compute, indexed=indexed)

    def collect(self, image: Val, block: Block, row_length: Val) -> None:
        """Emit the collection of a block; its rows lie ``row_length`` apart."""
        b, p = self.b, self.p
        first, end = block.columns
        width = p["result_width"]
        start, last = b.split(first, width)[0], b.add(b.split(b.sub(end, 1), width)[0], 1)
        lines = b.loop(start, last, carry=self._split(start))
        with lines as (line, index):
            begin = b.larger(b.mul(line, width), first)
            count = b.sub(b.smaller(b.mul(b.add(line, 1), width), end), begin)
            number, z, y = index
            channel = b.add(
                b.mul(b.add(b.mul(number, p["groups"]), block.group), p["channels"]), block.channels[0]
            )
            x = b.sub(begin, b.mul(line, width))
            at = channel, count, b.sub(begin, first)
            rest, tap_x = b.split(block.taps[0], p["kernel_width"])
            taps = b.loop(*block.taps, carry=[*b.split(rest, p["kernel_height"]), tap_x])
            with taps as (tap, position):
                self._tap(image, block, (tap, *position), (z, y, x), at, row_length)
                b.loop_next(self._following(position, "kernel_height", "kernel_width"))
            b.loop_next(self._following(index, "result_depth", "result_height"))

    def _split(self, line: Val) -> list[Val]:
        """Image, depth and height of a line of the result."""
        rest, y = self.b.split(line, self.p["result_height"])
        return [*self.b.split(rest, self.p["result_depth"]), y]

    def _following(self, index: list[Val], middle: str, inner: str) -> list[Val]:
        """The index after one of three axes, of which the last two have the named sizes: divisions take long."""
        b, p = self.b, self.p
        outer, middle_at, inner_at = index[0], index[1], b.add(index[2], 1)
        ends = b.cmp("eq", inner_at, p[inner])
        inner_at = b.choose(ends, b.index(0), inner_at)
        middle_at = b.choose(ends, b.add(middle_at, 1), middle_at)
        ends = b.cmp("eq", middle_at, p[middle])
        return [b.choose(ends, b.add(outer, 1), outer), b.choose(ends, b.index(0), middle_at), inner_at]

    def _tap(
        self,
        image: Val,
        block: Block,
        tap: tuple[Val, Val, Val, Val],
        index: tuple[Val, Val, Val],
        at: tuple[Val, Val, Val],
        row_length: Val,
    ) -> None:
        """Emit the part of one line of the result and one kernel position, for all channels of the block."""
        b, p = self.b, self.p
        channel, count, column = at
        z, y, x = (
            b.sub(b.add(b.mul(o, p[f"stride_{axis}"]), b.mul(k, p[f"dilation_{axis}"])), p[f"low_{axis}"])
            for axis, o, k in zip(("depth", "height", "width"), index, tap[1:], strict=True)
        )
        inside = b.and_(self.within(z, "depth"), self.within(y, "height"))
        end = b.choose(inside, p["width"], b.index(0))
        plane = b.mul(b.mul(p["depth"], p["height"]), p["width"])
        line = b.mul(b.add(b.mul(z, p["height"]), y), p["width"])
        source = b.add(b.mul(channel, plane), b.add(line, x))
        taps = b.sub(block.taps[1], block.taps[0])
        target = b.add(b.mul(b.sub(tap[0], block.taps[0]), row_length), column)
        step = b.mul(taps, row_length)
        channels = b.sub(block.channels[1], block.channels[0])
        whole = b.and_(channels, -_CHANNELS)
        with b.loop(0, count, LANES) as v:
            along = b.mul(v, p["stride_width"])
            load = self._loader(image, b.add(x, along), end)

            def move(read: Val, written: Val, load: Any = load) -> tuple[Val, Val]:
                b.store(self.packed, written, b.cast(load(read), self.kinds.compute))
                # both positions are carried: multiplying for each vector would take longer than moving it
                return b.add(read, plane), b.add(written, step)

            many = b.loop(0, whole, _CHANNELS, carry=[b.add(source, along), b.add(target, v)])
            with many as (_, (read, written)):
                for _ in range(_CHANNELS):
                    read, written = move(read, written)
                b.loop_next([read, written])
            few = b.loop(whole, channels, carry=many.results)
            with few as (_, (read, written)):
                b.loop_next(move(read, written))

    def within(self, position: Val, axis: str) -> Val:
        """Whether a position lies inside an axis of the image."""
        b = self.b
        return b.and_(b.cmp("ge", position, 0), b.cmp("lt", position, self.p[axis]))

    def _loader(self, image: Val, x: Val, end: Val) -> Callable[[Val], Val]:
        """What loads 16 elements, a stride apart, from a position whose first lies at ``x`` of its line."""
        b, stride, dtype = self.b, self.kinds.stride, self.kinds.stored

        def mask(start: Val) -> Val:
            return b.lane_range(b.sub(0, start), b.sub(end, start))

        if stride == 1:
            inside = mask(x)
            return lambda at: b.load(image, at, dtype, LANES, inside)
        if stride == 2:
            masks = mask(x), mask(b.add(x, LANES))
            return lambda at: b.evens(
                b.load(image, at, dtype, LANES, masks[0]),
                b.load(image, b.add(at, LANES), dtype, LANES, masks[1]),
            )
        step = self.p["stride_width"]
        positions = b.add(b.mul(b.iota(), b.splat(step)), b.splat(x))
        inside = b.and_(b.cmp("ge", positions, 0), b.cmp("lt", positions, b.splat(end)))
        return lambda at: b.load_strided(image, at, step, dtype, inside)

    def images(self, first: Val, end: Val):  # type: ignore[no-untyped-def]
        """A loop over the images that columns [first, end) belong to."""
        b, indices = self.b, self.p["positions"]
        return b.loop(b.split(first, indices)[0], b.add(b.split(b.sub(end, 1), indices)[0], 1))

    def positions(self, number: Val, first: Val, end: Val) -> tuple[Val, Val]:
        """The positions of image ``number`` among columns [first, end)."""
        b, indices = self.b, self.p["positions"]
        start = b.mul(number, indices)
        return b.sub(b.larger(start, first), start), b.sub(b.smaller(b.add(start, indices), end), start)


def forward_key(kinds: Kinds, epilogue: Epilogue | None) -> str:
    """Names the text of `forward_text`."""
    return f"convolution {kinds.key} {'store' if epilogue is None else epilogue.key}"


def forward_text(kinds: Kinds, epilogue: Epilogue | None) -> str:
    """The module of the product with the kernels.

    A work item is a block of filters of a group at a block of positions. Buffers after those of the epilogue:
    image, kernels in the dtype of the arithmetic, result.
    """
    w = Writer(kinds, PARAMS, epilogue)
    b, p, dtype, size = w.b, w.p, kinds.compute, kinds.compute.itemsize
    image, weight = b.buffer(w.first_buffer), b.buffer(w.first_buffer + 1)
    if epilogue is None:
        epilogue = Store(kinds.stored, w.first_buffer + 2, PARAMS.index("c_batch"), PARAMS.index("c_row"))
    with b.loop(b.begin, b.end) as item:
        rest, row_block = b.split(item, p["row_blocks"])
        group, column_block = b.split(rest, p["column_blocks"])
        first = b.mul(column_block, p["block_columns"])
        end = b.smaller(b.add(first, p["block_columns"]), p["columns"])
        row = b.mul(row_block, p["block_rows"])
        rows = b.smaller(p["block_rows"], b.sub(p["filters"], row))
        row = b.add(row, b.mul(group, p["filters"]))
        left = b.offset(weight, b.mul(row, p["weight_row"]), dtype)
        width = kinds.tile.width
        row_length = b.index(width + SLACK)
        with b.loop(0, p["channels"], p["block_channels"]) as c, b.loop(0, p["taps"], p["block_taps"]) as t:
            channels = c, b.smaller(b.add(c, p["block_channels"]), p["channels"])
            taps = t, b.smaller(b.add(t, p["block_taps"]), p["taps"])
            count = b.mul(b.sub(channels[1], c), b.sub(taps[1], t))
            chunk = b.offset(left, b.add(b.mul(c, p["taps"]), t), dtype)
            resume = b.cmp("gt", b.add(c, t), 0)
            # one panel at a time, so that what is collected stays near
            with b.loop(first, end, width) as column:
                stop = b.smaller(b.add(column, width), end)
                w.collect(image, Block(group, channels, taps, (column, stop)), row_length)
                b.call_rows(
                    chunk, b.mul(p["weight_row"], size), b.index(size), w.packed, b.mul(row_length, size), count,
                    b.offset(w.sums, b.sub(column, first), dtype), b.mul(p["block_columns"], size), resume, rows,
                    b.sub(stop, column),
                )  # fmt: skip
        with w.images(first, end) as number:
            low, high = w.positions(number, first, end)
            column = b.sub(b.mul(number, p["positions"]), first)
            with b.loop(0, rows) as i, b.loop(low, high, LANES) as v:
                mask = b.lane_mask(b.sub(high, v))
                at = b.add(b.mul(i, p["block_columns"]), b.add(column, v))
                epilogue.emit(b, b.load(w.sums, at, dtype, LANES), b.add(row, i), v, mask, number)
    return w.finish()


def weight_key(kinds: Kinds, accumulates: bool) -> str:
    """Names the text of `weight_text`."""
    return f"convolution weight {kinds.key}{' from start' if accumulates else ''}"


def weight_text(kinds: Kinds, accumulates: bool) -> str:
    """The module of the product with the results; its buffers: images, results, kernels and transposed results.

    A work item is a block of positions of the kernel (with their channels) for a block of filters; their sums run
    over all positions of all results. Where it ``accumulates``, they begin with a buffer in front of the kernels.
    """
    w = Writer(kinds, WEIGHT_PARAMS)
    b, p, dtype, size, width = w.b, w.p, kinds.compute, kinds.compute.itemsize, kinds.tile.width
    own = b.alloca(dtype, (RESULT_COLUMNS + LANES) * width)
    square = b.alloca(dtype, LANES * LANES)
    row_length = b.add(p["block_columns"], SLACK)
    result = 2 + accumulates
    with b.loop(b.begin, b.end) as item:
        rest, filter_block = b.split(item, p["filter_blocks"])
        rest, tap_block = b.split(rest, p["tap_blocks"])
        group, channel_block = b.split(rest, p["channel_blocks"])
        c, t = b.mul(channel_block, p["block_channels"]), b.mul(tap_block, p["block_taps"])
        channels = c, b.smaller(b.add(c, p["block_channels"]), p["channels"])
        taps = t, b.smaller(b.add(t, p["block_taps"]), p["taps"])
        rows = b.mul(b.sub(channels[1], c), b.sub(taps[1], t))
        low = b.mul(filter_block, p["block_filters"])
        high = b.smaller(b.add(low, p["block_filters"]), p["filters"])
        start = b.add(
            b.mul(b.mul(group, p["filters"]), b.mul(p["channels"], p["taps"])), b.add(b.mul(c, p["taps"]), t)
        )
        if accumulates:
            load_transposed(w, (low, high), rows, start)
        with b.loop(0, p["columns"], p["block_columns"]) as first:
            end = b.smaller(b.add(first, p["block_columns"]), p["columns"])
            w.collect(b.buffer(0), Block(group, channels, taps, (first, end)), row_length)
            with b.loop(low, high, width) as panel:
                before = b.cmp("gt", p["panels"], 0)
                with b.if_(b.not_(before)):
                    transpose_results(w, own, group, panel, (first, end), width)
                block = b.split(first, p["block_columns"])[0]
                ready = b.offset(b.buffer(result + 1), transposed_at(w, group, panel, block), dtype)
                b.call_rows(
                    w.packed, b.mul(row_length, size), b.index(size),
                    b.choose(before, ready, own), b.index(width * size),
                    b.sub(end, first), b.offset(w.sums, b.sub(panel, low), dtype),
                    b.mul(p["block_filters"], size), resumes(w, first, accumulates), rows, b.sub(high, panel),
                )  # fmt: skip
        store_transposed(w, square, (low, high), rows, b.buffer(result), start)
    return w.finish()


RESULT_COLUMNS = 128
"""Most positions of results that a weight kernel takes at a time."""


def transposed_at(w: Writer, group: Val, panel: Val, block: Val) -> Val:
    """Where a block of results lies among the transposed ones, with room behind it."""
    b, p, width = w.b, w.p, w.kinds.tile.width
    blocks = b.mul(p["span_blocks"], b.split(p["columns"], p["span"])[0])
    number = b.add(b.mul(group, p["panels"]), b.split(panel, b.index(width))[0])
    block = b.add(b.mul(number, blocks), block)
    return b.mul(block, b.mul(b.add(p["block_columns"], SLACK), width))


def transpose_key(kinds: Kinds) -> str:
    """Names the text of `transpose_text`."""
    return f"convolution turn {kinds.key}"


def transpose_text(kinds: Kinds) -> str:
    """The module that transposes results once for all work items of `weight_text`, whose numbers it takes.

    A work item is one block of positions of one panel of filters; buffers: results (twice) and their transposed copy.
    """
    w = Writer(kinds, WEIGHT_PARAMS)
    b, p = w.b, w.p
    with b.loop(b.begin, b.end) as item:
        rest, block = b.split(item, b.mul(p["span_blocks"], b.split(p["columns"], p["span"])[0]))
        group, panel = b.split(rest, p["panels"])
        number, part = b.split(block, p["span_blocks"])
        start, panel = b.mul(number, p["span"]), b.mul(panel, kinds.tile.width)
        first = b.add(start, b.mul(part, p["block_columns"]))
        end = b.smaller(b.add(first, p["block_columns"]), b.add(start, p["span"]))
        target = b.offset(b.buffer(2), transposed_at(w, group, panel, block), kinds.compute)
        transpose_results(w, target, group, panel, (first, end), kinds.tile.width)
    return b.finish()


def transpose_results(
    w: Writer, target: Val, group: Val, panel: Val, columns: tuple[Val, Val], width: int
) -> None:
    """Emit the transposition of a block of the result: positions by filters, of which a panel has ``width``."""
    b, p, dtype = w.b, w.p, w.kinds.compute
    last = b.sub(p["filters"], 1)
    with w.images(*columns) as number:
        low, high = w.positions(number, *columns)
        origin = b.mul(b.add(b.mul(number, p["groups"]), group), p["filters"])
        column = b.sub(b.mul(number, p["positions"]), columns[0])
        with (
            b.loop(low, high, LANES) as v,
            b.loop(0, b.smaller(width, b.sub(p["filters"], panel)), LANES) as half,
        ):
            mask = b.lane_mask(b.sub(high, v))
            # what is read four vectors later, in this plane or the next image
            later = b.add(v, _LATER)
            image = b.mul(b.mul(p["groups"], p["filters"]), p["positions"])
            wraps = b.cmp("ge", later, p["positions"])
            later = b.choose(wraps, b.add(b.sub(later, p["positions"]), image), later)
            vectors = []
            for i in range(LANES):
                # filters past the end repeat the last one; their sums are not stored
                number_of = b.add(origin, b.smaller(b.add(b.add(panel, half), i), last))
                values = b.load(
                    b.buffer(1), b.add(b.mul(number_of, p["positions"]), v), w.kinds.stored, LANES, mask
                )
                vectors.append(b.cast(values, dtype))
                b.prefetch(b.buffer(1), b.add(b.mul(number_of, p["positions"]), later), w.kinds.stored)
            at = b.add(b.mul(b.add(column, v), width), half)
            for i, values in enumerate(b.transpose(vectors)):
                b.store(target, b.add(at, i * width), values)


def resumes(w: Writer, position: Val, accumulates: bool) -> Val:
    """Whether sums go on at a position: from those of earlier ones, or from what they begin with."""
    return w.b.cmp("ge" if accumulates else "gt", position, 0)


def load_transposed(w: Writer, filters: tuple[Val, Val], rows: Val, start: Val) -> None:
    """Emit the loads of what sums begin with, the inverse of `store_transposed`."""
    b, p, dtype = w.b, w.p, w.kinds.compute
    length, last = b.mul(p["channels"], p["taps"]), b.sub(filters[1], 1)
    with b.loop(0, rows, LANES) as r, b.loop(filters[0], filters[1], LANES) as f:
        corner, mask = b.add(b.mul(r, p["block_filters"]), b.sub(f, filters[0])), b.lane_mask(b.sub(rows, r))
        lines = []
        for i in range(LANES):
            at = b.add(b.add(start, r), b.mul(b.smaller(b.add(f, i), last), length))
            lines.append(b.cast(b.load(b.buffer(2), at, w.kinds.stored, LANES, mask), dtype))
        for i, values in enumerate(b.transpose(lines)):
            b.store(w.sums, b.add(corner, b.mul(p["block_filters"], i)), values)


def store_transposed(
    w: Writer, square: Val, filters: tuple[Val, Val], rows: Val, result: Val, start: Val
) -> None:
    """Emit the stores of finished sums, whose rows are columns of the result."""
    b, p, dtype = w.b, w.p, w.kinds.compute
    length = b.mul(p["channels"], p["taps"])
    with b.loop(0, rows, LANES) as r, b.loop(filters[0], filters[1], LANES) as f:
        corner = b.add(b.mul(r, p["block_filters"]), b.sub(f, filters[0]))
        lines = [
            b.load(w.sums, b.add(corner, b.mul(p["block_filters"], i)), dtype, LANES) for i in range(LANES)
        ]
        for i, values in enumerate(b.transpose(lines)):
            b.store(square, i * LANES, values)
        mask = b.lane_mask(b.sub(rows, r))
        with b.loop(0, b.smaller(LANES, b.sub(filters[1], f))) as i:
            values = b.cast(b.opened(b.load(square, b.mul(i, LANES), dtype, LANES)), w.kinds.stored)
            at = b.add(b.add(start, r), b.mul(b.add(f, i), length))
            b.store(result, at, values, mask)


def plain_key(source: DType, compute: DType, epilogue: Epilogue | None) -> str:
    """Names the text of `plain_text`."""
    return f"convolution plain {source.name} {compute.name} {'store' if epilogue is None else epilogue.key}"


def plain_text(source: DType, compute: DType, epilogue: Epilogue | None) -> str:
    """The module for integers: a work item is one line of positions of one filter in one image."""
    b = KernelBuilder("convolution")
    first_buffer = 0 if epilogue is None else epilogue.buffers
    p = {name: b.param((0 if epilogue is None else epilogue.params) + i) for i, name in enumerate(PARAMS)}
    if epilogue is None:
        epilogue = Store(source, first_buffer + 2, PARAMS.index("c_batch"), PARAMS.index("c_row"))
    lines = b.mul(p["result_depth"], p["result_height"])
    with b.loop(b.begin, b.end) as item:
        rest, line = b.split(item, lines)
        number, row = b.split(rest, b.mul(p["groups"], p["filters"]))
        z, y = b.split(line, p["result_height"])
        group = b.split(row, p["filters"])[0]
        channel = b.mul(b.add(b.mul(number, p["groups"]), group), p["channels"])
        with b.loop(0, p["result_width"], LANES) as x:
            outer = b.loop(0, p["channels"], carry=[b.const(0, compute, LANES)])
            with outer as (c, (total,)):
                inner = b.loop(0, p["taps"], carry=[total])
                with inner as (tap, (sums,)):
                    weight = b.add(b.mul(b.add(b.mul(row, p["channels"]), c), p["taps"]), tap)
                    factor = b.cast(b.load(b.buffer(first_buffer + 1), weight, source), compute)
                    values = _plain_values(
                        b, p, b.buffer(first_buffer), source, tap, (z, y, x), b.add(channel, c)
                    )
                    product = b.mul(b.splat(factor), b.cast(values, compute))
                    b.loop_next([b.add(sums, product)])
                b.loop_next(inner.results)
            mask = b.lane_mask(b.sub(p["result_width"], x))
            column = b.add(b.mul(line, p["result_width"]), x)
            epilogue.emit(b, outer.results[0], row, column, mask, number)
    return b.finish()


def _plain_values(
    b: KernelBuilder,
    p: dict[str, Val],
    image: Val,
    dtype: DType,
    tap: Val,
    index: tuple[Val, Val, Val],
    channel: Val,
) -> Val:
    """Emit what 16 positions along a line meet at one position of the kernel."""
    rest, tap_x = b.split(tap, p["kernel_width"])
    tap_z, tap_y = b.split(rest, p["kernel_height"])
    z, y, x = (
        b.sub(b.add(b.mul(o, p[f"stride_{axis}"]), b.mul(k, p[f"dilation_{axis}"])), p[f"low_{axis}"])
        for axis, o, k in zip(("depth", "height", "width"), index, (tap_z, tap_y, tap_x))
    )
    positions = b.add(b.mul(b.iota(), b.splat(p["stride_width"])), b.splat(x))
    inside = b.and_(b.cmp("ge", positions, 0), b.cmp("lt", positions, b.splat(p["width"])))
    for position, size in ((z, p["depth"]), (y, p["height"])):
        within = b.and_(b.cmp("ge", position, 0), b.cmp("lt", position, size))
        inside = b.and_(inside, b.splat(within))
    line = b.add(b.mul(b.add(b.mul(channel, p["depth"]), z), p["height"]), y)
    return b.load_strided(image, b.add(b.mul(line, p["width"]), x), p["stride_width"], dtype, inside)
