"""Name scopes of modules and declared operations; a location has the number of its scope."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twofold import _core

_names: list[tuple[str, str]] = [("", "")]
_numbers: dict[tuple[str, str], int] = {("", ""): 0}


def scope_number(name: str, operation: str = "") -> int:
    """The number of a scope, for ``_core.set_scope``, which sets the scope of what a thread records.

    Args:
        name: The name of the scope.
        operation: The name of a declared operation, by which it differs from others of its line.

    >>> before = _core.set_scope(scope_number("encoder"))
    >>> scope_name(_core.capture_location())
    'encoder'
    >>> _core.set_scope(before) == scope_number("encoder")
    True
    """
    number = _numbers.get((name, operation))
    if number is None:
        number = _numbers[name, operation] = len(_names)
        _names.append((name, operation))
    return number


@contextmanager
def declaring(operation: str) -> Iterator[None]:
    """Inside, this thread records the declared operation of this name, in the name scope before the last slash."""
    scope = operation.rpartition("/")[0].replace("/", ".")
    before = _core.set_scope(scope_number(scope, operation))
    try:
        yield
    finally:
        _core.set_scope(before)


def scope_name(location: int) -> str:
    """The name of the scope that a location was captured in, or an empty string."""
    return _names[_core.scope_of(location)][0]


def operation_name(location: int) -> str:
    """The name of the operation that was declared at a location, or an empty string."""
    return _names[_core.scope_of(location)][1]
