"""Distributions with one axis of parameters, each beside SciPy's frozen distributions of the same parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from scipy import special, stats

import twofold as torch
from twofold import distributions as d


def t(*values: float) -> Any:
    return torch.tensor(list(values), dtype=torch.float64)


Case = tuple[Callable[[], Any], Callable[..., Any], list[tuple[float, ...]]]


def _case(made: Callable[..., Any], law: Callable[..., Any], *parameters: tuple[float, ...]) -> Case:
    """``made`` of columns of parameters, and ``law`` of each row."""
    return (lambda: made(*[t(*column) for column in zip(*parameters, strict=True)]), law, list(parameters))


class _Kumaraswamy(stats.rv_continuous):
    """As SciPy has none."""

    def _cdf(self, x: Any, p: Any, q: Any) -> Any:
        return 1 - (1 - x**p) ** q

    def _munp(self, n: int, p: Any, q: Any) -> Any:
        return q * special.beta(1 + n / p, q)

    def _pdf(self, x: Any, p: Any, q: Any) -> Any:
        return p * q * x ** (p - 1) * (1 - x**p) ** (q - 1)


_KUMARASWAMY = _Kumaraswamy(a=0, b=1, name="kumaraswamy")


CONTINUOUS: dict[str, Case] = {
    "Normal": _case(d.Normal, stats.norm, (0, 1), (-3, 0.2), (50, 20)),
    "LogNormal": _case(
        d.LogNormal, lambda m, s: stats.lognorm(s, scale=numpy.exp(m)), (0, 1), (-1, 0.2), (2, 0.5)
    ),
    "HalfNormal": _case(d.HalfNormal, lambda s: stats.halfnorm(scale=s), (1,), (0.1,), (30,)),
    "Uniform": _case(d.Uniform, lambda a, b: stats.uniform(a, b - a), (0, 1), (-2, 7)),
    "Laplace": _case(d.Laplace, stats.laplace, (0, 1), (-3, 0.2), (50, 20)),
    "Cauchy": _case(d.Cauchy, stats.cauchy, (0, 1), (-3, 0.2), (50, 20)),
    "HalfCauchy": _case(d.HalfCauchy, lambda s: stats.halfcauchy(scale=s), (1,), (0.1,), (30,)),
    "Gumbel": _case(d.Gumbel, stats.gumbel_r, (0, 1), (-3, 0.2), (50, 20)),
    "Pareto": _case(d.Pareto, lambda s, a: stats.pareto(a, scale=s), (1, 3), (0.2, 8), (5, 2.5)),
    "GeneralizedPareto": _case(
        d.GeneralizedPareto, lambda m, s, c: stats.genpareto(c, m, s), (0, 1, 0.2), (1, 2, 0), (-1, 3, -0.4)
    ),
    "Weibull": _case(
        d.Weibull, lambda s, c: stats.weibull_min(c, scale=s), (1, 0.5), (0.2, 1), (5, 3.5)
    ),
    "Kumaraswamy": _case(
        d.Kumaraswamy, _KUMARASWAMY, (1, 3), (2, 2.5)
    ),
    "Gamma": _case(
        d.Gamma, lambda a, r: stats.gamma(a, scale=1 / r), (0.2, 1), (1, 3), (4.5, 0.1), (300, 7)
    ),
    "Chi2": _case(d.Chi2, stats.chi2, (0.5,), (2,), (11,)),
    "InverseGamma": _case(
        d.InverseGamma, lambda a, r: stats.invgamma(a, scale=r), (3.5, 1), (9, 3)
    ),
    "Exponential": _case(d.Exponential, lambda r: stats.expon(scale=1 / r), (1,), (0.05,), (30,)),
    "Beta": _case(d.Beta, stats.beta, (0.5, 0.5), (1, 1), (2, 5), (40, 3)),
    "StudentT": _case(d.StudentT, stats.t, (3, 0, 1), (5, -2, 0.3), (50, 8, 4)),
    "FisherSnedecor": _case(d.FisherSnedecor, stats.f, (3, 7), (1, 12), (20, 6)),
    "ContinuousBernoulli": _case(d.ContinuousBernoulli, lambda p: _continuous_bernoulli(p), (0.1,), (0.93,)),
    "VonMises": _case(d.VonMises, lambda m, k: stats.vonmises(k, m), (0, 1), (1, 0.1), (-2, 40)),
}  # fmt: skip

DISCRETE: dict[str, Case] = {
    "Bernoulli": _case(d.Bernoulli, stats.bernoulli, (0.1,), (0.5,), (0.97,)),
    "Geometric": _case(d.Geometric, lambda p: stats.geom(p, -1), (0.1,), (0.5,), (0.97,)),
    "Binomial": _case(lambda p: d.Binomial(9, p), lambda p: stats.binom(9, p), (0.1,), (0.5,), (0.97,)),
    "NegativeBinomial": _case(
        d.NegativeBinomial, lambda n, p: stats.nbinom(n, 1 - p), (1, 0.5), (4.5, 0.3), (30, 0.8)
    ),
    "Poisson": _case(d.Poisson, stats.poisson, (0.3,), (6,), (50,)),
}


def _continuous_bernoulli(p: float) -> Any:
    """An exponential distribution cut at 1, turned round where p exceeds 1/2."""
    odds = numpy.log((1 - p) / p)
    if p > 0.5:
        return _Turned(stats.truncexpon(-odds, scale=-1 / odds))
    return stats.truncexpon(odds, scale=1 / odds)


class _Turned:
    """The distribution of 1 - x."""

    def __init__(self, law: Any) -> None:
        self.law = law

    def pdf(self, x: Any) -> Any:
        return self.law.pdf(1 - x)

    def logpdf(self, x: Any) -> Any:
        return self.law.logpdf(1 - x)

    def cdf(self, x: Any) -> Any:
        return self.law.sf(1 - x)

    def ppf(self, q: Any) -> Any:
        return 1 - self.law.isf(q)

    def mean(self) -> Any:
        return 1 - self.law.mean()

    def var(self) -> Any:
        return self.law.var()

    def entropy(self) -> Any:
        return self.law.entropy()

    def rvs(self, *args: Any, **kwargs: Any) -> Any:
        return 1 - self.law.rvs(*args, **kwargs)
