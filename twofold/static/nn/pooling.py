"""Pooling and local normalisation under TensorFlow's names: channels last, padding by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

from twofold.dtypes import int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.ops.axes import given_once
from twofold.ops.base import apply, ops
from twofold.ops.convolution.pooling import need_planes
from twofold.ops.convolution.window_loops import Span
from twofold.ops.convolution.windows import INSIDE
from twofold.runtime.calls import failed
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import (
    Number,
    convert_to_tensor,
    counted,
    numbers,
    operation,
    refuse,
    whole,
)
from twofold.static.api.result_tuples import MaxPoolWithArgmax
from twofold.static.graph.docstrings import described, example
from twofold.static.graph.graph import describe
from twofold.static.math import cast

LAYOUTS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}
"""By the number of spatial axes the names of layouts: channels last, and behind the batch."""


def same_padding(size: int, window: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """What "SAME" adds before and behind an axis for ``ceil(size / stride)`` positions; the odd one is behind."""
    total = max((-(-size // stride) - 1) * stride + (window - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


_DATA = {1: "signals", 2: "images", 3: "volumes"}


def _spans(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], apart: Sequence[int], same: bool
) -> tuple[Span, ...]:
    """The windows of each axis: as many as there are strides (SAME), or only whole ones (VALID)."""
    spans = []
    for size, wide, step, rate in zip(sizes, kernel, strides, apart, strict=True):
        if same:
            low = same_padding(size, wide, step, rate)[0]
            spans.append(Span(-(-size // step), wide, step, rate, low))
        else:
            over = (wide - 1) * rate + 1
            if over > size:
                raise ArgumentError(
                    f"windows over {over} positions do not fit size {size}",
                    "Use padding='SAME' or a smaller ksize.",
                )
            spans.append(Span((size - over) // step + 1, wide, step, rate))
    return tuple(spans)


def _pooled(
    value: Any, kernel: Any, strides: Any, same: Any, first: Any, mean: bool, apart: Any = None
) -> Any:
    """Pooling of a tensor whose channels come last, or ``first``."""
    kernel, strides = list(numbers(kernel)), list(numbers(strides))
    rates = [1] * len(kernel) if apart is None else list(numbers(apart))
    count = len(kernel)
    if not numbers(first):
        value = ops.movedim(value, -1, 1)
    spans = _spans(need_planes(value, count), kernel, strides, rates, bool(numbers(same)))
    made = (
        apply("avg_pool", value, attrs=(spans, INSIDE)) if mean else apply("max_pool", value, attrs=(spans,))
    )
    return made if numbers(first) else ops.movedim(made, 1, -1)


@operation("MaxPool")
def _max_pool(value: Any, kernel: Number, strides: Number, same: Number, first: Number) -> Any:
    return _pooled(value, kernel, strides, same, first, False)


@operation("AvgPool")
def _avg_pool(value: Any, kernel: Number, strides: Number, same: Number, first: Number) -> Any:
    return _pooled(value, kernel, strides, same, first, True)


@operation("DilatedMaxPool")
def _dilated_max_pool(value: Any, kernel: Number, apart: Number, first: Number) -> Any:
    return _pooled(value, kernel, [1] * len(numbers(kernel)), False, first, False, apart)


@operation("DilatedAvgPool")
def _dilated_avg_pool(value: Any, kernel: Number, apart: Number, first: Number) -> Any:
    """The sums of slices: the kernels of means have no dilation."""
    begin, rates, total = (2 if numbers(first) else 1), list(numbers(apart)), value
    for axis, (wide, rate) in enumerate(zip(numbers(kernel), rates), begin):
        span = _spans([value.shape[axis]], [wide], [1], [rate], False)[0]
        parts = [ops.narrow(total, axis, k * rate, span.windows) for k in range(wide)]
        total = functools.reduce(ops.add, parts)
    return ops.divide(total, prod(numbers(kernel)))


def _same(name: str, padding: Any) -> bool:
    """Whether a padding is SAME.

    Raises ValueError unless it is that or VALID.
    """
    if str(padding).upper() not in ("SAME", "VALID"):
        raise ValueError(f"{name}: padding {padding!r}, at {here()}. Use 'SAME' or 'VALID'.")
    return str(padding).upper() == "SAME"


def channels_first(name: str, data_format: Any, count: int) -> bool:
    """Whether a format of ``count`` spatial axes has the channels before them; raises ValueError for no format."""
    last, first = LAYOUTS[count]
    if data_format not in (last, first, "channels_last", "channels_first"):
        raise ValueError(f"{name}: data_format {data_format!r}, at {here()}. Use {last!r} or {first!r}.")
    return data_format in (first, "channels_first")


def need_axes(name: str, value: Any, count: int) -> Any:
    """``value`` as a tensor; raises ShapeError unless it has ``count`` axes beside those of batch and channels."""
    tensor = convert_to_tensor(value)
    shape = tensor.type_.shape
    if shape != UNKNOWN_RANK and len(shape) != count + 2:
        what = f"{describe(tensor)} has {len(shape)} axes, at {here()}"
        fix = f"Give {count + 2}: batch, channels and {count} more; tf.expand_dims adds an axis."
        raise ShapeError(f"{name}: {what}", fix)
    return tensor


def _window(name: str, given: Any, count: int, first: bool, what: str) -> list[int]:
    """The sizes of the pooled axes from one number, one each, or one for each axis of the input."""
    each = [int(size) for size in given] if isinstance(given, Iterable) else [int(given)] * count
    each = each * count if len(each) == 1 else each
    if len(each) == count + 2:
        channel = 1 if first else count + 1
        if each[0] != 1 or each[channel] != 1:
            raise ValueError(f"{name}: {what} {given} over batch or channels, at {here()}. Use 1 there.")
        each = each[2:] if first else each[1:-1]
    if len(each) != count or min(each) < 1:
        raise ValueError(f"{name}: {what} {given!r}, at {here()}. Use {count + 2} numbers of at least 1.")
    return each


def _windows(name: str, first: bool, count: int, **given: Any) -> list[list[int]]:
    """The sizes, by the names of parameters, of the pooled axes."""
    return [_window(name, value, count, first, what) for what, value in given.items()]


def _text(pool: Callable[..., Any], count: int) -> str:
    if pool is _max_pool:
        return f"The largest element of each window of {_DATA[count]}."
    return f"The mean over each window of {_DATA[count]}, without padding."


def _function(own: str, pool: Callable[..., Any], given: str, result: str) -> Callable[..., Any]:
    """``tf.nn``'s function of pooling; ``given`` are arguments for its example."""
    base = own[: len("max_pool")]
    count = int(own[len("max_pool")] if len(own) > len(base) else 2)
    type = base.title().replace("_", "") + ("3D" if count == 3 else "")

    def made(
        value: Any = None,
        ksize: Any = None,
        strides: Any = None,
        padding: Any = None,
        data_format: str | None = LAYOUTS[count][0],
        name: str | None = None,
        input: Any = None,
    ) -> Any:
        first = channels_first(own, data_format or LAYOUTS[count][0], count)
        sizes = _windows(own, first, count, ksize=ksize, strides=strides)
        tensor = need_axes(own, given_once(value=value, input=input), count)
        return pool(tensor, *sizes, _same(own, padding), first, name=name or type)

    shown = f'tf.squeeze(tf.nn.{own}({given}, "VALID"))'
    return described(made, own, _text(pool, count), shown, result)


_ROWS = "[[[1.0], [3.0], [4.0], [2.0]]], 2, 2"
_PAIRS = "[[[[1.0], [3.0], [4.0], [2.0]]]], [1, 1, 2, 1], [1, 1, 2, 1]"
_VOLUMES = "[[[[[1.0], [3.0], [4.0], [2.0]]]]], [1, 1, 1, 2, 1], [1, 1, 1, 2, 1]"
max_pool = _function("max_pool", _max_pool, _PAIRS, "[3. 4.]")
avg_pool = _function("avg_pool", _avg_pool, _PAIRS, "[2. 3.]")
max_pool1d = _function("max_pool1d", _max_pool, _ROWS, "[3. 4.]")
avg_pool1d = _function("avg_pool1d", _avg_pool, _ROWS, "[2. 3.]")
max_pool2d = _function("max_pool2d", _max_pool, _PAIRS, "[3. 4.]")
avg_pool2d = _function("avg_pool2d", _avg_pool, _PAIRS, "[2. 3.]")
max_pool3d = _function("max_pool3d", _max_pool, _VOLUMES, "[3. 4.]")
avg_pool3d = _function("avg_pool3d", _avg_pool, _VOLUMES, "[2. 3.]")


def _layer(own: str, pool: Callable[..., Any], count: int, value: str, result: str) -> Callable[..., Any]:
    """``tf.layers``' function of pooling over windows of ``count`` axes."""

    def made(
        inputs: Any,
        pool_size: Any,
        strides: Any,  # None: those of the windows
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
    ) -> Any:
        first = channels_first(own, data_format, count)
        steps = pool_size if strides is None else strides
        sizes = _windows(own, first, count, pool_size=pool_size, strides=steps)
        return pool(need_axes(own, inputs, count), *sizes, _same(own, padding), first, name=name or own)

    shown = f"tf.squeeze(tf.layers.{own}({value}, 2, 2))"
    return described(made, own, _text(pool, count), shown, result)


_SIGNAL, _IMAGE = "[[[1.0], [3.0], [4.0], [2.0]]]", "[[[[1.0], [3.0]], [[4.0], [2.0]]]]"
_VOLUME = "[[[[[1.0], [3.0]], [[4.0], [2.0]]], [[[1.0], [3.0]], [[4.0], [2.0]]]]]"
max_pooling1d = _layer("max_pooling1d", _max_pool, 1, _SIGNAL, "[3. 4.]")
max_pooling2d = _layer("max_pooling2d", _max_pool, 2, _IMAGE, "4.0")
max_pooling3d = _layer("max_pooling3d", _max_pool, 3, _VOLUME, "4.0")
average_pooling1d = _layer("average_pooling1d", _avg_pool, 1, _SIGNAL, "[2. 3.]")
average_pooling2d = _layer("average_pooling2d", _avg_pool, 2, _IMAGE, "2.5")
average_pooling3d = _layer("average_pooling3d", _avg_pool, 3, _VOLUME, "2.5")


@operation("LRN", default="LRN")
@example("print(tf.nn.local_response_normalization(tf.zeros([1, 4, 4, 3])).shape)", "(1, 4, 4, 3)")
def local_response_normalization(
    input: Any, depth_radius: Number = 5, bias: Any = 1.0, alpha: Any = 1.0, beta: Any = 0.5
) -> Any:
    """``x / (bias + alpha * sum of squares in the 2*depth_radius + 1 channels around) ** beta``."""
    size = 2 * whole(depth_radius) + 1
    value = ops.movedim(input, -1, 1)
    made = apply("local_response_norm", value, ops.multiply(alpha, float(size)), beta, bias, attrs=(size,))
    return ops.movedim(made, 1, -1)


lrn = local_response_normalization


@example(
    'tf.squeeze(tf.nn.pool([[[1.0], [3.0], [4.0], [2.0]]], [2], "MAX", "VALID", dilation_rate=[2]))',
    "[4. 3.]",
)
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
    """The largest element ("MAX") or mean ("AVG") of windows over one, two or three spatial axes.

    ``dilation_rate``, or ``dilations``, is how far the elements of a window are apart, on each axis; above 1 it goes
    with padding "VALID" and strides of 1 alone, as in TensorFlow.
    """
    count = len(window_shape)
    pools = {"MAX": (_max_pool, _dilated_max_pool), "AVG": (_avg_pool, _dilated_avg_pool)}
    if pooling_type not in pools or not 1 <= count <= 3:
        what = f"{pooling_type!r} over {count} axes"
        raise failed("pool", ArgumentError(what, "Use 'MAX' or 'AVG' over one to three axes."))
    rate = given_once(dilation_rate=dilation_rate, dilations=dilations)
    first = channels_first("pool", data_format or LAYOUTS[count][0], count)
    size, steps, apart = _windows(
        "pool",
        first,
        count,
        window_shape=window_shape,
        strides=strides or [1] * count,
        dilation_rate=[1] * count if rate is None else rate,
    )
    same = _same("pool", padding)
    plain, dilated = pools[pooling_type]
    tensor, own = need_axes("pool", input, count), name or f"{pooling_type.lower()}_pool"
    if max(apart) == 1:
        return plain(tensor, size, steps, same, first, name=own)
    if same or max(steps) > 1:
        what = f"pool: dilation_rate {apart} with padding {padding!r} and strides {steps}, at {here()}"
        raise ValueError(f"{what}. Use 'VALID' and strides of 1.")
    return dilated(tensor, size, apart, first, name=own)


@operation("MaxPoolWithArgmax", several=list)
def _with_positions(input: Any, size: Number, steps: Number, same: Number) -> Any:
    (high, wide), (down, right) = (tuple(int(n) for n in numbers(value))[1:3] for value in (size, steps))
    value = ops.movedim(input, -1, 1)
    depth, (rows, columns) = value.shape[1], value.shape[2:]
    top, bottom = same_padding(rows, high, down) if same else (0, 0)
    left, more = same_padding(columns, wide, right) if same else (0, 0)
    lowest = -float("inf")
    padded = ops.pad(value, (left, more, top, bottom), value=lowest)
    found, positions = ops.max_pool2d(padded, (high, wide), (down, right), return_indices=True)
    row = ops.subtract(ops.floor_divide(positions, columns + left + more), top)
    column = ops.subtract(ops.remainder(positions, columns + left + more), left)
    channel = ops.reshape(counted(depth, value), (1, depth, 1, 1))
    flat = ops.add(ops.multiply(ops.add(ops.multiply(row, columns), column), depth), channel)
    return [ops.movedim(found, 1, -1), ops.cast(ops.movedim(flat, 1, -1), int64)]


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    Targmax: Any = None,
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> Any:
    """The largest elements of windows, and their indices ``(row * width + column) * channels + channel``.

    They are of ``output_dtype`` or ``Targmax``, int64 unless given.
    """
    refuse("max_pool_with_argmax", **{f"data_format={data_format!r}": data_format != "NHWC"})
    if include_batch_in_index or padding not in ("SAME", "VALID"):
        what = f"padding is {padding!r} and include_batch_in_index {include_batch_in_index}"
        raise failed(
            "max_pool_with_argmax",
            ArgumentError(what, "Use 'SAME' or 'VALID', and indices within the image."),
        )
    found, positions = _with_positions(convert_to_tensor(input), ksize, strides, padding == "SAME", name=name)
    kind = given_once(Targmax=Targmax, output_dtype=output_dtype)
    return MaxPoolWithArgmax(found, cast(positions, int64 if kind is None else kind))
