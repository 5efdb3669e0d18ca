"""Probability distributions that only ``tf.contrib.distributions`` has, beside those of ``tf.distributions``."""

from __future__ import annotations

import functools
import math as numbers
from collections.abc import Callable, Sequence
from typing import Any

from twofold import distributions
from twofold.dtypes import int32
from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor, refuse
from twofold.static.api.signatures import REQUIRED
from twofold.static.arrays import creation, shape_ops
from twofold.static.distributions import *  # noqa: F403
from twofold.static.distributions import (
    Beta,
    Distribution,
    Exponential,
    Gamma,
    Laplace,
    Normal,
    StudentT,
    _Choice,
    _family,
    _parameters,
    _unchecked,
)
from twofold.static.graph.docstrings import example

Cauchy = _family(
    distributions.Cauchy,
    "Cauchy's distribution around ``loc``.",
    "(0.0, 2.0).cdf(0.0)",
    "0.5",
    loc=REQUIRED,
    scale=REQUIRED,
)
Gumbel = _family(
    distributions.Gumbel,
    "Gumbel's distribution of largest values around ``loc``.",
    "(0.0, 1.0).mode()",
    "0.0",
    loc=REQUIRED,
    scale=REQUIRED,
)
HalfNormal = _family(
    distributions.HalfNormal,
    "Absolute values of normal numbers of standard deviation ``scale``.",
    "(2.0).mean()",
    "1.5957692",
    scale=REQUIRED,
)
Chi2 = _family(
    distributions.Chi2,
    "Sums of the squares of ``df`` normal numbers.",
    "(3.0).mean()",
    "3.0",
    df=REQUIRED,
)
InverseGamma = _family(
    distributions.InverseGamma,
    "Reciprocals of numbers of the gamma distribution.",
    "(3.0, 4.0).mean()",
    "2.0",
    concentration=REQUIRED,
    rate=REQUIRED,
)
Kumaraswamy = _family(
    distributions.Kumaraswamy,
    "Kumaraswamy's distribution, of density ``a b x**(a - 1) (1 - x**a)**(b - 1)``.",
    "(1.0, 1.0).prob(0.5)",
    "1.0",
    concentration1=None,
    concentration0=None,
)


def _softplus(kind: type[Distribution], own: str, *changed: str, given: str) -> type[Distribution]:
    """``kind`` whose parameters ``changed`` are softplus of those given."""

    def begin(self: Any, name: str, **parameters: Any) -> None:
        for key in changed:
            parameters[key] = nn.softplus(convert_to_tensor(parameters[key]))
        kind._begin(self, name, **parameters)

    words = " and ".join(f"``{one}``" for one in changed)
    members = {
        "__doc__": f"``{kind.__name__}`` with the softplus of {words}.",
        "__module__": __name__,
        "__init__": _parameters(own, **dict.fromkeys(given.split(), REQUIRED)),
        "_begin": begin,
    }
    return type(own, (kind,), members)


NormalWithSoftplusScale = _softplus(Normal, "NormalWithSoftplusScale", "scale", given="loc scale")
LaplaceWithSoftplusScale = _softplus(Laplace, "LaplaceWithSoftplusScale", "scale", given="loc scale")
ExponentialWithSoftplusRate = _softplus(Exponential, "ExponentialWithSoftplusRate", "rate", given="rate")
GammaWithSoftplusConcentrationRate = _softplus(
    Gamma, "GammaWithSoftplusConcentrationRate", "concentration", "rate", given="concentration rate"
)
InverseGammaWithSoftplusConcentrationRate = _softplus(
    InverseGamma,
    "InverseGammaWithSoftplusConcentrationRate",
    "concentration",
    "rate",
    given="concentration rate",
)
BetaWithSoftplusConcentration = _softplus(
    Beta,
    "BetaWithSoftplusConcentration",
    "concentration1",
    "concentration0",
    given="concentration1 concentration0",
)
StudentTWithAbsDfSoftplusScale = _softplus(
    StudentT, "StudentTWithAbsDfSoftplusScale", "scale", given="df loc scale"
)


@example("tf.contrib.distributions.Logistic(0.0, 1.0).cdf(0.0)", "0.5")
class Logistic(Distribution):
    """The distribution whose ``cdf`` is ``sigmoid((x - loc) / scale)``."""

    __init__ = _parameters("Logistic", loc=REQUIRED, scale=REQUIRED)

    def _begin(self, name: str, loc: Any, scale: Any) -> None:
        def make(loc: Any, scale: Any) -> Any:
            base = distributions.Uniform(loc * 0, loc * 0 + 1, validate_args=False)
            steps = [
                distributions.transforms.SigmoidTransform().inv,
                distributions.transforms.AffineTransform(loc, scale),
            ]
            return distributions.TransformedDistribution(base, steps, validate_args=False)

        one = convert_to_tensor(loc)
        two = convert_to_tensor(scale, one.dtype)
        super().__init__(make, {"loc": one + two * 0, "scale": two + one * 0}, name)

    def _whole_shape(self) -> Any:
        return self.loc  # type: ignore[attr-defined]

    def mean(self, name: str = "mean") -> Any:
        """``loc``."""
        with self._scope(name):
            return shape_ops.identity(self._whole_shape())

    mode = mean

    def stddev(self, name: str = "stddev") -> Any:
        """The standard deviation."""
        with self._scope(name):
            return self.scale * (numbers.pi / 3**0.5)  # type: ignore[attr-defined]

    def variance(self, name: str = "variance") -> Any:
        """The variance."""
        with self._scope(name):
            return math.square(self.stddev())

    def entropy(self, name: str = "entropy") -> Any:
        """The entropy in nats."""
        with self._scope(name):
            return math.log(self.scale) + 2.0  # type: ignore[attr-defined]


@example("tf.contrib.distributions.Poisson(2.0).mean()", "2.0")
class Poisson(Distribution):
    """Counts of density ``rate**k exp(-rate) / k!``; ``log_rate`` may be given for ``rate``."""

    _whole_numbers = True
    _differentiable = False
    __init__ = _parameters("Poisson", rate=None, log_rate=None, interpolate_nondiscrete=True)

    def _begin(self, name: str, rate: Any, log_rate: Any, interpolate_nondiscrete: bool) -> None:
        refuse("Poisson", **{"interpolate_nondiscrete=False": not interpolate_nondiscrete})
        if (rate is None) == (log_rate is None):
            what = "exactly one of rate and log_rate must be given"
            raise failed("Poisson", ArgumentError(what, "Give one of them."))
        found = math.exp(convert_to_tensor(log_rate)) if rate is None else rate
        super().__init__(_unchecked(distributions.Poisson), {"rate": found}, name)
        self.log_rate = math.log(self._given[0]) if log_rate is None else convert_to_tensor(log_rate)

    def mode(self, name: str = "mode") -> Any:
        """The most probable count."""
        with self._scope(name):
            return math.floor(self._given[0])


@example("tf.contrib.distributions.Geometric(probs=0.25).mean()", "3.0")
class Geometric(_Choice):
    """Counts of failures before the first success, whose probability is ``probs`` or ``sigmoid(logits)``."""

    _kind = distributions.Geometric
    __init__ = _parameters("Geometric", logits=None, probs=None)


class _Counted(_Choice):
    """A choice repeated ``total_count`` times."""

    _repeated: Callable[..., Any]

    def _begin(self, name: str, total_count: Any, logits: Any, probs: Any) -> None:  # type: ignore[override]
        kind = self._repeated
        self._kind = lambda **given: kind(given.pop("total_count"), **given)
        self._before = {
            "total_count": convert_to_tensor(
                total_count, (convert_to_tensor(probs if logits is None else logits)).dtype
            )
        }
        super()._begin(name, logits, probs)


@example("tf.contrib.distributions.Binomial(4.0, probs=0.25).mean()", "1.0")
class Binomial(_Counted):
    """Counts of successes in ``total_count`` trials of probability ``probs`` or ``sigmoid(logits)``."""

    _repeated = distributions.Binomial
    __init__ = _parameters("Binomial", total_count=REQUIRED, logits=None, probs=None)

    def entropy(self, name: str = "entropy") -> Any:
        """Not offered, as in TensorFlow."""
        raise NotImplementedError("entropy is not implemented: Binomial")

    def mode(self, name: str = "mode") -> Any:
        """The most probable count."""
        with self._scope(name):
            return math.floor((1.0 + self.total_count) * self.probs)  # type: ignore[attr-defined]


@example("tf.contrib.distributions.NegativeBinomial(2.0, probs=0.5).mean()", "2.0")
class NegativeBinomial(_Counted):
    """Counts of successes, of probability ``probs`` or ``sigmoid(logits)``, before ``total_count`` failures."""

    _repeated = distributions.NegativeBinomial
    __init__ = _parameters("NegativeBinomial", total_count=REQUIRED, logits=None, probs=None)


@example("tf.contrib.distributions.OneHotCategorical(probs=[0.25, 0.75]).prob([0, 1])", "0.75")
class OneHotCategorical(_Choice):
    """Classes as vectors with a single 1."""

    _event_axes = 1
    _kind = distributions.OneHotCategorical
    __init__ = _parameters("OneHotCategorical", logits=None, probs=None, dtype=int32)


class _Relaxed(_Counted):
    """A choice relaxed to a simplex by a temperature (Maddison et al., 2016)."""

    _whole_numbers = False
    _differentiable = True

    def _begin(self, name: str, temperature: Any, logits: Any, probs: Any) -> None:  # type: ignore[override]
        super()._begin(name, temperature, logits, probs)
        self.temperature = self._given[0]

    def _whole_shape(self) -> Any:
        return self._given[-1]


class RelaxedBernoulli(_Relaxed):
    """Numbers between 0 and 1 near the ends: the sigmoid of logistic numbers over ``temperature``."""

    _repeated = distributions.RelaxedBernoulli
    __init__ = _parameters("RelaxedBernoulli", temperature=REQUIRED, logits=None, probs=None)


class RelaxedOneHotCategorical(_Relaxed):
    """Vectors of the simplex near its corners: the softmax of Gumbel numbers over ``temperature``."""

    _event_axes = 1
    _repeated = distributions.RelaxedOneHotCategorical
    __init__ = _parameters("RelaxedOneHotCategorical", temperature=REQUIRED, logits=None, probs=None)


class _Matrix(Distribution):
    """Normal vectors of mean ``loc`` (zero unless given) and a matrix, one of which is needed."""

    _event_axes = 1
    _named: str

    def _begin(self, name: str, loc: Any, **matrix: Any) -> None:
        ((key, given),) = matrix.items()
        if loc is None and given is None:
            fix = "Give one of them."
            raise failed(type(self).__name__, ArgumentError(f"neither loc nor {key} is given", fix))
        value = None if given is None else convert_to_tensor(given)
        mean = None if loc is None else convert_to_tensor(loc)
        if value is None:
            size = shape_ops.shape(mean)[-1]
            value = creation.eye(size, dtype=mean.dtype)  # type: ignore[union-attr]
        mean = creation.zeros_like(value[..., 0]) if mean is None else mean
        named = self._named
        make = lambda loc, one: distributions.MultivariateNormal(loc, **{named: one}, validate_args=False)
        super().__init__(make, {"loc": mean, key: value}, name)


@example(
    "tf.contrib.distributions.MultivariateNormalTriL([0.0, 1.0], [[1.0, 0.0], [1.0, 1.0]]).mean()", "[0. 1.]"
)
class MultivariateNormalTriL(_Matrix):
    """Normal vectors of mean ``loc`` and covariance ``scale_tril @ scale_tril.T``; of the matrix the lower triangle."""

    _named = "scale_tril"
    __init__ = _parameters("MultivariateNormalTriL", loc=None, scale_tril=None)

    def _begin(self, name: str, loc: Any, scale_tril: Any) -> None:  # type: ignore[override]
        lower = (
            None if scale_tril is None else creation.matrix_band_part(convert_to_tensor(scale_tril), -1, 0)
        )
        super()._begin(name, loc, scale_tril=lower)


@example(
    "tf.contrib.distributions.MultivariateNormalFullCovariance([0.0], [[4.0]]).stddev()",
    "[2.]",
)
class MultivariateNormalFullCovariance(_Matrix):
    """Normal vectors of mean ``loc`` and ``covariance_matrix``."""

    _named = "covariance_matrix"
    __init__ = _parameters("MultivariateNormalFullCovariance", loc=None, covariance_matrix=None)


class _Combined(Distribution):
    """A distribution made of others: ``combine`` of those of ``twofold.distributions``."""

    def _combine(self, name: str, parts: Sequence[Any], combine: Callable[..., Any]) -> None:
        counts, makes = [len(part._given) for part in parts], [part._make for part in parts]

        def make(*given: Any) -> Any:
            left, found = list(given), []
            for count, one in zip(counts, makes):
                found.append(one(*left[:count]))
                del left[:count]
            return combine(*found)

        given = {f"part_{k}": one for k, one in enumerate(one for part in parts for one in part._given)}
        super().__init__(make, given, name, parts[-1].dtype)
        self.parameters = {}
        self._whole_numbers = parts[-1]._whole_numbers
        self._differentiable = all(part._differentiable for part in parts)


class Independent(_Combined):
    """A distribution whose last ``reinterpreted_batch_ndims`` axes of parameters make one value.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     normal = tf.contrib.distributions.Normal([0.0, 0.0], 1.0)
    ...     print(tf.contrib.distributions.Independent(normal, 1).event_shape)
    (2,)
    """

    __init__ = _parameters("Independent", distribution=REQUIRED, reinterpreted_batch_ndims=None)

    def _begin(self, name: str, distribution: Any, reinterpreted_batch_ndims: Any) -> None:
        count = reinterpreted_batch_ndims
        count = distribution.batch_shape.ndims - 1 if count is None else int(count)
        self._event_axes, self.distribution = distribution._event_axes + count, distribution
        combine = lambda one: distributions.Independent(one, count, validate_args=False)
        self._combine(name, [distribution], combine)
        self.reinterpreted_batch_ndims = count


class MixtureSameFamily(_Combined):
    """A mixture by a ``Categorical`` of the last axis of the parameters of ``components_distribution``."""

    __init__ = _parameters(
        "MixtureSameFamily", mixture_distribution=REQUIRED, components_distribution=REQUIRED
    )

    def _begin(self, name: str, mixture_distribution: Any, components_distribution: Any) -> None:
        self._event_axes = components_distribution._event_axes
        combine = functools.partial(distributions.MixtureSameFamily, validate_args=False)
        self._combine(name, [mixture_distribution, components_distribution], combine)
        self._differentiable = False
        self.mixture_distribution = mixture_distribution
        self.components_distribution = components_distribution
