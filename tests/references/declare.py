"""How independent references and identities of operation entries and public functions are stated.

A *reference* computes the result another way, by NumPy in float64 or by SciPy. An *identity* yields pairs of arrays
that must agree, such as ``Q R`` and ``A``. Neither calls Twofold, and neither repeats the library call of the
implementation. References of entries that need no more than NumPy may also stand in the entry itself.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

Rule = Callable[..., Any]


@dataclass(frozen=True)
class Call:
    """One call of a public function; arrays in the arguments become tensors."""

    args: tuple[Any, ...]
    options: dict[str, Any]


@dataclass(frozen=True)
class Check:
    """What a call must give: ``rule`` is a reference, or an identity that takes the result first."""

    rule: Rule
    identity: bool
    calls: Callable[[], Sequence[Call]] = tuple


ENTRIES: dict[str, Check] = {}
"""By name of the operation entry; the entry's own samples are the calls."""

PUBLIC: dict[str, list[Check]] = {}
"""By name of the public function; aliases need none of their own."""

INTERNAL: dict[str, Check] = {}
"""By name of an entry that only graphs of some kind have: functions that give ``(found, expected)`` pairs."""


def call(*args: Any, **options: Any) -> Call:
    """One call, as it is written."""
    return Call(args, options)


def entry(*names: str) -> Callable[[Rule], Rule]:
    """State the reference ``(*arrays, *attrs)`` of entries."""
    return _of_entries(names, False)


def entry_identity(*names: str) -> Callable[[Rule], Rule]:
    """State an identity ``(result, *arrays, *attrs)`` of entries: it yields pairs of arrays."""
    return _of_entries(names, True)


def _of_entries(names: Sequence[str], identity: bool) -> Callable[[Rule], Rule]:
    def decorate(rule: Rule) -> Rule:
        for name in names:
            assert name not in ENTRIES, name
            ENTRIES[name] = Check(rule, identity)
        return rule

    return decorate


def internal(*names: str) -> Callable[[Rule], Rule]:
    """State how to check entries that have no samples, as users make them only by other means.

    The rule yields pairs of arrays, as an identity does, from programs that it runs itself.
    """

    def decorate(rule: Rule) -> Rule:
        for name in names:
            assert name not in INTERNAL, name
            INTERNAL[name] = Check(rule, True)
        return rule

    return decorate


def public(names: str, rule: Rule, calls: Callable[[], Sequence[Call]]) -> None:
    """State the reference of the public functions ``names`` (separated by blanks) and the calls to compare."""
    for name in names.split():
        PUBLIC.setdefault(name, []).append(Check(rule, False, calls))


def public_identity(names: str, rule: Rule, calls: Callable[[], Sequence[Call]]) -> None:
    """State an identity of the public functions ``names``: ``rule(result, *args, **options)`` yields pairs."""
    for name in names.split():
        PUBLIC.setdefault(name, []).append(Check(rule, True, calls))


# Arrays for calls; each is the same in every run.


def _generator(*key: Any) -> numpy.random.Generator:
    return numpy.random.default_rng(zlib.crc32(repr(key).encode()))


def normal(*shape: int, seed: int = 0) -> Any:
    """Normal numbers in float64."""
    return _generator(shape, seed).normal(size=shape)


def uniform(low: float, high: float, *shape: int, seed: int = 0) -> Any:
    """Numbers between two limits in float64."""
    return _generator(shape, seed).uniform(low, high, shape)


def complexes(*shape: int, seed: int = 0) -> Any:
    """Complex normal numbers in complex128."""
    return normal(*shape, seed=seed) + 1j * normal(*shape, seed=seed + 100)


def integers(low: int, high: int, *shape: int, seed: int = 0) -> Any:
    """Integers from ``low`` to ``high - 1`` in int64."""
    return _generator(shape, seed).integers(low, high, shape)


def bools(*shape: int, seed: int = 0) -> Any:
    """Truth values."""
    return _generator(shape, seed).integers(0, 2, shape).astype(bool)


def symmetric(size: int, *batch: int, seed: int = 0) -> Any:
    """Symmetric matrices."""
    x = normal(*batch, size, size, seed=seed)
    return x + x.swapaxes(-1, -2)


def positive(size: int, *batch: int, seed: int = 0) -> Any:
    """Symmetric positive definite matrices."""
    x = normal(*batch, size, size, seed=seed)
    return x @ x.swapaxes(-1, -2) + numpy.eye(size)


def dominant(size: int, *batch: int, seed: int = 0) -> Any:
    """Matrices that are far from singular."""
    return normal(*batch, size, size, seed=seed) + (2 + size) * numpy.eye(size)


# Small tools of rules.


def adjoint(x: Any) -> Any:
    """The conjugated transpose of matrices."""
    return numpy.conj(numpy.swapaxes(x, -1, -2))


def flat(value: Any) -> list[Any]:
    """All results in one list."""
    if isinstance(value, (tuple, list)):
        return [one for item in value for one in flat(item)]
    return [value]


def pieces(packed: Any, *shapes: tuple[int, ...]) -> list[Any]:
    """The results that stand one after another along the last axis of ``packed``."""
    found, start = [], 0
    for shape in shapes:
        size = int(numpy.prod(shape, dtype=int))
        found.append(packed[..., start : start + size].reshape((*packed.shape[:-1], *shape)))
        start += size
    assert start == packed.shape[-1]
    return found


def over_batch(rule: Rule, *arrays: Any, axes: int = 2) -> Any:
    """``rule`` of the last axes of the (broadcast) arrays, for each element of the batch."""
    batch = numpy.broadcast_shapes(*[array.shape[:-axes] for array in arrays])
    wide = [numpy.broadcast_to(array, (*batch, *array.shape[array.ndim - axes :])) for array in arrays]
    found = [rule(*[array[at] for array in wide]) for at in numpy.ndindex(*batch)]
    return numpy.array(found).reshape((*batch, *numpy.shape(found[0])))


def each_line(rule: Rule, x: Any, axis: int) -> Any:
    """``rule`` of every line of ``x`` along ``axis``; what it gives stands along that axis (a scalar: it vanishes)."""
    moved = numpy.moveaxis(x, axis, -1)
    found = numpy.array([rule(moved[at]) for at in numpy.ndindex(moved.shape[:-1])])
    if found.ndim == 1:
        return found.reshape(moved.shape[:-1])
    return numpy.moveaxis(found.reshape(*moved.shape[:-1], *found.shape[1:]), -1, axis)


def pairs(*items: tuple[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """Pairs that an identity says agree."""
    return items
