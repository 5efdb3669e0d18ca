"""Every public name of the package, and the Python functions that stand behind it."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import types
from collections.abc import Iterator
from typing import Any

import twofold

MODULES = (
    "",
    "accelerator",
    "amp",
    "array_api",
    "array_api.fft",
    "array_api.linalg",
    "autograd",
    "autograd.functional",
    "cuda",
    "data",
    "distributions",
    "dynet",
    "fft",
    "func",
    "linalg",
    "masked",
    "nn",
    "nn.functional",
    "nn.init",
    "nn.utils",
    "nn.utils.parametrizations",
    "nn.utils.parametrize",
    "nn.utils.rnn",
    "optim",
    "optim.lr_scheduler",
    "random",
    "signal.windows",
    "sparse",
    "special",
    "utils.checkpoint",
    "utils.data",
)
"""Modules whose names programs use; those of ``twofold.static`` are found from its own."""


_INSIDE = ("twofold.ir", "twofold.ops")  # what modules import from there is not theirs to publish


def _own(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    if inspect.isclass(value) and module.startswith(_INSIDE):
        return False
    return module.split(".")[0] == "twofold" or type(value).__name__ == "Operation"


def names_of(space: Any) -> dict[str, Any]:
    """Everything that a module or namespace has, by name, what it imports when it is first used included."""
    return {name: getattr(space, name) for name in dir(space)}


def members(module: Any) -> Iterator[tuple[str, Any]]:
    """The functions and classes of the package that a module publishes, by name."""
    for name, value in names_of(module).items():
        if not name.startswith("_") and callable(value) and not inspect.ismodule(value) and _own(value):
            yield name, value


def public() -> dict[str, Any]:
    """Functions and classes of define-by-run by their dotted names, and ``Tensor.method`` for the methods."""
    found: dict[str, Any] = {}
    for name in MODULES:
        module = importlib.import_module(f"twofold.{name}" if name else "twofold")
        found.update({f"{name}.{short}" if name else short: value for short, value in members(module)})
    found.update({f"Tensor.{name}": value for name, value in methods(twofold.Tensor).items()})
    return found


def static() -> dict[str, Any]:
    """Functions and classes of define-then-run, those of its namespaces included."""
    root = importlib.import_module("twofold.static")
    # so that what is found does not depend on what was imported before
    for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
        importlib.import_module(module.name)
    found: dict[str, Any] = {}

    def enter(start: str, names: Any, level: int) -> None:
        for name, value in sorted(names_of(names).items()):
            if name.startswith("_"):
                continue
            space = inspect.ismodule(value) and value.__name__.startswith("twofold.static")
            if (space or isinstance(value, types.SimpleNamespace)) and level < 3:
                enter(f"{start}{name}.", value, level + 1)
            elif callable(value) and _own(value) and id(value) not in seen:
                seen.add(id(value))
                found[start + name] = value

    seen: set[int] = set()
    enter("static.", root, 0)
    return found


def methods(cls: type) -> dict[str, Any]:
    """The public methods of a class, and those that a call of it or of its objects goes to."""
    found: dict[str, Any] = {}
    for name in dir(cls):
        value = inspect.getattr_static(cls, name)
        if name.startswith("_") and name not in ("__init__", "__new__", "__call__"):
            continue
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if isinstance(value, types.FunctionType) or type(value).__name__ == "Operation":
            found[name] = value
    return found


def layers(value: Any) -> Iterator[types.FunctionType]:
    """The Python functions of the package that a callable runs: wrappers, and what they wrap."""
    seen: set[int] = set()
    while value is not None and id(value) not in seen:
        seen.add(id(value))
        if isinstance(value, functools.partial):
            value = value.func
        if isinstance(value, types.FunctionType) and _own(value):
            yield value
        value = getattr(value, "__wrapped__", None)


def functions(names: dict[str, Any]) -> dict[types.FunctionType, str]:
    """Each Python function behind public names once, with the first name that leads to it."""
    found: dict[types.FunctionType, str] = {}
    for name, value in names.items():
        parts = {name: value}
        if inspect.isclass(value):
            parts = {f"{name}.{part}": one for part, one in methods(value).items()}
        for part, one in parts.items():
            for function in layers(one):
                found.setdefault(function, part)
    return found
