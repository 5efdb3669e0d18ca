"""Sizes that stand in the core's types as names while a graph is declared for all sizes at once.

The core's types hold integers. A symbol has a negative one there, its name; the type that a program is shown has the
symbol again. So functions of tensors compute with symbols, and what they decide is a guard of the graph.
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
from twofold.ir.sizes import Symbol
from twofold.ir.types import TensorType, tensor_type
from twofold.ir.unknown import new_unknown_size

_HOLDS = {"same": operator.eq, "below": operator.lt, "at_most": operator.le}


class NamedType(NamedTuple):
    """The type of an input: as it was given, as it is declared, and the positions of its open sizes by axis."""

    given: TensorType
    named: TensorType
    positions: tuple[int | None, ...]

    def sizes_in(self, type: TensorType, varies: Sequence[bool]) -> dict[int, int] | None:
        """The sizes of a type by the positions here; None if it does not fit, or if others of its sizes are open."""
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
    """A recording over the open sizes of inputs, to which more come as they are needed.

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
        self.operands: list[tuple[Any, Symbol]] = []
        """Declared tensors that are sizes, with these."""

    def add_input(self, type: TensorType, varies: Sequence[bool], now: dict[int, int]) -> NamedType:
        """The type of one more input, with the open sizes that ``varies`` tells.

        ``now`` has sizes by position, to which these come: where one is the same, the two are one symbol.
        """
        positions = tuple(
            [self._add_size(size, now) if own else None for size, own in zip(type.shape, varies, strict=True)]
        )
        shape = [n if k is None else self.inputs[k] for n, k in zip(type.shape, positions)]
        return NamedType(type, self.named(tensor_type(type.dtype, tuple(shape), type.weak)), positions)

    def _add_size(self, size: int, now: dict[int, int]) -> int:
        position = len(self.values)
        like = next((k for k, other in now.items() if other == size), None)
        self.values += (size if like is None else self.values[like],)
        own = self._atom(("input", position), self.values[position], 0)
        self.inputs.append(own if like is None else self.inputs[like])
        if like is not None:
            self.guards.append(("same", own, self.inputs[like], True))
        now[position] = size
        return position

    def holds(self, now: Mapping[int, int]) -> bool:
        """Whether sizes by position are one where their symbols are, and meet the guards on them."""
        by_symbol: dict[int, int] = {}
        by_size: dict[int, int] = {}
        for position, size in now.items():
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
            found: bool = _HOLDS[name.removeprefix("real_")](self.at(a, known), self.at(b, known))
        except ArithmeticError:
            return False
        return found is holds

    def _owner(self, position: int) -> int:
        """The position whose atom stands for a size and all that are one with it."""
        ((atom,), _) = self.inputs[position].terms[0]
        owner: int = self.atom(atom)[1]
        return owner

    def registers(self, positions: Sequence[int]) -> dict[int, int]:
        """For programs over the inputs at some positions: which of these an atom of an input is."""
        found = {position: k for k, position in enumerate(positions)}
        for k, position in enumerate(positions):
            found.setdefault(self._owner(position), k)
        return found

    def guards_over(self, known: Collection[int]) -> list[tuple[str, Any, Any, bool]]:
        """The guards on what follows from the inputs at ``known`` positions."""
        return [guard for guard in self.guards if all(self.follows(x, known) for x in guard[1:3])]

    def follows(self, value: Any, known: Collection[int]) -> bool:
        """Whether a number follows from the inputs at ``known`` positions."""
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
        """A type with symbols in place of names; one that was declared elsewhere stays as it is."""
        if not any(size in self._by_name for size in type.shape):
            return type
        shape: Any = tuple([size if size >= 0 else self._by_name[size] for size in type.shape])
        return tensor_type(type.dtype, shape, type.weak)

    def result_type(self, op: Op, attrs: Attributes, types: Sequence[TensorType]) -> TensorType:
        """The type of a call, by its rule on symbols."""
        inputs = [input_node(k, self.symbolic(type)) for k, type in enumerate(types)]
        return self.named(op.build(attrs, inputs).type)

    def operand(self, symbol: Symbol) -> Any:
        """A declared tensor that is this size when the graph runs, as a Python number."""
        made = _core.placeholder(tensor_type(int64, (), True))
        self.operands.append((made, symbol))
        return made
