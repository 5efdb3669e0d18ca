"""Names that what is recorded stands in: modules, name scopes. A location carries the number of the one entered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twofold import _core

_names: list[str] = [""]
_numbers: dict[str, int] = {"": 0}


def scope_number(name: str) -> int:
    """The number of a scope, for ``_core.set_scope``: what a thread records from then on stands in it.

    >>> before = _core.set_scope(scope_number("encoder"))
    >>> scope_name(_core.capture_location())
    'encoder'
    >>> _core.set_scope(before) == scope_number("encoder")
    True
    """
    number = _numbers.get(name)
    if number is None:
        number = _numbers[name] = len(_names)
        _names.append(name)
    return number


@contextmanager
def entered(name: str) -> Iterator[None]:
    """Inside, what this thread records stands in the scope of this name."""
    before = _core.set_scope(scope_number(name))
    try:
        yield
    finally:
        _core.set_scope(before)


def scope_name(location: int) -> str:
    """The name of the scope that a location was captured in, or an empty string."""
    return _names[_core.scope_of(location)]
