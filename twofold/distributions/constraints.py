"""Sets of values that parameters and samples must lie in, under the names of ``torch.distributions.constraints``.

``check`` gives a bool tensor without the last ``event_dim`` axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.dtypes import finfo
from twofold.errors import ArgumentError
from twofold.ops.base import FUNCTIONS, ops

Tensor = _core.Tensor

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A set of values; ``event_dim`` axes make one value."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Where ``value`` lies in the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.lstrip("_")


class _Dependent(Constraint):
    """A set that depends on other parameters, so that a class alone cannot check it."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool = False, event_dim: int = 0) -> _Dependent:
        """A dependent set of this kind."""
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Tensor) -> Tensor:
        """Raises ArgumentError."""
        raise ArgumentError("a constraint that depends on parameters was checked", "Check an instance's.")


class dependent_property(property, _Dependent):
    """A property that gives an instance's constraint; of the class it is a dependent constraint.

    ``@dependent_property(is_discrete=..., event_dim=...)`` says what the class knows.
    """

    def __init__(self, fget: Any = None, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        property.__init__(self, fget)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *args: Any, **_: Any) -> dependent_property:
        """The property of the function that is decorated."""
        return dependent_property(args[0], is_discrete=self.is_discrete, event_dim=self.event_dim)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Bounded(Constraint):
    """Between bounds; subclasses say which belong to it."""

    def __init__(self, lower_bound: Any = None, upper_bound: Any = None) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def __repr__(self) -> str:
        named = (("lower_bound", self.lower_bound), ("upper_bound", self.upper_bound))
        shown = ", ".join(f"{name}={value}" for name, value in named if value is not None)
        return f"{type(self).__name__.lstrip('_')}({shown})"


class integer_interval(_Bounded):
    """Integers from lower_bound to upper_bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        """Where ``value`` lies in the set."""
        return (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)


class _IntegerFrom(_Bounded):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class greater_than(_Bounded):
    """Above lower_bound."""

    def check(self, value: Tensor) -> Tensor:
        """Where ``value`` lies in the set."""
        return value > self.lower_bound


class greater_than_eq(_Bounded):
    """From lower_bound on."""

    def check(self, value: Tensor) -> Tensor:
        """Where ``value`` lies in the set."""
        return value >= self.lower_bound


class less_than(_Bounded):
    """Below upper_bound."""

    def __init__(self, upper_bound: Any) -> None:
        super().__init__(None, upper_bound)

    def check(self, value: Tensor) -> Tensor:
        """Where ``value`` lies in the set."""
        return value < self.upper_bound


class interval(_Bounded):
    """From lower_bound to upper_bound."""

    def check(self, value: Tensor) -> Tensor:
        """Where ``value`` lies in the set."""
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class half_open_interval(_Bounded):
    """From lower_bound to below upper_bound."""

    def check(self, value: Tensor) -> Tensor:
        """Where ``value`` lies in the set."""
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class multinomial(Constraint):
    """Counts that add up to at most upper_bound."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        """Where ``x`` lies in the set."""
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


def _near(a: Tensor, b: Any, tolerance: float = 1e-6) -> Tensor:
    return (a - b).abs() <= tolerance


class _Matrix(Constraint):
    event_dim = 2


class _Square(_Matrix):
    def check(self, value: Tensor) -> Tensor:
        shape = tuple(value.shape)
        return FUNCTIONS["full"](shape[:-2], shape[-1] == shape[-2])


class _LowerTriangular(_Matrix):
    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (ops.diagonal(value, 0, -2, -1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of correlation matrices: rows have length 1."""

    def check(self, value: Tensor) -> Tensor:
        tolerance = finfo(value.dtype).eps * value.shape[-1] * 10
        return super().check(value) & _near((value * value).sum(-1), 1, tolerance).all(-1)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & _near(value, value.mT).all(-1).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (FUNCTIONS["linalg.eigvalsh"](value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (FUNCTIONS["linalg.cholesky_ex"](value).info == 0)


class independent(Constraint):
    """Values of ``reinterpreted_batch_ndims`` more axes, all of whose parts lie in the base set."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the base set is discrete."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """Axes of one value."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        """Where ``value`` lies in the set; raises ArgumentError for too few axes."""
        found, count = self.base_constraint.check(value), self.reinterpreted_batch_ndims
        if found.ndim < count:
            raise ArgumentError(
                f"a value of shape {tuple(value.shape)}", f"Use at least {self.event_dim} axes."
            )
        return found.reshape((*found.shape[: found.ndim - count], -1)).all(-1) if count else found

    def __repr__(self) -> str:
        return f"independent({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Joined(Constraint):
    """Parts along an axis, each in a set of its own."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = list(lengths or [1] * len(self.cseq))

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether any part is discrete."""
        return any(part.is_discrete for part in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """Axes of one value."""
        return max(part.event_dim for part in self.cseq)


class cat(_Joined):
    """Pieces of the given lengths joined along an axis, each in a set of its own."""

    def check(self, value: Tensor) -> Tensor:
        """Where ``value`` lies in the set."""
        pieces = ops.split(value, self.lengths, self.dim)
        return ops.cat([part.check(piece) for part, piece in zip(self.cseq, pieces, strict=True)], self.dim)


class stack(_Joined):
    """Slices along an axis, each in a set of its own."""

    def check(self, value: Tensor) -> Tensor:
        """Where ``value`` lies in the set."""
        slices = ops.unbind(value, self.dim)
        return ops.stack([part.check(piece) for part, piece in zip(self.cseq, slices, strict=True)], self.dim)


dependent = _Dependent()
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerFrom(0)
positive_integer = _IntegerFrom(1)
real = _Real()
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
simplex = _Simplex()
square = _Square()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other parameters."""
    return isinstance(constraint, _Dependent)
