"""What a Python function reads beside its arguments, and whether all of that stays what it is."""

from __future__ import annotations

import builtins
import enum
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from twofold import _core
from twofold.dtypes import DType

_PURE_MODULES = frozenset(
    ("builtins", "cmath", "functools", "itertools", "math", "operator", "twofold", "typing")
)
_ACTING = frozenset(
    ("delattr", "eval", "exec", "globals", "input", "next", "open", "print", "setattr", "vars")
)
_COMPILED = type(_core.compiled(len))
_CONSTANTS = (bool, bytes, complex, enum.Enum, float, int, str, type(None), type(...), DType)


class Capture(NamedTuple):
    """A name of a module or a cell of a closure, with the value that it had."""

    holder: dict[str, Any] | CellType
    name: str
    value: Any

    def holds(self) -> bool:
        """Whether the name has that value still."""
        if isinstance(self.holder, CellType):
            return self.holder.cell_contents is self.value
        return self.holder.get(self.name) is self.value

    def restore(self) -> None:
        """Give the name that value again."""
        if isinstance(self.holder, CellType):
            self.holder.cell_contents = self.value
        else:
            self.holder[self.name] = self.value


class _Changing(Exception):
    """A function reads something that may change in place, or does more than compute its result."""


def restore(captures: Sequence[Capture]) -> bool:
    """Undo what a call of the function did to its names; whether it did anything."""
    changed = [capture for capture in captures if not capture.holds()]
    for capture in changed:
        capture.restore()
    return bool(changed)


def captures_of(function: Callable[..., Any]) -> list[Capture] | None:
    """What ``function`` and the functions that it calls read beside arguments; None if it may change in place."""
    found: list[Capture] = []
    try:
        _add(function, found, set())
    except _Changing:
        return None
    return [one for one in found if not isinstance(one.value, ModuleType)]


def _add(value: Any, found: list[Capture], seen: set[int]) -> None:
    if id(value) in seen or isinstance(value, _CONSTANTS):
        return
    seen.add(id(value))
    if isinstance(value, (tuple, frozenset)):
        _add_all(value, found, seen)
    elif isinstance(value, functools.partial):
        _add_all((value.func, *value.args, *value.keywords.values()), found, seen)
    elif isinstance(value, MethodType):
        _add_all((value.__func__, value.__self__), found, seen)
    elif isinstance(value, FunctionType):
        _add_function(value, found, seen)
    elif isinstance(value, _COMPILED):
        _add(inspect.unwrap(value), found, seen)
    elif not _is_pure(value):
        raise _Changing


def _add_all(values: Any, found: list[Capture], seen: set[int]) -> None:
    for value in values:
        _add(value, found, seen)


def _is_pure(value: Any) -> bool:
    """Whether it is a module, class, function or operation of those that keep no state that a program changes."""
    if isinstance(value, ModuleType):
        name = value.__name__
    elif isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        name = value.__module__ or ""
    else:
        return type(value).__module__ == _core.__name__ and not isinstance(value, _core.Tensor)
    return name.partition(".")[0] in _PURE_MODULES


def _add_function(function: FunctionType, found: list[Capture], seen: set[int]) -> None:
    _add_all((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()), found, seen)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found.append(Capture(cell, name, cell.cell_contents))
        except ValueError:
            raise _Changing from None
        _add(found[-1].value, found, seen)
    for name in () if _is_pure(function) else set(_names(function.__code__)):
        if name in function.__globals__:
            found.append(Capture(function.__globals__, name, function.__globals__[name]))
            _add(found[-1].value, found, seen)
        elif name in _ACTING and hasattr(builtins, name):
            raise _Changing


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
