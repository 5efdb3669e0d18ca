"""Analysis of calls that only move data: the result is a contiguous slice of an operand, or a concatenation.

Where calls run in batches these launch no kernel: their result is a range of memory (``csrc/batch_plan.cc``). Symbolic
sizes are equal here if they are the same expression.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from twofold.dtypes import int64
from twofold.ir.bind import is_constant, is_input
from twofold.ir.graph import Graph
from twofold.ir.node import Node
from twofold.ir.op import Assembly, ViewForm
from twofold.ir.sizes import identity
from twofold.ir.views import assembly, below, is_cast, view_form


class Movement(NamedTuple):
    """A data movement, as the core reads it.

    Attributes:
        operands: The operands that are moved.
        joins: Whether they are concatenated; else there is one, of which the result is a slice.
        number: The operand that is the index of the slice, a Python integer; -1 if there is none.
        offset: The start of the slice at index 0, in bytes.
        step: The stride of the index, in bytes.
    """

    operands: tuple[int, ...]
    joins: bool
    number: int
    offset: int
    step: int


def movement_in(graph: Graph) -> Movement | None:
    """The data movement of a call with this graph; None if it computes anything.

    >>> from twofold.dtypes import float32
    >>> from twofold.ir.op import REGISTRY
    >>> from twofold.ir.types import tensor_type
    >>> from twofold.transforms.reverse import closed_graph
    >>> movement_in(closed_graph(REGISTRY["reshape"], ((12,),), [tensor_type(float32, (4, 3))]))
    Movement(operands=(0,), joins=False, number=-1, offset=0, step=0)
    """
    (output,) = graph.outputs
    if assembly(output) is Assembly.CONCATENATE:
        (axis,) = output.attrs
        operands = [_same_bytes(node) for node in output.inputs]
        if not _same(prod(output.shape[:axis]), 1) or not all(map(is_input, operands)):
            return None
        return Movement(tuple(node.attrs[0] for node in operands), True, -1, 0, 0)
    return _slice(output)


def _same(a: int, b: int) -> bool:
    """Whether two numbers are equal whatever symbols stand for."""
    return identity(a) == identity(b)


def _same_bytes(node: Node) -> Node:
    """The value below ``node`` of which it is a view or cast with the same bytes in memory."""
    return below(node, _keeps_bytes)


def _keeps_bytes(node: Node) -> bool:
    form = view_form(node)
    dense = form is ViewForm.RESHAPE or (
        form is ViewForm.BROADCAST and _same(prod(node.shape), prod(node.inputs[0].shape))
    )
    return (dense or is_cast(node)) and node.inputs[0].dtype is node.dtype


def _slice(output: Node) -> Movement | None:
    node, offset, number, step = _same_bytes(output), 0, -1, 0
    while view_form(node) is ViewForm.SLICE:
        source, *starts = node.inputs
        _sizes, steps, axes = node.attrs
        last = max((axis for axis in axes if not _same(node.shape[axis], source.shape[axis])), default=0)
        if any(one != 1 for one in steps) or not _same(prod(node.shape[:last]), 1):
            return None
        for axis, start in zip(axes, map(_same_bytes, starts), strict=True):
            stride = prod(source.shape[axis + 1 :]) * source.dtype.itemsize
            if is_constant(start):
                offset += start.attrs[0] * stride
            elif is_input(start) and start.type.weak and start.dtype is int64 and number < 0:
                number, step = start.attrs[0], stride
            else:
                return None
        node = _same_bytes(source)
    return Movement((node.attrs[0],), False, number, offset, step) if is_input(node) else None
