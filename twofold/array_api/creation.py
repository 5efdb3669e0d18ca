"""Creating arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from twofold import _core, dtypes
from twofold.array_api.functions import functions
from twofold.dtypes import DType, as_dtype
from twofold.errors import ArgumentError
from twofold.frontend.creation import as_tensor, tensor
from twofold.frontend.creation import from_dlpack as shared_memory
from twofold.frontend.options import check_device, get_default_dtype

Tensor = _core.Tensor
Function = TypeVar("Function", bound=Callable[..., Any])


def _standard(function: Function) -> Function:
    """``function``, whose new arrays promote as the standard says: those without axes like all others."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        made = function(*arguments, **options)
        if not any(made is argument for argument in arguments):
            _core.follow_standard(made)
        return made

    return cast(Function, call)


@_standard
def asarray(
    obj: Any, /, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """``obj`` (a number, nested sequences of them, an array, or what ``from_dlpack`` takes) as an array.

    ``copy=False`` raises ValueError where a copy is needed; None copies only then.
    """
    check_device(device)
    if copy:
        return tensor(obj, dtype=dtype)
    kept = isinstance(obj, Tensor) and dtype in (None, obj.dtype)
    if copy is False and not (kept or hasattr(obj, "__dlpack__")):
        raise ArgumentError(f"{type(obj).__name__} becomes an array only by a copy", "Use copy=None.")
    if isinstance(obj, Tensor) or not hasattr(obj, "__dlpack__"):
        return as_tensor(obj, dtype=dtype)
    shared = shared_memory(obj)
    if copy is False and dtype not in (None, shared.dtype):
        raise ArgumentError(f"{shared.dtype} becomes {dtype} only by a copy", "Use copy=None.")
    return shared if dtype is None else shared.to(dtype)


@_standard
def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """``start``, ``start + step``, ... before ``stop``; with one argument from 0."""
    check_device(device)
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step <= 0:
        whole = all(isinstance(value, int) for value in (start, stop, step))
        return functions.zeros(0, dtype=dtype or (dtypes.int64 if whole else get_default_dtype()))
    return functions.arange(start, stop, step, dtype=dtype)


@_standard
def empty(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of this shape whose values are not said."""
    return functions.empty(shape, dtype=dtype, device=device)


@_standard
def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array with the shape of ``x`` whose values are not said."""
    return zeros_like(x, dtype=dtype, device=device)


@_standard
def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """Ones on the ``k``-th diagonal, zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    rows, positions = arange(n_rows, device=device), arange(columns)
    on_diagonal = rows.unsqueeze(1) + k == positions
    return on_diagonal.to(dtype or get_default_dtype())


@_standard
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array that shares the memory of ``x``, or a copy of it."""
    check_device(device)
    shared = x if isinstance(x, Tensor) else shared_memory(x)
    return shared.clone() if copy else shared


@_standard
def full(shape: Any, fill_value: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of ``fill_value``; the default dtype is that of its kind."""
    check_device(device)
    return functions.full(shape if isinstance(shape, tuple) else (shape,), fill_value, dtype=dtype)


@_standard
def full_like(x: Tensor, /, fill_value: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of ``fill_value`` with the shape and dtype of ``x``."""
    return full(tuple(x.shape), fill_value, dtype=dtype or x.dtype, device=device)


@_standard
def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """``num`` numbers evenly spaced from ``start`` to ``stop``, which is the last one if ``endpoint``."""
    check_device(device)
    complex_ends = isinstance(start, complex) or isinstance(stop, complex)
    default = get_default_dtype()
    wanted = dtype or (default.complex if complex_ends else default)
    steps = functions.arange(num, dtype=dtypes.float64)
    fraction = steps / max(num - 1 if endpoint else num, 1)
    made = start * (1 - fraction) + stop * fraction
    return made.to(wanted)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of the points of a grid, from the coordinates along its axes."""
    return list(functions.meshgrid(*arrays, indexing=indexing))


@_standard
def ones(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of ones."""
    return functions.ones(shape, dtype=dtype, device=device)


@_standard
def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of ones with the shape and dtype of ``x``."""
    return functions.ones(tuple(x.shape), dtype=dtype or x.dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangles of matrices, up to diagonal ``k``; zeros elsewhere."""
    return functions.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangles of matrices, from diagonal ``k`` on; zeros elsewhere."""
    return functions.triu(x, k)


@_standard
def zeros(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of zeros."""
    return functions.zeros(shape, dtype=dtype, device=device)


@_standard
def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """An array of zeros with the shape and dtype of ``x``."""
    return functions.zeros(tuple(x.shape), dtype=as_dtype(dtype or x.dtype), device=device)
