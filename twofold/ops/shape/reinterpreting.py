"""Memory read as elements of another dtype, of which the last axis has more or fewer: ``Tensor.view(dtype)``."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import DType, int16, int32, int64, uint8, uint16, uint32, uint64
from twofold.errors import ShapeError
from twofold.ir.layout import Layout
from twofold.ops.base import apply, composite, ops
from twofold.ops.samples import Sample

_WHOLE = {1: uint8, 2: uint16, 4: uint32, 8: uint64}
"""Unsigned integers by their size in bytes."""


def _in_parts(x: Any, dtype: DType) -> Any:
    """Each element as several of a smaller dtype along the last axis, the lowest bits first."""
    count, bits, small = x.dtype.itemsize // dtype.itemsize, 8 * dtype.itemsize, _WHOLE[dtype.itemsize]
    whole = ops.bitcast(x, _WHOLE[x.dtype.itemsize])
    shifted = [ops.bitwise_right_shift(whole, bits * k) for k in range(count)]
    parts = [ops.cast(ops.bitwise_and(one, 2**bits - 1), small) for one in shifted]
    found = ops.stack([ops.bitcast(part, dtype) for part in parts], -1)
    return ops.reshape(found, (*x.shape[:-1], x.shape[-1] * count))


def _joined(x: Any, dtype: DType) -> Any:
    """Several elements along the last axis as one of a larger dtype, the lowest bits first."""
    count, bits, large = dtype.itemsize // x.dtype.itemsize, 8 * x.dtype.itemsize, _WHOLE[dtype.itemsize]
    rows = ops.reshape(ops.bitcast(x, _WHOLE[x.dtype.itemsize]), (*x.shape[:-1], x.shape[-1] // count, count))
    parts = [ops.cast(ops.select(rows, -1, k), large) for k in range(count)]
    whole = parts[0]
    for k in range(1, count):
        whole = ops.bitwise_or(whole, ops.bitwise_left_shift(parts[k], bits * k))
    return ops.bitcast(whole, dtype)


@composite
class smaller_elements:
    """The memory of each element read as several of a smaller dtype, side by side along the last axis."""

    functions = methods = ()
    differentiable = False
    is_view = True
    may_copy = True
    compute = _in_parts
    write = lambda base, value, dtype: apply("larger_elements", value, attrs=(base.dtype,))
    samples = lambda: [
        Sample((int16,), (numpy.array([[70000, -3, 5]], numpy.int32),), (int32,), smooth=False)
    ]
    reference = lambda x, dtype: numpy.ascontiguousarray(x).view(dtype.numpy)

    @staticmethod
    def layout(source: Layout, dtype: DType) -> Layout | None:
        """The elements must lie side by side along the last axis."""
        count = source.dtype.itemsize // dtype.itemsize
        *steps, last = source.stride
        if last != 1 and source.size[-1] != 1:
            return None
        size = (*source.size[:-1], source.size[-1] * count)
        return Layout(dtype, size, (*(step * count for step in steps), 1), source.offset * count)


@composite
class larger_elements:
    """The memory of several elements side by side along the last axis read as one of a larger dtype."""

    functions = methods = ()
    differentiable = False
    is_view = True
    may_copy = True
    compute = _joined
    write = lambda base, value, dtype: apply("smaller_elements", value, attrs=(base.dtype,))
    samples = lambda: [
        Sample((int64,), (numpy.arange(-3, 5, dtype=numpy.int16).reshape(2, 4),), (int16,), smooth=False)
    ]
    reference = lambda x, dtype: numpy.ascontiguousarray(x).view(dtype.numpy)

    @staticmethod
    def layout(source: Layout, dtype: DType) -> Layout | None:
        """The elements must lie side by side, and each group start where one of the larger dtype may."""
        count = dtype.itemsize // source.dtype.itemsize
        *steps, last = source.stride
        if last != 1 or source.offset % count or any(step % count for step in steps):
            return None
        size = (*source.size[:-1], source.size[-1] // count)
        return Layout(dtype, size, (*(step // count for step in steps), 1), source.offset // count)


def reread(input: Any, dtype: DType) -> Any:
    """The memory of a tensor as elements of another dtype, of which the last axis has fewer or more.

    Raises DTypeError for dtypes that cannot be read so, ShapeError where the last axis does not fit.
    """
    if dtype is input.dtype or (
        dtype.itemsize == input.dtype.itemsize and "c" not in (dtype.kind, input.dtype.kind)
    ):
        return ops.bitcast(input, dtype)
    if not input.ndim:
        raise ShapeError(f"a tensor without axes of {input.dtype.name} as {dtype.name}", "Give it an axis.")
    count = dtype.itemsize // input.dtype.itemsize
    if count > 1:
        _check_groups(input, count, dtype)
    if input.dtype.kind == "c":
        parts = ops.view_as_real(input)
        return reread(ops.reshape(parts, (*input.shape[:-1], 2 * input.shape[-1])), dtype)
    if dtype.kind == "c":
        parts = reread(input, dtype.real)
        _check_groups(parts, 2, dtype)
        return ops.view_as_complex(ops.reshape(parts, (*parts.shape[:-1], parts.shape[-1] // 2, 2)))
    result = apply("larger_elements" if count > 1 else "smaller_elements", input, attrs=(dtype,))
    if getattr(result, "_base", result) is None and not result._is_symbolic:
        what = f"elements {input.stride()} apart in memory, from element {input.storage_offset()}"
        raise ShapeError(
            what, f"To be read as {dtype.name} they must lie side by side: use contiguous() first."
        )
    return result


def _check_groups(x: Any, count: int, dtype: DType) -> None:
    if x.shape[-1] % count:
        what = f"a last axis of {x.shape[-1]} {x.dtype.name} as {dtype.name}"
        raise ShapeError(what, f"Its size must be a multiple of {count}.")
    if getattr(x, "_base", None) is not None and x.storage_offset() % count:
        what = f"elements from {x.storage_offset()} on in memory as {dtype.name}"
        raise ShapeError(what, f"The first must be a multiple of {count}: use clone() first.")
