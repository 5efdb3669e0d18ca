"""Sums, means, moments and extremes: over elements, along dimensions, over the batch and over lists of expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from twofold.dynet.expression import Expression, aligned, need_alike, of_rank, rank_of
from twofold.dynet.graph import operation


def _reaching(x: Expression, d: int) -> Any:
    """The tensor of ``x`` with dimension ``d``; raises ValueError for one that neither it nor a matrix has."""
    rank = max(rank_of(x), 2)
    if d >= rank:
        raise ValueError(
            f"dimension {d} of an expression of dimensions {x.dim()[0]}. Use one from 0 to {rank - 1}."
        )
    return of_rank(x, d + 1)


def _over(x: Expression, dims: Sequence[int], over_batch: bool) -> tuple[Any, list[int], int]:
    """The tensor, the axes to reduce, and the size of the batch that is left."""
    tensor = _reaching(x, max(dims, default=-1))
    axes = [-1 - dim for dim in dims]
    if over_batch and x._batch != 1:
        return tensor, [*axes, 0], 1
    return tensor, axes, x._batch


def _count(tensor: Any, axes: Sequence[int], given: int) -> int:
    count = 1
    for axis in axes:
        count *= tensor.shape[axis]
    return given or count


def _all(x: Expression) -> range:
    return range(x._tensor.ndim - (x._batch != 1))


def _sum(x: Expression, dims: Sequence[int], over_batch: bool) -> Expression:
    tensor, axes, batch = _over(x, dims, over_batch)
    return Expression(tensor.sum(axes) if axes else tensor, batch)


def _moment(x: Expression, dims: Sequence[int], over_batch: bool, order: int, n: int) -> Expression:
    tensor, axes, batch = _over(x, dims, over_batch)
    powers = tensor if order == 1 else tensor**order
    return Expression(powers.sum(axes) / _count(tensor, axes, n) if axes else powers, batch)


def _deviation(x: Expression, dims: Sequence[int], over_batch: bool, n: int) -> Expression:
    tensor, axes, batch = _over(x, dims, over_batch)
    if not axes:
        return Expression(tensor * 0, batch)
    count = _count(tensor, axes, n)
    centred = tensor - tensor.sum(axes, keepdim=True) / count
    return Expression(((centred * centred).sum(axes) / count).sqrt(), batch)


@operation
def sum_elems(x: Expression) -> Expression:
    """The sum of all elements, for each element of the batch."""
    return _sum(x, _all(x), False)


@operation
def sum_dim(x: Expression, d: Sequence[int], b: bool = False, n: int = 0) -> Expression:
    """The sum along the dimensions ``d``, which disappear; with ``b`` also over the batch; ``n`` must be 0.

    >>> import twofold.dynet as dy
    >>> dy.sum_dim(dy.inputTensor([[1, 2], [3, 4]]), [0]).value()
    [4.0, 6.0]
    """
    if n:
        raise ValueError(
            "sum_dim: a sum has no count to replace; n belongs to mean_dim, std_dim and moment_dim"
        )
    return _sum(x, d, b)


@operation
def sum_cols(x: Expression) -> Expression:
    """The sum of the columns of a matrix: ``sum_dim`` along dimension 1 under its name before DyNet 2.

    >>> import twofold.dynet as dy
    >>> dy.sum_cols(dy.inputTensor([[1, 2], [3, 4]])).value()
    [3.0, 7.0]
    """
    return _sum(x, [1], False)


@operation
def sum_batches(x: Expression) -> Expression:
    """The sum over the batch."""
    return Expression(x._tensor.sum(0)) if x._batch != 1 else x


@operation
def mean_elems(x: Expression) -> Expression:
    """The mean of all elements, for each element of the batch."""
    return _moment(x, _all(x), False, 1, 0)


@operation
def mean_dim(x: Expression, d: Sequence[int], b: bool, n: int = 0) -> Expression:
    """The mean along the dimensions ``d``, with ``b`` also over the batch; ``n`` replaces the count."""
    return _moment(x, d, b, 1, n)


@operation
def mean_batches(x: Expression) -> Expression:
    """The mean over the batch."""
    return _moment(x, (), True, 1, 0)


@operation
def moment_elems(x: Expression, r: int) -> Expression:
    """The mean of the powers ``r`` of all elements, for each element of the batch."""
    return _moment(x, _all(x), False, r, 0)


@operation
def moment_dim(x: Expression, d: Sequence[int], r: int, b: bool, n: int = 0) -> Expression:
    """The mean of the powers ``r`` along the dimensions ``d``, with ``b`` over the batch too; ``n``: another count."""
    return _moment(x, d, b, r, n)


@operation
def moment_batches(x: Expression, r: int) -> Expression:
    """The mean of the powers ``r`` over the batch."""
    return _moment(x, (), True, r, 0)


@operation
def std_elems(x: Expression) -> Expression:
    """The standard deviation of all elements (divided by their count), for each element of the batch."""
    return _deviation(x, _all(x), False, 0)


@operation
def std_dim(x: Expression, d: Sequence[int], b: bool, n: int = 0) -> Expression:
    """The standard deviation along the dimensions ``d``, with ``b`` also over the batch; ``n`` replaces the count."""
    return _deviation(x, d, b, n)


@operation
def std_batches(x: Expression) -> Expression:
    """The standard deviation over the batch."""
    return _deviation(x, (), True, 0)


@operation
def squared_norm(x: Expression) -> Expression:
    """The sum of the squares of all elements."""
    tensor = x._tensor
    return _sum(Expression(tensor * tensor, x._batch), _all(x), False)


@operation
def l2_norm(x: Expression) -> Expression:
    """The root of the sum of the squares of all elements."""
    squares = squared_norm(x)
    return Expression(squares._tensor.sqrt(), squares._batch)


@operation
def max_dim(x: Expression, d: int = 0) -> Expression:
    """The largest elements along dimension ``d``, which disappears."""
    return Expression(_reaching(x, d).max(-1 - d)[0], x._batch)


@operation
def min_dim(x: Expression, d: int = 0) -> Expression:
    """The smallest elements along dimension ``d``, which disappears."""
    return Expression(_reaching(x, d).min(-1 - d)[0], x._batch)


@operation
def cumsum(x: Expression, d: int = 0) -> Expression:
    """The sums of all elements up to each one along dimension ``d``."""
    return Expression(_reaching(x, d).cumsum(-1 - d), x._batch)


@operation
def logsumexp_dim(x: Expression, d: int = 0) -> Expression:
    """``log(sum(exp(x)))`` along dimension ``d``, which disappears."""
    return Expression(_reaching(x, d).logsumexp(-1 - d), x._batch)


def _folded(what: str, xs: Iterable[Expression], combine: Any) -> Expression:
    items = list(xs)
    if not items:
        raise ValueError(f"{what}: the list of expressions is empty")
    need_alike(what, *items)
    total = items[0]
    if all(x._batch == 1 for x in items):
        tensor = total._tensor
        for x in items[1:]:
            tensor = combine(tensor, x._tensor)
        return Expression(tensor)
    for x in items[1:]:
        a, b, batch = aligned(total, x)
        total = Expression(combine(a, b), batch)
    return total


def _add(a: Any, b: Any) -> Any:
    return a + b


@operation
def esum(xs: Iterable[Expression]) -> Expression:
    """The sum of a list of expressions, element by element.

    >>> import twofold.dynet as dy
    >>> dy.esum([dy.inputVector([1, 2]), dy.inputVector([3, 4])]).value()
    [4.0, 6.0]
    """
    return _folded("esum", xs, _add)


@operation
def average(xs: Iterable[Expression]) -> Expression:
    """The mean of a list of expressions, element by element."""
    items = list(xs)
    total = _folded("average", items, _add)
    return Expression(total._tensor / len(items), total._batch)


@operation
def emax(xs: Iterable[Expression]) -> Expression:
    """The largest of a list of expressions, element by element."""
    return _folded("emax", xs, lambda a, b: a.maximum(b))


@operation
def logsumexp(xs: Iterable[Expression]) -> Expression:
    """``log(sum(exp(x)))`` over a list of expressions, element by element."""
    return _folded("logsumexp", xs, lambda a, b: a.logaddexp(b))
