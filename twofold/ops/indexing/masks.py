"""Masks: the positions of their true elements, and values written there."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import bool_
from twofold.errors import DTypeError, ShapeError
from twofold.ops.base import apply, composite, convert, ops, strong
from twofold.ops.elementwise.checks import fitting
from twofold.ops.examples import example
from twofold.ops.promotion import need_fitting

_CHUNK = 16384  # positions whose numbers in between stay in the nearest caches


def nonzero_rows(array: Any) -> Any:
    """The positions of the elements that are not zero in row-major order: int64 ``[count, axes]``.

    Positions in all elements are found without branches, which random masks would mispredict, and divided.

    >>> nonzero_rows(numpy.array([[0, 5], [7, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    flat = numpy.flatnonzero(array if array.dtype == bool else array != 0)
    rows = numpy.empty((len(flat), array.ndim), numpy.int64)
    for start in range(0, len(flat) if array.ndim else 0, _CHUNK):
        chunk, part = flat[start : start + _CHUNK], rows[start : start + _CHUNK]
        for axis in range(array.ndim - 1, 0, -1):
            above = chunk // array.shape[axis]
            numpy.subtract(chunk, above * array.shape[axis], part[:, axis])
            chunk = above
        part[:, 0] = chunk
    return rows


def nonzero_indices(array: Any) -> tuple[Any, ...]:
    """The positions of the elements that are not zero, one int64 array for each axis, in row-major order.

    >>> [index.tolist() for index in nonzero_indices(numpy.array([[0, 5], [7, 0]]))]
    [[0, 1], [1, 0]]
    """
    rows = nonzero_rows(array)
    return tuple(numpy.ascontiguousarray(rows[:, axis]) for axis in range(array.ndim))


@composite
class masked_write:
    """The input with ``value``, in the input's dtype, where the mask is true."""

    autograd_name = "IndexPutBackward0"
    functions = ()
    signature = "x, mask, value"
    compute = lambda x, mask, value: ops.where(mask, convert(value, strong(x).dtype), strong(x))
    reference = lambda x, mask, value: numpy.where(mask, value, x)
    samples = lambda: [example((), (3, 17), numpy.arange(3).reshape(3, 1) > 0, ())]


@composite
class masked_fill:
    """The input with ``value`` where ``mask`` is true.

    >>> import twofold as torch
    >>> torch.masked_fill(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]), -1)
    tensor([-1,  2, -1])
    """

    inplace = True
    methods = ("masked_fill",)
    signature = "input, mask, value"
    arity = 3
    checks_numbers = True

    @staticmethod
    def call(input: Any, mask: Any, value: Any) -> Any:
        need_fitting(value, input.dtype)
        return apply("masked_fill", input, mask, value)

    def compute(x: Any, mask: Any, value: Any) -> Any:
        if mask.dtype is not bool_:
            raise DTypeError(f"a mask of {mask.dtype.name}", "Compare first, for example mask != 0.")
        if value.shape:
            raise ShapeError(f"a value of shape {value.shape}", "Use a scalar, or where for a tensor.")
        x = strong(x)
        if value.dtype.kind == "c" and x.dtype.kind != "c":
            raise DTypeError(f"a complex value for {x.dtype.name}", "Use a real value.")
        return ops.where(mask, convert(fitting(value, x.dtype), x.dtype), x)

    reference = lambda x, mask, value: numpy.where(mask, value, x)
    samples = lambda: [example((), (3, 17), numpy.arange(3).reshape(3, 1) > 0, ())]
