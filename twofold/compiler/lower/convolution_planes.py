"""The kernel of convolutions over two axes that reads windows where planes of the image lie.

Filters are the rows of a matrix product, positions its columns, as in `convolution_kernel`, but nothing is collected:
planes are copied once, zeros between their lines, and what a run of positions meets at one step of the contracted index
is a run of the copy, a table of distances away from the first one. Positions run on across the ends of lines; those
between two lines are computed in vain.
"""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.convolution_kernel import IMAGE, PACKED_BYTES, SUM_BYTES, Kinds
from twofold.compiler.lower.gemm_kernel import Epilogue, KernelBuilder, Store
from twofold.compiler.lower.gemm_tile import tile_functions

MOST_STEPS = 512
"""Most steps of the contracted index between two visits of a sum."""

MOST_COLUMNS = 768
"""Most positions of a work item, those between lines counted."""

PARAMS = [
    *IMAGE, "c_batch", "c_row", "weight_row", "block_columns", "column_blocks", "block_rows", "row_blocks",
    "block_channels", "pitch", "plane", "run", "first_column", "margin", "count", "top", "left",
]  # fmt: skip
"""The run-time numbers, after those of the epilogue.

Lines of the copy lie ``pitch`` elements apart, channels ``plane``; an image has ``run`` positions, those between lines
counted. Of each line of the image ``count`` elements from ``first_column`` on are copied ``margin`` elements behind the
start of a line. The first line that a line of results sees lies ``top`` behind it; the first position of the kernel
meets what lies ``left`` elements behind the foremost one.
"""


def planes_key(kinds: Kinds, epilogue: Epilogue | None) -> str:
    """Names the text of `planes_text`."""
    return f"convolution planes {kinds.key} {'store' if epilogue is None else epilogue.key}"


def planes_text(kinds: Kinds, epilogue: Epilogue | None) -> str:
    """The module: image, kernels in the dtype of the arithmetic and result are the buffers after the epilogue's.

    A work item is a block of filters of a group for a block of positions of one image.
    """
    return _Writer(kinds, epilogue).text()


def distance(b: KernelBuilder, p: dict[str, Val], number: Val) -> Val:
    """How many elements behind the start of a copy lies what the first position of results meets.

    ``number`` counts the positions of the kernel in a channel, then channels.
    """
    rest, x = b.split(number, p["kernel_width"])
    channel, y = b.split(rest, p["kernel_height"])
    backwards = b.smaller(b.mul(b.sub(p["kernel_height"], 1), p["dilation_height"]), 0)
    line = b.sub(b.mul(y, p["dilation_height"]), backwards)
    at = b.add(b.mul(channel, p["plane"]), b.mul(line, p["pitch"]))
    return b.add(b.add(at, p["left"]), b.mul(x, p["dilation_width"]))


def reach(b: KernelBuilder, p: dict[str, Val]) -> Val:
    """How many more lines than one a line of results sees."""
    far = b.mul(b.sub(p["kernel_height"], 1), p["dilation_height"])
    return b.larger(far, b.sub(0, far))


def copy_lines(
    b: KernelBuilder,
    p: dict[str, Val],
    kinds: Kinds,
    memory: tuple[Val, Val],
    channels: tuple[Val, Val],
    lines: tuple[Val, Val],
) -> None:
    """Emit the copy of some lines of some channels: the first one in all images, and their number.

    ``memory`` is the image and the copy.
    """
    with b.loop(0, channels[1]) as channel, b.loop(*lines) as line:
        inside = b.and_(b.cmp("ge", line, 0), b.cmp("lt", line, p["height"]))
        # a line outside is one of no elements; what is stored behind the last element are zeros
        end = b.choose(inside, p["count"], b.index(0))
        source = b.mul(b.add(b.mul(b.add(channels[0], channel), p["height"]), line), p["width"])
        source = b.add(source, p["first_column"])
        target = b.add(b.mul(channel, p["plane"]), b.mul(b.sub(line, lines[0]), p["pitch"]))
        target = b.add(target, p["margin"])
        with b.loop(0, p["count"], LANES) as v:
            values = b.load(memory[0], b.add(source, v), kinds.stored, LANES, b.lane_mask(b.sub(end, v)))
            b.store(memory[1], b.add(target, v), b.cast(values, kinds.compute))


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
        dtype, width = kinds.compute, kinds.tile.width
        # vectors are written, and panels read, over the last element
        self.copy = b.alloca(dtype, PACKED_BYTES // dtype.itemsize + 2 * width + LANES)
        self.sums = b.alloca(dtype, SUM_BYTES // dtype.itemsize + LANES)
        self.table = b.alloca(dtypes.int64, MOST_STEPS)

    def text(self) -> str:
        b, p, kinds = self.b, self.p, self.kinds
        self._steps()
        used = b.add(b.mul(p["block_channels"], p["plane"]), 2 * kinds.tile.width)
        with b.loop(0, used, LANES) as i:
            b.store(self.copy, i, b.const(0, kinds.compute, LANES))
        with b.loop(b.begin, b.end) as item:
            rest, row_block = b.split(item, p["row_blocks"])
            rest, block = b.split(rest, p["column_blocks"])
            group, number = b.split(rest, p["images"])
            columns = self._part(block, "block_columns", "run")
            rows = self._part(row_block, "block_rows", "filters")
            last = b.split(b.sub(columns[1], 1), p["pitch"])[0]
            lines = b.split(columns[0], p["pitch"])[0], b.add(last, 1)
            self._sums(group, number, rows, columns, lines)
            self._finish(group, number, rows, columns, lines)
        return b.finish() + tile_functions(kinds.tile, kinds.compute, indexed="right")

    def _part(self, block: Val, size: str, whole: str) -> tuple[Val, Val]:
        """The first and the number behind the last of a block."""
        first = self.b.mul(block, self.p[size])
        return first, self.b.smaller(self.b.add(first, self.p[size]), self.p[whole])

    def _steps(self) -> None:
        """Emit the table of the distances in bytes of what is met at the steps of the contracted index."""
        b, p = self.b, self.p
        with b.loop(0, b.mul(p["block_channels"], p["taps"])) as step:
            b.store(self.table, step, b.mul(distance(b, p, step), self.kinds.compute.itemsize))

    def _sums(
        self, group: Val, number: Val, rows: tuple[Val, Val], columns: tuple[Val, Val], lines: tuple[Val, Val]
    ) -> None:
        """Emit the sums of a block, channels in parts."""
        b, p, dtype, width = self.b, self.p, self.kinds.compute, self.kinds.tile.width
        size = dtype.itemsize
        row = b.add(b.mul(group, p["filters"]), rows[0])
        left = b.offset(self.weight, b.mul(row, p["weight_row"]), dtype)
        low = b.mul(lines[0], p["pitch"])
        with b.loop(0, p["channels"], p["block_channels"]) as first:
            channels = b.smaller(p["block_channels"], b.sub(p["channels"], first))
            origin = b.add(b.mul(b.add(b.mul(number, p["groups"]), group), p["channels"]), first)
            seen = b.add(lines[0], p["top"]), b.add(b.add(lines[1], p["top"]), reach(b, p))
            copy_lines(b, p, self.kinds, (self.image, self.copy), (origin, channels), seen)
            chunk = b.offset(left, b.mul(first, p["taps"]), dtype)
            with b.loop(columns[0], columns[1], width) as column:
                b.call_rows(
                    chunk, b.mul(p["weight_row"], size), b.index(size),
                    b.offset(self.copy, b.sub(column, low), dtype), self.table, b.mul(channels, p["taps"]),
                    b.offset(self.sums, b.sub(column, columns[0]), dtype), b.mul(p["block_columns"], size),
                    b.cmp("gt", first, 0), b.sub(rows[1], rows[0]), b.sub(columns[1], column),
                )  # fmt: skip

    def _finish(
        self, group: Val, number: Val, rows: tuple[Val, Val], columns: tuple[Val, Val], lines: tuple[Val, Val]
    ) -> None:
        """Emit what becomes of finished sums, line by line."""
        b, p, dtype = self.b, self.p, self.kinds.compute
        row = b.add(b.mul(group, p["filters"]), rows[0])
        with b.loop(*lines) as line:
            start = b.mul(line, p["pitch"])
            low = b.larger(b.sub(columns[0], start), 0)
            high = b.smaller(b.sub(columns[1], start), p["result_width"])
            corner = b.sub(start, columns[0])
            with b.loop(0, b.sub(rows[1], rows[0])) as i, b.loop(low, high, LANES) as v:
                at = b.add(b.add(b.mul(i, p["block_columns"]), corner), v)
                total = b.load(self.sums, at, dtype, LANES)
                column = b.add(b.mul(line, p["result_width"]), v)
                self.epilogue.emit(b, total, b.add(row, i), column, b.lane_mask(b.sub(high, v)), number)
