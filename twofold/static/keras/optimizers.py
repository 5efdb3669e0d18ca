"""Keras's optimisers: those of ``tf.train`` with Keras's arguments and defaults: ``tf.keras.optimizers``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.ops.base import apply, ops
from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.api.op_functions import as_tensor, constant, convert_to_tensor
from twofold.static.api.signatures import REQUIRED, with_parameters
from twofold.static.autodiff.clipping import clip_by_norm, clip_by_value
from twofold.static.autodiff.indexed_slices import IndexedSlices
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.graph_elements import importable
from twofold.static.keras import schedules as schedules
from twofold.static.keras.base_layer import put_value, value_of
from twofold.static.keras.named import CustomObjectScope, found_in
from twofold.static.keras.named import serialize as _serialize
from twofold.static.keras.state import settings
from twofold.static.optimizers import update_rules as rules
from twofold.static.optimizers.optimizer import Optimizer
from twofold.static.variables.variable import Variable, assign_add


class _Keras(Optimizer):
    """What Keras's optimisers share: ``lr`` for ``learning_rate``, ``decay`` of it, ``clipnorm`` and ``clipvalue``.

    The learning rate is a variable that a program may set between steps; ``iterations`` counts these.
    """

    _clips: dict[str, Any]
    _arguments: dict[str, Any]
    _decay: float
    _rate: Any = None
    _iterations: Variable | None = None
    _step: Variable | None = None
    _counts_steps = False

    def minimize(  # type: ignore[override]
        self, loss: Any, var_list: Any = None, grad_loss: Any = None, name: str | None = None
    ) -> Any:
        """An operation that takes one step, of all trainable variables unless ``var_list`` is given."""
        pairs = self.compute_gradients(loss, var_list=var_list, grad_loss=grad_loss)
        if all(gradient is None for gradient, _ in pairs):
            names = ", ".join(variable.name for _, variable in pairs)
            raise ValueError(f"No gradients provided for any variable: {names}, at {here()}.")
        return self.apply_gradients(pairs, name)

    def apply_gradients(  # type: ignore[override]
        self, grads_and_vars: Any, name: str | None = None
    ) -> Any:
        """An operation that changes the variables by their (clipped) gradients."""
        pairs = [(self._clipped(gradient), variable) for gradient, variable in grads_and_vars]
        return super().apply_gradients(pairs, None, name)

    def get_gradients(self, loss: Any, params: Any) -> list[Any]:
        """The (clipped) gradients by some variables."""
        return [self._clipped(one) for one, _ in self.compute_gradients(loss, var_list=params)]

    def get_updates(self, loss: Any, params: Any) -> list[Any]:
        """A list of the operation that takes one step, for ``tf.keras.backend.function``."""
        return [self.minimize(loss, params)]

    def _clipped(self, gradient: Any) -> Any:
        norm, value = self._clips["clipnorm"], self._clips["clipvalue"]
        if gradient is None or (norm is None and value is None):
            return gradient
        made = gradient if isinstance(gradient, IndexedSlices) else convert_to_tensor(as_tensor(gradient))
        made = made if norm is None else clip_by_norm(made, norm)
        return made if value is None else clip_by_value(made, -value, value)

    def _kept(self, value: Any, name: str) -> Variable:
        graph = get_default_graph()
        with graph.name_scope(None), graph.control_dependencies(None):
            return Variable(value, False, name=f"{self._name}/{name}")

    def _create_slots(self, var_list: list[Variable]) -> None:
        self._step = self.iterations
        super()._create_slots(var_list)
        self._dtype = var_list[0].dtype

    def _prepare(self) -> None:
        steps, rate = as_tensor(self.iterations), self.lr
        if isinstance(rate, schedules.LearningRateSchedule):
            rate = rate(steps)
        elif callable(rate) and not hasattr(rate, "type_"):
            rate = rate()
        rate = math.cast(as_tensor(rate), self._dtype)
        if self._decay:
            rate = rate / (1.0 + self._decay * math.cast(steps, self._dtype))
        if not self._counts_steps:
            self._count = assign_add(self.iterations, 1)
        self._numbers["lr"] = rate
        super()._prepare()

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        counted = [] if self._counts_steps else [self._count]
        return super()._finish([*update_ops, *counted], name_scope)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal optimiser, with the learning rate of now."""
        rate = self.lr
        if isinstance(rate, schedules.LearningRateSchedule):
            found: Any = _serialize(rate)
        else:
            found = float(value_of(rate)) if isinstance(rate, Variable) else rate
        given = {
            key: value
            for key, value in self._arguments.items()
            if key not in self._clips or value is not None
        }
        return {**given, "learning_rate": found}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The optimiser of these arguments; what is not set there may be unknown here."""
        known = inspect.signature(cls.__init__).parameters
        given = {key: value for key, value in config.items() if key in known or value}
        rate = given.get("learning_rate")
        if isinstance(rate, dict):
            given["learning_rate"] = schedules.deserialize(rate)
        return cls(**given)

    @property
    def iterations(self) -> Variable:
        """How many steps were taken."""
        if self._iterations is None:
            self._iterations = self._kept(lambda: constant(0, int64), "iter")
        return self._iterations

    @property
    def weights(self) -> list[Variable]:
        """The count of steps, and what is kept beside the variables: a kind of it after the other."""
        kinds = list(dict.fromkeys(slot for _, slot in self._slots))
        kept = [one for kind in kinds for (_, slot), one in self._slots.items() if slot == kind]
        return [self.iterations, *kept, *self._shared_variables.values()]

    def variables(self) -> list[Variable]:
        """All variables that this optimiser keeps, but for the learning rate."""
        return self.weights

    def get_weights(self) -> list[numpy.ndarray]:
        """The values of ``weights``."""
        return [value_of(one) for one in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set ``weights``; raises ValueError where number or shapes differ."""
        shapes = [list(numpy.shape(value)) for value in weights]
        wanted = [one.get_shape().as_list() for one in self.weights]
        if shapes != wanted:
            raise ValueError(
                f"set_weights: shapes {shapes} for those of {self._name}, {wanted}, at {here()}."
            )
        for variable, value in zip(self.weights, weights):
            put_value(variable, value)

    @property
    def lr(self) -> Any:
        """The learning rate: a variable, or what else was given for it."""
        if self._rate is None:
            given = self._numbers["lr"]
            self._rate = (
                self._kept(float(given), "learning_rate") if isinstance(given, (int, float)) else given
            )
        return self._rate

    @lr.setter
    def lr(self, value: Any) -> None:
        if isinstance(self._rate, Variable) and isinstance(value, (int, float, numpy.ndarray, numpy.generic)):
            put_value(self._rate, value)
        elif self._slots or self._iterations is not None:
            what = f"{self._name}: steps are declared with the learning rate {self.lr!r}"
            raise AttributeError(f"{what}, at {here()}. Give a number, or set it before the first step.")
        else:
            self._rate, self._numbers["lr"] = None, value

    learning_rate = lr

    def __getattr__(self, name: str) -> Any:
        """An argument by its name."""
        given = vars(self).get("_arguments", {})
        if name in given:
            return given[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self).get("_arguments", {}) and name not in ("lr", "learning_rate"):
            raise AttributeError(
                f"{type(self).__name__}.{name} is fixed, at {here()}. Make another optimiser with another {name}.",
                name=name,
                obj=self,
            )
        super().__setattr__(name, value)


def _taking(name: str, **own: Any) -> Callable[..., None]:
    """The ``__init__`` of an optimiser with its ``own`` parameters, which ``_begin`` takes, and those of all."""

    def initialize(self: _Keras, name: str, lr: Any, decay: Any, **given: Any) -> None:
        Optimizer.__init__(self, name=name)
        self._clips = {key: given[key] for key in ("clipnorm", "clipvalue")}
        self._decay = decay
        if lr is not None:
            given["learning_rate"] = lr
        if given.get("epsilon", 0) is None:
            given["epsilon"] = settings.epsilon
        self._begin(**{key: value for key, value in given.items() if key not in self._clips})
        self._arguments = {"name": name, "decay": decay, **given}

    shared = {"name": name, "lr": None, "decay": 0.0, "clipnorm": None, "clipvalue": None}
    return with_parameters(initialize, {"self": REQUIRED, **own, **shared})


def _momentum_of(nesterov: bool) -> Callable[..., list[Any]]:
    """A rule that moves by what is kept: its share ``momentum`` less the gradient times the rate."""

    def rule(p: Any, m: Any, g: Any, lr: Any, momentum: Any) -> list[Any]:
        step = ops.multiply(g, lr)
        kept = ops.subtract(ops.multiply(m, momentum), step)
        moved = ops.subtract(ops.multiply(kept, momentum), step) if nesterov else kept
        return [ops.add(p, moved), kept]

    rule.__qualname__ = f"keras momentum, nesterov {nesterov}"
    return importable(rule)


_MOMENTUM, _NESTEROV = _momentum_of(False), _momentum_of(True)


@importable
def _descended(p: Any, g: Any, lr: Any, momentum: Any) -> list[Any]:
    return [apply("sgd_parameter", p, g, lr)]


@example(
    "w = tf.Variable(1.0)",
    "step = tf.keras.optimizers.SGD(lr=0.25).minimize(w * w)",
    "session.run(tf.global_variables_initializer())",
    "session.run(step)",
    "w",
    "0.5",
)
class SGD(_Keras):
    """Gradient descent; ``momentum`` of steps, of which each has the learning rate that it had."""

    _type = "KerasMomentum"
    __init__ = _taking("SGD", learning_rate=0.01, momentum=0.0, nesterov=False)

    def _begin(self, **numbers: Any) -> None:
        nesterov, momentum = numbers.pop("nesterov"), numbers["momentum"]
        is_number = isinstance(momentum, (int, float))
        if is_number and not 0 <= momentum <= 1:
            raise ValueError(f"SGD: `momentum` must be between [0, 1], not {momentum}, at {here()}.")
        super()._begin(**numbers)
        self._by_rows = moves = not is_number or momentum > 0
        self._rule = (_NESTEROV if nesterov else _MOMENTUM) if moves else _descended
        self._first = {"momentum": 0.0} if moves else {}


class _OfMoments(_Keras, rules.AdamOptimizer):
    """Base of the optimisers that keep moments, and correct these by the count of steps."""

    def _begin(self, **numbers: Any) -> None:
        super()._begin(beta1=numbers.pop("beta_1"), beta2=numbers.pop("beta_2"), **numbers)
        self._counts_steps = True


@importable
def _amsgrad(p: Any, m: Any, v: Any, top: Any, g: Any, **numbers: Any) -> list[Any]:
    mean = apply("adam_mean", g, m, numbers["beta1"])
    square = apply("adam_square", g, v, numbers["beta2"])
    largest = ops.maximum(top, square)
    rest = [numbers[name] for name in ("lr", "correction1", "correction2", "epsilon")]
    return [apply("adam_parameter_late_epsilon", p, mean, largest, *rest), mean, square, largest]


class Adam(_OfMoments):
    """Adam (Kingma, Ba 2015), with ``amsgrad`` by the largest mean of squares so far (Reddi et al. 2018)."""

    __init__ = _taking("Adam", learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, amsgrad=False)

    def _begin(self, **numbers: Any) -> None:
        amsgrad = numbers.pop("amsgrad")
        super()._begin(**numbers)
        if amsgrad:
            self._rule, self._first = _amsgrad, {"m": 0.0, "v": 0.0, "vhat": 0.0}


@importable
def _adamax(p: Any, m: Any, v: Any, g: Any, **numbers: Any) -> list[Any]:
    mean = apply("adam_mean", g, m, numbers["beta1"])
    largest = ops.maximum(ops.multiply(v, numbers["beta2"]), ops.abs(g))
    rate = ops.divide(numbers["lr"], ops.cast(numbers["correction1"], p.dtype))
    moved = ops.multiply(ops.divide(mean, ops.add(largest, numbers["epsilon"])), rate)
    return [ops.subtract(p, moved), mean, largest]


class Adamax(_OfMoments):
    """Adam with the largest, decayed, absolute gradient for the root mean square (Kingma, Ba 2015)."""

    _by_rows = True
    __init__ = _taking("Adamax", learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7)

    def _begin(self, **numbers: Any) -> None:
        super()._begin(**numbers)
        self._rule = _adamax


@importable
def _nadam(p: Any, m: Any, v: Any, g: Any, **numbers: Any) -> list[Any]:
    now, then, product, correction = (
        ops.cast(numbers[name], p.dtype) for name in ("share", "next_share", "product", "correction2")
    )
    mean = apply("adam_mean", g, m, numbers["beta1"])
    square = apply("adam_square", g, v, numbers["beta2"])
    own = ops.multiply(ops.divide(g, ops.subtract(1.0, product)), ops.subtract(1.0, now))
    ahead = ops.divide(ops.multiply(mean, then), ops.subtract(1.0, ops.multiply(product, then)))
    root = ops.sqrt(ops.divide(square, correction))
    moved = ops.divide(ops.add(own, ahead), ops.add(root, numbers["epsilon"]))
    return [ops.subtract(p, ops.multiply(moved, numbers["lr"])), mean, square]


class Nadam(_OfMoments):
    """Adam with Nesterov's momentum, whose shares follow a schedule (Dozat 2016); ``decay`` is that of the schedule."""

    __init__ = _taking(
        "Nadam", learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, schedule_decay=0.004
    )

    def _begin(self, **numbers: Any) -> None:
        if isinstance(numbers["learning_rate"], schedules.LearningRateSchedule):
            raise ValueError(f"The Nadam optimizer does not support a LearningRateSchedule, at {here()}.")
        self._schedule_decay, self._decay = numbers.pop("schedule_decay"), 0.0
        super()._begin(**numbers)
        self._rule, self._by_rows, self._in_rows_first = _nadam, True, 1

    def _create_slots(self, var_list: list[Variable]) -> None:
        super()._create_slots(var_list)
        self._create_non_slot_variable(1.0, "momentum_cache", var_list[0])

    def _share(self, step: Any) -> Any:
        return self._numbers["beta1"] * (1.0 - 0.5 * math.pow(0.96, self._schedule_decay * step))

    def _prepare(self) -> None:
        steps, cache = math.cast(as_tensor(self.iterations), "float32"), self._cache()
        share, following = self._share(steps + 1.0), self._share(steps + 2.0)
        product = as_tensor(cache) * share
        self._change = cache.assign(product)
        super()._prepare()
        self._numbers |= {"share": share, "next_share": following, "product": product}

    def _cache(self) -> Variable:
        found = self._get_non_slot_variable("momentum_cache")
        assert found is not None
        return found

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        return super()._finish([*update_ops, self._change], name_scope)


def _rmsprop_of(centered: bool) -> Callable[..., list[Any]]:
    """A rule without momentum, with ``epsilon`` beside the root."""

    def rule(p: Any, v: Any, *rest: Any, lr: Any, decay: Any, momentum: Any, epsilon: Any) -> list[Any]:
        *means, g = rest
        square = apply("adam_square", g, v, decay)
        centres = [apply("adam_mean", g, mean, decay) for mean in means]
        spread = ops.subtract(square, ops.square(centres[0])) if centered else square
        moved = ops.divide(ops.multiply(g, lr), ops.add(ops.sqrt(spread), epsilon))
        return [ops.subtract(p, moved), square, *centres]

    rule.__qualname__ = f"keras rmsprop, centered {centered}"
    return importable(rule)


_RMSPROP, _CENTERED_RMSPROP = _rmsprop_of(False), _rmsprop_of(True)


class RMSprop(_Keras, rules.RMSPropOptimizer):
    """RMSProp whose averages begin with 0; ``epsilon`` is added to the root or, with momentum, below it.

    With ``centered`` gradients are divided by their deviation.
    """

    __init__ = _taking("RMSprop", learning_rate=0.001, rho=0.9, momentum=0.0, epsilon=1e-7, centered=False)

    def _begin(self, **numbers: Any) -> None:
        momentum, centered = numbers["momentum"], numbers["centered"]
        super()._begin(decay=numbers.pop("rho"), **numbers)
        slots = dict.fromkeys(self._first, 0.0)
        if isinstance(momentum, (int, float)) and momentum == 0:
            slots.pop("momentum")
            self._by_rows, self._rule = False, _CENTERED_RMSPROP if centered else _RMSPROP
        self._first = slots


class Adagrad(_Keras, rules.AdagradOptimizer):
    """Adagrad that adds ``epsilon`` to the root; made by its name it begins with squares of 0, as Keras's."""

    _limits: Mapping[str, str] = {"initial_accumulator_value": "positive or zero"}
    __init__ = _taking("Adagrad", learning_rate=0.001, initial_accumulator_value=0.1, epsilon=1e-7)

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The optimiser of these arguments."""
        return super().from_config({"initial_accumulator_value": 0.0, **config})


class Adadelta(_Keras, rules.AdadeltaOptimizer):
    """Adadelta."""

    __init__ = _taking("Adadelta", learning_rate=0.001, rho=0.95, epsilon=1e-7)


class Ftrl(_Keras, rules.FtrlOptimizer):
    """Follow the regularised leader, with rates for each coordinate (McMahan et al. 2013)."""

    _own = {"learning_rate": 0.001, "learning_rate_power": -0.5, "initial_accumulator_value": 0.1}
    _penalties = {"l1_regularization_strength": 0.0, "l2_regularization_strength": 0.0}
    __init__ = _taking("Ftrl", **_own, **_penalties, l2_shrinkage_regularization_strength=0.0)

    def _begin(self, **numbers: Any) -> None:
        super()._begin(accum_name=None, linear_name=None, **numbers)


_KINDS = (SGD, Adam, RMSprop, Adagrad, Adadelta, Adamax, Nadam, Ftrl)
NAMES = {one.__name__.lower(): one for one in _KINDS} | {one.__name__: one for one in _KINDS}


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The optimiser of a dict of ``class_name`` and ``config``; ``custom_objects`` are the program's own classes."""
    name = config["class_name"]
    known = isinstance(name, str) and name.lower() in NAMES
    with CustomObjectScope(custom_objects or {}):
        return found_in(NAMES, "optimizer", {**config, "class_name": name.lower() if known else name})


def serialize(optimizer: Any) -> Any:
    """A dict from which ``deserialize`` makes an equal optimiser."""
    return _serialize(optimizer)


def get(identifier: Any) -> Optimizer:
    """An optimiser from a name or a configuration, or the one given."""
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    found = deserialize(identifier) if isinstance(identifier, dict) else identifier
    if not isinstance(found, Optimizer):
        raise ValueError(
            f"Could not interpret optimizer identifier: {identifier!r}, at {here()}. Give its name."
        )
    return found
