"""Densities, distribution functions, moments, entropies and samples against SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
from scipy import stats

import twofold as torch
from tests.distributions.families import CONTINUOUS, DISCRETE, t
from twofold import distributions as d
from twofold.distributions import constraints

QUANTILES = (0.02, 0.3, 0.5, 0.8, 0.99)
WITHOUT_CDF = ("Beta", "StudentT", "FisherSnedecor", "VonMises")
CIRCULAR = ("VonMises",)
HEAVY = ("Cauchy", "HalfCauchy")


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(31)


def near(found: Any, wanted: Any, rtol: float = 1e-8) -> None:
    numpy.testing.assert_allclose(found.detach().numpy(), wanted, rtol=rtol, atol=1e-10)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_density(name: str) -> None:
    make, law, rows = CONTINUOUS[name]
    values = numpy.array([[law(*row).ppf(q) for row in rows] for q in QUANTILES])
    wanted = [[law(*row).logpdf(x) for row, x in zip(rows, line, strict=True)] for line in values]
    near(make().log_prob(torch.tensor(values)), wanted, 2e-7)


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if name not in WITHOUT_CDF])
def test_distribution_function_and_its_inverse(name: str) -> None:
    make, law, rows = CONTINUOUS[name]
    values = numpy.array([[law(*row).ppf(q) for row in rows] for q in QUANTILES])
    quantiles = numpy.broadcast_to(numpy.array(QUANTILES)[:, None], values.shape)
    near(make().cdf(torch.tensor(values)), quantiles, 2e-6)
    if name not in ("Gamma", "Chi2", "InverseGamma"):
        near(make().icdf(torch.tensor(quantiles.copy())), values, 2e-6)


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if name not in (*CIRCULAR, *HEAVY)])
def test_moments_and_entropy(name: str) -> None:
    make, law, rows = CONTINUOUS[name]
    made = make()
    near(made.mean, [law(*row).mean() for row in rows], 1e-6)
    near(made.variance, [law(*row).var() for row in rows], 1e-5)
    near(made.stddev, [law(*row).var() ** 0.5 for row in rows], 1e-5)
    if name != "FisherSnedecor":
        near(made.entropy(), [law(*row).entropy() for row in rows], 1e-5)


@pytest.mark.parametrize("name", DISCRETE)
def test_probabilities_and_moments(name: str) -> None:
    make, law, rows = DISCRETE[name]
    made = make()
    top = 2 if name == "Bernoulli" else 10 if name == "Binomial" else 12
    values = torch.arange(top, dtype=torch.float64).unsqueeze(-1)
    near(made.log_prob(values), [[law(*row).logpmf(k) for row in rows] for k in range(top)], 1e-9)
    near(made.mean, [law(*row).mean() for row in rows])
    near(made.variance, [law(*row).var() for row in rows])
    if name in ("Bernoulli", "Geometric", "Binomial"):
        near(made.entropy(), [law(*row).entropy() for row in rows], 1e-7)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_samples(name: str) -> None:
    make, law, rows = CONTINUOUS[name]
    drawn = make().sample((1500,)).numpy()
    assert drawn.shape == (1500, len(rows)) and drawn.dtype == numpy.float64
    for column, row in enumerate(rows):
        cdf = law(*row).cdf
        if name in CIRCULAR:
            turned = (drawn[:, column] - row[0] + numpy.pi) % (2 * numpy.pi) - numpy.pi
            assert stats.kstest(turned, law(0, row[1]).cdf).pvalue > 0.005
        else:
            assert stats.kstest(drawn[:, column], cdf).pvalue > 0.005


@pytest.mark.parametrize("name", DISCRETE)
def test_samples_of_integers(name: str) -> None:
    make, law, rows = DISCRETE[name]
    drawn = make().sample((3000,)).numpy()
    for column, row in enumerate(rows):
        mean, spread = law(*row).mean(), law(*row).std()
        assert abs(drawn[:, column].mean() - mean) < 4 * spread / 3000**0.5
        assert abs(drawn[:, column].std() / spread - 1) < 0.12
        assert (drawn[:, column] == drawn[:, column].round()).all() and drawn[:, column].min() >= 0


def test_vectors_against_scipy() -> None:
    alpha, point = numpy.array([0.5, 2.0, 4.0]), numpy.array([0.2, 0.3, 0.5])
    made, law = d.Dirichlet(torch.tensor(alpha)), stats.dirichlet(alpha)
    near(made.log_prob(torch.tensor(point)), law.logpdf(point))
    near(made.mean, law.mean())
    near(made.variance, law.var())
    near(made.entropy(), law.entropy())
    weights = numpy.array([0.2, 0.5, 0.3])
    counts = d.Multinomial(7, torch.tensor(weights))
    near(counts.log_prob(t(1, 4, 2)), stats.multinomial(7, weights).logpmf([1, 4, 2]))
    near(counts.entropy(), stats.multinomial(7, weights).entropy())
    near(d.Categorical(torch.tensor(weights)).entropy(), stats.entropy(weights))


MATRIX = numpy.array([[2.0, 0.6, -0.2], [0.6, 1.0, 0.1], [-0.2, 0.1, 0.5]])


@pytest.mark.parametrize("argument", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_normal_vectors(argument: str) -> None:
    mean, point = numpy.array([1.0, -1.0, 0.5]), numpy.array([[0.0, 0.0, 0.0], [2.0, -1.0, 1.0]])
    given = {
        "covariance_matrix": MATRIX,
        "precision_matrix": numpy.linalg.inv(MATRIX),
        "scale_tril": numpy.linalg.cholesky(MATRIX),
    }[argument]
    made = d.MultivariateNormal(torch.tensor(mean), **{argument: torch.tensor(given)})
    law = stats.multivariate_normal(mean, MATRIX)
    near(made.log_prob(torch.tensor(point)), law.logpdf(point))
    near(made.entropy(), law.entropy())
    near(made.covariance_matrix, MATRIX)
    near(made.precision_matrix, numpy.linalg.inv(MATRIX))
    near(made.variance, numpy.diag(MATRIX))
    drawn = made.sample((4000,)).numpy()
    numpy.testing.assert_allclose(drawn.mean(0), mean, atol=0.1)
    numpy.testing.assert_allclose(numpy.cov(drawn.T), MATRIX, atol=0.2)


def test_normal_vectors_of_low_rank() -> None:
    factor, diagonal = numpy.array([[1.0], [0.5], [-1.0]]), numpy.array([0.5, 1.0, 0.2])
    whole = factor @ factor.T + numpy.diag(diagonal)
    made = d.LowRankMultivariateNormal(t(1, 2, 3), torch.tensor(factor), torch.tensor(diagonal))
    law = stats.multivariate_normal([1, 2, 3], whole)
    near(made.log_prob(t(0, 0, 1)), law.logpdf([0, 0, 1]))
    near(made.entropy(), law.entropy())
    near(made.covariance_matrix, whole)
    near(made.precision_matrix, numpy.linalg.inv(whole))
    near(made.variance, numpy.diag(whole))
    near(made.scale_tril, numpy.linalg.cholesky(whole))
    drawn = made.sample((4000,)).numpy()
    numpy.testing.assert_allclose(numpy.cov(drawn.T), whole, atol=0.15)


def test_class_numbers_and_counts() -> None:
    weights = torch.tensor([[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]])
    chosen = d.Categorical(weights).sample((2000,)).numpy()
    assert chosen.shape == (2000, 2)
    for row in range(2):
        found = numpy.bincount(chosen[:, row], minlength=3) / 2000
        numpy.testing.assert_allclose(found, weights[row].numpy() / 4, atol=0.04)
    hot = d.OneHotCategorical(weights).sample((2000,)).numpy()
    numpy.testing.assert_allclose(hot.mean(0), weights.numpy() / 4, atol=0.04)
    counts = d.Multinomial(10, weights).sample((500,)).numpy()
    assert (counts.sum(-1) == 10).all()
    numpy.testing.assert_allclose(counts.mean(0), 10 * weights.numpy() / 4, atol=0.3)
    assert d.Multinomial(0, weights).sample((2,)).sum().item() == 0
    assert d.Categorical(weights).sample((0,)).shape == (0, 2)


def test_mixture() -> None:
    weights, means, scales = (0.3, 0.7), (-2.0, 1.0), (0.5, 1.5)
    made = d.MixtureSameFamily(d.Categorical(t(*weights)), d.Normal(t(*means), t(*scales)))
    parts = [stats.norm(m, s) for m, s in zip(means, scales, strict=True)]
    points = numpy.linspace(-4, 4, 9)
    density = sum(w * part.pdf(points) for w, part in zip(weights, parts, strict=True))
    near(made.log_prob(torch.tensor(points)), numpy.log(density))
    total = lambda x: sum(w * part.cdf(x) for w, part in zip(weights, parts, strict=True))
    near(made.cdf(torch.tensor(points)), total(points))
    near(made.mean, 0.1)
    near(made.variance, 0.3 * (0.25 + 4.41) + 0.7 * (2.25 + 0.81))
    drawn = made.sample((2000,)).numpy()
    assert drawn.shape == (2000,) and stats.kstest(drawn, total).pvalue > 0.01
    vectors = d.MixtureSameFamily(
        d.Categorical(torch.ones(4, 2)), d.Independent(d.Normal(torch.zeros(4, 2, 3), torch.ones(4, 2, 3)), 1)
    )
    assert vectors.sample((5,)).shape == (5, 4, 3) and vectors.mean.shape == (4, 3)
    assert vectors.log_prob(torch.zeros(4, 3)).shape == (4,)
    assert vectors.expand((6, 4)).sample().shape == (6, 4, 3)


@pytest.mark.parametrize("argument", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_wishart(argument: str) -> None:
    given = {
        "covariance_matrix": MATRIX,
        "precision_matrix": numpy.linalg.inv(MATRIX),
        "scale_tril": numpy.linalg.cholesky(MATRIX),
    }[argument]
    made = d.Wishart(t(4.5, 9), **{argument: torch.tensor(given)})
    laws = [stats.wishart(df, MATRIX) for df in (4.5, 9)]
    point = numpy.linalg.inv(MATRIX)
    near(made.log_prob(torch.tensor(point)), [law.logpdf(point) for law in laws])
    near(made.entropy(), [law.entropy() for law in laws])
    near(made.mean, [law.mean() for law in laws])
    near(made.variance, [law.var() for law in laws])
    near(made.mode[0], [[math.nan] * 3] * 3 if laws[0].mode() is None else laws[0].mode())
    drawn = made.sample((3000,)).numpy()
    numpy.testing.assert_allclose(drawn.mean(0), made.mean.numpy(), atol=0.6)
    scaled = (drawn.var(0) / made.variance.numpy()).ravel()
    numpy.testing.assert_allclose(scaled, 1, atol=0.2)


@pytest.mark.parametrize(("size", "concentration"), [(2, 1.0), (3, 0.7), (4, 5.0)])
def test_correlation_matrices(size: int, concentration: float) -> None:
    """Each correlation is a beta variable on (-1, 1), and densities add up to 1 over 2 x 2 matrices."""
    made = d.LKJCholesky(size, torch.tensor(concentration, dtype=torch.float64))
    factor = made.sample((1500,))
    assert constraints.corr_cholesky.check(factor).all() and made.log_prob(factor).shape == (1500,)
    shape = concentration - 1 + size / 2
    found = (factor @ factor.mT).numpy()
    for row in range(1, size):
        law = stats.beta(shape, shape, loc=-1, scale=2)
        assert stats.kstest(found[:, row, row - 1], law.cdf).pvalue > 0.005
    if size == 2:
        across = numpy.linspace(-0.9999, 0.9999, 20_001)
        factors = numpy.zeros((len(across), 2, 2))
        factors[:, 0, 0], factors[:, 1, 0], factors[:, 1, 1] = 1, across, numpy.sqrt(1 - across**2)
        total = numpy.trapezoid(made.log_prob(torch.tensor(factors)).exp().numpy(), across)
        assert abs(total - 1) < 2e-3
