"""Classes and functions that a program declares safe for ``load`` to call."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import TracebackType
from typing import Any

from twofold import _core
from twofold.tracebacks import is_boundary

_Operation: Any = type(_core.operation_callable(None, -1, len))
_BLOCKED = ("sys", "os", "posix", "nt")
"""Modules of which nothing is called, as in PyTorch, whatever was declared."""

_added: list[Any] = []


def _named(one: Any) -> tuple[str, Any]:
    """The full name that a file calls ``one`` by, and ``one``."""
    if isinstance(one, tuple):
        if len(one) != 2:
            raise ValueError(f"add_safe_globals: a tuple of {len(one)}. Give an object and its full name.")
        if type(one[1]) is not str:
            raise TypeError(
                f"add_safe_globals: the full name of an object is a string, not {type(one[1]).__name__}"
            )
        return one[1], one[0]
    return ".".join(name_of(one)), one


def name_of(one: Any) -> tuple[str, str]:
    """Module and name of a class or function, as files have them."""
    if not isinstance(one, _Operation) or is_boundary(one):
        return one.__module__, one.__qualname__
    # a public operation belongs to no module; it is found where programs find it
    name: str = one.__name__
    for module in ("twofold.nn.functional", "twofold"):
        if getattr(import_module(module), name, None) is one:
            return module, name
    raise TypeError(f"{name} is no public function, and has no name in a file")


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Declare classes and functions that ``load`` may call with arguments of a file.

    Args:
        safe_globals: The objects, or tuples of an object and the full name that files call it by.

    >>> import twofold as torch
    >>> import io
    >>> class Settings:
    ...     pass
    >>> torch.serialization.add_safe_globals([Settings])
    >>> Settings in torch.serialization.get_safe_globals()
    True
    >>> torch.serialization.clear_safe_globals()
    """
    for one in safe_globals:
        _named(one)
        if one not in _added:
            _added.append(one)


def get_safe_globals() -> list[Any]:
    """What was declared safe.

    >>> import twofold as torch
    >>> torch.serialization.get_safe_globals()
    []
    """
    return list(_added)


def clear_safe_globals() -> None:
    """Declare nothing safe any longer.

    >>> import twofold as torch
    >>> torch.serialization.add_safe_globals([print])
    >>> torch.serialization.clear_safe_globals()
    >>> torch.serialization.get_safe_globals()
    []
    """
    _added.clear()


class safe_globals:
    """A ``with`` block in which classes and functions are declared safe.

    >>> import twofold as torch
    >>> class Settings:
    ...     pass
    >>> with torch.serialization.safe_globals([Settings]):
    ...     Settings in torch.serialization.get_safe_globals()
    True
    >>> torch.serialization.get_safe_globals()
    []
    """

    def __init__(self, safe_globals: Sequence[Any]) -> None:
        self._given = list(safe_globals)

    def __enter__(self) -> None:
        add_safe_globals(self._given)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _added[:] = [one for one in _added if one not in self._given]


def safe_by_name() -> dict[str, Any]:
    """What was declared safe, by the full name in a file; nothing of the modules that reach the system."""
    found = dict(_named(one) for one in _added)
    return {name: one for name, one in found.items() if name.split(".")[0] not in _BLOCKED}
