"""The inner tiles of matrix products: registers full of accumulators, one fused multiply-add chain each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from twofold.compiler.lower.memory import magnitude_dtype
from twofold.compiler.lower.values import LANES, SHARED, literal, llvm_type, suffix
from twofold.dtypes import DType


@dataclass(frozen=True)
class Tile:
    """The largest block of accumulators: ``height`` rows of ``vectors`` vectors of ``lanes`` elements.

    >>> Tile(12, 2, 16).width
    32
    """

    height: int
    vectors: int
    lanes: int

    @property
    def width(self) -> int:
        """Columns of a tile, a multiple of 16 but for a narrow one."""
        return self.vectors * self.lanes

    @property
    def narrow(self) -> tuple[Tile, ...]:
        """The tiles for columns that fill fewer vectors, narrowest first."""
        rows = min(self.height, 8) if self.vectors == 2 or self.height < 4 else 8
        return tuple(Tile(rows, v, self.lanes) for v in range(1, self.vectors))


TALL = {512: {4: Tile(6, 4, 16), 8: Tile(6, 4, 8)}, 256: {4: Tile(6, 2, 8), 8: Tile(2, 4, 4)}}
"""By vector bits and bytes of an element: the tile for many rows; 24 of 32 or 12 of 16 registers.

Six rows of four vectors load ten times for 24 multiply-adds, and the addresses of six rows stay in registers; 12 rows
of two load 14 times, with addresses on the stack. Where two multiply-adds start in a cycle, or another thread shares
the core, that decides: 0.78 and 0.62 of the peak on Ice Lake, the same on Zen 4.
"""

SQUARE = {512: {4: Tile(8, 3, 16), 8: Tile(12, 2, 8)}, 256: {4: Tile(6, 2, 8), 8: Tile(2, 4, 4)}}
"""The tile for convolutions, whose operands are both near.

It loads 11 times for 24 multiply-adds, 12 rows of two vectors 14 times. Some processors broadcast one element a cycle
while they start two multiply-adds (Ice Lake: 0.99 and 0.8 of the peak).
"""

WIDE = {512: {4: Tile(3, 8, 16), 8: Tile(3, 8, 8)}, 256: {4: Tile(1, 8, 8), 8: Tile(1, 8, 4)}}
"""The tile for very few rows, where reading the right operand in long runs is all that counts."""


def heights(tile: Tile) -> tuple[int, ...]:
    """The tile heights that have machine code; every number of rows is made of them.

    Few rows already hide the latency of a multiply-add, so not all heights need code.

    >>> heights(Tile(12, 2, 16)), heights(Tile(6, 4, 16))
    ((1, 2, 3, 4, 5, 12), (1, 2, 3, 4, 6))
    """
    if tile.vectors == 1:
        return tuple(sorted({1, min(tile.height, 4), tile.height}))
    if tile.height == 8:
        return 1, 2, 4, 8
    few = 4 if tile.vectors > 2 else 5
    return tuple(sorted({*range(1, min(tile.height, few) + 1), tile.height}))


@lru_cache
def next_height(tile: Tile) -> tuple[int, ...]:
    """Which height to take next, by the number of rows left below twice the largest height.

    >>> [next_height(Tile(12, 2, 16))[rows] for rows in (4, 13, 12, 23)]
    [4, 5, 12, 5]
    """
    # A multiply-add takes four cycles and two start in each, so fewer than eight chains leave cycles empty.
    chains = 8
    cost = [0.0]
    choice = [0]
    for rows in range(1, 2 * tile.height):
        options = [
            (max(h * tile.vectors, chains) * 1.03 + 1 + cost[rows - h], -h)
            for h in heights(tile)
            if h <= rows
        ]
        best, height = min(options)
        cost.append(best)
        choice.append(-height)
    return tuple(choice)


@lru_cache
def last_rows_work(tile: Tile) -> tuple[int, ...]:
    """Chains of the tiles that the last rows take, by the number of rows below twice the largest height."""
    table = next_height(tile)
    work = [0]
    for rows in range(1, len(table)):
        work.append(max(table[rows] * tile.vectors, 8) + work[rows - table[rows]])
    return tuple(work)


def _loads(tile: Tile, height: int, kind: str, itemsize: int, indexed: str) -> list[str]:
    """Addresses of the rows of the result, and the accumulators as an earlier block left them."""
    lines = []
    for i in range(1, height):
        lines.append(f"  %c{i} = getelementptr i8, ptr %c{i - 1}, i64 %c_step")
    for i in range(height) if indexed == "rows" else ():
        lines.append(f"  %entry{i} = getelementptr ptr, ptr %a, i64 {i}")
        lines.append(f"  %a{i} = load ptr, ptr %entry{i}, align 8")
    for i in range(1, height) if indexed != "rows" else ():
        lines.append(f"  %row{i} = getelementptr i8, ptr %a{i - 1}, i64 %a_row")
        # opaque, else loop strength reduction makes one serial chain of additions of the row addresses
        lines.append(f"  %a{i} = freeze ptr %row{i}")
    lines += ["  br i1 %resume, label %load, label %head", "load:"]
    for i in range(height):
        for v in range(tile.vectors):
            lines.append(f"  %at{i}_{v} = getelementptr i8, ptr %c{i}, i64 {v * tile.lanes * itemsize}")
            lines.append(f"  %old{i}_{v} = load {kind}, ptr %at{i}_{v}, align {itemsize}")
    return [*lines, "  br label %head"]


def _vectors(tile: Tile, dtype: DType, indexed: str) -> tuple[list[str], list[str]]:
    """Where the vectors of a step of B lie: what computes it, and the number of bytes by vector.

    Sixteen columns, which are one or more vectors, lie behind each other, or ``%b_apart`` bytes apart.
    """
    size = tile.lanes * dtype.itemsize
    if indexed != "right":
        return [], [str(v * size) for v in range(tile.vectors)]
    lines = []
    for v in range(tile.vectors):
        group, part = divmod(v * tile.lanes, LANES)
        lines.append(f"  %group{v} = mul i64 %b_apart, {group}")
        lines.append(f"  %vector{v} = add i64 %group{v}, {part * dtype.itemsize}")
    return lines, [f"%vector{v}" for v in range(tile.vectors)]


def _turn(tile: Tile, height: int, kind: str, dtype: DType, vectors: list[str]) -> list[str]:
    """One step of the contracted index: the ``vectors`` of B times each row's element of A."""
    scalar, lines = llvm_type(dtype), []
    intrinsic = f"@llvm.fma.{suffix(dtype, tile.lanes)}"
    for v, distance in enumerate(vectors):
        lines.append(f"  %bat{v} = getelementptr i8, ptr %bp, i64 {distance}")
        lines.append(f"  %b{v} = load {kind}, ptr %bat{v}, align {dtype.itemsize}")
    for i in range(height):
        lines.append(f"  %aat{i} = getelementptr i8, ptr %a{i}, i64 %step")
        lines.append(f"  %x{i} = load {scalar}, ptr %aat{i}, align {dtype.itemsize}")
        lines.append(f"  %one{i} = insertelement {kind} poison, {scalar} %x{i}, i32 0")
        zeros = f"<{tile.lanes} x i32> zeroinitializer"
        lines.append(f"  %all{i} = shufflevector {kind} %one{i}, {kind} poison, {zeros}")
        for v in range(tile.vectors):
            operands = f"{kind} %all{i}, {kind} %b{v}, {kind} %acc{i}_{v}"
            lines.append(f"  %new{i}_{v} = call {kind} {intrinsic}({operands})")
    return lines


def _notes(cells: list[tuple[int, int]], tile: Tile, dtype: DType) -> list[str]:
    """Keep the largest magnitude of the results, see ``lower.memory``."""
    integers = magnitude_dtype(dtype)
    kind, bits = f"<{tile.lanes} x {llvm_type(dtype)}>", f"<{tile.lanes} x {llvm_type(integers)}>"
    lines, most = [f"  %most = load {bits}, ptr %seen, align 64"], "%most"
    for i, v in cells:
        lines.append(f"  %bits{i}_{v} = bitcast {kind} %out{i}_{v} to {bits}")
        lines.append(f"  %twice{i}_{v} = add {bits} %bits{i}_{v}, %bits{i}_{v}")
        intrinsic = f"@llvm.umax.v{tile.lanes}i{8 * dtype.itemsize}"
        lines.append(f"  %most{i}_{v} = call {bits} {intrinsic}({bits} {most}, {bits} %twice{i}_{v})")
        most = f"%most{i}_{v}"
    return [*lines, f"  store {bits} {most}, ptr %seen, align 64"]


def _steps(indexed: str, size: int) -> tuple[list[str], list[str], list[str]]:
    """Where the steps of both operands lie: at the head of the loop, behind its phis, and at its end."""
    if indexed == "right":
        # one number counts the steps of all, so that registers are left for the addresses of the rows
        begin = ["  %number = phi i64 [ 0, %head ], [ %numbered, %loop ]"]
        found = [
            f"  %step = mul i64 %number, {size}",
            "  %entry_at = getelementptr i64, ptr %b_k, i64 %number",
            "  %distance = load i64, ptr %entry_at, align 8",
            "  %bp = getelementptr i8, ptr %b, i64 %distance",
        ]
        return begin, found, ["  %numbered = add i64 %number, 1"]
    if indexed == "rows":
        begin = ["  %entry_at = phi ptr [ %a_k, %head ], [ %entry_after, %loop ]"]
        found = ["  %step = load i64, ptr %entry_at, align 8"]
        following = ["  %entry_after = getelementptr i64, ptr %entry_at, i64 1"]
    else:
        begin = ["  %step = phi i64 [ 0, %head ], [ %stepped, %loop ]"]
        found, following = [], ["  %stepped = add i64 %step, %a_k"]
    begin.append("  %bp = phi ptr [ %b, %head ], [ %bnext, %loop ]")
    following += [
        "  %later = getelementptr i8, ptr %bp, i64 %ahead",
        "  call void @llvm.prefetch.p0(ptr %later, i32 0, i32 2, i32 1)",
        "  %bnext = getelementptr i8, ptr %bp, i64 %b_k",
    ]
    return begin, found, following


def _tile_function(
    tile: Tile, height: int, dtype: DType, notes: bool, indexed: str, settles: bool
) -> list[str]:
    """The function of ``height`` rows of one panel over ``count`` steps of the contracted index."""
    kind = f"<{tile.lanes} x {llvm_type(dtype)}>"
    cells = [(i, v) for i in range(height) for v in range(tile.vectors)]
    nan = f"splat ({llvm_type(dtype)} {literal(float('nan'), dtype)})"
    distances, vectors = _vectors(tile, dtype, indexed)
    lines = [
        f"define internal fastcc void @tile{height}x{tile.vectors}(ptr noalias {'%a' if indexed == 'rows' else '%a0'},"
        f" i64 %a_row, {_operand_steps(indexed)}, i64 %count, ptr noalias %c0, i64 %c_step, i1 %resume, i64 %ahead"
        f"{_further(notes, indexed)}) #0 {{",
        "entry:",
        *_loads(tile, height, kind, dtype.itemsize, indexed),
        "head:",
    ]
    for i, v in cells:
        lines.append(f"  %from{i}_{v} = phi {kind} [ zeroinitializer, %entry ], [ %old{i}_{v}, %load ]")
    lines += distances
    lines += ["  %some = icmp ne i64 %count, 0", "  br i1 %some, label %loop, label %done", "loop:"]
    lines.append("  %left = phi i64 [ %count, %head ], [ %less, %loop ]")
    begin, found, following = _steps(indexed, dtype.itemsize)
    lines += begin
    for i, v in cells:
        lines.append(f"  %acc{i}_{v} = phi {kind} [ %from{i}_{v}, %head ], [ %new{i}_{v}, %loop ]")
    lines += [*found, *_turn(tile, height, kind, dtype, vectors), *following]
    lines += [
        "  %less = add i64 %left, -1",
        "  %more = icmp ne i64 %less, 0",
        "  br i1 %more, label %loop, label %done",
        "done:",
    ]
    for i, v in cells:
        lines.append(f"  %sum{i}_{v} = phi {kind} [ %from{i}_{v}, %head ], [ %new{i}_{v}, %loop ]")
    stored = "out" if settles else "sum"
    for i, v in cells:
        if settles:
            lines.append(f"  %open{i}_{v} = fcmp uno {kind} %sum{i}_{v}, %sum{i}_{v}")
            lines.append(
                f"  %out{i}_{v} = select <{tile.lanes} x i1> %open{i}_{v}, {kind} {nan}, {kind} %sum{i}_{v}"
            )
        lines.append(f"  %to{i}_{v} = getelementptr i8, ptr %c{i}, i64 {v * tile.lanes * dtype.itemsize}")
        lines.append(f"  store {kind} %{stored}{i}_{v}, ptr %to{i}_{v}, align {dtype.itemsize}")
    if notes:
        lines += _notes(cells, tile, dtype)
    return [*lines, "  ret void", "}"]


_LINE = 64
"""Bytes of a cache line."""


def _further(notes: bool, indexed: str) -> str:
    """The last parameters of functions of tiles, which not all have."""
    return f"{', i64 %b_apart' if indexed == 'right' else ''}{', ptr noalias %seen' if notes else ''}"


def _operand_steps(indexed: str) -> str:
    """The parameters that say where the steps of both operands lie."""
    left = {"": "i64 %a_k, ", "rows": "ptr noalias %a_k, ", "right": ""}[indexed]
    return f"{left}ptr noalias %b, {'ptr noalias' if indexed == 'right' else 'i64'} %b_k"


@lru_cache
def tile_functions(
    tile: Tile, dtype: DType, notes: bool = False, indexed: str = "", settles: bool = False
) -> str:
    """What follows the text of a kernel that calls ``@shared``, which covers any number of rows with tiles.

    Columns that fill few vectors of a tile are covered with narrow ones, whose other columns hold anything.
    Where the "right" operand B is ``indexed``, its argument points to the byte offsets of its steps instead of being
    their distance, and one more says how many bytes apart sixteen columns lie; the steps of A follow each other then
    and have no argument. With "rows" that of A points to the offsets, and A itself to the addresses of its rows. With
    ``notes`` the last argument points to the largest magnitudes of the results so far. NaNs of the sums are the
    canonical one if it ``settles`` them, else whatever arithmetic made.
    """
    kind = f"<{tile.lanes} x {llvm_type(dtype)}>"
    lines = [
        f"declare {kind} @llvm.fma.{suffix(dtype, tile.lanes)}({kind}, {kind}, {kind})",
        "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    ]
    further = _further(notes, indexed)
    if notes:
        for lanes in {tile.lanes}:
            bits = f"<{lanes} x {llvm_type(magnitude_dtype(dtype))}>"
            lines.append(f"declare {bits} @llvm.umax.v{lanes}i{8 * dtype.itemsize}({bits}, {bits})")
    for each in (tile, *tile.narrow):
        table = next_height(each)
        entries = ", ".join(f"i64 {height}" for height in table)
        lines.append(
            f"@next_height{each.vectors} = private unnamed_addr constant [{len(table)} x i64] [{entries}], align 64"
        )
        for height in heights(each):
            lines += _tile_function(each, height, dtype, notes, indexed, settles or notes)
    lines += [
        f"define i64 @shared(ptr noalias %a, i64 %a_row, {_operand_steps(indexed)}, i64 %count,"
        " ptr noalias %c, i64 %c_step,"
        f" i1 %resume, i64 %rows, i64 %columns{further}) #0 {{",
        "entry:",
        f"  %chunk = mul i64 %count, {0 if indexed == 'right' else '%b_k'}",
    ]
    cases = " ".join(f"i64 {each.vectors}, label %loop_{each.vectors}" for each in tile.narrow)
    lines += [
        f"  %last = add i64 %columns, {tile.lanes - 1}",
        f"  %vectors = udiv i64 %last, {tile.lanes}",
        f"  switch i64 %vectors, label %loop [ {cases} ]",
        *_cover(tile, "", further, dtype, indexed),
    ]
    for each in tile.narrow:
        lines += _cover(each, f"_{each.vectors}", further, dtype, indexed)
    return SHARED + "\n".join([*lines, "}", "attributes #0 = { nounwind }"]) + "\n"


def _cover(tile: Tile, end: str, further: str, dtype: DType, indexed: str) -> list[str]:
    """The loop over the rows in steps of tiles; ``end`` ends its names, ``further`` are the last arguments of tiles.

    Each tile brings another cache line of the rows of the next panel near.
    """
    sizes, table = heights(tile), next_height(tile)
    cases = " ".join(f"i64 {height}, label %case{height}{end}" for height in sizes[:-1])
    lines = [
        f"loop{end}:",
        f"  %left{end} = phi i64 [ %rows, %entry ], [ %less{end}, %next{end} ]",
        f"  %ap{end} = phi ptr [ %a, %entry ], [ %anext{end}, %next{end} ]",
        f"  %cp{end} = phi ptr [ %c, %entry ], [ %cnext{end}, %next{end} ]",
        f"  %line{end} = phi i64 [ 0, %entry ], [ %other{end}, %next{end} ]",
        f"  %ahead{end} = add i64 %chunk, %line{end}",
        f"  %many{end} = icmp uge i64 %left{end}, {len(table)}",
        f"  %index{end} = select i1 %many{end}, i64 0, i64 %left{end}",
        f"  %slot{end} = getelementptr [{len(table)} x i64], ptr @next_height{tile.vectors}, i64 0, i64 %index{end}",
        f"  %few{end} = load i64, ptr %slot{end}, align 8",
        f"  %height{end} = select i1 %many{end}, i64 {tile.height}, i64 %few{end}",
        f"  switch i64 %height{end}, label %case{tile.height}{end} [ {cases} ]",
    ]
    steps = _operand_steps(indexed).replace(" noalias", "")
    arguments = f"ptr %ap{end}, i64 %a_row, {steps}, i64 %count"
    arguments += f", ptr %cp{end}, i64 %c_step, i1 %resume, i64 %ahead{end}{further.replace(' noalias', '')}"
    for height in sizes:
        call = f"  call fastcc void @tile{height}x{tile.vectors}({arguments})"
        lines += [f"case{height}{end}:", call, f"  br label %next{end}"]
    return [
        *lines,
        f"next{end}:",
        f"  %less{end} = sub i64 %left{end}, %height{end}",
        f"  %abytes{end} = mul i64 %height{end}, %a_row",
        f"  %anext{end} = getelementptr i8, ptr %ap{end}, i64 %abytes{end}",
        f"  %cbytes{end} = mul i64 %height{end}, %c_step",
        f"  %cnext{end} = getelementptr i8, ptr %cp{end}, i64 %cbytes{end}",
        f"  %more{end} = icmp ne i64 %less{end}, 0",
        f"  %lower{end} = add i64 %line{end}, {_LINE}",
        f"  %is_past{end} = icmp uge i64 %lower{end}, {tile.width * dtype.itemsize}",
        f"  %other{end} = select i1 %is_past{end}, i64 0, i64 %lower{end}",
        f"  br i1 %more{end}, label %loop{end}, label %done{end}",
        f"done{end}:",
        "  ret i64 0",
    ]


def transposed(values: list[str], kind: str, prefix: str) -> tuple[list[str], list[str]]:
    """Instructions that transpose a square of 4, 8 or 16 vectors of as many lanes, and the names of the results.

    Two rounds interleave inside groups of four lanes, which every vector unit does in one cheap instruction;
    those before exchange whole groups.
    """
    lanes = len(values)
    lines: list[str] = []

    def pick(order: Callable[[int, int], tuple[int, int]]) -> str:
        """A shuffle mask: ``order`` gives (operand, lane) for each (group of four, lane in the group)."""
        picked = (order(lane // 4, lane % 4) for lane in range(lanes))
        return ", ".join(f"i32 {lanes * operand + lane}" for operand, lane in picked)

    def shuffle(a: str, b: str, mask: str) -> str:
        result = f"%{prefix}{len(lines)}"
        lines.append(f"  {result} = shufflevector {kind} {a}, {kind} {b}, <{lanes} x i32> <{mask}>")
        return result

    def square(four: list[str], outer: list[str], inner: list[str]) -> list[str]:
        """The square of 4 by 4 that four vectors are, transposed in two rounds."""
        return [
            shuffle(upper, lower, mask)
            for upper, lower in [(shuffle(four[0], four[1], m), shuffle(four[2], four[3], m)) for m in outer]
            for mask in inner
        ]

    def groups(column: list[str]) -> list[str]:
        """The square of whole groups that vectors four apart are, transposed."""
        if lanes == 4:
            return column
        if lanes == 8:
            upper, lower = column
            return [shuffle(upper, lower, pick(lambda g, i, h=h: (g, 4 * h + i))) for h in (0, 1)]  # type: ignore[misc]
        halves = [pick(lambda g, i, h=h: (g // 2, 4 * (g % 2 + 2 * h) + i)) for h in (0, 1)]  # type: ignore[misc]
        single = [pick(lambda g, i, h=h: (g // 2, 4 * (g % 2 * 2 + h) + i)) for h in (0, 1)]  # type: ignore[misc]
        return square(column, halves, single)

    singles = [pick(lambda g, i, h=h: (i % 2, 4 * g + i // 2 + 2 * h)) for h in (0, 1)]  # type: ignore[misc]
    pairs = [pick(lambda g, i, h=h: (i // 2, 4 * g + i % 2 + 2 * h)) for h in (0, 1)]  # type: ignore[misc]
    # whole groups first, so that results come one after the other and what uses them stands between
    columns = [groups(values[i::4]) for i in range(4)]
    results = [x for four in zip(*columns, strict=True) for x in square(list(four), singles, pairs)]
    return lines, results
