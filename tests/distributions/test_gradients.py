"""Gradients of samples and of densities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
from scipy import special, stats

import twofold as torch
from tests.distributions.families import CONTINUOUS, t
from twofold import distributions as d


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(5)


def leaf(*values: float) -> Any:
    return t(*values).requires_grad_()


@pytest.mark.parametrize("alpha", [0.01, 0.3, 1.0, 4.0, 60.0, 2e4])
def test_gamma_variates_move_so_that_their_quantiles_stay(alpha: float) -> None:
    """The derivative of the inverse distribution function for alpha, by differences."""
    concentration = leaf(*[alpha] * 25)
    drawn = d.Gamma(concentration, 1.0).rsample()
    drawn.sum().backward()
    values, slopes = drawn.detach().numpy(), concentration.grad.numpy()
    quantiles = special.gammainc(alpha, values)
    kept = (quantiles > 1e-6) & (quantiles < 1 - 1e-6) & (values > 1e-250)
    step = 2e-4 * alpha
    sides = [numpy.log(special.gammaincinv(alpha + k * step, quantiles[kept])) for k in (1, -1)]
    numpy.testing.assert_allclose(slopes[kept] / values[kept], (sides[0] - sides[1]) / (2 * step), rtol=2e-5)
    assert numpy.isfinite(slopes).all() and kept.any()


def test_the_gradient_of_a_sample_is_that_of_its_expectation() -> None:
    """Means over many samples of derivatives against derivatives of means: beta, Dirichlet, Student's t, F."""
    a, b = leaf(0.7), leaf(2.5)
    d.Beta(a, b).rsample((20_000,)).mean().backward()
    numpy.testing.assert_allclose(a.grad.numpy(), 2.5 / 3.2**2, rtol=0.03)
    numpy.testing.assert_allclose(b.grad.numpy(), -0.7 / 3.2**2, rtol=0.03)
    alpha = leaf(0.4, 1.0, 3.0)
    (d.Dirichlet(alpha).rsample((20_000,)) * t(1, 2, 5)).sum(-1).mean().backward()
    mean = numpy.array([0.4, 1.0, 3.0]) / 4.4
    wanted = (numpy.array([1, 2, 5]) - (mean * [1, 2, 5]).sum()) / 4.4
    numpy.testing.assert_allclose(alpha.grad.numpy(), wanted, rtol=0.05, atol=0.01)
    df = leaf(9.0)
    drawn = d.StudentT(df, 0.0, 1.0).rsample((40_000,))
    (drawn * drawn).mean().backward()
    numpy.testing.assert_allclose(df.grad.numpy(), -2 / 49, rtol=0.2)


def test_small_concentrations_do_not_underflow() -> None:
    alpha = torch.full((2000, 3), 0.005).requires_grad_()
    drawn = d.Dirichlet(alpha).rsample()
    assert torch.isfinite(drawn).all() and ((drawn.sum(-1) - 1).abs() < 1e-5).all()
    drawn.square().sum().backward()
    assert torch.isfinite(alpha.grad).all()
    beta = d.Beta(torch.full((2000,), 0.005), 0.005).sample()
    assert torch.isfinite(d.Beta(0.5, 0.5).log_prob(beta)).all()


@pytest.mark.parametrize("name", ["Normal", "Laplace", "Cauchy", "Gumbel"])
def test_location_and_scale(name: str) -> None:
    loc, scale = leaf(1.0, -2.0), leaf(0.5, 3.0)
    drawn = getattr(d, name)(loc, scale).rsample((4,))
    drawn.sum().backward()
    standard = ((drawn - loc) / scale).detach().numpy()
    numpy.testing.assert_allclose(loc.grad.numpy(), [4, 4])
    numpy.testing.assert_allclose(scale.grad.numpy(), standard.sum(0), rtol=1e-10)


def test_samples_have_no_gradient_and_rsamples_do() -> None:
    for name, (_, _, rows) in CONTINUOUS.items():
        columns = [leaf(*column) for column in zip(*rows, strict=True)]
        made = getattr(d, name)(*columns)
        assert not made.sample().requires_grad, name
        if made.has_rsample:
            assert made.rsample().requires_grad, name
        else:
            with pytest.raises(NotImplementedError, match="VonMises has no rsample"):
                made.rsample()


DENSITIES: list[tuple[str, Callable[..., Any], tuple[float, ...], float]] = [
    ("Gamma", d.Gamma, (2.5, 1.5), 0.8),
    ("Beta", d.Beta, (2.5, 1.5), 0.3),
    ("StudentT", d.StudentT, (4.0, 0.5, 2.0), 1.5),
    ("Weibull", d.Weibull, (1.5, 2.0), 0.7),
    ("NegativeBinomial", lambda n, p: d.NegativeBinomial(n, p), (3.0, 0.4), 2.0),
    ("ContinuousBernoulli", d.ContinuousBernoulli, (0.3,), 0.6),
    ("VonMises", d.VonMises, (0.3, 2.0), 1.0),
]


@pytest.mark.parametrize(("name", "made", "parameters", "value"), DENSITIES, ids=[x[0] for x in DENSITIES])
def test_gradients_of_densities(
    name: str, made: Callable[..., Any], parameters: tuple[float, ...], value: float
) -> None:
    leaves = [leaf(number) for number in parameters]
    made(*leaves).log_prob(t(value)).sum().backward()
    for k, one in enumerate(leaves):
        sides = []
        for step in (1e-6, -1e-6):
            moved = [t(number + step * (j == k)) for j, number in enumerate(parameters)]
            sides.append(made(*moved).log_prob(t(value)).item())
        numpy.testing.assert_allclose(one.grad.numpy(), (sides[0] - sides[1]) / 2e-6, rtol=2e-6, atol=1e-9)


def test_straight_through() -> None:
    logits = leaf(0.2, 1.0, -1.0)
    drawn = d.OneHotCategoricalStraightThrough(logits=logits).rsample()
    assert sorted(drawn.detach().numpy().round(12)) == [0, 0, 1]
    (drawn * t(1, 2, 4)).sum().backward()
    probs = numpy.exp([0.2, 1.0, -1.0]) / numpy.exp([0.2, 1.0, -1.0]).sum()
    wanted = probs * (numpy.array([1, 2, 4]) - (probs * [1, 2, 4]).sum())
    numpy.testing.assert_allclose(logits.grad.numpy(), wanted, rtol=1e-10)


def test_relaxed_samples_follow_their_density() -> None:
    """The distribution function by adding up the density."""
    made = d.RelaxedBernoulli(t(0.7), t(0.3))
    points = numpy.linspace(1e-5, 1 - 1e-5, 20_001)
    density = made.log_prob(torch.tensor(points).unsqueeze(-1)).exp().numpy()[:, 0]
    sums = numpy.concatenate([[0], numpy.cumsum((density[1:] + density[:-1]) / 2 * numpy.diff(points))])
    assert abs(sums[-1] - 1) < 0.01
    drawn = made.rsample((1500,)).numpy()[:, 0]
    assert stats.kstest(drawn, lambda x: numpy.interp(x, points, sums)).pvalue > 0.01
    vectors = d.RelaxedOneHotCategorical(t(0.5), t(0.2, 0.3, 0.5)).sample((3000,))
    first = (vectors.argmax(-1) == 2).double().mean().item()
    assert abs(first - 0.5) < 0.03 and ((vectors.sum(-1) - 1).abs() < 1e-9).all()


def test_the_probability_of_a_vector_is_that_of_its_class() -> None:
    """As in PyTorch: no gradient flows into the vector, so samples of the straight-through estimator get none."""
    logits = torch.tensor([0.1, 0.7, -0.4], requires_grad=True)
    chosen = d.OneHotCategoricalStraightThrough(logits=logits)
    vectors = torch.eye(3, requires_grad=True)
    found = chosen.log_prob(vectors)
    numpy.testing.assert_allclose(found.detach(), logits.log_softmax(0).detach(), rtol=1e-6)
    gradient, none = torch.autograd.grad(found[1], [logits, vectors], allow_unused=True)
    numpy.testing.assert_allclose(gradient, torch.eye(3)[1] - logits.detach().softmax(0), rtol=1e-5)
    assert none is None
    soft = d.OneHotCategorical(logits=logits, validate_args=False).log_prob(torch.tensor([0.2, 0.7, 0.1]))
    assert soft.item() == found[1].item()
