"""The kernel of convolutions over two axes whose windows are read where lines of the image lie.

Positions of a line are the rows of a matrix product, filters its columns. What a position meets at one step of the
contracted index lies at a fixed distance from what it meets at the first one, so a table of these distances takes the
place of collected windows. Lines are copied to the stack, zeros around them, once for all positions of the kernel.
"""

from __future__ import annotations

from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.convolution_kernel import IMAGE, Kinds
from twofold.compiler.lower.convolution_windows import WindowWriter, copy_lines
from twofold.compiler.lower.gemm_kernel import Epilogue
from twofold.compiler.lower.gemm_tile import tile_functions

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

    A work item is a block of filters of a group, for some rows of one image or all rows of some images. Items of the
    same filters follow each other, so that threads differ by one at most.
    """
    return _Writer(kinds, epilogue).text()


class _Writer(WindowWriter):
    """Writes the kernel."""

    def __init__(self, kinds: Kinds, epilogue: Epilogue | None) -> None:
        super().__init__(kinds, epilogue, PARAMS, copy_slack=2 * LANES, sum_slack=LANES * MOST_FILTERS)
        self.square = self.b.alloca(kinds.compute, LANES * LANES)
        self.p["plane"] = self.b.mul(self.p["lines"], self.p["pitch"])

    def text(self) -> str:
        b, p, kinds = self.b, self.p, self.kinds
        self.prepare()
        with b.loop(b.begin, b.end) as item:
            rest, row_block = b.split(item, p["row_blocks"])
            rest, image_block = b.split(rest, p["image_blocks"])
            group, filter_block = b.split(rest, p["filter_blocks"])
            images = self.part(image_block, "block_images", "images")
            rows = self.part(row_block, "block_rows", "result_height")
            filters = self.part(filter_block, "block_filters", "filters")
            self._sums(group, images, rows, filters)
            self._finish(group, images, rows, filters)
        return b.finish() + tile_functions(kinds.tile, kinds.compute, indexed="left")

    def _sums(
        self, group: Val, images: tuple[Val, Val], rows: tuple[Val, Val], filters: tuple[Val, Val]
    ) -> None:
        """Emit the sums of a block: for each position those of all its filters."""
        b, p, dtype, width = self.b, self.p, self.kinds.compute, self.kinds.tile.width
        size = dtype.itemsize
        panel_begin = b.mul(group, p["panels"])
        each = b.mul(b.sub(rows[1], rows[0]), p["result_width"])
        apart = b.mul(p["stride_height"], p["pitch"])
        top = b.add(b.mul(rows[0], p["stride_height"]), p["top"])
        seen = top, b.add(top, p["lines"])
        with b.loop(0, p["channels"], p["block_channels"]) as first, b.loop(*images) as number:
            channels = b.smaller(p["block_channels"], b.sub(p["channels"], first))
            origin = b.add(b.mul(b.add(b.mul(number, p["groups"]), group), p["channels"]), first)
            copy_lines(b, p, self.kinds, (self.image, self.copy), (origin, channels), seen)
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
