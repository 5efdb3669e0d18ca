"""``bind``: apply an operation to whatever it is given — nodes in rules, tensors in programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.dtypes import DType, bool_, float64, int64
from twofold.ir import op as operations
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType, tensor_type


def constant(value: bool | int | float, dtype: DType | None = None) -> Node:
    """A 0-d constant node; without ``dtype`` it is weak and takes its partner's dtype."""
    weak = dtype is None
    if dtype is None:
        dtype = bool_ if isinstance(value, bool) else int64 if isinstance(value, int) else float64
    typed: bool | int | float = (
        bool(value) if dtype.kind == "b" else int(value) if dtype.kind in "iu" else float(value)
    )
    return make_node(operations.REGISTRY["constant"], (typed,), (), tensor_type(dtype, (), weak))


def input_node(index: int, type: TensorType) -> Node:
    """The ``index``-th input of a closed graph."""
    return make_node(operations.REGISTRY["input"], (index,), (), type)


def bind(op: operations.Op, inputs: Sequence[Any], attrs: Attributes = ()) -> Any:
    """Apply ``op``; the result is a Node if an input is one, else whatever the recorder makes of tensors."""
    for value in inputs:
        if isinstance(value, Node):
            return op.build(attrs, [item if isinstance(item, Node) else constant(item) for item in inputs])
    return operations._recorder[0](op, attrs, inputs)
