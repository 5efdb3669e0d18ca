"""Symbolic sizes: integers that are expressions over symbols, whose comparisons become guards.

Type rules and the planner are plain Python on integers. Run on ``Symbol`` in place of ``int`` they are traced: they
compute expressions, and every branch on a size becomes a guard. The resulting plan holds for all sizes that meet its
guards. A symbol has a hint, its value for the sizes at hand (``example``), by which branches are taken. Where the value
itself is needed (an index, a trip count) a guard fixes it to the hint: a plan is never wrong, only specialised further
than it could be.

Integer expressions are polynomials over atoms in normal form and interned, so equal ones are one object. An atom is an
input, or what is no polynomial of others (a floor division, a maximum, a float).
"""

from __future__ import annotations

import math
import operator
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twofold.ir.named_sizes import NamedSizes
    from twofold.ir.recording import Recording
    from twofold.ir.types import TensorType

Monomial = tuple[int, ...]
Terms = tuple[tuple[Monomial, int], ...]


class Symbol:
    """A symbolic integer or float, see the module. It is no ``int``, so nothing reads its example unnoticed."""

    __slots__ = ("example", "is_real", "number", "recording", "terms")

    def __init__(self, recording: Recording, terms: Terms, example: int | float, number: int) -> None:
        self.recording = recording
        self.terms = terms
        self.example = example
        self.number = number
        self.is_real = isinstance(example, float)  # floats are atoms

    @property
    def content_key(self) -> str:
        """A key that is unique to this expression, for attributes of nodes."""
        return f"symbol {self.recording.name}.{self.number}"

    # Comparisons and conversions

    def __index__(self) -> int:
        if self.is_real:
            raise TypeError("a real number is no index")
        return int(self.recording.number(self))

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.recording.number(self, False))

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        if self.recording.is_open or getattr(_keys, "by_identity", False):
            return hash((Symbol, self.number))
        # tables compare by value: two symbols may be equal, so the value is fixed by a guard
        return hash(float(self) if self.is_real else int(self))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, (Symbol, int, float)):
            return NotImplemented
        return self._compared("eq", self, other)

    def __lt__(self, other: Any) -> bool:
        return self._compared("lt", self, other)

    def __le__(self, other: Any) -> bool:
        return self._compared("le", self, other)

    def __gt__(self, other: Any) -> bool:
        return self._compared("lt", other, self)

    def __ge__(self, other: Any) -> bool:
        return self._compared("le", other, self)

    def _compared(self, name: str, a: Any, b: Any) -> bool:
        key = (name, a.number if isinstance(a, Symbol) else (a,), b.number if isinstance(b, Symbol) else (b,))
        found = self.recording.compared.get(key)
        if found is None:
            found = self.recording.compared[key] = self._decided(name, a, b)
        return found

    def _decided(self, name: str, a: Any, b: Any) -> bool:
        if not (_is_number(a) and _is_number(b)):
            raise TypeError(f"a size is compared with a {type(b if a is self else a).__name__}")
        example: Callable[[Any, Any], bool] = getattr(operator, name)
        holds = example(example_of(a), example_of(b))
        if _is_real(a) or _is_real(b):
            if any(isinstance(number, float) and not math.isfinite(number) for number in (a, b)):
                return holds
            return self.recording.decide(f"f{name}", a, b, holds)
        difference = b - a  # so that common terms cancel
        if isinstance(difference, int):
            return holds
        known = _provable(name, self.recording, difference)
        if known is not None:
            return known
        low, high = _sides(difference)
        if name == "eq" and not isinstance(low, Symbol):
            low, high = high, low
        return self.recording.decide(name, low, high, holds)

    # Arithmetic

    def __add__(self, other: Any) -> Any:
        if self.is_real or _is_real(other):
            return _real("fadd", self, other)
        if not isinstance(other, (Symbol, int)):
            return NotImplemented
        if isinstance(other, int) and other == 0:
            return self
        terms = dict(self.terms)
        for monomial, factor in terms_of(other):
            terms[monomial] = terms.get(monomial, 0) + factor
        return self.recording.polynomial(terms, self.example + example_of(other))

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if self.is_real or _is_real(other):
            return _real("fmul", self, other)
        if not isinstance(other, (Symbol, int)):
            return NotImplemented
        if isinstance(other, int):
            return self._times(other)
        terms: dict[Monomial, int] = {}
        for a, first in self.terms:
            for b, second in other.terms:
                monomial = tuple(sorted((*a, *b)))
                terms[monomial] = terms.get(monomial, 0) + first * second
        return self.recording.polynomial(terms, self.example * other.example)  # type: ignore[arg-type]

    __rmul__ = __mul__

    def _times(self, factor: int) -> Any:
        if factor in (0, 1):
            return self if factor else 0
        scaled = tuple([(monomial, own * factor) for monomial, own in self.terms])
        return self.recording.symbol(scaled, self.example * factor)

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __sub__(self, other: Any) -> Any:
        return self + (-other) if _is_number(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if _is_number(other) else NotImplemented

    def __pow__(self, exponent: Any) -> Any:
        result: Any = 1
        for _ in range(operator.index(exponent)):
            result = result * self
        return result

    def __truediv__(self, other: Any) -> Any:
        return _real("fdiv", self, other) if _is_number(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return _real("fdiv", other, self) if _is_number(other) else NotImplemented

    def __floordiv__(self, other: Any) -> Any:
        return _quotient(self, other, self.recording) if _is_number(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return _quotient(other, self, self.recording) if _is_number(other) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return _remainder(self, other, self.recording) if _is_number(other) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return _remainder(other, self, self.recording) if _is_number(other) else NotImplemented

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __floor__(self) -> Any:
        if not self.is_real:
            return self
        return self.recording.combined("ffloor", self, 0, math.floor(self.example))

    def __ceil__(self) -> Any:
        return -math.floor(-self) if self.is_real else self

    def __format__(self, spec: str) -> str:
        if self.recording.is_open:
            return self.recording.text(self)
        # the text may be a key: different values must not have the same text
        return format(float(self) if self.is_real else int(self), spec)

    def __str__(self) -> str:
        return format(self)

    def __repr__(self) -> str:
        parts = []
        for monomial, factor in self.terms:
            names = [_atom_text(self.recording, atom) for atom in monomial]
            parts.append("*".join([str(factor), *names] if factor != 1 or not names else names))
        return " + ".join(parts)


def _atom_text(recording: Recording, atom: int) -> str:
    name, *arguments = recording.atom(atom)
    return f"s{arguments[0]}" if name == "input" else f"{name}({', '.join(map(repr, arguments))})"


def _is_number(value: Any) -> bool:
    return isinstance(value, (Symbol, int, float))


def _is_real(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, Symbol) and value.is_real)


def example_of(value: Any) -> Any:
    """The example of a symbol; a number as it is."""
    return value.example if isinstance(value, Symbol) else value


def terms_of(value: Any) -> Terms:
    """The terms of a symbol or an integer."""
    return value.terms if isinstance(value, Symbol) else (((), int(value)),)


def _sides(difference: Symbol) -> tuple[Any, Any]:
    """``(low, high)`` with ``high - low == difference``, both without negative factors."""
    sides: list[Any] = [0, 0]
    for monomial, factor in difference.terms:
        side = int(factor > 0)
        part = difference.recording.polynomial(
            {monomial: abs(factor)}, _value_of(difference.recording, monomial, abs(factor))
        )
        sides[side] = part + sides[side]
    return sides[0], sides[1]


def _value_of(recording: Recording, monomial: Monomial, factor: int) -> int:
    value = factor
    for atom in monomial:
        value *= int(recording._examples[atom])
    return value


def _provable(name: str, recording: Recording, difference: Symbol) -> bool | None:
    """The result of a comparison if bounds of the difference prove it, else None."""
    low, negative = recording.least(difference.terms), recording.least((-difference).terms)
    if name == "eq":
        return False if (low is not None and low > 0) or (negative is not None and negative > 0) else None
    bound = 1 if name == "lt" else 0
    if low is not None and low >= bound:
        return True
    return False if negative is not None and negative >= 1 - bound else None


def _real(name: str, a: Any, b: Any) -> Any:
    """The float result of an operation of which an operand is a symbol."""
    if not (_is_number(a) and _is_number(b)):
        return NotImplemented
    recording = a.recording if isinstance(a, Symbol) else b.recording
    function = {"fadd": operator.add, "fmul": operator.mul, "fdiv": operator.truediv}[name]
    example = float(function(example_of(a), example_of(b)))
    return recording.combined(name, real(a), real(b), example)


def real(value: Any) -> Any:
    """``float(value)``; of a symbol a symbol."""
    if isinstance(value, Symbol) and not value.is_real:
        return value.recording.combined("to_float", value, 0, float(value.example))
    return value if isinstance(value, Symbol) else float(value)


def _quotient(a: Any, b: Any, recording: Recording) -> Any:
    if _is_real(a) or _is_real(b):
        return math.floor(a / b)
    if b == 0:
        raise ZeroDivisionError("integer division by zero")
    if isinstance(b, Symbol):
        return _divided_by_symbol(a, b, recording)
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, factor in a.terms:
        if b > 0:
            times, left = divmod(factor, b)
        else:
            times, left = (factor // b, 0) if factor % b == 0 else (0, factor)
        whole[monomial], rest[monomial] = times, left
    remaining = recording.polynomial(rest, _evaluated(recording, rest))
    front = recording.polynomial(whole, _evaluated(recording, whole))
    if isinstance(remaining, int):
        return front + remaining // b
    low = recording.least(remaining.terms)
    nonnegative = 0 if low is not None and low >= 0 and b > 0 else None
    return front + recording.combined("floordiv", remaining, b, remaining.example // b, nonnegative)


def _exact_quotient(a: Any, b: Symbol) -> Any:
    """``a / b`` if ``b`` is a monomial that divides each term of ``a``; else None."""
    if len(b.terms) != 1:
        return None
    ((divisor, factor),) = b.terms
    terms: dict[Monomial, int] = {}
    for monomial, own in terms_of(a):
        left = _without(monomial, divisor)
        if left is None or own % factor:
            return None
        terms[left] = own // factor
    return b.recording.polynomial(terms, example_of(a) // b.example)


def _divided_by_symbol(a: Any, b: Symbol, recording: Recording) -> Any:
    if a is b:
        return 1
    exact = _exact_quotient(a, b)
    if exact is not None:
        return exact
    return recording.combined("floordiv", a, b, example_of(a) // b.example, _nonnegative(a, b, recording))


def _nonnegative(a: Any, b: Any, recording: Recording) -> int | None:
    low = [recording.least(terms_of(number)) for number in (a, b)]
    return 0 if all(number is not None and number >= 0 for number in low) else None


def _remainder(a: Any, b: Any, recording: Recording) -> Any:
    if _is_real(a) or _is_real(b):
        raise TypeError("the remainder of real sizes")
    if isinstance(b, Symbol):
        if b != 0 and (_exact_quotient(a, b) is not None or a is b):
            return 0
        return recording.combined("mod", a, b, example_of(a) % b.example, _nonnegative(a, b, recording))
    if b == 0:
        raise ZeroDivisionError("integer modulo by zero")
    rest = {monomial: factor % b for monomial, factor in a.terms}
    remaining = recording.polynomial(rest, _evaluated(recording, rest))
    if isinstance(remaining, int):
        return remaining % b
    return recording.combined("mod", remaining, b, remaining.example % b, 0 if b > 0 else None)


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    left = list(monomial)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _evaluated(recording: Recording, terms: dict[Monomial, int]) -> int:
    return sum(_value_of(recording, monomial, factor) for monomial, factor in terms.items())


def identity(value: Any) -> Any:
    """A key of a number, or of nested tuples of them, that is unique in a recording and adds no guard."""
    if isinstance(value, tuple):
        return tuple([identity(item) for item in value])
    return (Symbol, value.number) if isinstance(value, Symbol) else value


_keys = threading.local()


@contextmanager
def keys_by_identity() -> Iterator[None]:
    """Inside, symbols hash by identity and not by value, without guards: for caches in which a miss is harmless."""
    before = getattr(_keys, "by_identity", False)
    _keys.by_identity = True
    try:
        yield
    finally:
        _keys.by_identity = before


def is_symbolic(value: Any) -> bool:
    """Whether a number, or a number inside nested tuples, is a symbol."""
    if isinstance(value, tuple):
        return any(is_symbolic(item) for item in value)
    return isinstance(value, Symbol)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two numbers, without a guard on which one it is."""
    return _extreme("imax", max, a, b)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two numbers, without a guard on which one it is."""
    return _extreme("imin", min, a, b)


def _extreme(name: str, function: Callable[..., Any], a: Any, b: Any) -> Any:
    if not isinstance(a, Symbol) and not isinstance(b, Symbol):
        return function(a, b)
    if _is_real(a) or _is_real(b):
        return function(a, b)
    recording: Recording = a.recording if isinstance(a, Symbol) else b.recording
    difference = b - a
    if isinstance(difference, int):
        return (
            function(a, b)
            if not isinstance(a, Symbol)
            else (b if (difference > 0) == (name == "imax") else a)
        )
    provable = _provable("le", recording, difference)
    if provable is None and _provable("le", recording, -difference):
        provable = False  # if both are equal either is the result
    if provable is not None:
        return (b if provable else a) if name == "imax" else (a if provable else b)
    low = [recording.least(terms_of(number)) for number in (a, b)]
    known = [number for number in low if number is not None]
    bound = max(known, default=None) if name == "imax" else min(known) if len(known) == 2 else None
    return recording.combined(name, a, b, function(example_of(a), example_of(b)), bound)


def look_up(table: tuple[int, ...], index: Any) -> Any:
    """``table[index]`` without a guard on the index; the table has no negative elements."""
    if not isinstance(index, Symbol):
        return table[index]
    if not 0 <= index < len(table):
        raise IndexError(f"index {index} of a table of {len(table)}")
    return index.recording.combined("lookup", table, index, table[int(index.example)], 0)


def index(value: Any) -> Any:
    """``operator.index(value)``; of a symbol the symbol."""
    return value if isinstance(value, Symbol) and not value.is_real else operator.index(value)


def float_bits(value: Any) -> Any:
    """The bits of a number as a float64, as a signed integer."""
    if isinstance(value, Symbol):
        return real(value)
    return struct.unpack("<q", struct.pack("<d", float(value)))[0]


class _Current(threading.local):
    sizes: NamedSizes | None = None


_current = _Current()


def current_sizes() -> NamedSizes | None:
    """The symbolic sizes over which this thread declares a graph, if it does."""
    return _current.sizes


@contextmanager
def declared_over(sizes: NamedSizes | None) -> Iterator[None]:
    """Inside, this thread declares graphs over symbolic ``sizes``, see ``twofold.ir.named_sizes``."""
    before, _current.sizes = _current.sizes, sizes
    try:
        yield
    finally:
        _current.sizes = before


def symbolic_type(type: TensorType) -> TensorType:
    """A type of the core with symbols in place of the names of sizes."""
    sizes = _current.sizes
    return type if sizes is None else sizes.symbolic(type)
