"""Normalisation by mean and variance, and these: of a tensor at once, in parts, and weighted."""

from __future__ import annotations

from typing import Any

from twofold.ops.axes import given_once
from twofold.ops.base import ops
from twofold.signatures import signature
from twofold.static import math
from twofold.static.api.op_functions import Number, axis_of, convert_to_tensor, full_of, operation
from twofold.static.arrays import creation, shape_ops
from twofold.static.graph.docstrings import example
from twofold.static.graph.scopes import name_scope


@operation(
    "Moments",
    several=tuple,
    count=2,
    default="moments",
    row=signature("x, axes, shift=None, name=None, keep_dims=None, keepdims=None"),
    older={"keep_dims": "keepdims"},
    unused="shift",
)
@example(
    "tf.nn.moments([[1.0, 2.0], [3.0, 6.0]], [0])",
    "(array([2., 4.], dtype=float32), array([1., 4.], dtype=float32))",
)
def moments(x: Any, axes: Number, keepdims: Number) -> Any:
    """Mean and variance over ``axes``; ``shift`` changes nothing, as in TensorFlow."""
    found = axis_of(axes)
    mean = ops.mean(x, found, True)
    variance = ops.mean(ops.square(ops.subtract(x, ops.stop_gradient(mean))), found, bool(keepdims))
    return [mean if keepdims else ops.mean(x, found, False), variance]


@operation("SufficientStatistics", several=list)
def _statistics(x: Any, axes: Number, shift: Any, keepdims: Number) -> Any:
    positions = axis_of(axes)
    positions = (positions,) if isinstance(positions, int) else positions
    count = 1
    for position in positions:
        count *= x.shape[position]
    away = x if shift is None else ops.subtract(x, shift)
    kept = bool(keepdims)
    return [
        full_of(count, (), x.dtype, x),
        ops.sum(away, positions, kept),
        ops.sum(ops.square(away), positions, kept),
    ]


@example(
    "count, total, squares, shift = tf.nn.sufficient_statistics([1.0, 3.0], [0])",
    "[count, total, squares]",
    "[np.float32(2.0), np.float32(4.0), np.float32(10.0)]",
)
def sufficient_statistics(
    x: Any,
    axes: Any,
    shift: Any = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Count, sum and sum of squares over ``axes``, of ``x - shift``, and the shift."""
    kept = bool(given_once(keepdims=keepdims, keep_dims=keep_dims))
    moved = None if shift is None else convert_to_tensor(shift)
    count, total, squares = _statistics(convert_to_tensor(x), axes, moved, kept, name=name)
    return count, total, squares, moved


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Any, Any]:
    """Mean and variance from what ``sufficient_statistics`` returns."""
    with name_scope(name, "normalize"):
        away = convert_to_tensor(mean_ss) / counts
        mean = away if shift is None else away + shift
        return mean, convert_to_tensor(variance_ss) / counts - math.square(away)


@example("tf.nn.weighted_moments([1.0, 3.0], [0], [1.0, 1.0])", "(np.float32(2.0), np.float32(1.0))")
def weighted_moments(
    x: Any,
    axes: Any,
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Any, Any]:
    """Weighted mean and variance over ``axes``."""
    kept = bool(given_once(keepdims=keepdims, keep_dims=keep_dims))
    with name_scope(name, "weighted_moments"):
        value = convert_to_tensor(x)
        weights = convert_to_tensor(frequency_weights, value.dtype) + creation.zeros_like(value)
        total = math.reduce_sum(weights, axes, True)
        mean = math.reduce_sum(weights * value, axes, True) / total
        variance = math.reduce_sum(weights * math.square(value - mean), axes, True) / total
        return (
            (mean, variance) if kept else (shape_ops.squeeze(mean, axes), shape_ops.squeeze(variance, axes))
        )


@operation("BatchNormalization", default="batchnorm")
@example("tf.nn.batch_normalization([1.0, 3.0], 2.0, 1.0, None, None, 0.0)", "[-1.  1.]")
def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any
) -> Any:
    """``scale * (x - mean) / sqrt(variance + epsilon) + offset``."""
    factor = ops.rsqrt(ops.add(variance, variance_epsilon))
    factor = factor if scale is None else ops.multiply(factor, scale)
    shift = ops.multiply(ops.negative(mean), factor)
    return ops.add(ops.multiply(x, factor), shift if offset is None else ops.add(offset, shift))


def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: Any = None,
    name: str | None = None,
    input: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Any:
    """``batch_normalization`` with ``gamma`` only where it is wanted.

    ``input``, ``mean`` and ``variance`` are later names of ``t``, ``m`` and ``v``.
    """
    given = given_once(t=t, input=input), given_once(m=m, mean=mean), given_once(v=v, variance=variance)
    return batch_normalization(
        *given, beta, gamma if scale_after_normalization else None, variance_epsilon, name
    )


@operation("L2Normalize", older={"dim": "axis"})
@example("tf.nn.l2_normalize([3.0, 4.0], 0)", "[0.6 0.8]")
def l2_normalize(x: Any, axis: Number = None, epsilon: Any = 1e-12) -> Any:
    """``x`` over its norm along ``axis``."""
    total = ops.sum(ops.square(x), axis_of(axis), True)
    return ops.multiply(x, ops.rsqrt(ops.maximum(total, epsilon)))
