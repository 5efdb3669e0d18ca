"""The dtype that operands meet in, and how the dtype of a result follows from it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, TypeVar

import numpy

from twofold.dtypes import (
    DType,
    bfloat16,
    bool_,
    default_float,
    finfo,
    float16,
    float64,
    iinfo,
    int64,
    promote,
    promote_scalar,
)
from twofold.errors import ArgumentError, DTypeError, UndefinedGradientError
from twofold.ir.types import TensorType

_SCALAR_TYPES = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def common_dtype(types: Sequence[TensorType]) -> tuple[DType, bool]:
    """The dtype that operands of ``types`` meet in, and whether all are weak (Python scalars)."""
    common: DType | None = None
    for type in types:
        if not type.weak:
            common = type.dtype if common is None else _promote(common, type.dtype)
    weak = common is None
    if common is None:
        order = {"b": 0, "i": 1, "f": 2, "c": 3}
        kind = max((type.dtype.kind for type in types), key=order.__getitem__)
        if kind == "c":
            return default_float().complex, False
        return {"b": bool_, "i": int64, "f": float64}[kind], weak
    for type in types:
        if type.weak:
            common = _promote_scalar(common, _SCALAR_TYPES[type.dtype.kind])
    return common, weak


def common_beside_scalars(types: Sequence[TensorType]) -> DType:
    """The dtype that PyTorch computes in: tensors without axes count by their kind alone beside those with axes."""
    wide = [type for type in types if not type.weak and type.shape]
    scalars = [type for type in types if not type.weak and not type.shape]
    if not wide or not scalars:
        return common_dtype(types)[0]
    common, scalar = common_dtype(wide)[0], common_dtype(scalars)[0]
    if common.kind == "f" and scalar.kind == "c":
        common = common.complex
    elif common is bool_ or (common.kind in "iu" and scalar.kind in "fc"):
        common = _promote(common, scalar)
    for type in types:
        if type.weak:
            common = _promote_scalar(common, _SCALAR_TYPES[type.dtype.kind])
    return common


def _promote_scalar(dtype: DType, scalar: type) -> DType:
    try:
        return promote_scalar(dtype, scalar)
    except TypeError:
        what = f"{dtype.name} and a Python {scalar.__name__} have no common dtype"
        raise DTypeError(what, "Convert one of them first.") from None


def need_one_dtype(**operands: TensorType | None) -> None:
    """Raise DTypeError unless all operands that are not weak have one dtype: products do not promote."""
    given = [(name, type.dtype) for name, type in operands.items() if type is not None and not type.weak]
    for name, dtype in given[1:]:
        first, wanted = given[0]
        if dtype is not wanted:
            better = wanted if wanted.is_differentiable and not dtype.is_differentiable else dtype
            raise DTypeError(
                f"expected {first} and {name} to have the same dtype, but got {wanted.name} and {dtype.name}",
                f"Convert one of them, such as with .to({better.name}).",
            )


@functools.cache
def limits(dtype: DType) -> tuple[Any, Any]:
    """The least and the largest number of a numeric dtype; of a complex one those of its parts."""
    found: Any = iinfo(dtype) if dtype.kind in "iu" else finfo(dtype)
    return found.min, found.max


def need_fitting(value: Any, dtype: DType) -> None:
    """Raise ArgumentError for a number that a dtype cannot hold; negative integers wrap round in unsigned dtypes.

    Floating dtypes hold what is not finite. Anything but a number passes.
    """
    if isinstance(value, (numpy.integer, numpy.floating)):
        value = value.item()
    if isinstance(value, complex) and dtype.kind not in "cb":
        raise ArgumentError(f"value cannot be converted to type {dtype.name}", "Give a real number.")
    if not isinstance(value, (int, float, complex)) or dtype.kind not in "iufc":
        return
    low, high = limits(dtype)
    if dtype.kind == "u" and isinstance(value, int):
        low = -high
    for part in (value.real, value.imag):
        if not low <= part <= high and (dtype.kind in "iu" or not isinstance(part, float) or isfinite(part)):
            raise ArgumentError(
                f"value cannot be converted to type {dtype.name} without overflow: {value}",
                "Use a wider dtype.",
            )


def need_fitting_tensor(value: Any, dtype: DType) -> None:
    """``need_fitting`` of a number that becomes a tensor first, which may be infinite in the half types."""
    if dtype not in (float16, bfloat16):
        need_fitting(value, dtype)


def need_beside(number: Any, *operands: Any, need: Callable[[Any, DType], None] = need_fitting) -> None:
    """Raise ArgumentError for a Python number that the dtype which it meets the operands in cannot hold."""
    if isinstance(number, (int, float)) and not -127 <= number <= 127:  # every dtype holds less
        dtype = _dtype_beside(operands)
        if dtype is not None:
            need(number, _promote_scalar(dtype, type(number)))


def need_constant(function: str, **given: Any) -> None:
    """Raise UndefinedGradientError for what would get no gradient, but is a tensor that requires one."""
    for name, value in given.items():
        if getattr(value, "requires_grad", False):
            raise UndefinedGradientError(
                f"{function} has no gradient with respect to {name}", f"Use {name}.detach()."
            )


def factor_beside(number: Any, *operands: Any) -> Any:
    """A Python number as a factor of the operands: beside integers an integer, its fraction cut off."""
    dtype = _dtype_beside(operands)
    if dtype is None or not isinstance(number, (int, float)):
        return number
    need_fitting(number, dtype.compute)
    return int(number) if dtype.kind in "iu" else number


def need_whole_alpha(alpha: Any, *operands: Any) -> None:
    """Raise ArgumentError for an ``alpha`` that is no number of the operands' dtype."""
    dtype = _dtype_beside(operands)
    if dtype is None:
        return
    if isinstance(alpha, bool) and dtype is not bool_:
        raise ArgumentError("Boolean alpha only supported for Boolean results", "Use a number.")
    if isinstance(alpha, float) and dtype.kind in "biu":
        raise ArgumentError(
            f"For integral input tensors, argument alpha must not be a floating point number: {alpha}",
            "Use a whole number, or convert the operands with .float().",
        )
    need_fitting(alpha, dtype)


def _dtype_beside(operands: Sequence[Any]) -> DType | None:
    """The common dtype of tensors; None where a Python float takes part, or no tensor does."""
    found: DType | None = None
    for operand in operands:
        dtype = getattr(operand, "dtype", None)
        if isinstance(dtype, DType):
            found = dtype if found is None else _promote(found, dtype)
        elif isinstance(operand, (float, complex)):
            return None
    return found


def _promote(a: DType, b: DType) -> DType:
    try:
        return promote(a, b)
    except TypeError:
        what = f"{a.name} and {b.name} have no common dtype"
        raise DTypeError(what, "Cast one of them first with .to().") from None


# Result dtypes: from the common dtype of the operands, the dtype to compute in and the dtype of the result


def same(common: DType) -> tuple[DType, DType]:
    """Compute in the common dtype."""
    return common, common


def to_float(common: DType) -> tuple[DType, DType]:
    """Integers and bools become float32 (see ``default_float``)."""
    dtype = common if common.is_differentiable else default_float()
    return dtype, dtype


def to_number(common: DType) -> tuple[DType, DType]:
    """Bools become int64."""
    dtype = int64 if common is bool_ else common
    return dtype, dtype


def to_bool(common: DType) -> tuple[DType, DType]:
    """A comparison: compute in the common dtype, the result is bool."""
    return common, bool_


def logical(common: DType) -> tuple[DType, DType]:
    """Operands become bool (non-zero is true), and so is the result."""
    return bool_, bool_


F = TypeVar("F", bound=Callable[..., Any])


def autocast(policy: str) -> Callable[[F], F]:
    """Give a function that is no entry what entries have as ``autocast``; "own": nothing inside is cast, either."""

    def decorate(function: F) -> F:
        function.autocast = policy  # type: ignore[attr-defined]
        return function

    return decorate
