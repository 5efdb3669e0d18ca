"""Distributions that only ``tf.contrib.distributions`` has: log densities beside their formulas, and moments."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import twofold.static as tf

ds = tf.contrib.distributions
lgamma = numpy.vectorize(math.lgamma)
A, B = numpy.array([3.0, 4.5], numpy.float32), numpy.array([2.0, 1.5], numpy.float32)
P = numpy.array([0.3, 0.6], numpy.float32)
LOGITS = numpy.log(P / (1 - P))
X, K = numpy.array([0.3, 0.7], numpy.float32), numpy.array([2.0, 4.0], numpy.float32)
softplus = lambda x: numpy.log1p(numpy.exp(x))


def choose(n: Any, k: Any) -> Any:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


ROOT = math.sqrt(2 * math.pi)
CASES: list[Any] = [
    (lambda: ds.Cauchy(A, B), X, -numpy.log(math.pi * B * (1 + ((X - A) / B) ** 2)), None, None),
    (lambda: ds.Gumbel(A, B), X, -(X - A) / B - numpy.exp(-(X - A) / B) - numpy.log(B), None, (math.pi * B) ** 2 / 6),
    (lambda: ds.HalfNormal(B), X, numpy.log(2 / (B * ROOT)) - (X / B) ** 2 / 2, B * math.sqrt(2 / math.pi), None),
    (lambda: ds.Chi2(A), X, (A / 2 - 1) * numpy.log(X) - X / 2 - A / 2 * math.log(2) - lgamma(A / 2), A, 2 * A),
    (
        lambda: ds.InverseGamma(A, B), X,
        A * numpy.log(B) - lgamma(A) - (A + 1) * numpy.log(X) - B / X, B / (A - 1), None,
    ),
    (lambda: ds.Kumaraswamy(A, B), X, numpy.log(A * B * X ** (A - 1) * (1 - X**A) ** (B - 1)), None, None),
    (
        lambda: ds.NormalWithSoftplusScale(A, B), X,
        -(((X - A) / softplus(B)) ** 2) / 2 - numpy.log(ROOT * softplus(B)), A, softplus(B) ** 2,
    ),
    (
        lambda: ds.Logistic(A, B), X,
        -(X - A) / B - numpy.log(B) - 2 * softplus(-(X - A) / B), A, (math.pi * B) ** 2 / 3,
    ),
    (lambda: ds.Poisson(A), K, K * numpy.log(A) - A - lgamma(K + 1), A, A),
    (lambda: ds.Poisson(log_rate=numpy.log(A)), K, K * numpy.log(A) - A - lgamma(K + 1), A, A),
    (lambda: ds.Geometric(probs=P), K, K * numpy.log(1 - P) + numpy.log(P), (1 - P) / P, (1 - P) / P**2),
    (
        lambda: ds.Binomial(A + 1.5, probs=P), K,
        choose(A + 1.5, K) + K * numpy.log(P) + (A + 1.5 - K) * numpy.log(1 - P), None, None,
    ),
    (
        lambda: ds.NegativeBinomial(A, logits=LOGITS), K,
        lgamma(A + K) - lgamma(A) - lgamma(K + 1) + K * numpy.log(P) + A * numpy.log(1 - P),
        A * P / (1 - P), A * P / (1 - P) ** 2,
    ),
    (lambda: ds.OneHotCategorical(probs=[[0.2, 0.8]]), [[0, 1]], numpy.log([0.8]), [[0.2, 0.8]], [[0.16, 0.16]]),
]  # fmt: skip


@pytest.mark.parametrize("make, value, density, mean, variance", CASES)
def test_density_and_moments(make: Any, value: Any, density: Any, mean: Any, variance: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        made = make()
        found = session.run([made.log_prob(value), made.prob(value)])
        numpy.testing.assert_allclose(found, [density, numpy.exp(density)], rtol=2e-4, atol=1e-6)
        for wanted, own in ((mean, made.mean), (variance, made.variance)):
            if wanted is not None:
                numpy.testing.assert_allclose(session.run(own()), wanted, rtol=1e-4)
        assert made.sample(5).shape.as_list() == [5, *made.batch_shape.as_list(), *made.event_shape.as_list()]


@pytest.mark.parametrize("whole", [False, True])
def test_normal_vectors_of_a_matrix(whole: bool) -> None:
    lower = numpy.array([[2.0, 0.0], [1.0, 0.5]], numpy.float32)
    matrix = lower @ lower.T
    with tf.Graph().as_default(), tf.Session() as session:
        kind = ds.MultivariateNormalFullCovariance if whole else ds.MultivariateNormalTriL
        found = session.run(kind(A, matrix if whole else lower + numpy.float32([[0, 9], [0, 0]])).log_prob(X))
    away = X - A
    wanted = -(away @ numpy.linalg.solve(matrix, away)) / 2 - math.log(
        2 * math.pi * math.sqrt(numpy.linalg.det(matrix))
    )
    numpy.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_independent_and_mixed() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        normal = ds.Normal(A, B)
        together = ds.Independent(normal, 1)
        mixed = ds.MixtureSameFamily(ds.Categorical(probs=[0.25, 0.75]), normal)
        each, both, mean = session.run([normal.log_prob(X), together.log_prob(X), mixed.mean()])
        shares = session.run([mixed.prob(0.5), normal.prob([0.5, 0.5])])
    numpy.testing.assert_allclose(both, each.sum(), rtol=1e-5)
    numpy.testing.assert_allclose(mean, 0.25 * A[0] + 0.75 * A[1], rtol=1e-5)
    numpy.testing.assert_allclose(shares[0], shares[1] @ [0.25, 0.75], rtol=1e-5)
