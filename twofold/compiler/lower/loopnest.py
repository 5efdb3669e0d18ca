"""The loop IR: what one generated kernel computes, before a line of LLVM text is written.

A ``LoopNest`` runs over outer axes (its parallel rows) and inner axes, in one of these forms:

======== =============================================================================================
scalar   one element, straight code
small    at most sixteen elements along one axis, straight code under one lane mask
flat     one axis, sixteen lanes along it; a work item is an element
grid     outer axes and one inner axis with the lanes; a work item is a piece of a row
tiles    as grid, for loads that lie along the last outer axis: squares of sixteen by sixteen are transposed in
         registers; a work item is sixteen rows of a piece
rows     the inner axes are reduced, lanes along the last of them; a work item is a row. Several phases:
         what a reduction gives may be used by element-wise steps and reductions of later phases
blocks   as rows with one phase, but a work item is a block of 4096 elements of a row
columns  the inner axes are reduced, lanes along the last outer axis; a work item is ``width`` columns
strips   as columns with one phase, but a work item is a block of 4096 elements of each column
epilogue no loops: outer axes batch and row, inner axis column of a matrix product, whose sums it receives
======== =============================================================================================

Sizes, strides and most constants are run-time parameters: the code depends on ``key()`` alone, and nests
with equal keys share machine code.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from twofold.compiler.lower.values import LANES
from twofold.dtypes import DType
from twofold.ir.node import Node
from twofold.ir.op import ReductionOp
from twofold.ir.sizes import Symbol, float_bits

BLOCK = 4096
"""Elements that one reduction accumulates before its result is passed on."""

REDUCING_FORMS = ("rows", "blocks", "columns", "strips")
TILE_PIECE = 64
"""Columns of one work item of tiles: the pages that its rows touch fit the translation buffer."""

WIDE = 64
"""Columns of a wide work item: whole cache lines of every row, and sums that stay in the first level cache."""

_WITHOUT_SIZES = ("scalar", "small", "flat", "epilogue")

_DOUBLE = struct.Struct("<d")
_PLAIN_CONSTANTS = frozenset((0.0, 0.5, 1.0, 2.0, -1.0, float("inf"), float("-inf")))


def block_length(depth: int) -> int:
    """Elements of a block at some depth of the tree of partial sums: each level joins ``BLOCK`` results of the next.

    >>> [block_length(depth) for depth in range(3)]
    [1, 4096, 16777216]
    """
    return BLOCK**depth


def in_order(node: Node) -> bool:
    """Whether a reduction combines elements one after another, so that it has a single lane and no blocks."""
    return isinstance(node.op, ReductionOp) and node.op.in_order


class Access:
    """Where in a buffer an element lies: ``offset + sum(stride * index) + sum(step * value of a step)``."""

    __slots__ = ("dtype", "dynamic", "offset", "slot", "strides")

    def __init__(
        self,
        slot: int,
        dtype: DType,
        offset: int,
        strides: tuple[int, ...],
        dynamic: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self.slot = slot
        self.dtype = dtype
        self.offset = offset
        self.strides = strides
        self.dynamic = dynamic

    def __repr__(self) -> str:
        parts = [f"{stride}*i{axis}" for axis, stride in enumerate(self.strides) if stride]
        parts += [f"{stride}*s{step}" for step, stride in self.dynamic]
        if self.offset or not parts:
            parts.append(str(self.offset))
        return f"b{self.slot}[{' + '.join(parts)}]"


class Step:
    """One value: ``load``, ``index`` (its element number), ``constant``, ``op``, ``reduce``, or ``accumulator`` (sums
    of a matrix product)."""

    __slots__ = ("access", "args", "kind", "node")

    def __init__(
        self, kind: str, node: Node, args: tuple[int, ...] = (), access: Access | None = None
    ) -> None:
        self.kind = kind
        self.node = node
        self.args = args
        self.access = access

    @property
    def dtype(self) -> DType:
        """Element type of the value."""
        return self.node.type.dtype

    def __repr__(self) -> str:
        if self.kind == "load":
            return f"{self.access} : {self.dtype.name}"
        if self.kind == "index":
            return f"index {self.access}"
        if self.kind == "constant":
            return f"{self.node.attrs[0]!r} : {self.dtype.name}"
        arguments = ", ".join(f"s{argument}" for argument in self.args)
        return f"{self.node.op.name}({arguments}) : {self.dtype.name}"


class Store:
    """The value of ``step`` written to a buffer; ``row`` tells that it does not vary along the inner axes."""

    __slots__ = ("access", "row", "step")

    def __init__(self, step: int, access: Access, row: bool = False) -> None:
        self.step = step
        self.access = access
        self.row = row

    def __repr__(self) -> str:
        return f"{self.access} = s{self.step}"


class LoopNest:
    """One kernel in the loop IR; see the module docstring.

    ``kept`` says how a value of an earlier phase is found again in a later one: the number of the store that
    wrote it, or -1 for a copy of the row on the stack. What is not kept is computed again. ``width`` is the
    number of columns of a work item of ``columns`` and ``strips``: 16, or 64 where one phase is all. A nest that
    ``streams`` writes the results ``streamed`` past the caches.
    """

    __slots__ = ("form", "inner", "kept", "outer", "steps", "stores", "streams", "width")

    def __init__(
        self,
        form: str,
        outer: tuple[int, ...],
        inner: tuple[int, ...],
        steps: Sequence[Step],
        stores: list[Store],
        kept: dict[int, int] | None = None,
    ) -> None:
        self.form = form
        self.outer = outer
        self.inner = inner
        self.steps = steps
        self.stores = stores
        self.kept = kept or {}
        self.width = LANES
        self.streams = False

    @property
    def reduced(self) -> int:
        """Elements along the inner axes."""
        size = 1
        for length in self.inner:
            size *= length
        return size

    @property
    def streamed(self) -> list[int]:
        """The stores along the inner axes that no later phase loads again."""
        again = set(self.kept.values())
        return [number for number, store in enumerate(self.stores) if not store.row and number not in again]

    @property
    def lanes(self) -> int:
        """How many partial sums each reduction has; all reductions of a nest have as many."""
        return 1 if any(step.kind == "reduce" and in_order(step.node) for step in self.steps) else LANES

    @property
    def depth(self) -> int:
        """How the reduced length is cut: -1 one vector, 0 one block, 1 blocks, 2 blocks of blocks."""
        size = self.reduced
        if self.form in ("blocks", "strips") or self.lanes == 1:
            return 0
        if size <= LANES and self.form == "rows" and len(self.inner) == 1:
            return -1
        return 0 if size <= BLOCK else 1 if size <= block_length(2) else 2

    @property
    def vector_axis(self) -> int:
        """The axis that the sixteen lanes lie along, -1 if none does."""
        if self.form == "scalar":
            return -1
        return (
            len(self.outer) - 1
            if self.form in ("columns", "strips")
            else len(self.outer) + len(self.inner) - 1
        )

    @property
    def piece(self) -> int:
        """How many elements of a row one work item of a grid or of tiles handles."""
        return TILE_PIECE if self.form == "tiles" else piece_length(self.inner[0])

    def transposed(self) -> list[int]:
        """The steps that load along another axis than the lanes: the last outer (tiles) or reduced one (columns)."""
        loads = [(number, step) for number, step in enumerate(self.steps) if step.kind == "load"]
        if self.form == "tiles":
            return [number for number, step in loads if step.access and lies_across(step.access.strides)]
        if self.form in ("columns", "strips") and self.inner:
            return [number for number, step in loads if step.access and self._lies_along(step.access)]
        return []

    def _lies_along(self, access: Access) -> bool:
        """Whether neighbours in memory are neighbours along the last reduced axis, not along the columns."""
        is_vector = access.dtype.kind != "c"
        return is_vector and access.strides[-1] == 1 and access.strides[self.vector_axis] not in (0, 1)

    def accesses(self) -> Iterator[Access]:
        """All accesses, in the order in which their parameters are laid out."""
        for step in self.steps:
            if step.access is not None:
                yield step.access
        for store in self.stores:
            yield store.access

    def layout(self) -> Iterator[tuple[tuple[str, int, int], int]]:
        """Name and value of every run-time parameter, in order."""
        if self.form not in _WITHOUT_SIZES:
            for axis, size in enumerate((*self.outer, *self.inner)):
                yield ("size", axis, 0), size
            if self.form in ("grid", "tiles"):
                yield ("piece", 0, 0), self.piece
        vector = self.vector_axis
        for number, access in enumerate(self.accesses()):
            if access.offset:
                yield ("offset", number, 0), access.offset
            for axis, stride in enumerate(access.strides):
                if stride and (axis != vector or stride != 1):
                    yield ("stride", number, axis), stride
            for position, (_, stride) in enumerate(access.dynamic):
                yield ("dynamic", number, position), stride
        for number, step in enumerate(self.steps):
            if step.kind == "constant" and not is_plain(step.node):
                yield ("constant", number, 0), constant_bits(step.node)

    def parameters(self) -> list[int]:
        """The run-time parameters."""
        return [value for _, value in self.layout()]

    def levels(self) -> list[int]:
        """Where each step is computed: 0 once per call, 1 once per row (columns: per column), 2 per element."""
        split = len(self.outer)
        levels: list[int] = []
        for step in self.steps:
            if step.kind == "reduce":
                level = 1
            elif step.access is not None:
                strides = step.access.strides
                level = 2 if any(strides[split:]) else 1 if any(strides[:split]) else 0
            else:
                level = max((levels[argument] for argument in step.args), default=0)
            levels.append(level)
        return levels

    def phases(self) -> list[int]:
        """The first phase in which each step can be computed; a reduction ends the phase of its argument."""
        phases: list[int] = []
        for step in self.steps:
            phase = max((phases[argument] for argument in step.args), default=0)
            phases.append(phase + 1 if step.kind == "reduce" else phase)
        return phases

    def key(self) -> tuple[Any, ...]:
        """What the code depends on."""
        vector = self.vector_axis
        steps: list[Any] = []
        for step in self.steps:
            node = step.node
            if step.kind == "accumulator":  # whatever the product is
                steps.append((step.kind, step.dtype))
            elif step.kind in ("op", "reduce"):
                steps.append((node.op.name, typed_attributes(node.attrs), node.type.dtype, step.args))
            elif step.kind == "constant":
                plain = is_plain(node)
                steps.append((node.type.dtype, str(node.attrs[0]) if plain else None))
            else:
                assert step.access is not None
                steps.append((step.kind, access_key(step.access, vector)))
        stores = tuple((store.step, store.row, access_key(store.access, vector)) for store in self.stores)
        sizes = (
            len(self.outer),
            len(self.inner),
            self.depth if self.form in REDUCING_FORMS else 0,
            self.width,
            self.streams,
        )
        return (self.form, sizes, tuple(steps), stores, tuple(self.kept.items()), tuple(self.transposed()))

    def text(self) -> str:
        """The nest, printed."""
        lines = [f"{self.form} outer{list(self.outer)} inner{list(self.inner)}"]
        lines += [f"  s{number} = {step}" for number, step in enumerate(self.steps)]
        lines += [f"  {store}" for store in self.stores]
        lines += [
            f"  keep s{step} {'on the stack' if how < 0 else f'in store {how}'}"
            for step, how in self.kept.items()
        ]
        return "\n".join(lines)


def lies_across(strides: tuple[int, ...]) -> bool:
    """Whether neighbours in memory are neighbours along the last outer axis, not along the inner one."""
    return len(strides) > 1 and strides[-2] == 1 and strides[-1] not in (0, 1)


def piece_length(inner: int) -> int:
    """How many elements of a row one work item of a grid handles.

    >>> piece_length(10), piece_length(100_000)
    (10, 4096)
    """
    return inner if inner <= 2 * BLOCK else BLOCK


def access_key(access: Access, vector: int) -> tuple[Any, ...]:
    """What code depends on in an access: which strides and offsets are zero, and the stride along the lanes."""
    classes = tuple(
        0 if stride == 0 else stride if axis == vector and stride in (1, -1) else 2
        for axis, stride in enumerate(access.strides)
    )
    return (access.slot, access.dtype, access.offset != 0, classes, tuple(step for step, _ in access.dynamic))


def typed_attributes(value: Any) -> Any:
    """Attributes as a key that tells 1 from 1.0 and True, and 0.0 from -0.0; a symbol is its number, as in the code."""
    if value == ():
        return value
    if isinstance(value, tuple):
        return tuple(typed_attributes(item) for item in value)
    if isinstance(value, Symbol):
        return (int, int(value))
    if isinstance(value, complex):
        return (complex, value.real.hex(), value.imag.hex())
    return (type(value), value.hex() if isinstance(value, float) else value)


def is_plain(node: Node) -> bool:
    """Whether a constant is written into the code; all others are parameters, so that code can be shared."""
    value = node.attrs[0]
    if isinstance(value, Symbol):
        return False
    if isinstance(value, bool) or node.type.dtype.kind in "bc":
        return True
    return value in _PLAIN_CONSTANTS and (value != 0 or str(value) != "-0.0")


def constant_bits(node: Node) -> int:
    """A constant as a parameter: an integer itself, a float as the bits of the float64."""
    value = node.attrs[0]
    if isinstance(value, Symbol):
        return float_bits(value) if node.type.dtype.kind == "f" else value  # type: ignore[return-value]
    if node.type.dtype.kind == "f":
        # of all NaNs the canonical one
        number = float(value) if value == value else math.nan
        return int.from_bytes(_DOUBLE.pack(number), "little", signed=True)
    wrapped = int(value) & ((1 << 64) - 1)
    return wrapped - (1 << 64) if wrapped >> 63 else wrapped
