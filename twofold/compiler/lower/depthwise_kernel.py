"""The kernels of convolutions that treat each channel on its own, over two spatial axes.

There is no product of matrices in them; what counts is to load each element of the image as rarely as possible.
Lines of the image are copied to the stack with their zeros around, so that no element needs a test later.
"""

from __future__ import annotations

from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.convolution_kernel import IMAGE, PACKED_BYTES, SUM_BYTES, Kinds
from twofold.compiler.lower.gemm_kernel import Epilogue, KernelBuilder, Store

PARAMS = [
    *IMAGE, "c_batch", "c_row", "block_rows", "row_blocks", "block_width", "width_blocks", "line",
    "chain_rows", "chain_width",
]  # fmt: skip
"""The run-time numbers, after those of the epilogue.

Lines of the copy lie ``line`` elements apart; the chains of an iteration lie ``chain_rows`` rows and ``chain_width``
positions apart, one of which is 0.
"""

WEIGHT_PARAMS = [*IMAGE, "block_rows", "row_blocks", "block_width", "width_blocks", "line"]

_CHAINS = 4
"""Sums that are computed side by side, as many as hide the latency of a multiply-add."""

WEIGHT_CHAINS = 9
"""The same for positions of the kernel; a kernel of 3 by 3 takes one iteration."""


class _Writer:
    """What both kernels share: where a block of the result lies, and the copy of what its windows see."""

    def __init__(self, kinds: Kinds, names: list[str], epilogue: Epilogue | None = None) -> None:
        self.kinds = kinds
        self.b = b = KernelBuilder("depthwise")
        self.first_buffer = 0 if epilogue is None else epilogue.buffers
        first_param = 0 if epilogue is None else epilogue.params
        self.p = {name: b.param(first_param + i) for i, name in enumerate(names)}
        self.copy = b.alloca(kinds.compute, PACKED_BYTES // kinds.compute.itemsize + 2 * LANES * LANES)

    def spans(self, rows: Val, width: Val) -> tuple[Val, Val]:
        """How many lines of the image, and positions of a line, the windows of a block see."""
        b, p = self.b, self.p

        def span(count: Val, axis: str) -> Val:
            reach = b.sub(self.reach(axis), b.mul(self.before(axis), 2))
            return b.add(b.add(b.mul(b.sub(count, 1), p[f"stride_{axis}"]), reach), 1)

        return span(rows, "height"), span(width, "width")

    def reach(self, axis: str) -> Val:
        """How far behind the first position of the kernel the last one lies; negative with the dilation."""
        return self.b.mul(self.b.sub(self.p[f"kernel_{axis}"], 1), self.p[f"dilation_{axis}"])

    def before(self, axis: str) -> Val:
        """How far behind the first position of the kernel the foremost one lies: 0 or less."""
        return self.b.smaller(self.reach(axis), 0)

    def corner(self, row: Val, x: Val) -> tuple[Val, Val]:
        """The foremost line and position of the image that the windows of a block see."""
        b, p = self.b, self.p
        line = b.sub(b.mul(row, p["stride_height"]), p["low_height"])
        position = b.sub(b.mul(x, p["stride_width"]), p["low_width"])
        return b.add(line, self.before("height")), b.add(position, self.before("width"))

    def inside(self, first: Val, lanes: Val | None = None) -> Val:
        """Which of 16 positions from ``first`` on lie inside a line of the image."""
        b = self.b
        positions = b.iota(first)
        found = b.and_(b.cmp("ge", positions, 0), b.cmp("lt", positions, b.splat(self.p["width"])))
        return found if lanes is None else b.and_(found, lanes)

    def tap_positions(self, tap: Val) -> tuple[Val, Val]:
        """How many lines and positions behind the foremost one a position of the kernel lies."""
        b, p = self.b, self.p
        y, x = b.split(tap, p["kernel_width"])
        below = b.sub(b.mul(y, p["dilation_height"]), self.before("height"))
        return below, b.sub(b.mul(x, p["dilation_width"]), self.before("width"))

    def block(self, item: Val) -> tuple[Val, Val, Val, Val, Val]:
        """From a work item: what is left of it, and first row, rows, first position and positions of its block."""
        b, p = self.b, self.p
        rest, across = b.split(item, p["width_blocks"])
        rest, down = b.split(rest, p["row_blocks"])
        row, x = b.mul(down, p["block_rows"]), b.mul(across, p["block_width"])
        rows = b.smaller(p["block_rows"], b.sub(p["result_height"], row))
        return rest, row, rows, x, b.smaller(p["block_width"], b.sub(p["result_width"], x))


def forward_key(kinds: Kinds, epilogue: Epilogue | None) -> str:
    """Names the text of `forward_text`."""
    return f"depthwise {kinds.key} {'store' if epilogue is None else epilogue.key}"


def forward_text(kinds: Kinds, epilogue: Epilogue | None) -> str:
    """The module of the convolution: image, kernels and result are the buffers after those of the epilogue.

    A work item is a block of one filter's result in one image.
    """
    w = _Writer(kinds, PARAMS, epilogue)
    b, p = w.b, w.p
    if epilogue is None:
        epilogue = Store(kinds.stored, w.first_buffer + 2, PARAMS.index("c_batch"), PARAMS.index("c_row"))
    with b.loop(b.begin, b.end) as item:
        plane, row, rows, x, width = w.block(item)
        number, filter_ = b.split(plane, b.mul(p["groups"], p["filters"]))
        channel = b.add(b.mul(number, p["groups"]), b.split(filter_, p["filters"])[0])
        _copy_lines(w, channel, (row, rows), (x, width))
        with (
            b.loop(0, rows, b.larger(b.mul(p["chain_rows"], _CHAINS), 1)) as y,
            b.loop(0, width, b.larger(b.mul(p["chain_width"], _CHAINS), LANES)) as v,
        ):
            sums = _sums(w, filter_, y, v)
            for chain, total in enumerate(sums):
                below = b.add(y, b.mul(p["chain_rows"], chain))
                along = b.add(v, b.mul(p["chain_width"], chain))
                left = b.sub(width, along)
                with b.if_(b.and_(b.cmp("lt", below, rows), b.cmp("gt", left, 0))):
                    column = b.add(b.mul(b.add(row, below), p["result_width"]), b.add(x, along))
                    epilogue.emit(b, total, filter_, column, b.lane_mask(left), number)
    return b.finish()


def _copy_lines(w: _Writer, channel: Val, rows: tuple[Val, Val], positions: tuple[Val, Val]) -> None:
    """Emit the copy of what the windows of a block see of a channel."""
    b, p, kinds = w.b, w.p, w.kinds
    lines, length = w.spans(rows[1], positions[1])
    top, left = w.corner(rows[0], positions[0])
    with b.loop(0, lines) as i:
        line = b.add(top, i)
        valid = b.and_(b.cmp("ge", line, 0), b.cmp("lt", line, p["height"]))
        source = b.add(b.mul(b.add(b.mul(channel, p["height"]), line), p["width"]), left)
        target = b.mul(i, p["line"])
        with b.loop(0, length, LANES) as v:
            mask = w.inside(b.add(left, v), b.splat(valid))
            values = b.load(b.buffer(w.first_buffer), b.add(source, v), kinds.stored, LANES, mask)
            b.store(w.copy, b.add(target, v), b.cast(values, kinds.compute))


def _sums(w: _Writer, filter_: Val, y: Val, v: Val) -> list[Val]:
    """Emit the sums of 16 positions for each chain."""
    b, p, kinds = w.b, w.p, w.kinds
    top = b.sub(b.mul(y, p["stride_height"]), w.before("height"))
    start = b.add(b.mul(top, p["line"]), b.sub(b.mul(v, p["stride_width"]), w.before("width")))
    apart = b.add(
        b.mul(b.mul(p["chain_rows"], p["stride_height"]), p["line"]),
        b.mul(p["chain_width"], p["stride_width"]),
    )
    weights = b.mul(filter_, p["taps"])
    zero = b.const(0, kinds.compute, LANES)
    outer = b.loop(0, p["kernel_height"], carry=[zero] * _CHAINS)
    with outer as (ky, before):
        line = b.add(start, b.mul(b.mul(ky, p["dilation_height"]), p["line"]))
        first = b.add(weights, b.mul(ky, p["kernel_width"]))
        inner = b.loop(0, p["kernel_width"], carry=before)
        with inner as (kx, totals):
            factor = b.cast(
                b.load(b.buffer(w.first_buffer + 1), b.add(first, kx), kinds.stored), kinds.compute
            )
            at = b.add(line, b.mul(kx, p["dilation_width"]))
            positions = [b.add(at, b.mul(apart, chain)) for chain in range(_CHAINS)]
            values = [_strided(w, position) for position in positions]
            b.loop_next([b.fma(b.splat(factor), x, total) for x, total in zip(values, totals, strict=True)])
        b.loop_next(inner.results)
    return outer.results


def _strided(w: _Writer, position: Val) -> Val:
    """Emit a load of 16 elements of the copy, a stride apart."""
    b, dtype = w.b, w.kinds.compute
    if w.kinds.stride == 1:
        return b.load(w.copy, position, dtype, LANES)
    if w.kinds.stride == 2:
        return b.evens(
            b.load(w.copy, position, dtype, LANES), b.load(w.copy, b.add(position, LANES), dtype, LANES)
        )
    return b.load_strided(w.copy, position, w.p["stride_width"], dtype)


def weight_key(kinds: Kinds, accumulates: bool) -> str:
    """Names the text of `weight_text`."""
    return f"depthwise weight {kinds.key}{' from start' if accumulates else ''}"


def weight_text(kinds: Kinds, accumulates: bool) -> str:
    """The module of the sums over all positions: images, results and kernels are its buffers.

    A work item is 16 filters, one a lane, so their elements are transposed first. Where it
    ``accumulates``, the sums begin with a buffer in front of the kernels.
    """
    w = _Writer(kinds, WEIGHT_PARAMS)
    b, p, dtype = w.b, w.p, kinds.compute
    sums = b.alloca(dtype, SUM_BYTES // dtype.itemsize)
    transposed = b.alloca(dtype, PACKED_BYTES // dtype.itemsize + LANES * LANES)
    with b.loop(b.begin, b.end) as item:
        first = b.mul(item, LANES)
        count = b.sub(b.mul(p["groups"], p["filters"]), first)
        with b.loop(0, p["taps"]) as tap:
            begin = b.const(0, dtype, LANES)
            if accumulates:
                at = b.add(b.mul(first, p["taps"]), tap)
                held = b.load_strided(b.buffer(2), at, p["taps"], kinds.stored, b.lane_mask(count))
                begin = b.cast(held, dtype)
            b.store(sums, b.mul(tap, LANES), begin)
        blocks = b.mul(p["row_blocks"], p["width_blocks"])
        with b.loop(0, b.mul(p["images"], blocks)) as part:
            number, row, rows, x, width = w.block(part)
            _turn_image(w, (number, first), (row, rows), (x, width))
            with b.loop(0, rows) as y:
                line = b.add(b.mul(b.add(row, y), p["result_width"]), x)
                _transpose_result(w, transposed, (number, first), line, width)
                with b.loop(0, p["taps"], WEIGHT_CHAINS) as tap:
                    _add_line(w, (sums, transposed), tap, y, width)
        with b.loop(0, p["taps"]) as tap:
            total = b.cast(b.load(sums, b.mul(tap, LANES), dtype, LANES), kinds.stored)
            at = b.add(b.mul(first, p["taps"]), tap)
            b.store_strided(b.buffer(2 + accumulates), at, p["taps"], total, b.lane_mask(count))
    return b.finish()


def _filters(w: _Writer, first: Val) -> list[Val]:
    """The 16 filters of a work item; those past the end repeat the last one."""
    b, p = w.b, w.p
    last = b.sub(b.mul(p["groups"], p["filters"]), 1)
    return [b.smaller(b.add(first, lane), last) for lane in range(LANES)]


def _turn_image(
    w: _Writer, position: tuple[Val, Val], rows: tuple[Val, Val], positions: tuple[Val, Val]
) -> None:
    """Emit the copy of what the windows of a block see of 16 channels, which become lanes."""
    b, p, kinds = w.b, w.p, w.kinds
    number, first = position
    lines, length = w.spans(rows[1], positions[1])
    top, left = w.corner(rows[0], positions[0])
    channels = [
        b.mul(b.add(b.mul(number, p["groups"]), b.split(filter_, p["filters"])[0]), p["height"])
        for filter_ in _filters(w, first)
    ]
    with b.loop(0, lines) as i:
        line = b.add(top, i)
        valid = b.and_(b.cmp("ge", line, 0), b.cmp("lt", line, p["height"]))
        with b.loop(0, length, LANES) as v:
            mask = w.inside(b.add(left, v), b.splat(valid))
            vectors = []
            for channel in channels:
                source = b.add(b.mul(b.add(channel, line), p["width"]), b.add(left, v))
                vectors.append(b.cast(b.load(b.buffer(0), source, kinds.stored, LANES, mask), kinds.compute))
            target = b.mul(b.add(b.mul(i, p["line"]), v), LANES)
            for lane, values in enumerate(b.transpose(vectors)):
                b.store(w.copy, b.add(target, lane * LANES), values)


def _transpose_result(w: _Writer, target: Val, position: tuple[Val, Val], line: Val, width: Val) -> None:
    """Emit the transposition of a line of the results of 16 filters."""
    b, p, kinds = w.b, w.p, w.kinds
    number, first = position
    images = b.mul(number, b.mul(p["groups"], p["filters"]))
    starts = [b.add(b.mul(b.add(images, filter_), p["positions"]), line) for filter_ in _filters(w, first)]
    with b.loop(0, width, LANES) as v:
        mask = b.lane_mask(b.sub(width, v))
        loads = [b.load(b.buffer(1), b.add(start, v), kinds.stored, LANES, mask) for start in starts]
        for lane, values in enumerate(b.transpose([b.cast(x, kinds.compute) for x in loads])):
            b.store(target, b.mul(b.add(v, lane), LANES), values)


def _add_line(w: _Writer, memory: tuple[Val, Val], tap: Val, y: Val, width: Val) -> None:
    """Emit what one line adds to the sums of some positions of the kernel."""
    b, p, dtype = w.b, w.p, w.kinds.compute
    sums, transposed = memory
    top = b.mul(y, p["stride_height"])
    taps = [b.smaller(b.add(tap, chain), b.sub(p["taps"], 1)) for chain in range(WEIGHT_CHAINS)]
    starts = []
    for chain in taps:
        below, along = w.tap_positions(chain)
        position = b.add(b.mul(b.add(top, below), p["line"]), along)
        starts.append(b.offset(w.copy, b.mul(position, LANES), dtype))
    step = b.mul(p["stride_width"], LANES)
    before = [b.load(sums, b.mul(chain, LANES), dtype, LANES) for chain in taps]
    loop = b.loop(0, width, carry=before)
    with loop as (x, totals):
        factor = b.load(transposed, b.mul(x, LANES), dtype, LANES)
        values = [b.load(start, b.mul(x, step), dtype, LANES) for start in starts]
        b.loop_next([b.fma(factor, value, total) for value, total in zip(values, totals, strict=True)])
    # a repeated position is stored as often, with the same sum
    for chain, total in zip(taps, loop.results, strict=True):
        b.store(sums, b.mul(chain, LANES), total)
