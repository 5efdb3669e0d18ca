"""What Python's operators declare: operations of TensorFlow's types; on strings, functions of each string."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold.static.elements import Slot
from twofold.static.string_table import decode

_TYPES = {
    "abs": "Abs",
    "add": "AddV2",
    "bitwise_and": "BitwiseAnd",
    "bitwise_invert": "Invert",
    "bitwise_left_shift": "LeftShift",
    "bitwise_or": "BitwiseOr",
    "bitwise_right_shift": "RightShift",
    "bitwise_xor": "BitwiseXor",
    "divide": "RealDiv",
    "equal": "Equal",
    "floor_divide": "FloorDiv",
    "greater": "Greater",
    "greater_equal": "GreaterEqual",
    "less": "Less",
    "less_equal": "LessEqual",
    "matmul": "MatMul",
    "multiply": "Mul",
    "negative": "Neg",
    "not_equal": "NotEqual",
    "positive": "Identity",
    "pow": "Pow",
    "remainder": "FloorMod",
    "subtract": "Sub",
}
_OF_TRUTH = {
    "bitwise_and": "LogicalAnd",
    "bitwise_invert": "LogicalNot",
    "bitwise_or": "LogicalOr",
    "bitwise_xor": "NotEqual",
}


def operator_type(name: str, result: Any) -> str:
    """The type of the operation ``name`` of define-by-run with a ``result``."""
    type_ = result.type_
    if name == "matmul" and len(type_.shape) > 2:
        return "BatchMatMulV2"
    if type_.dtype.kind == "b" and name in _OF_TRUTH:
        return _OF_TRUTH[name]
    return _TYPES[name]


def on_strings(function: Callable[..., Any], slots: Sequence[Any]) -> Callable[..., Any]:
    """A function of the strings of the slots, element by element; operands beside them are constant strings."""
    each = numpy.frompyfunc(function, len(slots), 1)

    def mapped(*values: Any) -> Any:
        return each(*[values[s.index] if isinstance(s, Slot) else decode(s.detach().numpy()) for s in slots])

    return mapped
