"""The type of a value: dtype and shape, interned so that equal types are one object."""

from __future__ import annotations

from math import prod
from typing import Any

from twofold.dtypes import BY_CODE, DType, Size
from twofold.errors import ShapeError
from twofold.ir.sizes import Symbol, identity

Shape = tuple[int, ...]


class TensorType:
    """Dtype and shape of a value; ``weak`` marks a Python scalar, which is weakly typed as in JAX.

    >>> from twofold.dtypes import float32
    >>> tensor_type(float32, (2, 3))
    float32[2,3]
    """

    __slots__ = ("dtype", "shape", "size_object", "weak")

    dtype: DType
    shape: Shape
    size_object: Size  # the shape as users see it
    weak: bool

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of a dense buffer of this type."""
        return self.size * self.dtype.itemsize

    def __reduce__(self) -> tuple[Any, ...]:
        return tensor_type, (self.dtype, self.shape, self.weak)

    def __repr__(self) -> str:
        return f"{'weak ' if self.weak else ''}{self.dtype.name}[{','.join(map(str, self.shape))}]"

    def __str__(self) -> str:
        return f"{'weak ' if self.weak else ''}{self.dtype.name}[{','.join(map(size_text, self.shape))}]"


SIZE_NAMES: dict[int, str] = {}
"""Names of distinct unknown sizes in messages; see ``shape_inference.keep_distinct``."""


def size_text(size: Any) -> str:
    """The text of a size in messages: an unknown size has its name, or is ``?``."""
    return SIZE_NAMES.get(size, "?") if type(size) is int and size < 0 else str(size)


_TABLE: dict[tuple[DType, Shape, bool], TensorType] = {}


def tensor_type(dtype: DType, shape: Shape = (), weak: bool = False) -> TensorType:
    """The one TensorType with these fields."""
    for size in shape:
        if type(size) is Symbol:
            # in a table that lives as long as its recording
            return _interned(size.recording.types, (dtype, identity(tuple(shape)), weak), dtype, shape, weak)
    found = _TABLE.get((dtype, shape, weak))
    if found is None:
        shape = tuple([int(size) for size in shape])
        found = _interned(_TABLE, (dtype, shape, weak), dtype, shape, weak)
    return found


def _interned(table: dict[Any, TensorType], key: Any, dtype: DType, shape: Shape, weak: bool) -> TensorType:
    found = table.get(key)
    if found is None:
        found = TensorType()
        found.dtype, found.shape, found.weak = dtype, tuple(shape), weak
        found.size_object = Size(found.shape)
        found = table.setdefault(key, found)
    return found


def type_from_code(code: int, shape: Shape, weak: bool) -> TensorType:
    """The TensorType with the dtype of a code, as the core stores it."""
    return tensor_type(BY_CODE[code], shape, weak)


_MAX_AXES = 64  # of a NumPy array
_MAX_BYTES = 2**46  # the limit of the allocator of the core


def check_limits(type: TensorType) -> None:
    """Raise ShapeError for a type with too many axes or bytes."""
    if len(type.shape) > _MAX_AXES:
        raise ShapeError(f"a result with {len(type.shape)} axes", f"Use at most {_MAX_AXES}.")
    if type.nbytes > _MAX_BYTES:
        raise ShapeError(f"a result of {type.nbytes / 2**40:.4g} TiB, {type}", "Make it smaller.")
