"""The dtype that operands meet in, and how the dtype of a result follows from it."""

from __future__ import annotations

from collections.abc import Sequence

from twofold.dtypes import DType, bool_, complex64, float32, float64, int64, promote, promote_scalar
from twofold.errors import DTypeError
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
            return complex64, False
        return {"b": bool_, "i": int64, "f": float64}[kind], weak
    for type in types:
        if type.weak:
            common = promote_scalar(common, _SCALAR_TYPES[type.dtype.kind])
    return common, weak


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
    """Integers and bools become float32."""
    dtype = common if common.is_differentiable else float32
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
