"""Distributions of covariance and correlation matrices: Wishart, and Lewandowski, Kurowicka and Joe's."""

from __future__ import annotations

import math
from typing import Any

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.distribution import Distribution, arange
from twofold.distributions.gamma import Beta, log_gamma_variates
from twofold.distributions.multivariate import cholesky, factor_of, half_log_determinant, only_matrix
from twofold.distributions.utils import as_size, broadcast_all, lazy_property, sample_noise, without_gradients
from twofold.dtypes import finfo
from twofold.errors import ArgumentError
from twofold.ops.base import FUNCTIONS, broadcast_shapes, ops

Tensor = _core.Tensor

_solve = FUNCTIONS["linalg.solve_triangular"]
_log_gamma_of_dimension = FUNCTIONS["mvlgamma"]


class Wishart(Distribution):
    """Wishart distribution of positive definite matrices with ``df`` degrees of freedom and the mean ``df`` times V.

    One of V (``covariance_matrix``), its inverse, or its Cholesky factor is given. Samples are those of Bartlett, On
    the Theory of Statistical Regression, 1933.
    """

    arg_constraints = {
        "df": constraints.greater_than(0.0),
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = only_matrix(
            "Wishart",
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        size = matrix.shape[-1]
        (df,) = broadcast_all(df)
        batch = broadcast_shapes(tuple(df.shape), tuple(matrix.shape[:-2]))
        self.df = df.to(matrix.dtype).expand(batch)
        self.__dict__[name] = matrix.expand((*batch, size, size))
        super().__init__(batch, (size, size), validate_args)
        if self._validate_args and not self.df._is_symbolic and not bool((self.df > size - 1).all()):
            raise ArgumentError(
                f"Wishart: df {self.df.detach().numpy()} for matrices of {size} rows",
                f"Use more than {size - 1}.",
            )
        self._factor = factor_of(name, self.__dict__[name])

    @property
    def _size(self) -> int:
        return self._event_shape[0]

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of V."""
        return self._factor

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """V."""
        return self._factor @ self._factor.mT

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of V."""
        inverse = _solve(self._factor, FUNCTIONS["eye"](self._size, dtype=self.df.dtype), upper=False)
        return inverse.mT @ inverse

    def _column(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Tensor:
        return self._column(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """The most likely matrix; NaN unless df exceeds the number of rows by more than 1."""
        factor = self.df - self._size - 1
        return self._column(ops.where(factor > 0, factor, math.nan)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        whole = self.covariance_matrix
        diagonal = ops.diagonal(whole, 0, -2, -1)
        return self._column(self.df) * (whole * whole + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        halves = 0.5 * (self.df.unsqueeze(-1) - arange(self._size, self.df))
        squares = (log_gamma_variates(halves, shape[:-1]) + math.log(2)).exp().to(self.df.dtype)
        noise = sample_noise("normal", shape, self.df).tril(-1) + ops.diag_embed(squares.sqrt())
        factor = self._factor @ noise
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        size, half = self._size, 0.5 * self.df
        inner = cholesky(value)
        moved = _solve(self._factor, inner, upper=False)
        trace = (moved * moved).sum((-2, -1))
        normaliser = self.df * (0.5 * size * math.log(2) + half_log_determinant(self._factor))
        density = (self.df - size - 1) * half_log_determinant(inner) - 0.5 * trace
        return density - normaliser - _log_gamma_of_dimension(half, size)

    def _digammas(self) -> Tensor:
        """The sum of digamma of (df - i) / 2 over the rows."""
        return ops.digamma(0.5 * (self.df.unsqueeze(-1) - arange(self._size, self.df))).sum(-1)

    def entropy(self) -> Tensor:
        size = self._size
        scale = (size + 1) * (half_log_determinant(self._factor) + 0.5 * size * math.log(2))
        rest = 0.5 * self.df * size - 0.5 * (self.df - size - 1) * self._digammas()
        return scale + _log_gamma_of_dimension(0.5 * self.df, size) + rest


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices whose density is proportional to det ** (``concentration`` - 1).

    Source: Lewandowski, Kurowicka and Joe, Generating Random Correlation Matrices Based on Vines and Extended Onion
    Method, 2009, section 3.2: the squared length of what row i has below the diagonal is a beta variable of i / 2 and
    concentration + (dim - 1 - i) / 2.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if not isinstance(dim, int) or dim < 2:
            raise ArgumentError(f"LKJCholesky: dim {dim!r}", "Use 2 rows or more.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _fixed(self) -> dict[str, Any]:
        return {"dim": self.dim}

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return without_gradients(self._sample, as_size(sample_shape))

    def _sample(self, sample_shape: Any) -> Tensor:
        row = arange(self.dim - 1, self.concentration) + 1
        rest = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 1 - row)
        squares = Beta(0.5 * row, rest, validate_args=False).sample(sample_shape)
        squares = ops.pad(squares, (1, 0))
        directions = sample_noise("normal", self._extended_shape(sample_shape), self.concentration).tril(-1)
        lengths = (
            (directions * directions).sum(-1, keepdim=True).clamp(min=finfo(directions.dtype).tiny).sqrt()
        )
        below = squares.sqrt().unsqueeze(-1) * directions / lengths
        left = (1 - squares).clamp(min=finfo(directions.dtype).tiny)
        return below + ops.diag_embed(left.sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        rows = self.dim - 1
        powers = 2 * (self.concentration.unsqueeze(-1) - 1) + (rows - 1 - arange(rows, self.concentration))
        density = (powers * ops.diagonal(value, 0, -2, -1)[..., 1:].log()).sum(-1)
        alpha = self.concentration + 0.5 * rows
        normaliser = _log_gamma_of_dimension(alpha - 0.5, rows) - rows * ops.lgamma(alpha)
        return density - normaliser - 0.5 * rows * math.log(math.pi)
