"""Probability distributions: ``tf.distributions``."""

from __future__ import annotations

import math as numbers_of_python
from typing import Any

from twofold.dtypes import int32
from twofold.errors import ArgumentError
from twofold.static import array, math, nn
from twofold.static.define import as_dtype, convert_to_tensor
from twofold.static.flow import failed
from twofold.static.random import multinomial, random_uniform
from twofold.static.random import random_normal as draw_normal

_HALF_LOG_TWO_PI = 0.5 * numbers_of_python.log(2 * numbers_of_python.pi)


class Distribution:
    """What distributions share; a subclass gives ``_draw``, ``log_prob``, ``mean`` and what else it has."""

    def __init__(self, dtype: Any, name: str) -> None:
        self.dtype, self.name = dtype, name

    def batch_shape_tensor(self, name: str | None = None) -> Any:
        """The shape of the parameters together."""
        raise NotImplementedError

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Any:
        """Samples of shape ``sample_shape`` for each set of parameters, drawn anew in every run."""
        wanted = [sample_shape] if isinstance(sample_shape, int) else list(sample_shape)
        whole = (
            array.concat([convert_to_tensor(wanted, int32), self.batch_shape_tensor()], 0) if wanted else None
        )
        return self._draw(self.batch_shape_tensor() if whole is None else whole, seed)

    def _draw(self, shape: Any, seed: int | None) -> Any:
        raise NotImplementedError

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        """The logarithm of the probability, or density, of ``value``."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob.")

    def prob(self, value: Any, name: str = "prob") -> Any:
        """The probability, or density, of ``value``."""
        return math.exp(self.log_prob(value))

    def cdf(self, value: Any, name: str = "cdf") -> Any:
        """The probability of at most ``value``."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf.")

    def mean(self, name: str = "mean") -> Any:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} has no mean.")

    def variance(self, name: str = "variance") -> Any:
        """The variance."""
        return math.square(self.stddev())

    def stddev(self, name: str = "stddev") -> Any:
        """The standard deviation."""
        return math.sqrt(self.variance())

    def entropy(self, name: str = "entropy") -> Any:
        """The entropy in nats."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy.")

    def kl_divergence(self, other: Any, name: str = "kl_divergence") -> Any:
        """``kl_divergence(self, other)``."""
        return kl_divergence(self, other)


class _LocationScale(Distribution):
    """Distributions of two parameters that broadcast together."""

    def _pair(self, one: Any, two: Any) -> tuple[Any, Any]:
        a = convert_to_tensor(one)
        b = convert_to_tensor(two, a.dtype if a.dtype.kind == "f" else None)
        return a, b

    _parameters: tuple[Any, Any]

    def batch_shape_tensor(self, name: str | None = None) -> Any:
        return array.shape(self._parameters[0] + self._parameters[1])

    def _spread(self, value: Any) -> Any:
        """A parameter in the shape of both."""
        return value + array.zeros_like(self._parameters[0] + self._parameters[1])


class Normal(_LocationScale):
    """Normal numbers with mean ``loc`` and standard deviation ``scale``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.distributions.Normal(0.0, [1.0, 2.0]).prob(0.0)))
    [0.3989423  0.19947115]
    """

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:
        self.loc, self.scale = self._parameters = self._pair(loc, scale)
        super().__init__(self.loc.dtype, name)

    def _draw(self, shape: Any, seed: int | None) -> Any:
        return self.loc + self.scale * draw_normal(shape, dtype=self.dtype, seed=seed)

    def _standard(self, value: Any) -> Any:
        return (convert_to_tensor(value, self.dtype) - self.loc) / self.scale

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        return -0.5 * math.square(self._standard(value)) - _HALF_LOG_TWO_PI - math.log(self.scale)

    def cdf(self, value: Any, name: str = "cdf") -> Any:
        return 0.5 * math.erfc(-self._standard(value) * numbers_of_python.sqrt(0.5))

    def mean(self, name: str = "mean") -> Any:
        return self._spread(self.loc)

    def mode(self, name: str = "mode") -> Any:
        """The mean."""
        return self.mean()

    def stddev(self, name: str = "stddev") -> Any:
        return self._spread(self.scale)

    def entropy(self, name: str = "entropy") -> Any:
        return 0.5 + _HALF_LOG_TWO_PI + math.log(self.stddev())


class Laplace(_LocationScale):
    """Numbers of density ``exp(-abs(x - loc) / scale) / (2 * scale)``."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Laplace",
    ) -> None:
        self.loc, self.scale = self._parameters = self._pair(loc, scale)
        super().__init__(self.loc.dtype, name)

    def _draw(self, shape: Any, seed: int | None) -> Any:
        even = random_uniform(shape, -1.0 + 2**-23, 1.0, self.dtype, seed)
        return self.loc - self.scale * math.sign(even) * math.log1p(-math.abs(even))

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        away = math.abs((convert_to_tensor(value, self.dtype) - self.loc) / self.scale)
        return -away - numbers_of_python.log(2.0) - math.log(self.scale)

    def mean(self, name: str = "mean") -> Any:
        return self._spread(self.loc)

    def stddev(self, name: str = "stddev") -> Any:
        return self._spread(self.scale) * numbers_of_python.sqrt(2.0)

    def entropy(self, name: str = "entropy") -> Any:
        return numbers_of_python.log(2.0) + 1.0 + math.log(self._spread(self.scale))


class Uniform(_LocationScale):
    """Numbers drawn evenly from ``low`` up to, but not including, ``high``."""

    def __init__(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        self.low, self.high = self._parameters = self._pair(low, high)
        super().__init__(self.low.dtype, name)

    def _draw(self, shape: Any, seed: int | None) -> Any:
        return self.low + (self.high - self.low) * random_uniform(shape, dtype=self.dtype, seed=seed)

    def prob(self, value: Any, name: str = "prob") -> Any:
        given = convert_to_tensor(value, self.dtype)
        inside = math.logical_and(math.greater_equal(given, self.low), math.less(given, self.high))
        return math.cast(inside, self.dtype) / (self.high - self.low)

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        return math.log(self.prob(value))

    def cdf(self, value: Any, name: str = "cdf") -> Any:
        part = (convert_to_tensor(value, self.dtype) - self.low) / (self.high - self.low)
        return math.clip_by_value(part, 0.0, 1.0)

    def mean(self, name: str = "mean") -> Any:
        return (self.low + self.high) / 2.0

    def stddev(self, name: str = "stddev") -> Any:
        return (self.high - self.low) / numbers_of_python.sqrt(12.0)

    def entropy(self, name: str = "entropy") -> Any:
        return math.log(self.high - self.low)


class Exponential(Distribution):
    """Numbers of density ``rate * exp(-rate * x)``."""

    def __init__(
        self,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Exponential",
    ) -> None:
        self.rate = convert_to_tensor(rate)
        super().__init__(self.rate.dtype, name)

    def batch_shape_tensor(self, name: str | None = None) -> Any:
        return array.shape(self.rate)

    def _draw(self, shape: Any, seed: int | None) -> Any:
        return -math.log1p(-random_uniform(shape, dtype=self.dtype, seed=seed)) / self.rate

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        return math.log(self.rate) - self.rate * convert_to_tensor(value, self.dtype)

    def cdf(self, value: Any, name: str = "cdf") -> Any:
        return -math.expm1(-self.rate * convert_to_tensor(value, self.dtype))

    def mean(self, name: str = "mean") -> Any:
        return 1.0 / self.rate

    def stddev(self, name: str = "stddev") -> Any:
        return 1.0 / self.rate

    def entropy(self, name: str = "entropy") -> Any:
        return 1.0 - math.log(self.rate)


def _one_of(name: str, logits: Any, probs: Any) -> None:
    if (logits is None) == (probs is None):
        what = "exactly one of logits and probs must be given"
        raise failed(name, ArgumentError(what, "Give one of them."))


class Bernoulli(Distribution):
    """1 with probability ``probs`` or ``sigmoid(logits)``, else 0."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        _one_of("Bernoulli", logits, probs)
        if probs is None:
            self.logits = convert_to_tensor(logits)
            self.probs = math.sigmoid(self.logits)
        else:
            self.probs = convert_to_tensor(probs)
            self.logits = math.log(self.probs) - math.log1p(-self.probs)
        super().__init__(as_dtype(dtype), name)

    def batch_shape_tensor(self, name: str | None = None) -> Any:
        return array.shape(self.probs)

    def _draw(self, shape: Any, seed: int | None) -> Any:
        even = random_uniform(shape, dtype=self.probs.dtype, seed=seed)
        return math.cast(math.less(even, self.probs), self.dtype)

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        given = math.cast(convert_to_tensor(value), self.logits.dtype)
        shape = array.zeros_like(given * self.logits)
        return -nn.sigmoid_cross_entropy_with_logits(labels=given + shape, logits=self.logits + shape)

    def mean(self, name: str = "mean") -> Any:
        return self.probs

    def mode(self, name: str = "mode") -> Any:
        """The more probable number."""
        return math.cast(math.greater(self.probs, 0.5), self.dtype)

    def variance(self, name: str = "variance") -> Any:
        return self.probs * (1.0 - self.probs)

    def entropy(self, name: str = "entropy") -> Any:
        return nn.softplus(self.logits) - self.logits * self.probs


class Categorical(Distribution):
    """Class numbers with probabilities ``probs`` or ``softmax(logits)`` along the last axis."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        _one_of("Categorical", logits, probs)
        if probs is None:
            self.logits = convert_to_tensor(logits)
            self.probs = nn.softmax(self.logits)
        else:
            self.probs = convert_to_tensor(probs)
            self.logits = math.log(self.probs)
        super().__init__(as_dtype(dtype), name)

    def batch_shape_tensor(self, name: str | None = None) -> Any:
        return array.shape(self.probs)[:-1]

    @property
    def event_size(self) -> Any:
        """The number of classes."""
        return self.probs.get_shape()[-1].value

    def _draw(self, shape: Any, seed: int | None) -> Any:
        rows = array.reshape(self.logits, [-1, array.shape(self.logits)[-1]])
        each = math.reduce_prod(shape) // math.maximum(math.reduce_prod(self.batch_shape_tensor()), 1)
        drawn = array.transpose(multinomial(rows, each, seed, output_dtype=self.dtype))
        return array.reshape(drawn, shape)

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        classes = convert_to_tensor(value)
        logits = self.logits
        if classes.type_.ndim != logits.type_.ndim - 1 or classes.type_.shape != logits.type_.shape[:-1]:
            zeros = math.cast(classes, logits.dtype) * 0.0 + array.zeros_like(logits[..., 0])
            logits = logits + array.expand_dims(zeros, -1)
            classes = classes + math.cast(zeros, classes.dtype)
        return -nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)

    def mode(self, name: str = "mode") -> Any:
        """The most probable class."""
        return math.cast(math.argmax(self.logits, -1), self.dtype)

    def entropy(self, name: str = "entropy") -> Any:
        return -math.reduce_sum(self.probs * nn.log_softmax(self.logits), -1)


def _normals(a: Normal, b: Normal) -> Any:
    ratio = math.square(a.scale / b.scale)
    away = math.square((a.loc - b.loc) / b.scale)
    return 0.5 * (away + ratio - 1.0 - math.log(ratio))


def _bernoullis(a: Bernoulli, b: Bernoulli) -> Any:
    one = a.probs * (nn.softplus(-b.logits) - nn.softplus(-a.logits))
    return one + (1.0 - a.probs) * (nn.softplus(b.logits) - nn.softplus(a.logits))


def _categoricals(a: Categorical, b: Categorical) -> Any:
    return math.reduce_sum(a.probs * (nn.log_softmax(a.logits) - nn.log_softmax(b.logits)), -1)


def _uniforms(a: Uniform, b: Uniform) -> Any:
    inside = math.logical_and(math.less_equal(b.low, a.low), math.less_equal(a.high, b.high))
    found = math.log((b.high - b.low) / (a.high - a.low))
    return array.chosen(inside, found, array.zeros_like(found) + float("inf"))


_DIVERGENCES: dict[type, Any] = {
    Normal: _normals,
    Bernoulli: _bernoullis,
    Categorical: _categoricals,
    Uniform: _uniforms,
}


def kl_divergence(
    distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True, name: str | None = None
) -> Any:
    """The Kullback-Leibler divergence of ``distribution_a`` from ``distribution_b``.

    Raises NotImplementedError unless both are normal, uniform, Bernoulli's or categorical.
    """
    kind = type(distribution_a)
    if kind is not type(distribution_b) or kind not in _DIVERGENCES:
        names = f"{kind.__name__} from {type(distribution_b).__name__}"
        raise NotImplementedError(f"kl_divergence: {names} is not offered. Estimate it from samples.")
    return _DIVERGENCES[kind](distribution_a, distribution_b)
