"""The normal distribution, and those of its exponential and of its magnitude."""

from __future__ import annotations

import math
from typing import Any

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.combined import TransformedDistribution
from twofold.distributions.distribution import Distribution, ExponentialFamily
from twofold.distributions.single_transforms import ExpTransform
from twofold.distributions.utils import broadcast_all, sample_noise, where
from twofold.ops.base import ops

Tensor = _core.Tensor

HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
SQRT_HALF = math.sqrt(0.5)


class Normal(ExponentialFamily):
    """Normal distribution with mean ``loc`` and standard deviation ``scale``.

    >>> import twofold as torch
    >>> torch.distributions.Normal(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.9189)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale

    @property
    def stddev(self) -> Tensor:
        return self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + self.scale * sample_noise("normal", self._extended_shape(sample_shape), self.loc)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        standard = (value - self.loc) / self.scale
        return -0.5 * standard * standard - self.scale.log() - HALF_LOG_2_PI

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 0.5 * ops.erfc((self.loc - value) / self.scale * SQRT_HALF)

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * ops.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + HALF_LOG_2_PI + self.scale.log()


class LogNormal(TransformedDistribution):
    """Distribution of the exponential of a normal variable with mean ``loc`` and deviation ``scale``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args)
        self._given = ["loc", "scale"]

    @property
    def loc(self) -> Tensor:
        return self.base_dist.loc  # type: ignore[attr-defined]

    @property
    def scale(self) -> Tensor:
        return self.base_dist.scale  # type: ignore[attr-defined]

    @property
    def mean(self) -> Tensor:
        return (self.loc + 0.5 * self.scale * self.scale).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale * self.scale).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale * self.scale
        return square.expm1() * (2 * self.loc + square).exp()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.base_dist.cdf(value.log())

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf(value).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class HalfNormal(Distribution):
    """Distribution of the magnitude of a normal variable with mean 0 and deviation ``scale``."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)
        self.base_dist = Normal(0.0, self.scale, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ops.erf(value / self.scale * SQRT_HALF)

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * ops.erfinv(value) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
