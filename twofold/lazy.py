"""What is made or imported when a program first asks for it: values of tables, and names of packages (PEP 562).

Which module has what is written down in ``twofold.index`` and ``twofold.names``, derived by ``tools/index.py``.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from importlib import import_module
from threading import get_ident
from types import ModuleType
from typing import Any, TypeVar

from twofold.names import NAMES
from twofold.tracebacks import ending_here

T = TypeVar("T")
_MISSING: Any = object()


class LazyDict(dict[str, T]):
    """A dictionary that has ``names`` from the start; ``make(name)`` gives a value when it is first looked up.

    >>> lengths = LazyDict(["one", "three"], len)
    >>> dict.__len__(lengths), "three" in lengths, lengths["three"], list(lengths)
    (0, True, 5, ['one', 'three'])
    """

    def __init__(self, names: Iterable[str], make: Callable[[str], T]) -> None:
        super().__init__()
        self._names = dict.fromkeys(names)
        self._make = make

    def __missing__(self, name: str) -> T:
        if name not in self._names:
            raise KeyError(name)
        return self.setdefault(name, self._make(name))

    def __contains__(self, name: object) -> bool:
        return name in self._names or super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of ``name``, or ``default`` where there is none."""
        if name not in self:
            return default
        return self[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._names
        yield from [name for name in super().__iter__() if name not in self._names]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def keys(self) -> Any:
        """All names, those whose values are not made yet included."""
        return KeysView(self)

    def values(self) -> Any:
        """All values, in the order of the names."""
        return ValuesView(self)

    def items(self) -> Any:
        """All names with their values."""
        return ItemsView(self)


class Registry(LazyDict[T]):
    """What modules enter when they are imported; a look-up imports the module that enters the name.

    A value is handed out when its module is complete, so that no thread sees half of what it stands on.
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        super().__init__(modules, self._import)
        self._modules = modules
        self._entered: dict[str, T] = {}

    def enter(self, name: str, value: T) -> None:
        """Enter a value; raises ValueError for a name whose value was handed out before.

        One that was not may be entered again: the import of its module was interrupted.
        """
        if dict.__contains__(self, name):
            raise ValueError(f"{name!r} is entered twice")
        self._entered[name] = value
        if name not in self._modules:
            self[name] = value

    def is_importable(self, name: str) -> bool:
        """Whether every process finds the name, by an import."""
        return name in self._modules

    def _import(self, name: str) -> T:
        module = import_module(self._modules[name])
        if getattr(module.__spec__, "_initializing", False):
            raise ImportError(f"{name!r} is looked up while {module.__name__} is being imported")
        if name not in self._entered:
            raise KeyError(f"{name!r} is not in {module.__name__}: run make generated")
        return self._entered[name]


def by_name(table: Mapping[str, str]) -> dict[str, str]:
    """What each name belongs to, from the names that belong to each.

    >>> by_name({"a": "x y", "b": "z"})
    {'x': 'a', 'y': 'a', 'z': 'b'}
    """
    return {name: module for module, names in table.items() for name in names.split()}


def late_names(package: str) -> dict[str, tuple[str, str]]:
    """The module and the name there of each name that ``package`` imports when it is first used."""
    found = {}
    for module, names in NAMES[package].items():
        for entry in names.split():
            name, _, there = entry.partition("=")
            found[name] = (module, there or name)
    return found


def attach(
    package: str, prepare: Callable[[str, Any], Any] = lambda name, value: value
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package some of whose names are imported when they are first used.

    They are the names that the package imports for type checkers alone, under ``if TYPE_CHECKING``. ``prepare`` may
    change a value before the package keeps it.
    """
    module = sys.modules[package]
    space, late = vars(module), late_names(package)

    class Package(ModuleType):
        """A package whose submodules are prepared, too, where the import system enters them."""

        def __setattr__(self, name: str, value: Any) -> None:
            entered = isinstance(value, ModuleType) and late.get(name) == (package, name)
            super().__setattr__(name, prepare(name, value) if entered else value)

    module.__class__ = Package

    def find(name: str) -> Any:
        if name == "__all__":
            return [one for one in listed() if not one.startswith("_")]
        if name not in late:
            error = AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
            raise error.with_traceback(ending_here())
        source, there = late[name]
        if source == package:
            return prepare(name, import_module(f"{package}.{there}"))
        value = getattr(import_module(source), there, _MISSING)
        if value is _MISSING:  # a module of another package that nothing has imported yet
            value = import_module(f"{source}.{there}")
        return space.setdefault(name, prepare(name, value))

    def listed() -> list[str]:
        return sorted({*space, *late})

    return find, listed


def submodules(package: str, contents: Mapping[str, Mapping[str, Any]]) -> None:
    """Enter modules of ``package`` that only give other names to what it has: for each its name and its contents.

    Programs import layers and distributions from the files that PyTorch keeps them in. A function that the package
    has under the name of a file stays its attribute.
    """
    space = vars(sys.modules[package])
    for name, members in contents.items():
        made = ModuleType(
            f"{package}.{name}", f"Names of ``{package}`` as PyTorch's file ``{name}.py`` has them."
        )
        vars(made).update(members)
        sys.modules[made.__name__] = made
        if not callable(space.get(name)):
            space[name] = made


def other_files(package: str, table: Mapping[str, str]) -> None:
    """``submodules`` by the names that the package has, looked up when they are used: a text of names for each file.

    ``name=twofold.hub:other`` is what another module has, which may itself need the package.
    """
    space = vars(sys.modules[package])

    def finder(module: str, origins: Mapping[str, str]) -> Callable[[str], Any]:
        def find(name: str) -> Any:
            if name not in origins:
                raise AttributeError(f"module {package}.{module} has no attribute {name!r}", name=name)
            holder, _, own = origins[name].partition(":")
            return getattr(import_module(holder), own) if holder else space[name]

        return find

    contents = {}
    for module, names in table.items():
        origins = {name: origin for name, _, origin in (entry.partition("=") for entry in names.split())}
        contents[module] = {"__getattr__": finder(module, origins), "__all__": list(origins)}
    submodules(package, contents)


def _drop_unfinished_imports() -> None:
    """In a forked child: forget modules that threads of the parent were importing, whose locks stay locked here."""
    locks = getattr(importlib._bootstrap, "_module_locks", {})
    for name, reference in list(locks.items()):
        owner = getattr(reference(), "owner", None)
        if owner not in (None, get_ident()):
            del locks[name]
            sys.modules.pop(name, None)


os.register_at_fork(after_in_child=_drop_unfinished_imports)
