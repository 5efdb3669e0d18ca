"""Rules of the Kullback-Leibler divergence, KL(p || q) = E_p[log p(x) - log q(x)].

Pairs of one family have closed forms of differences. Others are -entropy(p) - E_p[log q(x)], where the expectation
needs but the mean, the variance, E[log x] or E[exp(-t x)] of p. Where q misses a part of the support of p it is
infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.distributions.bernoulli import (
    Bernoulli,
    Binomial,
    ContinuousBernoulli,
    Geometric,
    Poisson,
    softplus,
)
from twofold.distributions.categorical import Categorical, OneHotCategorical
from twofold.distributions.combined import Independent, TransformedDistribution
from twofold.distributions.distribution import Distribution
from twofold.distributions.divergence import kl_divergence, register_kl, same_axes
from twofold.distributions.gamma import Beta, Dirichlet, Exponential, Gamma, InverseGamma, log_beta
from twofold.distributions.location_scale import Cauchy, Gumbel, HalfCauchy, Laplace, Uniform
from twofold.distributions.matrices import Wishart
from twofold.distributions.multivariate import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    half_log_determinant,
)
from twofold.distributions.normal import HALF_LOG_2_PI, HalfNormal, LogNormal, Normal
from twofold.distributions.powers import Pareto, Weibull
from twofold.distributions.utils import EULER, sum_rightmost, where
from twofold.ops.base import FUNCTIONS, broadcast_shapes, ops

Tensor = _core.Tensor

_solve = FUNCTIONS["linalg.solve_triangular"]


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    """Infinity of the common batch shape."""
    shape = broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape))
    return FUNCTIONS["full"](shape, math.inf, dtype=p.mean.dtype)


# Pairs of one family


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    success = where(p.probs == 0, 0.0, p.probs * (softplus(-q.logits) - softplus(-p.logits)))
    failure = where(p.probs == 1, 0.0, (1 - p.probs) * (softplus(q.logits) - softplus(p.logits)))
    certain = ((q.probs == 0) & (p.probs > 0)) | ((q.probs == 1) & (p.probs < 1))
    return where(certain, math.inf, success + failure)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    each = _bernoulli(Bernoulli(p.probs, validate_args=False), Bernoulli(q.probs, validate_args=False))
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "kl_divergence: Binomial p has fewer trials than q. Use equal total_counts."
        )
    return where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    each = p.probs * (p.logits - q.logits)
    each = where(q.probs == 0, math.inf, each)
    return where(p.probs == 0, 0.0, each).sum(-1)


register_kl(OneHotCategorical, OneHotCategorical)(_categorical)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - ops.logsigmoid(-q.logits) * (1 / p.probs - 1) - q.probs.log()


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return ops.xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    return -p.entropy() - _mean_of_continuous_bernoulli(p, q)


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return 0.5 * (ratio * ratio + apart * apart - 1) - ratio.log()


@register_kl(LogNormal, LogNormal)
def _log_normal(p: LogNormal, q: LogNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(HalfCauchy, HalfCauchy)
def _half_cauchy(p: HalfCauchy, q: HalfCauchy) -> Tensor:
    return _cauchy(p.base_dist, q.base_dist)


@register_kl(InverseGamma, InverseGamma)
def _inverse_gamma(p: InverseGamma, q: InverseGamma) -> Tensor:
    return _gamma(p.base_dist, q.base_dist)


@register_kl(Weibull, Weibull)
def _weibull(p: Weibull, q: Weibull) -> Tensor:
    """Source: Bauckhage, Computing the Kullback-Leibler Divergence between two Weibull Distributions, 2013."""
    ratio, scales = q.concentration / p.concentration, (p.scale / q.scale).log()
    grown = (q.concentration * scales + ops.lgamma(1 + ratio)).exp()
    return -ratio.log() - q.concentration * scales + EULER * (ratio - 1) + grown - 1


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    ratio = q.rate / p.rate
    a, b = p.concentration, q.concentration
    return ops.lgamma(b) - ops.lgamma(a) + (a - b) * ops.digamma(a) - b * ratio.log() + a * (ratio - 1)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    one, zero = p.concentration1, p.concentration0
    rest = (q.concentration1 - one) + (q.concentration0 - zero)
    weighted = (one - q.concentration1) * ops.digamma(one) + (zero - q.concentration0) * ops.digamma(zero)
    normalisers = log_beta(q.concentration1, q.concentration0) - log_beta(one, zero)
    return normalisers + weighted + rest * ops.digamma(one + zero)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    normalisers = ops.lgamma(total) - ops.lgamma(b.sum(-1)) + (ops.lgamma(b) - ops.lgamma(a)).sum(-1)
    return normalisers + ((a - b) * (ops.digamma(a) - ops.digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return apart / q.scale + ratio * (-apart / p.scale).exp() - ratio.log() - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """Source: Chyzak and Nielsen, A Closed-form Formula for the KL Divergence between Cauchy Distributions, 2019."""
    total, apart = p.scale + q.scale, p.loc - q.loc
    return ((total * total + apart * apart) / (4 * p.scale * q.scale)).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    apart = (q.loc - p.loc) / q.scale
    grown = (apart + ops.lgamma(1 + ratio)).exp()
    return -ratio.log() - apart + EULER * (ratio - 1) + grown - 1


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    scales, ratio = (p.scale / q.scale).log(), q.alpha / p.alpha
    return where(p.scale < q.scale, math.inf, q.alpha * scales - ratio.log() + ratio - 1)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, found)


# Vectors


def _moved(factor_p: Tensor, factor_q: Tensor, apart: Tensor) -> Tensor:
    """The trace of Q^-1 P and the square of the distance of means, by the Cholesky factor of Q."""
    square = _solve(factor_q, factor_p, upper=False)
    moved = _solve(factor_q, apart.unsqueeze(-1), upper=False)
    return (square * square).sum((-2, -1)) + (moved * moved).sum((-2, -1))


def _factors(distribution: Any) -> tuple[Tensor, Tensor]:
    """A matrix whose product with its transpose is the covariance, and half the log-determinant of that."""
    if isinstance(distribution, MultivariateNormal):
        return distribution.scale_tril, half_log_determinant(distribution.scale_tril)
    diagonal = ops.diag_embed(distribution.cov_diag.sqrt())
    return ops.cat([distribution.cov_factor, diagonal], -1), distribution.half_log_determinant()


def _normal_vectors(p: Any, q: Any) -> Tensor:
    same_axes(p, q)
    (factor_p, half_p), (_, half_q) = _factors(p), _factors(q)
    square = _moved(factor_p, q.scale_tril, p.loc - q.loc)
    return half_q - half_p + 0.5 * (square - p.event_shape[0])


for _one in (MultivariateNormal, LowRankMultivariateNormal):
    for _other in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_one, _other)(_normal_vectors)


@register_kl(Wishart, Wishart)
def _wishart(p: Wishart, q: Wishart) -> Tensor:
    same_axes(p, q)
    size = p.event_shape[0]
    scales = half_log_determinant(q.scale_tril) - half_log_determinant(p.scale_tril)
    trace = _moved(p.scale_tril, q.scale_tril, ops.zeros((size,), dtype=p.df.dtype))
    shapes = ops.mvlgamma(0.5 * q.df, size) - ops.mvlgamma(0.5 * p.df, size)
    return q.df * scales + 0.5 * p.df * (trace - size) + shapes + 0.5 * (p.df - q.df) * p._digammas()


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: Independent with different reinterpreted_batch_ndims.")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms:
        raise NotImplementedError("kl_divergence: distributions transformed by different functions.")
    same_axes(p, q)
    return kl_divergence(p.base_dist, q.base_dist)


# Means under p of log q(x), by the class of q


def _mean_of_normal(p: Distribution, q: Normal) -> Tensor:
    apart = p.mean - q.loc
    square = (p.variance + apart * apart) / (q.scale * q.scale)
    return -0.5 * square - q.scale.log() - HALF_LOG_2_PI


def _mean_of_exponential(p: Distribution, q: Exponential) -> Tensor:
    return q.rate.log() - q.rate * p.mean


def _mean_of_gamma(p: Distribution, q: Gamma) -> Tensor:
    a = q.concentration
    return a * q.rate.log() - ops.lgamma(a) + (a - 1) * _of_class(_MEAN_LOG, p) - q.rate * p.mean


def _mean_of_beta(p: Distribution, q: Beta) -> Tensor:
    one, zero = q.concentration1, q.concentration0
    rest = (zero - 1) * _of_class(_MEAN_LOG_REST, p)
    return (one - 1) * _of_class(_MEAN_LOG, p) + rest - log_beta(one, zero)


def _mean_of_continuous_bernoulli(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    return p.mean * q.logits - softplus(q.logits) + q._log_normaliser()


def _mean_of_gumbel(p: Distribution, q: Gumbel) -> Tensor:
    grown = _of_class(_MEAN_EXP, p, 1 / q.scale) * (q.loc / q.scale).exp()
    return -q.scale.log() - (p.mean - q.loc) / q.scale - grown


def _mean_of_laplace(p: Normal, q: Laplace) -> Tensor:
    """The mean distance of a normal variable from a point."""
    apart = (p.loc - q.loc) / p.scale
    distance = math.sqrt(2 / math.pi) * (-0.5 * apart * apart).exp() + apart * ops.erf(apart * math.sqrt(0.5))
    return -(2 * q.scale).log() - p.scale * distance / q.scale


def _mean_of_uniform(p: Distribution, q: Uniform) -> Tensor:
    inside = (q.low <= 0) & (q.high >= 1)
    return where(inside, -(q.high - q.low).log(), -math.inf)


def _mean_of_pareto(p: Distribution, q: Pareto) -> Tensor:
    found = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _of_class(_MEAN_LOG, p)
    return where(p.low < q.scale, -math.inf, found)  # type: ignore[attr-defined]


def _mean_log_of_uniform(p: Uniform) -> Tensor:
    """Of values on the positive side; NaN otherwise."""
    return (ops.xlogy(p.high, p.high) - ops.xlogy(p.low, p.low)) / (p.high - p.low) - 1


_MEAN_LOG: dict[type, Callable[[Any], Tensor]] = {
    Exponential: lambda p: -EULER - p.rate.log(),
    Gamma: lambda p: ops.digamma(p.concentration) - p.rate.log(),
    Beta: lambda p: ops.digamma(p.concentration1) - ops.digamma(p.concentration1 + p.concentration0),
    Pareto: lambda p: p.scale.log() + 1 / p.alpha,
    Uniform: _mean_log_of_uniform,
}
"""E[log x]."""

_MEAN_LOG_REST: dict[type, Callable[[Any], Tensor]] = {
    Beta: lambda p: ops.digamma(p.concentration0) - ops.digamma(p.concentration1 + p.concentration0),
    Uniform: lambda p: _mean_log_of_uniform(Uniform(1 - p.high, 1 - p.low, validate_args=False)),
}
"""E[log(1 - x)]."""

_MEAN_EXP: dict[type, Callable[[Any, Any], Tensor]] = {
    Exponential: lambda p, t: p.rate / (p.rate + t),
    Gamma: lambda p, t: (-p.concentration * (t / p.rate).log1p()).exp(),
    Normal: lambda p, t: (0.5 * t * t * p.scale * p.scale - t * p.loc).exp(),
    Uniform: lambda p, t: ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low)),
}
"""E[exp(-t x)]."""


def _of_class(table: dict[type, Callable[..., Tensor]], p: Distribution, *rest: Any) -> Tensor:
    """What a table gives for the class of p or the nearest one that it derives from."""
    return next(table[one] for one in type(p).__mro__ if one in table)(p, *rest)


_MEANS: dict[type, tuple[Callable[[Any, Any], Tensor], tuple[type, ...]]] = {
    Normal: (
        _mean_of_normal,
        (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform),
    ),
    Exponential: (_mean_of_exponential, (Beta, ContinuousBernoulli, Gamma, Pareto)),
    Gamma: (_mean_of_gamma, (Beta, Exponential, Pareto)),
    Beta: (_mean_of_beta, ()),
    ContinuousBernoulli: (_mean_of_continuous_bernoulli, (Beta,)),
    Gumbel: (_mean_of_gumbel, (Exponential, Gamma, Normal, Uniform)),
    Laplace: (_mean_of_laplace, (Normal,)),
    Uniform: (_mean_of_uniform, (Beta, ContinuousBernoulli)),
    Pareto: (_mean_of_pareto, (Uniform,)),
}
"""By the class of q: the mean under p of log q(x), and the classes of p whose support q always covers."""


def _by_entropy(mean: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    return lambda p, q: -p.entropy() - mean(p, q)


for _q, (_mean, _classes) in _MEANS.items():
    for _p in _classes:
        register_kl(_p, _q)(_by_entropy(_mean))


def _from_uniform(
    mean: Callable[[Any, Any], Tensor], low: float, high: float
) -> Callable[[Any, Any], Tensor]:
    """From a uniform distribution that may reach beyond the support of the other, [low, high]."""

    def rule(p: Uniform, q: Distribution) -> Tensor:
        beyond = (p.low < low) | (p.high > high)
        return where(beyond, math.inf, -p.entropy() - mean(p, q))

    return rule


for _q, _high in ((Exponential, math.inf), (Gamma, math.inf), (Beta, 1.0), (ContinuousBernoulli, 1.0)):
    register_kl(Uniform, _q)(_from_uniform(_MEANS[_q][0], 0.0, _high))


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


_UNCOVERED: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
"""By the class of p: classes of q that never cover its support."""

for _p, _classes in _UNCOVERED.items():
    for _q in _classes:
        register_kl(_p, _q)(_infinite)
