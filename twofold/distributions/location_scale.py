"""Distributions of a location and a scale: uniform, Laplace, Cauchy, Gumbel."""

from __future__ import annotations

import math
from typing import Any

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.distribution import Distribution
from twofold.distributions.utils import EULER, broadcast_all, exponential, sample_noise, where
from twofold.dtypes import finfo
from twofold.errors import ArgumentError
from twofold.ops.base import ops

Tensor = _core.Tensor


class Uniform(Distribution):
    """Even distribution over [low, high)."""

    arg_constraints = {"low": constraints.dependent(), "high": constraints.dependent()}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not self.low._is_symbolic and not bool((self.low < self.high).all()):
            raise ArgumentError(f"Uniform: low {self.low.numpy()} is not below high", "Give low < high.")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        return self.mean * math.nan

    @property
    def variance(self) -> Tensor:
        width = self.high - self.low
        return width * width / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        unit = sample_noise("uniform", self._extended_shape(sample_shape), self.low)
        return self.low + unit * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        inside = (value >= self.low) & (value < self.high)
        return where(inside, -(self.high - self.low).log(), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class _Located(Distribution):
    """A distribution with parameters ``loc`` and ``scale``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def _standard(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (value - self.loc) / self.scale


class Laplace(_Located):
    """Laplace distribution with density exp(-|x - loc| / scale) / (2 scale)."""

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + self.scale * (exponential(shape, self.loc) - exponential(shape, self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        return -self._standard(value).abs() - (2 * self.scale).log()

    def cdf(self, value: Tensor) -> Tensor:
        standard = self._standard(value)
        return 0.5 - 0.5 * standard.sign() * (-standard.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Cauchy(_Located):
    """Cauchy distribution around ``loc``; it has no mean, and an infinite variance."""

    @property
    def mean(self) -> Tensor:
        return self.loc * math.nan

    @property
    def variance(self) -> Tensor:
        return ops.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = sample_noise("cauchy", self._extended_shape(sample_shape), self.loc, 0.0, 1.0)
        return self.loc + self.scale * noise

    def log_prob(self, value: Tensor) -> Tensor:
        standard = self._standard(value)
        return -math.log(math.pi) - self.scale.log() - (standard * standard).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self._standard(value).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * ((value - 0.5) * math.pi).tan()

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class HalfCauchy(Distribution):
    """Distribution of the magnitude of a Cauchy variable around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)
        self.base_dist = Cauchy(0.0, self.scale, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.inf

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale * math.inf

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (value / self.scale).atan() * (2 / math.pi)

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (value * (math.pi / 2)).tan()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class Gumbel(_Located):
    """Gumbel distribution, that of the largest of many variables."""

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale * (math.pi**2 / 6)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = -exponential(self._extended_shape(sample_shape), self.loc).log()
        return self.loc + self.scale * noise

    def log_prob(self, value: Tensor) -> Tensor:
        standard = self._standard(value)
        return -standard - (-standard).exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return (-(-self._standard(value)).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        held = value.clamp(finfo(value.dtype).tiny, 1 - finfo(value.dtype).eps)
        return self.loc - self.scale * (-held.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)
