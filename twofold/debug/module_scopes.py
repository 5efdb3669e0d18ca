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
    """

    def __init__(self, on_call: Callable[[Module, str, Any], None] | None = None) -> None:
        self._on_call = on_call
        self._plain: Any = None
        self._names: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._kept: list[Module] = []  # so that an address stays that of one module

    def classes(self) -> dict[str, str]:
        """The classes of the modules that were met, by their paths."""
        return {self._names[id(module)]: type(module).__name__ for module in self._kept}

    def __enter__(self) -> ModuleScopes:
        self._plain = Module.__call__
        Module.__call__ = self._reporting() if self._on_call else self._scoped()  # type: ignore[method-assign]
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

    def _reporting(self) -> Any:
        inner, report = self._scoped(), self._on_call
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
                self._numbers[id(child)] = scope_number(self._names[id(child)])
        return self._numbers[id(module)]
