"""The base of all transforms, those of single numbers, and those made of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.distributions import constraints
from twofold.distributions.bernoulli import softplus
from twofold.distributions.constraints import Constraint
from twofold.distributions.utils import sum_rightmost
from twofold.dtypes import Size, finfo
from twofold.errors import ArgumentError, ShapeError
from twofold.ops.base import broadcast_shapes, ops

Tensor = _core.Tensor


class Transform:
    """A function from ``domain`` to ``codomain``; subclasses give ``_call``, ``_inverse`` and the log-determinant.

    With ``cache_size=1`` the last pair of values is kept, so that inverting what was just computed is exact.
    ``sign`` is 1 for an increasing function, -1 for a decreasing one.
    """

    bijective = False
    domain: Any
    codomain: Any
    _sign: Any = None

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ArgumentError(f"cache_size {cache_size!r}", "Use 0 or 1.")
        self._cache_size = cache_size
        self._inverted: Transform | None = None
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()  # of a module, where a class is both

    @property
    def event_dim(self) -> int:
        """Axes of one value; raises ArgumentError where domain and codomain differ."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ArgumentError(
                f"{type(self).__name__}: domain and codomain differ in axes", "Use domain.event_dim."
            )
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse function."""
        if self._inverted is None:
            self._inverted = _InverseTransform(self)
        return self._inverted

    @property
    def sign(self) -> Any:
        """1 or -1; raises NotImplementedError where neither holds."""
        if self._sign is None:
            raise NotImplementedError(f"{type(self).__name__} neither rises nor falls everywhere")
        return self._sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        """This transform with another cache size."""
        if cache_size == self._cache_size:
            return self
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._cache_size, made._inverted, made._cached_x_y = cache_size, None, (None, None)
        return made

    def __call__(self, x: Tensor) -> Tensor:
        """The value at ``x``."""
        if not self._cache_size:
            return self._call(x)
        if x is self._cached_x_y[0]:
            return self._cached_x_y[1]
        y = self._call(x)
        self._cached_x_y = (x, y)
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if not self._cache_size:
            return self._inverse(y)
        if y is self._cached_x_y[1]:
            return self._cached_x_y[0]
        x = self._inverse(y)
        self._cached_x_y = (x, y)
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Logarithm of the magnitude of the derivative at ``x``, whose value is ``y``."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the value for an argument of ``shape``."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the argument for a value of ``shape``."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    @property
    def domain(self) -> Any:
        return self._inv.codomain

    @property
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = Transform.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{self._inv!r}.inv"


class _Alike(Transform):
    """A transform without parameters: all instances are equal."""

    bijective = True

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = Transform.__hash__


class ExpTransform(_Alike):
    """y = exp(x)."""

    domain, codomain, _sign = constraints.real, constraints.positive, 1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x ** exponent on positive numbers."""

    domain, codomain, bijective = constraints.positive, constraints.positive, True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        if isinstance(self.exponent, Tensor):
            return self.exponent.sign()
        return 1 if self.exponent > 0 else -1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _equal(self.exponent, other.exponent)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return _with(shape, self.exponent)

    inverse_shape = forward_shape


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return bool((a == b).all())
    return a == b


def _with(shape: Any, *values: Any) -> Any:
    return Size(broadcast_shapes(tuple(shape), *[tuple(getattr(value, "shape", ())) for value in values]))


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """The sigmoid, kept inside (0, 1)."""
    return x.sigmoid().clamp(finfo(x.dtype).tiny, 1 - finfo(x.dtype).eps)


class SigmoidTransform(_Alike):
    """y = 1 / (1 + exp(-x)), kept inside (0, 1)."""

    domain, codomain, _sign = constraints.real, constraints.unit_interval, 1

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        held = y.clamp(finfo(y.dtype).tiny, 1 - finfo(y.dtype).eps)
        return held.log() - (-held).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Alike):
    """y = log(1 + exp(x))."""

    domain, codomain, _sign = constraints.real, constraints.positive, 1

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-((-y).expm1())).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(_Alike):
    """y = tanh(x)."""

    domain, codomain, _sign = constraints.real, constraints.interval(-1.0, 1.0), 1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log(1 - tanh(x)**2) without cancellation."""
        return 2 * (math.log(2) - x - softplus(-2 * x))


class AbsTransform(_Alike):
    """y = |x|, whose inverse gives the positive one of two."""

    domain, codomain, bijective = constraints.real, constraints.positive, False

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Constraint:
        return (
            constraints.independent(constraints.real, self._event_dim)
            if self._event_dim
            else constraints.real
        )

    codomain = domain

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return 1 if self.scale > 0 else -1 if self.scale < 0 else 0

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, AffineTransform)
        return same and _equal(self.loc, other.loc) and _equal(self.scale, other.scale)  # type: ignore[attr-defined]

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            slope = self.scale.abs().log().expand(tuple(_with(x.shape, self.scale)))
        else:
            slope = ops.full_like(x, math.log(abs(self.scale)))
        return sum_rightmost(slope, self._event_dim)

    def forward_shape(self, shape: Any) -> Any:
        return _with(shape, self.loc, self.scale)

    inverse_shape = forward_shape


class ComposeTransform(Transform):
    """Transforms one after the other, the first of ``parts`` first."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    @property
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        axes = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            axes = max(axes + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _raised(self.parts[0].domain, axes)

    @property
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        axes = self.parts[0].domain.event_dim
        for part in self.parts:
            axes = max(axes + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _raised(self.parts[-1].codomain, axes)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return math.prod((part.sign for part in self.parts), start=1)

    @property
    def inv(self) -> Transform:
        if self._inverted is None:
            self._inverted = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inverted._inverted = self
        return self._inverted

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if cache_size == self._cache_size else ComposeTransform(self.parts, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return ops.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        total: Any = 0
        axes = self.domain.event_dim
        for part, before, after in zip(self.parts, values, values[1:], strict=False):
            slope = part.log_abs_det_jacobian(before, after)
            total = total + sum_rightmost(slope, axes - part.domain.event_dim)
            axes += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts!r})"


def _raised(constraint: Constraint, axes: int) -> Constraint:
    """A constraint with at least ``axes`` axes to a value."""
    missing = axes - constraint.event_dim
    return constraints.independent(constraint, missing) if missing > 0 else constraint


class IndependentTransform(Transform):
    """A transform whose last ``reinterpreted_batch_ndims`` batch axes belong to one value."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        if cache_size == self._cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        self._check(x, self.domain)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        self._check(y, self.codomain)
        return self.base_transform.inv(y)

    @staticmethod
    def _check(value: Tensor, constraint: Any) -> None:
        if value.ndim < constraint.event_dim:
            raise ShapeError(
                f"IndependentTransform: {value.ndim} axes", f"Use at least {constraint.event_dim}."
            )

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """The last axes in another shape of as many elements."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ShapeError(
                f"ReshapeTransform: {tuple(in_shape)} to {tuple(out_shape)}", "Use as many elements."
            )

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(tuple(self.forward_shape(x.shape)))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(tuple(self.inverse_shape(y.shape)))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return ops.zeros(tuple(x.shape[: x.ndim - len(self.in_shape)]), dtype=x.dtype)

    def forward_shape(self, shape: Any) -> Any:
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._exchanged(shape, self.out_shape, self.in_shape)

    @staticmethod
    def _exchanged(shape: Any, before: Size, after: Size) -> Size:
        cut = len(shape) - len(before)
        if cut < 0 or tuple(shape[cut:]) != tuple(before):
            raise ShapeError(f"ReshapeTransform: shape {tuple(shape)}", f"End it in {tuple(before)}.")
        return Size((*shape[:cut], *after))


class CumulativeDistributionTransform(Transform):
    """y = distribution.cdf(x)."""

    bijective, codomain, _sign = True, constraints.unit_interval, 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


identity_transform = ComposeTransform([])
