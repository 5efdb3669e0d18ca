"""Code for the values of a loop nest: loads by the kind of their stride, and the operations' own rules."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from twofold.compiler.lower.builder import Builder
from twofold.compiler.lower.loopnest import LoopNest, Step, is_plain
from twofold.compiler.lower.outlined import LONG, called
from twofold.compiler.lower.values import LANES, Val
from twofold.dtypes import float64, int64
from twofold.ir.node import Node
from twofold.ir.op import ElementwiseOp


class Position:
    """Where code is being emitted: the index along the lanes' axis, its mask, and a pointer for each access.

    ``squares`` are the accesses whose pointers are those of lanes that lie side by side, see ``squares.py``.
    """

    __slots__ = ("index", "lanes", "mask", "pointers", "squares", "values")

    def __init__(
        self,
        index: Val | int,
        lanes: int,
        mask: Val | None,
        pointers: Sequence[Val | None],
        values: dict[int, Val],
        squares: Container[int] = (),
    ) -> None:
        self.index = index
        self.lanes = lanes
        self.mask = mask
        self.pointers = pointers
        self.values = values
        self.squares = squares


class Expression:
    """Emits the steps and stores of one nest; loops are emitted by its users."""

    def __init__(self, nest: LoopNest, builder: Builder) -> None:
        self.nest = nest
        self.b = builder
        self.levels = nest.levels()
        self.accesses = list(nest.accesses())
        self.vector_axis = nest.vector_axis
        self._names = {name: number for number, (name, _) in enumerate(nest.layout())}
        self._access_of_step: dict[int, int] = {}
        for number, step in enumerate(nest.steps):
            if step.access is not None:
                self._access_of_step[number] = len(self._access_of_step)
        self._first_store = len(self._access_of_step)

    # Parameters

    def size(self, axis: int) -> Val:
        """The length of an axis (outer axes come first)."""
        return self.b.param(self._names["size", axis, 0])

    def parameter(self, name: str, number: int, position: int = 0) -> Val:
        """A run-time parameter by the name that the layout gives it."""
        return self.b.param(self._names[name, number, position])

    def stride(self, access: int, axis: int) -> Val | int:
        """The stride of an access along an axis: 0 and, along the lanes, 1 are known; all else is read."""
        found = self._names.get(("stride", access, axis))
        if found is not None:
            return self.b.param(found)
        return int(self.accesses[access].strides[axis])

    # Addresses

    def start(self, number: int, values: dict[int, Val]) -> Val:
        """The element number where an access begins: its offset and the offsets known only at run time."""
        b, access = self.b, self.accesses[number]
        where = self.parameter("offset", number) if access.offset else b.const(0, int64)
        for position, (step, _) in enumerate(access.dynamic):
            stride = self.parameter("dynamic", number, position)
            where = b.add(where, b.mul(values[step], stride))
        return where

    def moved(self, number: int, where: Val, axes: Iterable[int], coordinates: Sequence[Val]) -> Val:
        """``where`` moved to ``coordinates`` along ``axes``."""
        for axis, coordinate in zip(axes, coordinates, strict=True):
            if self.accesses[number].strides[axis]:
                where = self.b.add(where, self.b.mul(coordinate, self.stride(number, axis)))
        return where

    def pointer(self, number: int, where: Val) -> Val:
        """The address of element ``where`` for a load or store; an index step keeps the number itself."""
        access = self.accesses[number]
        if access.slot < 0:
            return where
        return self.b.offset(self.b.buffer(access.slot), where, access.dtype)

    # Values

    def evaluate(self, numbers: Iterable[int], index: Position) -> None:
        """Emit the steps ``numbers``, in order, into ``position.values``."""
        for number in numbers:
            if number not in index.values:
                index.values[number] = self._value(number, self.nest.steps[number], index)

    def _value(self, number: int, step: Step, index: Position) -> Val:
        if step.kind == "op":
            arguments = [index.values[argument] for argument in step.args]
            assert isinstance(step.node.op, ElementwiseOp)
            if not step.node.op.reads_bits:
                arguments = [self.widened(argument) for argument in arguments]
            return self._operation(step.node, arguments)
        if step.kind == "constant":
            return self._constant(number, step.node)
        if step.kind == "index":
            return self._index(self._access_of_step[number], index)
        return self._load(self._access_of_step[number], index)

    def widened(self, value: Val) -> Val:
        """A value in the dtype that arithmetic runs in."""
        assert value.dtype is not None
        return self.b.cast(value, value.dtype.compute)

    def _operation(self, node: Node, arguments: list[Val]) -> Val:
        assert isinstance(node.op, ElementwiseOp)
        dtype, keeps = node.type.dtype, node.op.keeps_nan
        if keeps:
            arguments = [self.b.settled(argument) for argument in arguments]
        long = operation_cost(node) >= LONG
        result = called(self.b, node.op, node.attrs, dtype, arguments) if long else None
        if result is None:
            result = node.op.lower(self.b, node.attrs, dtype, *arguments)
        if not isinstance(result, Val):
            return self.b.const(result, dtype)
        if not keeps:
            result = self.b.opened(result)
        # each node is rounded to its own dtype, so that fusion changes no bit
        return self.b.cast(result, dtype)

    def _constant(self, number: int, node: Node) -> Val:
        b, dtype = self.b, node.type.dtype
        if is_plain(node):
            return b.const(node.attrs[0], dtype)
        bits = self.parameter("constant", number)
        if dtype.kind == "f":
            return b.cast(b.bitcast(bits, float64), dtype)
        return b.cast(bits, dtype)

    def _along(self, number: int) -> Val | int:
        return self.stride(number, self.vector_axis) if self.vector_axis >= 0 else 0

    def _index(self, number: int, index: Position) -> Val:
        b, where = self.b, index.pointers[number]
        assert where is not None
        stride = self._along(number)
        if isinstance(stride, int) and stride == 0:
            return where
        where = b.add(where, b.mul(b.index(index.index), stride))
        if index.lanes == 1:
            return where
        return b.add(b.splat(where), b.mul(b.iota(), stride))

    def _load(self, number: int, index: Position) -> Val:
        b, pointer, dtype = self.b, index.pointers[number], self.accesses[number].dtype
        assert pointer is not None
        if number in index.squares:
            return b.load(pointer, 0, dtype, index.lanes)
        stride = self._along(number)
        if isinstance(stride, int):
            if stride == 0:
                return b.load(pointer, 0, dtype)
            return b.load(pointer, index.index, dtype, index.lanes, mask=index.mask)
        first = b.mul(b.index(index.index), stride)
        if index.lanes == 1:
            return b.load(pointer, first, dtype)
        if self.accesses[number].strides[self.vector_axis] == -1 and dtype.itemsize <= int64.itemsize:
            return b.load_reversed(pointer, first, dtype, mask=index.mask)
        return b.load_strided(pointer, first, stride, dtype, mask=index.mask)

    def store(
        self, number: int, index: Position, value: Val | None = None, streams: Val | None = None
    ) -> None:
        """Emit store ``number`` at ``position``, past the caches where ``streams`` is true."""
        b, store = self.b, self.nest.stores[number]
        access = self._first_store + number
        pointer = index.pointers[access]
        assert pointer is not None
        value = index.values[store.step] if value is None else value
        stride = self._along(access)
        if isinstance(stride, int) and stride == 0:
            b.store(pointer, 0, value)
        elif isinstance(stride, int):
            wide = b.splat(value) if index.lanes == LANES else value
            if streams is None:
                b.store(pointer, index.index, wide, mask=index.mask)
                return
            branch = b.if_(streams)
            with branch:
                b.store(pointer, index.index, wide, nontemporal=True)
            with branch.else_():
                b.store(pointer, index.index, wide, mask=index.mask)
        else:
            first = b.mul(b.index(index.index), stride)
            if index.lanes == 1:
                b.store(pointer, first, value)
            else:
                b.store_strided(pointer, first, stride, b.splat(value), mask=index.mask)

    def reload(self, number: int, index: Position) -> Val:
        """Load again what store ``number`` wrote."""
        return self._load(self._first_store + number, index)

    def access_of(self, step: int) -> int:
        """The access number of a load or index step."""
        return self._access_of_step[step]

    def access_of_store(self, number: int) -> int:
        """The access number of a store."""
        return self._first_store + number


def weight(steps: Iterable[Step], dtype_sizes: bool = False) -> int:
    """A rough count of the instructions of ``steps`` (never part of a decision that changes bits)."""
    return sum(operation_cost(step.node) for step in steps if step.kind == "op")


_COSTS: dict[tuple[object, ...], int] = {}


def operation_cost(node: Node) -> int:
    """How many instructions an element-wise node takes on sixteen lanes, counted once by emitting it."""
    op = node.op
    assert isinstance(op, ElementwiseOp)
    key = (op.name, node.type.dtype, *[value.type.dtype for value in node.inputs])
    found = _COSTS.get(key)
    if found is None:
        b = Builder()
        before = len(b._lines)
        kinds = [value.type.dtype if op.reads_bits else value.type.dtype.compute for value in node.inputs]
        arguments = [Val(f"%x{k}", dtype, LANES) for k, dtype in enumerate(kinds)]
        op.lower(b, node.attrs, node.type.dtype, *arguments)
        found = _COSTS[key] = max(1, len(b._lines) - before)
    return found
