"""Pytrees: nested tuples, lists, dicts and named tuples of values, flattened to lists and rebuilt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Leaf:
    """The position of a value in a tree definition."""

    def __repr__(self) -> str:
        return "*"


_LEAF = Leaf()


def flatten(value: Any, name: str) -> tuple[list[Any], list[str], Any]:
    """Flatten a pytree: its leaves, the path of each for messages, and the tree definition.

    >>> flatten({"h": 1, "c": (2, 3)}, "init")
    ([1, 2, 3], ["init['h']", "init['c'][0]", "init['c'][1]"], {'h': *, 'c': (*, *)})
    """
    values: list[Any] = []
    names: list[str] = []
    return values, names, _walk(value, name, values, names)


def _walk(value: Any, name: str, values: list[Any], names: list[str]) -> Any:
    if isinstance(value, dict):
        return {key: _walk(item, f"{name}[{key!r}]", values, names) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = zip(value._fields, value)
        return type(value)(*[_walk(item, f"{name}.{field}", values, names) for field, item in fields])
    if isinstance(value, (tuple, list)):
        return type(value)(_walk(item, f"{name}[{k}]", values, names) for k, item in enumerate(value))
    values.append(value)
    names.append(name)
    return _LEAF


def unflatten(structure: Any, values: Sequence[Any]) -> Any:
    """Rebuild a pytree from a tree definition and its leaves.

    >>> unflatten(flatten([1, (2,)], "x")[2], "ab")
    ['a', ('b',)]
    """
    left = iter(values)
    return _build(structure, left)


def _build(structure: Any, left: Any) -> Any:
    if structure is _LEAF:
        return next(left)
    if isinstance(structure, dict):
        return {key: _build(item, left) for key, item in structure.items()}
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*[_build(item, left) for item in structure])
    return type(structure)(_build(item, left) for item in structure)
