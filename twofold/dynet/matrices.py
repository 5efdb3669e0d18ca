"""Matrix functions: affine transforms, inner products, inverses, contractions, normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dynet.expression import Expression, aligned, matrix_product, need_alike, of_rank
from twofold.dynet.graph import operation, state
from twofold.dynet.reductions import l2_norm, mean_elems, std_elems, sum_elems
from twofold.errors import ShapeError
from twofold.frontend.creation import from_numpy
from twofold.frontend.install import PUBLIC

_einsum = PUBLIC["einsum"]


def affine_transform(exprs: Sequence[Expression]) -> Expression:
    """``b + W1 * x1 + W2 * x2 + ...`` of the list ``[b, W1, x1, W2, x2, ...]``; ``b`` is added to each column.

    >>> import twofold.dynet as dy
    >>> b, w = dy.inputVector([1, 2]), dy.inputTensor([[1, 0], [2, 1]])
    >>> dy.affine_transform([b, w, dy.inputVector([3, 4])]).value()
    [4.0, 12.0]
    """
    if state.watcher is None and len(exprs) == 3:
        bias, matrix, x = exprs
        if bias._batch == 1 and matrix._batch == 1 and matrix._tensor.ndim == 2 and x._tensor.ndim:
            try:
                return Expression(x._tensor @ matrix._tensor + bias._tensor, x._batch)
            except ShapeError:  # which is said in the order of dimensions here
                pass
    return _transformed(exprs)


@operation
def _transformed(exprs: Sequence[Expression]) -> Expression:
    exprs = list(exprs)
    if len(exprs) % 2 == 0:
        raise ValueError(f"affine_transform takes a bias and pairs of matrix and vector, not {len(exprs)}")
    if len(exprs) == 1:
        return exprs[0]
    total = matrix_product(exprs[1], exprs[2])
    for position in range(3, len(exprs), 2):
        a, b, batch = aligned(total, matrix_product(exprs[position], exprs[position + 1]))
        total = Expression(a + b, batch)
    a, b, batch = aligned(total, exprs[0])
    return Expression(a + b, batch)


def _sum_of_products(what: str, x: Expression, y: Expression) -> Expression:
    need_alike(what, x, y)
    a, b, batch = aligned(x, y)
    return sum_elems(Expression(a * b, batch))


@operation
def dot_product(x: Expression, y: Expression) -> Expression:
    """The sum of the products of all elements."""
    if x._batch == 1 and y._batch == 1 and x._tensor.ndim == 1 and y._tensor.ndim == 1:
        need_alike("dot_product", x, y)
        return Expression(x._tensor @ y._tensor)
    return _sum_of_products("dot_product", x, y)


@operation
def trace_of_product(x: Expression, y: Expression) -> Expression:
    """The trace of ``x`` times the transpose of ``y``."""
    return _sum_of_products("trace_of_product", x, y)


@operation
def inverse(x: Expression) -> Expression:
    """The inverse of a square matrix."""
    return Expression(of_rank(x, 2).inverse(), x._batch)


@operation
def logdet(x: Expression) -> Expression:
    """The logarithm of the determinant's absolute value."""
    return Expression(PUBLIC["linalg.slogdet"](of_rank(x, 2))[1], x._batch)


def _shifted(x: Expression, u: Expression, sign: int) -> Expression:
    """``sum_j u[j] * x[(i - sign * j) % n]`` for each ``i``."""
    a, b, batch = aligned(x, u)
    n = a.shape[-1]
    positions = numpy.arange(n)
    index = from_numpy((positions[:, None] - sign * positions[None, :]) % n)
    rows = a.index_select(a.ndim - 1, index.reshape(-1)).reshape(*a.shape[:-1], n, n)
    return Expression((rows @ b.unsqueeze(-1)).squeeze(-1), batch)


@operation
def circ_conv(u: Expression, v: Expression) -> Expression:
    """The circular convolution ``sum_j u[j] * v[(i - j) % n]``."""
    return _shifted(v, u, 1)


@operation
def circ_corr(u: Expression, v: Expression) -> Expression:
    """The circular correlation ``sum_j u[j] * v[(i + j) % n]``."""
    return _shifted(v, u, -1)


def _contracted(letters: str, *operands: Expression) -> Expression:
    """An Einstein sum over stored axes, with the letter ``z`` for the batch."""
    batch = max(x._batch for x in operands)
    inputs, result = letters.split("->")
    terms = [("z" if x._batch != 1 else "") + term for x, term in zip(operands, inputs.split(","))]
    text = ",".join(terms) + "->" + ("z" if batch != 1 else "") + result
    return Expression(_einsum(text, *[x._tensor for x in operands]), batch)


@operation
def contract3d_1d(x: Expression, y: Expression) -> Expression:
    """``sum_k x[i, j, k] * y[k]``."""
    return _contracted("kji,k->ji", x, y)


@operation
def contract3d_1d_bias(x: Expression, y: Expression, b: Expression) -> Expression:
    """``b[i, j] + sum_k x[i, j, k] * y[k]``."""
    return contract3d_1d(x, y) + b


@operation
def contract3d_1d_1d(x: Expression, y: Expression, z: Expression) -> Expression:
    """``sum_j sum_k x[i, j, k] * z[j] * y[k]``."""
    return _contracted("kji,k,j->i", x, y, z)


@operation
def contract3d_1d_1d_bias(x: Expression, y: Expression, z: Expression, b: Expression) -> Expression:
    """``b[i] + sum_j sum_k x[i, j, k] * z[j] * y[k]``."""
    return contract3d_1d_1d(x, y, z) + b


def _divided(x: Expression, y: Expression) -> Any:
    a, b, batch = aligned(x, y)
    return Expression(a / b, batch)


@operation
def layer_norm(x: Expression, g: Expression, b: Expression) -> Expression:
    """``g * (x - mean) / deviation + b`` over all elements, for each element of the batch.

    >>> import twofold.dynet as dy
    >>> dy.layer_norm(dy.inputVector([1, 3]), dy.inputVector([1, 2]), dy.inputVector([0, 5])).value()
    [-1.0, 7.0]
    """
    normal = _divided(x - mean_elems(x), std_elems(x))
    a, c, batch = aligned(normal, g)
    return Expression(a * c, batch) + b


@operation
def weight_norm(w: Expression, g: Expression) -> Expression:
    """``w`` with the norm ``g``."""
    a, b, batch = aligned(_divided(w, l2_norm(w)), g)
    return Expression(a * b, batch)
