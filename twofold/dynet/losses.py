"""Softmax and its relatives, and losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dynet.expression import Expression, aligned, need_alike, of_rank
from twofold.dynet.graph import operation, state
from twofold.dynet.reductions import sum_elems
from twofold.dynet.shapes import along_batch, indices_of
from twofold.frontend.creation import CREATION, from_numpy
from twofold.frontend.install import PUBLIC
from twofold.ir.op import REGISTRY

_record, _CLASS_LOSS = _core.record, REGISTRY["class_loss"]
_where, _log_softmax = PUBLIC["where"], PUBLIC["log_softmax"]


@operation
def softmax(x: Expression, d: int = 0) -> Expression:
    """``exp(x) / sum(exp(x))`` along dimension ``d``; raises ValueError where ``x`` has no such dimension."""
    count = max(len(x.dim()[0]), 1)
    if not 0 <= d < count:
        raise ValueError(
            f"reduction dimension must be < number of dimensions, {count}, was {d}. Give another d."
        )
    return Expression(of_rank(x, d + 1).softmax(-1 - d), x._batch)


@operation
def log_softmax(x: Expression, restrict: Sequence[int] | None = None) -> Expression:
    """The logarithm of ``softmax`` of each column; with ``restrict`` only these rows have a probability.

    >>> import twofold.dynet as dy
    >>> dy.log_softmax(dy.inputVector([1, 5, 1]), restrict=[0, 2]).value()
    [-0.6931471824645996, -inf, -0.6931471824645996]
    """
    tensor = of_rank(x, 1)
    if restrict is not None:
        allowed = numpy.zeros(tensor.shape[-1], bool)
        allowed[list(restrict)] = True
        tensor = _where(from_numpy(allowed), tensor, float("-inf"))
    return Expression(_log_softmax(tensor, -1), x._batch)


@operation
def sparsemax(x: Expression) -> Expression:
    """The nearest point to ``x`` whose elements are probabilities; many of them are 0.

    Source: Martins, Astudillo, From Softmax to Sparsemax, 2016.
    """
    tensor = of_rank(x, 1)
    ordered = tensor.sort(-1, descending=True)[0]
    ranks = CREATION["arange"](1, tensor.shape[-1] + 1).to(tensor.dtype)
    sums = ordered.cumsum(-1) - 1
    inside = (ordered * ranks > sums).to(tensor.dtype)
    count = inside.sum(-1, keepdim=True)
    threshold = ((ordered * inside).sum(-1, keepdim=True) - 1) / count
    return Expression((tensor - threshold).relu(), x._batch)


@operation
def constrained_softmax(x: Expression, y: Expression) -> Expression:
    """``softmax`` of ``x`` with the upper bounds ``y``.

    Source: Martins, Kreutzer, Learning What's Easy: Fully Differentiable Neural Easy-First Taggers, 2017.
    """
    scores, bounds, batch = aligned(x, y)
    bounded = CREATION["zeros_like"](scores).bool()
    for _ in range(scores.shape[-1]):  # each pass finds at least one more element at its bound, or none
        free = _where(bounded, float("-inf"), scores)
        mass = 1 - (bounds * bounded.to(bounds.dtype)).sum(-1, keepdim=True)
        shares = free.softmax(-1) * mass
        bounded = bounded | (shares.detach() > bounds.detach())
    return Expression(_where(bounded, bounds, shares), batch)


@operation
def _class_loss(x: Expression, v: int) -> Expression:
    tensor = of_rank(x, 1)
    if not 0 <= v < tensor.shape[-1]:
        size = tensor.shape[-1]
        raise IndexError(
            f"pickneglogsoftmax: element {v} of dimensions {x.dim()[0]}. Use one from 0 to {size - 1}."
        )
    return Expression(_record(_CLASS_LOSS, (), (tensor, int(v))), x._batch)


def pickneglogsoftmax(x: Expression, v: int) -> Expression:
    """``-log(softmax(x)[v])``.

    >>> import twofold.dynet as dy
    >>> round(dy.pickneglogsoftmax(dy.inputVector([0, 0]), 1).value(), 4)
    0.6931
    """
    tensor = x._tensor
    if state.watcher is None and v.__class__ is int and tensor.ndim == 1 and 0 <= v < len(tensor):
        return Expression(_record(_CLASS_LOSS, (), (tensor, v)))
    return _class_loss(x, v)


@operation
def pickneglogsoftmax_batch(x: Expression, vs: Sequence[int]) -> Expression:
    """``-log(softmax(x)[v])`` with one ``v`` for each element of the batch."""
    logs = along_batch(Expression(_log_softmax(of_rank(x, 1), -1), x._batch), vs, 0)
    return Expression(-logs._tensor, logs._batch)


def _margins(x: Expression, right: Expression, hot: Any, dim: int, margin: float) -> Expression:
    """The sum over the wrong elements along ``dim`` of how far they are inside of the margin."""
    scores = of_rank(x, dim + 1)
    chosen = right._tensor.unsqueeze(-1 - dim) if right._tensor.ndim else right._tensor
    inside = (scores - chosen + margin).relu()
    return Expression(_where(hot, 0.0, inside).sum(-1 - dim), right._batch)


def _hot(indices: Any, size: int) -> Any:
    return PUBLIC["one_hot"](indices, size).bool()


@operation
def hinge(x: Expression, v: int, m: float = 1.0) -> Expression:
    """The sum of ``max(0, m - x[v] + x[i])`` over all ``i`` but ``v``.

    >>> import twofold.dynet as dy
    >>> dy.hinge(dy.inputVector([1, 2, 3]), 1).value()
    2.0
    """
    return hinge_batch(x, [v] * x._batch, m)


@operation
def hinge_batch(x: Expression, vs: Sequence[int], m: float = 1.0) -> Expression:
    """``hinge`` with one ``v`` for each element of the batch."""
    hot = _hot(indices_of(vs), of_rank(x, 1).shape[-1])
    right = along_batch(x, vs, 0)
    return _margins(x, right, hot if right._batch != 1 else hot.squeeze(0), 0, m)


@operation
def hinge_dim(x: Expression, v: Sequence[int], d: int = 0, m: float = 1.0) -> Expression:
    """``hinge`` of each row or column of a matrix: ``v`` has one index along ``d`` for each of them."""
    tensor = of_rank(x, 2)
    positions = indices_of(v).unsqueeze(-1 - d)
    axis = tensor.ndim - 1 - d
    shape = list(tensor.shape)
    shape[axis] = 1
    right = tensor.gather(axis, positions.expand(*shape)).squeeze(axis)
    hot = _hot(indices_of(v), tensor.shape[axis])
    return _margins(x, Expression(right, x._batch), hot if d == 0 else hot.transpose(0, 1), d, m)


@operation
def squared_distance(x: Expression, y: Expression) -> Expression:
    """The sum of the squares of the differences."""
    need_alike("squared_distance", x, y)
    a, b, batch = aligned(x, y)
    return sum_elems(Expression((a - b).square(), batch))


@operation
def l1_distance(x: Expression, y: Expression) -> Expression:
    """The sum of the absolute differences."""
    need_alike("l1_distance", x, y)
    a, b, batch = aligned(x, y)
    return sum_elems(Expression((a - b).abs(), batch))


@operation
def huber_distance(x: Expression, y: Expression, c: float = 1.345) -> Expression:
    """The sum of half the squares of differences up to ``c``, and of ``c * (difference - c / 2)`` beyond."""
    need_alike("huber_distance", x, y)
    a, b, batch = aligned(x, y)
    far = (a - b).abs()
    return sum_elems(Expression(_where(far < c, far * far * 0.5, far * c - 0.5 * c * c), batch))


@operation
def binary_log_loss(x: Expression, y: Expression) -> Expression:
    """``-(y * log(x) + (1 - y) * log(1 - x))``, summed, of probabilities ``x`` of the answers ``y``."""
    need_alike("binary_log_loss", x, y)
    a, b, batch = aligned(x, y)
    positive = _where(b == 0.0, 0.0, b * a.log())
    negative = _where(b == 1.0, 0.0, (1 - b) * (1 - a).log())
    return sum_elems(Expression(-(positive + negative), batch))


@operation
def pairwise_rank_loss(x: Expression, y: Expression, m: float = 1.0) -> Expression:
    """``max(0, m - x + y)`` element by element."""
    need_alike("pairwise_rank_loss", x, y)
    a, b, batch = aligned(x, y)
    return Expression((b - a + m).relu(), batch)


@operation
def poisson_loss(log_lambda: Expression, x: int) -> Expression:
    """``-log(P(x))`` under the Poisson distribution with the logarithm of its rate."""
    rate = log_lambda._tensor
    constant = float(numpy.sum(numpy.log(numpy.arange(1, x + 1))))
    return Expression(rate.exp() + constant - rate * x, log_lambda._batch)
