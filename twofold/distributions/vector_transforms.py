"""Transforms of vectors and matrices: onto the simplex, onto Cholesky factors, and parts side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.bernoulli import softplus
from twofold.distributions.distribution import arange
from twofold.distributions.multivariate import cholesky
from twofold.distributions.single_transforms import Transform, _Alike
from twofold.dtypes import Size, finfo
from twofold.errors import ShapeError
from twofold.ops.base import FUNCTIONS, ops

Tensor = _core.Tensor


class SoftmaxTransform(_Alike):
    """Vectors onto the simplex by the softmax; logarithms back. Not one to one, as a constant may be added."""

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, False

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(_Alike):
    """Vectors of n numbers onto simplices of n + 1: each sigmoid takes its share of what is left of a stick.

    Element i is shifted by -log(n - i), so that zeros become equal shares. Source: the Stan reference manual,
    section on unit simplexes.
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _offset(self, count: int, like: Tensor) -> Tensor:
        return (count - arange(count, like)).log()

    def _call(self, x: Tensor) -> Tensor:
        shifted = x - self._offset(x.shape[-1], x)
        # logarithms of what is taken, and of what is left before each
        taken, kept = ops.logsigmoid(shifted), ops.logsigmoid(-shifted).cumsum(-1)
        before = ops.pad(kept, (1, 0))
        return (ops.pad(taken, (0, 1)) + before).exp()

    def _inverse(self, y: Tensor) -> Tensor:
        shares = y[..., :-1]
        left = (1 - shares.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return shares.log() - left.log() + self._offset(shares.shape[-1], y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shifted = x - self._offset(x.shape[-1], x)
        return (y[..., :-1].log() - softplus(shifted)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return _lengthened(shape, 1)

    def inverse_shape(self, shape: Any) -> Any:
        return _lengthened(shape, -1)


def _lengthened(shape: Any, more: int) -> Size:
    if not len(shape) or shape[-1] + more < 0:
        raise ShapeError(f"StickBreakingTransform: shape {tuple(shape)}", "Use vectors.")
    return Size((*shape[:-1], shape[-1] + more))


class LowerCholeskyTransform(_Alike):
    """Matrices onto lower triangular ones with a positive diagonal, by its exponential."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + ops.diag_embed(ops.diagonal(x, 0, -2, -1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + ops.diag_embed(ops.diagonal(y, 0, -2, -1).log())


class PositiveDefiniteTransform(_Alike):
    """Matrices onto positive definite ones: ``LowerCholeskyTransform`` times its transpose."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(cholesky(y))


def _size_of_matrix(count: int) -> int:
    size = round((0.25 + 2 * count) ** 0.5 + 0.5)
    if size * (size - 1) // 2 != count:
        raise ShapeError(
            f"CorrCholeskyTransform: vectors of {count}",
            "Use as many as are below a diagonal: n (n - 1) / 2.",
        )
    return size


class CorrCholeskyTransform(_Alike):
    """Vectors of n (n - 1) / 2 numbers onto Cholesky factors of correlation matrices of n rows.

    The tangents hyperbolic of the numbers are partial correlations, row by row; each takes its share of what is left
    of the length 1 of its row. Source: the Stan reference manual, section on Cholesky factors of correlation matrices.
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky

    def _positions(self, size: int) -> Tensor:
        rows, columns = FUNCTIONS["tril_indices"](size, size, -1)
        return rows * size + columns

    def _matrix(self, vector: Tensor, size: int) -> Tensor:
        flat = ops.zeros((*vector.shape[:-1], size * size), dtype=vector.dtype)
        positions = self._positions(size).expand(tuple(vector.shape))
        return ops.scatter(flat, -1, positions, vector).reshape((*vector.shape[:-1], size, size))

    def _call(self, x: Tensor) -> Tensor:
        size = _size_of_matrix(x.shape[-1])
        edge = finfo(x.dtype).eps
        shares = self._matrix(x.tanh().clamp(-1 + edge, 1 - edge), size)
        # logarithms of what is left of the squared length of each row, before each column
        left = ops.pad((-(shares * shares)).log1p().cumsum(-1)[..., :-1], (1, 0))
        identity = FUNCTIONS["eye"](size, dtype=x.dtype)
        return (shares + identity) * (0.5 * left).exp()

    def _inverse(self, y: Tensor) -> Tensor:
        size = y.shape[-1]
        left = 1 - ops.pad((y * y).cumsum(-1)[..., :-1], (1, 0))
        shares = y / left.clamp(min=finfo(y.dtype).tiny).sqrt()
        flat = shares.reshape((*y.shape[:-2], size * size))
        positions = self._positions(size).expand((*y.shape[:-2], size * (size - 1) // 2))
        return ops.gather(flat, -1, positions).atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Of the shares' tangents, and of the root of what was left before each of them."""
        size = y.shape[-1]
        left = (1 - (y * y).cumsum(-1)).clamp(min=finfo(y.dtype).tiny).log()
        # in column j of row i stands the length left behind column j, as of columns 0 ... i - 2
        below = FUNCTIONS["ones"]((size, size), dtype=y.dtype).tril(-2)
        tangents = 2 * (0.6931471805599453 - x - softplus(-2 * x))
        return 0.5 * (left * below).sum((-2, -1)) + tangents.sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        size = _size_of_matrix(shape[-1])
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ShapeError(f"CorrCholeskyTransform: shape {tuple(shape)}", "Use square matrices.")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class _Parted(Transform):
    """Transforms side by side along an axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = [part.with_cache(cache_size) for part in tseq], dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.transforms)

    def _split(self, value: Tensor, inverse: bool) -> Sequence[Tensor]:
        return ops.unbind(value, self.dim)

    def _joined(self, values: Sequence[Tensor]) -> Tensor:
        return ops.stack(values, self.dim)

    def _each(self, value: Tensor, inverse: bool) -> Tensor:
        parts = zip(self.transforms, self._split(value, inverse), strict=True)
        return self._joined([part._inv_call(piece) if inverse else part(piece) for part, piece in parts])

    def _call(self, x: Tensor) -> Tensor:
        return self._each(x, False)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._each(y, True)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pieces = zip(self.transforms, self._split(x, False), self._split(y, True), strict=True)
        return self._joined([part.log_abs_det_jacobian(before, after) for part, before, after in pieces])


class StackTransform(_Parted):
    """One transform for each slice along an axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    @property
    def domain(self) -> Any:
        return constraints.stack([part.domain for part in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        return constraints.stack([part.codomain for part in self.transforms], self.dim)


class CatTransform(_Parted):
    """One transform for each piece along an axis, of the given lengths (default: 1 each)."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = list(lengths or [1] * len(self.transforms))

    @property
    def length(self) -> int:
        """The length of the axis."""
        return sum(self.lengths)

    def _split(self, value: Tensor, inverse: bool) -> Sequence[Tensor]:
        return ops.split(value, self.lengths, self.dim)

    def _joined(self, values: Sequence[Tensor]) -> Tensor:
        return ops.cat(values, self.dim)

    @property
    def domain(self) -> Any:
        return constraints.cat([part.domain for part in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        return constraints.cat([part.codomain for part in self.transforms], self.dim, self.lengths)
