"""The integers in the attributes of a call, as the core counts them, and their replacement by symbols."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from twofold.ir.node import mapped, rebuilt
from twofold.ir.sizes import Symbol, example_of

_MAX_BITS = 63


def _is_number(value: Any) -> bool:
    """Whether the core counts a value as an integer of attributes."""
    return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= _MAX_BITS


def replace_numbers(value: Any, numbers: Iterator[Any]) -> Any:
    """Attributes with their integers replaced by ``numbers``, in order."""
    if isinstance(value, tuple):
        return rebuilt(value, [replace_numbers(item, numbers) for item in value])
    return next(numbers) if _is_number(value) else value


def constants(numbers: Sequence[int], varies: Sequence[bool]) -> Iterator[Any]:
    """The integers that are constants of a plan, in order; ``...`` for one that varies, as None may be an attribute.

    >>> replace_numbers((2, None, 5), constants([2, 5], [True, False]))
    (Ellipsis, None, 5)
    """
    return iter([... if own else number for number, own in zip(numbers, varies, strict=True)])


def numbers_in(value: Any) -> list[Any]:
    """The integers and symbols of attributes, in order."""
    if isinstance(value, tuple):
        return [number for item in value for number in numbers_in(item)]
    return [value] if _is_number(value) or isinstance(value, Symbol) else []


def with_examples(value: Any) -> Any:
    """Attributes with symbols replaced by their examples."""
    return mapped(value, example_of)
