"""Neural-network functions that programs use less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.dtypes import int64
from twofold.errors import ArgumentError
from twofold.ops.base import ops
from twofold.static import array, filled, math, nn
from twofold.static.control import name_scope
from twofold.static.convolution import conv1d, conv2d, conv3d, depthwise_conv2d
from twofold.static.define import Number, axis_of, convert_to_tensor, counted, full_of, numbers, operation
from twofold.static.flow import failed
from twofold.static.normalization_layers import fused_batch_norm as fused_batch_norm
from twofold.static.pooling import (
    average_pooling1d,
    average_pooling2d,
    average_pooling3d,
    max_pooling1d,
    max_pooling2d,
    max_pooling3d,
)
from twofold.static.segments import unsorted_segment_mean, unsorted_segment_sqrt_n, unsorted_segment_sum
from twofold.static.sparse import SparseTensor

depthwise_conv2d_native = depthwise_conv2d


@operation("ZeroFraction")
def zero_fraction(value: Any) -> Any:
    """The share of elements that are zero.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.nn.zero_fraction([0.0, 1.0, 0.0, 3.0])))
    0.5
    """
    return ops.mean(ops.cast(ops.equal(value, 0), "float32"))


@operation("QuantizedReluX")
def quantized_relu_x(features: Any, max_value: Any) -> Any:
    """``features`` limited to 0 ... ``max_value``."""
    return ops.minimum(ops.relu(features), max_value)


@operation("LogPoissonLoss")
def _poisson(targets: Any, log_input: Any, full: Number) -> Any:
    loss = ops.subtract(ops.exp(log_input), ops.multiply(log_input, targets))
    if not full:
        return loss
    near = ops.add(
        ops.subtract(ops.multiply(targets, ops.log(targets)), targets),
        ops.multiply(ops.log(ops.multiply(targets, 6.283185307179586)), 0.5),
    )
    inside = ops.logical_and(ops.greater_equal(targets, 0.0), ops.less_equal(targets, 1.0))
    return ops.add(loss, ops.where(inside, 0.0, near))


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Any:
    """``exp(log_input) - targets * log_input``; in full with Stirling's approximation of ``log(targets!)``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.nn.log_poisson_loss([1.0, 2.0], [0.0, 0.0])))
    [1. 1.]
    """
    given = convert_to_tensor(log_input)
    return _poisson(convert_to_tensor(targets, given.dtype), given, compute_full_loss, name=name)


@operation("SufficientStatistics", several=True)
def _statistics(x: Any, axes: Number, shift: Any, keepdims: Number) -> Any:
    places = axis_of(axes)
    places = (places,) if isinstance(places, int) else places
    count = 1
    for place in places:
        count *= x.shape[place]
    away = x if shift is None else ops.subtract(x, shift)
    kept = bool(keepdims)
    return [
        full_of(count, (), x.dtype, x),
        ops.sum(away, places, kept),
        ops.sum(ops.square(away), places, kept),
    ]


def sufficient_statistics(
    x: Any,
    axes: Any,
    shift: Any = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Count, sum and sum of squares over ``axes``, of ``x - shift``, and the shift.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     count, total, squares, shift = tf.nn.sufficient_statistics([1.0, 3.0], [0])
    ...     print(session.run([count, total, squares]))
    [np.float32(2.0), np.float32(4.0), np.float32(10.0)]
    """
    kept = bool(keep_dims if keepdims is None else keepdims)
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


def weighted_moments(
    x: Any,
    axes: Any,
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Any, Any]:
    """Weighted mean and variance over ``axes``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.nn.weighted_moments([1.0, 3.0], [0], [1.0, 1.0])))
    (np.float32(2.0), np.float32(1.0))
    """
    kept = bool(keep_dims if keepdims is None else keepdims)
    with name_scope(name, "weighted_moments"):
        value = convert_to_tensor(x)
        weights = convert_to_tensor(frequency_weights, value.dtype) + filled.zeros_like(value)
        total = math.reduce_sum(weights, axes, True)
        mean = math.reduce_sum(weights * value, axes, True) / total
        variance = math.reduce_sum(weights * math.square(value - mean), axes, True) / total
        return (mean, variance) if kept else (array.squeeze(mean, axes), array.squeeze(variance, axes))


def batch_norm_with_global_normalization(
    t: Any,
    m: Any,
    v: Any,
    beta: Any,
    gamma: Any,
    variance_epsilon: float,
    scale_after_normalization: bool,
    name: str | None = None,
) -> Any:
    """``batch_normalization`` with ``gamma`` only where it is wanted."""
    return nn.batch_normalization(
        t, m, v, beta, gamma if scale_after_normalization else None, variance_epsilon, name
    )


def convolution(
    input: Any,
    filter: Any,
    padding: str,
    strides: Sequence[int] | None = None,
    dilation_rate: Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
) -> Any:
    """The convolution of as many spatial axes as ``filter`` has, one to three."""
    value, kernel = convert_to_tensor(input), convert_to_tensor(filter)
    count = kernel.type_.ndim - 2
    functions: dict[int, Any] = {1: conv1d, 2: conv2d, 3: conv3d}
    if count not in functions:
        what = f"a filter of {kernel.type_.ndim} axes"
        raise failed("convolution", ArgumentError(what, "Give one to three spatial axes."))
    layout = data_format or {1: "NWC", 2: "NHWC", 3: "NDHWC"}[count]
    steps, apart = [list(given or [1] * count) for given in (strides, dilation_rate)]
    options = {"data_format": layout, "dilations": apart, "name": name}
    return functions[count](value, kernel, steps, padding, **options)


def pool(
    input: Any,
    window_shape: Sequence[int],
    pooling_type: str,
    padding: str,
    dilation_rate: Any = None,
    strides: Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Any:
    """The largest element ("MAX") or mean ("AVG") of windows over one, two or three spatial axes."""
    count = len(window_shape)
    rate = dilation_rate if dilations is None else dilations
    apart = [1] * count if rate is None else list(rate)
    functions: dict[tuple[str, int], Any] = {
        ("MAX", 1): max_pooling1d,
        ("AVG", 1): average_pooling1d,
        ("MAX", 2): max_pooling2d,
        ("AVG", 2): average_pooling2d,
        ("MAX", 3): max_pooling3d,
        ("AVG", 3): average_pooling3d,
    }
    if (pooling_type, count) not in functions or any(rate != 1 for rate in apart):
        what = f"{pooling_type!r} over {count} axes with dilations {apart}"
        raise failed(
            "pool", ArgumentError(what, "Use 'MAX' or 'AVG' over one to three axes, without dilation.")
        )
    return functions[pooling_type, count](
        convert_to_tensor(input),
        list(window_shape),
        list(strides or [1] * count),
        padding,
        data_format or {1: "NWC", 2: "NHWC", 3: "NDHWC"}[count],
        name=name,
    )


@operation("MaxPoolWithArgmax", several=True)
def _with_places(input: Any, size: Number, steps: Number, same: Number) -> Any:
    (high, wide), (down, right) = (tuple(int(n) for n in numbers(value))[1:3] for value in (size, steps))
    value = ops.movedim(input, -1, 1)
    depth, (rows, columns) = value.shape[1], value.shape[2:]
    top, bottom = _around(rows, high, down) if same else (0, 0)
    left, more = _around(columns, wide, right) if same else (0, 0)
    lowest = -float("inf")
    padded = ops.pad(value, (left, more, top, bottom), value=lowest)
    found, places = ops.max_pool2d(padded, (high, wide), (down, right), return_indices=True)
    row = ops.subtract(ops.floor_divide(places, columns + left + more), top)
    column = ops.subtract(ops.remainder(places, columns + left + more), left)
    channel = ops.reshape(counted(depth, value), (1, depth, 1, 1))
    flat = ops.add(ops.multiply(ops.add(ops.multiply(row, columns), column), depth), channel)
    return [ops.movedim(found, 1, -1), ops.cast(ops.movedim(flat, 1, -1), int64)]


def _around(size: int, window: int, step: int) -> tuple[int, int]:
    total = max((-(-size // step) - 1) * step + window - size, 0)
    return total // 2, total - total // 2


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    Targmax: Any = int64,
    name: str | None = None,
    include_batch_in_index: bool = False,
) -> tuple[Any, Any]:
    """The largest elements of windows, and their places ``(row * width + column) * channels + channel``."""
    if include_batch_in_index or padding not in ("SAME", "VALID"):
        what = f"padding is {padding!r} and include_batch_in_index {include_batch_in_index}"
        raise failed(
            "max_pool_with_argmax", ArgumentError(what, "Use 'SAME' or 'VALID', and places in the image.")
        )
    found, places = _with_places(convert_to_tensor(input), ksize, strides, padding == "SAME", name=name)
    return found, math.cast(places, Targmax)


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any = None,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: Any = None,
) -> Any:
    """For each row of ``sp_ids``, the rows of ``params`` that it names, combined: "sum", "mean" or "sqrtn".

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     table = tf.constant([[1.0], [2.0], [4.0]])
    ...     ids = tf.SparseTensor([[0, 0], [0, 1]], [0, 2], [1, 2])
    ...     print(session.run(tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")))
    [[5.]]
    """
    if combiner not in (None, "sum", "mean", "sqrtn"):
        what = f"combiner is {combiner!r}"
        raise failed("embedding_lookup_sparse", ArgumentError(what, "Use 'sum', 'mean' or 'sqrtn'."))
    ids = SparseTensor.from_value(sp_ids)
    with name_scope(name, "embedding_lookup_sparse"):
        rows = nn.embedding_lookup(params, ids.values, partition_strategy, max_norm=max_norm)
        places, count = ids.indices[:, 0], ids.dense_shape[0]
        if sp_weights is None:
            combine = {"sum": unsorted_segment_sum, "sqrtn": unsorted_segment_sqrt_n}
            return combine.get(combiner or "mean", unsorted_segment_mean)(rows, places, count)
        weights = math.cast(SparseTensor.from_value(sp_weights).values, rows.dtype)
        total = unsorted_segment_sum(rows * array.expand_dims(weights, -1), places, count)
        if combiner == "sum":
            return total
        amounts = math.square(weights) if combiner == "sqrtn" else weights
        over = unsorted_segment_sum(amounts, places, count)
        divisor = array.expand_dims(math.sqrt(over) if combiner == "sqrtn" else over, -1)
        return math.divide_no_nan(total, divisor)
