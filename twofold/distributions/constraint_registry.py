"""For each constraint, a transform from plain vectors onto its set: one to one, or simpler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.distributions import constraints, transforms
from twofold.distributions.constraints import Constraint

Tensor = _core.Tensor


class ConstraintRegistry:
    """Transforms by constraint: ``biject_to(constraint)`` and ``transform_to(constraint)`` are two of them."""

    def __init__(self) -> None:
        self._factories: dict[type, Callable[[Any], transforms.Transform]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Enter ``factory(constraint)`` for the class of a constraint; without one, a decorator."""
        if factory is None:
            return lambda made: self.register(constraint, made)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(f"register: {constraint!r} is no constraint.")
        self._factories[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> transforms.Transform:
        """The transform; raises NotImplementedError where there is none."""
        factory = self._factories.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"no transform onto {constraint!r}. Give one with register.")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(factory: Callable[..., Any]) -> Callable[..., Any]:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return decorate


@_both(constraints.real)
def _to_real(constraint: Any) -> transforms.Transform:
    return transforms.identity_transform


def _independent(registry: ConstraintRegistry) -> Callable[[Any], transforms.Transform]:
    def made(constraint: Any) -> transforms.Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    return made


for _registry in (biject_to, transform_to):
    _registry.register(constraints.independent, _independent(_registry))


def _is_zero(bound: Any) -> bool:
    return not isinstance(bound, Tensor) and bound == 0


@_both(constraints.greater_than, constraints.greater_than_eq)
def _to_above(constraint: Any) -> transforms.Transform:
    if _is_zero(constraint.lower_bound):
        return transforms.ExpTransform()
    moved = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), moved])


@_both(constraints.less_than)
def _to_below(constraint: Any) -> transforms.Transform:
    reflected = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), reflected])


@_both(constraints.interval, constraints.half_open_interval)
def _to_between(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if _is_zero(low) and not isinstance(high, Tensor) and high == 1:
        return transforms.SigmoidTransform()
    spread = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), spread])


@biject_to.register(constraints.simplex)
def _stick_to_simplex(constraint: Any) -> transforms.Transform:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _softmax_to_simplex(constraint: Any) -> transforms.Transform:
    return transforms.SoftmaxTransform()


@_both(constraints.lower_cholesky)
def _to_lower_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.LowerCholeskyTransform()


@_both(constraints.positive_definite, constraints.positive_semidefinite)
def _to_positive_definite(constraint: Any) -> transforms.Transform:
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.CorrCholeskyTransform()


def _joined(registry: ConstraintRegistry, kind: str) -> Callable[[Any], transforms.Transform]:
    def made(constraint: Any) -> transforms.Transform:
        parts = [registry(part) for part in constraint.cseq]
        if kind == "stack":
            return transforms.StackTransform(parts, constraint.dim)
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    return made


for _registry in (biject_to, transform_to):
    _registry.register(constraints.cat, _joined(_registry, "cat"))
    _registry.register(constraints.stack, _joined(_registry, "stack"))
