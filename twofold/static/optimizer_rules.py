"""Optimisers that programs use less."""

from __future__ import annotations

from typing import Any

from twofold.ops.base import ops
from twofold.static.docstrings import example
from twofold.static.graph import Operation
from twofold.static.optimizer import Optimizer
from twofold.static.variables import Variable


def _adadelta(p: Any, v: Any, d: Any, g: Any, lr: Any, rho: Any, epsilon: Any) -> list[Any]:
    square = ops.add(ops.multiply(v, rho), ops.multiply(ops.square(g), 1 - rho))
    root = ops.sqrt(ops.add(d, epsilon))
    change = ops.multiply(ops.divide(root, ops.sqrt(ops.add(square, epsilon))), g)
    moved = ops.add(ops.multiply(d, rho), ops.multiply(ops.square(change), 1 - rho))
    return [ops.subtract(p, ops.multiply(change, lr)), square, moved]


@example(
    "w = tf.Variable(1.0)",
    "step = tf.train.AdadeltaOptimizer(1.0).minimize(w * w)",
    "session.run(tf.global_variables_initializer())",
    "session.run(step)",
    "w < 1.0",
    "True",
)
class AdadeltaOptimizer(Optimizer):
    """Steps in the ratio of the root mean squares of earlier changes and gradients (Zeiler 2012)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.95,
        epsilon: float = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._numbers = {"lr": learning_rate, "rho": rho, "epsilon": epsilon}

    def _slot_values(self) -> dict[str, float]:
        return {"accum": 0.0, "accum_update": 0.0}

    def _apply(self, gradient: Any, variable: Variable) -> Operation:
        slots = ("accum", "accum_update")
        return self._update("ApplyAdadelta", variable, slots, _adadelta, gradient, **self._numbers)


def _shrunk(value: Any, lr: Any, l1: Any, l2: Any) -> Any:
    """The point nearest to ``value`` under penalties of ``l1`` and ``l2``, in steps of ``lr``."""
    size = ops.maximum(ops.subtract(ops.abs(value), ops.multiply(lr, l1)), 0.0)
    return ops.divide(ops.multiply(ops.sign(value), size), ops.add(ops.multiply(lr, l2), 1.0))


def _proximal(p: Any, g: Any, lr: Any, l1: Any, l2: Any) -> list[Any]:
    return [_shrunk(ops.subtract(p, ops.multiply(g, lr)), lr, l1, l2)]


@example(
    "w = tf.Variable(1.0)",
    "step = tf.train.ProximalGradientDescentOptimizer(0.25).minimize(w * w)",
    "session.run(tf.global_variables_initializer())",
    "session.run(step)",
    "w",
    "0.5",
)
class ProximalGradientDescentOptimizer(Optimizer):
    """Gradient descent that shrinks by penalties of absolute values and squares (Duchi, Singer 2009)."""

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._numbers = {
            "lr": learning_rate,
            "l1": l1_regularization_strength,
            "l2": l2_regularization_strength,
        }

    def _apply(self, gradient: Any, variable: Variable) -> Operation:
        return self._update(
            "ApplyProximalGradientDescent", variable, (), _proximal, gradient, **self._numbers
        )


def _proximal_adagrad(p: Any, v: Any, g: Any, lr: Any, l1: Any, l2: Any) -> list[Any]:
    square = ops.add(v, ops.square(g))
    rate = ops.multiply(ops.rsqrt(square), lr)
    return [_shrunk(ops.subtract(p, ops.multiply(g, rate)), rate, l1, l2), square]


@example(
    "w = tf.Variable(1.0)",
    "step = tf.train.ProximalAdagradOptimizer(0.25).minimize(w * w)",
    "session.run(tf.global_variables_initializer())",
    "session.run(step)",
    "w < 1.0",
    "True",
)
class ProximalAdagradOptimizer(Optimizer):
    """Adagrad that shrinks by penalties of absolute values and squares (Duchi, Singer 2009)."""

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        super().__init__(use_locking, name)
        self._initial = initial_accumulator_value
        self._numbers = {
            "lr": learning_rate,
            "l1": l1_regularization_strength,
            "l2": l2_regularization_strength,
        }

    def _slot_values(self) -> dict[str, float]:
        return {"accumulator": self._initial}

    def _apply(self, gradient: Any, variable: Variable) -> Operation:
        slots = ("accumulator",)
        return self._update(
            "ApplyProximalAdagrad", variable, slots, _proximal_adagrad, gradient, **self._numbers
        )


def _ftrl(p: Any, v: Any, z: Any, g: Any, lr: Any, power: Any, l1: Any, l2: Any, shrinkage: Any) -> list[Any]:
    square = ops.add(v, ops.square(g))
    old, new = ops.pow(v, -power), ops.pow(square, -power)
    pulled = ops.add(g, ops.multiply(p, 2 * shrinkage))
    linear = ops.add(z, ops.subtract(pulled, ops.multiply(ops.divide(ops.subtract(new, old), lr), p)))
    curvature = ops.add(ops.divide(new, lr), 2 * l2)
    size = ops.subtract(ops.abs(linear), l1)
    found = ops.divide(ops.negative(ops.multiply(ops.sign(linear), size)), curvature)
    return [ops.where(ops.greater(size, 0.0), found, 0.0), square, linear]


@example(
    "w = tf.Variable(1.0)",
    "step = tf.train.FtrlOptimizer(0.25).minimize(w * w)",
    "session.run(tf.global_variables_initializer())",
    "session.run(step)",
    "w < 1.0",
    "True",
)
class FtrlOptimizer(Optimizer):
    """Follow the regularised leader, with rates for each coordinate (McMahan et al. 2013).

    ``accum_name`` and ``linear_name`` name what is kept beside each variable.
    """

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        super().__init__(use_locking, name)
        self._labels = {"accumulator": accum_name or name, "linear": linear_name or name}
        self._initial = initial_accumulator_value
        self._numbers = {
            "lr": learning_rate,
            "power": learning_rate_power,
            "l1": l1_regularization_strength,
            "l2": l2_regularization_strength,
            "shrinkage": l2_shrinkage_regularization_strength,
        }

    def _slot_values(self) -> dict[str, float]:
        return {"accumulator": self._initial, "linear": 0.0}

    def _slot_label(self, slot: str) -> str:
        return self._labels[slot]

    def _apply(self, gradient: Any, variable: Variable) -> Operation:
        slots = ("accumulator", "linear")
        return self._update("ApplyFtrl", variable, slots, _ftrl, gradient, **self._numbers)
