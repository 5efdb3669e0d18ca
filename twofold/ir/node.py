"""Immutable nodes of the primitive graph, interned: building the same node twice gives one object."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from twofold.dtypes import DType
from twofold.ir.types import Shape, TensorType

if TYPE_CHECKING:
    from twofold.ir.op import Op

Attributes = tuple[Any, ...]


class Node:
    """One operation applied to values: ``op``, ``attrs``, ``inputs`` and the ``type`` of its one result."""

    __slots__ = ("__weakref__", "attrs", "id", "inputs", "op", "type")

    op: Op
    attrs: Attributes
    inputs: tuple[Node, ...]
    type: TensorType
    id: int

    @property
    def dtype(self) -> DType:
        """Element type of the result."""
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        """Shape of the result."""
        return self.type.shape

    @property
    def ndim(self) -> int:
        """Number of axes of the result."""
        return len(self.type.shape)

    def __repr__(self) -> str:
        return f"%{self.id}:{self.type}={self.op.name}"


_INTERNED: weakref.WeakValueDictionary[tuple[Any, ...], Node] = weakref.WeakValueDictionary()
_IDS = itertools.count()


def _same_bits(value: Any) -> Any:
    """Attributes as a key that tells 0.0 from -0.0, 1 from 1.0 and True, and NaN from nothing."""
    if isinstance(value, tuple):
        return tuple(_same_bits(item) for item in value)
    if isinstance(value, float):
        return ("float", value.hex())
    return (type(value).__name__, value)


def make_node(op: Op, attrs: Attributes, inputs: Sequence[Node], type: TensorType) -> Node:
    """The interned node of ``op`` on ``inputs``; the inputs must already be in the form the op computes on."""
    key = (op.name, _same_bits(attrs), tuple(node.id for node in inputs), type)
    found = _INTERNED.get(key)
    if found is None:
        found = Node()
        found.op, found.attrs, found.inputs, found.type, found.id = op, attrs, tuple(inputs), type, next(_IDS)
        _INTERNED[key] = found
    return found


def topological(outputs: Iterable[Node]) -> list[Node]:
    """All nodes below ``outputs``, inputs first; iterative, so that depth does not matter.

    The order depends on the structure alone (depth-first from the first output), not on when nodes were built.
    """
    order: list[Node] = []
    seen: set[int] = set()
    for output in outputs:
        stack: list[tuple[Node, int]] = [(output, 0)]
        while stack:
            node, position = stack.pop()
            if position == 0:
                if node.id in seen:
                    continue
                seen.add(node.id)
            if position < len(node.inputs):
                stack.append((node, position + 1))
                if node.inputs[position].id not in seen:
                    stack.append((node.inputs[position], 0))
            else:
                order.append(node)
    return order
