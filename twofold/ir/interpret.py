"""Interpreter of graphs on NumPy arrays, by the reference of each operation: the oracle of tests.

Arrays are in storage form: bfloat16 values are uint16 with the upper half of the bits of a float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

from twofold.dtypes import DType, bfloat16
from twofold.ir.graph import Graph, rebuild
from twofold.ir.node import Node
from twofold.ir.op import ControlFlowOp, GetOutputOp, HostOp, InputOp, SourceOp

Array = Any


def widen(array: Array, dtype: DType) -> Array:
    """Convert an array from storage form: floats to float64, complex numbers to complex128.

    >>> widen(numpy.array([0x3F80], "uint16"), bfloat16)
    array([1.])
    """
    if dtype is bfloat16:
        return (numpy.asarray(array).astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)
    wide = {"f": numpy.float64, "c": numpy.complex128}.get(dtype.kind)
    return numpy.asarray(array) if wide is None else numpy.asarray(array).astype(wide)


def narrow(values: Array, dtype: DType) -> Array:
    """Round values to ``dtype`` in storage form, ties to even.

    >>> narrow(numpy.array([1.0, 3.0]), bfloat16)
    array([16256, 16448], dtype=uint16)
    """
    with numpy.errstate(all="ignore"):
        if dtype is not bfloat16:
            return numpy.asarray(values).astype(dtype.numpy)
        wide = numpy.asarray(values, numpy.float64)
        near = wide.astype(numpy.float32)
        bits = near.view(numpy.uint32)
        # round to odd first, so that double rounding is correct (Boldo and Melquiond, 2008)
        above = abs(near.astype(numpy.float64)) > abs(wide)
        inexact = (near.astype(numpy.float64) != wide) & ~numpy.isnan(wide)
        odd = numpy.where(inexact, (bits - above) | numpy.uint32(1), bits).astype(numpy.uint32)
        rounded = (odd + 0x7FFF + ((odd >> 16) & 1)) >> 16
        quiet = (bits >> 16) | 0x40
        return numpy.where(numpy.isnan(wide), quiet, rounded).astype(numpy.uint16)


Observer = Callable[[Node, "tuple[Array, ...]", Array], None]
_observers: list[Observer] = []


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Inside, ``observer(node, operands, value)`` is called for each node evaluated, those in loop bodies too."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.pop()


def evaluate(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
    """Evaluate a graph. Floats are computed in float64 and rounded to the dtype of their node, after every node.

    Args:
        graph: The graph.
        arrays: Its inputs, in storage form.

    Returns:
        Its outputs, in storage form.

    Raises:
        Exception: The reference of a node fails; the error has the node and its operands as ``evaluating``.
    """

    def make(node: Node, operands: tuple[Array, ...]) -> Array:
        try:
            stored = _value(node, operands, arrays)
        except Exception as error:
            vars(error).setdefault("evaluating", (node, operands))
            raise
        if not isinstance(node.op, ControlFlowOp) and stored.shape != node.shape:
            raise AssertionError(f"{node.op.name} {node.attrs}: {stored.shape}, declared {node.type}")
        for observer in _observers:
            observer(node, operands, stored)
        return stored

    with numpy.errstate(all="ignore"):
        return list(rebuild(graph.outputs, make))


def _value(node: Node, operands: Sequence[Array], arrays: Sequence[Array]) -> Array:
    op = node.op
    if isinstance(op, InputOp):
        return numpy.asarray(arrays[node.attrs[0]])
    if isinstance(op, SourceOp):
        return narrow(op.materialize(node.attrs, node.type), node.dtype)
    if isinstance(op, ControlFlowOp):
        return op.reference(node.attrs, *operands)
    if isinstance(op, GetOutputOp):
        return operands[0][node.attrs[0]]
    rule = op.host if isinstance(op, HostOp) else op.reference
    if op.exact_reference:
        return numpy.asarray(rule(node.attrs, *operands))
    wide = [widen(array, value.dtype) for array, value in zip(operands, node.inputs)]
    return narrow(rule(node.attrs, *wide), node.dtype)
