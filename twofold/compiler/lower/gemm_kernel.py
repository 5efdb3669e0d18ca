"""The kernels of matrix products: each work item computes one block of rows of a group of panels of columns.

A panel is as many columns as one tile is wide. A part of the contracted index is done for all panels of the group
before the next: the rows of the left operand in that part stay in the second level cache meanwhile. The left operand is
read where it lies, with any strides. The right one is read as rows of a panel: either where it lies or as `gemm_pack`
laid it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from twofold import dtypes
from twofold.compiler.lower.builder import LANES, Builder, Val
from twofold.compiler.lower.gemm_tile import Tile, tile_functions, transposed
from twofold.dtypes import DType

MAX_BLOCK_ROWS = 192
"""Most rows of a work item; their sums of one panel fit into the first level cache."""

MAX_GROUP = 4
"""Most panels of a work item."""

MAX_RUN = 16
"""The same of the widest tiles, which meet few rows."""

_COPY_ELEMENTS = 8192
"""Room on the stack for the last steps of a ragged panel."""

_UNROLLED_INSTRUCTIONS = 128
"""Most instructions of an epilogue for a row of a panel that stand side by side."""

PARAMS = [
    "m",
    "n",
    "k",
    "a_batch",
    "a_row",
    "a_k",
    "b_batch",
    "b_panel",
    "b_k",
    "b_direct",
    "c_batch",
    "c_row",
    "panels",
    "groups",
    "group",
    "row_blocks",
    "block_rows",
    "block_k",
]
"""The run-time numbers of a tiled kernel, after those of its epilogue; strides count elements."""

GENERIC_PARAMS = [
    "m",
    "n",
    "k",
    "a_batch",
    "a_row",
    "a_k",
    "b_batch",
    "b_k",
    "b_column",
    "c_batch",
    "c_row",
    "panels",
]
"""The run-time numbers of the plain kernel, after those of its epilogue."""


class Epilogue(Protocol):
    """What becomes of the finished sums, in place of storing them.

    The kernel's buffers and parameters start with the epilogue's: ``b.buffer(0)`` is its first pointer and
    ``b.param(0)`` its first number.
    """

    @property
    def key(self) -> str:
        """Names the emitted code: equal keys, equal code."""

    @property
    def buffers(self) -> int:
        """How many pointers it reads."""

    @property
    def params(self) -> int:
        """How many numbers it reads."""

    @property
    def streams(self) -> int:
        """How many of what it reads and writes have a value for each sum."""

    @property
    def instructions(self) -> int:
        """About how many instructions it takes for sixteen sums."""

    def emit(self, b: Builder, acc: Val, row: Val, col: Val, mask: Val | None, batch: Val) -> None:
        """Use and store the sums ``acc`` (16 lanes) of row ``row``, columns ``col`` to ``col`` + 15.

        Lanes outside ``mask`` lie outside the result and hold anything.
        """

    def bring_near(self, b: Builder, row: Val, col: Val, batch: Val) -> None:
        """Emit prefetches of memory that `emit` reads and writes for the same sums."""


@dataclass(frozen=True)
class Store:
    """The epilogue of a bare product: cast to ``dtype`` and store at c[batch, row, col]."""

    dtype: DType
    pointer: int
    batch_stride: int
    row_stride: int

    buffers = 0
    params = 0
    streams = 1
    instructions = 2

    @property
    def key(self) -> str:
        """Names the emitted code."""
        return f"store {self.dtype.name}"

    def emit(self, b: Builder, acc: Val, row: Val, col: Val, mask: Val | None, batch: Val) -> None:
        """Store the sums."""
        b.store(
            b.buffer(self.pointer), self._index(b, row, col, batch), b.cast(b.opened(acc), self.dtype), mask
        )

    def bring_near(self, b: Builder, row: Val, col: Val, batch: Val) -> None:
        """Emit the prefetch of what is written."""
        b.prefetch(b.buffer(self.pointer), self._index(b, row, col, batch), self.dtype, written=True)

    def _index(self, b: Builder, row: Val, col: Val, batch: Val) -> Val:
        start = b.add(b.mul(batch, b.param(self.batch_stride)), b.mul(row, b.param(self.row_stride)))
        return b.add(start, col)


class KernelBuilder(Builder):
    """A builder with the few raw instructions that matrix products need."""

    def choose(self, condition: Val, a: Val, b: Val) -> Val:
        """``a`` if the scalar ``condition`` else ``b``, of pointers as well."""
        return self._pure(f"select {condition.typed}, {a.typed}, {b.typed}", a.dtype, a.lanes)

    def smaller(self, a: Val | int, b: Val | int) -> Val:
        """The smaller of two indices."""
        x, y = self.index(a), self.index(b)
        return self.choose(self.cmp("lt", x, y), x, y)

    def split(self, number: Val, parts: Val) -> tuple[Val, Val]:
        """Quotient and rest of two non-negative indices, the second positive."""
        quotient = self._pure(f"udiv i64 {number.ref}, {parts.ref}", dtypes.int64, 1)
        return quotient, self.sub(number, self.mul(quotient, parts))

    def call_rows(self, *arguments: Val) -> None:
        """Call the function of ``tile_functions``."""
        self._declare(f"declare i64 @shared({', '.join(x.type for x in arguments)})")
        self._lines.append(f"  call i64 @shared({', '.join(x.typed for x in arguments)})")

    def larger(self, a: Val | int, b: Val | int) -> Val:
        """The larger of two indices."""
        x, y = self.index(a), self.index(b)
        return self.choose(self.cmp("gt", x, y), x, y)

    def address(self, pointer: Val) -> Val:
        """The number of the byte that a pointer points to."""
        return self._pure(f"ptrtoint ptr {pointer.ref} to i64", dtypes.int64, 1)

    def evens(self, a: Val, b: Val) -> Val:
        """The lanes 0, 2, ... of two vectors behind each other."""
        return self._every_other(a, b, 0)

    def odds(self, a: Val, b: Val) -> Val:
        """The lanes 1, 3, ... of two vectors behind each other."""
        return self._every_other(a, b, 1)

    def _every_other(self, a: Val, b: Val, first: int) -> Val:
        picked = ", ".join(f"i32 {2 * lane + first}" for lane in range(LANES))
        return self._pure(f"shufflevector {a.typed}, {b.typed}, <{LANES} x i32> <{picked}>", a.dtype, LANES)

    def transpose(self, vectors: list[Val]) -> list[Val]:
        """The columns of the square whose rows are ``vectors``, 4, 8 or 16 of as many lanes."""
        stem = self._fresh()[1:] + "_"
        lines, names = transposed([x.ref for x in vectors], vectors[0].type, stem)
        self._lines += lines
        return [Val(name, vectors[0].dtype, len(vectors)) for name in names]

    def side_by_side(self, parts: list[Val]) -> Val:
        """A vector of the lanes of ``parts``, which are a power of two of vectors."""
        while len(parts) > 1:
            lanes = 2 * parts[0].lanes
            order = ", ".join(f"i32 {lane}" for lane in range(lanes))
            parts = [
                self._from(
                    self._pure(
                        f"shufflevector {a.typed}, {b.typed}, <{lanes} x i32> <{order}>", a.dtype, lanes
                    ),
                    a,
                    b,
                )
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
        return parts[0]


@dataclass(frozen=True)
class TiledKernel:
    """Which tiled kernel: everything that its machine code depends on.

    With ``flipped``, the kernel's rows are the columns of the result, so sums are transposed before the
    epilogue. Where it ``accumulates``, sums begin with the elements of a buffer that lies as the result does.
    """

    compute: DType
    stored: DType
    tile: Tile
    flipped: bool
    accumulates: bool = False

    def key(self, epilogue: Epilogue | None) -> str:
        """Names the text; equal keys, equal texts."""
        shape = f"{self.tile.height}x{self.tile.vectors}x{self.tile.lanes}"
        tail = f"store {self.stored.name}" if epilogue is None else epilogue.key
        how = f"{' flipped' if self.flipped else ''}{' from start' if self.accumulates else ''}"
        return f"matmul {self.compute.name} {shape}{how} {tail}"

    def text(self, epilogue: Epilogue | None) -> str:
        """The module."""
        return _Tiled(self, epilogue).text()


class _Panel(NamedTuple):
    """A panel of a work item: its columns, and where and how far apart the rows of its sums are."""

    number: Val
    column: Val
    columns: Val
    ragged: Val
    """Whether its columns are no whole vectors."""
    overruns: Val
    """Whether its last vector is read past the last column, as it is ragged and the right operand not packed."""
    sums: Val
    target: Val
    """The result itself, or ``sums``."""
    step: Val


class _Tiled:
    """Writes one tiled kernel."""

    batch: Val
    row: Val
    rows: Val
    first: Val
    last_steps: Val

    def __init__(self, kernel: TiledKernel, epilogue: Epilogue | None) -> None:
        self.kernel = kernel
        self.width = kernel.tile.width
        self.b = b = KernelBuilder("matmul")
        first_buffer = 0 if epilogue is None else epilogue.buffers
        first_param = 0 if epilogue is None else epilogue.params
        self.p = {name: b.param(first_param + i) for i, name in enumerate(PARAMS)}
        self.a, self.right = b.buffer(first_buffer), b.buffer(first_buffer + 1)
        if kernel.accumulates:
            self.start = b.buffer(first_buffer + 2)
        # whole panels of a bare product in its own dtype are stored by the tiles themselves
        self.direct = epilogue is None and not kernel.flipped and kernel.stored is kernel.compute
        self.notes = self.direct and b.checks_finite
        if epilogue is None:
            position = PARAMS.index("c_batch"), PARAMS.index("c_row")
            last_buffer = first_buffer + 2 + kernel.accumulates
            epilogue = Store(kernel.stored, last_buffer, *position)
            self.c = b.buffer(last_buffer)
        self.epilogue = epilogue
        dtype = kernel.compute
        # rows are a multiple of 16 as transposing reads whole squares; the widest tiles only meet a few rows
        few = kernel.tile.vectors > 4
        self.room = (LANES if few else MAX_BLOCK_ROWS) * self.width  # for the sums of a panel
        self.sums = b.alloca(dtype, (MAX_RUN if few else MAX_GROUP) * self.room)
        self.panel_copy = b.alloca(dtype, _COPY_ELEMENTS)
        if kernel.flipped:
            self.square = b.alloca(dtype, LANES * LANES)

    def text(self) -> str:
        kernel, b = self.kernel, self.b
        with b.loop(b.begin, b.end) as item:
            self._item(item)
        return b.finish() + tile_functions(kernel.tile, kernel.compute, self.notes, settles=self.direct)

    def _item(self, item: Val) -> None:
        b, p, dtype = self.b, self.p, self.kernel.compute
        rest, group = b.split(item, p["groups"])
        self.batch, block = b.split(rest, p["row_blocks"])
        self.row = b.mul(block, p["block_rows"])
        self.rows = b.smaller(p["block_rows"], b.sub(p["m"], self.row))
        self.first = b.mul(group, p["group"])
        end = b.smaller(p["panels"], b.add(self.first, p["group"]))
        a = b.offset(self.a, b.add(b.mul(self.batch, p["a_batch"]), b.mul(self.row, p["a_row"])), dtype)
        if self.kernel.accumulates:
            with b.loop(self.first, end) as panel:
                self._begin(self._panel(panel))
        # a contraction over nothing still takes one iteration, which stores zeros
        steps = b.choose(b.cmp("gt", p["k"], 0), p["k"], b.index(1))
        # only the last one may be ragged
        self.last_steps = b.choose(self._panel(b.sub(end, 1)).overruns, self._overrunning_steps(), b.index(0))
        most = b.index(_COPY_ELEMENTS // self.width)
        fits = b.cmp("le", self.last_steps, most)
        block_k = b.choose(fits, p["block_k"], b.smaller(p["block_k"], most))
        with b.loop(0, steps, block_k) as k:
            count = b.smaller(block_k, b.sub(p["k"], k))
            a_chunk = b.offset(a, b.mul(k, p["a_k"]), dtype)
            with b.loop(self.first, end) as panel:
                self._add(self._panel(panel), k, count, a_chunk)
        with b.loop(self.first, end) as panel:
            self._finish_panel(self._panel(panel))

    def _panel(self, panel: Val) -> _Panel:
        """Where the sums of a panel of the item are."""
        b, p, dtype, tile = self.b, self.p, self.kernel.compute, self.kernel.tile
        column = b.mul(panel, self.width)
        columns = b.smaller(self.width, b.sub(p["n"], column))
        # whole vectors are read and written where they lie
        ragged = b.cmp("ne", b.and_(columns, tile.lanes - 1), 0)
        overruns = b.and_(ragged, b.cmp("ne", p["b_direct"], 0))
        sums = b.offset(self.sums, b.mul(b.sub(panel, self.first), self.room), dtype)
        target, step = sums, b.index(self.width)
        if self.direct:
            start = b.add(b.mul(self.batch, p["c_batch"]), b.add(b.mul(self.row, p["c_row"]), column))
            target = b.choose(ragged, target, b.offset(self.c, start, dtype))
            step = b.choose(ragged, step, p["c_row"])
        return _Panel(panel, column, columns, ragged, overruns, sums, target, step)

    def _overrunning_steps(self) -> Val:
        """How many of the last steps would read behind the right operand in a ragged panel.

        Earlier ones read elements of a later step there, which no sum that is kept depends on. What checks that results
        are finite looks at all sums, so then it is all steps.
        """
        b, p = self.b, self.p
        if self.notes:
            return p["k"]
        missing = b.and_(b.sub(0, p["n"]), self.kernel.tile.lanes - 1)
        apart = b.larger(p["b_k"], 1)
        last, _ = b.split(b.add(missing, b.sub(apart, 1)), apart)
        return b.choose(b.cmp("gt", p["b_k"], 0), last, p["k"])

    def _add(self, panel: _Panel, k: Val, count: Val, a_chunk: Val) -> None:
        """``count`` steps of the contracted index, from ``k`` on."""
        b, p, dtype = self.b, self.p, self.kernel.compute
        start = b.add(b.mul(self.batch, p["b_batch"]), b.mul(panel.number, p["b_panel"]))
        chunk = b.offset(b.offset(self.right, start, dtype), b.mul(k, p["b_k"]), dtype)
        inside = b.smaller(count, b.larger(b.sub(b.sub(p["k"], self.last_steps), k), 0))
        inside = b.choose(panel.overruns, inside, count)
        resume = b.cmp("ge" if self.kernel.accumulates else "gt", k, 0)
        self._call(panel, a_chunk, (chunk, p["b_k"], inside), resume)
        rest = b.sub(count, inside)
        with b.if_(b.cmp("gt", rest, 0)):
            self._copy(b.offset(chunk, b.mul(inside, p["b_k"]), dtype), rest, panel.columns)
            a_rest = b.offset(a_chunk, b.mul(inside, p["a_k"]), dtype)
            right = self.panel_copy, b.index(self.width), rest
            self._call(panel, a_rest, right, b.cmp("ge", k, 0))

    def _call(self, panel: _Panel, a: Val, right: tuple[Val, Val, Val], resume: Val) -> None:
        """Call the tiles; ``right`` is the right operand, how far apart its steps lie, and their number."""
        b, p, dtype = self.b, self.p, self.kernel.compute
        size, (chunk, b_k, count) = dtype.itemsize, right
        left = a, b.mul(p["a_row"], size), b.mul(p["a_k"], size)
        sums = panel.target, b.mul(panel.step, size), resume, self.rows, panel.columns
        notes = [b.magnitudes(dtype)] if self.notes else []
        b.call_rows(*left, chunk, b.mul(b_k, size), count, *sums, *notes)

    def _finish_panel(self, panel: _Panel) -> None:
        finish = self._finish_flipped if self.kernel.flipped else self._finish
        if self.direct:
            with self.b.if_(panel.ragged):
                finish(panel)
        else:
            finish(panel)

    def _begin(self, panel: _Panel) -> None:
        """Copy what the sums of a panel begin with to where they are, unless it is there."""
        b, p, kernel = self.b, self.p, self.kernel
        at = b.add(b.mul(self.batch, p["c_batch"]), b.add(b.mul(self.row, p["c_row"]), panel.column))
        start = b.offset(self.start, at, kernel.stored)
        with (
            b.if_(b.not_(b.same_memory(start, panel.target))),
            b.loop(0, self.rows) as i,
            b.loop(0, panel.columns, LANES) as v,
        ):
            mask = b.lane_mask(b.sub(panel.columns, v))
            values = b.load(start, b.add(b.mul(i, p["c_row"]), v), kernel.stored, LANES, mask)
            b.store(panel.target, b.add(b.mul(i, panel.step), v), b.cast(values, kernel.compute), mask)

    def _copy(self, chunk: Val, count: Val, columns: Val) -> None:
        """Copy the rows of a panel that reaches over the last column, with zeros up to what a tile reads."""
        b, dtype = self.b, self.kernel.compute
        with b.loop(0, columns, LANES) as v:
            mask = b.lane_mask(b.sub(columns, v))
            with b.loop(0, count) as k:
                values = b.load(chunk, b.add(b.mul(k, self.p["b_k"]), v), dtype, LANES, mask)
                b.store(self.panel_copy, b.add(b.mul(k, self.width), v), values)

    def _finish(self, panel: _Panel) -> None:
        """Emit what becomes of the sums of a panel: row by row where it is whole, so that rows are found once."""
        b, parts = self.b, self.width // LANES
        if self.direct or parts > MAX_GROUP or parts * self.epilogue.instructions > _UNROLLED_INSTRUCTIONS:
            return self._finish_columns(panel)
        is_whole = b.if_(b.cmp("eq", panel.columns, self.width))
        with is_whole, b.loop(0, self.rows) as i:
            sums = b.offset(panel.sums, b.mul(i, self.width), self.kernel.compute)
            totals = [b.load(sums, v * LANES, self.kernel.compute, LANES) for v in range(parts)]
            for v, total in enumerate(totals):
                column = b.add(panel.column, v * LANES)
                self.epilogue.emit(b, total, b.add(self.row, i), column, None, self.batch)
        with is_whole.else_():
            self._finish_columns(panel)
        return None

    def _finish_columns(self, panel: _Panel) -> None:
        b, dtype = self.b, self.kernel.compute
        with b.loop(0, panel.columns, LANES) as v:
            mask = b.lane_mask(b.sub(panel.columns, v))
            start = b.add(panel.column, v)
            with b.loop(0, self.rows) as i:
                acc = b.load(panel.sums, b.add(b.mul(i, self.width), v), dtype, LANES)
                self.epilogue.emit(b, acc, b.add(self.row, i), start, mask, self.batch)

    def _finish_flipped(self, panel: _Panel) -> None:
        b, dtype = self.b, self.kernel.compute
        with b.loop(0, self.rows, LANES) as i:
            mask = b.lane_mask(b.sub(self.rows, i))
            start = b.add(self.row, i)
            with b.loop(0, panel.columns, LANES) as v:
                corner = b.add(b.mul(i, self.width), v)
                lines = [
                    b.load(panel.sums, b.add(corner, r * self.width), dtype, LANES) for r in range(LANES)
                ]
                for r, values in enumerate(b.transpose(lines)):
                    b.store(self.square, r * LANES, values)
                count = b.smaller(LANES, b.sub(panel.columns, v))
                with b.loop(0, count) as r:
                    acc = b.load(self.square, b.mul(r, LANES), dtype, LANES)
                    column = b.add(b.add(panel.column, v), r)
                    self.epilogue.emit(b, acc, column, start, mask, self.batch)


def _step(b: Builder, x: Val, y: Val, total: Val) -> Val:
    """``total`` with one more product; of bool, whether any pair is true."""
    assert x.dtype is not None
    if x.dtype.kind == "f":
        return b.fma(x, y, total)
    return b.or_(total, b.and_(x, y)) if x.dtype.kind == "b" else b.add(total, b.mul(x, y))


def generic_key(source: DType, compute: DType, epilogue: Epilogue | None) -> str:
    """Names the text of `generic_text`."""
    return f"matmul plain {source.name} {compute.name} {'store' if epilogue is None else epilogue.key}"


def generic_text(source: DType, compute: DType, epilogue: Epilogue | None) -> str:
    """The module of the plain kernel of any dtype: a work item is one row of 16 columns, all strides free."""
    b = KernelBuilder("matmul")
    first_buffer = 0 if epilogue is None else epilogue.buffers
    first_param = 0 if epilogue is None else epilogue.params
    p = {name: b.param(first_param + i) for i, name in enumerate(GENERIC_PARAMS)}
    left, right = b.buffer(first_buffer), b.buffer(first_buffer + 1)
    if epilogue is None:
        position = GENERIC_PARAMS.index("c_batch"), GENERIC_PARAMS.index("c_row")
        epilogue = Store(source, first_buffer + 2, *position)
    with b.loop(b.begin, b.end) as item:
        rest, panel = b.split(item, p["panels"])
        batch, row = b.split(rest, p["m"])
        column = b.mul(panel, LANES)
        mask = b.lane_mask(b.sub(p["n"], column))
        a = b.add(b.mul(batch, p["a_batch"]), b.mul(row, p["a_row"]))
        where = b.add(b.mul(batch, p["b_batch"]), b.mul(column, p["b_column"]))
        loop = b.loop(0, p["k"], carry=[b.const(0, compute, LANES)])
        with loop as (k, (total,)):
            x = b.cast(b.load(left, b.add(a, b.mul(k, p["a_k"])), source), compute)
            start = b.add(where, b.mul(k, p["b_k"]))
            y = b.cast(b.load_strided(right, start, p["b_column"], source, mask), compute)
            b.loop_next([_step(b, b.splat(x), y, total)])
        epilogue.emit(b, loop.results[0], row, column, mask, batch)
    return b.finish()
