"""Kernels that lay an operand of a matrix product out as panels, converted to the dtype of the arithmetic.

The layout is [batch][panel][k][width] with zeros after the last column; a panel has room for a multiple of 16
steps of k.
"""

from __future__ import annotations

from twofold.compiler.lower.builder import LANES, Val
from twofold.compiler.lower.gemm_kernel import KernelBuilder
from twofold.dtypes import DType

PARAMS = [
    "n",
    "k",
    "batch_stride",
    "k_stride",
    "column_stride",
    "width",
    "panels",
    "k_blocks",
    "block_k",
    "panel_size",
    "groups",
    "group",
]
"""The run-time numbers; strides of the source count elements, as ``panel_size`` does."""


def pack_key(source: DType, compute: DType, way: str) -> str:
    """Names the text of `pack_text`."""
    return f"pack {way} {source.name} {compute.name}"


def pack_text(source: DType, compute: DType, way: str) -> str:
    """The module of a packing kernel; a work item is ``block_k`` steps of ``group`` panels.

    ``way`` says how the source lies: "rows" (columns contiguous), "columns" (k contiguous) or "any".
    """
    b = KernelBuilder("pack")
    p = {name: b.param(i) for i, name in enumerate(PARAMS)}
    with b.loop(b.begin, b.end) as item:
        rest, block = b.split(item, p["k_blocks"])
        batch, group = b.split(rest, p["groups"])
        first = b.mul(block, p["block_k"])
        last = b.smaller(p["k"], b.add(first, p["block_k"]))
        low = b.mul(group, p["group"])
        with b.loop(low, b.smaller(p["panels"], b.add(low, p["group"]))) as panel:
            column = b.mul(panel, p["width"])
            origin = b.add(b.mul(batch, p["batch_stride"]), b.mul(column, p["column_stride"]))
            start = b.offset(b.buffer(0), origin, source)
            position = b.mul(b.add(b.mul(batch, p["panels"]), panel), p["panel_size"])
            pointers = start, b.offset(b.buffer(1), position, compute)
            columns = b.sub(p["n"], column)
            copy = _transposing if way == "columns" else _reading_rows if way == "rows" else _gathering
            copy(b, p, pointers, (first, last), columns, (source, compute))
    return b.finish()


def _reading_rows(
    b: KernelBuilder,
    p: dict[str, Val],
    pointers: tuple[Val, Val],
    span: tuple[Val, Val],
    columns: Val,
    kinds: tuple[DType, DType],
) -> None:
    """Rows of k are copied as they lie."""
    with b.loop(0, p["width"], LANES) as v:
        mask = b.lane_mask(b.sub(columns, v))
        with b.loop(*span) as k:
            values = b.load(pointers[0], b.add(b.mul(k, p["k_stride"]), v), kinds[0], LANES, mask)
            b.store(pointers[1], b.add(b.mul(k, p["width"]), v), b.cast(values, kinds[1]))


def _gathering(
    b: KernelBuilder,
    p: dict[str, Val],
    pointers: tuple[Val, Val],
    span: tuple[Val, Val],
    columns: Val,
    kinds: tuple[DType, DType],
) -> None:
    """Elements are collected one by one."""
    with b.loop(0, p["width"], LANES) as v:
        mask = b.lane_mask(b.sub(columns, v))
        with b.loop(*span) as k:
            where = b.add(b.mul(k, p["k_stride"]), b.mul(v, p["column_stride"]))
            values = b.load_strided(pointers[0], where, p["column_stride"], kinds[0], mask)
            b.store(pointers[1], b.add(b.mul(k, p["width"]), v), b.cast(values, kinds[1]))


def _transposing(
    b: KernelBuilder,
    p: dict[str, Val],
    pointers: tuple[Val, Val],
    span: tuple[Val, Val],
    columns: Val,
    kinds: tuple[DType, DType],
) -> None:
    """Squares of 16 by 16: 16 columns of the panel are read along k and transposed in registers."""
    start, to = pointers
    source, compute = kinds
    with b.loop(0, p["width"], LANES) as v, b.loop(span[0], span[1], LANES) as k:
        inside = b.lane_mask(b.sub(p["k"], k))
        vectors = []
        for i in range(LANES):
            column = b.add(v, i)
            mask = b.and_(inside, b.splat(b.cmp("lt", column, columns)))
            where = b.add(b.mul(column, p["column_stride"]), k)
            vectors.append(b.cast(b.load(start, where, source, LANES, mask), compute))
        for i, values in enumerate(b.transpose(vectors)):
            b.store(to, b.add(b.mul(b.add(k, i), p["width"]), v), values)
