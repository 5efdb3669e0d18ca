"""The kernel of few rows times a transposed matrix, as in a linear layer applied to some samples.

Each column of the product contracts a contiguous run of memory. Squares of 16 by 16 are transposed in registers,
once for all rows, so sixteen columns go on together and each still is one chain in the order of k.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from twofold.compiler.lower import target
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


class VectorKernel(NamedTuple):
    """Which kernel: everything that its machine code depends on.

    A work item is ``height`` rows, and ``panels`` of 16 columns. The rows of the left operand and the columns of the
    right one are contiguous. With ``flipped``, the kernel's rows are the columns of the result.
    """

    source: DType
    compute: DType
    height: int
    panels: int
    flipped: bool


def vector_key(kernel: VectorKernel, epilogue: Epilogue | None) -> str:
    """Names the text of `vector_text`."""
    source, compute, height, panels, flipped = kernel
    tail = f"{' flipped' if flipped else ''} {'store' if epilogue is None else epilogue.key}"
    return f"matmul {height} rows {panels} panels {source.name} {compute.name}{tail}"


def vector_text(kernel: VectorKernel, epilogue: Epilogue | None) -> str:
    """The module."""
    source, compute, height, width, flipped = kernel
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
        for panel, sums in zip(panels, totals, strict=True) if flipped else ():
            _emit_columns(b, epilogue, sums, (b.sub(p["n"], panel.column), panel.column, row, p["m"]), batch)
        for i in range(0 if flipped else height):
            with b.if_(b.cmp("lt", b.add(row, i), p["m"])):
                for panel, sums in zip(panels, totals, strict=True):
                    epilogue.emit(b, sums[i], rows[i], panel.column, panel.mask, batch)
    return b.finish()


class _Panel(NamedTuple):
    """Sixteen columns of the product: the first one, and which there are."""

    column: Val
    mask: Val


def _emit_columns(
    b: KernelBuilder,
    epilogue: Epilogue,
    sums: list[Val],
    where: tuple[Val, Val, Val, Val],
    batch: Val,
) -> None:
    """The epilogue of a panel whose lanes are rows of the result; ``where`` is their number, and the first of them.

    Then the first column, and the number of all columns.
    """
    (count, row, column, columns), dtype = where, sums[0].dtype
    assert dtype is not None
    block = b.alloca(dtype, LANES * LANES)
    nothing = b.const(0, dtype, LANES)
    for i, lanes in enumerate(b.transpose([*sums, *[nothing] * (LANES - len(sums))])):
        b.store(block, LANES * i, lanes, settle=False)
    mask = b.lane_mask(b.sub(columns, column))
    with b.loop(0, b.smaller(count, LANES)) as i:
        found = b.opened(b.load(block, b.mul(i, LANES), dtype, LANES))
        epilogue.emit(b, found, b.add(row, i), column, mask, batch)


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

    rows, sums = _squares(b, left, starts, kinds, whole)
    steps = b.loop(whole, p["k"], carry=[*rows, *chain.from_iterable(sums)])
    with steps as (k, carried):
        rows, totals = carried[:count], _in_runs(carried[count:], count)
        for number, panel in enumerate(panels):
            where = b.add(b.mul(panel.column, p["b_column"]), k)
            values = b.cast(b.load_strided(right, where, p["b_column"], source, panel.mask), compute)
            totals[number] = _step(b, rows, values, totals[number], kinds)
        b.loop_next([*(b.offset(row, 1, source) for row in rows), *chain.from_iterable(totals)])
    return _in_runs(steps.results[count:], count)


def _squares(
    b: KernelBuilder, left: list[Val], starts: list[list[Val]], kinds: tuple[DType, DType], whole: Val
) -> tuple[list[Val], list[list[Val]]]:
    """The rows of the left operand behind the whole squares, and for each panel the sums of each row over these.

    A square is as wide as a register: a wider one would not fit all of them.
    """
    source, compute = kinds
    lanes = min(LANES, target.vector_bits() // (8 * compute.itemsize))
    parts, count = range(0, LANES, lanes), len(left)
    zeros = [b.const(0, compute, lanes)] * (count * len(starts) * len(parts))
    loop = b.loop(0, whole, LANES, carry=[*left, *zeros])
    with loop as (k, carried):
        rows, totals = carried[:count], _in_runs(carried[count:], count)
        groups = [lines[first : first + lanes] for lines in starts for first in parts]
        for at, lines in enumerate(groups):
            _prefetch_next(b, groups, at, k, source)
            # a cache line of each is used up at once: rows a power of two apart share few sets of the cache
            for step in parts:
                loads = [b.load(line, b.add(k, step), source, lanes) for line in lines]
                for i, values in enumerate(b.transpose([b.cast(x, compute) for x in loads])):
                    factors = [b.offset(row, step + i, source) for row in rows]
                    totals[at] = _step(b, factors, values, totals[at], kinds)
        b.loop_next([*(b.offset(row, LANES, source) for row in rows), *chain.from_iterable(totals)])
    found = _in_runs(loop.results[count:], count)
    sums = [
        [b.side_by_side([found[at + part][row] for part in range(len(parts))]) for row in range(count)]
        for at in range(0, len(found), len(parts))
    ]
    return loop.results[:count], sums


def _prefetch_next(b: KernelBuilder, groups: list[list[Val]], number: int, k: Val, source: DType) -> None:
    """The next whole square; of smaller groups the second next, as the next one is met before it could arrive."""
    turns, at = divmod(number + (1 if len(groups[0]) == LANES else 2), len(groups))
    for start in groups[at]:
        for line in range(0, LANES, 64 // source.itemsize):
            b.prefetch(start, b.add(k, line + turns * LANES), source)


def _step(
    b: KernelBuilder, rows: list[Val], values: Val, totals: list[Val], kinds: tuple[DType, DType]
) -> list[Val]:
    """One step of the contracted index."""
    factors = [b.cast(b.load(row, 0, kinds[0]), kinds[1]) for row in rows]
    return [b.fma(b.splat(x, values.lanes), values, total) for x, total in zip(factors, totals, strict=True)]


def _in_runs(values: list[Val], count: int) -> list[list[Val]]:
    return [values[k : k + count] for k in range(0, len(values), count)]
