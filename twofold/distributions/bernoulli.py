"""Bernoulli trials, their sums, how many it takes, and their continuous relative."""

from __future__ import annotations

import math
from typing import Any

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.distribution import Distribution, ExponentialFamily, arange
from twofold.distributions.gamma import log_gamma_variates
from twofold.distributions.utils import (
    Chances,
    broadcast_all,
    clamp_probs,
    one_of,
    sample_noise,
    where,
    without_gradients,
)
from twofold.errors import ArgumentError
from twofold.frontend.sampling import stream
from twofold.ops.base import ops
from twofold.ops.random import distributions, sampling

Tensor = _core.Tensor


def softplus(logits: Tensor) -> Tensor:
    """log(1 + exp(logits))."""
    return -ops.logsigmoid(-logits)


class _Trials(Chances, Distribution):
    """A distribution of ``probs`` or ``logits`` and, for some, of a ``total_count`` that broadcasts with them."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, name: str, probs: Any, logits: Any, *others: Any) -> None:
        one_of(name, probs, logits)
        values = broadcast_all(probs if logits is None else logits, *others)
        self.__dict__["logits" if probs is None else "probs"] = values[0]
        self._others = values[1:]

    def _finish(self, validate_args: bool | None) -> None:
        Distribution.__init__(self, self._parameter.shape, validate_args=validate_args)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._parameter.shape

    def _bernoulli(self, sample_shape: Any) -> Tensor:
        probs, shape = self.probs.detach(), tuple(self._extended_shape(sample_shape))
        return sampling.sample_bernoulli(*stream(None), probs.expand(shape), shape, probs.dtype)


class Bernoulli(_Trials, ExponentialFamily):
    """1 with probability ``probs``, else 0; ``logits`` are the logarithms of the odds."""

    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__("Bernoulli", probs, logits)
        self._finish(validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The likelier value; NaN where both are equally likely."""
        return where(self.probs == 0.5, math.nan, (self.probs > 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._bernoulli(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return value * self.logits - softplus(self.logits)

    def entropy(self) -> Tensor:
        return softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._listed(arange(2, self._parameter), expand)


class Geometric(_Trials):
    """How many trials of probability ``probs`` fail before the first succeeds."""

    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__("Geometric", probs, logits)
        self._finish(validate_args)
        known = "probs" in self._given and not self.probs._is_symbolic
        if self._validate_args and known and not bool((self.probs > 0).all()):
            raise ArgumentError("Geometric: a probability of 0", "Use probabilities above 0.")

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        probs = self.probs.detach()
        return sample_noise("geometric", self._extended_shape(sample_shape), probs, probs) - 1

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return where(value == 0, 0.0, value * ops.logsigmoid(-self.logits)) + self.probs.log()

    def entropy(self) -> Tensor:
        return (softplus(self.logits) - self.probs * self.logits) / self.probs


class Binomial(_Trials):
    """How many of ``total_count`` trials succeed."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__("Binomial", probs, logits, total_count)
        self.total_count = self._others[0].to(self._parameter.dtype)
        self._finish(validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        count, probs = (value.detach().expand(shape) for value in (self.total_count, self.probs))
        return distributions.sample_binomial(count, probs, *stream(None))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        count = self.total_count
        ways = ops.lgamma(count + 1) - ops.lgamma(value + 1) - ops.lgamma(count - value + 1)
        return ways + value * self.logits - count * softplus(self.logits)

    def _count(self) -> int:
        """The number of trials; raises NotImplementedError where it differs."""
        most = int(self.total_count.max().item())
        if int(self.total_count.min().item()) != most:
            raise NotImplementedError("Binomial: different total_counts have different supports")
        return most

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._listed(arange(1 + self._count(), self._parameter), expand)

    def entropy(self) -> Tensor:
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)


class NegativeBinomial(_Trials):
    """How many trials succeed before ``total_count`` of them fail."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__("NegativeBinomial", probs, logits, total_count)
        self.total_count = self._others[0].to(self._parameter.dtype)
        self._finish(validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return without_gradients(self._sample, self._extended_shape(sample_shape))

    def _sample(self, shape: Any) -> Tensor:
        """Poisson numbers whose rates are gamma variates."""
        rate = (log_gamma_variates(self.total_count, shape) + self.logits).exp().to(self.logits.dtype)
        return distributions.sample_poisson(rate, *stream(None))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        count = self.total_count
        plain = count * ops.logsigmoid(-self.logits) + value * ops.logsigmoid(self.logits)
        ways = ops.lgamma(count + value) - ops.lgamma(value + 1) - ops.lgamma(count)
        return plain + where(count + value == 0, 0.0, ways)


class ContinuousBernoulli(_Trials, ExponentialFamily):
    """Continuous relative of the Bernoulli distribution: density proportional to p**x (1 - p)**(1 - x) on [0, 1].

    Near p = 1/2, between ``lims``, series replace formulas that cancel. Source: Loaiza-Ganem and Cunningham, The
    Continuous Bernoulli: Fixing a Pervasive Error in Variational Autoencoders, 2019.
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        super().__init__("ContinuousBernoulli", probs, logits)
        self._lims = lims
        self._finish(validate_args)

    def _fixed(self) -> dict[str, Any]:
        return {"lims": self._lims}

    def _pieces(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Where p is near 1/2, p there replaced, its log odds, and p - 1/2."""
        p = clamp_probs(self.probs)
        near = (p > self._lims[0]) & (p < self._lims[1])
        held = where(near, self._lims[0], p)
        return near, held, held.log() - (-held).log1p(), p - 0.5

    def _log_normaliser(self) -> Tensor:
        near, held, odds, x = self._pieces()
        series = math.log(2) + (4 / 3 + 104 / 45 * x * x) * x * x
        return where(near, series, odds.abs().log() - (1 - 2 * held).abs().log())

    @property
    def mean(self) -> Tensor:
        near, held, odds, x = self._pieces()
        return where(near, 0.5 + (1 / 3 + 16 / 45 * x * x) * x, held / (2 * held - 1) - 1 / odds)

    @property
    def variance(self) -> Tensor:
        near, held, odds, x = self._pieces()
        rest = 1 - 2 * held
        series = 1 / 12 - (1 / 15 - 128 / 945 * x * x) * x * x
        return where(near, series, held * (held - 1) / (rest * rest) + 1 / (odds * odds))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(sample_noise("uniform", self._extended_shape(sample_shape), self._parameter))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return value * self.logits - softplus(self.logits) + self._log_normaliser()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        near, held, odds, _ = self._pieces()
        inside = where(near, value, (odds * value).expm1() * (1 - held) / (2 * held - 1))
        return inside.clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        near, held, odds, _ = self._pieces()
        return where(near, value, (value * (2 * held - 1) / (1 - held)).log1p() / odds)

    def entropy(self) -> Tensor:
        logits = where(self._pieces()[0], (clamp_probs(self.probs)).logit(), self.logits)
        return softplus(logits) - self.mean * logits - self._log_normaliser()


class Poisson(ExponentialFamily):
    """Poisson distribution with this ``rate``."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Tensor:
        rate = self.rate.detach().expand(tuple(self._extended_shape(sample_shape)))
        return distributions.sample_poisson(rate, *stream(None))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ops.xlogy(value, self.rate) - self.rate - ops.lgamma(value + 1)
