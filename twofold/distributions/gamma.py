"""The gamma distribution and what is made of gamma variables."""

from __future__ import annotations

import math
from typing import Any

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.distribution import Distribution, ExponentialFamily
from twofold.distributions.utils import broadcast_all, exponential, sample_noise, where
from twofold.dtypes import finfo, float64
from twofold.errors import ArgumentError
from twofold.frontend.sampling import stream
from twofold.ops.base import ops
from twofold.ops.random.gamma_variates import sample_log_gamma

Tensor = _core.Tensor


def log_gamma_variates(concentration: Tensor, shape: Any) -> Tensor:
    """Logarithms of gamma variates of rate 1 in float64, differentiable for the concentration."""
    return sample_log_gamma(concentration.expand(tuple(shape)), *stream(None))


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    """Logarithm of the beta function."""
    return ops.lgamma(a) + ops.lgamma(b) - ops.lgamma(a + b)


class Gamma(ExponentialFamily):
    """Gamma distribution of shape ``concentration`` and ``rate``.

    Gradients of samples are implicit: Figurnov, Mohamed and Mnih, Implicit Reparameterization Gradients, 2018.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return (self.concentration - 1).clamp(min=0) / self.rate

    @property
    def variance(self) -> Tensor:
        return self.concentration / (self.rate * self.rate)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        samples = log_gamma_variates(self.concentration, self._extended_shape(sample_shape))
        dtype = self.concentration.dtype
        return (samples.exp().to(dtype) / self.rate).clamp(min=finfo(dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.concentration
        return ops.xlogy(a, self.rate) + ops.xlogy(a - 1, value) - self.rate * value - ops.lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ops.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + ops.lgamma(a) + (1 - a) * ops.digamma(a)


class Chi2(Gamma):
    """Chi-squared distribution: the sum of ``df`` squares of standard normal variables."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (self.df,) = broadcast_all(df)
        super().__init__(0.5 * self.df, 0.5, validate_args=validate_args)


class InverseGamma(Distribution):
    """Distribution of the reciprocal of a gamma variable of shape ``concentration`` and rate ``rate``."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)
        self.base_dist = Gamma(self.concentration, self.rate, validate_args=False)

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a, mean = self.concentration, self.rate / (self.concentration - 1)
        return where(a > 2, mean * mean / (a - 2), math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return 1 / self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.base_dist.log_prob(1 / value) - 2 * value.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ops.igammac(self.concentration, self.rate / value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + ops.lgamma(a) - (1 + a) * ops.digamma(a)


class Exponential(ExponentialFamily):
    """Exponential distribution with this ``rate``."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.rate)

    @property
    def variance(self) -> Tensor:
        return 1 / (self.rate * self.rate)

    @property
    def stddev(self) -> Tensor:
        return 1 / self.rate

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return exponential(self._extended_shape(sample_shape), self.rate) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -((-value).log1p()) / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()


class Beta(ExponentialFamily):
    """Beta distribution on (0, 1), with density proportional to x**(c1 - 1) (1 - x)**(c0 - 1)."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        """The most likely value; the likelier end where both are likelier than all between, NaN for even ones."""
        a, b = self.concentration1, self.concentration0
        one, zero = (a - 1).clamp(min=0), (b - 1).clamp(min=0)
        return where((a < 1) & (b < 1), (a >= b).to(a.dtype), one / (one + zero))

    @property
    def variance(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        total = a + b
        return a * b / (total * total * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape, dtype = self._extended_shape(sample_shape), self.concentration1.dtype
        first = log_gamma_variates(self.concentration1, shape)
        samples = (first - log_gamma_variates(self.concentration0, shape)).sigmoid().to(dtype)
        return samples.clamp(finfo(dtype).tiny, 1 - finfo(dtype).eps)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return ops.xlogy(a - 1, value) + ops.xlogy(b - 1, 1 - value) - log_beta(a, b)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        total = a + b
        return (
            log_beta(a, b)
            - (a - 1) * ops.digamma(a)
            - (b - 1) * ops.digamma(b)
            + (total - 2) * ops.digamma(total)
        )


class Dirichlet(ExponentialFamily):
    """Dirichlet distribution over the simplex, with ``concentration`` along its last axis."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ArgumentError("Dirichlet: a concentration without axes", "Give at least a vector.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        """The most likely value; where no concentration exceeds 1, the corner of the largest."""
        rest = (self.concentration - 1).clamp(min=0)
        found = rest / rest.sum(-1, keepdim=True)
        corner = ops.one_hot(self.concentration.argmax(-1), self.concentration.shape[-1]).to(found.dtype)
        return where((self.concentration < 1).all(-1, keepdim=True), corner, found)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total * total * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        dtype = self.concentration.dtype
        samples = log_gamma_variates(self.concentration, self._extended_shape(sample_shape))
        return samples.softmax(-1).to(dtype).clamp(finfo(dtype).tiny, 1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.concentration
        return ops.xlogy(a - 1, value).sum(-1) + ops.lgamma(a.sum(-1)) - ops.lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        a, count = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return (
            ops.lgamma(a).sum(-1)
            - ops.lgamma(total)
            - (count - total) * ops.digamma(total)
            - ((a - 1) * ops.digamma(a)).sum(-1)
        )


class StudentT(Distribution):
    """Student's t distribution with ``df`` degrees of freedom around ``loc``."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        found = self.scale * self.scale * self.df / (self.df - 2)
        return where(self.df > 2, found, where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        half = log_gamma_variates(0.5 * self.df, shape)
        # the root of df over a chi-squared variate, which is twice the gamma variate
        factor = (0.5 * ((0.5 * self.df).to(float64).log() - half)).exp().to(self.df.dtype)
        return self.loc + self.scale * sample_noise("normal", shape, self.loc) * factor

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        standard, half = (value - self.loc) / self.scale, 0.5 * self.df
        normaliser = self.scale.log() + 0.5 * (self.df * math.pi).log() + ops.lgamma(half)
        density = (half + 0.5) * (standard * standard / self.df).log1p()
        return ops.lgamma(half + 0.5) - normaliser - density

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        more = half + 0.5
        rest = more * (ops.digamma(more) - ops.digamma(half))
        beta = ops.lgamma(half) + 0.5 * math.log(math.pi) - ops.lgamma(more)
        return self.scale.log() + rest + 0.5 * self.df.log() + beta


class FisherSnedecor(Distribution):
    """Fisher and Snedecor's F distribution with ``df1`` and ``df2`` degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return where(self.df1 > 2, found, math.nan)

    @property
    def variance(self) -> Tensor:
        rest = self.df2 - 2
        ratio = self.df2 / rest
        found = 2 * ratio * ratio * (self.df1 + rest) / (self.df1 * (self.df2 - 4))
        return where(self.df2 > 4, found, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape, dtype = self._extended_shape(sample_shape), self.df1.dtype
        first = log_gamma_variates(0.5 * self.df1, shape) - self.df1.to(float64).log()
        second = log_gamma_variates(0.5 * self.df2, shape) - self.df2.to(float64).log()
        return (first - second).exp().to(dtype).clamp(min=finfo(dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = 0.5 * self.df1, 0.5 * self.df2
        ratio = self.df1 / self.df2
        density = ops.xlogy(a - 1, value) - (a + b) * (ratio * value).log1p()
        return a * ratio.log() + density - log_beta(a, b)
