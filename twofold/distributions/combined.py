"""Distributions made of distributions: independent elements, transformed values, mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.categorical import Categorical
from twofold.distributions.distribution import Distribution
from twofold.distributions.single_transforms import ComposeTransform, Transform, _raised
from twofold.distributions.utils import as_size, sum_rightmost, without_gradients
from twofold.dtypes import Size
from twofold.errors import ArgumentError
from twofold.ops.base import ops

Tensor = _core.Tensor


class Independent(Distribution):
    """The last ``reinterpreted_batch_ndims`` batch axes of a distribution as axes of one value.

    >>> import twofold as torch
    >>> from twofold.distributions import Independent, Normal
    >>> Independent(Normal(torch.zeros(3), torch.ones(3)), 1).log_prob(torch.zeros(3))
    tensor(-2.7568)
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch, count = base_distribution.batch_shape, reinterpreted_batch_ndims
        if count > len(batch):
            raise ArgumentError(
                f"Independent: {count} axes of a batch shape {tuple(batch)}",
                "Use at most as many as there are.",
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        cut = len(batch) - count
        event = (*batch[cut:], *base_distribution.event_shape)
        super().__init__(batch[:cut], event, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        return _raised(
            self.base_dist.support, self.base_dist.support.event_dim + self.reinterpreted_batch_ndims
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        inner = self._event_shape[: self.reinterpreted_batch_ndims]
        base = self.base_dist.expand((*as_size(batch_shape), *inner))
        made: Distribution = self._like_this(_instance)
        Independent.__init__(made, base, self.reinterpreted_batch_ndims, self._validate_args)  # type: ignore[arg-type]
        return made

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Independent: the support of several elements is their product")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of a transformed variable.

    ``log_prob`` subtracts the logarithm of the derivative: with y = f(x) it is log p(x) - log |f'(x)|.
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(part, Transform) for part in self.transforms):
            raise ArgumentError("transforms that are no Transform", "Give a Transform or a list of them.")
        whole = ComposeTransform(self.transforms)
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        if len(shape) < whole.domain.event_dim:
            raise ArgumentError(
                f"a base distribution of shape {shape} for a transform of {whole.domain.event_dim} axes",
                "Use a base distribution with more axes.",
            )
        after = whole.forward_shape(Size(shape))
        before = whole.inverse_shape(after)
        moved = whole.domain.event_dim - len(base_distribution.event_shape)
        batch = before[: len(before) - len(base_distribution.event_shape)]
        base = base_distribution
        if tuple(batch) != tuple(base.batch_shape):
            base = base.expand(batch)
        self.base_dist = Independent(base, moved) if moved > 0 else base
        axes = whole.codomain.event_dim + max(-moved, 0)
        cut = len(after) - axes
        super().__init__(after[:cut], after[cut:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        return _raised(self.transforms[-1].codomain, len(self._event_shape))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        shape = (*as_size(batch_shape), *self._event_shape)
        before = ComposeTransform(self.transforms).inverse_shape(Size(shape))
        base = self.base_dist.expand(before[: len(before) - len(self.base_dist.event_shape)])
        made: Distribution = self._like_this(_instance)
        TransformedDistribution.__init__(made, base, self.transforms, self._validate_args)  # type: ignore[arg-type]
        return made

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return without_gradients(self._through, self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._through(self.base_dist.rsample(sample_shape))

    def _through(self, value: Tensor) -> Tensor:
        for part in self.transforms:
            value = part(value)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        total: Any = 0
        axes, y = len(self._event_shape), value
        for part in reversed(self.transforms):
            x = part.inv(y)
            axes += part.domain.event_dim - part.codomain.event_dim
            total = total - sum_rightmost(part.log_abs_det_jacobian(x, y), axes - part.domain.event_dim)
            y = x
        base = sum_rightmost(self.base_dist.log_prob(y), axes - len(self.base_dist.event_shape))
        return total + base

    def _rises(self) -> Any:
        sign: Any = 1
        for part in self.transforms:
            sign = sign * part.sign
        return sign

    def cdf(self, value: Tensor) -> Tensor:
        """The base's at the inverse; from 1 down where the transform falls."""
        self._validate_sample(value)
        for part in reversed(self.transforms):
            value = part.inv(value)
        sign = self._rises()
        return sign * (self.base_dist.cdf(value) - 0.5) + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        value = self._rises() * (value - 0.5) + 0.5
        return self._through(self.base_dist.icdf(value))


class MixtureSameFamily(Distribution):
    """A mixture: a categorical distribution chooses along the last batch axis of the components."""

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError(
                f"MixtureSameFamily: a mixture distribution {type(mixture_distribution).__name__}",
                "Use a Categorical.",
            )
        batch = component_distribution.batch_shape
        count = mixture_distribution._num_events
        if not len(batch) or batch[-1] != count:
            raise ArgumentError(
                f"MixtureSameFamily: {count} weights for components of batch shape {tuple(batch)}",
                "Make the last axis as long as there are weights.",
            )
        self._mixture_distribution, self._component_distribution = (
            mixture_distribution,
            component_distribution,
        )
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution of the component's number."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch axis."""
        return self._component_distribution

    @constraints.dependent_property
    def support(self) -> Any:
        return self._component_distribution.support if self._uniform_support() else None

    def _uniform_support(self) -> bool:
        """Whether the components' support has no batch axes of its own."""
        bounds = vars(self._component_distribution.support).values()
        return not any(isinstance(bound, Tensor) for bound in bounds)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        shape, count = as_size(batch_shape), self._mixture_distribution._num_events
        components = self._component_distribution.expand((*shape, count))
        made: Distribution = self._like_this(_instance)
        mixture = self._mixture_distribution.expand(shape)
        MixtureSameFamily.__init__(made, mixture, components, self._validate_args)  # type: ignore[arg-type]
        return made

    def _weights(self) -> Tensor:
        """The probabilities of the components, with an axis of size 1 for each of a value."""
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *(1,) * len(self._event_shape)))

    def _combined(self, values: Tensor) -> Tensor:
        return (self._weights() * values).sum(-1 - len(self._event_shape))

    @property
    def mean(self) -> Tensor:
        return self._combined(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The mean of the variances and the variance of the means."""
        means = self._component_distribution.mean
        apart = means - self.mean.unsqueeze(-1 - len(self._event_shape))
        return self._combined(self._component_distribution.variance + apart * apart)

    def _padded(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - len(self._event_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        each = self._component_distribution.log_prob(self._padded(value))
        return (each + self._mixture_distribution.logits).logsumexp(-1)

    def cdf(self, value: Tensor) -> Tensor:
        each = self._component_distribution.cdf(self._padded(value))
        return (each * self._mixture_distribution.probs).sum(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return without_gradients(self._sample, as_size(sample_shape))

    def _sample(self, sample_shape: Any) -> Tensor:
        chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
        samples = self._component_distribution.sample(sample_shape)
        axis, event = len(chosen.shape), tuple(self._event_shape)
        positions = chosen.reshape((*chosen.shape, 1, *(1,) * len(event))).expand((*chosen.shape, 1, *event))
        return ops.gather(samples, axis, positions).squeeze(axis)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self._mixture_distribution!r}, {self._component_distribution!r})"
