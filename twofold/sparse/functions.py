"""The functions of ``torch.sparse``."""

from __future__ import annotations

import builtins
import math
from typing import Any

from twofold import _core
from twofold.dtypes import as_dtype
from twofold.errors import ShapeError
from twofold.ops.base import normalize_axis, ops
from twofold.sparse.coordinates import SparseTensor

Tensor = _core.Tensor


def mm(mat1: Any, mat2: Any) -> Any:
    """The matrix product of a sparse matrix with a dense one (dense), or of two sparse ones (sparse).

    >>> import twofold as torch
    >>> x = torch.sparse_coo_tensor([[0, 1], [1, 1]], [2.0, 3.0], (2, 2))
    >>> torch.sparse.mm(x, torch.eye(2))
    tensor([[0., 2.],
            [0., 3.]])
    """
    return mat1 @ mat2


def addmm(mat: Tensor, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)`` with a sparse ``mat1``.

    >>> import twofold as torch
    >>> x = torch.sparse_coo_tensor([[0], [1]], [2.0], (2, 2))
    >>> torch.sparse.addmm(torch.ones(2, 2), x, torch.eye(2), alpha=10)
    tensor([[ 1., 21.],
            [ 1.,  1.]])
    """
    return beta * mat + alpha * mm(mat1, mat2)


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Any:
    """The sum over ``dim`` (default: all axes, a dense number): sparse as long as a sparse axis is left.

    >>> import twofold as torch
    >>> x = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> torch.sparse.sum(x), torch.sparse.sum(x, 0).values()
    (tensor(12.), tensor([4., 8.]))
    """
    return input.sum(dim, dtype)


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The softmax along ``dim`` of the elements that are there; those that are not count as minus infinity.

    >>> import twofold as torch
    >>> x = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 4.0], (2, 3))
    >>> torch.sparse.softmax(x, 1).values()
    tensor([1.0000, 0.5000, 0.5000])
    """
    found, powers, totals, _ = _powers(input, dim, dtype)
    return found._with(powers / totals)


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of ``softmax``.

    >>> import twofold as torch
    >>> x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> torch.sparse.log_softmax(x, 1).values()
    tensor([0., 0.])
    """
    found, _, totals, shifted = _powers(input, dim, dtype)
    return found._with(shifted - ops.log(totals))


def _powers(input: SparseTensor, dim: int, dtype: Any) -> tuple[SparseTensor, Tensor, Tensor, Tensor]:
    """The coalesced tensor, its powers of e, for each their sum along the axis, and what they are powers of."""
    found = (input if dtype is None else input.to(as_dtype(dtype))).coalesce()
    axis, axes = normalize_axis(dim, found.ndim), found.sparse_dim()
    if axis >= axes or found.dense_dim():
        raise ShapeError(
            f"softmax: axis {dim} of {axes} sparse axes", "Give a sparse axis of a tensor without dense ones."
        )
    left = [one for one in range(axes) if one != axis]
    groups, count = found._flat(left), math.prod(found.shape[one] for one in left)
    values = found._values()
    lowest = ops.full((count,), -builtins.float("inf"), dtype=values.dtype)
    largest = ops.scatter_reduce(lowest, 0, groups, values.detach(), "amax")
    shifted = values - ops.index_select(largest, 0, groups)
    powers = ops.exp(shifted)
    totals = ops.index_add(ops.zeros((count,), dtype=values.dtype), 0, groups, powers)
    return found, powers, ops.index_select(totals, 0, groups), shifted


def at_coordinates(input: Tensor, mask: SparseTensor) -> SparseTensor:
    """``Tensor.sparse_mask``."""
    if tuple(input.shape) != tuple(mask.shape):
        raise ShapeError(
            f"sparse_mask: shapes {tuple(input.shape)} and {tuple(mask.shape)}", "Make them equal."
        )
    indices = mask._indices()
    return SparseTensor(indices, input[tuple(indices)], input.shape, mask.is_coalesced())
