"""Application of operations to nodes or tensors, and the two nodes without operands: inputs and constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from twofold.dtypes import DType, bool_, complex128, float64, int64
from twofold.ir import op as operations
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.sizes import Symbol, real
from twofold.ir.types import TensorType, tensor_type


def constant(value: bool | int | float | complex, dtype: DType | None = None) -> Node:
    """A scalar constant; without ``dtype`` it is weakly typed, as in JAX."""
    weak = dtype is None
    if dtype is None:
        kind = int if isinstance(value, Symbol) and not value.is_real else type(value)
        dtype = (
            bool_ if kind is bool else int64 if kind is int else complex128 if kind is complex else float64
        )
    python = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[dtype.kind]
    if isinstance(value, Symbol) and dtype.kind in "iuf":
        typed = real(value) if dtype.kind == "f" else value
    else:
        typed = python(value)
    return make_node(operations.REGISTRY["constant"], (typed,), (), tensor_type(dtype, (), weak))


def input_node(index: int, type: TensorType) -> Node:
    """The ``index``-th input of a closed graph."""
    return make_node(operations.REGISTRY["input"], (index,), (), type)


def is_constant(node: Node) -> bool:
    """Whether a node is a constant, see ``constant``."""
    return isinstance(node.op, operations.ConstantOp)


def is_positive_zero(node: Node) -> bool:
    """Whether a node is the constant 0 or 0.0, which adds nothing; -0.0 is another: added to -0.0 it keeps the sign."""
    if not is_constant(node) or node.attrs[0]:
        return False
    value = complex(node.attrs[0])
    return math.copysign(1.0, value.real) > 0 and math.copysign(1.0, value.imag) > 0


def is_input(node: Node) -> bool:
    """Whether a node is an input of a closed graph, see ``input_node``."""
    return isinstance(node.op, operations.InputOp)


def bind(op: operations.Op, inputs: Sequence[Any], attrs: Attributes = ()) -> Any:
    """Apply an operation.

    Args:
        op: The operation.
        inputs: Its operands, nodes or tensors.
        attrs: Its attributes.

    Returns:
        A node if an operand is one, else what the recorder returns: a tensor.
    """
    for value in inputs:
        if isinstance(value, Node):
            return op.build(attrs, [item if isinstance(item, Node) else constant(item) for item in inputs])
    return operations._recorder[0](op, attrs, inputs)
