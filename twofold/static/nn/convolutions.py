"""Convolutions under TensorFlow's names: images ``(batch, *sizes, channels)``, kernels ``(*sizes, in, out)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twofold.errors import ArgumentError, ShapeError
from twofold.ops.axes import given_once
from twofold.ops.base import apply, ops
from twofold.runtime.calls import failed
from twofold.signatures import signature
from twofold.static.api.op_functions import Number, convert_to_tensor, operation, sizes
from twofold.static.graph.docstrings import described, example
from twofold.static.nn.layouts import (
    are_channels_last,
    channels_back,
    channels_behind_batch,
    padded_sides,
    spatial_numbers,
    with_depth,
)
from twofold.static.nn.pooling import LAYOUTS


def _convolved(
    x: Any, w: Any, strides: Any, padding: Any, data_format: str | None, dilations: Any, groups: int
) -> Any:
    """The convolution of an image by kernels ``(out, in, *sizes)``."""
    count = len(w.shape) - 2
    moved = channels_behind_batch(x, count, data_format)
    steps = spatial_numbers("strides", strides, count, data_format)
    apart = spatial_numbers("dilations", dilations, count, data_format)
    last = are_channels_last(data_format, count)
    edges = padded_sides(padding, moved.shape[2:], w.shape[2:], steps, apart, last)
    made = apply(f"conv{count}d", moved, w, attrs=(steps, edges, apart, groups))
    return channels_back(made, count, data_format)


def _need(value: Any, what: str, axes: int) -> None:
    if value is None:
        raise ArgumentError(f"{what} is missing", "Give it.")
    if len(value.shape) != axes:
        raise ShapeError(f"{what} with {len(value.shape)} axes", f"Give {axes}.")


def _kernels(w: Any) -> Any:
    """``(*sizes, in, out)`` as ``(out, in, *sizes)``."""
    count = len(w.shape) - 2
    return ops.permute(w, (count + 1, count, *range(count)))


_LINES = {"NHWC": "NWC", "NCHW": "NCW"}
"""Names of images' layouts that ``conv1d`` takes as those of lines."""


def _convolution(
    count: int,
    parameters: str,
    text: str,
    *shown: str,
    older: Mapping[str, str],
    unused: str = "",
    default: str | None = None,
) -> Callable[..., Any]:
    """``tf.nn``'s convolution over ``count`` axes, of a row of ``parameters``; ``shown`` is its example."""

    def body(
        input: Any, filter: Any, strides: Number, padding: Number, data_format: Number, dilations: Number
    ) -> Any:
        _need(input, "an input", count + 2)
        _need(filter, "a filter", count + 2)
        layout = _LINES.get(data_format, data_format) if count == 1 else data_format
        return _convolved(input, _kernels(filter), strides, padding, layout, dilations, 1)

    made = described(body, f"conv{count}d", text, *shown)
    return operation(f"Conv{count}D", default=default, older=older, row=signature(parameters), unused=unused)(
        made
    )


conv1d: Callable[..., Any] = _convolution(
    1,
    "value=None, filters=None, stride=None, padding=None, use_cudnn_on_gpu=None, data_format=None, name=None, "
    "input=None, dilations=None",
    "The convolution of ``(batch, width, channels)`` by ``(width, channels, filters)``.\n\n"
    "``use_cudnn_on_gpu`` changes nothing.",
    'tf.squeeze(tf.nn.conv1d([[[1.0], [2.0], [3.0]]], [[[1.0]], [[10.0]]], 1, "VALID"))',
    "[21. 32.]",
    older={"value": "input", "filters": "filter", "stride": "strides"},
    unused="use_cudnn_on_gpu",
    default="conv1d",
)
conv2d: Callable[..., Any] = _convolution(
    2,
    "input, filter=None, strides=None, padding=None, use_cudnn_on_gpu=True, data_format='NHWC', "
    "dilations=(1, 1, 1, 1), name=None, filters=None",
    "The convolution of ``(batch, height, width, channels)`` by ``(height, width, channels, filters)``.\n\n"
    "``use_cudnn_on_gpu`` changes nothing.",
    'print(tf.nn.conv2d(tf.zeros([1, 5, 5, 3]), tf.zeros([3, 3, 3, 8]), [1, 2, 2, 1], "SAME").shape)',
    "(1, 3, 3, 8)",
    older={"filters": "filter"},
    unused="use_cudnn_on_gpu",
)
conv3d: Callable[..., Any] = _convolution(
    3,
    "input, filter=None, strides=None, padding=None, data_format='NDHWC', dilations=(1, 1, 1, 1, 1), name=None, "
    "filters=None",
    "The convolution of ``(batch, depth, height, width, channels)``.",
    "x, filters = tf.zeros([1, 4, 4, 4, 2]), tf.zeros([2, 2, 2, 2, 5])",
    'print(tf.nn.conv3d(x, filters, [1, 1, 1, 1, 1], "VALID").shape)',
    "(1, 3, 3, 3, 5)",
    older={"filters": "filter"},
)


@example(
    'print(tf.nn.atrous_conv2d(tf.zeros([1, 5, 5, 2]), tf.zeros([2, 2, 2, 3]), 2, "VALID").shape)',
    "(1, 3, 3, 3)",
)
def atrous_conv2d(value: Any, filters: Any, rate: int, padding: Any, name: str | None = None) -> Any:
    """``conv2d`` with the elements of the filters ``rate`` apart."""
    return conv2d(value, filters, 1, padding, dilations=rate, name=name)


def _unconvolved(
    rank: int,
    value: Any,
    filter: Any,
    output_shape: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
) -> Any:
    """The input of ``output_shape`` whose convolution over ``rank`` axes has the gradient ``value``, transposed."""
    _need(value, "an input", rank + 2)
    _need(filter, "a filter", rank + 2)
    if output_shape is None:
        raise ArgumentError("output_shape is missing", "Give it.")
    wanted = sizes(output_shape)
    last = are_channels_last(data_format, rank)
    image, channels = (wanted[1:-1], wanted[-1]) if last else (wanted[2:], wanted[1])
    y, w = channels_behind_batch(value, rank, data_format), _kernels(filter)
    steps, apart = (
        spatial_numbers(n, v, rank, data_format) for n, v in (("strides", strides), ("dilations", dilations))
    )
    edges = padded_sides(padding, image, w.shape[2:], steps, apart, last)
    counts = tuple(
        (size + sum(edge) - (positions - 1) * dilation - 1) // stride + 1
        for size, edge, positions, dilation, stride in zip(
            image, edges, w.shape[2:], apart, steps, strict=True
        )
    )
    if (y.shape[0], w.shape[0], *counts) != (wanted[0], *y.shape[1:]) or w.shape[1] != channels:
        fix = "Give the shape of an image whose convolution has the shape of the input."
        raise ShapeError(f"output_shape {list(wanted)} for filters of {tuple(filter.shape)}", fix)
    ones, none = (1,) * (3 - rank), (0,) * (3 - rank)
    lows = [low for low, _ in edges]
    attrs = ((*ones, *steps), (*none, *lows), (*ones, *apart), 1, (*ones, *image))
    made = apply("convolution_transposed", with_depth(y), with_depth(w), attrs=attrs)
    return channels_back(ops.reshape(made, (*made.shape[:2], *image)), rank, data_format)


def _transposed(
    count: int,
    type: str,
    own: str,
    parameters: str,
    text: str,
    *shown: str,
    older: Mapping[str, str],
    unused: str = "",
    default: str | None = None,
) -> Callable[..., Any]:
    """``tf.nn``'s transposed convolution over ``count`` axes called ``own``; see ``_convolution``."""

    def body(
        value: Any,
        filter: Any,
        output_shape: Number,
        strides: Number,
        padding: Number,
        data_format: Number,
        dilations: Number,
    ) -> Any:
        return _unconvolved(count, value, filter, output_shape, strides, padding, data_format, dilations)

    made = described(body, own, text, *shown)
    return operation(type, default=default, older=older, row=signature(parameters), unused=unused)(made)


_LATER = {"input": "value", "filters": "filter"}
_REFUSED = "Raises ShapeError where no convolution of ``output_shape`` has the shape of"
conv1d_transpose: Callable[..., Any] = _transposed(
    1,
    "Conv2DBackpropInput",
    "conv1d_transpose",
    "input, filters, output_shape, strides, padding='SAME', data_format='NWC', dilations=None, name=None",
    "The gradient of ``conv1d`` as an operation; ``filters`` are ``(width, out, in)``.\n\n"
    f"{_REFUSED} ``input``.",
    "x, filters = tf.ones([1, 2, 1]), tf.constant([[[1.0]], [[10.0]]])",
    "tf.squeeze(tf.nn.conv1d_transpose(x, filters, [1, 4, 1], 2))",
    "[ 1. 10.  1. 10.]",
    older=_LATER,
    default="conv1d_transpose",
)
conv2d_transpose: Callable[..., Any] = _transposed(
    2,
    "Conv2DBackpropInput",
    "conv2d_transpose",
    "value=None, filter=None, output_shape=None, strides=None, padding='SAME', data_format='NHWC', name=None, "
    "input=None, filters=None, dilations=None",
    "The gradient of ``conv2d`` as an operation; ``filter`` is ``(height, width, out, in)``.\n\n"
    f"{_REFUSED} ``value``.",
    "x, filters = tf.zeros([1, 2, 2, 3]), tf.zeros([2, 2, 5, 3])",
    "print(tf.nn.conv2d_transpose(x, filters, [1, 4, 4, 5], [1, 2, 2, 1]).shape)",
    "(1, 4, 4, 5)",
    older=_LATER,
    default="conv2d_transpose",
)
conv3d_transpose: Callable[..., Any] = _transposed(
    3,
    "Conv3DBackpropInputV2",
    "conv3d_transpose",
    "value=None, filter=None, output_shape=None, strides=None, padding='SAME', data_format='NDHWC', name=None, "
    "dilations=None, input=None, filters=None",
    "The gradient of ``conv3d`` as an operation; ``filter`` is ``(depth, height, width, out, in)``.\n\n"
    f"{_REFUSED} ``value``.",
    "x, filters = tf.zeros([1, 2, 2, 2, 3]), tf.zeros([2, 2, 2, 5, 3])",
    "print(tf.nn.conv3d_transpose(x, filters, [1, 4, 4, 4, 5], [1, 2, 2, 2, 1]).shape)",
    "(1, 4, 4, 4, 5)",
    older=_LATER,
    default="conv3d_transpose",
)
conv2d_backprop_input = _transposed(
    2,
    "Conv2DBackpropInput",
    "conv2d_backprop_input",
    "input_sizes, filter=None, out_backprop=None, strides=None, padding=None, use_cudnn_on_gpu=True, "
    "data_format='NHWC', dilations=None, name=None, filters=None",
    "The gradient of ``conv2d`` with respect to its input; ``filters`` is a later name of ``filter``.\n\n"
    "``use_cudnn_on_gpu`` changes nothing.",
    "filters, gradient = tf.zeros([2, 2, 3, 5]), tf.zeros([1, 2, 2, 5])",
    'print(tf.nn.conv2d_backprop_input([1, 4, 4, 3], filters, gradient, [1, 2, 2, 1], "SAME").shape)',
    "(1, 4, 4, 3)",
    older={"input_sizes": "output_shape", "out_backprop": "value", "filters": "filter"},
    unused="use_cudnn_on_gpu",
)


@example(
    "x, filters = tf.zeros([1, 4, 4, 3]), tf.zeros([2, 2, 5, 3])",
    'print(tf.nn.atrous_conv2d_transpose(x, filters, [1, 4, 4, 5], 2, "SAME").shape)',
    "(1, 4, 4, 5)",
)
def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: Any, name: str | None = None
) -> Any:
    """The gradient of ``atrous_conv2d`` as an operation; ``filters`` are ``(height, width, out, in)``."""
    return conv2d_transpose(value, filters, output_shape, 1, padding, name=name, dilations=rate)


def _by_channel(own: str, default: str | None, parameters: str, text: str, *shown: str) -> Callable[..., Any]:
    """``tf.nn``'s function called ``own`` that convolves each channel on its own; see ``_convolution``."""

    def body(
        input: Any, filter: Any, strides: Number, padding: Number, rate: Number, data_format: Number
    ) -> Any:
        _need(input, "an input", 4)
        _need(filter, "a filter", 4)
        height, width, channels, several = filter.shape
        w = ops.reshape(ops.permute(filter, (2, 3, 0, 1)), (channels * several, 1, height, width))
        return _convolved(input, w, strides, padding, data_format, rate, channels)

    made, older = described(body, own, text, *shown), {"dilations": "rate"}
    return operation("DepthwiseConv2dNative", default=default, older=older, row=signature(parameters))(made)


depthwise_conv2d = _by_channel(
    "depthwise_conv2d",
    "depthwise",
    "input, filter, strides, padding, rate=None, name=None, data_format=None, dilations=None",
    "Each channel convolved on its own by ``(height, width, channels, filters of a channel)``.",
    "x, filters = tf.zeros([1, 4, 4, 2]), tf.zeros([2, 2, 2, 3])",
    'print(tf.nn.depthwise_conv2d(x, filters, [1, 1, 1, 1], "SAME").shape)',
    "(1, 4, 4, 6)",
)
depthwise_conv2d_native = _by_channel(
    "depthwise_conv2d_native",
    None,
    "input, filter, strides, padding, data_format='NHWC', dilations=(1, 1, 1, 1), name=None",
    "``depthwise_conv2d`` with its parameters in another order.",
    "x, filters = tf.zeros([1, 4, 4, 2]), tf.zeros([2, 2, 2, 3])",
    'print(tf.nn.depthwise_conv2d_native(x, filters, [1, 1, 1, 1], "SAME", "NHWC").shape)',
    "(1, 4, 4, 6)",
)


@example(
    "x, depthwise, pointwise = tf.zeros([1, 4, 4, 2]), tf.zeros([2, 2, 2, 3]), tf.zeros([1, 1, 6, 5])",
    'print(tf.nn.separable_conv2d(x, depthwise, pointwise, [1, 1, 1, 1], "SAME").shape)',
    "(1, 4, 4, 5)",
)
def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Any:
    """``depthwise_conv2d``, then ``conv2d`` with a kernel of one element."""
    apart = depthwise_conv2d(input, depthwise_filter, strides, padding, rate, None, data_format, dilations)
    return conv2d(
        apart, pointwise_filter, 1, "VALID", True, data_format, None, name=name or "separable_conv2d"
    )


def convolution(
    input: Any,
    filter: Any = None,
    padding: str = "VALID",
    strides: int | Sequence[int] | None = None,
    dilation_rate: int | Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Any:
    """The convolution of as many spatial axes as ``filter`` has, one to three.

    ``filters`` and ``dilations`` are later names of ``filter`` and ``dilation_rate``.
    """
    value, kernel = convert_to_tensor(input), given_once(filter=filter, filters=filters)
    kernel, count = _kernel_over("convolution", "a filter", kernel)
    apart = given_once(dilation_rate=dilation_rate, dilations=dilations)
    steps = 1 if strides is None else strides
    options = {
        "data_format": data_format or LAYOUTS[count][0],
        "dilations": apart,
        "name": name or "convolution",
    }
    return (conv1d, conv2d, conv3d)[count - 1](value, kernel, steps, padding, **options)


def conv_transpose(
    input: Any,
    filters: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
    filter: Any = None,
) -> Any:
    """The transposed convolution of as many axes as ``output_shape`` has, one to three.

    >>> import twofold.static as tf
    >>> x, filters = tf.zeros([1, 4, 3]), tf.zeros([2, 5, 3])
    >>> tf.nn.conv_transpose(x, filters, [1, 8, 5], 2).shape.as_list()
    [1, 8, 5]
    """
    kernel = given_once(filters=filters, filter=filter)
    kernel, count = _kernel_over("conv_transpose", "filters", kernel)
    convolve = (conv1d_transpose, conv2d_transpose, conv3d_transpose)[count - 1]
    options = {"data_format": data_format or LAYOUTS[count][0], "dilations": dilations}
    return convolve(input, kernel, output_shape, strides, padding, name=name or "conv_transpose", **options)


def _kernel_over(name: str, what: str, value: Any) -> tuple[Any, int]:
    """Filters as a tensor, and over how many axes they go; raises ArgumentError unless these are one to three."""
    kernel = convert_to_tensor(value)
    count = kernel.type_.ndim - 2
    if not 1 <= count <= 3:
        fix = "Give one to three spatial axes."
        raise failed(name, ArgumentError(f"{what} of {kernel.type_.ndim} axes", fix))
    return kernel, count
