"""Recordings: the inputs that symbolic sizes stand for, and every decision taken on them, as guards."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from twofold.ir.sizes import Monomial, Symbol, Terms, identity, look_up, maximum, minimum, real, terms_of

_recordings = itertools.count()

_OF_FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "quotient": operator.floordiv,
    "modulo": operator.mod,
    "most": maximum,
    "least": minimum,
}

_OF_ATOMS: dict[str, Callable[[Any, Any], Any]] = {
    **_OF_FORMULAS,
    "look_up": look_up,
    "as_real": lambda a, _: real(a),
    "real_add": operator.add,
    "real_multiply": operator.mul,
    "real_divide": operator.truediv,
    "whole": lambda a, _: math.floor(a),
}

_SLACK = 1.3

Formula = tuple[tuple[int, tuple[Any, ...]], ...]
"""A polynomial apart from any recording: factors with atoms, each ``("input", position)`` or an operation on two."""


class Facts(NamedTuple):
    """What a recording takes for granted of its inputs: positions that are fixed, and those that follow from others.

    A recording that finds more raises it, to be started again with these facts, too.
    """

    fixed: frozenset[int] = frozenset()
    formulas: tuple[tuple[frozenset[int], Formula], ...] = ()

    def also(self, more: Facts) -> Facts:
        """All facts of both."""
        return Facts(self.fixed | more.fixed, self.formulas + more.formulas)


_NONE = Facts()


class Narrowed(Exception):
    """Two numbers are taken to be equal, one of them at least a symbol: ``facts`` make them one."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(f"sizes are equal: {facts}")
        self.facts = facts


class Recording:
    """Expressions over some inputs, and the guards met while computing with them.

    ``values`` are the example; ``lowest`` what each input is at least (None if nothing is known). By ``facts`` some
    inputs stay numbers, or follow from others; the rest are symbols, one for all that are equal in the example, so
    that types that are equal for the example are one type over the symbols, too: which values a gradient adds up, and
    in which order, follows from which nodes are one. For the same reason a ``strict`` recording raises Narrowed where
    two numbers that differ are taken to be equal. With ``apart`` each input has a symbol of its own: of a call that
    does nothing but join its operands, whose sizes are equal by chance.

    >>> recording = Recording([32, 10, 32, 7], [0, 0, 0, 0], Facts(frozenset({3})))
    >>> n, m, same, seven = recording.inputs
    >>> same is n, seven, (n * m + n) // n - 1 == m, 2 * n > m
    (True, 7, True, True)
    >>> recording.guards[2:]
    [('same', s0, 0, False), ('below', s1, 2*s0, True)]
    """

    is_open = False  # whether nothing is known of the sizes, see ``twofold.ir.unknown``

    def __init__(
        self,
        values: Sequence[int],
        lowest: Sequence[int | None],
        facts: Facts = _NONE,
        strict: bool = False,
        apart: bool = False,
    ) -> None:
        self.name = f"{next(_recordings)}"
        self.values = tuple(values)
        self.guards: list[tuple[str, Any, Any, bool]] = []
        self.compared: dict[tuple[Any, ...], bool] = {}
        self.types: dict[Any, Any] = {}
        self._atoms: list[tuple[Any, ...]] = []
        self._examples: list[int | float] = []
        self._lowest: list[int | None] = []
        self._known: dict[Any, Symbol] = {}
        self._atom_numbers: dict[tuple[Any, ...], int] = {}
        self._decided: dict[tuple[str, Any, Any], bool] = {}
        self.strict = strict
        self._follows = {position: formula for positions, formula in facts.formulas for position in positions}
        self._shared: dict[int, Symbol] = {}
        self._groups = range(len(values)) if apart else self.values  # inputs of one group have one symbol
        symbols = [  # their atoms have the numbers of their positions
            self._atom(("input", number), value, low)
            for number, (value, low) in enumerate(zip(values, lowest, strict=True))
        ]
        for position, (symbol, group) in enumerate(zip(symbols, self._groups)):
            if position not in facts.fixed and position not in self._follows:
                first = self._shared.setdefault(group, symbol)
                low = min(
                    [low for low, other in zip(lowest, self._groups) if low is not None and other == group],
                    default=None,
                )
                self._lowest[first.terms[0][0][0]] = low
        self.inputs: list[Any] = [
            value if position in facts.fixed else self._input(position)
            for position, value in enumerate(values)
        ]
        self.guards += [("same", a, b, True) for a, b in zip(symbols, self.inputs) if a is not b]

    def _input(self, position: int) -> Any:
        formula = self._follows.get(position)
        return self._shared[self._groups[position]] if formula is None else self._from(formula)

    def _from(self, formula: Formula) -> Any:
        """A formula over the inputs of this recording."""
        total: Any = 0
        for factor, atoms in formula:
            product: Any = factor
            for name, *arguments in atoms:
                if name == "input":
                    product = product * self._input(arguments[0])
                else:
                    a, b = (self._from(part) if isinstance(part, tuple) else part for part in arguments)
                    product = product * _OF_FORMULAS[name](a, b)
            total = total + product
        return total

    def _formula(self, terms: Terms) -> Formula | None:
        """Terms apart from this recording; None where they hold real numbers or tables."""
        found = []
        for monomial, factor in terms:
            atoms: list[tuple[Any, ...]] = []
            for atom in monomial:
                name, *arguments = self._atoms[atom]
                if name != "input":
                    if name not in _OF_FORMULAS:
                        return None
                    arguments = [self._formula(terms_of(argument)) for argument in arguments]
                    if None in arguments:
                        return None
                atoms.append((name, *arguments))
            found.append((factor, tuple(atoms)))
        return tuple(found)

    def _equality(self, a: Any, b: Any) -> Facts:
        """What makes two numbers one: an input that follows from others, or else all inputs of both fixed."""
        difference = b - a
        factors = [factor for _, factor in difference.terms]
        common = math.gcd(*factors)
        for monomial, factor in difference.terms:
            if len(monomial) != 1 or abs(factor) != common or self._atoms[monomial[0]][0] != "input":
                continue
            rest = tuple((other, -own // factor) for other, own in difference.terms if other != monomial)
            position = monomial[0]
            if any(position in self._inputs_of(self.symbol((term,), 0)) for term in rest if term[0]):
                continue
            formula = self._formula(rest)
            if formula is not None:
                return Facts(formulas=((self._equal_to(position), formula),))
        return Facts(self._inputs_of(a) | self._inputs_of(b))

    def _atom(self, atom: tuple[Any, ...], example: int | float, low: int | None = None) -> Symbol:
        key = identity(atom)
        number = self._atom_numbers.get(key)
        if number is None:
            number = self._atom_numbers[key] = len(self._atoms)
            self._atoms.append(atom)
            self._examples.append(example)
            self._lowest.append(low)
        return self.symbol((((number,), 1),), example)

    def symbol(self, terms: Terms, example: int | float) -> Symbol:
        """The one symbol with these terms, which are in order."""
        found = self._known.get(terms)
        if found is None:
            found = self._known[terms] = Symbol(self, terms, example, len(self._known))
        return found

    def polynomial(self, terms: dict[Monomial, int], example: int) -> Any:
        """The sum of terms: an int if constant."""
        kept = tuple(sorted((monomial, factor) for monomial, factor in terms.items() if factor))
        if not kept:
            return 0
        if len(kept) == 1 and kept[0][0] == ():
            return kept[0][1]
        return self.symbol(kept, example)

    def combined(self, name: str, a: Any, b: Any, example: int | float, low: int | None = None) -> Symbol:
        """The atom that is an operation on two numbers."""
        return self._atom((name, a, b), example, low)

    def least(self, terms: Terms) -> int | None:
        """What a polynomial is at least, by what its atoms are at least; None if that does not tell."""
        total = 0
        for monomial, factor in terms:
            if monomial and factor < 0:
                return None
            for atom in monomial:
                low = self._lowest[atom]
                if low is None or low < 0:
                    return None
                factor *= low
            total += factor
        return total

    def text(self, size: Symbol) -> str:
        """A size of which nothing is known, for a message."""
        return "?"

    def number(self, symbol: Symbol, whole: bool = True) -> int | float:
        """The number of a symbol where it is needed itself, as an index or not: the example's, which a guard fixes."""
        value = symbol.example
        self.decide("real_same" if symbol.is_real else "same", symbol, value, True)
        return value

    def decide(self, name: str, a: Any, b: Any, holds: bool) -> bool:
        """Take a decision: note that comparison ``name`` of two numbers is ``holds``, as in the example."""
        key = identity((name, a, b))
        if key not in self._decided:
            if self.strict and holds and name in ("same", "real_same"):
                raise Narrowed(self._equality(a, b))
            self._decided[key] = holds
            if name == "real_below" and not self.strict:
                a, b = self._with_slack(a, b, holds)
            self.guards.append((name, a, b, holds))
            self._learn(name, a, b, holds)
        return holds

    def _with_slack(self, a: Any, b: Any, holds: bool) -> tuple[Any, Any]:
        """What a choice between costs is guarded by: a plan is kept as long as another costs little less.

        Without, every pair of kernels of a program would divide its sizes at another point.
        """
        return (a, b * _SLACK) if holds else (a * _SLACK, b)

    def _inputs_of(self, value: Any) -> frozenset[int]:
        """The positions of all inputs that a number depends on."""
        if not isinstance(value, Symbol):
            return frozenset()
        found: frozenset[int] = frozenset()
        for monomial, _ in value.terms:
            for atom in monomial:
                name, *arguments = self._atoms[atom]
                if name == "input":
                    found |= self._equal_to(arguments[0])
                else:
                    for argument in arguments:
                        found |= self._inputs_of(argument)
        return found

    def _equal_to(self, position: int) -> frozenset[int]:
        """The positions of the inputs that share a symbol."""
        return frozenset(k for k, number in enumerate(self.inputs) if number is self.inputs[position])

    def _learn(self, name: str, a: Any, b: Any, holds: bool) -> None:
        """Raise the least value of an input from what a guard says of it."""
        low: int | None = None
        if name == "same" and not holds and (atom := _sole_atom(a)) is not None and self._lowest[atom] == b:
            low = b + 1
        elif name == "below" and holds and isinstance(a, int) and (atom := _sole_atom(b)) is not None:
            low = a + 1
        elif name == "below" and not holds and isinstance(b, int) and (atom := _sole_atom(a)) is not None:
            low = b
        elif name == "at_most" and holds and isinstance(a, int) and (atom := _sole_atom(b)) is not None:
            low = a
        if low is not None and atom is not None:
            before = self._lowest[atom]
            self._lowest[atom] = low if before is None else max(before, low)

    def at(self, value: Any, inputs: Mapping[int, Any]) -> Any:
        """What a number over this recording is for other inputs, by position: integers, or numbers over another one.

        >>> recording = Recording([32, 10], [0, 0])
        >>> n, m = recording.inputs
        >>> recording.at((2 * n + 1) // m, {0: 7, 1: 4})
        3
        """
        if not isinstance(value, Symbol):
            return value
        if value.is_real:
            return self._atom_at(value.terms[0][0][0], inputs)
        total: Any = 0
        for monomial, factor in value.terms:
            product: Any = factor
            for atom in monomial:
                product = product * self._atom_at(atom, inputs)
            total = total + product
        return total

    def _atom_at(self, atom: int, inputs: Mapping[int, Any]) -> Any:
        name, *arguments = self._atoms[atom]
        if name == "input":
            return inputs[arguments[0]]
        return _OF_ATOMS[name](*[self.at(argument, inputs) for argument in arguments])

    def atom(self, number: int) -> tuple[Any, ...]:
        """How an atom is computed: ``("input", number)`` or ``(operation, number, number)``."""
        return self._atoms[number]


def _sole_atom(value: Any) -> int | None:
    if isinstance(value, Symbol) and len(value.terms) == 1:
        ((monomial, factor),) = value.terms
        if len(monomial) == 1 and factor == 1:
            return monomial[0]
    return None
