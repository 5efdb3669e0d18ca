"""The Kullback-Leibler divergence: finding the rule for a pair of distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.distributions.distribution import Distribution
from twofold.errors import ArgumentError

Tensor = _core.Tensor
Rule = Callable[[Any, Any], Tensor]

_RULES: dict[tuple[type, type], Rule] = {}
_found: dict[tuple[type, type], Rule] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """Enter a function of ``(p, q)`` as the rule for these classes and those derived from them."""
    for one in (type_p, type_q):
        if not isinstance(one, type):
            raise TypeError(
                f"register_kl: {one!r} is no class. Give one of distributions, or one that they mix in."
            )

    def decorate(rule: Rule) -> Rule:
        _RULES[type_p, type_q] = rule
        _found.clear()
        return rule

    return decorate


def _rule(type_p: type, type_q: type) -> Rule | None:
    """The rule of the nearest classes, those of p before those of q."""
    fitting = [pair for pair in _RULES if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not fitting:
        return None
    nearest = min(fitting, key=lambda pair: (type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])))
    return _RULES[nearest]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence of ``q`` from ``p``, the mean under p of log p(x) - log q(x), per batch element.

    Raises NotImplementedError for classes without a rule.

    >>> from twofold.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    kinds = (type(p), type(q))
    if kinds not in _found:
        rule = _rule(*kinds)
        if rule is None:
            raise NotImplementedError(
                f"kl_divergence: no rule for {kinds[0].__name__} and {kinds[1].__name__}. Give one with register_kl."
            )
        _found[kinds] = rule
    return _found[kinds](p, q)


def same_axes(p: Distribution, q: Distribution) -> None:
    """Raise ArgumentError where one value of p has other axes than one of q."""
    if tuple(p.event_shape) != tuple(q.event_shape):
        raise ArgumentError(
            f"kl_divergence: values of shape {tuple(p.event_shape)} and {tuple(q.event_shape)}",
            "Make them equal.",
        )
