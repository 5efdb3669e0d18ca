"""Immutable nodes of the primitive graph, interned (hash-consed): equal nodes are one object.

A ``Node`` is an operation applied to values: ``op``, ``attrs``, ``inputs`` and the ``type`` of its one result.
``make_node(op, attrs, inputs, type)`` returns the node with these fields; the inputs must be promoted and broadcast.
``topological(outputs)`` lists all nodes below, inputs first, in an order that depends on the structure alone. All are
part of the core and traverse graphs without recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold._core import Node, make_node, topological

Attributes = tuple[Any, ...]

__all__ = ["Attributes", "Node", "make_node", "mapped", "rebuilt", "topological"]


def rebuilt(value: tuple[Any, ...], items: list[Any]) -> tuple[Any, ...]:
    """A tuple of ``items``, of the class of ``value`` if that is a named tuple."""
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """Attributes with ``function`` applied to each item, also in nested tuples."""
    if isinstance(value, tuple):
        return rebuilt(value, [mapped(item, function) for item in value])
    return function(value)
