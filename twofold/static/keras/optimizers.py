"""Keras's optimisers: those of ``tf.train`` with Keras's arguments and defaults: ``tf.keras.optimizers``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from twofold.dtypes import int64
from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.api.op_functions import as_tensor, constant, convert_to_tensor, refuse
from twofold.static.api.signatures import REQUIRED, with_parameters
from twofold.static.autodiff.clipping import clip_by_norm, clip_by_value
from twofold.static.graph.docstrings import example
from twofold.static.keras.named import found_in
from twofold.static.keras.state import get_session
from twofold.static.optimizers import update_rules as rules
from twofold.static.optimizers.optimizer import Optimizer
from twofold.static.variables.variable import Variable, assign_add


class _Keras(Optimizer):
    """What Keras's optimisers share: ``lr`` for ``learning_rate``, ``decay`` of it, ``clipnorm`` and ``clipvalue``."""

    _clips: dict[str, Any]
    _arguments: dict[str, Any]
    _decay: float
    _rate: Any = None
    _iterations: Variable | None = None

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

    def _create_slots(self, var_list: list[Variable]) -> None:
        super()._create_slots(var_list)
        first = var_list[0]
        if self._rate is None:
            with first.graph.name_scope(None), first.graph.control_dependencies(None):
                given = self._numbers["lr"]
                is_number = isinstance(given, (int, float))
                self._rate = (
                    Variable(float(given), False, name=f"{self._name}/learning_rate") if is_number else given
                )
                if self._decay:
                    self._iterations = Variable(constant(0, int64), False, name=f"{self._name}/iter")
        self._dtype = first.dtype

    def _prepare(self) -> None:
        super()._prepare()
        rate = math.cast(as_tensor(self._rate), self._dtype)
        if self._iterations is not None:
            rate = rate / (1.0 + self._decay * math.cast(as_tensor(self._iterations), self._dtype))
        self._numbers["lr"] = rate

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        counted = [] if self._iterations is None else [assign_add(self._iterations, 1)]
        return super()._finish([*update_ops, *counted], name_scope)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal optimiser, with the learning rate of now."""
        rate = self.lr if self._rate is None else get_session().run(self._rate)
        return {**self._arguments, "learning_rate": float(rate)}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The optimiser of these arguments; what is not set there may be unknown here."""
        known = inspect.signature(cls.__init__).parameters
        return cls(**{key: value for key, value in config.items() if key in known or value})

    def variables(self) -> list[Variable]:
        """All variables that this optimiser keeps."""
        own = [one for one in (self._rate, self._iterations) if isinstance(one, Variable)]
        return [*super().variables(), *own]

    @property
    def lr(self) -> Any:
        """The learning rate: a variable once there is a step."""
        return self._numbers["lr"] if self._rate is None else self._rate

    learning_rate = lr


def _taking(name: str, **own: Any) -> Callable[..., None]:
    """The ``__init__`` of an optimiser with its ``own`` parameters, which ``_begin`` takes, and those of all."""

    def initialize(self: _Keras, name: str, lr: Any, decay: Any, **given: Any) -> None:
        Optimizer.__init__(self, name=name)
        self._arguments = {"name": name, "decay": decay, **given}
        if lr is not None:
            self._arguments["learning_rate"] = lr
        self._clips = {key: given.pop(key) for key in ("clipnorm", "clipvalue")}
        self._decay = decay
        if lr is not None:
            given["learning_rate"] = lr
        if given.get("epsilon", 0) is None:
            given["epsilon"] = 1e-7
        self._begin(**given)

    shared = {"name": name, "lr": None, "decay": 0.0, "clipnorm": None, "clipvalue": None}
    return with_parameters(initialize, {"self": REQUIRED, **own, **shared})


@example(
    "w = tf.Variable(1.0)",
    "step = tf.keras.optimizers.SGD(lr=0.25).minimize(w * w)",
    "session.run(tf.global_variables_initializer())",
    "session.run(step)",
    "w",
    "0.5",
)
class SGD(_Keras, rules.MomentumOptimizer):
    """Gradient descent, with momentum on demand."""

    __init__ = _taking("SGD", learning_rate=0.01, momentum=0.0, nesterov=False)

    def _begin(self, **numbers: Any) -> None:
        super()._begin(use_nesterov=numbers.pop("nesterov"), **numbers)


class Adam(_Keras, rules.AdamOptimizer):
    """Adam; ``amsgrad`` is not offered."""

    __init__ = _taking("Adam", learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, amsgrad=False)

    def _begin(self, **numbers: Any) -> None:
        refuse("Adam", amsgrad=numbers.pop("amsgrad"))
        super()._begin(beta1=numbers.pop("beta_1"), beta2=numbers.pop("beta_2"), **numbers)
        self._counts_steps = True


def _outer_epsilon(g: Any, square: Any, epsilon: Any) -> Any:
    return ops.divide(g, ops.add(ops.sqrt(square), epsilon))


class RMSprop(_Keras, rules.RMSPropOptimizer):
    """RMSProp that adds ``epsilon`` to the root; averages begin with 0. ``centered`` is not offered."""

    _direction = staticmethod(_outer_epsilon)
    __init__ = _taking("RMSprop", learning_rate=0.001, rho=0.9, momentum=0.0, epsilon=1e-7, centered=False)

    def _begin(self, **numbers: Any) -> None:
        if numbers["centered"]:
            raise ValueError(f"RMSprop: centered is not offered, at {here()}. Use tf.train.RMSPropOptimizer.")
        super()._begin(decay=numbers.pop("rho"), **numbers)
        self._first = {"rms": 0.0, "momentum": 0.0}


class Adagrad(_Keras, rules.AdagradOptimizer):
    """Adagrad that adds ``epsilon`` to the root."""

    _limits: Mapping[str, str] = {"initial_accumulator_value": "positive or zero"}
    __init__ = _taking("Adagrad", learning_rate=0.001, initial_accumulator_value=0.1, epsilon=1e-7)


class Adadelta(_Keras, rules.AdadeltaOptimizer):
    """Adadelta."""

    __init__ = _taking("Adadelta", learning_rate=0.001, rho=0.95, epsilon=1e-7)


_KINDS = (SGD, Adam, RMSprop, Adagrad, Adadelta)
NAMES = {one.__name__.lower(): one for one in _KINDS} | {one.__name__: one for one in _KINDS}


def get(identifier: Any) -> Optimizer:
    """An optimiser from a name, or the one given."""
    known = isinstance(identifier, str) and identifier.lower() in NAMES
    found = found_in(NAMES, "optimizer", identifier.lower() if known else identifier)
    if isinstance(identifier, str):
        return found()
    if not isinstance(found, Optimizer):
        raise ValueError(
            f"Could not interpret optimizer identifier: {identifier!r}, at {here()}. Give its name."
        )
    return found
