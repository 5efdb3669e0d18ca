"""Optimisers of ``tf.contrib.opt`` that are others with a change: weights that decay, moments of single rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from twofold.ops.base import apply, ops
from twofold.static.api.signatures import REQUIRED, with_parameters
from twofold.static.graph.docstrings import START, example
from twofold.static.optimizers.optimizer import Optimizer, taking
from twofold.static.optimizers.update_rules import AdamOptimizer, MomentumOptimizer
from twofold.static.variables.variable import Variable


def _shown(optimizer: str, result: str) -> Callable[[Any], Any]:
    step = f"step = tf.contrib.opt.{optimizer}.minimize(w * w)"
    return example("w = tf.Variable(1.0)", step, START, "session.run(step)", "w", result)


class DecoupledWeightDecayExtension(Optimizer):
    """Base beside an optimiser: ``variable -= weight_decay * variable`` before its step (Loshchilov, Hutter 2017).

    Of a table of which rows were looked up these alone decay, whether or not the optimiser changes them alone.
    """

    _decay: Any = 0.0
    _chosen: list[Variable] | None = None
    _by_rows = True

    @property
    def _in_rows_first(self) -> int | None:  # type: ignore[override]
        return None if super()._by_rows else 0

    def minimize(self, *args: Any, decay_var_list: Iterable[Variable] | None = None, **kwargs: Any) -> Any:
        """That of the optimiser; ``decay_var_list`` are the variables that decay, all unless given."""
        self._chosen = None if decay_var_list is None else list(decay_var_list)
        return super().minimize(*args, **kwargs)

    def apply_gradients(
        self, *args: Any, decay_var_list: Iterable[Variable] | None = None, **kwargs: Any
    ) -> Any:
        """That of the optimiser; ``decay_var_list`` are the variables that decay, all unless given."""
        if decay_var_list is not None:
            self._chosen = list(decay_var_list)
        return super().apply_gradients(*args, **kwargs)

    def _rule_of(self, variable: Variable) -> tuple[Callable[..., list[Any]], Mapping[str, Any]]:
        rule, numbers = super()._rule_of(variable)
        if self._chosen is not None and not any(one is variable for one in self._chosen):
            return _unaware(rule), numbers

        def decayed(p: Any, *rest: Any, weight_decay: Any, reached: Any = None, **others: Any) -> list[Any]:
            lower = ops.subtract(p, ops.multiply(p, weight_decay))
            return rule(lower if reached is None else ops.where(reached, lower, p), *rest, **others)

        return decayed, {**numbers, "weight_decay": self._decay}


def _unaware(rule: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """A rule that may be told which rows were looked up."""
    return lambda *states, reached=None, **numbers: rule(*states, **numbers)


def extend_with_decoupled_weight_decay(base_optimizer: type[Optimizer]) -> type[Optimizer]:
    """The class of optimisers like ``base_optimizer`` whose first parameter is ``weight_decay``.

    >>> import twofold.static as tf
    >>> made = tf.contrib.opt.extend_with_decoupled_weight_decay(tf.train.GradientDescentOptimizer)
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     w = tf.Variable(1.0)
    ...     step = made(weight_decay=0.5, learning_rate=0.25).minimize(w * w)
    ...     session.run(w.initializer)
    ...     session.run(step)
    ...     print(session.run(w))
    0.0
    """

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):  # type: ignore
        """The optimiser, with weights that decay before each step."""

        def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
            base_optimizer.__init__(self, *args, **kwargs)
            self._decay = weight_decay

    return OptimizerWithDecoupledWeightDecay


def _decaying(base: type[Optimizer], **parameters: Any) -> Callable[..., None]:
    """The ``__init__`` of an optimiser whose weights decay, with these parameters and defaults."""

    def initialize(self: Any, weight_decay: Any, **own: Any) -> None:
        base.__init__(self, **own)
        self._decay = weight_decay

    return with_parameters(initialize, {"self": REQUIRED, "weight_decay": REQUIRED, **parameters})


@_shown("AdamWOptimizer(0.5, 0.25)", "0.25000003")
class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """Adam with decoupled weight decay."""

    _numbers_of_adam = {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    __init__ = _decaying(AdamOptimizer, **_numbers_of_adam, use_locking=False, name="AdamW")


@_shown("MomentumWOptimizer(0.5, 0.25, 0.9)", "0.0")
class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """Momentum with decoupled weight decay."""

    _numbers_of_momentum = {"learning_rate": REQUIRED, "momentum": REQUIRED}
    _shared = {"use_locking": False, "name": "MomentumW", "use_nesterov": False}
    __init__ = _decaying(MomentumOptimizer, **_numbers_of_momentum, **_shared)


@_shown("LazyAdamOptimizer(0.25)", "0.75")
class LazyAdamOptimizer(AdamOptimizer):
    """Adam that changes only the rows of a table that were looked up, with their moments."""

    _by_rows = True


def _nadam(p: Any, m: Any, v: Any, g: Any, **numbers: Any) -> list[Any]:
    mean = apply("adam_mean", g, m, numbers["beta1"])
    square = apply("adam_square", g, v, numbers["beta2"])
    ahead = apply("adam_mean", g, mean, numbers["beta1"])
    rest = [numbers[name] for name in ("lr", "correction1", "correction2", "epsilon")]
    return [apply("adam_parameter_late_epsilon", p, ahead, square, *rest), mean, square]


@_shown("NadamOptimizer(0.25)", "0.5250001")
class NadamOptimizer(AdamOptimizer):
    """Adam with Nesterov's momentum (Dozat 2016)."""

    __init__ = taking(
        learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False, name="Adam"
    )

    def _begin(self, **numbers: Any) -> None:
        super()._begin(**numbers)
        self._rule = _nadam
