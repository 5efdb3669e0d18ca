"""The element-wise functions of the standard, over the operations of the same meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.frontend.install import PUBLIC

Tensor = _core.Tensor

_UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_invert",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "negative",
    "positive",
    "real",
    "reciprocal",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]
_BINARY = [
    "add",
    "atan2",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "less",
    "less_equal",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "pow",
    "remainder",
    "subtract",
]


def _unary(name: str) -> Callable[[Tensor], Tensor]:
    operation = PUBLIC[name]

    def function(x: Tensor, /) -> Tensor:
        return operation(x)

    return _named(function, name, operation)


def _binary(name: str) -> Callable[[Any, Any], Tensor]:
    operation = PUBLIC[name]

    def function(x1: Any, x2: Any, /) -> Tensor:
        return operation(x1, x2)

    return _named(function, name, operation)


def _named(function: Callable[..., Any], name: str, operation: Any) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = operation.__doc__
    return function


ELEMENTWISE = {name: _unary(name) for name in _UNARY} | {name: _binary(name) for name in _BINARY}
"""The functions whose operands are all positional, by name."""


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """``x`` limited to [``min``, ``max``], each a number, an array or None, in the dtype of ``x``."""
    if min is None and max is None:
        return PUBLIC["positive"](x)
    return PUBLIC["clamp"](x, min, max).to(x.dtype)
