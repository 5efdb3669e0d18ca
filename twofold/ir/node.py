"""Immutable nodes of the primitive graph, interned: building the same node twice gives one object.

A ``Node`` is one operation applied to values: ``op``, ``attrs``, ``inputs`` and the ``type`` of its one result.
``make_node(op, attrs, inputs, type)`` gives the one node with these fields; the inputs must already be in the
form that the operation computes on. ``topological(outputs)`` lists all nodes below, inputs first, in an order
that follows from the structure alone. All of them live in the core and walk without recursion.
"""

from __future__ import annotations

from typing import Any

from twofold._core import Node, make_node, topological

Attributes = tuple[Any, ...]

__all__ = ["Attributes", "Node", "make_node", "topological"]
