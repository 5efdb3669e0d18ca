"""Shapes, validation, both ways of declaring, fusing, and error texts."""

from __future__ import annotations

import re
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from tests.distributions.families import CONTINUOUS, DISCRETE
from twofold import distributions as d
from twofold.distributions import constraints
from twofold.distributions.utils import broadcast_all, lazy_property


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(8)


def number(parameter: str) -> float:
    return {"low": 0.25, "total_count": 3.0}.get(parameter, 0.5)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_shapes_and_expansion(name: str) -> None:
    make, _, rows = {**CONTINUOUS, **DISCRETE}[name]
    made, size = make(), len(rows)
    assert made.batch_shape == (size,) and made.event_shape == ()
    wide = made.expand((4, size))
    assert type(wide) is type(made) and wide.batch_shape == (4, size)
    drawn = wide.sample((2,))
    assert drawn.shape == (2, 4, size) and wide.log_prob(drawn).shape == (2, 4, size)
    assert wide.support.check(drawn).all() and made.sample_n(3).shape == (3, size)
    single = type(made)(**{key: number(key) for key in made._given}, **made._fixed())
    assert single.sample().shape == () and single.sample().dtype is torch.float32
    assert repr(single).startswith(type(made).__name__ + "(")


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_half_types_and_empty_batches(name: str) -> None:
    make, _, _ = {**CONTINUOUS, **DISCRETE}[name]
    kind, given = type(make()), make()._given
    small = kind(**{key: torch.full((3,), number(key), dtype=torch.float16) for key in given})
    assert small.sample().dtype is torch.float16
    none = kind(**{key: torch.full((0, 2), number(key)) for key in given})
    assert none.sample((3,)).shape == (3, 0, 2) and none.log_prob(none.sample()).shape == (0, 2)


def test_probabilities_and_logits_give_the_same() -> None:
    logits = torch.tensor([-2.0, 0.3, 4.0])
    probs, value = torch.sigmoid(logits), torch.tensor(1.0)
    for kind in (d.Bernoulli, d.Geometric, d.ContinuousBernoulli, lambda **k: d.Binomial(4, **k)):
        one, other = kind(probs=probs), kind(logits=logits)
        assert torch.allclose(one.log_prob(value), other.log_prob(value), rtol=1e-4)
        assert torch.allclose(one.logits, logits, rtol=1e-4) and torch.allclose(other.probs, probs)


def test_supports_are_listed() -> None:
    assert d.Bernoulli(torch.tensor([0.2, 0.4])).enumerate_support().tolist() == [[0, 0], [1, 1]]
    assert d.Categorical(torch.ones(2, 3)).enumerate_support(False).tolist() == [[0], [1], [2]]
    assert d.OneHotCategorical(torch.ones(3)).enumerate_support().tolist() == torch.eye(3).tolist()
    assert d.Binomial(2, torch.tensor(0.2)).enumerate_support().tolist() == [0, 1, 2]
    with pytest.raises(NotImplementedError, match="different total_counts"):
        d.Binomial(torch.tensor([1.0, 2.0]), torch.tensor(0.2)).enumerate_support()


def test_independent() -> None:
    base = d.Normal(torch.zeros(4, 3), torch.ones(4, 3))
    made = d.Independent(base, 1)
    assert made.batch_shape == (4,) and made.event_shape == (3,) and made.support.event_dim == 1
    value = made.sample()
    assert torch.allclose(made.log_prob(value), base.log_prob(value).sum(-1))
    assert torch.allclose(made.entropy(), base.entropy().sum(-1))
    assert made.expand((2, 4)).sample().shape == (2, 4, 3) and made.mean.shape == (4, 3)
    with pytest.raises(ValueError, match=re.escape("Independent: 3 axes of a batch shape (4, 3)")):
        d.Independent(base, 3)


def test_a_repeated_density_is_one_graph_with_the_same_bits() -> None:
    """Densities recorded and fused, and those of a declared graph."""
    values = numpy.linspace(0.1, 3, 37).astype("float32")

    def density(x: Any) -> Any:
        gamma = d.Gamma(2.5, 1.5, validate_args=False).log_prob(x)
        return gamma + d.Normal(0.5, 2.0, validate_args=False).log_prob(x)

    first = density(torch.tensor(values)).numpy()
    for _ in range(4):
        again = density(torch.tensor(values)).numpy()
        assert again.tobytes() == first.tobytes()
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder("float32", [37])
        declared = session.run(density(fed), {fed: values})
    assert declared.tobytes() == first.tobytes()


def test_what_a_sample_computed_first_keeps_its_gradient() -> None:
    probs = torch.tensor([0.2, 0.7]).requires_grad_()
    for made in (d.LogitRelaxedBernoulli(torch.tensor(0.5), probs), d.NegativeBinomial(3.0, probs)):
        made.log_prob(made.sample()).sum().backward()
        assert probs.grad is not None and (probs.grad != 0).all()
        probs.grad = None


def test_a_class_of_the_user() -> None:
    class Wave(d.Distribution):
        arg_constraints = {"height": constraints.positive}
        support = constraints.real

        def __init__(self, height: Any, validate_args: Any = None) -> None:
            (self.height,) = broadcast_all(height)
            super().__init__(self.height.shape, validate_args=validate_args)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            made = self._get_checked_instance(Wave, _instance)
            made.height = self.height.expand(batch_shape)
            super(Wave, made).__init__(batch_shape, validate_args=False)
            return made

        @lazy_property
        def double(self) -> Any:
            return 2 * self.height

    class Flat(Wave):
        def __init__(self) -> None:
            super().__init__(1.0)

    assert Wave(2.0).expand((3,)).double.tolist() == [4, 4, 4]
    with pytest.raises(ValueError, match="Wave: parameter height"):
        Wave(-1.0)
    with pytest.raises(NotImplementedError, match="Flat has an __init__ of its own"):
        Flat().expand((3,))
    with pytest.raises(NotImplementedError, match="Wave has no mode"):
        Wave(1.0).mode  # noqa: B018


def test_streams_repeat() -> None:
    made = d.Gamma(torch.full((5,), 0.3), 2.0)
    torch.manual_seed(3)
    first = made.sample((4,))
    torch.manual_seed(3)
    assert torch.equal(made.sample((4,)), first) and not torch.equal(made.sample((4,)), first)


def test_default_validation_can_be_switched_off() -> None:
    d.Distribution.set_default_validate_args(False)
    try:
        assert d.Normal(0.0, -1.0).log_prob(torch.tensor(0.0)).isnan()
    finally:
        d.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="Normal: parameter scale"):
        d.Normal(0.0, -1.0)


CHECKS = [
    (constraints.boolean, [0, 1, 0.5], [True, True, False]), (constraints.positive, [0, 1], [False, True]),
    (constraints.nonnegative_integer, [0, 1.5, -1], [True, False, False]),
    (constraints.positive_integer, [0, 1], [False, True]),
    (constraints.half_open_interval(0.0, 1.0), [0, 1], [True, False]),
    (constraints.integer_interval(1, 3), [1, 4, 2.5], [True, False, False]),
    (constraints.less_than(2.0), [2, 1], [False, True]), (constraints.real, [1, float("nan")], [True, False]),
    (constraints.simplex, [[0.5, 0.5], [0.5, 0.6]], [True, False]),
    (constraints.one_hot, [[0, 1], [1, 1]], [True, False]),
    (constraints.multinomial(3), [[1, 2], [2, 2]], [True, False]),
    (constraints.symmetric, [[[1, 2], [2, 1]], [[1, 2], [3, 1]]], [True, False]),
    (constraints.positive_definite, [[[2, 1], [1, 2]], [[1, 2], [2, 1]]], [True, False]),
    (constraints.positive_semidefinite, [[[1, 0], [0, 0]], [[1, 2], [2, 1]]], [True, False]),
    (constraints.lower_cholesky, [[[2, 0], [1, 2]], [[-1, 0], [2, 1]]], [True, False]),
    (constraints.square, [[[1, 2, 3]]], [False]), (constraints.real_vector, [[1, 2], [1, float("nan")]], [True, False]),
]  # fmt: skip


@pytest.mark.parametrize(("constraint", "values", "inside"), CHECKS, ids=[repr(c) for c, _, _ in CHECKS])
def test_constraints(constraint: Any, values: Any, inside: list[bool]) -> None:
    assert constraint.check(torch.tensor(values).float()).tolist() == inside


ERRORS = [
    (lambda: d.Normal(torch.zeros(2), torch.tensor([1.0, -1.0])),
     "Normal: parameter scale, float32[2], does not satisfy greater_than(lower_bound=0.0): [ 1. -1.]"),
    (lambda: d.Normal("a", 1.0), "a parameter of type str"),
    (lambda: d.Normal(torch.zeros(2), torch.ones(3)), "sizes on axis -1 differ, 2 against 3"),
    (lambda: d.Uniform(1.0, 1.0), "Uniform: low 1.0 is not below high"),
    (lambda: d.Bernoulli(), "Bernoulli: neither of probs and logits"),
    (lambda: d.Categorical(torch.ones(2), torch.ones(2)), "Categorical: both of probs and logits"),
    (lambda: d.Categorical(torch.tensor(0.5)), "Categorical: weights of shape ()"),
    (lambda: d.Categorical(torch.tensor([0.5, -0.5])), "Categorical: parameter probs"),
    (lambda: d.Geometric(torch.tensor([0.0])), "Geometric: a probability of 0"),
    (lambda: d.Multinomial(-1, torch.ones(2)), "Multinomial: total_count -1"),
    (lambda: d.Dirichlet(torch.tensor(1.0)), "Dirichlet: a concentration without axes"),
    (lambda: d.MultivariateNormal(torch.zeros(2)), "MultivariateNormal: 0 of covariance_matrix, precision_matrix"),
    (lambda: d.MultivariateNormal(torch.zeros(2), -torch.eye(2)), "does not satisfy PositiveDefinite"),
    (lambda: d.LowRankMultivariateNormal(torch.zeros(2), torch.ones(3, 1), torch.ones(2)),
     "LowRankMultivariateNormal: cov_factor (3, 1) and cov_diag (2,) for vectors of 2"),
    (lambda: d.Normal(0.0, 1.0).log_prob(0.5), "Normal: a value of type float"),
    (lambda: d.Normal(torch.zeros(2), 1.0).log_prob(torch.zeros(3)),
     "Normal: a value of shape (3,) for samples of shape (2,)"),
    (lambda: d.Exponential(1.0).log_prob(torch.tensor(-1.0)), "Exponential: a value outside the support"),
    (lambda: d.Poisson(1.0).log_prob(torch.tensor(0.5)), "Poisson: a value outside the support"),
    (lambda: d.MixtureSameFamily(d.Categorical(torch.ones(2)), d.Normal(torch.zeros(3), 1.0)),
     "MixtureSameFamily: 2 weights for components of batch shape (3,)"),
    (lambda: d.Distribution.set_default_validate_args(None), "a default of None"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), ERRORS, ids=[text for _, text in ERRORS])
def test_errors(call: Any, text: str) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError), match=re.escape(text)):
        call()


def test_a_uniform_generalised_pareto_distribution_has_the_same_density_at_its_end() -> None:
    made = d.GeneralizedPareto(torch.tensor(1.0), torch.tensor(2.0), torch.tensor(-1.0))
    found = made.log_prob(torch.tensor([1.0, 2.0, 3.0]))
    numpy.testing.assert_allclose(found.numpy(), [-numpy.log(2)] * 3, rtol=1e-6)
