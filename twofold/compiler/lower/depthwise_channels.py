"""The kernel of a convolution of each channel on its own over small planes: sixteen channels are the lanes.

A plane of few positions fills no vectors, and copying its lines takes longer than multiplying them. So sixteen planes
are transposed together: a vector holds one position of sixteen channels, and the products of a window are those of
vectors, whatever the stride. Tables say where the positions of a plane lie in a copy with zeros around them, and where
the windows of the results begin. Sums are transposed back.
"""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.convolution_kernel import Kinds
from twofold.compiler.lower.depthwise_unrolled import Taps
from twofold.compiler.lower.gemm_kernel import Epilogue, KernelBuilder, Store

MOST_SEEN, MOST_GIVEN, MOST_RESULTS = 640, 640, 144
"""Most positions of a copy with its zeros, of a plane of the image, and of the result: larger ones fill lanes."""

_SUMS = 8
"""Sums that go side by side: one waits for itself."""

PARAMS = [
    "images", "groups", "height", "width", "result_height", "result_width", "c_batch", "c_row", "seen_height",
    "seen_width", "top", "left",
]  # fmt: skip
"""The run-time numbers, after those of the epilogue.

Windows see ``seen_height`` lines of ``seen_width`` positions, of which the first lies ``top`` lines and ``left``
positions behind the first one of the image.
"""


def key(kinds: Kinds, taps: Taps, epilogue: Epilogue | None) -> str:
    """Names the text of `text`."""
    names = f"{kinds.compute.name} {kinds.stored.name} {taps.key}"
    return f"depthwise channels {names} {'store' if epilogue is None else epilogue.key}"


def text(kinds: Kinds, taps: Taps, epilogue: Epilogue | None) -> str:
    """The module: image, kernels and result are the buffers after those of the epilogue.

    A work item is sixteen channels of one image; items of the same channels follow each other.
    """
    return _Writer(kinds, taps, epilogue).text()


class _Writer:
    """Writes the kernel."""

    def __init__(self, kinds: Kinds, taps: Taps, epilogue: Epilogue | None) -> None:
        self.b = b = KernelBuilder("depthwise")
        first, buffers = (0, 0) if epilogue is None else (epilogue.params, epilogue.buffers)
        self.p = {name: b.param(first + i) for i, name in enumerate(PARAMS)}
        self.kinds, self.taps = kinds, taps
        if epilogue is None:
            epilogue = Store(kinds.stored, 2, PARAMS.index("c_batch"), PARAMS.index("c_row"))
        self.epilogue = epilogue
        self.image, self.weight = b.buffer(buffers), b.buffer(buffers + 1)
        self.copy = b.alloca(
            kinds.compute, (MOST_SEEN + 1) * LANES
        )  # what no window sees is stored behind it
        self.sums = b.alloca(kinds.compute, MOST_RESULTS * LANES)
        self.square = b.alloca(kinds.compute, LANES * LANES)
        self.factors = b.alloca(kinds.compute, taps.kernel[0] * taps.kernel[1] * LANES)
        self.positions, self.windows = (
            b.alloca(dtypes.int64, MOST_GIVEN),
            b.alloca(dtypes.int64, MOST_RESULTS),
        )

    def text(self) -> str:
        b, p = self.b, self.p
        given, results = b.mul(p["height"], p["width"]), b.mul(p["result_height"], p["result_width"])
        self._prepare()
        with b.loop(b.begin, b.end) as item:
            block, number = b.split(item, p["images"])
            channel = b.mul(block, LANES)
            count = b.smaller(b.sub(p["groups"], channel), LANES)
            with b.if_(b.or_(b.cmp("eq", item, b.begin), b.cmp("eq", number, 0))):
                self._load_factors(channel, count)
            self._copy(b.mul(b.add(b.mul(number, p["groups"]), channel), given), count, given)
            with b.loop(0, results, _SUMS) as first:
                self._sums(first)
            with b.loop(0, results, LANES) as first:
                self._finish(number, (channel, count), first, b.sub(results, first))
        return b.finish()

    def _prepare(self) -> None:
        """Emit zeros, and the tables; behind their ends they name what nobody reads."""
        b, p, (apart_y, apart_x) = self.b, self.p, self.taps.strides
        zeros, unseen = b.const(0, self.kinds.compute, LANES), b.index(MOST_SEEN * LANES)
        with b.loop(0, b.mul(b.mul(p["seen_height"], p["seen_width"]), LANES), LANES) as i:
            b.store(self.copy, i, zeros)
        with b.loop(0, MOST_GIVEN) as i:
            b.store(self.positions, i, unseen)
        with b.loop(0, MOST_RESULTS) as i:
            b.store(self.windows, i, b.index(0))
        with b.loop(0, p["height"]) as y, b.loop(0, p["width"]) as x:
            line, column = b.sub(y, p["top"]), b.sub(x, p["left"])
            inside = b.and_(self._within(line, p["seen_height"]), self._within(column, p["seen_width"]))
            at = b.mul(b.add(b.mul(line, p["seen_width"]), column), LANES)
            b.store(self.positions, b.add(b.mul(y, p["width"]), x), b.choose(inside, at, unseen))
        with b.loop(0, p["result_height"]) as y, b.loop(0, p["result_width"]) as x:
            at = b.add(b.mul(b.mul(y, apart_y), p["seen_width"]), b.mul(x, apart_x))
            b.store(self.windows, b.add(b.mul(y, p["result_width"]), x), b.mul(at, LANES))

    def _within(self, position: Val, size: Val) -> Val:
        return self.b.and_(self.b.cmp("ge", position, 0), self.b.cmp("lt", position, size))

    def _load_factors(self, channel: Val, count: Val) -> None:
        b, taps = self.b, self.taps.kernel[0] * self.taps.kernel[1]
        mask = b.lane_mask(count)
        for tap in range(taps):
            at = b.add(b.mul(channel, taps), tap)
            values = b.load_strided(self.weight, at, b.index(taps), self.kinds.stored, mask)
            b.store(self.factors, tap * LANES, b.cast(values, self.kinds.compute))

    def _copy(self, start: Val, count: Val, given: Val) -> None:
        """Emit the copy of the planes that begin at ``start``, positions becoming lines of sixteen channels."""
        b, kinds = self.b, self.kinds
        last = b.sub(count, 1)
        # beyond the last channel its plane is read again
        rows = [b.add(start, b.mul(b.smaller(last, row), given)) for row in range(LANES)]
        with b.loop(0, given, LANES) as v:
            mask = b.lane_mask(b.sub(given, v))
            lines = [b.load(self.image, b.add(row, v), kinds.stored, LANES, mask) for row in rows]
            for i, values in enumerate(b.transpose([b.cast(line, kinds.compute) for line in lines])):
                at = b.load(self.positions, b.add(v, i), dtypes.int64)
                b.store(self.copy, at, values, settle=False)

    def _sums(self, first: Val) -> None:
        """Emit the sums of some windows, the products of each in the order of the kernel's positions."""
        b, p, dtype, taps = self.b, self.p, self.kinds.compute, self.taps
        starts = [b.load(self.windows, b.add(first, i), dtypes.int64) for i in range(_SUMS)]
        totals = [b.const(0, dtype, LANES)] * _SUMS
        (before_y, _), (before_x, _) = taps.reach(0), taps.reach(1)
        for number in range(taps.kernel[0] * taps.kernel[1]):
            y, x = divmod(number, taps.kernel[1])
            line, column = y * taps.dilations[0] - before_y, x * taps.dilations[1] - before_x
            seen = b.offset(self.copy, b.mul(b.add(b.mul(p["seen_width"], line), column), LANES), dtype)
            factor = b.load(self.factors, number * LANES, dtype, LANES)
            totals = [
                b.fma(factor, b.load(seen, start, dtype, LANES), total)
                for start, total in zip(starts, totals)
            ]
        for i, total in enumerate(totals):
            b.store(self.sums, b.mul(b.add(first, i), LANES), total, settle=False)

    def _finish(self, number: Val, channels: tuple[Val, Val], first: Val, left: Val) -> None:
        """Emit the transposition of sixteen sums of sixteen channels, and what becomes of them."""
        b, dtype = self.b, self.kinds.compute
        lines = [b.load(self.sums, b.mul(b.add(first, i), LANES), dtype, LANES) for i in range(LANES)]
        for i, values in enumerate(b.transpose(lines)):
            b.store(self.square, i * LANES, values, settle=False)
        mask = b.lane_mask(left)
        with b.loop(0, channels[1]) as i:
            total = b.load(self.square, b.mul(i, LANES), dtype, LANES)
            self.epilogue.emit(b, total, b.add(channels[0], i), first, mask, number)
