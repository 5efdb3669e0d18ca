"""Types whose sizes are not known yet: rules run on symbols, and every decision that could go both ways is a fork.

An unknown size is a negative number that names it. A name may stand for an expression of others (``2*n + 1``); equal
expressions have one name. A rule runs on symbols in place of names. Where it compares sizes and the symbols do not
settle how that ends, sizes are taken to be different and large; if the rule refuses that, the last equality that was
denied is assumed instead, until it accepts: that is how ``n`` and ``m`` become equal. Then each decision is flipped
once more: a size that comes out otherwise depends on what is not known, and is a new unknown one.

A tensor of unknown rank has the one-axis shape ``UNKNOWN_RANK``, whose size names nothing. The rule is asked about
one rank after the other; what all ranks that it accepts agree on is known.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from twofold.cache import Cache
from twofold.errors import ShapeError, TwofoldError
from twofold.ir.bind import input_node
from twofold.ir.node import Attributes
from twofold.ir.op import Op
from twofold.ir.recording import Formula, Recording
from twofold.ir.sizes import Symbol, example_of, identity, terms_of
from twofold.ir.types import SIZE_NAMES, Shape, TensorType, tensor_type

UNKNOWN_RANK = (-1,)

_RANKS, _MOST_RANKS = 4, 16
"""Largest rank that a rule is asked about where it accepts smaller ones, and at all."""
_WAYS = 48
"""How often a rule is run at most for one call."""
_DECISIONS = 200
"""How many decisions a rule takes at most, as one that counts would go on for ever."""
_EXAMPLE, _STEP, _GROWTH = 1009, 6, 64
_ORDERS: dict[str, Callable[[int, int], bool]] = {"below": operator.lt, "at_most": operator.le}
_names = itertools.count(2)  # 1 is taken by UNKNOWN_RANK
_BYTES = 400
_FORMULAS: Cache[Formula] = Cache("sizes", 1, lambda name, formula: _BYTES * len(formula))
_NAMES: Cache[int] = Cache("names of sizes", 1, lambda formula, name: _BYTES * len(formula))


def new_unknown_size() -> int:
    """A negative number that names one more unknown size."""
    return -next(_names)


def keep_distinct(name: int, text: str) -> None:
    """Let no rule take an unknown size to equal another such one, though in a run they may; messages call it ``text``.

    Nor does a rule take it to be a certain number.
    """
    SIZE_NAMES[name] = text


class Endless(ShapeError):
    """A rule takes decisions for ever."""


Key = tuple[Any, ...]
Way = tuple[dict[Key, bool], dict[int, Formula], tuple[int, ...]]
"""Decisions that are flipped, names that are expressions of others, names of larger sizes."""


class OpenSizes(Recording):
    """A recording of one way through a rule, over sizes of which nothing is known.

    Decisions that symbols leave open end as sizes do that are different and large, save those in ``flipped``. In place
    of names in ``assumed`` stand the expressions that they equal, and names in ``grown`` are larger than all others.
    ``asked``: whether a rule wanted a number itself.

    >>> sizes = OpenSizes()
    >>> n, m = sizes.size(new_unknown_size()), sizes.size(new_unknown_size())
    >>> n == m, n > 7, 2 * n == n + n, sizes.guards[0][0]
    (False, True, True, 'same')
    """

    is_open = True

    def __init__(
        self,
        flipped: Mapping[Key, bool] | None = None,
        assumed: Mapping[int, Formula] | None = None,
        grown: Sequence[int] = (),
    ) -> None:
        super().__init__((), ())
        self.flipped = dict(flipped or {})
        self.assumed = dict(assumed or {})
        self.grown = tuple(grown)
        self.keys: list[Key] = []
        self.asked = False
        self._inputs: dict[int, Any] = {}

    def size(self, name: int) -> Any:
        """What a size of a type stands for: itself, or for a name the symbol or expression."""
        return name if name >= 0 else self._input(name)

    def text(self, size: Symbol) -> str:
        """A size for a message: its name if it is one that has a name, else ``?``."""
        (monomial, factor), *more = size.terms
        named = not more and factor == 1 and self._is_distinct(monomial)
        return SIZE_NAMES[self._atoms[monomial[0]][1]] if named else "?"

    def number_at_run(self, name: int) -> Any:
        """The symbol of a whole number that a run will tell, which may be negative."""
        return self._input(name, None)

    def type_of(self, type: TensorType) -> TensorType:
        """A type with symbols in place of the names in its shape."""
        return tensor_type(type.dtype, tuple([self.size(size) for size in type.shape]), type.weak)

    def _input(self, position: int, low: int | None = 0) -> Any:
        found = self._inputs.get(position)
        if found is None:
            formula = self.assumed.get(position, _FORMULAS.get(position))
            example = (_EXAMPLE + _STEP * len(self._inputs)) * _GROWTH ** self.grown.count(position)
            atom = self._atom(("input", position), example, low) if formula is None else None
            found = self._inputs[position] = self.rebuilt(formula) if formula is not None else atom
        return found

    def rebuilt(self, formula: Formula) -> Any:
        """An expression of another recording over the same names."""
        return self._from(formula)

    def formula(self, size: Any) -> Formula | None:
        """An expression apart from this recording; None where it is not one of sizes alone."""
        found = self._formula(terms_of(size))
        return None if found is None else _ordered(found)

    def number(self, symbol: Symbol, whole: bool = True) -> int | float:
        """Some number: a size that depends on it is not known."""
        self.asked |= whole
        return symbol.example

    def decide(self, name: str, a: Any, b: Any, holds: bool) -> bool:
        """Take a decision: note how it ends on this way."""
        if name == "same" and isinstance(a, Symbol) and isinstance(b, Symbol) and a.number > b.number:
            a, b = b, a
        known = identity((name, a, b))
        found = self._decided.get(known)
        if found is None:
            parts = (None, None) if name.startswith("real") else (self._formula(terms_of(x)) for x in (a, b))
            key = (name, *[known if part is None else _ordered(part) for part in parts])
            found = self.flipped.get(key, holds and name != "same")
            if len(self.keys) == _DECISIONS:
                raise Endless("the rule counts to a size that is not known", "Declare the size.")
            self._decided[known] = found
            self.keys.append(key)
            self.guards.append((name, a, b, found))
            self._learn(name, a, b, found)
        return found

    def turned_at(self, index: int) -> Way:
        """What turns a decision: an equality that a size is another expression, or the other end of it."""
        name, a, b, holds = self.guards[index]
        flipped = {key: end for key, end in self.flipped.items() if key in self.keys[:index]}
        if name == "same" and not holds:
            solved = self._solved(b - a)
            if solved is not None:
                return flipped, {**self.assumed, **solved}, self.grown
        return {**flipped, self.keys[index]: not holds}, self.assumed, self.grown + self._growth(index)

    def _growth(self, index: int) -> tuple[int, ...]:
        """A name that turns the comparison of two sizes when it is larger than all others."""
        name, *sides, holds = self.guards[index]
        if name not in _ORDERS:
            return ()
        formulas = [formula for side in sides if (formula := self.formula(side)) is not None]
        if len(formulas) < len(sides):
            return ()
        for position in sorted(set().union(*map(_names_in, formulas)), reverse=True):
            other = OpenSizes({}, self.assumed, (*self.grown, position))
            for known in self._inputs:  # in the same order they have the same examples
                other.size(known)
            a, b = (example_of(other.rebuilt(formula)) for formula in formulas)
            if _ORDERS[name](a, b) != holds:
                return (position,)
        return ()

    def _solved(self, difference: Symbol) -> dict[int, Formula] | None:
        """The name that a difference of 0 makes an expression of others: the one known last, rather none distinct."""
        terms = [term for term in reversed(difference.terms) if len(term[0]) == 1]
        for monomial, factor in sorted(terms, key=lambda term: self._is_distinct(term[0])):
            if abs(factor) != 1 or self._atoms[monomial[0]][0] != "input":
                continue
            position = self._atoms[monomial[0]][1]
            rest = self.formula(self.symbol(((monomial, factor),), 0) * factor - difference * factor)
            if rest is not None and position not in _names_in(rest):
                return {position: rest}
        return None

    def _is_distinct(self, monomial: Any) -> bool:
        found = self._atoms[monomial[0]] if len(monomial) == 1 else ("product", None)
        return found[0] == "input" and found[1] in SIZE_NAMES

    def denies_distinct(self, index: int) -> bool:
        """Whether a decision was that a distinct size differs from a number or from another distinct one."""
        name, a, b, holds = self.guards[index]
        if name != "same" or holds or not isinstance(b - a, Symbol):
            return False
        terms = [(monomial, factor) for monomial, factor in (b - a).terms if monomial]
        factors = {abs(factor) for _, factor in terms}
        return all(self._is_distinct(part) for part, _ in terms) and (
            len(factors) < len(terms) or factors == {1}
        )

    def denies_equality(self, index: int) -> bool:
        """Whether a decision was that two sizes differ, of which none is 0 or 1."""
        name, a, b, holds = self.guards[index]
        return name == "same" and not holds and all(isinstance(size, Symbol) or size > 1 for size in (a, b))

    def equal(self, a: Any, b: Any) -> bool:
        """Whether two sizes are one on this way: as expressions, or by an equality that it has assumed."""
        difference = b - a
        if not isinstance(difference, Symbol):
            return bool(difference == 0)
        return any(_proportional(difference, other) for other in self._nothings())

    def _nothings(self) -> Iterator[Symbol]:
        """Differences that are 0 on this way."""
        for name, a, b, holds in self.guards:
            if name == "same" and holds:
                yield b - a
            elif (name == "below" and not holds) or (name == "at_most" and holds):
                low, high = (b, a) if name == "below" else (a, b)
                least = self.least(terms_of(low - high))
                if least is not None and least >= 0:
                    yield high - low


def _names_in(formula: Formula) -> set[int]:
    found: set[int] = set()
    for _, atoms in formula:
        for name, *arguments in atoms:
            found |= {arguments[0]} if name == "input" else set().union(*map(_names_in, arguments))
    return found


def _proportional(a: Symbol, b: Any) -> bool:
    first, second = dict(a.terms), dict(terms_of(b))
    if first.keys() != second.keys():
        return False
    pairs = [(first[monomial], second[monomial]) for monomial in first]
    return all(m * pairs[0][1] == n * pairs[0][0] for m, n in pairs)


def _ordered(formula: Formula) -> Formula:
    """A formula with its terms and factors in an order that depends on nothing else."""
    found = []
    for factor, atoms in formula:
        parts = [
            (name, *[_ordered(part) if isinstance(part, tuple) else part for part in arguments])
            for name, *arguments in atoms
        ]
        found.append((factor, tuple(sorted(parts))))
    return tuple(sorted(found, key=lambda term: (term[1], term[0])))


def _named(formula: Formula | None) -> int:
    """The number in types for an expression: its name, or the integer that it is."""
    if formula is None:
        return new_unknown_size()
    if not formula:
        return 0
    if len(formula) == 1:
        factor, atoms = formula[0]
        if not atoms:
            return factor if factor >= 0 else new_unknown_size()
        if factor == 1 and len(atoms) == 1 and atoms[0][0] == "input":
            return int(atoms[0][1])
    name = _NAMES.get(formula)
    if name is None:
        name = _NAMES.keep(formula, new_unknown_size())
        _FORMULAS.keep(name, formula)
    return name


Rule = Callable[[OpenSizes], Sequence[TensorType]]
Errors = tuple[type[Exception], ...]


def types_by(rule: Rule, refused: Errors = (TwofoldError,)) -> list[TensorType]:
    """The types that ``rule`` gives, with names in place of symbols; raises its error where it accepts no sizes."""
    way, types = _accepted(rule, refused)
    shapes: list[Any] = [
        [way.formula(size) if isinstance(size, Symbol) else ((size, ()),) for size in made.shape]
        for made in types
    ]
    if way.asked:
        shapes = [[formula if _is_a_name(formula) else None for formula in shape] for shape in shapes]
    for other, found in _other_ways(rule, refused, way):
        for k, (shape, made) in enumerate(zip(shapes, found)):
            if shape is not None:
                shapes[k] = _common_shape(other, shape, made.shape)
    return [
        tensor_type(
            made.dtype, UNKNOWN_RANK if shape is None else tuple([_named(f) for f in shape]), made.weak
        )
        for made, shape in zip(types, shapes)
    ]


def _is_a_name(formula: Formula) -> bool:
    return formula is not None and _named(formula) < 0


def _common_shape(other: OpenSizes, shape: Sequence[Any], found: Sequence[Any]) -> list[Any] | None:
    """Sizes of a shape, where another way has them, too; None for another rank."""
    if len(shape) != len(found):
        return None
    return [
        formula if formula is not None and other.equal(other.rebuilt(formula), size) else None
        for formula, size in zip(shape, found)
    ]


def _accepted(rule: Rule, refused: Errors) -> tuple[OpenSizes, list[TensorType]]:
    """A way through a rule; where one ends in an error the last equality that it denied is assumed, then others."""
    errors: list[Exception] = []
    seen: set[Any] = set()
    left: list[Way] = [({}, {}, ())]
    while left and len(errors) < _WAYS:
        given = left.pop()
        key = frozenset(given[0].items()), frozenset(given[1].items()), given[2]
        if key in seen:
            continue
        seen.add(key)
        way = OpenSizes(*given)
        try:
            return way, list(rule(way))
        except refused as error:
            if isinstance(error, Endless) and not errors:
                raise
            errors.append(error)
        positions = [
            index
            for index, key in enumerate(way.keys)
            if key not in way.flipped and not way.denies_distinct(index)
        ]
        left += [way.turned_at(index) for index in sorted(positions, key=way.denies_equality)]
    raise errors[0]


def _other_ways(rule: Rule, refused: Errors, way: OpenSizes) -> Iterator[tuple[OpenSizes, list[TensorType]]]:
    errors: Errors = (*refused, ZeroDivisionError)  # a size that others are divided by cannot be 0
    for index in range(min(len(way.keys), _WAYS)):
        if way.denies_distinct(index) and len((way.guards[index][2] - way.guards[index][1]).terms) > 1:
            continue
        other = OpenSizes(*way.turned_at(index))
        try:
            yield other, list(rule(other))
        except errors:
            continue


def types_by_rank(
    types: Sequence[TensorType], rule: Callable[[list[TensorType]], list[TensorType]], refused: Errors
) -> list[TensorType]:
    """What ``rule`` gives for ``types`` with every rank in place of those unknown, as far as it is the same for all.

    A rule goes through axes one by one, so a rank is a case that it is asked about, while sizes stay symbols. It is
    asked about ranks above those of the other types, where nothing new can come, and above the first that it accepts.
    """
    if all(type.shape != UNKNOWN_RANK for type in types):
        return rule(list(types))
    found: list[list[TensorType]] = []
    fitting: list[int] = []
    errors: list[Exception] = []
    most = max([_RANKS, *[type.ndim + 1 for type in types]])
    for rank in range(_MOST_RANKS + 1):
        sizes = tuple(new_unknown_size() for _ in range(rank))
        ranked = [
            tensor_type(type.dtype, sizes, type.weak) if type.shape == UNKNOWN_RANK else type
            for type in types
        ]
        try:
            found.append(rule(ranked))
            fitting.append(rank)
        except refused as error:  # not of this rank
            errors.append(error)
        if rank >= most and found and (rank > fitting[-1] or len(fitting) > 1):
            break
    if not found:
        raise errors[0]
    # a single rank that fits is the rank, unless it is the largest: larger ones might fit, too
    if len(found) == 1 and fitting[0] == _MOST_RANKS:
        return [tensor_type(made.dtype, UNKNOWN_RANK) for made in found[0]]
    return [common_type(candidates) for candidates in zip(*found)]


def common_type(types: Sequence[TensorType]) -> TensorType:
    """What types of one dtype agree on.

    >>> from twofold.dtypes import float32
    >>> common_type([tensor_type(float32, (2, 3)), tensor_type(float32, (2, 4))]).shape[0]
    2
    """
    first, *rest = types
    if any(other.ndim != first.ndim or UNKNOWN_RANK in (first.shape, other.shape) for other in rest):
        return tensor_type(first.dtype, UNKNOWN_RANK)
    sizes: Shape = tuple(
        size if all(other.shape[index] == size for other in rest) else new_unknown_size()
        for index, size in enumerate(first.shape)
    )
    return tensor_type(first.dtype, sizes)


def result_type(op: Op, attrs: Attributes, types: Sequence[TensorType]) -> TensorType:
    """The type of one call whose inputs have unknown sizes or ranks."""
    errors = (TwofoldError,)

    def of_rank(ranked: list[TensorType]) -> list[TensorType]:
        def rule(sizes: OpenSizes) -> list[TensorType]:
            nodes = [input_node(k, sizes.type_of(type)) for k, type in enumerate(ranked)]
            return [op.build(attrs, nodes).type]

        return types_by(rule, errors)

    return types_by_rank(types, of_rank, errors)[0]
