"""Products of matrices and vectors added to a tensor, inner products, and chains of products."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import bool_
from twofold.errors import ArgumentError, ShapeError
from twofold.ops.base import apply, composite, convert, normalize_axis, ops, public
from twofold.ops.contraction.matrix_products import need_axes, scaled_sum
from twofold.ops.examples import example
from twofold.ops.linear_algebra.matrices import conjugate, linalg_function, observed
from twofold.ops.promotion import autocast, need_fitting, need_one_dtype
from twofold.ops.shape.shapes import expanded, many_axes
from twofold.ops.signatures import scales_first, with_names


def _scaled_call(name: str, *factors: str) -> Any:
    """The public function of an input and two factors with the keyword arguments ``beta`` and ``alpha``."""

    def call(input: Any, first: Any, second: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        need_fitting(beta, input.dtype.compute)
        need_fitting(alpha, input.dtype.compute)
        return apply(name, input, first, second, beta, alpha)

    return staticmethod(scales_first("beta", "alpha")(with_names(call, ("input", *factors))))


def _added(x: Any, beta: Any, alpha: Any, multiply: Callable[..., Any], *factors: Any) -> Any:
    if x.dtype is bool_ and all(factor.dtype is bool_ for factor in factors):
        product = multiply(*factors)
        expanded(x.shape, product.shape)  # raises where the input does not broadcast to the product
        return ops.logical_or(ops.logical_and(x, beta), ops.logical_and(product, alpha))
    return scaled_sum(x, beta, alpha, multiply, *factors)


def _sum_of_products(a: Any, b: Any) -> Any:
    products = ops.bmm(a, b)
    return convert(ops.sum(products, 0), products.dtype)


@composite
class addmv:
    """``beta * input + alpha * (mat @ vec)`` for a matrix and a vector.

    >>> import twofold as torch
    >>> torch.addmv(torch.tensor([100, 200]), torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]))
    tensor([103, 207])
    """

    signature = "input, mat, vec"
    inplace = True
    call = _scaled_call("addmv", "mat", "vec")

    @staticmethod
    def compute(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
        need_one_dtype(input=x.type, mat=a.type, vec=b.type)
        need_axes("mat", a, 2)
        need_axes("vec", b, 1)
        return _added(x, beta, alpha, ops.matmul, a, b)

    reference = lambda x, a, b, beta, alpha: beta * x + alpha * (a @ b)
    samples = lambda: [example((), (2,), (2, 3), (3,), 1, 2), example((), (), (2, 3), (3,), 0, 1)]


@composite
class addr:
    """``beta * input + alpha * outer(vec1, vec2)`` for two vectors.

    >>> import twofold as torch
    >>> torch.addr(torch.tensor([[100]]), torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[103, 104],
            [106, 108]])
    """

    signature = "input, vec1, vec2"
    inplace = True
    call = _scaled_call("addr", "vec1", "vec2")

    @staticmethod
    def compute(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
        return _added(x, beta, alpha, ops.outer, a, b)

    reference = lambda x, a, b, beta, alpha: beta * x + alpha * numpy.outer(a, b)
    samples = lambda: [example((), (2, 3), (2,), (3,), 1, 2), example((), (3,), (2,), (3,), 0, 1)]


@composite
class baddbmm:
    """``beta * input + alpha * (batch1 @ batch2)`` for batches of matrices.

    >>> import twofold as torch
    >>> torch.baddbmm(torch.tensor([[[100]]]), torch.tensor([[[1, 2]]]), torch.tensor([[[3], [4]]]), alpha=2)
    tensor([[[122]]])
    """

    autocast = "lower"
    signature = "input, batch1, batch2"
    inplace = True
    call = _scaled_call("baddbmm", "batch1", "batch2")

    @staticmethod
    def compute(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
        need_one_dtype(input=x.type, batch1=a.type, batch2=b.type)
        return _added(x, beta, alpha, ops.bmm, a, b)

    reference = lambda x, a, b, beta, alpha: beta * x + alpha * (a @ b)
    samples = lambda: [
        example((), (2, 2, 4), (2, 2, 3), (2, 3, 4), 1, 2),
        example((), (4,), (2, 2, 3), (2, 3, 4), 0, 1),
    ]


@composite
class addbmm:
    """``beta * input + alpha * sum of (batch1 @ batch2)`` over the batch.

    >>> import twofold as torch
    >>> torch.addbmm(torch.tensor([[100]]), torch.tensor([[[1]], [[2]]]), torch.tensor([[[3]], [[4]]]))
    tensor([[111]])
    """

    autocast = "lower"
    signature = "input, batch1, batch2"
    inplace = True
    call = _scaled_call("addbmm", "batch1", "batch2")

    @staticmethod
    def compute(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
        need_one_dtype(input=x.type, batch1=a.type, batch2=b.type)
        return _added(x, beta, alpha, _sum_of_products, a, b)

    reference = lambda x, a, b, beta, alpha: beta * x + alpha * (a @ b).sum(0)
    samples = lambda: [
        example((), (2, 4), (3, 2, 3), (3, 3, 4), 1, 2),
        example((), (4,), (3, 2, 3), (3, 3, 4), 0, 1),
    ]


@composite
class inner:
    """The products summed over the last axes of both tensors; with a scalar the plain product.

    >>> import twofold as torch
    >>> torch.inner(torch.tensor([[1, 2], [3, 4]]), torch.tensor([10, 1]))
    tensor([12, 34])
    """

    autocast = "lower"
    signature = "input, other"

    @staticmethod
    def compute(a: Any, b: Any) -> Any:
        if not a.ndim or not b.ndim:
            return a * b
        if a.shape[-1] != b.shape[-1]:
            raise ShapeError(f"last axes differ, {a.shape[-1]} against {b.shape[-1]}", "Make them equal.")
        rows, columns = a.shape[:-1], b.shape[:-1]
        flat_a = ops.reshape(a, (prod(rows), a.shape[-1]))
        flat_b = ops.reshape(b, (prod(columns), b.shape[-1]))
        return ops.reshape(ops.matmul(flat_a, ops.permute(flat_b, (1, 0))), (*rows, *columns))

    reference = numpy.inner
    samples = lambda: [example((), (2, 3), (4, 5, 3)), example((), (3,), (3,)), example((), (), (2, 3))]


@composite
class vecdot:
    """The sums over ``dim`` of the products of two tensors, the first conjugated; other axes broadcast.

    >>> import twofold as torch
    >>> torch.linalg.vecdot(torch.tensor([[1.0, 2.0]]), torch.tensor([3.0, 4.0])).tolist()
    [11.0]
    """

    autocast = "lower"
    functions = ("vecdot", "linalg.vecdot")
    signature = "x, y"
    methods = ()
    call = staticmethod(lambda x, y, *, dim=-1: apply("vecdot", x, y, attrs=(operator.index(dim),)))

    @staticmethod
    def compute(x: Any, y: Any, dim: int) -> Any:
        return ops.sum(conjugate(x) * y, normalize_axis(dim, max(x.ndim, y.ndim)))

    reference = lambda x, y, dim: (x * y).sum(dim)
    samples = lambda: [
        example((-1,), (2, 3), (2, 3)),
        example((0,), (2, 1), (2, 3)),
        example((-2,), (3,), (2, 2, 3)),
    ]


@linalg_function()
def matmul(input: Any, other: Any) -> Any:
    """The matrix product; see ``matmul``.

    >>> import twofold as torch
    >>> torch.linalg.matmul(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1], [1]]))
    tensor([[3],
            [7]])
    """
    return apply("matmul", input, other)


@linalg_function()
def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonals of matrices as a new last axis.

    >>> import twofold as torch
    >>> torch.linalg.diagonal(torch.tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]))
    tensor([[1, 4],
            [5, 8]])
    """
    return ops.diagonal(A, offset, dim1, dim2)


@composite
class cross_product:
    """The vectors at right angles to pairs of vectors of 3 elements along an axis; other axes broadcast."""

    autograd_name = "LinalgCrossBackward0"

    functions = ()
    methods = ()
    title = "linalg.cross"
    signature = "input, other"

    @staticmethod
    def compute(a: Any, b: Any, axis: int) -> Any:
        for name, x in (("input", a), ("other", b)):
            if x.shape[axis] != 3:
                raise ShapeError(
                    f"axis {axis} of {name} has size {x.shape[axis]}, not 3", "Name another axis."
                )
        turns = [(ops.roll(x, -1, axis), ops.roll(x, -2, axis)) for x in (a, b)]
        return turns[0][0] * turns[1][1] - turns[0][1] * turns[1][0]

    reference = lambda a, b, axis: numpy.cross(a, b, axis=axis)
    samples = lambda: [
        example((1,), (2, 3), (2, 3)),
        example((0,), (3, 1), (3, 2)),
        example((2,), (1, 2, 3), (2, 1, 3)),
    ]


def _cross(input: Any, other: Any, dim: int) -> Any:
    ndim = len(input.shape)
    if ndim != len(other.shape):
        raise ShapeError(f"{ndim} axes against {len(other.shape)}", "Give both as many axes: unsqueeze one.")
    return apply("cross_product", input, other, attrs=(normalize_axis(dim, ndim),))


@linalg_function()
def cross(input: Any, other: Any, *, dim: int = -1) -> Any:
    """The vectors at right angles to pairs of vectors along ``dim``, which has size 3.

    >>> import twofold as torch
    >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    return _cross(input, other, dim)


@public("cross", methods=("cross",))
def cross_(input: Any, other: Any, dim: int | None = None) -> Any:
    """The vectors at right angles to pairs of vectors along ``dim``, by default the first axis of size 3.

    >>> import twofold as torch
    >>> torch.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    if dim is None:
        sizes = tuple(input.shape)
        if 3 not in sizes:
            raise ShapeError(f"no axis of shape {sizes} has size 3", "Give vectors of 3 elements.")
        dim = sizes.index(3)
    return _cross(input, other, dim)


def _best_order(sizes: Sequence[int]) -> list[list[int]]:
    """Where to split each run of factors, so that the products take the fewest multiplications.

    Source: Cormen et al., Introduction to Algorithms, section on matrix-chain multiplication.
    """
    count = len(sizes) - 1
    cost = [[0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            found = [
                cost[first][k] + cost[k + 1][last] + sizes[first] * sizes[k + 1] * sizes[last + 1]
                for k in range(first, last)
            ]
            cost[first][last] = min(found)
            split[first][last] = first + found.index(min(found))
    return split


@public()
def chain_matmul(*matrices: Any) -> Any:
    """The product of matrices, in the order that takes the fewest multiplications; of one matrix a copy.

    Raises ShapeError for what is no matrix.

    >>> import twofold as torch
    >>> torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 4)).tolist()
    [[3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0]]
    """
    for position, factor in enumerate(matrices):
        if len(factor.shape) != 2:
            raise ShapeError(f"factor {position} has {len(factor.shape)} axes", "Give matrices.")
    return ops.copied(matrices[0]) if len(matrices) == 1 else multi_dot(matrices)


@linalg_function()
def multi_dot(*tensors: Any) -> Any:
    """The product of several matrices, in the order that takes the fewest multiplications.

    The first and the last may be vectors. Raises ArgumentError for fewer than two factors.

    >>> import twofold as torch
    >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4)]).tolist()
    [12.0, 12.0]
    """
    given = list(tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors)
    if len(given) < 2:
        raise ArgumentError(f"{len(given)} factors", "Give at least two.")
    for position, factor in enumerate(given):
        ends = (1, 2) if position in (0, len(given) - 1) else (2,)
        if len(factor.shape) not in ends:
            raise ShapeError(f"factor {position} has {len(factor.shape)} axes", "Give matrices.")
    row, column = len(given[0].shape) == 1, len(given[-1].shape) == 1
    given[0] = ops.unsqueeze(given[0], 0) if row else given[0]
    given[-1] = ops.unsqueeze(given[-1], 1) if column else given[-1]
    split = _best_order([given[0].shape[0], *(factor.shape[1] for factor in given)])

    def product(first: int, last: int) -> Any:
        if first == last:
            return given[first]
        k = split[first][last]
        return ops.matmul(product(first, k), product(k + 1, last))

    result = product(0, len(given) - 1)
    kept = tuple(result.shape)[int(row) : 2 - int(column)]
    return ops.reshape(result, kept) if row or column else result


@composite
class powers:
    """The powers 0 to ``count - 1`` of each element along a new last axis; attributes ``(count,)``."""

    memory = (2.5, "values in between are stored")

    functions = ()
    methods = ()
    title = "linalg.vander"
    signature = "x"

    @staticmethod
    def compute(x: Any, count: int) -> Any:
        columns = [ops.ones_like(x)]
        if x.dtype.kind == "c":
            while len(columns) < count:
                columns.append(columns[-1] * x)
            return ops.stack(columns, -1)
        if count > 1:
            repeated = ops.expand(ops.unsqueeze(x, -1), (*x.shape, count - 1))
            return ops.cat((ops.unsqueeze(columns[0], -1), ops.cumprod(repeated, -1)), -1)
        return ops.unsqueeze(columns[0], -1)

    reference = lambda x, count: x[..., None] ** numpy.arange(count)
    samples = lambda: [example((4,), (2, 3)), example((1,), (3,)), example((2,), (3,))]


@linalg_function()
def vander(x: Any, N: int | None = None) -> Any:
    """The Vandermonde matrix of each vector: row k holds the powers 0 to ``N - 1`` of element k.

    >>> import twofold as torch
    >>> torch.linalg.vander(torch.tensor([2.0, 3.0]), N=3).tolist()
    [[1.0, 2.0, 4.0], [1.0, 3.0, 9.0]]
    """
    x = x if len(x.shape) else ops.unsqueeze(x, 0)
    count = x.shape[-1] if N is None else operator.index(N)
    if count < 1:
        raise ArgumentError(f"N={count}", "Use at least 1.")
    return apply("powers", x, attrs=(count,))


@public("vander")
def flipped_vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The Vandermonde matrix of a vector: powers from ``N - 1`` down to 0, or up if ``increasing``.

    Raises ShapeError for anything but a vector.

    >>> import twofold as torch
    >>> torch.vander(torch.tensor([2.0, 3.0]), N=3).tolist()
    [[4.0, 2.0, 1.0], [9.0, 3.0, 1.0]]
    """
    if len(x.shape) != 1:
        raise ShapeError(f"x of shape {tuple(x.shape)}", "Give a vector.")
    if N == 0:
        return apply("zeros", attrs=((x.shape[0], 0), x.dtype))
    powers = vander(x, N)
    return powers if increasing else ops.flip(powers, (1,))


@linalg_function()
@observed
@autocast("float32")
def tensorinv(A: Any, ind: int = 2) -> Any:
    """The inverse of A for ``tensordot(A, B, ind)``: that of the square matrix with the first ``ind`` axes as rows.

    >>> import twofold as torch
    >>> torch.linalg.tensorinv(2 * torch.eye(2).reshape(2, 1, 2), ind=2).tolist()
    [[[0.5], [0.0]], [[0.0], [0.5]]]
    """
    if ind <= 0:
        raise ArgumentError(f"ind={ind}", "Use at least 1.")
    shape = tuple(A.shape)
    rows, columns = shape[:ind], shape[ind:]
    if prod(rows) != prod(columns):
        raise ShapeError(
            f"axes {rows} hold {prod(rows)} elements, axes {columns} {prod(columns)}",
            "Make the products equal.",
        )
    inverse = apply("inverse_matrix", ops.reshape(A, (prod(rows), prod(columns))), attrs=(True,))
    return ops.reshape(inverse, (*columns, *rows))


@linalg_function()
@observed
@autocast("float32")
def tensorsolve(A: Any, B: Any, dims: Any = None) -> Any:
    """X with ``tensordot(A, X, X.ndim) = B``; the axes ``dims`` of A are moved to the end first.

    >>> import twofold as torch
    >>> torch.linalg.tensorsolve(2 * torch.eye(2).reshape(2, 1, 2), torch.tensor([[4.0], [6.0]]))
    tensor([2., 3.])
    """
    if dims is not None:
        moved = many_axes(dims, len(A.shape))
        A = ops.permute(A, (*(axis for axis in range(len(A.shape)) if axis not in moved), *moved))
    rest = tuple(A.shape)[len(B.shape) :]
    count = prod(tuple(B.shape))
    if prod(rest) != count or prod(tuple(A.shape)) != count * count:
        raise ShapeError(
            f"A of shape {tuple(A.shape)} for B of shape {tuple(B.shape)}",
            "Give A the shape of B followed by axes with as many elements.",
        )
    flat = ops.reshape(A, (count, count))
    return ops.reshape(apply("linear_solve", flat, ops.reshape(B, (count,)), attrs=(True, True)), rest)
