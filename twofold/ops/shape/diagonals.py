"""Matrices from diagonals and diagonals of matrices, and the positions of triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import DType, as_dtype, float32, int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.ops.base import Host, apply, composite, convert, filled, host, ops, public, strong
from twofold.ops.docstrings import shown
from twofold.ops.examples import example
from twofold.ops.shape.shapes import many_axes


@composite
class diag_embed:
    """The last axis as the ``offset``-th diagonal of matrices on the new axes ``dim1`` and ``dim2``, zero elsewhere.

    >>> import twofold as torch
    >>> torch.diag_embed(torch.tensor([1, 2]), offset=1).tolist()
    [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """

    methods = ("diag_embed",)

    def call(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
        if not len(input.shape):
            raise ShapeError("a scalar has no diagonal", "Use a tensor with at least one axis.")
        first, second = many_axes((dim1, dim2), len(input.shape) + 1)
        return apply("diag_embed", input, attrs=(int(offset), first, second))

    def compute(x: Any, offset: int, first: int, second: int) -> Any:
        x = strong(x)
        size = x.shape[-1] + abs(offset)
        sizes = iter(x.shape[:-1])
        shape = tuple(size if axis in (first, second) else next(sizes) for axis in range(x.ndim + 1))
        blank = filled(0, x.dtype, shape)
        return apply("write_view", blank, x, attrs=("diagonal", (offset, first, second)))

    samples = lambda: [
        example((0, 0, 1), (5,)),
        example((-2, 0, 2), (2, 3)),
        example((1, 2, 1), (2, 4)),
        example((0, 0, 1), (0,)),
    ]


@public(methods=("diag",))
def diag(input: Any, diagonal: int = 0) -> Any:
    """The matrix with a vector as its diagonal, or a copy of the diagonal of a matrix.

    >>> import twofold as torch
    >>> torch.diag(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    ndim = len(input.shape)
    if ndim not in (1, 2):
        raise ShapeError(f"diag of a tensor with {ndim} axes", "Use a vector, a matrix, or diag_embed.")
    return ops.diag_embed(input, diagonal) if ndim == 1 else ops.copied(ops.diagonal(input, diagonal))


@public(methods=("diagflat",))
def diagflat(input: Any, offset: int = 0) -> Any:
    """The matrix with all elements of the input along its ``offset``-th diagonal.

    >>> import twofold as torch
    >>> torch.diagflat(torch.tensor([1, 2]), 1)
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    return ops.diag_embed(ops.ravel(input), offset)


@public(methods=("diagonal_scatter",))
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The input with the elements of a diagonal replaced by ``src``, which has the shape of ``diagonal``.

    >>> import twofold as torch
    >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.tensor([5.0, 6.0]))
    tensor([[5., 0.],
            [0., 6.]])
    """
    axes = many_axes((dim1, dim2), len(input.shape))
    shown = tuple(ops.diagonal(input, offset, dim1, dim2).shape)
    if tuple(src.shape) != shown:
        raise ShapeError(
            f"src of shape {tuple(src.shape)} for a diagonal of shape {shown}", "Make their shapes equal."
        )
    return apply("write_view", input, src, attrs=("diagonal", (int(offset), *axes)))


@host
class triangle_indices(Host):
    """Rows and columns of a triangle, int64 ``[2, count]``; attributes ``(rows, columns, offset, upper)``."""

    functions = ()
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        rows, columns, offset, upper = attrs
        lower = sum(min(max(row + offset + (0 if upper else 1), 0), columns) for row in range(rows))
        count = rows * columns - lower if upper else lower
        return make_node(self, attrs, (), tensor_type(int64, (2, count)))

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        rows, columns, offset, upper = attrs
        if upper:
            return numpy.stack(numpy.triu_indices(rows, offset, columns))
        return numpy.stack(numpy.tril_indices(rows, offset, columns))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs)

    def samples(self) -> Sequence[Any]:
        sizes = ((3, 4, 0), (4, 3, -1), (3, 3, 2), (0, 3, 0), (2, 2, -5), (2, 2, 5))
        return [example((*size, upper)) for size in sizes for upper in (False, True)]


def _triangle(name: str, upper: bool) -> Any:
    where = "on and above" if upper else "on and below"

    class body:
        creates = "value"

        @staticmethod
        def call(row: int, col: int, offset: int = 0, *, dtype: Any = None) -> Any:
            if row < 0 or col < 0:
                raise ArgumentError(f"{row} rows and {col} columns", "Use sizes from 0.")
            return apply(name, attrs=(int(row), int(col), int(offset), as_dtype(dtype or int64)))

        @staticmethod
        def compute(rows: int, columns: int, offset: int, dtype: DType) -> Any:
            positions = REGISTRY["triangle_indices"].build((rows, columns, offset, upper), ())
            return convert(positions, dtype)

        samples = lambda: [example((3, 4, 0, int64)), example((4, 3, -1, float32)), example((2, 2, 5, int64))]

    body.__name__ = name
    body.__doc__ = shown(
        f"Rows and columns of the elements {where} a diagonal, in row-major order: ``[2, count]``.",
        f">>> torch.{name}(2, 2)",
        f"tensor([[0, {int(not upper)}, 1],",
        f"        [0, {int(upper)}, 1]])",
    )
    return composite(body)


tril_indices = _triangle("tril_indices", False)
triu_indices = _triangle("triu_indices", True)
