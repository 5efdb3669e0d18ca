"""Keras's optimisers: those of ``tf.train`` with Keras's arguments and defaults: ``tf.keras.optimizers``."""

from __future__ import annotations

from typing import Any

from twofold.dtypes import int64
from twofold.ops.base import apply, ops
from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.api.op_functions import as_tensor, constant, convert_to_tensor
from twofold.static.autodiff.clipping import clip_by_norm, clip_by_value
from twofold.static.keras.named import found_in
from twofold.static.optimizers import update_rules as rules
from twofold.static.optimizers.optimizer import Optimizer
from twofold.static.variables.variable import Variable, assign_add


class _Keras(Optimizer):
    """What Keras's optimisers share: ``lr`` for ``learning_rate``, ``decay`` of it, ``clipnorm`` and ``clipvalue``."""

    _rate: Any
    _iterations: Variable | None

    def _of_keras(self, options: dict[str, Any]) -> dict[str, Any]:
        """``options`` without those of all optimisers, and with the rate under its name in ``tf.train``."""
        self._clips = {key: options.pop(key, None) for key in ("clipnorm", "clipvalue")}
        if "lr" in options:
            options["learning_rate"] = options.pop("lr")
        self._decay, self._rate, self._iterations = options.pop("decay", 0.0), None, None
        return options

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """An operation that changes the variables by their (clipped) gradients."""
        pairs = [(self._clipped(gradient), variable) for gradient, variable in grads_and_vars]
        return super().apply_gradients(pairs, global_step, name)

    def _clipped(self, gradient: Any) -> Any:
        norm, value = self._clips["clipnorm"], self._clips["clipvalue"]
        if gradient is None or (norm is None and value is None):
            return gradient
        made = convert_to_tensor(as_tensor(gradient))
        made = made if norm is None else clip_by_norm(made, norm)
        return made if value is None else clip_by_value(made, -value, value)

    def _prepare(self, first: Variable) -> None:
        super()._prepare(first)
        if self._rate is None:
            with first.graph.name_scope(None), first.graph.control_dependencies(None):
                given = self._numbers["lr"]
                is_number = isinstance(given, (int, float))
                self._rate = (
                    Variable(float(given), False, name=f"{self._name}/learning_rate") if is_number else given
                )
                if self._decay:
                    self._iterations = Variable(constant(0, int64), False, name=f"{self._name}/iter")
        rate = math.cast(as_tensor(self._rate), first.dtype)
        if self._iterations is not None:
            rate = rate / (1.0 + self._decay * math.cast(as_tensor(self._iterations), first.dtype))
        self._numbers["lr"] = rate

    def _finish(self) -> list[Any]:
        counted = [] if self._iterations is None else [assign_add(self._iterations, 1)]
        return [*super()._finish(), *counted]

    def variables(self) -> list[Variable]:
        """All variables that this optimiser keeps."""
        own = [one for one in (self._rate, self._iterations) if isinstance(one, Variable)]
        return [*super().variables(), *own]

    @property
    def lr(self) -> Any:
        """The learning rate: a variable once there is a step."""
        return self._numbers["lr"] if self._rate is None else self._rate

    learning_rate = lr


class SGD(_Keras, rules.MomentumOptimizer):
    """Gradient descent, with momentum on demand.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     w = tf.Variable(1.0)
    ...     step = tf.keras.optimizers.SGD(lr=0.25).minimize(w * w)
    ...     session.run(tf.global_variables_initializer())
    ...     session.run(step)
    ...     print(session.run(w))
    0.5
    """

    def __init__(
        self, learning_rate: Any = 0.01, momentum: Any = 0.0, nesterov: bool = False, **options: Any
    ) -> None:
        given = self._of_keras({"learning_rate": learning_rate, **options})
        super().__init__(
            given.pop("learning_rate"), momentum, use_nesterov=nesterov, **{"name": "SGD", **given}
        )


class Adam(_Keras, rules.AdamOptimizer):
    """Adam; ``amsgrad`` is not offered."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: Any = 1e-7,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        if amsgrad:
            raise ValueError(f"Adam: amsgrad is not offered, at {here()}. Leave it out.")
        given = self._of_keras({"learning_rate": learning_rate, **options})
        rate, late = given.pop("learning_rate"), 1e-7 if epsilon is None else epsilon
        super().__init__(rate, beta_1, beta_2, late, **{"name": "Adam", **given})


def _rmsprop(p: Any, v: Any, m: Any, g: Any, lr: Any, decay: Any, momentum: Any, epsilon: Any) -> list[Any]:
    square = apply("adam_square", g, v, decay)
    scaled = ops.multiply(ops.divide(g, ops.add(ops.sqrt(square), epsilon)), lr)
    moved = apply("sgd_momentum", scaled, m, momentum, 0.0)
    return [ops.subtract(p, moved), square, moved]


class RMSprop(_Keras, rules.RMSPropOptimizer):
    """RMSProp that adds ``epsilon`` to the root; averages begin with 0. ``centered`` is not offered."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-7,
        centered: bool = False,
        **options: Any,
    ) -> None:
        if centered:
            raise ValueError(f"RMSprop: centered is not offered, at {here()}. Use tf.train.RMSPropOptimizer.")
        given = self._of_keras({"learning_rate": learning_rate, **options})
        rate, late = given.pop("learning_rate"), 1e-7 if epsilon is None else epsilon
        super().__init__(rate, rho, momentum, late, **{"name": "RMSprop", **given})
        self._rule, self._first = _rmsprop, {"rms": 0.0, "momentum": 0.0}


def _adagrad(p: Any, v: Any, g: Any, lr: Any, epsilon: Any) -> list[Any]:
    square = apply("adagrad_square", g, v)
    return [apply("adagrad_parameter", p, g, square, lr, epsilon), square]


class Adagrad(_Keras, rules.AdagradOptimizer):
    """Adagrad that adds ``epsilon`` to the root."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: Any = 1e-7,
        **options: Any,
    ) -> None:
        given = self._of_keras({"learning_rate": learning_rate, **options})
        super().__init__(
            given.pop("learning_rate"), initial_accumulator_value, **{"name": "Adagrad", **given}
        )
        self._rule = _adagrad  # type: ignore[assignment]  # takes one number more
        self._numbers["epsilon"] = 1e-7 if epsilon is None else epsilon


class Adadelta(_Keras, rules.AdadeltaOptimizer):
    """Adadelta."""

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: Any = 1e-7, **options: Any
    ) -> None:
        given = self._of_keras({"learning_rate": learning_rate, **options})
        rate, late = given.pop("learning_rate"), 1e-7 if epsilon is None else epsilon
        super().__init__(rate, rho, late, **{"name": "Adadelta", **given})


NAMES = {one.__name__.lower(): one for one in (SGD, Adam, RMSprop, Adagrad, Adadelta)}


def get(identifier: Any) -> Optimizer:
    """An optimiser from a name, or the one given."""
    found = found_in(NAMES, "optimizer", identifier.lower() if isinstance(identifier, str) else identifier)
    if isinstance(identifier, str):
        return found()
    if not isinstance(found, Optimizer):
        raise ValueError(
            f"Could not interpret optimizer identifier: {identifier!r}, at {here()}. Give its name."
        )
    return found
