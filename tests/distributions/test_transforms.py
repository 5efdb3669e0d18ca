"""Transforms: back and forth, derivatives against autograd, shapes, and the registries of constraints."""

from __future__ import annotations

import re
from typing import Any

import numpy
import pytest

import twofold as torch
from tests.distributions.families import t
from twofold import distributions as d
from twofold.distributions import constraints

SINGLE: list[tuple[Any, tuple[float, ...]]] = [
    (d.ExpTransform(), (-2, 0.5)), (d.PowerTransform(2.5), (0.3, 4)), (d.PowerTransform(-1.0), (0.3, 4)),
    (d.SigmoidTransform(), (-3, 0.2)), (d.SoftplusTransform(), (-3, 2)), (d.TanhTransform(), (-1.5, 0.4)),
    (d.AffineTransform(1.0, -2.0), (-1, 3)), (d.AffineTransform(t(1, 2), t(0.5, 3)), (-1, 3)),
    (d.ComposeTransform([d.AffineTransform(0.0, 0.5), d.ExpTransform()]), (-1, 3)), (d.ExpTransform().inv, (0.5, 3)),
    (d.CumulativeDistributionTransform(d.Normal(t(0.5), t(2))), (-1, 3)), (d.identity_transform, (-1, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("transform", "values"), SINGLE, ids=[repr(x) for x, _ in SINGLE])
def test_of_single_numbers(transform: Any, values: tuple[float, ...]) -> None:
    x = t(*values).requires_grad_()
    y = transform(x)
    numpy.testing.assert_allclose(transform.inv(y.detach()).numpy(), x.detach().numpy(), rtol=1e-9)
    y.sum().backward()
    slope = transform.log_abs_det_jacobian(x, y).detach()
    numpy.testing.assert_allclose(slope.numpy(), numpy.log(numpy.abs(x.grad.numpy())), rtol=1e-9, atol=1e-12)
    sign = transform.sign
    assert (numpy.sign(x.grad.numpy()) == (sign.numpy() if isinstance(sign, torch.Tensor) else sign)).all()
    assert transform.inv.inv is transform and transform.with_cache(1)(x.detach()) is not None


def _matrix_of(transform: Any, x: Any, columns: Any) -> Any:
    jacobian = torch.autograd.functional.jacobian(lambda x: transform(x).reshape(-1)[columns], x)
    return jacobian.numpy().reshape(len(columns), -1)


def test_stick_breaking() -> None:
    transform, x = d.StickBreakingTransform(), t(0.3, -1, 2)
    y = transform(x)
    assert abs(y.sum().item() - 1) < 1e-12 and constraints.simplex.check(y)
    numpy.testing.assert_allclose(transform(t(0, 0, 0)).numpy(), [0.25] * 4)
    numpy.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-9)
    determinant = numpy.linalg.slogdet(_matrix_of(transform, x, [0, 1, 2]))[1]
    assert abs(transform.log_abs_det_jacobian(x, y).item() - determinant) < 1e-9
    assert transform.forward_shape((2, 3)) == (2, 4) and transform.inverse_shape((2, 4)) == (2, 3)


def test_correlations() -> None:
    transform, x = d.CorrCholeskyTransform(), t(0.3, -1, 0.7, 0.2, 0.1, -0.4)
    y = transform(x)
    assert y.shape == (4, 4) and constraints.corr_cholesky.check(y)
    numpy.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-9)
    below = [4, 8, 9, 12, 13, 14]
    determinant = numpy.linalg.slogdet(_matrix_of(transform, x, below))[1]
    assert abs(transform.log_abs_det_jacobian(x, y).item() - determinant) < 1e-9
    assert transform.forward_shape((2, 6)) == (2, 4, 4)


def test_of_matrices() -> None:
    x = torch.tensor([[[0.5, 9.0], [1.0, -1.0]]], dtype=torch.float64)
    for transform, constraint in (
        (d.LowerCholeskyTransform(), constraints.lower_cholesky),
        (d.PositiveDefiniteTransform(), constraints.positive_definite),
    ):
        y = transform(x)
        assert constraint.check(y).all()
        numpy.testing.assert_allclose(transform.inv(y).numpy(), x.tril().numpy(), rtol=1e-9)


def test_parts_and_shapes() -> None:
    stacked = d.StackTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)], -1)
    x = torch.tensor([[0.0, 1.0], [2.0, 3.0]], dtype=torch.float64)
    y = stacked(x)
    numpy.testing.assert_allclose(y.numpy(), [[1, 3], [numpy.exp(2), 7]])
    numpy.testing.assert_allclose(stacked.inv(y).numpy(), x.numpy())
    numpy.testing.assert_allclose(
        stacked.log_abs_det_jacobian(x, y).numpy(), [[0, numpy.log(2)], [2, numpy.log(2)]]
    )
    joined = d.CatTransform([d.ExpTransform(), d.TanhTransform()], -1, [2, 1])
    numpy.testing.assert_allclose(joined(t(0, 1, 0)).numpy(), [1, numpy.e, 0])
    reshaped = d.ReshapeTransform((2, 3), (6,))
    assert reshaped(torch.zeros(5, 2, 3)).shape == (5, 6) and reshaped.inv(torch.zeros(6)).shape == (2, 3)
    whole = d.IndependentTransform(d.ExpTransform(), 1)
    assert whole.log_abs_det_jacobian(x, x).shape == (2,) and whole.domain.event_dim == 1


def test_a_cache_keeps_the_last_pair() -> None:
    transform = d.SigmoidTransform(cache_size=1)
    x = t(50.0)
    assert transform.inv(transform(x)) is x


REGISTERED: list[Any] = [
    constraints.real, constraints.positive, constraints.nonnegative, constraints.greater_than(2.0),
    constraints.less_than(-1.0), constraints.unit_interval, constraints.interval(-2.0, 5.0), constraints.simplex,
    constraints.lower_cholesky, constraints.positive_definite, constraints.corr_cholesky, constraints.real_vector,
    constraints.independent(constraints.positive, 1),
    constraints.cat([constraints.positive, constraints.real], -1, [1, 2]),
    constraints.stack([constraints.positive, constraints.real, constraints.unit_interval], -1),
]  # fmt: skip


@pytest.mark.parametrize("constraint", REGISTERED, ids=repr)
def test_registered_transforms_reach_their_constraints(constraint: Any) -> None:
    torch.manual_seed(1)
    x = torch.randn(4, 3, 3, dtype=torch.float64)
    for registry in (d.biject_to, d.transform_to):
        transform = registry(constraint)
        y = transform(x)
        assert constraint.check(y).all()
        back = transform(transform.inv(y))
        numpy.testing.assert_allclose(back.numpy(), y.numpy(), rtol=1e-7, atol=1e-9)
    assert d.biject_to(constraint).bijective


def test_transformed_distributions() -> None:
    base = d.Normal(t(0.5), t(2))
    made = d.TransformedDistribution(base, [d.ExpTransform()])
    like = d.LogNormal(t(0.5), t(2))
    values = t(0.1, 2, 9)
    numpy.testing.assert_allclose(made.log_prob(values).numpy(), like.log_prob(values).numpy(), rtol=1e-10)
    numpy.testing.assert_allclose(made.cdf(values).numpy(), like.cdf(values).numpy(), rtol=1e-10)
    numpy.testing.assert_allclose(made.icdf(t(0.2)).numpy(), like.icdf(t(0.2)).numpy(), rtol=1e-10)
    falling = d.TransformedDistribution(base, d.AffineTransform(1.0, -3.0))
    numpy.testing.assert_allclose(
        falling.cdf(t(4)).numpy(), d.Normal(-0.5, 6.0).cdf(t(4)).numpy(), rtol=1e-10
    )
    vectors = d.LogisticNormal(torch.zeros(5, 3), torch.ones(5, 3))
    assert vectors.event_shape == (4,) and vectors.batch_shape == (5,)
    assert vectors.expand((2, 5)).sample((3,)).shape == (3, 2, 5, 4)
    assert vectors.log_prob(vectors.sample()).shape == (5,)
    wide = d.TransformedDistribution(d.Normal(0.0, 1.0), [d.AffineTransform(torch.zeros(3), 1.0)])
    assert wide.batch_shape == (3,) and wide.rsample((2,)).shape == (2, 3)


ERRORS = [
    (lambda: d.SigmoidTransform(cache_size=2), "cache_size 2"),
    (lambda: d.ReshapeTransform((2, 3), (5,)), "ReshapeTransform: (2, 3) to (5,)"),
    (lambda: d.CorrCholeskyTransform()(torch.zeros(4)), "CorrCholeskyTransform: vectors of 4"),
    (lambda: d.TransformedDistribution(d.Normal(0.0, 1.0), [d.SoftmaxTransform()]), "a base distribution of shape ()"),
    (lambda: d.AbsTransform().sign, "AbsTransform neither rises nor falls everywhere"),
    (lambda: d.SoftmaxTransform().log_abs_det_jacobian(torch.zeros(2), torch.zeros(2)), "SoftmaxTransform has no"),
    (lambda: d.biject_to(constraints.boolean), "no transform onto Boolean"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), ERRORS, ids=[text for _, text in ERRORS])
def test_errors(call: Any, text: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=re.escape(text)):
        call()


def test_a_class_may_be_a_transform_and_a_module_at_once():
    class Scaled(d.Transform, torch.nn.Module):
        domain = codomain = constraints.real
        bijective = True

        def __init__(self):
            super().__init__(cache_size=1)
            self.factor = torch.nn.Parameter(torch.tensor(2.0))

        def _call(self, x):
            return x * self.factor

        def _inverse(self, y):
            return y / self.factor

        def log_abs_det_jacobian(self, x, y):
            return self.factor.abs().log().expand(x.shape)

    transform, x = Scaled(), torch.tensor([1.0, 2.0])
    y = transform(x)
    assert (
        transform.inv(y) is x
        and transform._cached_x_y[1] is y
        and [n for n, _ in transform.named_parameters()] == ["factor"]
    )
    plain = transform.with_cache(0)
    assert plain.factor is transform.factor and plain(x).tolist() == [2.0, 4.0]
    made = d.TransformedDistribution(d.Normal(0.0, 1.0), transform)
    assert torch.allclose(made.log_prob(y), d.Normal(0.0, 2.0).log_prob(y))


def test_a_log_normal_variable_is_a_transformed_one():
    one = d.LogNormal(torch.zeros(2), torch.tensor([1.0, 2.0]))
    assert isinstance(one, d.TransformedDistribution) and isinstance(one.base_dist, d.Normal)
    assert isinstance(one.transforms[0], d.ExpTransform) and one.scale.tolist() == [1.0, 2.0]
    wider = one.expand((3, 2))
    assert wider.loc.shape == (3, 2) and isinstance(wider, d.LogNormal)
    value = torch.tensor([0.5, 3.0])
    wanted = one.base_dist.log_prob(value.log()) - value.log()
    assert torch.equal(wider.log_prob(value), wanted.expand(3, 2))

    class Own(d.LogNormal):
        def __init__(self, loc, scale):  # as programs that bring a base distribution of their own
            base = d.Normal(loc, scale)
            super(d.LogNormal, self).__init__(base, d.ExpTransform())

    assert torch.equal(Own(torch.zeros(2), one.scale).log_prob(value), wanted)
    for wrong in (lambda: d.LogNormal(0.0, -1.0), lambda: one.log_prob(torch.tensor(-1.0))):
        with pytest.raises(ValueError):
            wrong()
