"""Nested values, and those that are nested less deeply than others: ``tensorflow.python.util.nest``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from twofold.runtime.tracing import here
from twofold.static.nest import assert_same_structure as assert_same_structure
from twofold.static.nest import flatten as flatten
from twofold.static.nest import is_nested as is_nested
from twofold.static.nest import is_sequence as is_sequence
from twofold.static.nest import map_structure as map_structure
from twofold.static.nest import pack_sequence_as as pack_sequence_as


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """Raise unless a structure is nested like ``shallow_tree`` down to the values of that one.

    Raises:
        TypeError: Where one of them is nested and the other is not, or their types differ.
        ValueError: Where their lengths or keys differ.

    >>> assert_shallow_structure([0, 0], [1, [2, 3]])
    """
    if not is_nested(shallow_tree):
        return
    if not is_nested(input_tree):
        raise TypeError(f"nest: {input_tree!r} is no structure like {shallow_tree!r}, at {here()}.")
    if check_types and type(shallow_tree) is not type(input_tree):
        both = f"{type(shallow_tree).__name__} and {type(input_tree).__name__}"
        raise TypeError(f"nest: the types {both} of structures differ, at {here()}.")
    if len(shallow_tree) != len(input_tree):
        raise ValueError(
            f"nest: structures of lengths {len(shallow_tree)} and {len(input_tree)}, at {here()}."
        )
    if isinstance(shallow_tree, Mapping) and set(shallow_tree) != set(input_tree):
        raise ValueError(
            f"nest: structures of keys {list(shallow_tree)} and {list(input_tree)}, at {here()}."
        )
    for one, other in zip(_items(shallow_tree), _items(input_tree)):
        assert_shallow_structure(one, other, check_types)


def _items(tree: Any) -> list[Any]:
    return [tree[key] for key in sorted(tree)] if isinstance(tree, Mapping) else list(tree)


def flatten_up_to(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> list[Any]:
    """The parts of a structure in the positions of the values of ``shallow_tree``.

    >>> flatten_up_to([0, 0], [1, [2, 3]])
    [1, [2, 3]]
    """
    assert_shallow_structure(shallow_tree, input_tree, check_types)
    if not is_nested(shallow_tree):
        return [input_tree]
    pairs = zip(_items(shallow_tree), _items(input_tree))
    return [part for one, other in pairs for part in flatten_up_to(one, other, check_types)]


def map_structure_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, check_types: bool = True
) -> Any:
    """``func`` of the parts of structures in the positions of the values of ``shallow_tree``.

    >>> map_structure_up_to([0, 0], lambda part: part, [1, [2, 3]])
    [1, [2, 3]]
    """
    if not inputs:
        raise ValueError("Argument 'inputs' is empty. Cannot map over no sequences.")
    rows = zip(*[flatten_up_to(shallow_tree, one, check_types) for one in inputs])
    return pack_sequence_as(shallow_tree, [func(*row) for row in rows])


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """A dict whose keys and values are those inside of nested keys and values of the same structure.

    >>> flatten_dict_items({(4, 5): ("a", "b"), 6: "c"})
    {4: 'a', 5: 'b', 6: 'c'}
    """
    made: dict[Any, Any] = {}
    for key, value in dictionary.items():
        if is_nested(key):
            assert_same_structure(key, value, check_types=False)
        pairs = zip(flatten(key), flatten(value)) if is_nested(key) else [(key, value)]
        for one, other in pairs:
            if one in made:
                raise ValueError(f"Could not flatten dictionary: key {one} is not unique, at {here()}.")
            made[one] = other
    return made
