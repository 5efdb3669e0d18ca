"""While this is entered, what modules record stands in scopes named by their paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.nn.module import Module
from twofold.runtime.scopes import scope_number
from twofold.tracebacks import end_at_user


class ModuleScopes:
    """Names modules for the length of a block: the class of the outermost, then the names of attributes.

    Calls of modules are as they were before and after.

    Args:
        on_call: Called with each module, its path and what it returned, when its call is over.
        each_call: Whether each call has a scope of its own: ``relu``, ``relu (2)``, ... of one that is called again.
    """

    def __init__(
        self, on_call: Callable[[Module, str, Any], None] | None = None, each_call: bool = False
    ) -> None:
        self._on_call = on_call
        self._each_call = each_call
        self._plain: Any = None
        self._names: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._kept: list[Module] = []  # so that an address stays that of one module
        self._open: list[
            tuple[str, str]
        ] = []  # paths of the modules that are being called, and the scopes of the calls
        self._calls: dict[str, int] = {}
        self._classes: dict[str, str] = {}

    def classes(self) -> dict[str, str]:
        """The classes of the modules that were met, by their paths, and by the scopes of their later calls."""
        return self._classes

    def __enter__(self) -> ModuleScopes:
        self._plain = Module.__call__
        scoped = self._scoped_by_call() if self._each_call else self._scoped()
        Module.__call__ = self._reporting(scoped) if self._on_call else scoped  # type: ignore[method-assign]
        return self

    def __exit__(self, *error: object) -> None:
        Module.__call__ = self._plain  # type: ignore[method-assign]

    def _scoped(self) -> Any:
        plain, set_scope, numbers, entered = self._plain, _core.set_scope, self._numbers, self._number

        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            number = numbers.get(id(module))
            before = set_scope(entered(module) if number is None else number)
            try:
                if module._hooked:
                    return plain(module, *args, **kwargs)
                return module.forward(*args, **kwargs)
            except Exception as error:  # the boundary of modules
                end_at_user(error)
                raise
            finally:
                set_scope(before)

        return call

    def _scoped_by_call(self) -> Any:
        scoped, numbers = self._scoped(), self._numbers

        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            first = numbers.get(id(module)) or self._number(module)
            path, name = self._names[id(module)], self._name_of_call(module)
            numbers[id(module)] = scope_number(name)
            self._open.append((path, name))
            try:
                return scoped(module, *args, **kwargs)
            finally:
                self._open.pop()
                numbers[id(module)] = first

        return call

    def _name_of_call(self, module: Module) -> str:
        """The scope of a call: the path of the module in the scope of the outer call, and the number of the call."""
        path = name = self._names[id(module)]
        outer_path, outer = self._open[-1] if self._open else ("", "")
        if path.startswith(f"{outer_path}."):
            name = outer + path[len(outer_path) :]
        count = self._calls[name] = self._calls.get(name, 0) + 1
        if count > 1:
            name = f"{name} ({count})"
            for inner, child in module.named_modules():
                self._classes[f"{name}.{inner}" if inner else name] = type(child).__name__
        return name

    def _reporting(self, inner: Any) -> Any:
        report = self._on_call
        assert report is not None

        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            if id(module) not in self._numbers:
                self._number(module)
            result = inner(module, *args, **kwargs)
            report(module, self._names[id(module)], result)
            return result

        return call

    def _number(self, module: Module) -> int:
        """The scope of a module that is met for the first time, and of all inside it."""
        root = self._names.get(id(module), type(module).__name__)
        for path, child in module.named_modules():
            if id(child) not in self._numbers:
                self._kept.append(child)
                self._names[id(child)] = f"{root}.{path}" if path else root
                self._classes[self._names[id(child)]] = type(child).__name__
                self._numbers[id(child)] = scope_number(self._names[id(child)])
        return self._numbers[id(module)]
