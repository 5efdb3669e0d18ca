"""The kernel of convolutions over two axes whose windows are read where lines of the image lie.

Positions of a line are the rows of a matrix product, filters its columns. What a position meets at one step of the
contracted index lies at a fixed distance from what it meets at the first one, so a table of these distances takes the
place of collected windows. Lines are copied to the stack, zeros around them, once for all positions of the kernel.
"""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.convolution_kernel import IMAGE, PACKED_BYTES, SUM_BYTES, Kinds
from twofold.compiler.lower.gemm_kernel import Epilogue, KernelBuilder, Store
from twofold.compiler.lower.gemm_tile import tile_functions

MOST_STEPS = 512
"""Most steps of the contracted index between two visits of a sum."""

MOST_FILTERS = 128
"""Most filters of a work item."""

PARAMS = [
    *IMAGE, "c_batch", "c_row", "block_images", "image_blocks", "block_rows", "row_blocks", "block_filters",
    "filter_blocks", "block_channels", "panels", "panel_size", "pitch", "lines", "first_column", "margin",
    "count", "top", "left",
]  # fmt: skip
"""The run-time numbers, after those of the epilogue.

Lines of the copy lie ``pitch`` elements apart, and a block of rows sees ``lines`` of them in each channel. Of each line
of the image ``count`` elements from ``first_column`` on are copied ``margin`` elements behind the start of a line. The
first line that a block sees lies ``top`` behind the one that its first row starts at; the first position of the kernel
meets what lies ``left`` elements behind the foremost one.
"""


def direct_key(kinds: Kinds, epilogue: Epilogue | None) -> str:
    """Names the text of `direct_text`."""
    return f"convolution direct {kinds.key} {'store' if epilogue is None else epilogue.key}"


def direct_text(kinds: Kinds, epilogue: Epilogue | None) -> str:
    """The module: image, kernels as panels and result are the buffers after those of the epilogue.

    A work item is a block of filters of a group, for some rows of one image or all rows of some images.
    """
    return _Writer(kinds, epilogue).text()


class _Writer:
    """Writes the kernel."""

    def __init__(self, kinds: Kinds, epilogue: Epilogue | None) -> None:
        self.kinds = kinds
        self.b = b = KernelBuilder("convolution")
        first_param, buffers = (0, 0) if epilogue is None else (epilogue.params, epilogue.buffers)
        self.p = {name: b.param(first_param + i) for i, name in enumerate(PARAMS)}
        if epilogue is None:
            epilogue = Store(kinds.stored, 2, PARAMS.index("c_batch"), PARAMS.index("c_row"))
        self.epilogue = epilogue
        self.image, self.weight = b.buffer(buffers), b.buffer(buffers + 1)
        dtype = kinds.compute
        self.copy = b.alloca(dtype, PACKED_BYTES // dtype.itemsize + 2 * LANES)
        self.sums = b.alloca(dtype, SUM_BYTES // dtype.itemsize + LANES * MOST_FILTERS)
        self.square = b.alloca(dtype, LANES * LANES)
        self.table = b.alloca(dtypes.int64, MOST_STEPS)

    def text(self) -> str:
        b, p, kinds = self.b, self.p, self.kinds
        self._steps()
        with b.loop(0, b.mul(p["block_channels"], b.mul(p["lines"], p["pitch"])), LANES) as i:
            b.store(self.copy, i, b.const(0, kinds.compute, LANES))
        with b.loop(b.begin, b.end) as item:
            rest, filter_block = b.split(item, p["filter_blocks"])
            rest, row_block = b.split(rest, p["row_blocks"])
            group, image_block = b.split(rest, p["image_blocks"])
            images = self._part(image_block, "block_images", "images")
            rows = self._part(row_block, "block_rows", "result_height")
            filters = self._part(filter_block, "block_filters", "filters")
            self._sums(group, images, rows, filters)
            self._finish(group, images, rows, filters)
        return b.finish() + tile_functions(kinds.tile, kinds.compute, indexed="left")

    def _part(self, block: Val, size: str, whole: str) -> tuple[Val, Val]:
        """The first and the number behind the last of a block."""
        first = self.b.mul(block, self.p[size])
        return first, self.b.smaller(self.b.add(first, self.p[size]), self.p[whole])

    def _steps(self) -> None:
        """Emit the table of the distances in bytes of what is met at the steps of the contracted index."""
        b, p = self.b, self.p
        with b.loop(0, b.mul(p["block_channels"], p["taps"])) as step:
            rest, x = b.split(step, p["kernel_width"])
            channel, y = b.split(rest, p["kernel_height"])
            reach = b.mul(b.sub(p["kernel_height"], 1), p["dilation_height"])
            line = b.sub(b.mul(y, p["dilation_height"]), b.smaller(reach, 0))
            at = b.mul(b.add(b.mul(channel, p["lines"]), line), p["pitch"])
            at = b.add(b.add(at, p["left"]), b.mul(x, p["dilation_width"]))
            b.store(self.table, step, b.mul(at, self.kinds.compute.itemsize))

    def _sums(
        self, group: Val, images: tuple[Val, Val], rows: tuple[Val, Val], filters: tuple[Val, Val]
    ) -> None:
        """Emit the sums of a block: for each position those of all its filters."""
        b, p, dtype, width = self.b, self.p, self.kinds.compute, self.kinds.tile.width
        size = dtype.itemsize
        panel_begin = b.mul(group, p["panels"])
        each = b.mul(b.sub(rows[1], rows[0]), p["result_width"])
        apart = b.mul(p["stride_height"], p["pitch"])
        with b.loop(0, p["channels"], p["block_channels"]) as first, b.loop(*images) as number:
            channels = b.smaller(p["block_channels"], b.sub(p["channels"], first))
            origin = b.add(b.mul(b.add(b.mul(number, p["groups"]), group), p["channels"]), first)
            self._copy(origin, channels, rows[0])
            start, count = b.mul(first, p["taps"]), b.mul(channels, p["taps"])
            with b.loop(filters[0], filters[1], width) as column, b.loop(rows[0], rows[1]) as row:
                panel = b.mul(b.add(panel_begin, b.split(column, b.index(width))[0]), p["panel_size"])
                below = b.sub(row, rows[0])
                at = b.add(b.mul(b.sub(number, images[0]), each), b.mul(below, p["result_width"]))
                target = b.add(b.mul(at, p["block_filters"]), b.sub(column, filters[0]))
                b.call_rows(
                    b.offset(self.copy, b.mul(below, apart), dtype), b.mul(p["stride_width"], size), self.table,
                    b.offset(self.weight, b.add(panel, b.mul(start, width)), dtype), b.index(width * size), count,
                    b.offset(self.sums, target, dtype), b.mul(p["block_filters"], size),
                    b.cmp("gt", first, 0), p["result_width"], b.sub(filters[1], column),
                )  # fmt: skip

    def _copy(self, origin: Val, channels: Val, row: Val) -> None:
        """Emit the copy of the lines that a block of rows sees of some channels."""
        b, p, kinds = self.b, self.p, self.kinds
        top = b.add(b.mul(row, p["stride_height"]), p["top"])
        with b.loop(0, channels) as channel, b.loop(0, p["lines"]) as i:
            line = b.add(top, i)
            inside = b.and_(b.cmp("ge", line, 0), b.cmp("lt", line, p["height"]))
            # a line outside is one of no elements; what is stored behind the last element are zeros
            end = b.choose(inside, p["count"], b.index(0))
            source = b.mul(b.add(b.mul(b.add(origin, channel), p["height"]), line), p["width"])
            source = b.add(source, p["first_column"])
            target = b.add(b.mul(b.add(b.mul(channel, p["lines"]), i), p["pitch"]), p["margin"])
            with b.loop(0, p["count"], LANES) as v:
                mask = b.lane_mask(b.sub(end, v))
                values = b.load(self.image, b.add(source, v), kinds.stored, LANES, mask)
                b.store(self.copy, b.add(target, v), b.cast(values, kinds.compute))

    def _finish(
        self, group: Val, images: tuple[Val, Val], rows: tuple[Val, Val], filters: tuple[Val, Val]
    ) -> None:
        """Emit the transposition of finished sums, positions becoming lanes, and what becomes of them."""
        b, p, dtype = self.b, self.p, self.kinds.compute
        each = b.mul(b.sub(rows[1], rows[0]), p["result_width"])
        column, row = b.mul(rows[0], p["result_width"]), b.mul(group, p["filters"])
        with (
            b.loop(*images) as number,
            b.loop(0, each, LANES) as v,
            b.loop(filters[0], filters[1], LANES) as f,
        ):
            at = b.add(b.mul(b.sub(number, images[0]), each), v)
            corner = b.add(b.mul(at, p["block_filters"]), b.sub(f, filters[0]))
            lines = [
                b.load(self.sums, b.add(corner, b.mul(p["block_filters"], i)), dtype, LANES)
                for i in range(LANES)
            ]
            for i, values in enumerate(b.transpose(lines)):
                b.store(self.square, i * LANES, values)
            mask = b.lane_mask(b.sub(each, v))
            with b.loop(0, b.smaller(LANES, b.sub(filters[1], f))) as i:
                total = b.load(self.square, b.mul(i, LANES), dtype, LANES)
                self.epilogue.emit(b, total, b.add(b.add(row, f), i), b.add(column, v), mask, number)
