"""Normal vectors, with full covariances and with covariances of low rank plus a diagonal."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.distribution import Distribution
from twofold.distributions.normal import HALF_LOG_2_PI
from twofold.distributions.utils import lazy_property, sample_noise
from twofold.errors import ArgumentError
from twofold.ops.base import FUNCTIONS, broadcast_shapes, ops

Tensor = _core.Tensor

cholesky = FUNCTIONS["linalg.cholesky"]
_solve = FUNCTIONS["linalg.solve_triangular"]


def half_log_determinant(factor: Tensor) -> Tensor:
    """Half the log-determinant of the matrix with this Cholesky factor."""
    return ops.diagonal(factor, 0, -2, -1).log().sum(-1)


def solved(factor: Tensor, vector: Tensor) -> Tensor:
    """The inverse of a lower triangular matrix times vectors."""
    return _solve(factor, vector.unsqueeze(-1), upper=False).squeeze(-1)


def squared_distance(factor: Tensor, difference: Tensor) -> Tensor:
    """The squared length of vectors in the metric of the inverse of the matrix with this Cholesky factor."""
    whitened = solved(factor, difference)
    return (whitened * whitened).sum(-1)


def apply_matrix(matrix: Tensor, vector: Tensor) -> Tensor:
    """Matrices times vectors, both with leading axes."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def factor_of_inverse(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse: that of the matrix with both axes reversed, inverted and reversed again."""
    flipped = cholesky(ops.flip(precision, (-2, -1)))
    upper = ops.flip(flipped, (-2, -1)).mT
    identity = FUNCTIONS["eye"](precision.shape[-1], dtype=precision.dtype)
    return _solve(upper, identity, upper=False)


def only_matrix(owner: str, **given: Tensor | None) -> tuple[str, Tensor]:
    """The name and the value of the one matrix that is given; raises ArgumentError if it is none or several."""
    named = [(name, value) for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise ArgumentError(f"{owner}: {len(named)} of {', '.join(given)}", "Give exactly one of the three.")
    return named[0]


def factor_of(name: str, matrix: Tensor) -> Tensor:
    """The Cholesky factor of a covariance matrix, of the inverse of a precision matrix, or the factor given."""
    if name == "scale_tril":
        return matrix
    return cholesky(matrix) if name == "covariance_matrix" else factor_of_inverse(matrix)


class MultivariateNormal(Distribution):
    """Normal vectors with mean ``loc`` and one of covariance matrix, its inverse, or its Cholesky factor.

    >>> import twofold as torch
    >>> plain = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    >>> plain.log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = only_matrix(
            "MultivariateNormal",
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if loc.ndim < 1 or matrix.ndim < 2:
            raise ArgumentError(
                f"MultivariateNormal: loc {tuple(loc.shape)} and {name} {tuple(matrix.shape)}",
                "Give at least a vector and a matrix.",
            )
        size = broadcast_shapes(tuple(loc.shape[-1:]), tuple(matrix.shape[-1:]))
        batch = broadcast_shapes(tuple(loc.shape[:-1]), tuple(matrix.shape[:-2]))
        self.loc = loc.expand((*batch, *size))
        self.__dict__[name] = matrix.expand((*batch, *size, *size))
        super().__init__(batch, size, validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular matrix whose product with its transpose is the covariance."""
        return self._unbroadcasted_scale_tril.expand(
            (*self._batch_shape, *self._event_shape, *self._event_shape)
        )

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        return self.scale_tril @ self.scale_tril.mT

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        identity = FUNCTIONS["eye"](self._event_shape[0], dtype=self.loc.dtype)
        inverse = _solve(self._unbroadcasted_scale_tril, identity, upper=False)
        return (inverse.mT @ inverse).expand(self.scale_tril.shape)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return (
            (self._unbroadcasted_scale_tril * self._unbroadcasted_scale_tril)
            .sum(-1)
            .expand((*self._batch_shape, *self._event_shape))
        )

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = sample_noise("normal", self._extended_shape(sample_shape), self.loc)
        return self.loc + apply_matrix(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        square = 0.5 * squared_distance(self._unbroadcasted_scale_tril, value - self.loc)
        return (
            -square
            - half_log_determinant(self._unbroadcasted_scale_tril)
            - self._event_shape[0] * HALF_LOG_2_PI
        )

    def entropy(self) -> Tensor:
        found = half_log_determinant(self._unbroadcasted_scale_tril) + self._event_shape[0] * (
            0.5 + HALF_LOG_2_PI
        )
        return found.expand(self._batch_shape)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with the covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``.

    Determinants and inverses are those of a small matrix, by the lemma of Sylvester and the identity of Woodbury.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.ndim < 1 or cov_factor.ndim < 2 or cov_diag.ndim < 1:
            raise ArgumentError(
                "LowRankMultivariateNormal: too few axes", "Give a vector, a matrix and a vector."
            )
        size = loc.shape[-1]
        if cov_factor.shape[-2] != size or cov_diag.shape[-1] != size:
            raise ArgumentError(
                f"LowRankMultivariateNormal: cov_factor {tuple(cov_factor.shape)} and cov_diag "
                f"{tuple(cov_diag.shape)} for vectors of {size}",
                "Use (size, rank) and (size,).",
            )
        batch = broadcast_shapes(
            tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1])
        )
        self.loc, self.cov_diag = (value.expand((*batch, size)) for value in (loc, cov_diag))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        super().__init__(batch, (size,), validate_args=validate_args)

    @lazy_property
    def _scaled(self) -> Tensor:
        return self.cov_factor / self.cov_diag.unsqueeze(-1)

    @lazy_property
    def _capacitance_tril(self) -> Tensor:
        """The Cholesky factor of 1 + W^T D^-1 W."""
        rank = self.cov_factor.shape[-1]
        return cholesky(self.cov_factor.mT @ self._scaled + FUNCTIONS["eye"](rank, dtype=self.loc.dtype))

    def half_log_determinant(self) -> Tensor:
        """Half the log-determinant of the covariance."""
        return half_log_determinant(self._capacitance_tril) + 0.5 * self.cov_diag.log().sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The variances of the elements."""
        return (self.cov_factor * self.cov_factor).sum(-1) + self.cov_diag

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        return self.cov_factor @ self.cov_factor.mT + ops.diag_embed(self.cov_diag)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        inner = _solve(self._capacitance_tril, self._scaled.mT, upper=False)
        return ops.diag_embed(1 / self.cov_diag) - inner.mT @ inner

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        few = sample_noise("normal", (*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        return (
            self.loc
            + apply_matrix(self.cov_factor, few)
            + self.cov_diag.sqrt() * sample_noise("normal", shape, self.loc)
        )

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        rest = value - self.loc
        inner = apply_matrix(self._scaled.mT, rest)
        inner = solved(self._capacitance_tril, inner)
        square = (rest * rest / self.cov_diag).sum(-1) - (inner * inner).sum(-1)
        return -0.5 * square - self.half_log_determinant() - self._event_shape[0] * HALF_LOG_2_PI

    def entropy(self) -> Tensor:
        return self.half_log_determinant() + self._event_shape[0] * (0.5 + HALF_LOG_2_PI)
