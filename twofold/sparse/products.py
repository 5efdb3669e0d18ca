"""Products of a sparse matrix with a dense and with a sparse one, in as many steps as there are terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twofold import _core, dtypes
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ops.base import ops

if TYPE_CHECKING:
    from twofold.sparse.coordinates import SparseTensor

Tensor = _core.Tensor


def _check(one: SparseTensor, two: Any) -> None:
    if not hasattr(two, "is_sparse"):
        raise ArgumentError(f"mm: mat2 is {two!r}", "Give a sparse or dense matrix.")
    fit = one.ndim == two.ndim == 2 and one.sparse_dim() == 2 and one.shape[1] == two.shape[0]
    if not fit or (two.is_sparse and two.sparse_dim() != 2):
        what = f"mm: shapes {tuple(one.shape)} and {tuple(two.shape)}"
        raise ShapeError(
            what, "Give matrices of [rows, inner] and [inner, columns], without dense axes where sparse."
        )
    if one.dtype is not two.dtype:
        raise DTypeError(f"mm: dtypes {one.dtype.name} and {two.dtype.name}", "Make them the same.")


def dense_product(sparse: SparseTensor, dense: Tensor) -> Tensor:
    """Each value times the row of ``dense`` that it meets, added at its own row."""
    _check(sparse, dense)
    rows, columns = sparse._indices()
    terms = ops.index_select(dense, 0, columns) * ops.unsqueeze(sparse._values(), 1)
    return ops.index_add(ops.zeros((sparse.shape[0], dense.shape[1]), dtype=dense.dtype), 0, rows, terms)


def sparse_product(one: SparseTensor, two: SparseTensor) -> SparseTensor:
    """Each value of ``one`` times the values in the row of ``two`` that it meets, at most one for each coordinate."""
    _check(one, two)
    right = two.coalesce()
    counts = ops.bincount(right._indices()[0], minlength=right.shape[0])
    starts = ops.cumsum(counts, 0) - counts
    rows, columns = one._indices()
    met = ops.index_select(counts, 0, columns)  # how many terms each value of the left takes part in
    left = ops.repeat_interleave(ops.arange(one._nnz()), met)
    before = ops.index_select(ops.cumsum(met, 0) - met, 0, left)
    inside = ops.arange(left.shape[0], dtype=dtypes.int64) - before
    terms = ops.index_select(ops.index_select(starts, 0, columns), 0, left) + inside
    indices = ops.stack([ops.index_select(rows, 0, left), ops.index_select(right._indices()[1], 0, terms)], 0)
    values = ops.index_select(one._values(), 0, left) * ops.index_select(right._values(), 0, terms)
    return type(one)(indices, values, (one.shape[0], two.shape[1])).coalesce()
