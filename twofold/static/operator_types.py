"""TensorFlow's types of the operations that Python's operators declare."""

from __future__ import annotations

from typing import Any

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
