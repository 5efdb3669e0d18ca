"""Divergences against sums and integrals of the densities."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest

import twofold as torch
from tests.distributions.families import t
from twofold import distributions as d

REAL = [
    d.Normal(t(0.3), t(0.8)),
    d.Normal(t(-1), t(1.5)),
    d.Laplace(t(0.5), t(0.7)),
    d.Gumbel(t(0.2), t(0.9)),
]
REAL += [d.Laplace(t(0), t(1)), d.Gumbel(t(-0.5), t(1.3)), d.StudentT(t(5))]
POSITIVE = [d.Exponential(t(1.3)), d.Exponential(t(0.4)), d.Gamma(t(2.5), t(1.2)), d.Gamma(t(1.5), t(2))]
POSITIVE += [d.Chi2(t(3)), d.LogNormal(t(0), t(0.5)), d.LogNormal(t(0.3), t(0.7)), d.HalfNormal(t(1))]
POSITIVE += [d.HalfNormal(t(2)), d.Weibull(t(1), t(1.5)), d.Weibull(t(1.3), t(2))]
UNIT = [d.Beta(t(2), t(3)), d.Beta(t(1.5), t(1.2)), d.Uniform(t(0), t(1)), d.Uniform(t(0.2), t(0.9))]
UNIT += [d.ContinuousBernoulli(t(0.2)), d.ContinuousBernoulli(t(0.5)), d.Uniform(t(-1), t(2))]
HEAVY = [
    d.Pareto(t(1), t(4)),
    d.Pareto(t(0.5), t(6)),
    d.Exponential(t(0.7)),
    d.Gamma(t(2), t(1)),
    d.Normal(t(0), t(3)),
]


def pairs(families: Any, *more: Any) -> list[tuple[Any, Any]]:
    found = []
    for p, q in itertools.product(families, (*families, *more)):
        try:
            d.kl_divergence(p, q)
        except NotImplementedError:
            continue
        found.append((p, q))
    return found


CASES = [
    *[(p, q, numpy.linspace(-45, 45, 40_001)) for p, q in pairs(REAL)],
    *[(p, q, numpy.geomspace(1e-12, 90, 40_001)) for p, q in pairs(POSITIVE, *REAL)],
    *[(p, q, numpy.linspace(1e-9, 1 - 1e-9, 40_001)) for p, q in pairs(UNIT[:-1], *REAL, *POSITIVE, UNIT[-1])],
    *[(p, q, numpy.geomspace(p.scale.item(), 1e4, 20_001)) for p, q in pairs(HEAVY[:2], *HEAVY)],
]  # fmt: skip


def name(p: Any, q: Any) -> str:
    return f"{p!r} {q!r}"


@pytest.mark.parametrize(("p", "q", "points"), CASES, ids=[name(p, q) for p, q, _ in CASES])
def test_against_the_integral(p: Any, q: Any, points: Any) -> None:
    found = d.kl_divergence(p, q).item()
    values = torch.tensor(points).unsqueeze(-1)
    d.Distribution.set_default_validate_args(False)
    before = [part._validate_args for part in (p, q)]
    p._validate_args = q._validate_args = False
    try:
        log_p, log_q = (part.log_prob(values).numpy()[:, 0] for part in (p, q))
    finally:
        d.Distribution.set_default_validate_args(True)
        p._validate_args, q._validate_args = before
    density = numpy.where(log_p > -700, numpy.exp(log_p), 0)
    with numpy.errstate(invalid="ignore"):
        inner = numpy.where(density > 0, density * (log_p - log_q), 0)
    integral = numpy.trapezoid(inner, points)
    if numpy.isinf(found):
        assert numpy.isinf(integral) or not (numpy.isfinite(log_q[density > 1e-12])).all() or _uncovered(p, q)
    else:
        assert abs(found - integral) < 5e-4 * (1 + abs(found))


def _uncovered(p: Any, q: Any) -> bool:
    """Whether the points leave out where q is zero."""
    return type(p.support) is not type(q.support) or str(p.support) != str(q.support)


COUNTS = [
    (d.Bernoulli(t(0.3)), d.Bernoulli(t(0.8)), 2), (d.Bernoulli(t(0.3)), d.Poisson(t(0.5)), 2),
    (d.Geometric(t(0.3)), d.Geometric(t(0.5)), 150), (d.Poisson(t(3)), d.Poisson(t(5)), 60),
    (d.Binomial(6, t(0.3)), d.Binomial(6, t(0.6)), 7),
]  # fmt: skip


@pytest.mark.parametrize(("p", "q", "count"), COUNTS, ids=[name(p, q) for p, q, _ in COUNTS])
def test_against_the_sum(p: Any, q: Any, count: int) -> None:
    values = torch.arange(count, dtype=torch.float64).unsqueeze(-1)
    log_p, log_q = p.log_prob(values), q.log_prob(values)
    total = (log_p.exp() * (log_p - log_q)).sum(0)
    numpy.testing.assert_allclose(d.kl_divergence(p, q).numpy(), total.numpy(), rtol=1e-9)


def test_classes_and_vectors() -> None:
    p, q = (d.Categorical(torch.tensor(w)) for w in ([0.2, 0.8, 0.0], [0.5, 0.25, 0.25]))
    wanted = 0.2 * numpy.log(0.2 / 0.5) + 0.8 * numpy.log(0.8 / 0.25)
    assert abs(d.kl_divergence(p, q).item() - wanted) < 1e-6 and d.kl_divergence(q, p).item() == numpy.inf
    a, b = numpy.array([[2.0, 0.3], [0.3, 1.0]]), numpy.array([[1.0, -0.2], [-0.2, 3.0]])
    m = numpy.array([1.0, -1.0])
    p = d.MultivariateNormal(torch.tensor(m), torch.tensor(a))
    q = d.MultivariateNormal(t(0, 0), torch.tensor(b))
    inverse = numpy.linalg.inv(b)
    ratio = numpy.linalg.slogdet(b)[1] - numpy.linalg.slogdet(a)[1]
    wanted = 0.5 * (numpy.trace(inverse @ a) + m @ inverse @ m - 2 + ratio)
    assert abs(d.kl_divergence(p, q).item() - wanted) < 1e-12
    low = d.LowRankMultivariateNormal(t(0, 0), torch.tensor([[0.5], [1.0]], dtype=torch.float64), t(1, 2))
    full = d.MultivariateNormal(low.loc, low.covariance_matrix)
    for one, other in ((p, low), (low, p)):
        same = d.kl_divergence(full if one is low else one, full if other is low else other)
        numpy.testing.assert_allclose(d.kl_divergence(one, other).numpy(), same.numpy(), rtol=1e-10)


def test_wishart() -> None:
    """The mean of the difference of the densities' logarithms over samples."""
    torch.manual_seed(2)
    scale = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    p = d.Wishart(t(5), covariance_matrix=scale)
    q = d.Wishart(t(4), covariance_matrix=torch.eye(2, dtype=torch.float64))
    drawn = p.sample((20_000,))
    found = d.kl_divergence(p, q).item()
    assert abs((p.log_prob(drawn) - q.log_prob(drawn)).mean().item() / found - 1) < 0.03
    assert abs(d.kl_divergence(p, p).item()) < 1e-12


def test_of_independent_and_transformed() -> None:
    p, q = (d.Normal(torch.zeros(2, 3) + k, torch.ones(2, 3)) for k in (0, 1))
    assert d.kl_divergence(d.Independent(p, 1), d.Independent(q, 1)).tolist() == [1.5, 1.5]
    turned = [d.TransformedDistribution(one, [d.AffineTransform(1.0, 2.0)]) for one in (p, q)]
    assert torch.equal(d.kl_divergence(*turned), d.kl_divergence(p, q))


def test_rules_of_the_user() -> None:
    class Mine(d.Normal):
        pass

    p, q = Mine(0.0, 1.0), d.Normal(0.0, 1.0)
    assert d.kl_divergence(p, q).item() == 0

    @d.register_kl(Mine, d.Normal)
    def _(p: Any, q: Any) -> str:
        return "mine"

    assert d.kl_divergence(p, q) == "mine" and d.kl_divergence(q, p).item() == 0
    with pytest.raises(NotImplementedError, match="no rule for StudentT and Normal"):
        d.kl_divergence(d.StudentT(3.0), q)
