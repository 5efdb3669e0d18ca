"""The upper and lower triangles of matrices."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.errors import DTypeError, ShapeError
from twofold.ir.bind import constant
from twofold.ops.base import apply, composite, ops
from twofold.ops.examples import example
from twofold.ops.shape.movement import axis_numbers


def _triangle(keep: str) -> Any:
    def compute(x: Any, diagonal: Any) -> Any:
        if x.ndim < 2:
            raise ShapeError(
                f"a triangle of a tensor with {x.ndim} axes", "Use a tensor with at least two axes."
            )
        if diagonal.type.dtype.kind not in "iu" or diagonal.type.shape:
            raise DTypeError(f"diagonal of type {diagonal.type}", "Use an integer.")
        rows, columns = axis_numbers(x.ndim - 2, x.shape), axis_numbers(x.ndim - 1, x.shape)
        distance = ops.subtract(columns, rows)
        inside = (
            ops.greater_equal(distance, diagonal) if keep == "upper" else ops.less_equal(distance, diagonal)
        )
        return ops.where(inside, x, constant(0, x.dtype))

    return compute


@composite
class triu:
    """The elements on and above the diagonal of the last two axes; zero elsewhere.

    >>> import twofold as torch
    >>> torch.triu(torch.tensor([[1, 2], [3, 4]]))
    tensor([[1, 2],
            [0, 4]])
    """

    inplace = True
    methods = ("triu",)
    call = staticmethod(lambda input, diagonal=0: apply("triu", input, diagonal))
    compute = _triangle("upper")
    reference = lambda x, diagonal: numpy.triu(x, diagonal)
    samples = lambda: [example((), (3, 5), 0), example((), (2, 4, 3), -1), example((), (4, 4), 9)]


@composite
class tril:
    """The elements on and below the diagonal of the last two axes; zero elsewhere.

    >>> import twofold as torch
    >>> torch.tril(torch.tensor([[1, 2], [3, 4]]), -1)
    tensor([[0, 0],
            [3, 0]])
    """

    inplace = True
    methods = ("tril",)
    call = staticmethod(lambda input, diagonal=0: apply("tril", input, diagonal))
    compute = _triangle("lower")
    reference = lambda x, diagonal: numpy.tril(x, diagonal)
    samples = lambda: [example((), (3, 5), 0), example((), (2, 4, 3), -1), example((), (4, 4), 9)]
