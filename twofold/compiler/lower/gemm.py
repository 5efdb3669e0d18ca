"""Plans of matrix products: which generated kernels compute a product, on which numbers.

Every element is one chain of fused multiply-adds in the order of the contracted index, so its bits depend on
nothing that is decided here. Decisions depend on sizes; the text of a kernel never does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from twofold import dtypes
from twofold.cache import Cache
from twofold.compiler.lower import gemm_pack, gemm_vector, target
from twofold.compiler.lower.builder import LANES
from twofold.compiler.lower.gemm_kernel import (
    GENERIC_PARAMS,
    MAX_BLOCK_ROWS,
    MAX_GROUP,
    MAX_RUN,
    PARAMS,
    Epilogue,
    TiledKernel,
    generic_key,
    generic_text,
)
from twofold.compiler.lower.gemm_tile import SQUARE, TALL, WIDE, Tile, last_rows_work
from twofold.compiler.lower.mode import MODE
from twofold.dtypes import DType
from twofold.ir.sizes import is_symbolic, look_up, maximum, minimum
from twofold.ops.kernels import grain

__all__ = ["Choice", "Epilogue", "KernelCall", "MatmulPlan", "MatmulProblem", "Operand", "plan_matmul"]

_HALVES = (dtypes.float16, dtypes.bfloat16)
_CACHE_BYTES = 512 * 1024
"""How much of the left operand a sweep over the panels may reread; half of a second level cache."""

_BLOCK_K, _STRIDED_BLOCK_K = 1024, 256
"""Most steps of the contracted index between two visits of a sum: operands contiguous along it, or not."""

_GROUP_BLOCK_K = 512
"""The same where a work item computes several panels, between two of which the rows of that part stay in the cache."""

_RUN_BLOCK_K = 16
"""The same where few rows are multiplied: steps whose rows of the right operand are read side by side, as long runs."""

_FEW_ROWS = 16
"""Rows for which reading the right operand where it lies, or transposed in registers, may be better than packing."""

_FEW_COLUMNS = 4
"""Columns for which transposing the left operand in registers is better than lanes without work."""

_ITEMS, _LONG = 8, 1 << 20
"""Work items to make of a product of more multiplications than this."""

_GRAIN_CYCLES = 20_000
"""Work below about 5 microseconds is not worth another thread."""


@dataclass(frozen=True)
class Operand:
    """Strides of a batch of matrices, in elements; a stride of 0 repeats.

    >>> Operand(0, 784, 1).transposed
    Operand(batch=0, row=1, col=784)
    """

    batch: int
    row: int
    col: int

    @property
    def transposed(self) -> Operand:
        """The same memory seen with rows and columns exchanged."""
        return Operand(self.batch, self.col, self.row)


@dataclass(frozen=True)
class MatmulProblem:
    """c[i] = a[i] @ b[i] for i < batch, with a[i] of m x k, b[i] of k x n and c[i] of m x n elements.

    ``c`` has its rows or its columns contiguous. Where it ``accumulates``, the sums begin with the elements of a
    "start" that lies as ``c`` does, perhaps in its memory. ``stay`` says of ``a`` and ``b`` whether they are the same
    in many runs, so that a copy of them is made once.
    """

    batch: int
    m: int
    n: int
    k: int
    a: Operand
    b: Operand
    c: Operand
    dtype: DType
    accumulates: bool = False
    stay: tuple[bool, bool] = (False, False)

    @property
    def transposed(self) -> MatmulProblem:
        """The same product written as c' = b' @ a'."""
        a, b, c = self.b.transposed, self.a.transposed, self.c.transposed
        return replace(self, m=self.n, n=self.m, a=a, b=b, c=c, stay=self.stay[::-1])


@dataclass
class KernelCall:
    """One call of one kernel: ``text_key`` names the text, ``buffers`` are the roles of its pointers.

    Roles are "a", "b", "c", "scratch0", ..., "epilogue0", ...; the kernel handles ``work`` items, which
    threads share in runs of at least ``grain``.
    """

    text_key: str
    name: str
    text: str = field(repr=False)
    buffers: tuple[str, ...]
    params: tuple[int, ...]
    work: int
    grain: int


@dataclass
class MatmulPlan:
    """Calls to make one after the other, each finished before the next, and the sizes of their scratch."""

    calls: list[KernelCall]
    scratch_bytes: list[int]


@dataclass(frozen=True)
class Choice:
    """One way to compute a product: ``way`` is "direct" or how the right operand is packed.

    Where it ``copies`` the left operand, steps along the contracted index, which lie far apart, are brought together.
    """

    tile: Tile
    flipped: bool
    way: str
    copies: bool = False


_texts: Cache[str] = Cache("kernel texts", 1, lambda key, text: len(key) + len(text))


def known_text(key: str, make: Callable[[], str]) -> tuple[str, str]:
    """The key and its text, written once."""
    if MODE.on:
        key += " finite"
    text = _texts.get(key)
    if text is None:
        text = _texts.keep(key, make())
    return key, text


def up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def grain_of(cycles: int, items: int = 1) -> int:
    """How many work items are worth a thread, where so many take so many cycles."""
    return grain(_GRAIN_CYCLES * items, cycles)


def _normal(problem: MatmulProblem, epilogue: Epilogue | None) -> tuple[MatmulProblem, bool]:
    """The problem with contiguous rows of c (and whether that exchanged a and b), batch folded into rows."""
    swapped = False
    if epilogue is None:
        c = problem.c
        if problem.n == 1 and (problem.m > 1 and c.row != 1):
            problem = replace(problem, c=replace(c, col=1))
        elif c.col != 1 or (problem.m > 1 and problem.n == 1):
            if c.row != 1 and problem.m != 1:
                raise ValueError(f"neither rows nor columns of the result are contiguous: {c}")
            problem, swapped = problem.transposed, True
            if problem.c.col != 1:
                problem = replace(problem, c=replace(problem.c, col=1))
    a, c = problem.a, problem.c
    if problem.m == 1:
        problem = replace(problem, a=replace(a, row=a.batch), c=replace(c, row=c.batch))
        a, c = problem.a, problem.c
    joins = a.batch == problem.m * a.row and c.batch == problem.m * c.row and problem.b.batch == 0
    if epilogue is None and problem.batch > 1 and joins:
        problem = replace(problem, batch=1, m=problem.m * problem.batch)
    return problem, swapped


def _lies(operand: Operand, columns: int) -> str:
    """How an operand with so many columns is read to lay it out."""
    return "rows" if operand.col == 1 or columns == 1 else "columns" if operand.row == 1 else "any"


def tall_tile(columns: int, vector_bits: int, size: int) -> Tile:
    """The tile for many rows: the one of three vectors where the last of four would stand alone."""
    tall, square = TALL[vector_bits][size], SQUARE[vector_bits][size]
    if is_symbolic(columns) or (tall.vectors, square.vectors) != (4, 3):
        return tall
    vectors = -(-columns // tall.lanes)
    return square if vectors > 4 and vectors % 4 == 1 and vectors % 3 != 1 else tall


def _panel_width(tile: Tile, columns: int) -> int:
    """How wide the panels of so many columns are: only one that stands alone need not be as wide as the tile."""
    alone = not is_symbolic(columns) and columns < tile.width
    return up(columns, LANES) if alone else tile.width


def _choices(problem: MatmulProblem, vector_bits: int) -> list[Choice]:
    """The ways to compute a product whose result has contiguous rows."""
    size = problem.dtype.compute.itemsize
    found = []
    for flipped in (False,) if problem.accumulates else (False, True):
        seen = problem.transposed if flipped else problem
        way = _lies(seen.b, seen.n)
        tiles = [tall_tile(seen.n, vector_bits, size)]
        wide = WIDE[vector_bits][size]
        if seen.m <= _FEW_ROWS and not flipped:
            tiles.append(wide)
        transposes = seen.a.col == seen.b.row == 1 and not seen.accumulates
        if transposes and seen.m <= (_FEW_COLUMNS if flipped else _FEW_ROWS):
            height = next(h for h in gemm_vector.HEIGHTS if seen.m <= h or h == gemm_vector.HEIGHTS[-1])
            found.append(Choice(Tile(height, 1, LANES), flipped, "transposed"))
        halves = problem.dtype in _HALVES
        ways = ("direct", way) if way == "rows" and not halves else (way,)
        # what is of half precision is copied anyway
        copies = (False,) if halves or seen.a.col == 1 or seen.k < 2 else (False, True)
        found += [Choice(tile, flipped, w, c) for tile in tiles for w in ways for c in copies]
    return found


_STRIDED_CYCLES = 0.4
"""Cycles by which an element of the left operand takes longer to read where the next step lies elsewhere."""

_TRANSPOSE_CYCLES = 0.27
"""Cycles to transpose an element in registers, beside which four rows are multiplied."""

_PACK_CYCLES = {"rows": 4.0, "columns": 6.0, "any": 40.0}
"""Cycles to lay out 16 elements."""


def _packing(elements: int, way: str, size: int) -> float:
    """Cycles to lay out so many elements: what no second level cache holds goes through the next one twice."""
    far = minimum(elements * size, _CACHE_BYTES) / _CACHE_BYTES
    return elements / LANES * (_PACK_CYCLES[way] + 6 * far)


@lru_cache
def _last_panel(tile: Tile) -> tuple[int, ...]:
    """Time of the last columns in twentieths of that of a whole panel, by their number below a panel's."""
    vectors = (-(-columns // tile.lanes) for columns in range(tile.width))
    return tuple(min(20, v * 20 // tile.vectors + 3) if v else 0 for v in vectors)


def _is_panel(seen: MatmulProblem, tile: Tile) -> bool:
    """Whether the right operand lies as it would if it were packed: as one panel without gaps."""
    known = not is_symbolic(seen.b.row) and not is_symbolic(seen.n)
    return known and seen.b.row == seen.n == _panel_width(tile, seen.n)


def _cycles(problem: MatmulProblem, choice: Choice, bare: bool) -> float:
    """About how long a choice takes on one core."""
    seen = problem.transposed if choice.flipped else problem
    tile, size = choice.tile, problem.dtype.compute.itemsize
    if choice.way == "transposed":
        height = choice.tile.height
        each = max(_TRANSPOSE_CYCLES, 0.02 + 0.07 * height)
        cycles = seen.batch * -(-seen.m // height) * up(seen.n, LANES) * (seen.k + 32) * each
        return cycles + (seen.batch * seen.n * 20 if choice.flipped else 0)
    whole = maximum(0, seen.m // tile.height - 1)
    work = whole * max(tile.height * tile.vectors, 8)
    work += look_up(last_rows_work(tile), seen.m - whole * tile.height)
    panels = -(-seen.n // tile.width)
    full = seen.n // tile.width
    parts = full * 20 + look_up(_last_panel(tile), seen.n - full * tile.width)
    cycles = work / 40 * parts * (seen.k + 8)
    if not bare or choice.flipped:
        cycles += seen.m * seen.n / LANES * (6 if choice.flipped else 3)
    cycles *= seen.batch
    if choice.copies and not seen.stay[0]:
        elements = up(seen.m, LANES) * up(seen.k, LANES) * (1 if seen.a.batch == 0 else seen.batch)
        cycles += 300 + _packing(elements, _lies(seen.a, seen.k), size)
    elif not choice.copies and seen.a.col != 1 and seen.k > 1:
        cycles += seen.batch * seen.m * seen.k * panels * _STRIDED_CYCLES
    row = panels * _panel_width(tile, seen.n) * (1 if seen.b.batch == 0 else seen.batch)
    if choice.way != "direct":
        cycles += 0 if seen.stay[1] else 200 + _packing(up(seen.k, LANES) * row, choice.way, size)
    else:
        # rows of a panel far apart miss the first level cache, the more where many have the same place in it
        far = 0 if _is_panel(seen, tile) else 0.6 * minimum(seen.k, 256) / 256
        reads, narrow, held = seen.k * seen.n * size, tile.lanes * size < 64, 4 * _CACHE_BYTES
        if _reads_runs(seen, choice):
            # the sums are read and written every few steps, which pays where no second level cache holds the operand
            share = minimum(reads, held) / held
            # with narrow registers a tile is one row, and each reads the operand anew
            far = 0.5 + 0.6 * share if narrow else tile.height * (0.4 - 0.25 * share)
        else:
            far *= 1.8 - 0.8 * minimum(1, seen.b.row * size % 512)
            if narrow:
                # a line or two of each row are read, and the next ones lie on other pages
                far *= 1 + 7 * minimum(reads, held // 2) / held
        cycles += seen.k * row / LANES * (1.0 + seen.m / tile.height * far)
    return cycles


def _most_rows(k: int, size: int) -> int:
    """Rows of the left operand of which so many elements each stay in the cache."""
    fits = _CACHE_BYTES // (maximum(k, 1) * size)
    most: int = minimum(MAX_BLOCK_ROWS, maximum(48, fits // 48 * 48))
    return most


def _group(seen: MatmulProblem, tile: Tile, panels: int) -> int:
    """How many panels a work item computes, part after part of the contracted index.

    More than one where whole rows in the cache are few, so that the right operand would be read anew for each few rows.
    """
    if tile.vectors > 4:
        return 1
    size = seen.dtype.compute.itemsize
    # 0 or 1, over symbols, too
    rereads = minimum(1, maximum(0, 2 * seen.m - 3 * _most_rows(seen.k, size)))
    rereads *= minimum(1, maximum(0, seen.k - _GROUP_BLOCK_K))
    blocks = -(-seen.m // _most_rows(_GROUP_BLOCK_K, size))
    most = minimum(MAX_GROUP, minimum(panels, panels * blocks * seen.batch // _ITEMS))
    group: int = 1 + rereads * maximum(0, most - 1)
    return group


def _of_group(group: int, one: int, several: int) -> int:
    """``one`` for a group of one panel, else ``several``; over symbols, too."""
    chosen: int = one + minimum(1, group - 1) * (several - one)
    return chosen


def _reads_runs(seen: MatmulProblem, choice: Choice) -> bool:
    """Whether few steps at a time are done for many panels, so that the right operand is read in runs of its rows."""
    return choice.way == "direct" and choice.tile.vectors > 4 and not _is_panel(seen, choice.tile)


def block_rows(seen: MatmulProblem, groups: int, k: int) -> int:
    """Rows of a work item: few enough for ``k`` of each to stay in the cache, and to make work for several threads.

    Over symbols nothing is decided, as sizes would fall into classes for each product of a program.
    """
    most = _most_rows(k, seen.dtype.compute.itemsize)
    items = minimum(-(-seen.m // 48), -(-_ITEMS // (groups * seen.batch)))
    if_long = (seen.m * seen.n * seen.k * seen.batch - 1) // _LONG * _ITEMS  # 0, or no less than items
    blocks = maximum(maximum(1, -(-seen.m // most)), minimum(items, if_long))
    rows: int = minimum(MAX_BLOCK_ROWS, maximum(4, up(-(-seen.m // blocks), 4)))
    return rows


class Planner:
    """Collects the calls of one product."""

    def __init__(self, problem: MatmulProblem, epilogue: Epilogue | None, numbers: Sequence[int]) -> None:
        self.problem = problem
        self.epilogue = epilogue
        self.numbers = tuple(numbers)
        extra = epilogue.buffers if epilogue is not None else 0
        self.roles = tuple(f"epilogue{i}" for i in range(extra))
        self.plan = MatmulPlan([], [])

    def pack(self, operand: Operand, role: str, sizes: tuple[int, int], way: str, width: int) -> str:
        """Lay ``operand`` (of k x n = ``sizes``) out as panels; gives the role of the copy."""
        (k, n), dtype = sizes, self.problem.dtype
        batch = 1 if operand.batch == 0 else self.problem.batch
        panels, panel_size = -(-n // width), up(k, 16) * width
        # long runs of memory are read in turn: along k, or across the panels for a few steps of k
        block_k = minimum(up(k, 16), maximum(64, up(8192 // width, 16)) if way == "columns" else 16)
        group = 1 if way == "columns" else maximum(1, minimum(panels, 1024 // width))
        groups, blocks = -(-panels // group), -(-k // block_k)
        kinds = dtype, dtype.compute, way
        key, text = known_text(gemm_pack.pack_key(*kinds), lambda: gemm_pack.pack_text(*kinds))
        values = {
            "n": n,
            "k": k,
            "batch_stride": operand.batch,
            "k_stride": operand.row,
            "column_stride": operand.col,
            "width": width,
            "panels": panels,
            "k_blocks": blocks,
            "block_k": block_k,
            "panel_size": panel_size,
            "groups": groups,
            "group": group,
        }
        params = tuple(values[name] for name in gemm_pack.PARAMS)
        copy = f"scratch{len(self.plan.scratch_bytes)}"
        self.plan.scratch_bytes.append(batch * panels * panel_size * dtype.compute.itemsize)
        grain = grain_of(block_k * width * group * 5, LANES)
        self.plan.calls.append(
            KernelCall(key, "pack", text, (role, copy), params, batch * groups * blocks, grain)
        )
        return copy

    def widen_left(self, left: Operand, role: str, sizes: tuple[int, int]) -> tuple[Operand, str]:
        """A copy of the left operand (m x k = ``sizes``) with contiguous rows, in the dtype of the arithmetic."""
        width = up(sizes[1], LANES)
        # rows of a multiple of 1024 bytes would share few sets of the first level cache
        width += LANES * (1 - minimum(1, width * self.problem.dtype.compute.itemsize % 1024))
        copy = self.pack(left, role, sizes, _lies(left, sizes[1]), width)
        return Operand(up(sizes[0], 16) * width if left.batch else 0, width, 1), copy

    def tiled(self, choice: Choice, roles: tuple[str, str]) -> MatmulPlan:
        """The calls of a product of floats; ``roles`` are those of the two operands."""
        if choice.way == "transposed":
            return self.transposed(choice, roles)
        if choice.flipped:
            roles = roles[1], roles[0]
        seen = self.problem.transposed if choice.flipped else self.problem
        dtype, tile = seen.dtype, choice.tile
        left, right = seen.a, seen.b
        panels = -(-seen.n // tile.width)
        numbers = {"b_batch": right.batch, "b_panel": tile.width, "b_k": right.row, "b_direct": 1}
        left_role, right_role = roles
        if seen.k and (choice.copies or dtype in _HALVES):
            left, left_role = self.widen_left(left, left_role, (seen.m, seen.k))
        contiguous = left.col == 1 and (choice.way != "direct" or _is_panel(seen, tile))
        group = _group(seen, tile, panels) if contiguous else 1
        block_k = _of_group(group, _BLOCK_K, _GROUP_BLOCK_K) if contiguous else _STRIDED_BLOCK_K
        if _reads_runs(seen, choice):
            # two work items at least, for two threads
            block_k, group = _RUN_BLOCK_K, minimum(MAX_RUN, -(-panels // 2))
        chunks = maximum(1, -(-seen.k // block_k))
        if seen.k and choice.way != "direct":
            width = _panel_width(tile, seen.n)
            right_role = self.pack(right, right_role, (seen.k, seen.n), choice.way, width)
            size = up(seen.k, 16) * width
            batch_stride = panels * size if right.batch else 0
            numbers = {"b_batch": batch_stride, "b_panel": size, "b_k": width, "b_direct": 0}
        groups = -(-panels // group)
        rows = block_rows(seen, groups, _of_group(group, seen.k, _GROUP_BLOCK_K))
        numbers |= {"m": seen.m, "n": seen.n, "k": seen.k, "panels": panels, "block_rows": rows}
        numbers |= {"groups": groups, "group": group}
        numbers |= {"a_batch": left.batch, "a_row": left.row, "a_k": left.col}
        numbers |= {"c_batch": self.problem.c.batch, "c_row": self.problem.c.row}
        numbers |= {"row_blocks": -(-seen.m // rows), "block_k": maximum(1, -(-seen.k // chunks))}
        kernel = TiledKernel(dtype.compute, dtype, tile, choice.flipped, seen.accumulates)
        params = (*self.numbers, *(numbers[name] for name in PARAMS))
        start = ("start",) if seen.accumulates else ()
        buffers = (*self.roles, left_role, right_role, *start, *(() if self.epilogue else ("c",)))
        work = seen.batch * groups * numbers["row_blocks"]
        grain = grain_of(rows * group * tile.width * (seen.k + 8), 32)
        key, text = known_text(kernel.key(self.epilogue), lambda: kernel.text(self.epilogue))
        self.plan.calls.append(KernelCall(key, "matmul", text, buffers, params, work, grain))
        return self.plan

    def transposed(self, choice: Choice, roles: tuple[str, str]) -> MatmulPlan:
        """The call of the kernel that transposes the right operand in registers."""
        seen, height = self.problem.transposed if choice.flipped else self.problem, choice.tile.height
        roles = roles[::-1] if choice.flipped else roles
        panels = gemm_vector.panels_of(height, seen.n)
        parts, row_blocks = -(-seen.n // (LANES * panels)), -(-seen.m // height)
        numbers = {"m": seen.m, "n": seen.n, "k": seen.k, "parts": parts, "row_blocks": row_blocks}
        numbers |= {"a_batch": seen.a.batch, "a_row": seen.a.row}
        numbers |= {"b_batch": seen.b.batch, "b_column": seen.b.col}
        numbers |= {"c_batch": self.problem.c.batch, "c_row": self.problem.c.row}
        params = (*self.numbers, *(numbers[name] for name in gemm_vector.PARAMS))
        kernel = gemm_vector.VectorKernel(seen.dtype, seen.dtype.compute, height, panels, choice.flipped)
        key, text = known_text(
            gemm_vector.vector_key(kernel, self.epilogue),
            lambda: gemm_vector.vector_text(kernel, self.epilogue),
        )
        buffers = (*self.roles, *roles, *(() if self.epilogue else ("c",)))
        grain = grain_of((seen.k * (2 + height) + 64) * panels)
        call = KernelCall(key, "matmul", text, buffers, params, seen.batch * row_blocks * parts, grain)
        return MatmulPlan([call], [])

    def generic(self, roles: tuple[str, str]) -> MatmulPlan:
        """The call of the plain kernel."""
        seen = self.problem
        panels = -(-seen.n // LANES)
        numbers = {"m": seen.m, "n": seen.n, "k": seen.k, "panels": panels}
        numbers |= {"a_batch": seen.a.batch, "a_row": seen.a.row, "a_k": seen.a.col}
        numbers |= {"b_batch": seen.b.batch, "b_k": seen.b.row, "b_column": seen.b.col}
        numbers |= {"c_batch": seen.c.batch, "c_row": seen.c.row}
        params = (*self.numbers, *(numbers[name] for name in GENERIC_PARAMS))
        kinds = seen.dtype, seen.dtype.compute, self.epilogue
        key, text = known_text(generic_key(*kinds), lambda: generic_text(*kinds))
        buffers = (*self.roles, *roles, *(() if self.epilogue else ("c",)))
        grain = grain_of(seen.k * 16 + 16)
        call = KernelCall(key, "matmul", text, buffers, params, seen.batch * seen.m * panels, grain)
        return MatmulPlan([call], [])


def plan_matmul(
    problem: MatmulProblem,
    epilogue: Epilogue | None = None,
    epilogue_params: Sequence[int] = (),
    vector_bits: int | None = None,
    choice: int | None = None,
) -> MatmulPlan:
    """The kernel calls that compute ``problem``; without an epilogue the product is stored in c.

    ``epilogue_params`` are the values of the epilogue's numbers. ``choice`` picks one of the possible ways
    instead of the cheapest, for tests and measurements. Raises ValueError if neither rows nor columns of c
    are contiguous, or if the number of parameters is wrong.

    >>> a, b, c = Operand(0, 10, 1), Operand(0, 20, 1), Operand(0, 20, 1)
    >>> product = MatmulProblem(1, 4, 20, 10, a, b, c, dtypes.float32)
    >>> [call.buffers for call in plan_matmul(product).calls]
    [('a', 'b', 'c')]
    """
    if len(epilogue_params) != (0 if epilogue is None else epilogue.params):
        raise ValueError(f"the epilogue takes another number of parameters than {len(epilogue_params)}")
    if problem.batch == 0 or problem.m == 0 or problem.n == 0:
        return MatmulPlan([], [])
    problem, swapped = _normal(problem, epilogue)
    roles = ("b", "a") if swapped else ("a", "b")
    planner = Planner(problem, epilogue, epilogue_params)
    if not problem.dtype.is_floating_point:
        return planner.generic(roles)
    choices = _choices(problem, vector_bits or target.vector_bits())
    if choice is not None:
        return planner.tiled(choices[choice], roles)
    return planner.tiled(min(choices, key=lambda c: _cycles(problem, c, epilogue is None)), roles)


def plan_accumulated_product(sizes: tuple[Any, ...]) -> MatmulPlan:
    """The calls that add the outer products of the rows of "a" and "b" to "start", of ``(rows, m, n, dtype)``."""
    rows, m, n, dtype = sizes
    sides = Operand(0, 1, m), Operand(0, n, 1), Operand(0, n, 1)
    return plan_matmul(MatmulProblem(1, m, n, rows, *sides, dtype, accumulates=True))


def count_choices(
    problem: MatmulProblem, vector_bits: int | None = None, epilogue: Epilogue | None = None
) -> int:
    """How many values ``choice`` of `plan_matmul` may take.

    >>> square = MatmulProblem(1, 8, 8, 8, *[Operand(0, 8, 1)] * 3, dtypes.int32)
    >>> count_choices(square)
    1
    """
    if not problem.dtype.is_floating_point:
        return 1
    return len(_choices(_normal(problem, epilogue)[0], vector_bits or target.vector_bits()))
