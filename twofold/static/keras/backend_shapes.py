"""Functions of tensors, element by element and of their shapes, by Keras's names and defaults."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy

from twofold.static import image, math, nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.arrays.selection import where
from twofold.static.autodiff import clipping
from twofold.static.graph.docstrings import described
from twofold.static.keras.losses import crossentropy_of_bools, crossentropy_of_rows
from twofold.static.keras.losses import sparse_categorical_crossentropy as _of_classes
from twofold.static.keras.state import settings
from twofold.static.random import random_normal as _random_normal
from twofold.static.random import random_uniform as _random_uniform
from twofold.static.random import truncated_normal as _truncated_normal


def _reduced(name: str, more: str = "", first: Callable[[Any], Any] = lambda x: x) -> Callable[..., Any]:
    """A reduction of ``tf`` by Keras's name, of what ``first`` makes of a tensor."""
    reduce = getattr(math, f"reduce_{name}")

    def reduced(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return reduce(first(x), axis, keepdims)

    return described(reduced, name, f"``tf.reduce_{name}``{more}.")


def _as_floats(x: Any) -> Any:
    given = convert_to_tensor(x)
    return math.cast(given, settings.floatx) if given.dtype.kind == "b" else given


def _as_bools(x: Any) -> Any:
    return math.cast(x, "bool")


mean = _reduced("mean", ", of bools as floats", _as_floats)
sum, max, prod, min = map(_reduced, ("sum", "max", "prod", "min"))
any, all = (_reduced(name, ", of numbers whether they are not 0", _as_bools) for name in ("any", "all"))


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The variance, of all elements together or along ``axis``."""
    found = _as_floats(x)
    return math.reduce_mean(math.square(found - math.reduce_mean(found, axis, True)), axis, keepdims)


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The standard deviation, the square root of ``var``."""
    return math.sqrt(var(x, axis, keepdims))


def argmax(x: Any, axis: int = -1) -> Any:
    """The index of the largest element along ``axis``."""
    return math.argmax(x, axis)


def argmin(x: Any, axis: int = -1) -> Any:
    """The index of the smallest element along ``axis``."""
    return math.argmin(x, axis)


def cumsum(x: Any, axis: int = 0) -> Any:
    """``tf.cumsum``."""
    return math.cumsum(x, axis)


def cumprod(x: Any, axis: int = 0) -> Any:
    """``tf.cumprod``."""
    return math.cumprod(x, axis)


def clip(x: Any, min_value: Any, max_value: Any) -> Any:
    """Elements limited to a range, whose ends may be None; where the upper one is below the lower, that is both."""
    numbers = isinstance(min_value, (int, float)) and isinstance(max_value, (int, float))
    if numbers and max_value < min_value:
        max_value = min_value
    low = float("-inf") if min_value is None else min_value
    return clipping.clip_by_value(x, low, float("inf") if max_value is None else max_value)


def sqrt(x: Any) -> Any:
    """The square root; of negative numbers 0."""
    return math.sqrt(math.maximum(convert_to_tensor(x), 0.0))


abs, exp, log, square, pow, sign = math.abs, math.exp, math.log, math.square, math.pow, math.sign
equal, not_equal, less, less_equal = math.equal, math.not_equal, math.less, math.less_equal
greater, greater_equal = math.greater, math.greater_equal
maximum, minimum, sin, cos, round, cast = (
    math.maximum,
    math.minimum,
    math.sin,
    math.cos,
    math.round,
    math.cast,
)
sigmoid, tanh, softplus, softsign = nn.sigmoid, nn.tanh, nn.softplus, nn.softsign
stop_gradient, shape = math.stop_gradient, shape_ops.shape


def relu(x: Any, alpha: Any = 0.0, max_value: Any = None, threshold: Any = 0) -> Any:
    """``x`` from ``threshold`` to ``max_value``, and below it ``alpha * (x - threshold)``."""
    found = convert_to_tensor(x)
    slope = hasattr(alpha, "type_") or alpha != 0
    if max_value is None and not threshold:
        return nn.leaky_relu(found, alpha) if slope else nn.relu(found)
    kept = found * math.cast(found > threshold, found.dtype) if threshold else nn.relu(found)
    kept = kept if max_value is None else clipping.clip_by_value(kept, 0.0, max_value)
    return kept - alpha * nn.relu(threshold - found) if slope else kept


def elu(x: Any, alpha: Any = 1.0) -> Any:
    """``x``, below zero ``alpha * (exp(x) - 1)``."""
    made = nn.elu(x)
    plain = isinstance(alpha, (int, float)) and alpha == 1
    return made if plain else where(convert_to_tensor(x) > 0, made, alpha * made)


def hard_sigmoid(x: Any) -> Any:
    """``0.2 * x + 0.5`` between 0 and 1."""
    return clipping.clip_by_value(convert_to_tensor(x) * 0.2 + 0.5, 0.0, 1.0)


def softmax(x: Any, axis: int = -1) -> Any:
    """``tf.nn.softmax``."""
    return nn.softmax(x, axis)


def l2_normalize(x: Any, axis: Any = None) -> Any:
    """``tf.nn.l2_normalize``."""
    return nn.l2_normalize(x, axis)


def ndim(x: Any) -> int | None:
    """The number of axes."""
    return convert_to_tensor(x).get_shape().ndims


def dtype(x: Any) -> str:
    """The name of the dtype."""
    name: str = convert_to_tensor(x).dtype.name
    return name


def int_shape(x: Any) -> tuple[int | None, ...] | None:
    """The shape with None for unknown sizes; None where the number of axes is unknown."""
    found = convert_to_tensor(x).get_shape()
    return None if found.ndims is None else tuple(found.as_list())


def count_params(x: Any) -> int:
    """How many numbers a tensor of a known shape has."""
    return int(convert_to_tensor(x).get_shape().num_elements() or 0)


def dot(x: Any, y: Any) -> Any:
    """The product of matrices; of more axes, summed over the last one of ``x`` and the last but one of ``y``."""
    a, b = convert_to_tensor(x), convert_to_tensor(y)
    ranks = a.get_shape().ndims, b.get_shape().ndims
    if ranks[0] is not None and (ranks[0] > 2 or ranks[1] > 2):
        return math.tensordot(a, b, [[ranks[0] - 1], [builtins.max(ranks[1] - 2, 0)]])
    return math.matmul(a, b)


def _with_axes(value: Any, count: int) -> Any:
    for _ in range(count):
        value = shape_ops.expand_dims(value, -1)
    return value


def batch_dot(x: Any, y: Any, axes: Any = None) -> Any:
    """For each element of a batch, the products summed along ``axes``, an axis of each that counts the batch."""
    a, b = convert_to_tensor(x), convert_to_tensor(y)
    ranks = (len(a.get_shape()), len(b.get_shape()))
    one, two = (axes, axes) if isinstance(axes, int) else axes or (ranks[0] - 1, ranks[1] - 2)
    missing = ranks[0] - ranks[1]
    a, b = _with_axes(a, -missing), _with_axes(b, missing)
    if ranks == (2, 2):
        left = a if one == two else shape_ops.transpose(a, [1, 0])
        made = math.reduce_sum(left * b, one if one == two else two)
    else:
        last = builtins.max(ranks) - 1
        made = math.matmul(a, b, transpose_a=one != last, transpose_b=two == last)
    if missing:
        first = ranks[0] + ranks[1] - 3 if missing > 0 else ranks[0] - 1
        made = shape_ops.squeeze(made, list(range(first, first + builtins.abs(missing))))
    return shape_ops.expand_dims(made, 1) if len(made.get_shape()) == 1 else made


def expand_dims(x: Any, axis: int = -1) -> Any:
    """``tf.expand_dims``."""
    return shape_ops.expand_dims(x, axis)


def squeeze(x: Any, axis: int) -> Any:
    """``tf.squeeze`` of one axis."""
    return shape_ops.squeeze(x, [axis])


def concatenate(tensors: Any, axis: int = -1) -> Any:
    """``tf.concat``."""
    return shape_ops.concat(tensors, axis)


def stack(x: Any, axis: int = 0) -> Any:
    """``tf.stack``."""
    return shape_ops.stack(x, axis)


def reverse(x: Any, axes: Any) -> Any:
    """``tf.reverse`` along one axis or several."""
    return shape_ops.reverse(x, [axes] if isinstance(axes, int) else axes)


def reshape(x: Any, shape: Any) -> Any:
    """``tf.reshape``."""
    return shape_ops.reshape(x, shape)


def permute_dimensions(x: Any, pattern: Any) -> Any:
    """``tf.transpose``."""
    return shape_ops.transpose(x, perm=pattern)


def transpose(x: Any) -> Any:
    """``tf.transpose`` of all axes."""
    return shape_ops.transpose(x)


def gather(reference: Any, indices: Any) -> Any:
    """``tf.gather`` along the first axis."""
    return shape_ops.gather(reference, indices)


def tile(x: Any, n: Any) -> Any:
    """``tf.tile``; ``n`` may be a number for the only axis."""
    return shape_ops.tile(x, [n] if isinstance(n, int) else n)


def repeat(x: Any, n: int) -> Any:
    """Each row of a matrix ``n`` times, along a new second axis."""
    return shape_ops.tile(shape_ops.expand_dims(x, 1), [1, n, 1])


def repeat_elements(x: Any, rep: int, axis: int) -> Any:
    """Each element ``rep`` times along ``axis``."""
    return shape_ops.repeat(x, rep, axis)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = "int32") -> Any:
    """``tf.range``; empty for a negative end."""
    if stop is None:
        start, stop = 0, (0 if isinstance(start, int) and start < 0 else start)
    made = creation.range(start, stop, step)
    return made if dtype == made.dtype.name else math.cast(made, dtype)


def flatten(x: Any) -> Any:
    """All elements along one axis."""
    return shape_ops.reshape(x, [-1])


def batch_flatten(x: Any) -> Any:
    """Each element of a batch as a vector."""
    found = convert_to_tensor(x)
    sizes = found.get_shape().as_list()[1:]
    known = None if None in sizes else int(numpy.prod(sizes, dtype=int))
    return shape_ops.reshape(
        found, [-1, math.reduce_prod(shape_ops.shape(found)[1:]) if known is None else known]
    )


def zeros_like(x: Any, dtype: Any = None, name: str | None = None) -> Any:
    """``tf.zeros_like``."""
    return creation.zeros_like(x, dtype, name)


def ones_like(x: Any, dtype: Any = None, name: str | None = None) -> Any:
    """``tf.ones_like``."""
    return creation.ones_like(x, dtype, name)


def one_hot(indices: Any, num_classes: int) -> Any:
    """``tf.one_hot``."""
    return shape_ops.one_hot(indices, num_classes)


def cast_to_floatx(x: Any) -> Any:
    """A tensor or an array with the dtype of ``floatx()``."""
    return math.cast(x, settings.floatx) if hasattr(x, "type_") else numpy.asarray(x, settings.floatx)


def random_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Any:
    """``tf.random_normal``."""
    return _random_normal(shape, mean, stddev, dtype or settings.floatx, seed)


def random_uniform(
    shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Any:
    """``tf.random_uniform``."""
    return _random_uniform(shape, minval, maxval, dtype or settings.floatx, seed)


def random_binomial(shape: Any, p: float = 0.0, dtype: Any = None, seed: int | None = None) -> Any:
    """Ones with probability ``p``, else zeros."""
    kind = dtype or settings.floatx
    return math.cast(_random_uniform(shape, dtype=kind, seed=seed) <= p, kind)


def truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Any:
    """``tf.truncated_normal``."""
    return _truncated_normal(shape, mean, stddev, dtype or settings.floatx, seed)


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """The cross entropy along ``axis`` of probabilities (or logits) and class probabilities."""
    return crossentropy_of_rows(convert_to_tensor(target), convert_to_tensor(output), from_logits, axis)


def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Any:
    """The cross entropy along ``axis`` of probabilities (or logits) and class numbers."""
    return _of_classes(target, output, from_logits, axis)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """The cross entropy of each probability (or logit) and the probability that it should be."""
    return crossentropy_of_bools(convert_to_tensor(target), convert_to_tensor(output), from_logits)


def in_top_k(predictions: Any, targets: Any, k: int) -> Any:
    """``tf.nn.in_top_k``."""
    return nn.in_top_k(predictions, targets, k)


def first_to_last(x: Any, data_format: Any, back: bool = False) -> Any:
    """Images or volumes with the channels last, or ``back`` again, where ``data_format`` says that they come first."""
    if (data_format or settings.image_data_format) == "channels_last":
        return x
    if data_format not in (None, "channels_first"):
        raise ValueError(f"Unknown data_format: {data_format}. Use 'channels_last' or 'channels_first'.")
    axes = list(range(len(x.get_shape())))
    return shape_ops.transpose(x, [0, axes[-1], *axes[1:-1]] if back else [0, *axes[2:], 1])


def _padded(x: Any, widths: Any, data_format: Any) -> Any:
    found = first_to_last(convert_to_tensor(x), data_format)
    made = creation.pad(found, [[0, 0], *[list(pair) for pair in widths], [0, 0]])
    return first_to_last(made, data_format, True)


def temporal_padding(x: Any, padding: Any = (1, 1)) -> Any:
    """Zeros before and after the steps of sequences."""
    return _padded(x, [padding], "channels_last")


def spatial_2d_padding(x: Any, padding: Any = ((1, 1), (1, 1)), data_format: Any = None) -> Any:
    """Zeros around images."""
    return _padded(x, padding, data_format)


def spatial_3d_padding(x: Any, padding: Any = ((1, 1), (1, 1), (1, 1)), data_format: Any = None) -> Any:
    """Zeros around volumes."""
    return _padded(x, padding, data_format)


def resize_images(
    x: Any, height_factor: int, width_factor: int, data_format: Any, interpolation: str = "nearest"
) -> Any:
    """Larger images: each element repeated, or with "bilinear" interpolated between their centres."""
    if interpolation not in ("nearest", "bilinear"):
        raise ValueError(f"interpolation {interpolation!r} should be one of 'nearest' or 'bilinear'.")
    found = first_to_last(convert_to_tensor(x), data_format)
    if interpolation == "nearest":
        for axis, times in ((1, height_factor), (2, width_factor)):
            found = shape_ops.repeat(found, int(times), axis)
    else:
        sizes = found.get_shape().as_list()[1:3]
        dynamic = shape_ops.shape(found)
        wanted = [
            times * (dynamic[axis + 1] if size is None else size)
            for axis, (size, times) in enumerate(zip(sizes, (height_factor, width_factor)))
        ]
        found = image.resize_bilinear(found, wanted, half_pixel_centers=True)
    return first_to_last(found, data_format, True)


def resize_volumes(x: Any, depth_factor: int, height_factor: int, width_factor: int, data_format: Any) -> Any:
    """Larger volumes: each element repeated."""
    found = first_to_last(convert_to_tensor(x), data_format)
    for axis, times in enumerate((depth_factor, height_factor, width_factor), 1):
        found = shape_ops.repeat(found, int(times), axis)
    return first_to_last(found, data_format, True)
