"""Recordings: the inputs, atoms and guards of one symbolic execution of type rules or of the planner."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from twofold.ir.sizes import Monomial, Symbol, Terms, identity, look_up, maximum, minimum, real, terms_of

_recordings = itertools.count()

_FORMULA_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "imax": maximum,
    "imin": minimum,
}

_ATOM_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    **_FORMULA_OPERATIONS,
    "lookup": look_up,
    "to_float": lambda a, _: real(a),
    "fadd": operator.add,
    "fmul": operator.mul,
    "fdiv": operator.truediv,
    "ffloor": lambda a, _: math.floor(a),
}

_SLACK = 1.3

Formula = tuple[tuple[int, tuple[Any, ...]], ...]
"""A polynomial of no recording: terms of a factor and atoms ``("input", position)`` or ``(name, a, b)``."""


class Facts(NamedTuple):
    """Assumptions about the inputs of a recording.

    A recording that needs more of them raises ``Restart``, and is started again with these, too.

    Attributes:
        fixed: Positions of inputs that stay constants.
        formulas: Positions of inputs that are expressions of others, with these.
    """

    fixed: frozenset[int] = frozenset()
    formulas: tuple[tuple[frozenset[int], Formula], ...] = ()

    def also(self, more: Facts) -> Facts:
        """The union of two sets of facts."""
        return Facts(self.fixed | more.fixed, self.formulas + more.formulas)


_NONE = Facts()


class Restart(Exception):
    """Two different expressions are assumed to be equal; ``facts`` make them one expression."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(f"sizes are equal: {facts}")
        self.facts = facts


class Recording:
    """Symbolic expressions over some inputs, and the guards met while computing with them.

    Inputs with the same example are one symbol, so that types which are equal for the example are one type over the
    symbols, too: which values a gradient adds up, and in which order, depends on which nodes are one.

    Args:
        values: The example of each input.
        lower_bounds: The least value of each input; None if there is none.
        facts: Inputs that stay constants, or are expressions of others.
        strict: Whether ``Restart`` is raised where two different expressions are assumed to be equal; for the same
            reason as above.
        distinct: Inputs that have a symbol of their own: for calls that only concatenate their operands, whose sizes
            along the axis of concatenation are equal by chance.

    >>> recording = Recording([32, 10, 32, 7], [0, 0, 0, 0], Facts(frozenset({3})))
    >>> n, m, same, seven = recording.inputs
    >>> same is n, seven, (n * m + n) // n - 1 == m, 2 * n > m
    (True, 7, True, True)
    >>> recording.guards[2:]
    [('eq', s0, 0, False), ('lt', s1, 2*s0, True)]
    """

    is_open = False  # whether nothing is known of the sizes, see ``twofold.ir.shape_inference``

    def __init__(
        self,
        values: Sequence[int],
        lower_bounds: Sequence[int | None],
        facts: Facts = _NONE,
        strict: bool = False,
        distinct: Collection[int] = (),
    ) -> None:
        self.name = f"{next(_recordings)}"
        self.values = tuple(values)
        self.guards: list[tuple[str, Any, Any, bool]] = []
        self.compared: dict[tuple[Any, ...], bool] = {}
        self.types: dict[Any, Any] = {}
        self._atoms: list[tuple[Any, ...]] = []
        self._examples: list[int | float] = []
        self._lower_bounds: list[int | None] = []
        self._known: dict[Any, Symbol] = {}
        self._atom_numbers: dict[tuple[Any, ...], int] = {}
        self._decided: dict[tuple[str, Any, Any], bool] = {}
        self.strict = strict
        self._fixed = facts.fixed
        self._formulas = {
            position: formula for positions, formula in facts.formulas for position in positions
        }
        self._shared: dict[tuple[int, int | None], Symbol] = {}
        # inputs of one group have one symbol
        self._groups = [(value, k if k in distinct else None) for k, value in enumerate(values)]
        symbols = [  # their atoms are numbered by position
            self._atom(("input", number), value, low)
            for number, (value, low) in enumerate(zip(values, lower_bounds, strict=True))
        ]
        for position, (symbol, group) in enumerate(zip(symbols, self._groups)):
            if position not in facts.fixed and position not in self._formulas:
                first = self._shared.setdefault(group, symbol)
                low = min(
                    [
                        low
                        for low, other in zip(lower_bounds, self._groups)
                        if low is not None and other == group
                    ],
                    default=None,
                )
                self._lower_bounds[first.terms[0][0][0]] = low
        self.inputs: list[Any] = [self._input(position) for position in range(len(values))]
        self.guards += [("eq", a, b, True) for a, b in zip(symbols, self.inputs) if a is not b]

    def _input(self, position: int) -> Any:
        if position in self._fixed:
            return self.values[position]
        formula = self._formulas.get(position)
        return self._shared[self._groups[position]] if formula is None else self._evaluate(formula)

    def _evaluate(self, formula: Formula) -> Any:
        """The symbol of a formula over the inputs of this recording."""
        total: Any = 0
        for factor, atoms in formula:
            product: Any = factor
            for name, *arguments in atoms:
                if name == "input":
                    product = product * self._input(arguments[0])
                else:
                    a, b = (self._evaluate(part) if isinstance(part, tuple) else part for part in arguments)
                    product = product * _FORMULA_OPERATIONS[name](a, b)
            total = total + product
        return total

    def _formula(self, terms: Terms) -> Formula | None:
        """The formula of terms of this recording; None if they contain floats or tables."""
        found = []
        for monomial, factor in terms:
            atoms: list[tuple[Any, ...]] = []
            for atom in monomial:
                name, *arguments = self._atoms[atom]
                if name != "input":
                    if name not in _FORMULA_OPERATIONS:
                        return None
                    arguments = [self._formula(terms_of(argument)) for argument in arguments]
                    if None in arguments:
                        return None
                atoms.append((name, *arguments))
            found.append((factor, tuple(atoms)))
        return tuple(found)

    def _equality(self, a: Any, b: Any) -> Facts | None:
        """Facts that make two numbers one: an input as an expression of others, or else one input or all inputs fixed.

        None if these are products of inputs, such as the sizes of two shapes of as many elements, or tell that a size
        is divisible: their equality then is a guard alone, as fixing inputs would leave a plan for one size.
        """
        if (
            (atom := _sole_atom(a)) is not None
            and self._atoms[atom][0] == "mod"
            and not isinstance(b, Symbol)
        ):
            return None
        difference = self._root(self._without_common_atoms((b - a).terms))
        solved = self._as_expression(difference)
        if solved is not None:
            return solved
        if len(difference) == 2 and all(map(self._is_product, difference)):
            return None
        whole = self.symbol(difference, 0)
        every = self._inputs_of(whole)
        for group in dict.fromkeys(map(self._equal_to, sorted(every))):
            own = {k: self.values[k] if k in group else self.inputs[k] for k in range(len(self.values))}
            left = self.at(whole, own)
            if not isinstance(left, Symbol) and left == 0:
                return Facts(group)
        return Facts(every)

    def _all_fixed(self, a: Any, b: Any) -> Facts:
        return Facts(self._inputs_of(a) | self._inputs_of(b))

    def _is_product(self, term: tuple[Monomial, int]) -> bool:
        """Whether a term is a product of inputs."""
        return bool(term[0]) and all(self._atoms[atom][0] == "input" for atom in term[0])

    def _as_expression(self, difference: Terms) -> Facts | None:
        """An input as an expression of others for which the terms are 0."""
        factors = [factor for _, factor in difference]
        common = math.gcd(*factors)
        for monomial, factor in difference:
            if len(monomial) != 1 or abs(factor) != common or self._atoms[monomial[0]][0] != "input":
                continue
            rest = tuple((other, -own // factor) for other, own in difference if other != monomial)
            position = monomial[0]
            if any(position in self._inputs_of(self.symbol((term,), 0)) for term in rest if term[0]):
                continue
            formula = self._formula(rest)
            if formula is not None:
                return Facts(formulas=((self._equal_to(position), formula),))
        return None

    def _without_common_atoms(self, terms: Terms) -> Terms:
        """What is 0 for the example if these terms are, divided by atoms that all terms have and that are not 0."""
        common = functools.reduce(operator.and_, [Counter(monomial) for monomial, _ in terms])
        common = Counter({atom: times for atom, times in common.items() if self._examples[atom]})
        return tuple([(tuple((Counter(monomial) - common).elements()), factor) for monomial, factor in terms])

    def _root(self, terms: Terms) -> Terms:
        """The difference of two numbers for that of their squares; other terms as they are."""
        roots = []
        for monomial, factor in terms:
            half, root = monomial[::2], math.isqrt(abs(factor))
            if half != monomial[1::2] or root * root != abs(factor):
                return terms
            roots.append((half, root if factor > 0 else -root))
        example = sum(factor * math.prod(self._examples[k] for k in monomial) for monomial, factor in roots)
        return tuple(roots) if len(terms) == 2 and example == 0 else terms

    def _atom(self, atom: tuple[Any, ...], example: int | float, low: int | None = None) -> Symbol:
        key = identity(atom)
        number = self._atom_numbers.get(key)
        if number is None:
            number = self._atom_numbers[key] = len(self._atoms)
            self._atoms.append(atom)
            self._examples.append(example)
            self._lower_bounds.append(low)
        return self.symbol((((number,), 1),), example)

    def symbol(self, terms: Terms, example: int | float) -> Symbol:
        """The interned symbol with these terms, which are sorted."""
        found = self._known.get(terms)
        if found is None:
            found = self._known[terms] = Symbol(self, terms, example, len(self._known))
        return found

    def polynomial(self, terms: dict[Monomial, int], example: int) -> Any:
        """The polynomial with these terms; an int if it is constant."""
        kept = tuple(sorted((monomial, factor) for monomial, factor in terms.items() if factor))
        if not kept:
            return 0
        if len(kept) == 1 and kept[0][0] == ():
            return kept[0][1]
        return self.symbol(kept, example)

    def combined(self, name: str, a: Any, b: Any, example: int | float, low: int | None = None) -> Symbol:
        """A new atom.

        Args:
            name: The operation, see ``size_program.OPERATIONS``.
            a: Its first operand.
            b: Its second operand.
            example: Its value for the example.
            low: Its least value; None if it has none.
        """
        return self._atom((name, a, b), example, low)

    def least(self, terms: Terms) -> int | None:
        """A lower bound of a polynomial, from those of its atoms; None if there is none."""
        total = 0
        for monomial, factor in terms:
            if monomial and factor < 0:
                return None
            for atom in monomial:
                low = self._lower_bounds[atom]
                if low is None or low < 0:
                    return None
                factor *= low
            total += factor
        return total

    def text(self, size: Symbol) -> str:
        """The text of a size for a message."""
        return "?"

    def number(self, symbol: Symbol, whole: bool = True) -> int | float:
        """The value of a symbol where an index or a float is needed: that of the example, which a guard fixes."""
        value = symbol.example
        self.decide("feq" if symbol.is_real else "eq", symbol, value, True)
        return value

    def decide(self, name: str, a: Any, b: Any, holds: bool) -> bool:
        """Add a guard.

        Args:
            name: The comparison.
            a: Its first operand.
            b: Its second operand.
            holds: The result that the guard requires.

        Returns:
            ``holds``.
        """
        key = identity((name, a, b))
        if key not in self._decided:
            if self.strict and holds and name in ("eq", "feq"):
                facts = self._equality(a, b) if name == "eq" else self._all_fixed(a, b)
                if facts is not None:
                    raise Restart(facts)
            self._decided[key] = holds
            if name == "flt" and not self.strict:
                a, b = self._with_slack(a, b, holds)
            self.guards.append((name, a, b, holds))
            self._learn(name, a, b, holds)
        return holds

    def _with_slack(self, a: Any, b: Any, holds: bool) -> tuple[Any, Any]:
        """The guard of a choice between costs: a plan is kept while the other choice costs little less.

        Without this slack each pair of kernels would add another threshold of sizes at which a new plan is needed.
        """
        return (a, b * _SLACK) if holds else (a * _SLACK, b)

    def _inputs_of(self, value: Any) -> frozenset[int]:
        """Positions of all inputs that a number depends on."""
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
        """Positions of the inputs that share a symbol."""
        return frozenset(k for k, number in enumerate(self.inputs) if number is self.inputs[position])

    def _learn(self, name: str, a: Any, b: Any, holds: bool) -> None:
        """Raise the lower bound of an atom that a guard implies."""
        low: int | None = None
        if (
            name == "eq"
            and not holds
            and isinstance(b, int)  # bounds are numbers
            and (atom := _sole_atom(a)) is not None
            and self._lower_bounds[atom] == b
        ):
            low = b + 1
        elif name == "lt" and holds and isinstance(a, int) and (atom := _sole_atom(b)) is not None:
            low = a + 1
        elif name == "lt" and not holds and isinstance(b, int) and (atom := _sole_atom(a)) is not None:
            low = b
        elif name == "le" and holds and isinstance(a, int) and (atom := _sole_atom(b)) is not None:
            low = a
        if low is not None and atom is not None:
            before = self._lower_bounds[atom]
            self._lower_bounds[atom] = low if before is None else max(before, low)

    def at(self, value: Any, inputs: Mapping[int, Any]) -> Any:
        """Evaluate a number of this recording for other inputs.

        Args:
            value: The number.
            inputs: By position integers, or numbers of another recording.

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
        return _ATOM_OPERATIONS[name](*[self.at(argument, inputs) for argument in arguments])

    def atom(self, number: int) -> tuple[Any, ...]:
        """The definition of an atom: ``("input", position)`` or ``(operation, operand, operand)``."""
        return self._atoms[number]


def _sole_atom(value: Any) -> int | None:
    if isinstance(value, Symbol) and len(value.terms) == 1:
        ((monomial, factor),) = value.terms
        if len(monomial) == 1 and factor == 1:
            return monomial[0]
    return None
