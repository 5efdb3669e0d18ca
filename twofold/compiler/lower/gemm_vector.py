"""The kernel of one row times a transposed matrix, as in a linear layer applied to one sample.

Each column of the product contracts a contiguous run of memory. Squares of 16 by 16 are transposed in registers,
so sixteen columns go on together and each still is one chain in the order of k.
"""

from __future__ import annotations

from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.gemm_kernel import Epilogue, KernelBuilder, Store
from twofold.dtypes import DType

PARAMS = ["m", "n", "k", "a_batch", "a_row", "a_k", "b_batch", "b_column", "c_batch", "c_row", "panels"]
"""The run-time numbers, after those of the epilogue; strides count elements."""


def vector_key(source: DType, compute: DType, epilogue: Epilogue | None) -> str:
    """Names the text of `vector_text`."""
    return f"matmul row {source.name} {compute.name} {'store' if epilogue is None else epilogue.key}"


def vector_text(source: DType, compute: DType, epilogue: Epilogue | None) -> str:
    """The module; a work item is one row of 16 columns. The right operand has contiguous columns."""
    b = KernelBuilder("matmul")
    first_buffer = 0 if epilogue is None else epilogue.buffers
    first_param = 0 if epilogue is None else epilogue.params
    p = {name: b.param(first_param + i) for i, name in enumerate(PARAMS)}
    if epilogue is None:
        position = first_param + PARAMS.index("c_batch"), first_param + PARAMS.index("c_row")
        epilogue = Store(source, first_buffer + 2, *position)
    with b.loop(b.begin, b.end) as item:
        rest, panel = b.split(item, p["panels"])
        batch, row = b.split(rest, p["m"])
        column = b.mul(panel, LANES)
        mask = b.lane_mask(b.sub(p["n"], column))
        at = b.add(b.mul(batch, p["a_batch"]), b.mul(row, p["a_row"]))
        left = b.offset(b.buffer(first_buffer), at, source)
        right = b.offset(b.buffer(first_buffer + 1), b.mul(batch, p["b_batch"]), source)
        acc = _contract(b, p, (left, right), column, mask, (source, compute))
        epilogue.emit(b, acc, row, column, mask, batch)
    return b.finish()


def _contract(
    b: KernelBuilder,
    p: dict[str, Val],
    pointers: tuple[Val, Val],
    column: Val,
    mask: Val,
    kinds: tuple[DType, DType],
) -> Val:
    """The sums of 16 columns: whole squares, then the last steps of k one by one."""
    (left, right), (source, compute) = pointers, kinds
    last = b.sub(p["n"], 1)
    # columns past the end repeat the last one; their sums are not stored
    positions = [b.mul(b.smaller(b.add(column, j), last), p["b_column"]) for j in range(LANES)]
    starts = [b.offset(right, position, source) for position in positions]
    whole = b.and_(p["k"], -LANES)
    squares = b.loop(0, whole, LANES, carry=[b.const(0, compute, LANES)])
    with squares as (k, (total,)):
        vectors = [b.cast(b.load(start, k, source, LANES), compute) for start in starts]
        for i, values in enumerate(b.transpose(vectors)):
            x = b.cast(b.load(left, b.mul(b.add(k, i), p["a_k"]), source), compute)
            total = b.fma(b.splat(x), values, total)
        b.loop_next([total])
    steps = b.loop(whole, p["k"], carry=squares.results)
    with steps as (k, (total,)):
        x = b.splat(b.cast(b.load(left, b.mul(k, p["a_k"]), source), compute))
        where = b.add(b.mul(column, p["b_column"]), k)
        values = b.cast(b.load_strided(right, where, p["b_column"], source, mask), compute)
        b.loop_next([b.fma(x, values, total)])
    return steps.results[0]
