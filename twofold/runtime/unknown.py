"""Types of calls whose sizes are not all known: found by trying the type rule on sample sizes.

An unknown size is a negative number that names it. The rules of operations know only real sizes, so the rule
is run with each unknown size replaced by two different large ones; what stays the same is known, what follows
one unknown size is that size, and anything else is a new unknown. Sizes that must agree for the rule to accept
them are taken to be equal: whoever feeds the graph gets an error when they are not.

A tensor of unknown rank has the one-axis shape ``UNKNOWN_RANK``, whose size names nothing. The rule is tried
with all such tensors of rank 0, 1, 2, ...: what every accepted rank agrees on is known.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from twofold.errors import TwofoldError
from twofold.ir.bind import input_node
from twofold.ir.node import Attributes, Node
from twofold.ir.op import Op
from twofold.ir.types import Shape, TensorType, tensor_type

UNKNOWN_RANK = (-1,)

_SAMPLES = (1009, 2003)
_RANKS = 5
_names = itertools.count(2)  # 1 is taken by UNKNOWN_RANK


def new_unknown_size() -> int:
    """A negative number that names one more unknown size."""
    return -next(_names)


def sizes_by_place(shapes: Sequence[Shape], base: int) -> dict[int, int]:
    """Unknown sizes on one axis, counted from the last, as equal, and equal to a known size of it.

    >>> sizes_by_place([(-2, -3, 2), (-4, 7, 2)], 100)
    {-3: 7, -2: 112, -4: 112}
    """
    known: dict[int, int] = {}
    unknown: dict[int, int] = {}
    for shape in shapes:
        for place, size in enumerate(reversed(shape)):
            if size < 0:
                unknown.setdefault(size, place)
            elif size > 1:
                known.setdefault(place, size)
    return {name: known.get(place, base + 6 * place) for name, place in unknown.items()}


def _assignments(types: Sequence[TensorType], base: int) -> Iterator[dict[int, int]]:
    unknown = list(dict.fromkeys(size for type in types for size in type.shape if size < 0))
    yield {name: base + 6 * place for place, name in enumerate(unknown)}
    yield sizes_by_place([type.shape for type in types], base)
    yield dict.fromkeys(unknown, base)
    for size in dict.fromkeys(size for type in types for size in type.shape if size >= 0):
        yield dict.fromkeys(unknown, size)


Sizes = dict[int, int]
Result = TypeVar("Result")


class Trials(Generic[Result]):
    """What a rule gives for sizes, each asked once, and the errors of those that it refused."""

    def __init__(self, rule: Callable[[Sizes], Result]) -> None:
        self._rule = rule
        self._found: dict[frozenset[tuple[int, int]], Result | None] = {}
        self.errors: list[TwofoldError] = []

    def of(self, sizes: Sizes) -> Result | None:
        """What the rule gives, or None if it refuses the sizes."""
        key = frozenset(sizes.items())
        if key not in self._found:
            try:
                self._found[key] = self._rule(sizes)
            except TwofoldError as error:
                self.errors.append(error)
                self._found[key] = None
        return self._found[key]

    def accepts(self, low: Sizes, high: Sizes) -> bool:
        """Whether the rule takes both."""
        return self.of(low) is not None and self.of(high) is not None

    def first(self, pairs: Iterable[tuple[Sizes, Sizes]]) -> tuple[Sizes, Sizes]:
        """The first pair that the rule takes, with each size as in the very first one if it may be.

        Raises the error of the second pair if there is none: sizes that are all different say less.
        """
        free: tuple[Sizes, Sizes] | None = None
        for low, high in pairs:
            free = free or (low, high)
            if not self.accepts(low, high):
                continue
            for name in low if low != free[0] else ():
                trial = {**low, name: free[0][name]}, {**high, name: free[1][name]}
                if self.accepts(*trial):
                    low, high = trial
            return low, high
        raise (self.errors[1:2] or self.errors)[0]


def infer_by_sampling(build: Callable[[list[Node]], Node], types: Sequence[TensorType]) -> TensorType:
    """The type of what ``build`` makes of inputs of ``types``, some of whose sizes or ranks are unknown."""
    if any(type.shape == UNKNOWN_RANK for type in types):
        return _infer_rank(build, types)
    trials = Trials(lambda sizes: _typed(build, types, sizes))
    low, high = trials.first(zip(_assignments(types, _SAMPLES[0]), _assignments(types, _SAMPLES[1])))
    a, b = trials.of(low), trials.of(high)
    assert a is not None and b is not None
    shape = tuple(_size(m, n, low, high) for m, n in zip(a.shape, b.shape))
    return tensor_type(a.dtype, shape, a.weak)


def _infer_rank(build: Callable[[list[Node]], Node], types: Sequence[TensorType]) -> TensorType:
    found: list[TensorType] = []
    first_error: TwofoldError | None = None
    for rank in range(_RANKS):
        sizes = tuple(new_unknown_size() for _ in range(rank))
        ranked = [tensor_type(t.dtype, sizes, t.weak) if t.shape == UNKNOWN_RANK else t for t in types]
        try:
            found.append(infer_by_sampling(build, ranked))
        except TwofoldError as error:
            first_error = first_error or error
    if not found:
        assert first_error is not None
        raise first_error
    same = all(type is found[0] for type in found) and len(found) > 1
    return found[0] if same else tensor_type(found[0].dtype, UNKNOWN_RANK)


def _typed(
    build: Callable[[list[Node]], Node], types: Sequence[TensorType], sizes: dict[int, int]
) -> TensorType:
    concrete = [tensor_type(t.dtype, tuple(sizes.get(size, size) for size in t.shape), t.weak) for t in types]
    return build([input_node(k, type) for k, type in enumerate(concrete)]).type


def _size(a: int, b: int, low: dict[int, int], high: dict[int, int]) -> int:
    if a == b:
        return a
    for name, size in low.items():
        if size == a and high[name] == b:
            return name
    return new_unknown_size()


def infer_unknown(op: Op, attrs: Attributes, types: Sequence[TensorType]) -> TensorType:
    """The result type of one call of ``op``."""
    return infer_by_sampling(lambda nodes: op.build(attrs, nodes), types)
