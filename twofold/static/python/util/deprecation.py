"""Functions that a program calls deprecated: ``tensorflow.python.util.deprecation``."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from twofold.static.platform import logs

_PRINT_DEPRECATION_WARNINGS = True


def deprecated(
    date: str | None, instructions: str, warn_once: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of functions whose call logs a warning, the first one alone unless ``warn_once`` is false.

    >>> @deprecated(None, "Use another one.")
    ... def old(x):
    ...     return x
    >>> with silence():
    ...     old(3)
    3
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        told = False

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            nonlocal told
            if _PRINT_DEPRECATION_WARNINGS and not (told and warn_once):
                told = True
                when = "in a future version" if date is None else f"after {date}"
                name = getattr(function, "__qualname__", function)
                logs.warning("%s is deprecated and will be removed %s. %s", name, when, instructions)
            return function(*args, **kwargs)

        return called

    return decorate


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """A block in which deprecated functions log no warning."""
    global _PRINT_DEPRECATION_WARNINGS
    before, _PRINT_DEPRECATION_WARNINGS = _PRINT_DEPRECATION_WARNINGS, False
    try:
        yield
    finally:
        _PRINT_DEPRECATION_WARNINGS = before
