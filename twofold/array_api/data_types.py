"""Dtypes: their kinds, limits and promotion."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.array_api.functions import functions
from twofold.dtypes import DType, as_dtype, finfo, iinfo, promote
from twofold.errors import ArgumentError
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.promotion import common_dtype

__all__ = ["astype", "broadcast_arrays", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

Tensor = _core.Tensor

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """``x`` in another dtype; a copy even of the same dtype unless ``copy`` is false.

    Raises ArgumentError for a complex array in a real dtype.
    """
    if x.dtype.kind == "c" and dtype.kind in "iuf":
        raise ArgumentError(f"{x.dtype.name} has no {dtype.name}", "Take real(x) or abs(x) first.")
    made = x.to(dtype, device=device)
    return made.clone() if copy and made is x else made


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The arrays at the shape that all of them broadcast to."""
    return list(functions.broadcast_tensors(*arrays))


def can_cast(from_: DType | Tensor, to: DType, /) -> bool:
    """Whether promotion may turn one dtype into the other."""
    source = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return promote(source, to) is to
    except TypeError:
        return False


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """Whether ``dtype`` is of a kind: a dtype, the name of a kind, or a tuple of them."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, DType):
        return dtype is kind
    if kind not in _KINDS:
        raise ArgumentError(f"kind {kind!r} is unknown", f"Use one of {', '.join(_KINDS)}.")
    return dtype.kind in _KINDS[kind]


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype of a result that is computed from these arrays, dtypes and Python numbers."""
    return common_dtype([_type_of(value) for value in arrays_and_dtypes])[0]


def _type_of(value: Any) -> TensorType:
    """The type that a value takes part in promotion with."""
    if isinstance(value, Tensor):
        return value.type_
    if isinstance(value, DType):
        return tensor_type(value)
    return tensor_type(as_dtype(type(value)), (), True)
