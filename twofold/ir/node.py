"""Immutable nodes of the primitive graph, interned: building the same node twice gives one object.

A ``Node`` is one operation applied to values: ``op``, ``attrs``, ``inputs`` and the ``type`` of its one result.
``make_node(op, attrs, inputs, type)`` gives the one node with these fields; the inputs must already be in the
form that the operation computes on. ``topological(outputs)`` lists all nodes below, inputs first, in an order
that follows from the structure alone. All of them live in the core and walk without recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold._core import Node, make_node, topological

Attributes = tuple[Any, ...]

__all__ = ["Attributes", "Node", "make_node", "mapped", "rebuilt", "topological"]


def rebuilt(value: tuple[Any, ...], items: list[Any]) -> tuple[Any, ...]:
    """A tuple, or a named tuple, of the kind of ``value``."""
    return tuple(items) if type(value) is tuple else type(value)(*items)


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """Attributes with what ``function`` makes of each item, also inside of tuples."""
    if isinstance(value, tuple):
        return rebuilt(value, [mapped(item, function) for item in value])
    return function(value)
