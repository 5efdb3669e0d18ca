"""Optimisers: their rules of updating, the numbers that these take, and what is kept beside each variable."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from twofold.dtypes import float32, float64, int64
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, ops
from twofold.static.api.op_functions import as_tensor, constant, define
from twofold.static.api.signatures import REQUIRED
from twofold.static.graph import context
from twofold.static.graph.docstrings import START, example
from twofold.static.graph.graph_elements import importable
from twofold.static.graph.scopes import control_dependencies
from twofold.static.optimizers.optimizer import Optimizer, taking
from twofold.static.variables.variable import Variable, assign, assign_add

_PENALTIES = {"l1_regularization_strength": 0.0, "l2_regularization_strength": 0.0}


def _stepped(optimizer: str, result: str, first: str = "1.0") -> Callable[[Any], Any]:
    """An example: what one step of an optimizer makes of ``first`` towards the smallest square."""
    shown = "w" if result != "True" else "w < 1.0"
    step = f"step = tf.train.{optimizer}.minimize(w * w)"
    return example(f"w = tf.Variable({first})", step, START, "session.run(step)", shown, result)


@importable
def _descended(p: Any, g: Any, lr: Any) -> list[Any]:
    return [apply("sgd_parameter", p, g, lr)]


@_stepped("GradientDescentOptimizer(0.25)", "1.5", first="3.0")
class GradientDescentOptimizer(Optimizer):
    """``variable - learning_rate * gradient``."""

    _type, _rule, _by_rows = "ApplyGradientDescent", staticmethod(_descended), False
    __init__ = taking(learning_rate=REQUIRED, use_locking=False, name="GradientDescent")


@importable
def _with_momentum(p: Any, m: Any, g: Any, lr: Any, momentum: Any) -> list[Any]:
    new = apply("sgd_momentum", g, m, momentum, 0.0)
    return [apply("sgd_parameter", p, new, lr), new]


@importable
def _with_nesterov(p: Any, m: Any, g: Any, lr: Any, momentum: Any) -> list[Any]:
    new = apply("sgd_momentum", g, m, momentum, 0.0)
    return [apply("sgd_parameter", p, apply("nesterov_direction", g, new, momentum), lr), new]


@_stepped("MomentumOptimizer(0.25, 0.9)", "0.5")
class MomentumOptimizer(Optimizer):
    """``accumulated = momentum * accumulated + gradient; variable -= learning_rate * accumulated``."""

    _type, _first = "ApplyMomentum", {"momentum": 0.0}
    __init__ = taking(
        learning_rate=REQUIRED, momentum=REQUIRED, use_locking=False, name="Momentum", use_nesterov=False
    )

    def _begin(self, **numbers: Any) -> None:
        self._rule = _with_nesterov if numbers.pop("use_nesterov") else _with_momentum
        super()._begin(**numbers)


def _adam(rule: str) -> Any:
    def body(p: Any, m: Any, v: Any, g: Any, **numbers: Any) -> list[Any]:
        mean = apply("adam_mean", g, m, numbers["beta1"])
        square = apply("adam_square", g, v, numbers["beta2"])
        rest = [numbers[name] for name in ("lr", "correction1", "correction2", "epsilon")]
        return [apply(rule, p, mean, square, *rest), mean, square]

    body.__qualname__ = f"_adam of {rule}"
    return importable(body)


@importable
def _correction(beta: Any, step: Any) -> Any:
    return ops.subtract(1.0, ops.pow(beta, ops.cast(step, beta.dtype)))


_BETAS = ("beta1", "beta2")
_ADAM = {"tensorflow": _adam("adam_parameter_late_epsilon"), "pytorch": _adam("adam_parameter")}


@_stepped("AdamOptimizer(0.25)", "0.75")
class AdamOptimizer(Optimizer):
    """Adam (Kingma, Ba 2015).

    ``formulation`` is this library's own: ``"tensorflow"`` (the default) adds epsilon to the uncorrected root
    ("epsilon hat"), ``"pytorch"`` computes exactly what the define-by-run ``optim.Adam`` does.
    """

    _type, _first = "ApplyAdam", {"m": 0.0, "v": 0.0}
    _by_rows = False  # the means of all rows decay, as TensorFlow's do
    _step: Variable | None = None
    _counts_steps = False
    """Whether a count of steps is kept, where TensorFlow keeps the powers of ``beta1`` and ``beta2``."""
    _shared = {"use_locking": False, "name": "Adam", "formulation": "tensorflow"}
    __init__ = taking(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, **_shared)

    def _begin(self, **numbers: Any) -> None:
        formulation = numbers.pop("formulation", "tensorflow")
        if formulation not in _ADAM:
            raise ValueError(f"AdamOptimizer: formulation is {formulation!r}. Use 'tensorflow' or 'pytorch'.")
        super()._begin(**numbers)
        self._rule, self._counts_steps = _ADAM[formulation], formulation == "pytorch"

    def _create_slots(self, var_list: list[Variable]) -> None:
        first = min(var_list, key=lambda variable: variable.name)
        if self._counts_steps:
            self._create_step(first)
        else:
            for name in _BETAS:
                beta = self._call_if_callable(self._numbers[name])
                self._create_non_slot_variable(beta, f"{name}_power", first)
        super()._create_slots(var_list)

    def _create_step(self, first: Variable) -> None:
        if self._step is None:
            with first.graph.name_scope(None), first.graph.control_dependencies(None):
                self._step = Variable(constant(0, int64), False, name=f"{self._name}/step")
            betas = {first.graph.unique_name(f"{name}_power"): self._numbers[name] for name in _BETAS}
            if all(isinstance(beta, (int, float)) for beta in betas.values()):
                self._step.powers = betas

    def _get_beta_accumulators(self) -> tuple[Variable | None, ...]:
        """The variables that hold the powers of ``beta1`` and ``beta2``."""
        return tuple(self._get_non_slot_variable(f"{name}_power") for name in _BETAS)

    def _prepare(self) -> None:
        if self._counts_steps:
            self._count = assign_add(self._step, 1)
            found = [self._correction(self._numbers[name]) for name in _BETAS]
        else:
            found = [1.0 - as_tensor(power) for power in self._get_beta_accumulators()]
        for name, correction in zip(_BETAS, found, strict=True):
            self._numbers[name.replace("beta", "correction")] = correction

    def _rule_of(self, variable: Variable) -> tuple[Callable[..., list[Any]], Mapping[str, Any]]:
        rule, numbers = super()._rule_of(variable)
        if self._counts_steps:
            return rule, numbers
        # as float32, as their powers are: else 1 - 0.999 would not be what the mean of squares is divided by
        betas = {name: self._call_if_callable(numbers[name]) for name in _BETAS}
        rounded = {
            key: float(float32.numpy.type(one)) for key, one in betas.items() if isinstance(one, float)
        }
        return rule, {**numbers, **rounded}

    def variables(self) -> list[Variable]:
        """All variables that this optimiser keeps."""
        return super().variables() + ([] if self._step is None else [self._step])

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        if self._counts_steps:
            return super()._finish([*update_ops, self._count], name_scope)
        with control_dependencies(update_ops):
            for name, power in zip(_BETAS, self._get_beta_accumulators(), strict=True):
                beta = as_tensor(self._call_if_callable(self._numbers[name]))
                update_ops = [*update_ops, assign(power, as_tensor(power) * beta)]
        return super()._finish(update_ops, name_scope)

    def _correction(self, beta: Any) -> Any:
        """``1 - beta ** step``: given to each run as a number, so that no precision of the step is lost."""
        step, beta = self._step, self._call_if_callable(beta)
        assert step is not None
        if not isinstance(beta, (int, float)):
            return define("BiasCorrection", _correction, (as_tensor(beta), self._count), {}, None).outputs[0]
        if context.at_once():
            return 1 - beta ** int(step.numpy())
        made = step.graph.add("BiasCorrection", None, [tensor_type(float64, (), True)], ())
        made.number_of = lambda state: 1 - beta ** (state[step].item() + 1)
        return made.outputs[0]


@importable
def _adagrad(p: Any, v: Any, g: Any, lr: Any, epsilon: Any = 0.0) -> list[Any]:
    square = apply("adagrad_square", g, v)
    return [apply("adagrad_parameter", p, g, square, lr, epsilon), square]


@_stepped("AdagradOptimizer(0.25)", "0.7530676")
class AdagradOptimizer(Optimizer):
    """``accumulated += gradient ** 2; variable -= rate * gradient / sqrt(accumulated)`` (Duchi et al. 2011)."""

    _type, _rule = "ApplyAdagrad", staticmethod(_adagrad)
    _first = {"accumulator": "initial_accumulator_value"}
    _limits: Mapping[str, str] = {"initial_accumulator_value": "positive"}
    _by_rows = False  # a gradient of 0 moves nothing anyway
    __init__ = taking(
        learning_rate=REQUIRED, initial_accumulator_value=0.1, use_locking=False, name="Adagrad"
    )


@importable
def _adagrad_da(p: Any, total: Any, square: Any, g: Any, lr: Any, step: Any, l1: Any, l2: Any) -> list[Any]:
    total, square = ops.add(total, g), ops.add(square, ops.square(g))
    steps = ops.cast(step, p.dtype)
    beyond = ops.maximum(ops.subtract(ops.abs(total), ops.multiply(steps, l1)), 0.0)
    denominator = ops.add(ops.multiply(ops.multiply(steps, l2), lr), ops.sqrt(square))
    moved = ops.divide(ops.multiply(ops.multiply(ops.sign(total), beyond), lr), denominator)
    return [ops.negative(moved), total, square]


@_stepped("AdagradDAOptimizer(0.25, tf.train.create_global_step())", "-0.2469324")
class AdagradDAOptimizer(Optimizer):
    """Adagrad by dual averaging: ``variable = -rate * shrunk(sum of gradients) / (l2 * step * rate + sqrt(squares))``.

    The sum is shrunk towards zero by ``l1 * step``; ``squares`` are the sums of squared gradients (Duchi et al. 2011).
    ``global_step`` counts the steps, from 0.
    """

    _type, _rule = "ApplyAdagradDA", staticmethod(_adagrad_da)
    _squares = "initial_gradient_squared_accumulator_value"
    _first = {"gradient_accumulator": 0.0, "gradient_squared_accumulator": _squares}
    _limits: Mapping[str, str] = {_squares: "positive"}
    _own = {"learning_rate": REQUIRED, "global_step": REQUIRED, _squares: 0.1, **_PENALTIES}
    __init__ = taking(**_own, use_locking=False, name="AdagradDA")

    def _begin(self, **numbers: Any) -> None:
        self._step = numbers.pop("global_step")
        super()._begin(**numbers)

    def _prepare(self) -> None:
        self._numbers["step"] = as_tensor(self._step) + 1


@functools.cache
def _rmsprop(direction: Callable[..., Any], centered: bool = False) -> Callable[..., list[Any]]:
    """A rule that moves along ``direction(gradient, mean of squares, epsilon)``, of a variance if it is centred."""

    def rule(p: Any, v: Any, *rest: Any, lr: Any, decay: Any, momentum: Any, epsilon: Any) -> list[Any]:
        *means, m, g = rest
        square = apply("adam_square", g, v, decay)
        centres = [apply("adam_mean", g, mean, decay) for mean in means]
        spread = ops.subtract(square, ops.square(centres[0])) if centered else square
        moved = apply("sgd_momentum", ops.multiply(direction(g, spread, epsilon), lr), m, momentum, 0.0)
        return [ops.subtract(p, moved), square, *centres, moved]

    rule.__qualname__ = f"{'centered ' if centered else ''}_rmsprop of {direction.__qualname__}"
    return importable(rule)


def _inner_epsilon(g: Any, square: Any, epsilon: Any) -> Any:
    return apply("rmsprop_direction_inner_epsilon", g, square, epsilon)


_RMSPROP, _CENTERED_RMSPROP = _rmsprop(_inner_epsilon), _rmsprop(_inner_epsilon, True)


@_stepped("RMSPropOptimizer(0.25)", "0.561471")
class RMSPropOptimizer(Optimizer):
    """RMSProp: ``ms = decay * ms + (1 - decay) * g ** 2; mom = momentum * mom + rate * g / sqrt(ms + epsilon)``."""

    _type, _direction = "ApplyRMSProp", staticmethod(_inner_epsilon)
    _shared = {"use_locking": False, "centered": False, "name": "RMSProp"}
    __init__ = taking(learning_rate=REQUIRED, decay=0.9, momentum=0.0, epsilon=1e-10, **_shared)

    def _begin(self, **numbers: Any) -> None:
        centered = numbers.pop("centered")
        super()._begin(**numbers)
        self._rule = _rmsprop(self._direction, centered)
        self._first = {"rms": 1.0, **({"mg": 0.0} if centered else {}), "momentum": 0.0}


@importable
def _adadelta(p: Any, v: Any, d: Any, g: Any, lr: Any, rho: Any, epsilon: Any) -> list[Any]:
    square = ops.add(ops.multiply(v, rho), ops.multiply(ops.square(g), 1 - rho))
    root = ops.sqrt(ops.add(d, epsilon))
    change = ops.multiply(ops.divide(root, ops.sqrt(ops.add(square, epsilon))), g)
    moved = ops.add(ops.multiply(d, rho), ops.multiply(ops.square(change), 1 - rho))
    return [ops.subtract(p, ops.multiply(change, lr)), square, moved]


@_stepped("AdadeltaOptimizer(1.0)", "True")
class AdadeltaOptimizer(Optimizer):
    """Steps in the ratio of the root mean squares of earlier changes and gradients (Zeiler 2012)."""

    _type, _rule = "ApplyAdadelta", staticmethod(_adadelta)
    _first = {"accum": 0.0, "accum_update": 0.0}
    __init__ = taking(learning_rate=0.001, rho=0.95, epsilon=1e-8, use_locking=False, name="Adadelta")


def _shrunk(value: Any, lr: Any, l1: Any, l2: Any) -> Any:
    """The point nearest to ``value`` under penalties of ``l1`` and ``l2``, in steps of ``lr``."""
    size = ops.maximum(ops.subtract(ops.abs(value), ops.multiply(lr, l1)), 0.0)
    return ops.divide(ops.multiply(ops.sign(value), size), ops.add(ops.multiply(lr, l2), 1.0))


@importable
def _proximal(p: Any, g: Any, lr: Any, l1: Any, l2: Any) -> list[Any]:
    return [_shrunk(ops.subtract(p, ops.multiply(g, lr)), lr, l1, l2)]


@_stepped("ProximalGradientDescentOptimizer(0.25)", "0.5")
class ProximalGradientDescentOptimizer(Optimizer):
    """Gradient descent that shrinks by penalties of absolute values and squares (Duchi, Singer 2009)."""

    _type, _rule = "ApplyProximalGradientDescent", staticmethod(_proximal)
    __init__ = taking(learning_rate=REQUIRED, **_PENALTIES, use_locking=False, name="ProximalGradientDescent")


@importable
def _proximal_adagrad(p: Any, v: Any, g: Any, lr: Any, l1: Any, l2: Any) -> list[Any]:
    square = ops.add(v, ops.square(g))
    rate = ops.multiply(ops.rsqrt(square), lr)
    return [_shrunk(ops.subtract(p, ops.multiply(g, rate)), rate, l1, l2), square]


@_stepped("ProximalAdagradOptimizer(0.25)", "True")
class ProximalAdagradOptimizer(Optimizer):
    """Adagrad that shrinks by penalties of absolute values and squares (Duchi, Singer 2009)."""

    _type, _rule = "ApplyProximalAdagrad", staticmethod(_proximal_adagrad)
    _first = {"accumulator": "initial_accumulator_value"}
    _limits: Mapping[str, str] = {"initial_accumulator_value": "positive"}
    _own = {"learning_rate": REQUIRED, "initial_accumulator_value": 0.1, **_PENALTIES}
    __init__ = taking(**_own, use_locking=False, name="ProximalAdagrad")


@importable
def _ftrl(p: Any, v: Any, z: Any, g: Any, lr: Any, power: Any, l1: Any, l2: Any, shrinkage: Any) -> list[Any]:
    square = ops.add(v, ops.square(g))
    old, new = ops.pow(v, -power), ops.pow(square, -power)
    pulled = ops.add(g, ops.multiply(p, 2 * shrinkage))
    linear = ops.add(z, ops.subtract(pulled, ops.multiply(ops.divide(ops.subtract(new, old), lr), p)))
    curvature = ops.add(ops.divide(new, lr), 2 * l2)
    size = ops.subtract(ops.abs(linear), l1)
    found = ops.divide(ops.negative(ops.multiply(ops.sign(linear), size)), curvature)
    return [ops.where(ops.greater(size, 0.0), found, 0.0), square, linear]


@_stepped("FtrlOptimizer(0.25)", "True")
class FtrlOptimizer(Optimizer):
    """Follow the regularised leader, with rates for each coordinate (McMahan et al. 2013).

    ``accum_name`` and ``linear_name`` name what is kept beside each variable.
    """

    _type, _rule = "ApplyFtrl", staticmethod(_ftrl)
    _first = {"accum": "initial_accumulator_value", "linear": 0.0}
    _shrinkage = "l2_shrinkage_regularization_strength"
    _limits: Mapping[str, str] = {
        "learning_rate_power": "negative or zero",
        **dict.fromkeys(("initial_accumulator_value", *_PENALTIES, _shrinkage), "positive or zero"),
    }
    _own = {"learning_rate": REQUIRED, "learning_rate_power": -0.5, "initial_accumulator_value": 0.1}
    _shared = {"use_locking": False, "name": "Ftrl", "accum_name": None, "linear_name": None}
    __init__ = taking(**_own, **_PENALTIES, **_shared, **{_shrinkage: 0.0})

    def _begin(self, **numbers: Any) -> None:
        self._labels = {slot: numbers.pop(f"{slot}_name") or self._name for slot in ("accum", "linear")}
        super()._begin(**numbers)

    def _slot_label(self, slot: str) -> str:
        return self._labels[slot]
