"""Tuples of named results, each with the name of its function."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T", bound=tuple[Any, ...])

RETURN_TYPES: dict[str, type] = {}
"""All that were made, by name; ``twofold.return_types`` has them as attributes."""


def return_type(name: str, base: type[T]) -> type[T]:
    """What one function returns: ``base``, a class of named tuples, under a name of its own, shown as PyTorch does."""
    members = {
        "__slots__": (),
        "__repr__": _shown,
        "__module__": "twofold.return_types",
        "__qualname__": name,
        "__doc__": base.__doc__,
    }
    made = type(name, (base,), members)
    RETURN_TYPES[name] = made
    return made


def _shown(self: Any) -> str:
    """One result a line, so that matrices stay aligned."""
    fields = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
    return f"{type(self).__module__}.{type(self).__qualname__}(\n{fields})"
