"""The kernel of few rows times a transposed matrix, as in a linear layer applied to some samples.

Each column of the product contracts a contiguous run of memory. Squares of 16 by 16 are transposed in registers,
once for all rows, so sixteen columns go on together and each still is one chain in the order of k.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.gemm_kernel import Epilogue, KernelBuilder, Store
from twofold.dtypes import DType
from twofold.ir.sizes import is_symbolic

HEIGHTS = (1, 2, 4, 6, 8)
"""Rows of a work item."""

_CHAINS = 4
"""Sums that go on side by side: one alone waits for its last multiply-add for longer than a transposition takes."""


def panels_of(height: int, columns: int) -> int:
    """Panels of 16 columns of a work item with so many rows, of a product with so many columns."""
    return 2 if 2 * height <= _CHAINS and (is_symbolic(columns) or columns > LANES) else 1


PARAMS = [
    "m", "n", "k", "a_batch", "a_row", "b_batch", "b_column", "c_batch", "c_row", "parts", "row_blocks",
]  # fmt: skip
"""The run-time numbers, after those of the epilogue; strides count elements."""


def vector_key(source: DType, compute: DType, shape: tuple[int, int], epilogue: Epilogue | None) -> str:
    """Names the text of `vector_text`."""
    tail = "store" if epilogue is None else epilogue.key
    return f"matmul {shape[0]} rows {shape[1]} panels {source.name} {compute.name} {tail}"


def vector_text(source: DType, compute: DType, shape: tuple[int, int], epilogue: Epilogue | None) -> str:
    """The module; a work item is as many rows, and panels of 16 columns, as ``shape`` says.

    The rows of the left operand and the columns of the right one are contiguous.
    """
    height, width = shape
    b = KernelBuilder("matmul")
    first_buffer = 0 if epilogue is None else epilogue.buffers
    first_param = 0 if epilogue is None else epilogue.params
    p = {name: b.param(first_param + i) for i, name in enumerate(PARAMS)}
    if epilogue is None:
        position = first_param + PARAMS.index("c_batch"), first_param + PARAMS.index("c_row")
        epilogue = Store(source, first_buffer + 2, *position)
    with b.loop(b.begin, b.end) as item:
        rest, part = b.split(item, p["parts"])
        batch, block = b.split(rest, p["row_blocks"])
        row, first = b.mul(block, height), b.mul(part, LANES * width)
        panels = [_Panel(column, b.lane_mask(b.sub(p["n"], column))) for column in _columns(b, first, width)]
        start = b.offset(b.buffer(first_buffer), b.mul(batch, p["a_batch"]), source)
        # rows past the end repeat the last one; their sums are not stored
        last = b.sub(p["m"], 1)
        rows = [row, *(b.smaller(b.add(row, i), last) for i in range(1, height))]
        left = [b.offset(start, b.mul(each, p["a_row"]), source) for each in rows]
        right = b.offset(b.buffer(first_buffer + 1), b.mul(batch, p["b_batch"]), source)
        totals = _contract(b, p, (left, right), panels, (source, compute))
        for i in range(height):
            with b.if_(b.cmp("lt", b.add(row, i), p["m"])):
                for panel, sums in zip(panels, totals, strict=True):
                    epilogue.emit(b, sums[i], rows[i], panel.column, panel.mask, batch)
    return b.finish()


class _Panel(NamedTuple):
    """Sixteen columns of the product: the first one, and which there are."""

    column: Val
    mask: Val


def _columns(b: KernelBuilder, first: Val, width: int) -> list[Val]:
    return [first, *(b.add(first, LANES * number) for number in range(1, width))]


def _contract(
    b: KernelBuilder,
    p: dict[str, Val],
    pointers: tuple[list[Val], Val],
    panels: list[_Panel],
    kinds: tuple[DType, DType],
) -> list[list[Val]]:
    """For each panel the sums of each row: whole squares, then the last steps of k one by one."""
    (left, right), (source, compute) = pointers, kinds
    last = b.sub(p["n"], 1)
    # columns past the end repeat the last one; their sums are not stored
    starts = [
        [
            b.offset(right, b.mul(b.smaller(b.add(panel.column, j), last), p["b_column"]), source)
            for j in range(LANES)
        ]
        for panel in panels
    ]
    whole, count = b.and_(p["k"], -LANES), len(left)

    def split(carried: list[Val]) -> tuple[list[Val], list[list[Val]]]:
        return carried[:count], [carried[k : k + count] for k in range(count, len(carried), count)]

    def step(rows: list[Val], values: Val, totals: list[Val]) -> list[Val]:
        factors = [b.cast(b.load(row, 0, source), compute) for row in rows]
        return [b.fma(b.splat(x), values, total) for x, total in zip(factors, totals, strict=True)]

    zeros = [b.const(0, compute, LANES)] * (count * len(panels))
    squares = b.loop(0, whole, LANES, carry=[*left, *zeros])
    with squares as (k, carried):
        rows, totals = split(carried)
        for number, lines in enumerate(starts):
            # only the square that comes next: rows a power of two apart share few sets of the cache
            after = starts[(number + 1) % len(starts)], b.add(k, LANES if number + 1 == len(starts) else 0)
            for start in after[0]:
                b.prefetch(start, after[1], source)
            vectors = [b.cast(b.load(start, k, source, LANES), compute) for start in lines]
            for i, values in enumerate(b.transpose(vectors)):
                totals[number] = step([b.offset(row, i, source) for row in rows], values, totals[number])
        b.loop_next([*(b.offset(row, LANES, source) for row in rows), *chain.from_iterable(totals)])
    steps = b.loop(whole, p["k"], carry=squares.results)
    with steps as (k, carried):
        rows, totals = split(carried)
        for number, panel in enumerate(panels):
            where = b.add(b.mul(panel.column, p["b_column"]), k)
            values = b.cast(b.load_strided(right, where, p["b_column"], source, panel.mask), compute)
            totals[number] = step(rows, values, totals[number])
        b.loop_next([*(b.offset(row, 1, source) for row in rows), *chain.from_iterable(totals)])
    return split(steps.results)[1]
