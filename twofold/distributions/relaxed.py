"""Continuous relaxations of discrete distributions, and normal vectors on the simplex."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.bernoulli import softplus
from twofold.distributions.categorical import Categorical
from twofold.distributions.combined import TransformedDistribution
from twofold.distributions.distribution import Distribution
from twofold.distributions.normal import Normal
from twofold.distributions.single_transforms import ExpTransform, SigmoidTransform
from twofold.distributions.utils import Chances, as_size, broadcast_all, exponential, one_of
from twofold.distributions.vector_transforms import StickBreakingTransform
from twofold.frontend.creation import tensor
from twofold.ops.base import ops

Tensor = _core.Tensor


def _temperature(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else tensor(float(value))


def _of_base(path: str, text: str) -> Any:
    """A property that is an attribute of the base distribution."""
    return property(attrgetter(path), doc=text)


class LogitRelaxedBernoulli(Chances, Distribution):
    """Logits of a relaxed Bernoulli variable: (logits + a logistic variable) / temperature.

    Source: Maddison, Mnih and Teh, The Concrete Distribution, 2017.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        one_of("LogitRelaxedBernoulli", probs, logits)
        self.temperature = _temperature(temperature)
        (value,) = broadcast_all(probs if logits is None else logits)
        self.__dict__["logits" if probs is None else "probs"] = value
        super().__init__(value.shape, validate_args=validate_args)

    def _fixed(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = exponential(shape, self._parameter).log() - exponential(shape, self._parameter).log()
        return (self.logits + noise) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        rest = self.logits - value * self.temperature
        return self.temperature.log() + rest - 2 * softplus(rest)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1) that come near to Bernoulli variables as ``temperature`` falls to 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)

    temperature = _of_base("base_dist.temperature", "The temperature.")
    probs = _of_base("base_dist.probs", "Probabilities.")
    logits = _of_base("base_dist.logits", "Logarithms of the odds.")


class ExpRelaxedCategorical(Chances, Distribution):
    """Logarithms of relaxed one-hot vectors: the log-softmax of (logits + Gumbel variables) / temperature.

    Source: Maddison, Mnih and Teh, The Concrete Distribution, 2017.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True
    _binary = False

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        self.temperature = _temperature(temperature)
        name = "probs" if logits is None else "logits"
        self.__dict__[name] = self._categorical._parameter
        shape = self._parameter.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=False)

    def _fixed(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        gumbel = -exponential(self._extended_shape(sample_shape), self._parameter).log()
        return ((self.logits + gumbel) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        count = self._event_shape[0]
        scores = (self.logits - value * self.temperature).log_softmax(-1).sum(-1)
        scale = ops.lgamma(ops.full_like(self.temperature, float(count)))
        return scores + scale + (count - 1) * self.temperature.log()


class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors on the simplex that come near to one-hot ones as ``temperature`` falls to 0."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    temperature = _of_base("base_dist.temperature", "The temperature.")
    probs = _of_base("base_dist.probs", "Probabilities.")
    logits = _of_base("base_dist.logits", "Normalised logarithms of the probabilities.")


class LogisticNormal(TransformedDistribution):
    """Vectors on the simplex: the stick-breaking transform of normal vectors with one element less."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "scale": constraints.independent(constraints.positive, 1),
    }
    support = constraints.simplex

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not len(base.batch_shape):
            base = base.expand(as_size(1))  # type: ignore[assignment]
        super().__init__(base, StickBreakingTransform(), validate_args)

    loc = _of_base("base_dist.base_dist.loc", "The mean of the normal vectors.")
    scale = _of_base("base_dist.base_dist.scale", "The deviations of the normal vectors.")
