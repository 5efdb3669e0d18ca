"""Learning rates that follow the number of steps."""

from __future__ import annotations

import math as numbers_of_python
from collections.abc import Callable
from typing import Any

from twofold.dtypes import float32
from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_tensor, convert_to_tensor, define
from twofold.static.api.signatures import defaults_of, with_parameters
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph_elements import importable
from twofold.static.random import random_normal


def _schedule(type: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An operation of ``type`` whose body has its parameters but for ``name``, and takes the step as a float."""

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        def rate(step: Any, **given: Any) -> Any:
            return body(global_step=ops.cast(step, float32), **given)

        rate.__qualname__ = f"rate of {body.__name__}"
        importable(rate)

        def schedule(global_step: Any, name: str | None, **given: Any) -> Any:
            values = {key: as_tensor(value) for key, value in given.items()}
            return define(type, rate, (convert_to_tensor(global_step),), values, name or type).outputs[0]

        return with_parameters(schedule, {**defaults_of(body), "name": None}, body)

    return decorate


def _power(step: Any, steps: Any, staircase: bool) -> Any:
    found = ops.divide(step, steps)
    return ops.floor(found) if staircase else found


@_schedule("ExponentialDecay")
@example("tf.train.exponential_decay(1.0, tf.constant(2), 1, 0.5)", "0.25")
def exponential_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Any:
    """``learning_rate * decay_rate ** (global_step / decay_steps)``; with ``staircase`` the exponent is whole."""
    return ops.multiply(ops.pow(decay_rate, _power(global_step, decay_steps, staircase)), learning_rate)


@_schedule("ExponentialDecay")
@example("tf.train.natural_exp_decay(1.0, tf.constant(2), 1, 0.5)", "0.36787945")
def natural_exp_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Any:
    """``learning_rate * exp(-decay_rate * global_step / decay_steps)``."""
    power = ops.multiply(_power(global_step, decay_steps, staircase), decay_rate)
    return ops.multiply(ops.exp(ops.negative(power)), learning_rate)


@_schedule("InverseTimeDecay")
@example("tf.train.inverse_time_decay(1.0, tf.constant(2), 1, 0.5)", "0.5")
def inverse_time_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Any:
    """``learning_rate / (1 + decay_rate * global_step / decay_steps)``."""
    slower = ops.add(ops.multiply(_power(global_step, decay_steps, staircase), decay_rate), 1.0)
    return ops.multiply(ops.reciprocal(slower), learning_rate)


@_schedule("PolynomialDecay")
@example("tf.train.polynomial_decay(0.5, tf.constant(5), 10, 0.1)", "0.3")
def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
) -> Any:
    """From ``learning_rate`` to ``end_learning_rate`` within ``decay_steps``; ``cycle`` begins anew each time."""
    if cycle:
        whole = ops.multiply(ops.maximum(ops.ceil(ops.divide(global_step, decay_steps)), 1.0), decay_steps)
        part = ops.divide(global_step, whole)
    else:
        part = ops.divide(ops.minimum(global_step, decay_steps), decay_steps)
    left = ops.pow(ops.subtract(1.0, part), power)
    return ops.add(ops.multiply(left, learning_rate - end_learning_rate), end_learning_rate)


@importable
def _piecewise(step: Any, limits: Any, found: Any, dtype: Any) -> Any:
    made: Any = found[-1]
    for limit, value in zip(reversed(limits), reversed(found[:-1])):
        made = ops.where(ops.less_equal(step, limit), value, made)
    return ops.cast(made, dtype)


@example("tf.train.piecewise_constant(tf.constant(5), [3, 9], [1.0, 0.5, 0.1])", "0.5")
def piecewise_constant(x: Any, boundaries: Any, values: Any, name: str | None = None) -> Any:
    """``values[k]`` up to and including ``boundaries[k]``, the last value after all, in the dtype of the values.

    Raises ValueError unless there is one value more than boundaries, and all values have the same dtype.
    """
    if len(values) != len(boundaries) + 1:
        raise ValueError(
            f"piecewise_constant: {len(values)} values for {len(boundaries)} boundaries. Give one value more."
        )
    dtypes = [convert_to_tensor(value).dtype for value in values]
    if any(dtype is not dtypes[0] for dtype in dtypes):
        shown = ", ".join(dtype.name for dtype in dtypes)
        raise ValueError(
            f"piecewise_constant: Values must have elements all with the same dtype, but got {shown}, at {here()}."
        )
    given = {"limits": tuple(boundaries), "found": tuple(values), "dtype": dtypes[0].name}
    made = define(
        "PiecewiseConstant", _piecewise, (convert_to_tensor(x),), given, name or "PiecewiseConstant"
    )
    return made.outputs[0]


piecewise_constant_decay = piecewise_constant


def _half_cosine(part: Any) -> Any:
    return ops.multiply(ops.add(ops.cos(ops.multiply(part, numbers_of_python.pi)), 1.0), 0.5)


@_schedule("CosineDecay")
@example("tf.train.cosine_decay(1.0, tf.constant(5), 10)", "0.49999997")
def cosine_decay(learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0) -> Any:
    """Half a cosine from ``learning_rate`` down to ``alpha`` times it (Loshchilov, Hutter 2017)."""
    part = _half_cosine(ops.divide(ops.minimum(global_step, decay_steps), decay_steps))
    return ops.multiply(ops.add(ops.multiply(part, 1 - alpha), alpha), learning_rate)


@_schedule("SGDRDecay")
@example("tf.train.cosine_decay_restarts(1.0, tf.constant(10), 10)", "1.0")
def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: float = 0.0,
) -> Any:
    """``cosine_decay`` again and again, each ``t_mul`` times as long and ``m_mul`` times as high as the one before."""
    done = ops.divide(global_step, first_decay_steps)
    if t_mul == 1.0:
        cycle = ops.floor(done)
        part = ops.subtract(done, cycle)
    else:
        grown = ops.log(ops.subtract(1.0, ops.multiply(done, 1.0 - t_mul)))
        cycle = ops.floor(ops.divide(grown, numbers_of_python.log(t_mul)))
        before = ops.divide(ops.subtract(1.0, ops.pow(t_mul, cycle)), 1.0 - t_mul)
        part = ops.divide(ops.subtract(done, before), ops.pow(t_mul, cycle))
    level = ops.multiply(_half_cosine(part), ops.pow(m_mul, cycle))
    return ops.multiply(ops.add(ops.multiply(level, 1 - alpha), alpha), learning_rate)


@_schedule("LinearCosineDecay")
@example("tf.train.linear_cosine_decay(1.0, tf.constant(0), 10)", "1.001")
def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
) -> Any:
    """A line down to zero times a cosine of ``num_periods`` periods (Bello et al. 2017)."""
    part = ops.divide(ops.minimum(global_step, decay_steps), decay_steps)
    return _cosine_of_line(learning_rate, part, ops.subtract(1.0, part), num_periods, alpha, beta)


def _cosine_of_line(
    learning_rate: Any, part: Any, line: Any, num_periods: float, alpha: float, beta: float
) -> Any:
    wave = _half_cosine(ops.multiply(part, 2.0 * num_periods))
    return ops.multiply(ops.add(ops.multiply(ops.add(line, alpha), wave), beta), learning_rate)


@_schedule("NoisyLinearCosineDecay")
def _noisy(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    noise: Any,
    initial_variance: float,
    variance_decay: float,
    num_periods: float,
    alpha: float,
    beta: float,
) -> Any:
    step = ops.minimum(global_step, decay_steps)
    part = ops.divide(step, decay_steps)
    variance = ops.divide(initial_variance, ops.pow(ops.add(step, 1.0), variance_decay))
    line = ops.add(ops.subtract(1.0, part), ops.multiply(noise, ops.sqrt(variance)))
    return _cosine_of_line(learning_rate, part, line, num_periods, alpha, beta)


@example("tf.train.noisy_linear_cosine_decay(1.0, tf.constant(0), 10, initial_variance=0.0)", "1.001")
def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: float = 1.0,
    variance_decay: float = 0.55,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Any:
    """``linear_cosine_decay`` with noise on the line, whose variance falls with the steps (Bello et al. 2017).

    The variance is ``initial_variance / (1 + global_step) ** variance_decay``; the noise is new in every run.
    """
    given = initial_variance, variance_decay, num_periods, alpha, beta
    return _noisy(learning_rate, global_step, decay_steps, random_normal([]), *given, name)
