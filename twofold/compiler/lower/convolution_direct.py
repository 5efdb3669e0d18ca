"""The kernel of convolutions over two axes whose windows are read where lines of the image lie.

Positions of a line are the rows of a matrix product, filters its columns. What a position meets at one step of the
contracted index lies at a fixed distance from what it meets at the first one, so a table of these distances takes the
place of collected windows. Lines are copied to the stack, zeros around them, once for all positions of the kernel.
"""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.convolution_kernel import IMAGE, SUM_BYTES, Kinds
from twofold.compiler.lower.convolution_windows import WindowWriter, copy_lines
from twofold.compiler.lower.gemm_kernel import Epilogue
from twofold.compiler.lower.gemm_tile import tile_functions

MOST_FILTERS = 128
"""Most filters of a work item."""

_FINISHED = LANES
"""Positions that are finished at a time: their stores go on while the next ones are multiplied."""

PARAMS = [
    *IMAGE, "c_batch", "c_row", "block_images", "image_blocks", "block_rows", "row_blocks", "block_filters",
    "filter_blocks", "block_channels", "panels", "panel_size", "pitch", "lines", "first_column", "margin",
    "count", "top", "left", "far",
]  # fmt: skip
"""The run-time numbers, after those of the epilogue.

Lines of the copy lie ``pitch`` elements apart, and a block of rows sees ``lines`` of them in each channel. Of each line
of the image ``count`` elements from ``first_column`` on are copied ``margin`` elements behind the start of a line. The
first line that a block sees lies ``top`` behind the one that its first row starts at; the first position of the kernel
meets what lies ``left`` elements behind the foremost one. Results lie ``far`` (1) or not (0).
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
        # sums of the positions of a block have room, each at least of one vector of filters
        self.starts = self.b.alloca(dtypes.int64, SUM_BYTES // kinds.compute.itemsize // LANES)
        self.p["plane"] = self.b.mul(self.p["lines"], self.p["pitch"])

    def text(self) -> str:
        b, p, kinds = self.b, self.p, self.kinds
        self.prepare()
        self._starts()
        with b.loop(b.begin, b.end) as item:
            rest, row_block = b.split(item, p["row_blocks"])
            rest, image_block = b.split(rest, p["image_blocks"])
            group, filter_block = b.split(rest, p["filter_blocks"])
            images = self.part(image_block, "block_images", "images")
            rows = self.part(row_block, "block_rows", "result_height")
            filters = self.part(filter_block, "block_filters", "filters")
            self._sums(group, images, rows, filters)
        return b.finish() + tile_functions(kinds.tile, kinds.compute, indexed="rows")

    def _starts(self) -> None:
        """Emit the table of the addresses of what the positions of a block meet first."""
        b, p = self.b, self.p
        with b.loop(0, p["block_rows"]) as row, b.loop(0, p["result_width"]) as x:
            at = b.add(b.mul(b.mul(row, p["stride_height"]), p["pitch"]), b.mul(x, p["stride_width"]))
            address = b.address(b.offset(self.copy, at, self.kinds.compute))
            b.store(self.starts, b.add(b.mul(row, p["result_width"]), x), address)

    def _sums(
        self, group: Val, images: tuple[Val, Val], rows: tuple[Val, Val], filters: tuple[Val, Val]
    ) -> None:
        """Emit the sums of a block: for each position those of all its filters."""
        b, p, dtype, width = self.b, self.p, self.kinds.compute, self.kinds.tile.width
        panel_begin = b.mul(group, p["panels"])
        each = b.mul(b.sub(rows[1], rows[0]), p["result_width"])
        top = b.add(b.mul(rows[0], p["stride_height"]), p["top"])
        seen = top, b.add(top, p["lines"])
        with b.loop(0, p["channels"], p["block_channels"]) as first, b.loop(*images) as number:
            channels = b.smaller(p["block_channels"], b.sub(p["channels"], first))
            is_last = b.cmp("ge", b.add(first, p["block_channels"]), p["channels"])
            origin = b.add(b.mul(b.add(b.mul(number, p["groups"]), group), p["channels"]), first)
            ahead = self._ahead(first, number, images, is_last)
            copy_lines(b, p, self.kinds, (self.image, self.copy), (origin, channels), seen, ahead)
            start, count = b.mul(first, p["taps"]), b.mul(channels, p["taps"])
            step = b.choose(is_last, b.index(_FINISHED), each)
            with b.loop(filters[0], filters[1], width) as column, b.loop(0, each, step) as position:
                panel = b.mul(b.add(panel_begin, b.split(column, b.index(width))[0]), p["panel_size"])
                at = b.add(b.mul(b.sub(number, images[0]), each), position)
                target = b.add(b.mul(at, p["block_filters"]), b.sub(column, filters[0]))
                some = column, b.smaller(b.add(column, width), filters[1])
                position_of = b.add(b.mul(rows[0], p["result_width"]), position)
                row = b.mul(group, p["filters"])
                with b.if_(b.and_(is_last, b.cmp("gt", p["far"], 0))), b.loop(*some) as f:
                    self.epilogue.bring_near(b, b.add(row, f), position_of, number)
                b.call_rows(
                    b.offset(self.starts, position, dtypes.int64), b.index(8), self.table,
                    b.offset(self.weight, b.add(panel, b.mul(start, width)), dtype), b.index(width * dtype.itemsize),
                    count, b.offset(self.sums, target, dtype), b.mul(p["block_filters"], dtype.itemsize),
                    b.cmp("gt", first, 0), b.smaller(step, b.sub(each, position)), b.sub(filters[1], column),
                )  # fmt: skip
                with b.if_(is_last):
                    self._finish(target, row, some, position_of, b.sub(each, position), number)

    def _ahead(self, first: Val, number: Val, images: tuple[Val, Val], is_last: Val) -> Val:
        """How many elements behind the channels from ``first`` on the next copy begins.

        That is in the next image of the item, else at the channels after them, else at the rows after these.
        """
        b, p = self.b, self.p
        plane = b.mul(p["height"], p["width"])
        image = b.mul(b.mul(p["groups"], p["channels"]), plane)
        below = b.mul(b.mul(p["block_rows"], p["stride_height"]), p["width"])
        following = b.choose(is_last, b.sub(below, b.mul(first, plane)), b.mul(p["block_channels"], plane))
        back = b.mul(b.sub(number, images[0]), image)
        return b.choose(b.cmp("lt", b.add(number, 1), images[1]), image, b.sub(following, back))

    def _finish(
        self, corner: Val, row: Val, filters: tuple[Val, Val], column: Val, positions: Val, number: Val
    ) -> None:
        """Emit the transposition of finished sums, positions becoming lanes, and what becomes of them.

        Args:
            corner: Where the sums of the first position and filter lie.
            row: The first filter of the group.
            filters: The first filter, and the one behind the last.
            column: The first position.
            positions: How many follow from there on.
            number: The image.
        """
        b, p, dtype = self.b, self.p, self.kinds.compute
        mask = b.lane_mask(positions)
        with b.loop(filters[0], filters[1], LANES) as f:
            at = b.add(corner, b.sub(f, filters[0]))
            lines = [
                b.load(self.sums, b.add(at, b.mul(p["block_filters"], i)), dtype, LANES) for i in range(LANES)
            ]
            for i, values in enumerate(b.transpose(lines)):
                b.store(self.square, i * LANES, values)
            with b.loop(0, b.smaller(LANES, b.sub(filters[1], f))) as i:
                total = b.load(self.square, b.mul(i, LANES), dtype, LANES)
                self.epilogue.emit(b, total, b.add(b.add(row, f), i), column, mask, number)
