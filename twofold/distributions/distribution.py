"""The base of all distributions: shapes, validation, and what follows from the methods of each."""

from __future__ import annotations

from typing import Any, ClassVar

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.constraints import Constraint
from twofold.distributions.utils import as_size, without_gradients
from twofold.dtypes import Size
from twofold.errors import ArgumentError
from twofold.ops.base import FUNCTIONS, broadcast_shapes

Tensor = _core.Tensor


class Distribution:
    """Base class; see ``torch.distributions.Distribution``, whose names and shapes these are.

    A sample has the shape ``sample_shape + batch_shape + event_shape``. Unless ``validate_args`` is False, parameters
    are checked when a distribution is made and values when they come to ``log_prob``; a check observes the values,
    so what was recorded before it is computed there. ``Distribution.set_default_validate_args(False)`` lets whole
    programs stay one graph. Values of placeholders are not checked.
    """

    has_rsample: bool = False
    has_enumerate_support: bool = False
    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    support: Any = None
    _validate_args = __debug__  # of all that are not told, and of subclasses that say so

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        self._given = [name for name in self.arg_constraints if name in self.__dict__]
        if self._validate_args:
            self._validate_parameters()
        super().__init__()  # of other bases of a program's class

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their arguments unless told."""
        if value not in (True, False):
            raise ArgumentError(f"a default of {value!r}", "Give True or False.")
        Distribution._validate_args = value

    def _validate_parameters(self) -> None:
        checks = []
        for name in self._given:
            constraint, value = self.arg_constraints[name], self.__dict__[name]
            if (
                isinstance(value, Tensor)
                and not constraints.is_dependent(constraint)
                and not value._is_symbolic
            ):
                checks.append((name, constraint, value, constraint.check(value.detach()).all()))
        for name, constraint, value, valid in checks:
            if not bool(valid):
                raise ArgumentError(
                    f"{type(self).__name__}: parameter {name}, {value.type_}, does not satisfy {constraint!r}: "
                    f"{value.detach().numpy()}",
                    "Give such values, or validate_args=False.",
                )

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{type(self).__name__} has no mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values of shape ``sample_shape + batch_shape + event_shape``, without gradients."""
        return without_gradients(self.rsample, sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Values as a differentiable function of the parameters and of noise that does not depend on them."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample")

    def sample_n(self, n: int) -> Tensor:
        """``n`` samples."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Logarithm of the density, or of the probability, at ``value``."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Probability of at most ``value``."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The value up to which this probability lies."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution along a new first axis."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        """The same distribution with its parameters expanded to ``batch_shape``."""
        shape = as_size(batch_shape)
        found: dict[str, Any] = {}
        for name in self._given:
            value, axes = self.__dict__[name], self.arg_constraints[name].event_dim
            if isinstance(value, Tensor):
                found[name] = value.expand((*shape, *value.shape[value.ndim - axes :]))
        made = self._like_this(_instance)
        own = next(cls for cls in type(self).__mro__ if cls.__module__.startswith("twofold.distributions."))
        own.__init__(made, **found, **self._fixed(), validate_args=False)  # type: ignore[misc]
        made._validate_args = self._validate_args
        return made

    def _like_this(self, instance: Any) -> Any:
        """What ``expand`` initialises: the instance that a subclass made, or one of this class with all attributes."""
        if instance is None:
            instance = object.__new__(type(self))
            if not type(self).__module__.startswith("twofold.distributions."):
                given = {
                    name: value for name, value in self.__dict__.items() if name not in self.arg_constraints
                }
                instance.__dict__.update(given)
        return instance

    def _fixed(self) -> dict[str, Any]:
        """Arguments of the constructor that have no batch shape."""
        return {}

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*as_size(sample_shape), *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Any) -> None:
        """Raise ArgumentError for a value of a wrong shape or outside the support; nothing if not validating."""
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"{type(self).__name__}: a value of type {type(value).__name__}", "Give a tensor."
            )
        whole, axes = self._extended_shape(), len(self._event_shape)
        try:
            broadcast_shapes(tuple(value.shape), tuple(whole))
        except ValueError:
            fits = False
        else:
            fits = tuple(value.shape[value.ndim - axes :]) == tuple(self._event_shape)
        if not fits:
            raise ArgumentError(
                f"{type(self).__name__}: a value of shape {tuple(value.shape)} for samples of shape {tuple(whole)}",
                "Make the shapes broadcast.",
            )
        support = self.support
        if support is None or constraints.is_dependent(support) or value._is_symbolic:
            return
        if not bool(support.check(value.detach()).all()):
            raise ArgumentError(
                f"{type(self).__name__}: a value outside the support {support!r}: {value.detach().numpy()}",
                "Give values of the support, or validate_args=False.",
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """An empty instance for the ``expand`` of a user's class; NotImplementedError if a subclass needs its own."""
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"{type(self).__name__} has an __init__ of its own and needs its own expand"
            )
        return object.__new__(type(self)) if _instance is None else _instance

    def _listed(self, values: Tensor, expand: bool) -> Tensor:
        """``values``, a vector, as the result of ``enumerate_support``."""
        shaped = values.reshape((-1, *(1,) * len(self._batch_shape)))
        return shaped.expand((-1, *self._batch_shape)) if expand else shaped

    def __repr__(self) -> str:
        shown = []
        for name in self._given:
            value = getattr(self, name)
            plain = isinstance(value, Tensor) and value.numel() == 1 and not value._is_symbolic
            shown.append(f"{name}: {value if not isinstance(value, Tensor) or plain else value.shape}")
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """Distributions whose densities are exp(natural parameters times statistics - normaliser) times a carrier."""


def arange(count: int, like: Tensor) -> Tensor:
    """0, 1, ... in the dtype of ``like``."""
    return FUNCTIONS["arange"](count, dtype=like.dtype)
