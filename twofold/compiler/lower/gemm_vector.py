"""The kernel of few rows times a transposed matrix, as in a linear layer applied to some samples.

Each column of the product contracts a contiguous run of memory. Squares of 16 by 16 are transposed in registers,
once for all rows, so sixteen columns go on together and each still is one chain in the order of k.
"""

from __future__ import annotations

from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.gemm_kernel import Epilogue, KernelBuilder, Store
from twofold.dtypes import DType

HEIGHTS = (1, 2, 4, 6, 8)
"""Rows of a work item."""

PARAMS = [
    "m", "n", "k", "a_batch", "a_row", "b_batch", "b_column", "c_batch", "c_row", "panels", "row_blocks",
]  # fmt: skip
"""The run-time numbers, after those of the epilogue; strides count elements."""


def vector_key(source: DType, compute: DType, height: int, epilogue: Epilogue | None) -> str:
    """Names the text of `vector_text`."""
    tail = "store" if epilogue is None else epilogue.key
    return f"matmul {height} rows {source.name} {compute.name} {tail}"


def vector_text(source: DType, compute: DType, height: int, epilogue: Epilogue | None) -> str:
    """The module; a work item is ``height`` rows of 16 columns.

    The rows of the left operand and the columns of the right one are contiguous.
    """
    b = KernelBuilder("matmul")
    first_buffer = 0 if epilogue is None else epilogue.buffers
    first_param = 0 if epilogue is None else epilogue.params
    p = {name: b.param(first_param + i) for i, name in enumerate(PARAMS)}
    if epilogue is None:
        position = first_param + PARAMS.index("c_batch"), first_param + PARAMS.index("c_row")
        epilogue = Store(source, first_buffer + 2, *position)
    with b.loop(b.begin, b.end) as item:
        rest, panel = b.split(item, p["panels"])
        batch, block = b.split(rest, p["row_blocks"])
        row, column = b.mul(block, height), b.mul(panel, LANES)
        mask = b.lane_mask(b.sub(p["n"], column))
        start = b.offset(b.buffer(first_buffer), b.mul(batch, p["a_batch"]), source)
        # rows past the end repeat the last one; their sums are not stored
        last = b.sub(p["m"], 1)
        rows = [row, *(b.smaller(b.add(row, i), last) for i in range(1, height))]
        left = [b.offset(start, b.mul(each, p["a_row"]), source) for each in rows]
        right = b.offset(b.buffer(first_buffer + 1), b.mul(batch, p["b_batch"]), source)
        totals = _contract(b, p, (left, right), column, mask, (source, compute))
        epilogue.emit(b, totals[0], row, column, mask, batch)
        for i in range(1, height):
            with b.if_(b.cmp("lt", b.add(row, i), p["m"])):
                epilogue.emit(b, totals[i], rows[i], column, mask, batch)
    return b.finish()


def _contract(
    b: KernelBuilder,
    p: dict[str, Val],
    pointers: tuple[list[Val], Val],
    column: Val,
    mask: Val,
    kinds: tuple[DType, DType],
) -> list[Val]:
    """The sums of 16 columns of each row: whole squares, then the last steps of k one by one."""
    (left, right), (source, compute) = pointers, kinds
    last = b.sub(p["n"], 1)
    # columns past the end repeat the last one; their sums are not stored
    positions = [b.mul(b.smaller(b.add(column, j), last), p["b_column"]) for j in range(LANES)]
    starts = [b.offset(right, position, source) for position in positions]
    whole = b.and_(p["k"], -LANES)

    def step(rows: list[Val], values: Val, totals: list[Val]) -> list[Val]:
        factors = [b.cast(b.load(row, 0, source), compute) for row in rows]
        return [b.fma(b.splat(x), values, total) for x, total in zip(factors, totals, strict=True)]

    count = len(left)
    squares = b.loop(0, whole, LANES, carry=[*left, *[b.const(0, compute, LANES)] * count])
    with squares as (k, carried):
        rows, totals = carried[:count], carried[count:]
        vectors = [b.cast(b.load(start, k, source, LANES), compute) for start in starts]
        for i, values in enumerate(b.transpose(vectors)):
            totals = step([b.offset(row, i, source) for row in rows], values, totals)
        b.loop_next([*(b.offset(row, LANES, source) for row in rows), *totals])
    steps = b.loop(whole, p["k"], carry=squares.results)
    with steps as (k, carried):
        rows, totals = carried[:count], carried[count:]
        where = b.add(b.mul(column, p["b_column"]), k)
        values = b.cast(b.load_strided(right, where, p["b_column"], source, mask), compute)
        totals = step(rows, values, totals)
        b.loop_next([*(b.offset(row, 1, source) for row in rows), *totals])
    return steps.results[count:]
