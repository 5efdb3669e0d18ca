"""What the entries share that one function of the kernel builder computes."""

from __future__ import annotations

from typing import Any

from twofold.ops.base import to_float


class MathFunction:
    """An element-wise function of floats: ``kernel`` is its name in ``compiler/lower/math``, the entry's by default.

    >>> class sine(MathFunction, kernel="sin"):
    ...     reference = None
    >>> sine.result_dtype is to_float
    True
    """

    result_dtype = to_float
    lower: Any

    def __init_subclass__(cls, kernel: str | None = None) -> None:
        name = kernel or cls.__name__
        cls.lower = lambda b, *operands: b.math(name, *operands)
