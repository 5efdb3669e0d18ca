"""Shape inference with unknown sizes and ranks, by symbolic execution of the type rules.

An unknown size is a negative integer, its name. A name may stand for an expression over others (``2*n + 1``); equal
expressions have one name. A rule is executed on symbols in place of names (King, "Symbolic execution and program
testing", 1976). At a branch whose condition symbols do not decide, sizes are assumed to be different and large; if the
rule raises an error on this path, the last equality that was assumed not to hold is assumed to hold, and so on until a
path is accepted: that is how ``n`` and ``m`` are unified. Then each branch of this path is negated in turn: a size of
the result that differs there depends on unknown values, and becomes a new unknown size.

A tensor of unknown rank has the one-axis shape ``UNKNOWN_RANK``, whose size names nothing. The rule is executed for one
rank after the other; the result is what all accepted ranks agree on.
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

_USUAL_RANK, _MAX_RANK = 4, 16
"""Largest rank that is tried if smaller ones are accepted, and at all."""
_MOST_UNKNOWN = 3
"""Of how many inputs the unknown ranks are tried apart."""
_MAX_PATHS = 48
"""Most executions of a rule for one call."""
_MAX_BRANCHES = 200
"""Most branches on a path: a loop up to an unknown size would not terminate."""
_EXAMPLE, _STEP, _GROWTH = 1009, 6, 64
_OPPOSITES = {"lt": "le", "le": "lt"}
"""What is decided with the sides exchanged where a comparison is: ``a < b`` unless ``b <= a``."""
_ORDERS: dict[str, Callable[[int, int], bool]] = {"lt": operator.lt, "le": operator.le}
_names = itertools.count(2)  # 1 is taken by UNKNOWN_RANK
_BYTES = 400
_FORMULAS: Cache[Formula] = Cache("sizes", 1, lambda name, formula: _BYTES * len(formula))
_NAMES: Cache[int] = Cache("names of sizes", 1, lambda formula, name: _BYTES * len(formula))


def new_unknown_size() -> int:
    """The name of a new unknown size, a negative integer."""
    return -next(_names)


def keep_distinct(name: int, text: str) -> None:
    """Exclude an unknown size from unification with other distinct sizes and with constants.

    Args:
        name: The unknown size.
        text: What messages call it.
    """
    SIZE_NAMES[name] = text


class NonterminatingRule(ShapeError):
    """A rule loops up to an unknown size."""


Key = tuple[Any, ...]
Assumptions = tuple[dict[Key, bool], dict[int, Formula], tuple[int, ...]]
"""Branches that are negated, names that are expressions of others, names of the largest sizes."""


class OpenSizes(Recording):
    """A recording of one path through a rule, over unknown sizes.

    Branches that symbols do not decide are taken as for sizes that are different and large.

    Args:
        negated: Branches that are taken the other way.
        unified: Names that stand for expressions of others.
        largest: Names of sizes that are larger than all others.

    Attributes:
        concretised: Whether the rule asked for the value of a size.

    >>> sizes = OpenSizes()
    >>> n, m = sizes.size(new_unknown_size()), sizes.size(new_unknown_size())
    >>> n == m, n > 7, 2 * n == n + n, sizes.guards[0][0]
    (False, True, True, 'eq')
    """

    is_open = True

    def __init__(
        self,
        negated: Mapping[Key, bool] | None = None,
        unified: Mapping[int, Formula] | None = None,
        largest: Sequence[int] = (),
    ) -> None:
        super().__init__((), ())
        self.negated = dict(negated or {})
        self.unified = dict(unified or {})
        self.largest = tuple(largest)
        self.keys: list[Key] = []
        self.concretised = False
        self._inputs: dict[int, Any] = {}

    def size(self, name: int) -> Any:
        """The symbol or expression that a name stands for; other sizes as they are."""
        return name if name >= 0 else self._input(name)

    def text(self, size: Symbol) -> str:
        """The text of a size for a message: that of a distinct size, else ``?``."""
        (monomial, factor), *more = size.terms
        named = not more and factor == 1 and self._is_distinct(monomial)
        return SIZE_NAMES[self._atoms[monomial[0]][1]] if named else "?"

    def number_at_run(self, name: int) -> Any:
        """The symbol of an integer that is known at run time only, and may be negative."""
        return self._input(name, None)

    def type_of(self, type: TensorType) -> TensorType:
        """A type with symbols in place of the names in its shape."""
        return tensor_type(type.dtype, tuple([self.size(size) for size in type.shape]), type.weak)

    def _input(self, position: int, low: int | None = 0) -> Any:
        found = self._inputs.get(position)
        if found is None:
            formula = self.unified.get(position, _FORMULAS.get(position))
            example = (_EXAMPLE + _STEP * len(self._inputs)) * _GROWTH ** self.largest.count(position)
            atom = self._atom(("input", position), example, low) if formula is None else None
            found = self._inputs[position] = self.evaluate(formula) if formula is not None else atom
        return found

    def evaluate(self, formula: Formula) -> Any:
        """The expression of a formula over names."""
        return self._evaluate(formula)

    def formula(self, size: Any) -> Formula | None:
        """The formula of an expression; None if it is not one of sizes alone."""
        found = self._formula(terms_of(size))
        return None if found is None else _canonical(found)

    def number(self, symbol: Symbol, whole: bool = True) -> int | float:
        """The example: sizes of the result that depend on it are unknown."""
        self.concretised |= whole
        return symbol.example

    def decide(self, name: str, a: Any, b: Any, holds: bool) -> bool:
        """Take a branch, and record it as a guard of this path."""
        if name == "eq" and isinstance(a, Symbol) and isinstance(b, Symbol) and a.number > b.number:
            a, b = b, a
        known = identity((name, a, b))
        found = self._decided.get(known)
        if found is None and name in _OPPOSITES:
            opposite = self._decided.get(identity((_OPPOSITES[name], b, a)))
            found = None if opposite is None else not opposite
        if found is None:
            parts = (
                (None, None)
                if name in ("feq", "flt", "fle")
                else (self._formula(terms_of(x)) for x in (a, b))
            )
            key = (name, *[known if part is None else _canonical(part) for part in parts])
            found = self.negated.get(key, holds and name != "eq")
            if len(self.keys) == _MAX_BRANCHES:
                raise NonterminatingRule("the rule loops up to an unknown size", "Declare the size.")
            self._decided[known] = found
            self.keys.append(key)
            self.guards.append((name, a, b, found))
            self._learn(name, a, b, found)
        return found

    def negated_at(self, index: int) -> Assumptions:
        """The assumptions under which a branch is taken the other way: two sizes are unified, or it is negated."""
        name, a, b, holds = self.guards[index]
        negated = {key: end for key, end in self.negated.items() if key in self.keys[:index]}
        if name == "eq" and not holds:
            solved = self._solved(b - a)
            if solved is not None:
                return negated, {**self.unified, **solved}, self.largest
        return {**negated, self.keys[index]: not holds}, self.unified, self.largest + self._larger(index)

    def _larger(self, index: int) -> tuple[int, ...]:
        """A name that negates a comparison of sizes if it is larger than all others."""
        name, *sides, holds = self.guards[index]
        if name not in _ORDERS:
            return ()
        formulas = [formula for side in sides if (formula := self.formula(side)) is not None]
        if len(formulas) < len(sides):
            return ()
        for position in sorted(set().union(*map(_names_in, formulas)), reverse=True):
            other = OpenSizes({}, self.unified, (*self.largest, position))
            for known in self._inputs:  # in the same order they have the same examples
                other.size(known)
            a, b = (example_of(other.evaluate(formula)) for formula in formulas)
            if _ORDERS[name](a, b) != holds:
                return (position,)
        return ()

    def _solved(self, difference: Symbol) -> dict[int, Formula] | None:
        """Solve ``difference == 0`` for a name: the newest, and a distinct one only if there is no other."""
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
        """Whether a branch assumes that a distinct size differs from a constant or from another distinct size."""
        name, a, b, holds = self.guards[index]
        if name != "eq" or holds or not isinstance(b - a, Symbol):
            return False
        terms = [(monomial, factor) for monomial, factor in (b - a).terms if monomial]
        factors = {abs(factor) for _, factor in terms}
        return all(self._is_distinct(part) for part, _ in terms) and (
            len(factors) < len(terms) or factors == {1}
        )

    def denies_equality(self, index: int) -> bool:
        """Whether a branch assumes that two sizes differ of which none is 0 or 1."""
        name, a, b, holds = self.guards[index]
        return name == "eq" and not holds and all(isinstance(size, Symbol) or size > 1 for size in (a, b))

    def equal(self, a: Any, b: Any) -> bool:
        """Whether two sizes are equal on this path: as expressions, or by one of its guards."""
        difference = b - a
        if not isinstance(difference, Symbol):
            return bool(difference == 0)
        return any(_proportional(difference, other) for other in self._zeros())

    def _zeros(self) -> Iterator[Symbol]:
        """Expressions that are 0 by a guard of this path."""
        for name, a, b, holds in self.guards:
            if name == "eq" and holds:
                yield b - a
            elif (name == "lt" and not holds) or (name == "le" and holds):
                low, high = (b, a) if name == "lt" else (a, b)
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


def _canonical(formula: Formula) -> Formula:
    """A formula with its terms and factors in a canonical order."""
    found = []
    for factor, atoms in formula:
        parts = [
            (name, *[_canonical(part) if isinstance(part, tuple) else part for part in arguments])
            for name, *arguments in atoms
        ]
        found.append((factor, tuple(sorted(parts))))
    return tuple(sorted(found, key=lambda term: (term[1], term[0])))


def _size_of(formula: Formula | None) -> int:
    """The size in types of an expression: its name, or a constant."""
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
    """Infer types by symbolic execution of a rule.

    Args:
        rule: The rule, as a function of the recording of a path.
        refused: Errors by which it rejects a path.

    Returns:
        The types that it returns, with names in place of symbols.

    Raises:
        Exception: The first error of the rule, if it rejects all paths.
    """
    path, types = _accepted_path(rule, refused)
    shapes: list[Any] = [
        [path.formula(size) if isinstance(size, Symbol) else ((size, ()),) for size in made.shape]
        for made in types
    ]
    if path.concretised:
        shapes = [[formula if _is_name(formula) else None for formula in shape] for shape in shapes]
    for other, found in _negated_paths(rule, refused, path):
        for k, (shape, made) in enumerate(zip(shapes, found)):
            if shape is not None:
                shapes[k] = _common_shape(other, shape, made.shape)
    return [
        tensor_type(
            made.dtype, UNKNOWN_RANK if shape is None else tuple([_size_of(f) for f in shape]), made.weak
        )
        for made, shape in zip(types, shapes)
    ]


def _is_name(formula: Formula) -> bool:
    return formula is not None and _size_of(formula) < 0


def _common_shape(other: OpenSizes, shape: Sequence[Any], found: Sequence[Any]) -> list[Any] | None:
    """The sizes of a shape that another path agrees on, None for others; None altogether for another rank."""
    if len(shape) != len(found):
        return None
    return [
        formula if formula is not None and other.equal(other.evaluate(formula), size) else None
        for formula, size in zip(shape, found)
    ]


def _accepted_path(rule: Rule, refused: Errors) -> tuple[OpenSizes, list[TensorType]]:
    """Search depth-first for an accepted path: after an error the last inequality is negated first, then others."""
    errors: list[Exception] = []
    seen: set[Any] = set()
    pending: list[Assumptions] = [({}, {}, ())]
    while pending and len(errors) < _MAX_PATHS:
        assumptions = pending.pop()
        key = frozenset(assumptions[0].items()), frozenset(assumptions[1].items()), assumptions[2]
        if key in seen:
            continue
        seen.add(key)
        path = OpenSizes(*assumptions)
        try:
            return path, list(rule(path))
        except refused as error:
            if isinstance(error, NonterminatingRule) and not errors:
                raise
            errors.append(error)
        positions = [
            index
            for index, key in enumerate(path.keys)
            if key not in path.negated and not path.denies_distinct(index)
        ]
        pending += [path.negated_at(index) for index in sorted(positions, key=path.denies_equality)]
    raise errors[0]


def _negated_paths(
    rule: Rule, refused: Errors, path: OpenSizes
) -> Iterator[tuple[OpenSizes, list[TensorType]]]:
    errors: Errors = (*refused, ZeroDivisionError)  # a divisor cannot be 0
    for index in range(min(len(path.keys), _MAX_PATHS)):
        if path.denies_distinct(index) and len((path.guards[index][2] - path.guards[index][1]).terms) > 1:
            continue
        other = OpenSizes(*path.negated_at(index))
        while True:
            try:
                yield other, list(rule(other))
            except errors:
                # an order behind the branch may have been taken against it: the last one is taken the other way, too
                orders = [one[0] in _ORDERS for one in (path.guards[index], *other.guards[-1:])]
                if len(orders) == 2 and all(orders) and other.keys[-1] not in other.negated:
                    other = OpenSizes(*other.negated_at(len(other.keys) - 1))
                    continue
            break


def types_by_rank(
    types: Sequence[TensorType], rule: Callable[[list[TensorType]], list[TensorType]], refused: Errors
) -> list[TensorType]:
    """Infer types with unknown ranks, by enumeration of ranks.

    Rules loop over axes, so a rank is a case, while sizes stay symbols. Enumeration ends above the ranks of the other
    types, where nothing new can come, and above the first rank that is accepted. Several unknown ranks are tried as
    one, and only where no one is accepted as several.

    Args:
        types: The types of the inputs, some of unknown rank.
        rule: A function from types of known rank to the types of the results.
        refused: Errors by which it rejects a rank.

    Returns:
        What the results for all accepted ranks agree on.

    Raises:
        Exception: The first error of the rule, if it rejects all ranks.
    """
    if all(type.shape != UNKNOWN_RANK for type in types):
        return rule(list(types))
    unknown = sum(type.shape == UNKNOWN_RANK for type in types)
    most = max([_USUAL_RANK, *[type.ndim + 1 for type in types]])
    found: list[list[TensorType]] = []
    accepted: list[int] = []
    errors: list[Exception] = []

    def tried(ranks: Sequence[int]) -> None:
        left = iter(ranks)
        ranked = [
            tensor_type(type.dtype, tuple(new_unknown_size() for _ in range(next(left))), type.weak)
            if type.shape == UNKNOWN_RANK
            else type
            for type in types
        ]
        try:
            found.append(rule(ranked))
            accepted.append(max(ranks))
        except refused as error:  # these ranks are rejected
            errors.append(error)

    for rank in range(_MAX_RANK + 1):
        tried([rank] * unknown)
        if rank >= most and found and (rank > accepted[-1] or len(accepted) > 1):
            break
    largest = _MAX_RANK
    if not found and 1 < unknown <= _MOST_UNKNOWN:  # no equal ranks, as of logits and class numbers
        largest = _USUAL_RANK
        for ranks in itertools.product(range(largest + 1), repeat=unknown):
            tried(ranks)
    if not found:
        raise errors[0]
    # a single accepted rank is the rank, unless it is the largest: larger ones might be accepted, too
    if len(found) == 1 and accepted[0] == largest:
        return [tensor_type(made.dtype, UNKNOWN_RANK) for made in found[0]]
    return [common_type(candidates) for candidates in zip(*found)]


def common_type(types: Sequence[TensorType]) -> TensorType:
    """The most specific type that covers some types of one dtype.

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
