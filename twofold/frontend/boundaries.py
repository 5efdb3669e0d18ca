"""The boundary between the user's code and the package: errors that cross it end at the user's line.

Every public function and method is a callable of the core around the Python function. It adds a few nanoseconds to a
call; when an error comes through, the user's line is appended to its traceback. The package itself calls the functions
behind the boundary.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from twofold import _core
from twofold.runtime.argument_errors import UNWORDED
from twofold.tracebacks import end_at_user

_Operation: Any = type(_core.operation_callable(None, -1, len))
_INSIDE = (
    (
        "__class_getitem__",
        "__del__",
        "__eq__",
        "__getattribute__",
        "__getnewargs__",
        "__getstate__",
        "__hash__",
    )
    + ("__init_subclass__", "__new__", "__reduce__", "__reduce_ex__", "__repr__", "__setstate__", "__str__")
    + ("__subclasshook__", "forward")
)
"""Methods that no user's line calls directly, or that a boundary stands before."""

_known: dict[Any, Any] = {}
"""Boundaries by the functions behind them, and the classes and modules that are done."""


def guard_namespace(names: dict[str, Any]) -> None:
    """Put the boundary before every public function, class and module of a module, given by its names."""
    within = _library(names["__name__"])
    listed = names.get("__all__", ())
    for name, value in list(names.items()):
        own = _belongs_to(value, within) or (name in listed and inspect.isfunction(value))
        if own and not name.startswith("_"):
            names[name] = guarded(value)


def guarded(value: Any) -> Any:
    """What users get for a function, class or module of the package."""
    if inspect.isfunction(value):
        return _function(value)
    if isinstance(value, type):
        if not issubclass(value, (BaseException, enum.Enum, tuple)):
            _guard_class(value)
    elif isinstance(value, ModuleType) and value not in _known:
        _known[value] = value
        guard_namespace(vars(value))
    return value


def prepared(name: str, value: Any) -> Any:
    """``guarded`` for ``lazy.attach``: what is not the package's own stays."""
    return guarded(value) if _belongs_to(value, "twofold") else value


def _library(module: str) -> str:
    """The package right below ours that a module is in."""
    return ".".join(module.split(".")[:2])


def _belongs_to(value: Any, package: str) -> bool:
    """Whether a function, class or module is in a package of ours, or in one below it."""
    if isinstance(value, ModuleType):
        name = value.__name__
    elif isinstance(value, type) or inspect.isfunction(value):
        name = value.__module__
    else:
        return False
    return name == package or name.startswith(package + ".")


def is_boundary(value: Any) -> bool:
    """Whether a callable of the core is a boundary of a function that has its own name in its module."""
    return isinstance(value, _Operation) and _known.get(value.__wrapped__) is value


def find(module: str, name: str) -> Any:
    """The boundary of the function that a module has under a dotted name; copies and files of functions use it."""
    value: Any = import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return guarded(value)


class Iteration(Iterator[Any]):
    """An iterator of the package whose errors end at the user's loop."""

    def __init__(self, inner: Iterator[Any]) -> None:
        self._inner = inner

    def __next__(self) -> Any:
        try:
            return next(self._inner)
        except Exception as error:
            end_at_user(error)
            raise


def boundary(function: Any) -> Any:
    """A function of the package as a callable whose errors end at the user's line; one that is no boundary itself."""
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.iscoroutinefunction(inner):
        return function
    if end_at_user.__name__ in function.__code__.co_names:  # it is the boundary itself
        return function
    made = _core.operation_callable(None, -1, function)
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(made, name, getattr(function, name))
    for name, value in function.__dict__.items():
        if name not in ("__wrapped__", "__signature__"):  # which lead to the function itself
            setattr(made, name, value)
    UNWORDED.add(function)
    return made


def _function(function: Any) -> Any:
    if function not in _known:
        _known[function] = boundary(function)
    return _known[function]


def _guard_class(cls: type) -> None:
    if cls in _known:
        return
    _known[cls] = cls
    guard_methods(cls)
    for base in cls.__mro__[1:]:
        if _belongs_to(base, _library(cls.__module__)):
            _guard_class(base)


def guard_methods(cls: type) -> None:
    """Put the boundary before the methods of a class."""
    for name, value in list(vars(cls).items()):
        if name in _INSIDE or (name.startswith("_") and not name.startswith("__")):
            continue
        if inspect.isfunction(value):
            setattr(cls, name, _function(value))
        elif isinstance(value, (staticmethod, classmethod)) and inspect.isfunction(value.__func__):
            setattr(cls, name, type(value)(_function(value.__func__)))
