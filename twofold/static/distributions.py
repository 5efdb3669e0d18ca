"""Probability distributions: ``tf.distributions``.

The formulas are those of ``twofold.distributions``; here each method declares an operation, and each run samples
anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core, distributions
from twofold.dtypes import DType, int32
from twofold.errors import ArgumentError
from twofold.frontend.sampling import stream_from
from twofold.ir.bind import input_node
from twofold.ir.node import Node
from twofold.ir.sizes import is_symbolic
from twofold.ops.base import ops
from twofold.runtime.calls import failed
from twofold.static import math
from twofold.static.api.op_functions import as_dtype, convert_to_tensor, define, refuse, sizes
from twofold.static.api.signatures import REQUIRED, with_parameters
from twofold.static.arrays import creation, shape_ops
from twofold.static.graph.docstrings import example, with_example
from twofold.static.graph.scopes import name_scope as _name_scope
from twofold.static.random import next_key

_Make = Callable[..., distributions.Distribution]


class ReparameterizationType:
    """Whether gradients flow through samples."""

    def __init__(self, words: str) -> None:
        self._words = words

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._words}>"


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


def _on_tensors(body: Callable[..., Any], *lists: Sequence[Any], counter: Any = None) -> Any:
    """``body`` of lists of tensors; while types are inferred, of placeholders for the nodes in the lists."""
    if not isinstance(next(value for values in lists for value in values), Node):
        return body(*lists, *([] if counter is None else [counter]))
    _compare_sizes([value.type.shape for values in lists for value in values if isinstance(value, Node)])
    stand = lambda value: _core.placeholder(value.type) if isinstance(value, Node) else value
    counters = [] if counter is None else [stand(counter)]
    return input_node(0, body(*[[stand(value) for value in values] for values in lists], *counters).type_)


def _compare_sizes(shapes: Sequence[Sequence[Any]]) -> None:
    """Decide which sizes of different tensors are equal, as placeholders only show what was decided.

    A size that is not known is different until ``body`` refuses that; those of one axis are the first to become equal.
    """
    pairs = [
        (i != j, a, b)
        for k, shape in enumerate(shapes)
        for other in shapes[:k]
        for i, a in enumerate(shape)
        for j, b in enumerate(other)
        if is_symbolic(a) and is_symbolic(b)
    ]
    for _, a, b in sorted(pairs, key=lambda pair: -pair[0]):
        bool(a == b)


class Distribution:
    """What distributions share; a subclass says what ``twofold.distributions`` calls it, and its parameters."""

    _begin: Callable[..., None]
    _whole_numbers = False
    _event_axes = 0

    def __init__(self, make: _Make, parameters: dict[str, Any], name: str, dtype: Any = None) -> None:
        self._make = make
        given: list[Any] = []
        for key, value in parameters.items():
            found = convert_to_tensor(value, given[0].dtype if given else None)
            given.append(found)
            setattr(self, key, found)
        self._given, self.parameters, self.name = given, parameters, name
        self._float: DType = given[0].dtype
        self.dtype = self._float if dtype is None else as_dtype(dtype)

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        """Whether gradients flow through samples."""
        return FULLY_REPARAMETERIZED if self._differentiable else NOT_REPARAMETERIZED

    _differentiable = True

    def _scope(self, name: str) -> Any:
        """Inside, names of operations start with those of the distribution and of a method."""
        return _name_scope(f"{self.name}/{name}")

    def _declared(
        self, what: str, function: Callable[..., Any], *values: Any, name: str | None = None
    ) -> Any:
        """An operation: ``function`` of the distribution and of ``values``."""
        make = self._make

        def body(parameters: Sequence[Any], values: Sequence[Any]) -> Any:
            return _on_tensors(lambda given, rest: function(make(*given), *rest), parameters, values)

        keywords = {"parameters": self._given, "values": list(values)}
        return define(
            f"{type(self).__name__}/{what}", body, (), keywords, f"{self.name}/{name or what}"
        ).outputs[0]

    def _of_value(self, what: str, value: Any, name: str) -> Any:
        dtype = self._float
        given = convert_to_tensor(value, None if self._whole_numbers else dtype)
        evaluate = lambda made, x: getattr(made, what)(ops.cast(x, dtype))
        return self._declared(what, evaluate, given, name=name)

    def _property(self, what: str, name: str | None = None) -> Any:
        return self._declared(what, lambda made: getattr(made, what), name=name)

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        """The logarithm of the probability, or density, of ``value``."""
        return self._of_value("log_prob", value, name)

    def prob(self, value: Any, name: str = "prob") -> Any:
        """The probability, or density, of ``value``."""
        with self._scope(name):
            return math.exp(self.log_prob(value))

    def cdf(self, value: Any, name: str = "cdf") -> Any:
        """The probability of at most ``value``."""
        return self._of_value("cdf", value, name)

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Any:
        """The logarithm of ``cdf``."""
        with self._scope(name):
            return math.log(self.cdf(value))

    def survival_function(self, value: Any, name: str = "survival_function") -> Any:
        """The probability of more than ``value``."""
        with self._scope(name):
            return 1.0 - self.cdf(value)

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Any:
        """The logarithm of ``survival_function``."""
        with self._scope(name):
            return math.log1p(-self.cdf(value))

    def quantile(self, value: Any, name: str = "quantile") -> Any:
        """The value up to which this probability lies."""
        return self._of_value("icdf", value, name)

    def mean(self, name: str = "mean") -> Any:
        """The mean."""
        return self._property("mean", name)

    def mode(self, name: str = "mode") -> Any:
        """The most probable value."""
        with self._scope(name):
            return math.cast(self._property("mode"), self.dtype)

    def variance(self, name: str = "variance") -> Any:
        """The variance."""
        return self._property("variance", name)

    def stddev(self, name: str = "stddev") -> Any:
        """The standard deviation."""
        return self._property("stddev", name)

    def entropy(self, name: str = "entropy") -> Any:
        """The entropy in nats."""
        return self._declared("entropy", lambda made: made.entropy(), name=name)

    def kl_divergence(self, other: Any, name: str = "kl_divergence") -> Any:
        """``kl_divergence(self, other)``."""
        return kl_divergence(self, other, name=f"{self.name}/{name}")

    def cross_entropy(self, other: Any, name: str = "cross_entropy") -> Any:
        """The entropy, and the divergence of ``other`` from this distribution."""
        with self._scope(name):
            return self.entropy() + kl_divergence(self, other)

    def _whole_shape(self) -> Any:
        return self._declared("shape", lambda made: made.mean)

    @property
    def batch_shape(self) -> Any:
        """The shape of the parameters together."""
        shape = self._whole_shape().get_shape()
        return shape[: shape.ndims - self._event_axes] if shape.ndims is not None else shape

    @property
    def event_shape(self) -> Any:
        """The shape of one value."""
        shape = self._whole_shape().get_shape()
        return shape[shape.ndims - self._event_axes :]

    def batch_shape_tensor(self, name: str | None = None) -> Any:
        """The shape of the parameters together, as a tensor."""
        with self._scope(name or "batch_shape_tensor"):
            shape = shape_ops.shape(self._whole_shape())
            return shape[: -self._event_axes] if self._event_axes else shape

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Any:
        """Samples of shape ``sample_shape`` for each set of parameters, new in every run."""
        make, dtype = self._make, self.dtype

        def body(parameters: Sequence[Any], shape: Any, key: int, counter: Any) -> Any:
            def sampled(given: Sequence[Any], counter: Any) -> Any:
                made = make(*given)
                with stream_from(key, counter):
                    samples = made.rsample(sizes(shape)) if made.has_rsample else made.sample(sizes(shape))
                return ops.cast(samples, dtype)

            return _on_tensors(sampled, parameters, counter=counter)

        keywords = {"parameters": self._given, "shape": sample_shape, "key": next_key(seed)}
        label = f"{type(self).__name__}/{name}"
        return define(label, body, (), keywords, label, frozenset({"shape"}), True).outputs[0]


def _unchecked(kind: _Make) -> _Make:
    """A class of distributions that takes any parameters, as TensorFlow's do."""
    return lambda *parameters: kind(*parameters, validate_args=False)


def _refuse(made: Distribution, validate_args: bool, allow_nan_stats: bool) -> None:
    """Raise ArgumentError where parameters or statistics are to be checked in each run."""
    refuse(type(made).__name__, validate_args=validate_args, **{"allow_nan_stats=False": not allow_nan_stats})


def _parameters(name: str, **own: Any) -> Callable[..., None]:
    """The ``__init__`` of a class ``name`` with these parameters and their defaults, then those that all have."""

    def initialize(
        self: Distribution, validate_args: bool, allow_nan_stats: bool, name: str, **given: Any
    ) -> None:
        _refuse(self, validate_args, allow_nan_stats)
        self._begin(name, **given)

    shared = {"validate_args": False, "allow_nan_stats": True, "name": name}
    made = with_parameters(initialize, {"self": REQUIRED, **own, **shared})
    made.__name__, made.__qualname__ = "__init__", f"{name}.__init__"
    return made


def _family(
    kind: _Make, text: str, expression: str, result: str, event_axes: int = 0, **own: Any
) -> type[Distribution]:
    """The class of a family whose parameters are those of ``twofold.distributions``, in the same order.

    Its example is a method of a distribution.
    """
    name = kind.__name__
    members = {
        "__doc__": with_example(text, f"tf.distributions.{name}{expression}", result),
        "__module__": __name__,
        "__init__": _parameters(name, **own),
        "_begin": lambda self, name, **given: Distribution.__init__(self, _unchecked(kind), given, name),
        "_event_axes": event_axes,
    }
    return type(name, (Distribution,), members)


Normal = _family(
    distributions.Normal,
    "Normal numbers with mean ``loc`` and standard deviation ``scale``.",
    "(0.0, [1.0, 2.0]).prob(0.0)",
    "[0.3989423  0.19947115]",
    loc=REQUIRED,
    scale=REQUIRED,
)
Laplace = _family(
    distributions.Laplace,
    "Laplace's distribution around ``loc``, of density ``exp(-|x - loc| / scale) / (2 scale)``.",
    "(0.0, 1.0).prob(0.0)",
    "0.5",
    loc=REQUIRED,
    scale=REQUIRED,
)
Uniform = _family(
    distributions.Uniform,
    "Numbers distributed evenly from ``low`` up to, but not including, ``high``.",
    "(0.0, 4.0).prob(1.0)",
    "0.25",
    low=0.0,
    high=1.0,
)
Exponential = _family(
    distributions.Exponential,
    "Numbers of density ``rate * exp(-rate * x)``.",
    "(2.0).prob(0.0)",
    "2.0",
    rate=REQUIRED,
)
Gamma = _family(
    distributions.Gamma,
    "The gamma distribution of shape ``concentration`` and ``rate``; samples have implicit gradients.",
    "(1.0, 2.0).mean()",
    "0.5",
    concentration=REQUIRED,
    rate=REQUIRED,
)
Beta = _family(
    distributions.Beta,
    "The beta distribution, of density proportional to x**(concentration1 - 1) (1 - x)**(concentration0 - 1).",
    "(1.0, 3.0).mean()",
    "0.25",
    concentration1=REQUIRED,
    concentration0=REQUIRED,
)
Dirichlet = _family(
    distributions.Dirichlet,
    "The Dirichlet distribution over the simplex, with ``concentration`` along its last axis.",
    "([1.0, 3.0]).mean()",
    "[0.25 0.75]",
    event_axes=1,
    concentration=REQUIRED,
)
StudentT = _family(
    distributions.StudentT,
    "Student's t distribution with ``df`` degrees of freedom.",
    "(3.0, 1.0, 1.0).mean()",
    "1.0",
    df=REQUIRED,
    loc=REQUIRED,
    scale=REQUIRED,
)


class _Choice(Distribution):
    """Distributions of logits or probs, of which one is given."""

    _whole_numbers = True
    _differentiable = False
    _kind: _Make
    _before: dict[str, Any] = {}
    """Parameters before the one of logits and probs that is given."""

    def _begin(self, name: str, logits: Any, probs: Any, dtype: Any = None) -> None:
        if (logits is None) == (probs is None):
            what = "exactly one of logits and probs must be given"
            raise failed(type(self).__name__, ArgumentError(what, "Give one of them."))
        kind, before = self._kind, list(self._before)
        key, value = ("probs", probs) if logits is None else ("logits", logits)

        def make(*given: Any) -> Any:
            return kind(**dict(zip([*before, key], given, strict=True)), validate_args=False)

        super().__init__(make, {**self._before, key: value}, name, dtype)
        other = "logits" if logits is None else "probs"
        setattr(self, other, self._property(other))


@example("tf.distributions.Bernoulli(probs=0.25).prob(1)", "0.25")
class Bernoulli(_Choice):
    """1 with probability ``probs`` or ``sigmoid(logits)``, else 0."""

    _kind = distributions.Bernoulli
    __init__ = _parameters("Bernoulli", logits=None, probs=None, dtype=int32)

    def mode(self, name: str = "mode") -> Any:
        """The more probable number; 0 if both are."""
        with self._scope(name):
            return math.cast(math.greater(self.probs, 0.5), self.dtype)  # type: ignore[attr-defined]


@example("tf.distributions.Categorical(probs=[0.25, 0.75]).prob(1)", "0.75")
class Categorical(_Choice):
    """Class numbers with probabilities ``probs`` or ``softmax(logits)`` along the last axis."""

    _kind = distributions.Categorical
    __init__ = _parameters("Categorical", logits=None, probs=None, dtype=int32)

    @property
    def event_size(self) -> Any:
        """The number of classes."""
        return self._given[0].get_shape()[-1].value


@example("tf.distributions.Multinomial(4.0, probs=[0.25, 0.75]).mean()", "[1. 3.]")
class Multinomial(_Choice):
    """Counts of classes in ``total_count``, one number, independent choices."""

    _event_axes = 1
    __init__ = _parameters("Multinomial", total_count=REQUIRED, logits=None, probs=None)

    def _begin(self, name: str, total_count: Any, logits: Any, probs: Any) -> None:  # type: ignore[override]
        self.total_count = int(total_count)
        self._kind = functools.partial(distributions.Multinomial, self.total_count)
        super()._begin(name, logits, probs)


@example("tf.contrib.distributions.MultivariateNormalDiag([0.0, 1.0], [1.0, 2.0]).stddev()", "[1. 2.]")
class MultivariateNormalDiag(Distribution):
    """Normal vectors of independent components, of mean ``loc`` (zero) and standard deviations ``scale_diag`` (one).

    ``scale_identity_multiplier`` is added to ``scale_diag``, or stands for it.
    """

    _event_axes = 1
    __init__ = _parameters(
        "MultivariateNormalDiag", loc=None, scale_diag=None, scale_identity_multiplier=None
    )

    def _begin(self, name: str, loc: Any, scale_diag: Any, scale_identity_multiplier: Any) -> None:
        if loc is None and scale_diag is None:
            what = "neither loc nor scale_diag is given, and the size is not known"
            raise failed("MultivariateNormalDiag", ArgumentError(what, "Give one of them."))
        like = convert_to_tensor(scale_diag if loc is None else loc)
        scale = None if scale_diag is None else convert_to_tensor(scale_diag, like.dtype)
        if scale_identity_multiplier is not None:
            more = shape_ops.expand_dims(convert_to_tensor(scale_identity_multiplier, like.dtype), -1)
            scale = more + (creation.zeros_like(like) if scale is None else scale)
        given = {
            "loc": creation.zeros_like(like) if loc is None else like,
            "scale_diag": creation.ones_like(like) if scale is None else scale,
        }
        super().__init__(
            lambda loc, scale: distributions.Independent(
                distributions.Normal(loc, scale, validate_args=False), 1, validate_args=False
            ),
            given,
            name,
        )


_rules: dict[tuple[type, type], Callable[..., Any]] = {}


class RegisterKL:
    """A decorator that enters the divergence of two classes: a function of both and perhaps of a name."""

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: Callable[..., Any]) -> Callable[..., Any]:
        if self._key in _rules:
            raise ValueError(f"RegisterKL: {self._key[0].__name__} and {self._key[1].__name__} have a rule.")
        _rules[self._key] = kl_fn
        return kl_fn


@example(
    "normal = tf.distributions.Normal",
    "tf.distributions.kl_divergence(normal(0.0, 1.0), normal(1.0, 1.0))",
    "0.5",
)
def kl_divergence(
    distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True, name: str | None = None
) -> Any:
    """The Kullback-Leibler divergence of ``distribution_b`` from ``distribution_a``.

    Raises NotImplementedError for classes without a rule.
    """
    refuse("kl_divergence", **{"allow_nan_stats=False": not allow_nan_stats})
    rule = _rules.get((type(distribution_a), type(distribution_b)))
    if rule is not None:
        with _name_scope(name, "kl_divergence"):
            return rule(distribution_a, distribution_b)
    count = len(distribution_a._given)
    make_a, make_b = distribution_a._make, distribution_b._make

    def body(parameters: Sequence[Any]) -> Any:
        def found(given: Sequence[Any]) -> Any:
            return distributions.kl_divergence(make_a(*given[:count]), make_b(*given[count:]))

        return _on_tensors(found, parameters)

    keywords = {"parameters": [*distribution_a._given, *distribution_b._given]}
    return define("kl_divergence", body, (), keywords, name or "kl_divergence").outputs[0]
