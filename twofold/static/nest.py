"""Nested tuples, lists and dicts of values: ``tf.nest``. Dicts are in the order of their keys, as in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twofold.runtime.pytree import Leaf
from twofold.runtime.pytree import flatten as _taken_apart
from twofold.runtime.pytree import unflatten as _put_together
from twofold.runtime.tracing import here


def is_nested(seq: Any) -> bool:
    """Whether a value is a tuple, list or dict.

    >>> import twofold.static as tf
    >>> tf.nest.is_nested((1, 2)), tf.nest.is_nested("ab")
    (True, False)
    """
    return isinstance(seq, (list, tuple, Mapping))


is_sequence = is_nested


def _sorted(value: Any) -> Any:
    """``value`` with its dicts in the order of their keys."""
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_sorted, value))
    return type(value)(map(_sorted, value)) if isinstance(value, (tuple, list)) else value


def flatten(structure: Any) -> list[Any]:
    """The values inside.

    >>> import twofold.static as tf
    >>> tf.nest.flatten({"b": (1, 2), "a": 3})
    [3, 1, 2]
    """
    return _taken_apart(_sorted(structure), "structure")[0]


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """A structure like another one with these values; raises ValueError for another number of them.

    >>> import twofold.static as tf
    >>> tf.nest.pack_sequence_as([0, (0, 0)], "abc")
    ['a', ('b', 'c')]
    """
    values, _, kind = _taken_apart(_sorted(structure), "structure")
    if len(values) != len(flat_sequence):
        what = f"{len(flat_sequence)} values for a structure of {len(values)}"
        raise ValueError(f"pack_sequence_as: {what}, at {here()}. Give one for each.")
    return _put_together(kind, list(flat_sequence))


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raise ValueError unless two structures are alike, TypeError for types that differ (on demand).

    >>> import twofold.static as tf
    >>> tf.nest.assert_same_structure([1, (2,)], [3, (4,)])
    """
    one, two = (_taken_apart(_sorted(nest), "nest")[2] for nest in (nest1, nest2))
    if _shown(one, check_types) != _shown(two, check_types):
        error = TypeError if _shown(one, False) == _shown(two, False) else ValueError
        raise error(f"assert_same_structure: the structures {nest1} and {nest2} differ, at {here()}.")


def _shown(kind: Any, typed: bool) -> Any:
    """A structure as what compares by its form."""
    if isinstance(kind, Leaf):
        return "*"
    if isinstance(kind, Mapping):
        return {key: _shown(item, typed) for key, item in kind.items()}
    items = [_shown(item, typed) for item in kind] if isinstance(kind, (tuple, list)) else kind
    return (type(kind), items) if typed else items


def map_structure(func: Callable[..., Any], *structure: Any, check_types: bool = True) -> Any:
    """``func`` of the values in the same positions of structures that are alike.

    >>> import twofold.static as tf
    >>> tf.nest.map_structure(lambda a, b: a + b, (1, [2]), (3, [4]))
    (4, [6])
    """
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    return pack_sequence_as(structure[0], [func(*row) for row in zip(*map(flatten, structure), strict=True)])
