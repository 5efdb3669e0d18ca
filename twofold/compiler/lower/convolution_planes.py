"""The kernel of convolutions over two axes that reads windows where planes of the image lie.

Filters are the rows of a matrix product, positions its columns, as in `convolution_kernel`, but nothing is collected:
planes are copied once, zeros between their lines, and what a run of positions meets at one step of the contracted index
is a run of the copy, a table of distances away from the first one. Positions run on across the ends of lines; those
between two lines are computed in vain.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.convolution_kernel import IMAGE, Kinds
from twofold.compiler.lower.convolution_windows import WindowWriter, copy_lines, reach
from twofold.compiler.lower.gemm_kernel import Epilogue
from twofold.compiler.lower.gemm_tile import tile_functions

MOST_COLUMNS = 768
"""Most positions of a work item, those between lines counted."""

PARAMS = [
    *IMAGE, "c_batch", "c_row", "weight_row", "block_columns", "column_blocks", "panels", "block_rows", "row_blocks",
    "block_channels", "pitch", "line_columns", "apart", "plane", "run", "first_column", "margin", "count", "top",
    "left", "far",
]  # fmt: skip
"""The run-time numbers, after those of the epilogue.

The ``panels`` of a run are divided among ``column_blocks``, none of more than ``block_columns``. Lines of the copy
lie ``pitch`` elements apart, channels ``plane``. An image has ``run`` columns, ``line_columns`` from one line to the
next: ``pitch``, positions between lines counted, or sixteen where each line is one vector. Vectors lie ``apart``
elements apart in the copy. Of each line of the image ``count`` elements from ``first_column`` on are copied ``margin``
elements behind the start of a line. The first line that a line of results sees lies ``top`` behind it; the first
position of the kernel meets what lies ``left`` elements behind the foremost one. Results lie ``far`` (1) or not (0).
"""


def planes_key(kinds: Kinds, epilogue: Epilogue | None) -> str:
    """Names the text of `planes_text`."""
    return f"convolution planes {kinds.key} {'store' if epilogue is None else epilogue.key}"


def planes_text(kinds: Kinds, epilogue: Epilogue | None) -> str:
    """The module: image, kernels in the dtype of the arithmetic and result are the buffers after the epilogue's.

    A work item is a block of filters of a group for a block of positions of one image. Items of the same filters
    follow each other, so that these stay near while images go by.
    """
    return _Writer(kinds, epilogue).text()


class _Writer(WindowWriter):
    """Writes the kernel."""

    def __init__(self, kinds: Kinds, epilogue: Epilogue | None) -> None:
        width = kinds.tile.width
        super().__init__(kinds, epilogue, PARAMS, copy_slack=2 * width + LANES, sum_slack=LANES)

    def text(self) -> str:
        b, p, kinds = self.b, self.p, self.kinds
        self.prepare(2 * kinds.tile.width)  # panels are read over the last element
        with b.loop(b.begin, b.end) as item:
            rest, block = b.split(item, p["column_blocks"])
            rest, number = b.split(rest, p["images"])
            group, row_block = b.split(rest, p["row_blocks"])
            columns = self._columns(block), b.smaller(self._columns(b.add(block, 1)), p["run"])
            rows = self.part(row_block, "block_rows", "filters")
            last = b.split(b.sub(columns[1], 1), p["line_columns"])[0]
            lines = b.split(columns[0], p["line_columns"])[0], b.add(last, 1)
            self._sums(group, number, rows, columns, lines)
        return b.finish() + tile_functions(kinds.tile, kinds.compute, indexed="right")

    def _columns(self, block: Val) -> Val:
        """The first column of a block: blocks differ by one panel at most."""
        panels = self.b.split(self.b.mul(block, self.p["panels"]), self.p["column_blocks"])[0]
        return self.b.mul(panels, self.kinds.tile.width)

    def _sums(
        self, group: Val, number: Val, rows: tuple[Val, Val], columns: tuple[Val, Val], lines: tuple[Val, Val]
    ) -> None:
        """Emit the sums of a block, channels in parts; those of the last part are finished some filters at a time."""
        b, p, dtype, tile = self.b, self.p, self.kinds.compute, self.kinds.tile
        size = dtype.itemsize
        row = b.add(b.mul(group, p["filters"]), rows[0])
        low, count = b.mul(lines[0], p["pitch"]), b.sub(rows[1], rows[0])
        with b.loop(0, p["channels"], p["block_channels"]) as first:
            channels = b.smaller(p["block_channels"], b.sub(p["channels"], first))
            is_last = b.cmp("ge", b.add(first, p["block_channels"]), p["channels"])
            origin = b.add(b.mul(b.add(b.mul(number, p["groups"]), group), p["channels"]), first)
            seen = b.add(lines[0], p["top"]), b.add(b.add(lines[1], p["top"]), reach(b, p))
            ahead = self._ahead(first, columns, lines, is_last)
            copy_lines(b, p, self.kinds, (self.image, self.copy), (origin, channels), seen, ahead)
            # stores of finished sums go on while the next ones are multiplied
            step = b.choose(is_last, b.index(2 * tile.height), count)
            with b.loop(columns[0], columns[1], tile.width) as column, b.loop(0, count, step) as i:
                left = b.add(b.mul(b.add(row, i), p["weight_row"]), b.mul(first, p["taps"]))
                corner = b.add(b.mul(i, p["block_columns"]), b.sub(column, columns[0]))
                some = b.smaller(step, b.sub(count, i))
                begin = b.sub(b.mul(b.split(column, b.index(LANES))[0], p["apart"]), low)
                filters = b.add(row, i), some
                panel = column, b.smaller(b.add(column, tile.width), columns[1])
                with (
                    b.if_(b.and_(is_last, b.cmp("gt", p["far"], 0))),
                    self._vectors(panel) as (_, at, _),
                    b.loop(0, some) as f,
                ):
                    self.epilogue.bring_near(b, b.add(filters[0], f), at, number)
                b.call_rows(
                    b.offset(self.weight, left, dtype), b.mul(p["weight_row"], size),
                    b.offset(self.copy, begin, dtype), self.table, b.mul(channels, p["taps"]),
                    b.offset(self.sums, corner, dtype), b.mul(p["block_columns"], size),
                    b.cmp("gt", first, 0), some, b.sub(columns[1], column),
                    b.mul(p["apart"], size),
                )  # fmt: skip
                with b.if_(is_last):
                    self._finish(b.sub(corner, column), number, filters, panel)

    def _ahead(self, first: Val, columns: tuple[Val, Val], lines: tuple[Val, Val], is_last: Val) -> Val:
        """How many elements behind the channels from ``first`` on the next copy begins.

        That is at the channels after them, else at the lines after these, else at the next image.
        """
        b, p = self.b, self.p
        plane = b.mul(p["height"], p["width"])
        below = b.mul(b.sub(lines[1], lines[0]), p["width"])
        image = b.sub(b.mul(b.mul(p["groups"], p["channels"]), plane), b.mul(lines[0], p["width"]))
        next_item = b.choose(b.cmp("lt", columns[1], p["run"]), below, image)
        following = b.mul(p["block_channels"], plane)
        return b.choose(is_last, b.sub(next_item, b.mul(first, plane)), following)

    @contextmanager
    def _vectors(self, columns: tuple[Val, Val]) -> Iterator[tuple[Val, Val, Val]]:
        """A loop over the vectors of positions of a panel: the column, the position and the mask."""
        b, p = self.b, self.p
        first, last = (b.split(column, p["line_columns"])[0] for column in (columns[0], b.sub(columns[1], 1)))
        with b.loop(first, b.add(last, 1)) as line:
            start = b.mul(line, p["line_columns"])
            low = b.larger(b.sub(columns[0], start), 0)
            high = b.smaller(b.sub(columns[1], start), p["result_width"])
            with b.loop(low, high, LANES) as v:
                position = b.add(b.mul(line, p["result_width"]), v)
                yield b.add(start, v), position, b.lane_mask(b.sub(high, v))

    def _finish(self, corner: Val, number: Val, rows: tuple[Val, Val], columns: tuple[Val, Val]) -> None:
        """Emit what becomes of the finished sums of a panel.

        Args:
            corner: Where the sums of the first filter would lie at column 0.
            number: The image.
            rows: The first filter, and how many there are.
            columns: The columns of the panel.
        """
        b, p = self.b, self.p
        with self._vectors(columns) as (column, position, mask), b.loop(0, rows[1]) as i:
            at = b.add(b.add(corner, column), b.mul(i, p["block_columns"]))
            total = b.load(self.sums, at, self.kinds.compute, LANES)
            self.epilogue.emit(b, total, b.add(rows[0], i), position, mask, number)
