"""The kernel of a convolution of each channel on its own whose windows are small: all products stand in its text.

Lines of the image are copied to the stack, zeros around them; columns and lines a stride apart go to planes of their
own. What one position of the kernel meets at sixteen neighbouring positions of the result is then one load, whatever
the stride. Small planes are computed across the ends of their lines, and the positions between two lines left out
afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.convolution_kernel import PACKED_BYTES, SUM_BYTES, Kinds
from twofold.compiler.lower.gemm_kernel import Epilogue, KernelBuilder, Store

MOST_TAPS = 49

_MANY_TAPS, _LINES = 9, 4
"""From so many taps on, sums of so many lines go side by side: one waits for itself, and loads what they share."""

PARAMS = [
    "groups", "filters", "height", "width", "result_height", "result_width", "c_batch", "c_row", "block_rows",
    "row_blocks", "line", "first", "across", "down", "copied", "first_column", "count", "even", "odd", "top", "lines",
]  # fmt: skip
"""The run-time numbers, after those of the epilogue.

Lines of the copy lie ``line`` elements apart; it has ``copied`` elements, of which it does not use the ``first``. Its
planes of even and odd columns lie ``across`` elements apart, those of even and odd lines ``down``. Of each line of the
image ``count`` elements from ``first_column`` on are copied: the even ones to ``even`` and the odd ones to ``odd``
behind the start of a line, or all to ``even`` where columns do not lie apart. The first line that a block sees lies
``top`` behind the one that its first row starts at, and a whole block sees ``lines``.
"""


@dataclass(frozen=True)
class Taps:
    """What the text depends on: sizes of the kernel, strides and dilations over two axes, and the form.

    ``across`` says that sums are computed across the ends of lines.
    """

    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    across: bool

    @property
    def key(self) -> str:
        """Names the text."""
        numbers = "x".join(map(str, (*self.kernel, *self.strides, *self.dilations)))
        return f"{numbers}{' across' if self.across else ''}"

    def reach(self, axis: int) -> tuple[int, int]:
        """How far before and behind the first position of the kernel its positions lie."""
        reach = (self.kernel[axis] - 1) * self.dilations[axis]
        return min(reach, 0), max(reach, 0)

    def planes(self, axis: int) -> list[tuple[int, int]]:
        """For each position of the kernel the plane that it meets, and how far from its start."""
        before, stride = self.reach(axis)[0], self.strides[axis]
        at = [position * self.dilations[axis] - before for position in range(self.kernel[axis])]
        return [(offset % stride, offset // stride) for offset in at]


def key(kinds: Kinds, taps: Taps, epilogue: Epilogue | None) -> str:
    """Names the text of `text`."""
    names = f"{kinds.compute.name} {kinds.stored.name} {taps.key}"
    return f"unrolled {names} {'store' if epilogue is None else epilogue.key}"


def text(kinds: Kinds, taps: Taps, epilogue: Epilogue | None) -> str:
    """The module: image, kernels and result are the buffers after those of the epilogue.

    A work item is a block of rows of one filter's result in one image.
    """
    b = KernelBuilder("depthwise")
    first = 0 if epilogue is None else epilogue.params
    p = {name: b.param(first + i) for i, name in enumerate(PARAMS)}
    return _Writer(b, p, kinds, taps, epilogue).text()


class _Writer:
    """Writes the kernel."""

    def __init__(
        self, b: KernelBuilder, p: dict[str, Val], kinds: Kinds, taps: Taps, epilogue: Epilogue | None
    ) -> None:
        self.b, self.p, self.kinds, self.taps = b, p, kinds, taps
        buffers = 0 if epilogue is None else epilogue.buffers
        if epilogue is None:
            epilogue = Store(kinds.stored, 2, PARAMS.index("c_batch"), PARAMS.index("c_row"))
        self.epilogue = epilogue
        self.image, self.weight = b.buffer(buffers), b.buffer(buffers + 1)
        size = kinds.compute.itemsize
        self.room = b.alloca(kinds.compute, PACKED_BYTES // size + 5 * LANES)
        self.copy = b.offset(self.room, self.p["first"], kinds.compute)
        if taps.across:
            self.sums = b.alloca(kinds.compute, SUM_BYTES // size + 2 * LANES)
            self.rows = b.alloca(kinds.compute, SUM_BYTES // size + 2 * LANES)

    def text(self) -> str:
        b, p, dtype = self.b, self.p, self.kinds.compute
        zeros = b.const(0, dtype, LANES)
        with b.loop(0, p["copied"], LANES) as i:
            b.store(self.room, i, zeros)
        whole = b.and_(b.sub(p["count"], 1), -self._step)
        masks = self._masks(b.sub(p["count"], whole))
        with b.loop(b.begin, b.end) as item:
            rest, down = b.split(item, p["row_blocks"])
            number, filter_ = b.split(rest, b.mul(p["groups"], p["filters"]))
            channel = b.add(b.mul(number, p["groups"]), b.split(filter_, p["filters"])[0])
            row = b.mul(down, p["block_rows"])
            rows = b.smaller(p["block_rows"], b.sub(p["result_height"], row))
            self._copy(channel, row, (whole, masks))
            weights = b.offset(self.weight, b.mul(filter_, len(self._positions())), self.kinds.stored)
            factors = [
                b.splat(b.cast(b.load(weights, i, self.kinds.stored), dtype))
                for i in range(len(self._positions()))
            ]
            (self._across if self.taps.across else self._along)(factors, number, filter_, (row, rows))
        return b.finish()

    @property
    def _step(self) -> int:
        """Elements of a line that are copied at a time."""
        return LANES * self.taps.strides[1]

    def _masks(self, left: Val) -> list[Val]:
        """The masks of the last loads of a line."""
        return [self.b.lane_mask(self.b.sub(left, k * LANES)) for k in range(self.taps.strides[1])]

    def _copy(self, channel: Val, row: Val, ends: tuple[Val, list[Val]]) -> None:
        """Emit the copy of what the windows of a block see."""
        b, p, apart = self.b, self.p, self.taps.strides[0]
        top = b.add(b.mul(row, apart), p["top"])
        low = b.smaller(b.larger(b.sub(0, top), 0), p["lines"])
        high = b.larger(b.smaller(b.sub(p["height"], top), p["lines"]), low)
        origin = b.add(b.mul(channel, p["height"]), top)
        with b.if_(b.cmp("gt", p["row_blocks"], 1)):
            for begin, end in ((b.index(0), low), (high, p["lines"])):
                with b.loop(begin, end) as line:
                    start = self._line(line)
                    planes = range(self.taps.strides[1])
                    with b.loop(0, p["line"], LANES) as v:
                        for plane in planes:
                            at = b.add(b.add(start, v), b.mul(p["across"], plane))
                            b.store(self.copy, at, b.const(0, self.kinds.compute, LANES))
        with b.loop(low, high) as line:
            source = b.add(b.mul(b.add(origin, line), p["width"]), p["first_column"])
            start = self._line(line)
            with b.loop(0, ends[0], self._step) as v:
                self._piece(b.add(source, v), start, v, None)
            self._piece(b.add(source, ends[0]), start, ends[0], ends[1])

    def _line(self, line: Val) -> Val:
        """Where a line that a block sees starts in the first plane of its columns."""
        b, p = self.b, self.p
        if self.taps.strides[0] == 1:
            return b.mul(line, p["line"])
        plane = b.mul(b.and_(line, 1), p["down"])
        return b.add(plane, b.mul(b.shr(line, 1), p["line"]))

    def _piece(self, source: Val, start: Val, v: Val, masks: list[Val] | None) -> None:
        """Emit the copy of 16 neighbouring positions of each plane of columns."""
        b, p, kinds = self.b, self.p, self.kinds
        parts = [
            b.load(
                self.image, b.add(source, k * LANES), kinds.stored, LANES, None if masks is None else masks[k]
            )
            for k in range(self.taps.strides[1])
        ]
        parts = [b.cast(part, kinds.compute) for part in parts]
        if len(parts) == 1:
            b.store(self.copy, b.add(start, b.add(v, p["even"])), parts[0])
            return
        half = b.shr(v, 1)
        b.store(self.copy, b.add(start, b.add(half, p["even"])), b.evens(*parts))
        b.store(self.copy, b.add(start, b.add(half, p["odd"])), b.odds(*parts))

    def _positions(self) -> list[tuple[tuple[int, int], int, int]]:
        """For each position of the kernel its plane, down and across, and line and position in that."""
        return [
            ((down, across), line, position)
            for down, line in self.taps.planes(0)
            for across, position in self.taps.planes(1)
        ]

    def _plane(self, down: int, across: int) -> Val:
        """Where a plane begins."""
        b, p = self.b, self.p
        return b.add(b.mul(p["down"], down), b.mul(p["across"], across))

    def _sum(self, factors: list[Val], start: Val) -> Val:
        """Emit the sums of 16 positions, which lie ``start`` elements behind the first one."""
        b, p, dtype = self.b, self.p, self.kinds.compute
        total = b.const(0, dtype, LANES)
        for factor, (plane, line, position) in zip(factors, self._positions(), strict=True):
            corner = b.add(self._plane(*plane), b.mul(p["line"], line))
            lines = b.offset(self.copy, b.add(corner, start), dtype)
            total = b.fma(factor, b.load(lines, position, dtype, LANES), total)
        return total

    def _along(self, factors: list[Val], number: Val, filter_: Val, rows: tuple[Val, Val]) -> None:
        """Emit sums line by line, or for several lines side by side."""
        b, p = self.b, self.p

        def emit(y: Val, x: Val, totals: list[Val]) -> None:
            mask = b.lane_mask(b.sub(p["result_width"], x))
            for further, total in enumerate(totals):
                line = b.add(b.add(rows[0], y), further)
                self.epilogue.emit(b, total, filter_, b.add(b.mul(line, p["result_width"]), x), mask, number)

        def one_by_one() -> None:
            with b.loop(0, rows[1]) as y, b.loop(0, p["result_width"], LANES) as x:
                emit(y, x, [self._sum(factors, b.add(b.mul(y, p["line"]), x))])

        if len(factors) < _MANY_TAPS:
            return one_by_one()
        several = b.if_(b.cmp("ge", rows[1], _LINES))
        with several, b.loop(0, rows[1], _LINES) as first:
            # the last lines overlap those before
            y = b.smaller(first, b.sub(rows[1], _LINES))
            with b.loop(0, p["result_width"], LANES) as x:
                emit(y, x, self._sums(factors, b.add(b.mul(y, p["line"]), x)))
        with several.else_():
            one_by_one()
        return None

    def _sums(self, factors: list[Val], start: Val) -> list[Val]:
        """Emit the sums of 16 positions of several lines, which share loads; each chain is that of ``_sum``."""
        b, p, dtype = self.b, self.p, self.kinds.compute
        totals = [b.const(0, dtype, LANES)] * _LINES
        apart, across = self.taps.strides[0], self.taps.planes(1)
        lines = [line * apart + down for down, line in self.taps.planes(0)]
        seen = sorted(
            {line + apart * further for line in lines for further in range(_LINES)},
            reverse=lines[0] > lines[-1],
        )
        for line in seen:
            at = b.offset(self.copy, b.add(b.mul(p["line"], line // apart), start), dtype)
            for column, (plane, position) in enumerate(across):
                where = b.offset(at, self._plane(line % apart, plane), dtype)
                values = b.load(where, position, dtype, LANES)
                for further in range(_LINES):
                    if line - apart * further in lines:
                        factor = factors[lines.index(line - apart * further) * len(across) + column]
                        totals[further] = b.fma(factor, values, totals[further])
        return totals

    def _across(self, factors: list[Val], number: Val, filter_: Val, rows: tuple[Val, Val]) -> None:
        """Emit sums across the ends of lines, then what lies between two lines is left out."""
        b, p, dtype, width = self.b, self.p, self.kinds.compute, self.p["result_width"]
        with b.loop(0, b.mul(rows[1], p["line"]), LANES) as i:
            b.store(self.sums, i, self._sum(factors, i))
        with b.loop(0, rows[1]) as y, b.loop(0, width, LANES) as x:
            values = b.load(self.sums, b.add(b.mul(y, p["line"]), x), dtype, LANES)
            b.store(self.rows, b.add(b.mul(y, width), x), values)
        count, first = b.mul(rows[1], width), b.mul(rows[0], width)
        with b.loop(0, count, LANES) as i:
            mask = b.lane_mask(b.sub(count, i))
            self.epilogue.emit(b, b.load(self.rows, i, dtype, LANES), filter_, b.add(first, i), mask, number)
