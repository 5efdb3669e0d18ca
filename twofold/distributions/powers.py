"""Distributions made of powers of exponential or uniform variables."""

from __future__ import annotations

import math
from typing import Any

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.distribution import Distribution
from twofold.distributions.utils import EULER, broadcast_all, exponential, where
from twofold.ops.base import ops

Tensor = _core.Tensor


class Pareto(Distribution):
    """Pareto distribution, whose density falls as x**-(alpha + 1) from ``scale`` on."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        held = self.alpha.clamp(min=1)
        return held * self.scale / (held - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        held = self.alpha.clamp(min=2)
        return self.scale * self.scale * held / ((held - 1) * (held - 1) * (held - 2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        wait = exponential(self._extended_shape(sample_shape), self.scale)
        return self.scale * (wait / self.alpha).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * value.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -(self.alpha * (self.scale / value).log()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-((-value).log1p()) / self.alpha).exp()

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + 1 / self.alpha


class GeneralizedPareto(Distribution):
    """Generalised Pareto distribution: tails beyond ``loc`` with the exponent -1 / ``concentration`` - 1.

    Source: Hosking and Wallis, Parameter and Quantile Estimation for the Generalized Pareto Distribution, 1987.
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, end)

    @property
    def mean(self) -> Tensor:
        found = self.loc + self.scale / (1 - self.concentration)
        return where(self.concentration < 1, found, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        rest = 1 - self.concentration
        found = self.scale * self.scale / (rest * rest * (1 - 2 * self.concentration))
        return where(self.concentration < 0.5, found, math.inf)

    def _wait(self, value: Tensor) -> Tensor:
        """Minus the logarithm of the chance to exceed ``value``."""
        standard = (value - self.loc) / self.scale
        none = self.concentration == 0
        held = where(none, 1.0, self.concentration)
        return where(none, standard, (held * standard).log1p() / held)

    def _value(self, wait: Tensor) -> Tensor:
        none = self.concentration == 0
        held = where(none, 1.0, self.concentration)
        return self.loc + self.scale * where(none, wait, (held * wait).expm1() / held)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._value(exponential(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        wait, rest = self._wait(value), 1 + self.concentration
        at_end = (rest == 0) & (wait == math.inf)  # of the uniform distribution, whose density is constant
        return -self.scale.log() - where(at_end, 0.0, rest * wait)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -(-self._wait(value)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self._value(-((-value).log1p()))

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1


class Weibull(Distribution):
    """Weibull distribution: ``scale`` times an exponential variable to the power 1 / ``concentration``."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    def _moment(self, order: int) -> Tensor:
        return ops.lgamma(1 + order / self.concentration).exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        rest = 1 - 1 / self.concentration
        found = self.scale * (rest.clamp(min=0).log() / self.concentration).exp()
        return where(self.concentration > 1, found, 0.0)

    @property
    def variance(self) -> Tensor:
        first = self._moment(1)
        return self.scale * self.scale * (self._moment(2) - first * first)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        wait = exponential(self._extended_shape(sample_shape), self.scale)
        return self.scale * (wait.log() / self.concentration).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logarithm = (value / self.scale).log()
        power = self.concentration * logarithm
        return (self.concentration / self.scale).log() + power - logarithm - power.exp()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -(-(self.concentration * (value / self.scale).log()).exp()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * ((-((-value).log1p())).log() / self.concentration).exp()

    def entropy(self) -> Tensor:
        rest = 1 - 1 / self.concentration
        return EULER * rest + (self.scale / self.concentration).log() + 1


class Kumaraswamy(Distribution):
    """Kumaraswamy distribution on (0, 1), with the distribution function 1 - (1 - x**a)**b.

    ``concentration1`` is a and ``concentration0`` is b. Source: Kumaraswamy, A Generalized Probability Density Function
    for Double-Bounded Random Processes, 1980.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def _moment(self, order: int) -> Tensor:
        """b times the beta function of 1 + order / a and b."""
        first = 1 + order / self.concentration1
        whole = ops.lgamma(first) + ops.lgamma(self.concentration0)
        return self.concentration0 * (whole - ops.lgamma(first + self.concentration0)).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        found = (((a - 1) / (a * b - 1)).log() / a).exp()
        inside = (a >= 1) & (b >= 1) & ((a > 1) | (b > 1))
        return where(inside, found, math.nan)

    @property
    def variance(self) -> Tensor:
        first = self._moment(1)
        return self._moment(2) - first * first

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._value(exponential(self._extended_shape(sample_shape), self.concentration1))

    def _value(self, wait: Tensor) -> Tensor:
        rest = -(-wait / self.concentration0).expm1()
        return (rest.log() / self.concentration1).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        rest = -(a * value.log()).expm1()
        return a.log() + b.log() + ops.xlogy(a - 1, value) + ops.xlogy(b - 1, rest)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -(self.concentration0 * (-(self.concentration1 * value.log()).exp()).log1p()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self._value(-((-value).log1p()))

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = ops.digamma(b + 1) + EULER
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()
