"""Coordinates and addresses that all forms of loop nests share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from twofold.compiler.lower.builder import Builder
from twofold.compiler.lower.expression import Expression, Position
from twofold.compiler.lower.values import Val


def divide(b: Builder, number: Val, size: Val) -> Val:
    """Quotient of index numbers that are not negative, by a size that is not zero where it is used."""
    return b._binary("udiv", number, size)


def decompose(code: Expression, number: Val, axes: Sequence[int]) -> list[Val]:
    """The coordinates along ``axes`` of a flat row-major number."""
    b = code.b
    coordinates: list[Val] = []
    for axis in reversed(axes[1:]):
        size = code.size(axis)
        quotient = divide(b, number, size)
        coordinates.append(b.sub(number, b.mul(quotient, size)))
        number = quotient
    if axes:
        coordinates.append(number)
    return coordinates[::-1]


def once(
    code: Expression, needed: Iterable[int] | None = None, ends: bool = True
) -> tuple[dict[int, Val], list[Val]]:
    """Emit what is computed once per call; gives its values and (unless ``ends`` is false) where accesses begin.

    A load whose address holds a run-time offset comes after the step that gives the offset.
    """
    values: dict[int, Val] = {}
    pointers: list[Val | None] = [None] * len(code.accesses)
    chosen = of_level(code, 0) if needed is None else needed
    for number in chosen:
        if code.nest.steps[number].access is not None:
            access = code.access_of(number)
            pointers[access] = code.pointer(access, code.start(access, values))
        code.evaluate([number], Position(0, 1, None, pointers, values))
    return values, [code.start(number, values) for number in range(len(code.accesses))] if ends else []


def of_level(code: Expression, level: int) -> list[int]:
    """The steps computed at one level of the loops."""
    return [number for number, found in enumerate(code.levels) if found == level]
