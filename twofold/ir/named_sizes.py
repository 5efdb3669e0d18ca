"""Symbolic sizes of a define-then-run graph, which the types of the core hold as names.

The types of the core hold integers. A symbol is a negative integer there, its name. Types that Python code reads have
the symbol again: functions of tensors compute with symbols, and their branches become guards of the graph.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from twofold import _core
from twofold.dtypes import int64
from twofold.ir.bind import input_node
from twofold.ir.node import Attributes
from twofold.ir.op import Op
from twofold.ir.recording import Recording
from twofold.ir.shape_inference import new_unknown_size
from twofold.ir.sizes import Symbol
from twofold.ir.types import TensorType, tensor_type

_HOLDS = {"eq": operator.eq, "lt": operator.lt, "le": operator.le}


class NamedType(NamedTuple):
    """The type of an input with symbolic sizes.

    Attributes:
        given: The type for the sizes at hand.
        named: The type with names in place of symbolic sizes.
        positions: For each axis the position of its size among the inputs of the recording; None for a constant.
    """

    given: TensorType
    named: TensorType
    positions: tuple[int | None, ...]

    def sizes_in(self, type: TensorType, varies: Sequence[bool]) -> dict[int, int] | None:
        """The sizes of ``type`` by position; None if it does not match, or if ``varies`` tells other axes."""
        own = self.given
        if type.dtype is not own.dtype or type.weak is not own.weak or len(type.shape) != len(own.shape):
            return None
        found = {}
        for position, open_, size, known in zip(self.positions, varies, type.shape, own.shape):
            if (position is not None) != open_ or (position is None and size != known):
                return None
            if position is not None:
                found[position] = size
        return found


class NamedSizes(Recording):
    """A recording over symbolic sizes of inputs, which are added as they are declared.

    >>> from twofold.dtypes import float32
    >>> sizes = NamedSizes()
    >>> sizes.symbolic(sizes.add_input(tensor_type(float32, (16, 8)), (True, False), {}).named).shape
    (s0, 8)
    """

    def __init__(self) -> None:
        super().__init__((), ())
        self._names: dict[int, int] = {}
        self._by_name: dict[int, Symbol] = {}
        self._positions: dict[int, frozenset[int]] = {}
        # positions of sizes that are symbols of their own, whatever they are equal to
        self._apart: set[int] = set()
        self.operands: list[tuple[Any, Symbol]] = []
        """Placeholders of sizes, with their symbols."""

    def add_input(
        self, type: TensorType, varies: Sequence[bool], now: dict[int, int], apart: Collection[int] = ()
    ) -> NamedType:
        """Add an input.

        Args:
            type: Its type for the sizes at hand.
            varies: For each axis, whether its size is symbolic.
            now: The sizes at hand by position, to which those of the input are added; equal sizes are one symbol.
            apart: The axes whose sizes are symbols of their own, even where they are equal to others.
        """
        positions = tuple(
            [
                self._add_size(size, now, axis in apart) if own else None
                for axis, (size, own) in enumerate(zip(type.shape, varies, strict=True))
            ]
        )
        shape = [n if k is None else self.inputs[k] for n, k in zip(type.shape, positions)]
        return NamedType(type, self.named(tensor_type(type.dtype, tuple(shape), type.weak)), positions)

    def _add_size(self, size: int, now: dict[int, int], is_apart: bool) -> int:
        position = len(self.values)
        like = None
        if is_apart:
            self._apart.add(position)
        else:
            like = next((k for k, other in now.items() if other == size and k not in self._apart), None)
        self.values += (size if like is None else self.values[like],)
        own = self._atom(("input", position), self.values[position], 0)
        self.inputs.append(own if like is None else self.inputs[like])
        if like is not None:
            self.guards.append(("eq", own, self.inputs[like], True))
        now[position] = size
        return position

    def holds(self, now: Mapping[int, int]) -> bool:
        """Whether sizes by position are equal exactly where their symbols are, and meet the guards on them.

        Symbols of sizes that are apart may be equal.
        """
        by_symbol: dict[int, int] = {}
        by_size: dict[int, int] = {}
        for position, size in now.items():
            if position in self._apart:
                continue
            symbol = self.inputs[position].number
            if by_symbol.setdefault(symbol, size) != size or by_size.setdefault(size, symbol) != symbol:
                return False
        if all(self.values[position] == size for position, size in now.items()):
            return True
        known = {self._owner(position): size for position, size in now.items()} | dict(now)
        return all(self._is_met(guard, known) for guard in self.guards_over(known))

    def _is_met(self, guard: tuple[str, Any, Any, bool], known: Mapping[int, int]) -> bool:
        name, a, b, holds = guard
        try:
            found: bool = _HOLDS[name.removeprefix("f")](self.at(a, known), self.at(b, known))
        except ArithmeticError:
            return False
        return found is holds

    def _owner(self, position: int) -> int:
        """The position whose atom is the symbol of a size."""
        ((atom,), _) = self.inputs[position].terms[0]
        owner: int = self.atom(atom)[1]
        return owner

    def registers(self, positions: Sequence[int]) -> dict[int, int]:
        """The registers of a size program over the inputs at some positions, by the position of atoms."""
        found = {position: k for k, position in enumerate(positions)}
        for k, position in enumerate(positions):
            found.setdefault(self._owner(position), k)
        return found

    def guards_over(self, known: Collection[int]) -> list[tuple[str, Any, Any, bool]]:
        """The guards on expressions over the inputs at ``known`` positions."""
        return [guard for guard in self.guards if all(self.follows(x, known) for x in guard[1:3])]

    def follows(self, value: Any, known: Collection[int]) -> bool:
        """Whether a number is an expression over the inputs at ``known`` positions."""
        return all(position in known for position in self._positions_of(value))

    def _positions_of(self, value: Any) -> frozenset[int]:
        if not isinstance(value, Symbol):
            return frozenset()
        found = self._positions.get(value.number)
        if found is None:
            atoms = {atom for monomial, _ in value.terms for atom in monomial}
            parts = [self.atom(atom) for atom in atoms]
            own = frozenset([arguments[0] for name, *arguments in parts if name == "input"])
            inner = [self._positions_of(one) for name, *two in parts if name != "input" for one in two]
            found = self._positions[value.number] = own.union(*inner)
        return found

    def _name(self, size: Any) -> int:
        if not isinstance(size, Symbol):
            return int(size)
        name = self._names.get(size.number)
        if name is None:
            name = self._names[size.number] = new_unknown_size()
            self._by_name[name] = size
        return name

    def named(self, type: TensorType) -> TensorType:
        """A type with names in place of symbols."""
        return tensor_type(type.dtype, tuple([self._name(size) for size in type.shape]), type.weak)

    def symbolic(self, type: TensorType) -> TensorType:
        """A type with symbols in place of names; names of other recordings stay."""
        if not any(size in self._by_name for size in type.shape):
            return type
        shape: Any = tuple([size if size >= 0 else self._by_name[size] for size in type.shape])
        return tensor_type(type.dtype, shape, type.weak)

    def result_type(self, op: Op, attrs: Attributes, types: Sequence[TensorType]) -> TensorType:
        """Execute a type rule on symbols.

        Args:
            op: The operation.
            attrs: Its attributes.
            types: The types of its operands, with names.

        Returns:
            The type of its result, with names.
        """
        inputs = [input_node(k, self.symbolic(type)) for k, type in enumerate(types)]
        return self.named(op.build(attrs, inputs).type)

    def operand(self, symbol: Symbol) -> Any:
        """A placeholder that is this size when the graph runs, as a Python number."""
        made = _core.placeholder(tensor_type(int64, (), True))
        self.operands.append((made, symbol))
        return made
