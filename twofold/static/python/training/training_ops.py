"""``tensorflow.python.training.training_ops``: one step of an optimizer on a variable and what is kept beside it.

Each returns the variable's new value; ``resource_apply_...`` return the operation. ``use_locking`` changes nothing:
no two runs update at a time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from twofold.ops.base import apply, ops
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_tensor, convert_to_tensor
from twofold.static.graph.graph import operation_of
from twofold.static.optimizers import update_rules as rules
from twofold.static.variables.variable import Variable, update

__all__ = [
    "apply_adadelta",
    "apply_adagrad",
    "apply_adam",
    "apply_centered_rms_prop",
    "apply_ftrl",
    "apply_gradient_descent",
    "apply_momentum",
    "apply_proximal_adagrad",
    "apply_proximal_gradient_descent",
    "apply_rms_prop",
    "resource_apply_adadelta",
    "resource_apply_adagrad",
    "resource_apply_adam",
    "resource_apply_centered_rms_prop",
    "resource_apply_ftrl",
    "resource_apply_gradient_descent",
    "resource_apply_momentum",
    "resource_apply_proximal_adagrad",
    "resource_apply_proximal_gradient_descent",
    "resource_apply_rms_prop",
]


def _updated(
    type: str,
    variables: Sequence[Any],
    rule: Callable[..., Any],
    grad: Any,
    numbers: dict[str, Any],
    name: str | None,
) -> Any:
    """The first of ``variables`` after a step by a rule; the others are what the rule keeps, in its order."""
    for variable in variables:
        if not isinstance(variable, Variable):
            raise TypeError(
                f"{type}: {variable!r} is no variable, at {here()}. Give the variables themselves."
            )
    gradient = convert_to_tensor(grad, variables[0].dtype)
    given = {
        key: as_tensor(value) if isinstance(value, Variable) else value for key, value in numbers.items()
    }
    return update(type, variables, rule, [gradient], given, name).outputs[0]


def apply_gradient_descent(
    var: Any, alpha: Any, delta: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """``var - alpha * delta``."""
    return _updated("ApplyGradientDescent", [var], rules._descended, delta, {"lr": alpha}, name)


def apply_proximal_gradient_descent(
    var: Any, alpha: Any, l1: Any, l2: Any, delta: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """``apply_gradient_descent``, shrunk by penalties of absolute values and squares."""
    numbers = {"lr": alpha, "l1": l1, "l2": l2}
    return _updated("ApplyProximalGradientDescent", [var], rules._proximal, delta, numbers, name)


def apply_momentum(
    var: Any,
    accum: Any,
    lr: Any,
    grad: Any,
    momentum: Any,
    use_locking: bool = False,
    use_nesterov: bool = False,
    name: str | None = None,
) -> Any:
    """``accum = accum * momentum + grad; var -= lr * accum``."""
    rule = rules._with_nesterov if use_nesterov else rules._with_momentum
    return _updated("ApplyMomentum", [var, accum], rule, grad, {"lr": lr, "momentum": momentum}, name)


def _adagrad_of_fixed_squares(p: Any, v: Any, g: Any, lr: Any) -> list[Any]:
    return [ops.subtract(p, ops.multiply(ops.multiply(g, lr), ops.rsqrt(v))), ops.copied(v)]


def apply_adagrad(
    var: Any,
    accum: Any,
    lr: Any,
    grad: Any,
    use_locking: bool = False,
    update_slots: bool = True,
    name: str | None = None,
) -> Any:
    """``accum += grad ** 2`` with ``update_slots``; ``var -= lr * grad / sqrt(accum)``."""
    rule = rules._adagrad if update_slots else _adagrad_of_fixed_squares
    return _updated("ApplyAdagrad", [var, accum], rule, grad, {"lr": lr}, name)


def apply_proximal_adagrad(
    var: Any,
    accum: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    grad: Any,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """``apply_adagrad``, shrunk by penalties of absolute values and squares."""
    numbers = {"lr": lr, "l1": l1, "l2": l2}
    return _updated("ApplyProximalAdagrad", [var, accum], rules._proximal_adagrad, grad, numbers, name)


def apply_adadelta(
    var: Any,
    accum: Any,
    accum_update: Any,
    lr: Any,
    rho: Any,
    epsilon: Any,
    grad: Any,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """A step by the root mean squares of earlier updates and gradients."""
    numbers = {"lr": lr, "rho": rho, "epsilon": epsilon}
    return _updated("ApplyAdadelta", [var, accum, accum_update], rules._adadelta, grad, numbers, name)


def _adam(nesterov: bool) -> Callable[..., list[Any]]:
    def rule(p: Any, m: Any, v: Any, g: Any, beta1: Any, beta2: Any, **numbers: Any) -> list[Any]:
        mean, square = apply("adam_mean", g, m, beta1), apply("adam_square", g, v, beta2)
        moved = apply("adam_mean", g, mean, beta1) if nesterov else mean
        first, second = (ops.subtract(1.0, numbers[f"beta{k}_power"]) for k in (1, 2))
        rest = [numbers["lr"], first, second, numbers["epsilon"]]
        return [apply("adam_parameter_late_epsilon", p, moved, square, *rest), mean, square]

    return rule


_ADAM, _NESTEROV_ADAM = _adam(False), _adam(True)


def apply_adam(
    var: Any,
    m: Any,
    v: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
    use_locking: bool = False,
    use_nesterov: bool = False,
    name: str | None = None,
) -> Any:
    """A step of Adam; the powers of ``beta1`` and ``beta2`` are those before the step, and stay."""
    numbers = {"beta1_power": convert_to_tensor(beta1_power), "beta2_power": convert_to_tensor(beta2_power)}
    numbers |= {"lr": lr, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    rule = _NESTEROV_ADAM if use_nesterov else _ADAM
    return _updated("ApplyAdam", [var, m, v], rule, grad, numbers, name)


def apply_rms_prop(
    var: Any,
    ms: Any,
    mom: Any,
    lr: Any,
    rho: Any,
    momentum: Any,
    epsilon: Any,
    grad: Any,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """``ms += (grad ** 2 - ms) * (1 - rho); mom = mom * momentum + lr * grad / sqrt(ms + epsilon); var -= mom``."""
    numbers = {"lr": lr, "decay": rho, "momentum": momentum, "epsilon": epsilon}
    return _updated("ApplyRMSProp", [var, ms, mom], rules._RMSPROP, grad, numbers, name)


def apply_centered_rms_prop(
    var: Any,
    mg: Any,
    ms: Any,
    mom: Any,
    lr: Any,
    rho: Any,
    momentum: Any,
    epsilon: Any,
    grad: Any,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """``apply_rms_prop`` by the variance of gradients, with their mean ``mg``."""
    numbers = {"lr": lr, "decay": rho, "momentum": momentum, "epsilon": epsilon}
    return _updated("ApplyCenteredRMSProp", [var, ms, mg, mom], rules._CENTERED_RMSPROP, grad, numbers, name)


def apply_ftrl(
    var: Any,
    accum: Any,
    linear: Any,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    lr_power: Any,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """A step of the regularised leader."""
    numbers = {"lr": lr, "l1": l1, "l2": l2, "power": lr_power, "shrinkage": 0.0}
    return _updated("ApplyFtrl", [var, accum, linear], rules._ftrl, grad, numbers, name)


def _of_resource(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def applied(*args: Any, **kwargs: Any) -> Any:
        return operation_of(function(*args, **kwargs))

    applied.__name__ = applied.__qualname__ = f"resource_{function.__name__}"
    applied.__doc__ = f"The operation of ``{function.__name__}``."
    return applied


resource_apply_adadelta = _of_resource(apply_adadelta)
resource_apply_adagrad = _of_resource(apply_adagrad)
resource_apply_adam = _of_resource(apply_adam)
resource_apply_centered_rms_prop = _of_resource(apply_centered_rms_prop)
resource_apply_ftrl = _of_resource(apply_ftrl)
resource_apply_gradient_descent = _of_resource(apply_gradient_descent)
resource_apply_momentum = _of_resource(apply_momentum)
resource_apply_proximal_adagrad = _of_resource(apply_proximal_adagrad)
resource_apply_proximal_gradient_descent = _of_resource(apply_proximal_gradient_descent)
resource_apply_rms_prop = _of_resource(apply_rms_prop)
