"""Learning rates that follow the number of steps."""

from __future__ import annotations

import math as numbers_of_python
from collections.abc import Callable
from typing import Any

from twofold.dtypes import float32
from twofold.ops.base import ops
from twofold.static.define import as_tensor, convert_to_tensor, define
from twofold.static.docstrings import example


def _scheduled(type: str, body: Callable[..., Any], step: Any, name: str | None, **given: Any) -> Any:
    """``body(step as a float, ...)`` as an operation."""
    values = {key: as_tensor(value) for key, value in given.items()}
    made = define(type, _with_float_step, (convert_to_tensor(step),), {"body": body, **values}, name or type)
    return made.outputs[0]


def _with_float_step(step: Any, body: Callable[..., Any], **given: Any) -> Any:
    return body(ops.cast(step, float32), **given)


def _power(step: Any, steps: Any, staircase: bool) -> Any:
    found = ops.divide(step, steps)
    return ops.floor(found) if staircase else found


def _exponential(step: Any, rate: Any, steps: Any, factor: Any, staircase: bool) -> Any:
    return ops.multiply(ops.pow(factor, _power(step, steps, staircase)), rate)


@example("tf.train.exponential_decay(1.0, tf.constant(2), 1, 0.5)", "0.25")
def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """``learning_rate * decay_rate ** (global_step / decay_steps)``; with ``staircase`` the exponent is whole."""
    given = {"rate": learning_rate, "steps": decay_steps, "factor": decay_rate, "staircase": staircase}
    return _scheduled("ExponentialDecay", _exponential, global_step, name, **given)


def _natural(step: Any, rate: Any, steps: Any, factor: Any, staircase: bool) -> Any:
    return ops.multiply(ops.exp(ops.negative(ops.multiply(_power(step, steps, staircase), factor))), rate)


@example("tf.train.natural_exp_decay(1.0, tf.constant(2), 1, 0.5)", "0.36787945")
def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """``learning_rate * exp(-decay_rate * global_step / decay_steps)``."""
    given = {"rate": learning_rate, "steps": decay_steps, "factor": decay_rate, "staircase": staircase}
    return _scheduled("ExponentialDecay", _natural, global_step, name, **given)


def _inverse(step: Any, rate: Any, steps: Any, factor: Any, staircase: bool) -> Any:
    slower = ops.add(ops.multiply(_power(step, steps, staircase), factor), 1.0)
    return ops.multiply(ops.reciprocal(slower), rate)


@example("tf.train.inverse_time_decay(1.0, tf.constant(2), 1, 0.5)", "0.5")
def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """``learning_rate / (1 + decay_rate * global_step / decay_steps)``."""
    given = {"rate": learning_rate, "steps": decay_steps, "factor": decay_rate, "staircase": staircase}
    return _scheduled("InverseTimeDecay", _inverse, global_step, name, **given)


def _polynomial(step: Any, rate: Any, steps: Any, end: Any, power: Any, cycle: bool) -> Any:
    whole = steps
    if cycle:
        whole = ops.multiply(ops.maximum(ops.ceil(ops.divide(step, steps)), 1.0), steps)
        part = ops.divide(step, whole)
    else:
        part = ops.divide(ops.minimum(step, steps), steps)
    left = ops.pow(ops.subtract(1.0, part), power)
    return ops.add(ops.multiply(left, rate - end), end)


@example("tf.train.polynomial_decay(0.5, tf.constant(5), 10, 0.1)", "0.3")
def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Any:
    """From ``learning_rate`` to ``end_learning_rate`` within ``decay_steps``; ``cycle`` begins anew each time."""
    given = {"rate": learning_rate, "steps": decay_steps, "end": end_learning_rate, "power": power}
    return _scheduled("PolynomialDecay", _polynomial, global_step, name, cycle=cycle, **given)


@example("tf.train.piecewise_constant(tf.constant(5), [3, 9], [1.0, 0.5, 0.1])", "0.5")
def piecewise_constant(x: Any, boundaries: Any, values: Any, name: str | None = None) -> Any:
    """``values[k]`` up to and including ``boundaries[k]``, the last value after all; raises ValueError for counts."""
    if len(values) != len(boundaries) + 1:
        raise ValueError(
            f"piecewise_constant: {len(values)} values for {len(boundaries)} boundaries. Give one value more."
        )

    def body(step: Any, limits: Any, found: Any) -> Any:
        made: Any = found[-1]
        for limit, value in zip(reversed(limits), reversed(found[:-1])):
            made = ops.where(ops.less_equal(step, limit), value, made)
        return ops.cast(made, float32)

    given = {"limits": tuple(boundaries), "found": tuple(values)}
    made = define("PiecewiseConstant", body, (convert_to_tensor(x),), given, name or "PiecewiseConstant")
    return made.outputs[0]


piecewise_constant_decay = piecewise_constant


def _half_cosine(part: Any) -> Any:
    return ops.multiply(ops.add(ops.cos(ops.multiply(part, numbers_of_python.pi)), 1.0), 0.5)


def _cosine(step: Any, rate: Any, steps: Any, alpha: float) -> Any:
    part = _half_cosine(ops.divide(ops.minimum(step, steps), steps))
    return ops.multiply(ops.add(ops.multiply(part, 1 - alpha), alpha), rate)


@example("tf.train.cosine_decay(1.0, tf.constant(5), 10)", "0.49999997")
def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0, name: str | None = None
) -> Any:
    """Half a cosine from ``learning_rate`` down to ``alpha`` times it (Loshchilov, Hutter 2017)."""
    given = {"rate": learning_rate, "steps": decay_steps, "alpha": alpha}
    return _scheduled("CosineDecay", _cosine, global_step, name, **given)


def _restarted(step: Any, rate: Any, first: Any, longer: float, lower: float, alpha: float) -> Any:
    done = ops.divide(step, first)
    if longer == 1.0:
        cycle = ops.floor(done)
        part = ops.subtract(done, cycle)
    else:
        grown = ops.log(ops.subtract(1.0, ops.multiply(done, 1.0 - longer)))
        cycle = ops.floor(ops.divide(grown, numbers_of_python.log(longer)))
        before = ops.divide(ops.subtract(1.0, ops.pow(longer, cycle)), 1.0 - longer)
        part = ops.divide(ops.subtract(done, before), ops.pow(longer, cycle))
    level = ops.multiply(_half_cosine(part), ops.pow(lower, cycle))
    return ops.multiply(ops.add(ops.multiply(level, 1 - alpha), alpha), rate)


@example("tf.train.cosine_decay_restarts(1.0, tf.constant(10), 10)", "1.0")
def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: float = 0.0,
    name: str | None = None,
) -> Any:
    """``cosine_decay`` again and again, each ``t_mul`` times as long and ``m_mul`` times as high as the one before."""
    given = {"rate": learning_rate, "first": first_decay_steps, "longer": t_mul, "lower": m_mul}
    return _scheduled("SGDRDecay", _restarted, global_step, name, alpha=alpha, **given)


def _linear_cosine(step: Any, rate: Any, steps: Any, periods: float, alpha: float, beta: float) -> Any:
    part = ops.divide(ops.minimum(step, steps), steps)
    wave = _half_cosine(ops.multiply(part, 2.0 * periods))
    return ops.multiply(ops.add(ops.multiply(ops.add(ops.subtract(1.0, part), alpha), wave), beta), rate)


@example("tf.train.linear_cosine_decay(1.0, tf.constant(0), 10)", "1.001")
def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Any:
    """A line down to zero times a cosine of ``num_periods`` periods (Bello et al. 2017)."""
    given = {"rate": learning_rate, "steps": decay_steps, "periods": num_periods}
    return _scheduled("LinearCosineDecay", _linear_cosine, global_step, name, alpha=alpha, beta=beta, **given)
