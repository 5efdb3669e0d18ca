"""Choices among classes: as numbers, as one-hot vectors, and their counts."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.bernoulli import Binomial
from twofold.distributions.distribution import Distribution, arange
from twofold.distributions.utils import Chances, one_of, where
from twofold.dtypes import Size, int64
from twofold.errors import ArgumentError
from twofold.frontend.sampling import stream
from twofold.ops.base import FUNCTIONS, broadcast_shapes, ops
from twofold.ops.random.distributions import sample_choice

Tensor = _core.Tensor


class _Classes(Chances, Distribution):
    """``probs``, made to add up to 1, or ``logits``, any logarithms of weights, of classes along the last axis."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _binary = False

    def __init__(self, probs: Any, logits: Any, validate_args: bool | None, event: bool) -> None:
        name = type(self).__name__
        one_of(name, probs, logits)
        given = probs if logits is None else logits
        if given.ndim < 1 or not given.shape[-1]:
            raise ArgumentError(f"{name}: weights of shape {tuple(given.shape)}", "Give at least one class.")
        if logits is None:
            self.__dict__["probs"] = probs / probs.sum(-1, keepdim=True)
        else:
            self.__dict__["logits"] = logits - logits.logsumexp(-1, keepdim=True)
        shape = given.shape
        Distribution.__init__(self, shape[:-1], shape[-1:] if event else (), validate_args)

    @property
    def _num_events(self) -> int:
        return self._parameter.shape[-1]

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._parameter.shape

    def _class_numbers(self, count: int) -> Tensor:
        """Class numbers of shape ``(count, *batch_shape)``."""
        rows = self.probs.detach().reshape((-1, self._num_events))
        if not count or not rows.shape[0]:
            return FUNCTIONS["zeros"]((count, *self._batch_shape), dtype=int64)
        samples = sample_choice(rows, *stream(None), count, True)
        return samples.mT.reshape((count, *self._batch_shape))

    def _numbers(self, sample_shape: Any) -> Tensor:
        batch = len(self._batch_shape)
        whole = self._extended_shape(sample_shape)
        axes = len(whole) - batch - len(self._event_shape)
        lead = Size(whole[:axes])
        return self._class_numbers(lead.numel() if axes else 1).reshape((*lead, *self._batch_shape))

    def _class_entropy(self) -> Tensor:
        floor = where(self.probs == 0, 0.0, self.logits)
        return -(self.probs * floor).sum(-1)

    def _class_log_prob(self, numbers: Tensor) -> Tensor:
        shape = broadcast_shapes(tuple(numbers.shape), tuple(self._batch_shape))
        logits = self.logits.expand((*shape, self._num_events))
        return ops.gather(logits, -1, numbers.to(int64).expand(shape).unsqueeze(-1)).squeeze(-1)


class Categorical(_Classes):
    """Class numbers 0, 1, ... with the probabilities ``probs``, or with weights whose logarithms are ``logits``.

    >>> import twofold as torch
    >>> chosen = torch.distributions.Categorical(torch.tensor([1.0, 0.0, 3.0]))
    >>> chosen.log_prob(torch.tensor(2)).exp()
    tensor(0.7500)
    """

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args, False)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        """NaN: class numbers have no mean."""
        return self.probs.sum(-1) * float("nan")

    @property
    def mode(self) -> Tensor:
        return self._parameter.argmax(-1)

    @property
    def variance(self) -> Tensor:
        """NaN: class numbers have no variance."""
        return self.mean

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._numbers(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._class_log_prob(value)

    def entropy(self) -> Tensor:
        return self._class_entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._listed(FUNCTIONS["arange"](self._num_events), expand)


class OneHotCategorical(_Classes):
    """One-hot vectors with the probabilities ``probs``, or with weights whose logarithms are ``logits``."""

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args, True)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self._parameter.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, numbers: Tensor) -> Tensor:
        return ops.one_hot(numbers, self._num_events).to(self._parameter.dtype)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._one_hot(self._numbers(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._class_log_prob(value.argmax(-1))  # no gradient flows into the value

    def entropy(self) -> Tensor:
        return self._class_entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._num_events
        values = FUNCTIONS["eye"](count, dtype=self._parameter.dtype)
        shaped = values.reshape((count, *(1,) * len(self._batch_shape), count))
        return shaped.expand((count, *self._batch_shape, count)) if expand else shaped


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors whose gradient is that of the probabilities.

    Source: Bengio, Léonard and Courville, Estimating or Propagating Gradients Through Stochastic Neurons, 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(_Classes):
    """Counts of the classes in ``total_count`` independent choices."""

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int) or total_count < 0:
            raise ArgumentError(f"Multinomial: total_count {total_count!r}", "Give one integer from 0 on.")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args, True)

    def _fixed(self) -> dict[str, Any]:
        return {"total_count": self.total_count}

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        whole = self._extended_shape(sample_shape)
        samples = self._numbers((self.total_count, *whole[: len(whole) - 1 - len(self._batch_shape)]))
        zeros = FUNCTIONS["zeros"](tuple(whole), dtype=self._parameter.dtype)
        positions = samples.movedim(0, -1)
        return ops.scatter_add(zeros, -1, positions, ops.ones_like(positions).to(zeros.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        ways = ops.lgamma(value.sum(-1) + 1) - ops.lgamma(value + 1).sum(-1)
        return ways + where(value == 0, 0.0, value * self.logits).sum(-1)

    def entropy(self) -> Tensor:
        """The sum over classes of expected log-factorials of counts, which are binomial, and n times that of one."""
        count = self.total_count
        each = Binomial(count, self.probs, validate_args=False)
        values = each.enumerate_support(False)
        factorials = (each.log_prob(values).exp() * ops.lgamma(values + 1)).sum((0, -1))
        whole = ops.lgamma(arange(1, self.probs) + (count + 1.0)).squeeze(0)
        return count * self._class_entropy() - whole + factorials
