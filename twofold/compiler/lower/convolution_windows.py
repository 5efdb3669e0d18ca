"""What convolution kernels share that read windows in a copy of lines of the image: the copy, and distances in it.

What a window meets at one step of the contracted index lies at a fixed distance in the copy from what it meets at the
first one, so a table of these distances takes the place of collected windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from twofold import dtypes
from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.convolution_kernel import PACKED_BYTES, SUM_BYTES, Kinds
from twofold.compiler.lower.gemm_kernel import Epilogue, KernelBuilder, Store

MOST_STEPS = 512
"""Most steps of the contracted index between two visits of a sum."""


@contextmanager
def distances(b: KernelBuilder, p: dict[str, Val]) -> Iterator[tuple[Val, Val]]:
    """Loops over the steps of a block of channels: their numbers, and how many elements behind the start of a copy lies
    what the first position of results meets.

    Steps count the positions of the kernel in a channel, then channels. Nothing is divided: each piece of work has
    tables of its own.
    """
    backwards = b.smaller(b.mul(b.sub(p["kernel_height"], 1), p["dilation_height"]), 0)
    with b.loop(0, p["block_channels"]) as channel, b.loop(0, p["kernel_height"]) as y:
        line = b.sub(b.mul(y, p["dilation_height"]), backwards)
        at = b.add(b.add(b.mul(channel, p["plane"]), b.mul(line, p["pitch"])), p["left"])
        first = b.mul(b.add(b.mul(channel, p["kernel_height"]), y), p["kernel_width"])
        with b.loop(0, p["kernel_width"]) as x:
            yield b.add(first, x), b.add(at, b.mul(x, p["dilation_width"]))


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
    ahead: Val | None = None,
) -> None:
    """Emit the copy of some lines of some channels: the first one in all images, and their number.

    ``memory`` is the image and the copy; what lies ``ahead`` elements behind is brought near for the next copy.
    """
    whole = b.and_(b.sub(p["count"], 1), -LANES)
    rest = b.lane_mask(b.sub(p["count"], whole))
    zeros = b.const(0, kinds.compute, LANES)
    with b.loop(0, channels[1]) as channel:
        begin = b.mul(b.mul(b.add(channels[0], channel), p["height"]), p["width"])
        begin = b.add(begin, p["first_column"])
        plane = b.add(b.mul(channel, p["plane"]), p["margin"])
        with b.loop(*lines) as line:
            source = b.add(begin, b.mul(line, p["width"]))
            target = b.add(plane, b.mul(b.sub(line, lines[0]), p["pitch"]))

            def copy(v: Val, mask: Val | None = None, source: Val = source, target: Val = target) -> None:
                values = b.load(memory[0], b.add(source, v), kinds.stored, LANES, mask)
                b.store(memory[1], b.add(target, v), b.cast(values, kinds.compute))
                if ahead is not None:
                    b.prefetch(memory[0], b.add(b.add(source, v), ahead), kinds.stored)

            inside = b.if_(b.and_(b.cmp("ge", line, 0), b.cmp("lt", line, p["height"])))
            with inside:
                with b.loop(0, whole, LANES) as v:
                    copy(v)
                # what is stored behind the last element are zeros
                copy(whole, rest)
            with inside.else_(), b.loop(0, p["count"], LANES) as v:
                b.store(memory[1], b.add(target, v), zeros)


class WindowWriter:
    """Writes a kernel whose buffers are image, weight and result, behind those of the epilogue.

    Attributes:
        copy: Memory for the copy of lines, with ``copy_slack`` elements that are written or read behind the last one.
        sums: Memory for sums, with ``sum_slack`` elements that are written behind the last one.
        table: Memory for the distances of the steps.
    """

    def __init__(
        self, kinds: Kinds, epilogue: Epilogue | None, params: Sequence[str], copy_slack: int, sum_slack: int
    ) -> None:
        self.kinds = kinds
        self.b = b = KernelBuilder("convolution")
        first_param, buffers = (0, 0) if epilogue is None else (epilogue.params, epilogue.buffers)
        self.p = {name: b.param(first_param + i) for i, name in enumerate(params)}
        if epilogue is None:
            epilogue = Store(kinds.stored, 2, params.index("c_batch"), params.index("c_row"))
        self.epilogue = epilogue
        self.image, self.weight = b.buffer(buffers), b.buffer(buffers + 1)
        dtype = kinds.compute
        self.copy = b.alloca(dtype, PACKED_BYTES // dtype.itemsize + copy_slack)
        self.sums = b.alloca(dtype, SUM_BYTES // dtype.itemsize + sum_slack)
        self.table = b.alloca(dtypes.int64, MOST_STEPS)

    def part(self, block: Val, size: str, whole: str) -> tuple[Val, Val]:
        """The first and the number behind the last of a block."""
        first = self.b.mul(block, self.p[size])
        return first, self.b.smaller(self.b.add(first, self.p[size]), self.p[whole])

    def prepare(self, slack: int = 0) -> None:
        """Emit the table, and zeros for the copies and ``slack`` elements behind them."""
        b, p, dtype = self.b, self.p, self.kinds.compute
        with distances(b, p) as (step, at):
            b.store(self.table, step, b.mul(at, dtype.itemsize))
        with b.loop(0, b.add(b.mul(p["block_channels"], p["plane"]), slack), LANES) as i:
            b.store(self.copy, i, b.const(0, dtype, LANES))
