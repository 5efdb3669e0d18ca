"""Long operations as functions that kernels call, so that each is compiled once, not in every kernel anew.

Such a function takes vectors and returns one. Its name follows from its code, and with it the key of a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from twofold.compiler.lower.builder import Builder
from twofold.compiler.lower.emitter import named_by_code
from twofold.compiler.lower.values import LANES, Val
from twofold.dtypes import DType, float32, float64
from twofold.ir.op import ElementwiseOp

LONG = 100
"""So many instructions take much longer than a call, and are faster where no loop around them needs registers."""

_DTYPES = (float32, float64)


@lru_cache(256)
def _function(
    op: ElementwiseOp, attrs: Any, dtype: DType, operands: tuple[DType, ...]
) -> tuple[str, str, DType] | None:
    """The name, the module and the dtype of the result of an operation's function; None where it has none."""
    b = Builder("shared")
    arguments = [Val(f"%x{k}", operand, LANES) for k, operand in enumerate(operands)]
    result = op.lower(b, attrs, dtype, *arguments)
    if not isinstance(result, Val) or result.dtype not in _DTYPES or result.lanes != LANES:
        return None
    assert result.dtype is not None
    return *named_by_code(b.finish_function(arguments, result)), result.dtype


def called(b: Builder, op: ElementwiseOp, attrs: Any, dtype: DType, arguments: Sequence[Val]) -> Val | None:
    """The result of a call of a long operation's function; None where it has none."""
    if op.keeps_nan or not all(one.dtype in _DTYPES and one.lanes in (1, LANES) for one in arguments):
        return None
    found = _function(op, attrs, dtype, tuple([one.dtype for one in arguments if one.dtype is not None]))
    if found is None:
        return None
    name, module, made = found
    result = b.call(name, module, [b.splat(one) for one in arguments], made)
    return result if any(one.lanes == LANES for one in arguments) else b.extract(result, 0)
