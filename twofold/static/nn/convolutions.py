"""Convolutions under TensorFlow's names: images ``(batch, *sizes, channels)``, kernels ``(*sizes, in, out)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.errors import ArgumentError, ShapeError
from twofold.ops.axes import given_once
from twofold.ops.base import apply, ops
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import Number, convert_to_tensor, operation, sizes
from twofold.static.graph.docstrings import example
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
    if len(value.shape) != axes:
        raise ShapeError(f"{what} with {len(value.shape)} axes", f"Give {axes}.")


def _kernels(w: Any) -> Any:
    """``(*sizes, in, out)`` as ``(out, in, *sizes)``."""
    count = len(w.shape) - 2
    return ops.permute(w, (count + 1, count, *range(count)))


def _plain(
    count: int, input: Any, filter: Any, strides: Any, padding: Any, data_format: Any, dilations: Any
) -> Any:
    _need(input, "an input", count + 2)
    _need(filter, "a filter", count + 2)
    return _convolved(input, _kernels(filter), strides, padding, data_format, dilations, 1)


@operation("Conv1D")
def _conv1d(
    input: Any, filter: Any, strides: Number, padding: Number, data_format: Number, dilations: Number
) -> Any:
    return _plain(1, input, filter, strides, padding, data_format, dilations)


@operation("Conv2D", older={"filters": "filter"})
@example(
    'print(tf.nn.conv2d(tf.zeros([1, 5, 5, 3]), tf.zeros([3, 3, 3, 8]), [1, 2, 2, 1], "SAME").shape)',
    "(1, 3, 3, 8)",
)
def conv2d(
    input: Any,
    filter: Any = None,
    strides: Number = None,
    padding: Number = None,
    use_cudnn_on_gpu: Number = True,
    data_format: Number = "NHWC",
    dilations: Number = (1, 1, 1, 1),
) -> Any:
    """The convolution of ``(batch, height, width, channels)`` by ``(height, width, channels, filters)``.

    ``use_cudnn_on_gpu`` changes nothing.
    """
    return _plain(2, input, filter, strides, padding, data_format, dilations)


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: Any = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Any:
    """The convolution of ``(batch, width, channels)`` by ``(width, channels, filters)``.

    ``use_cudnn_on_gpu`` changes nothing.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     y = tf.nn.conv1d([[[1.0], [2.0], [3.0]]], [[[1.0]], [[10.0]]], 1, "VALID")
    ...     print(session.run(tf.squeeze(y)))
    [21. 32.]
    """
    image = given_once(value=value, input=input)
    return _conv1d(image, filters, stride, padding, data_format, dilations, name=name or "conv1d")


@operation("Conv3D", older={"filters": "filter"})
@example(
    "x, filters = tf.zeros([1, 4, 4, 4, 2]), tf.zeros([2, 2, 2, 2, 5])",
    'print(tf.nn.conv3d(x, filters, [1, 1, 1, 1, 1], "VALID").shape)',
    "(1, 3, 3, 3, 5)",
)
def conv3d(
    input: Any,
    filter: Any = None,
    strides: Number = None,
    padding: Number = None,
    data_format: Number = "NDHWC",
    dilations: Number = (1, 1, 1, 1, 1),
) -> Any:
    """The convolution of ``(batch, depth, height, width, channels)``."""
    return _plain(3, input, filter, strides, padding, data_format, dilations)


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


@operation("Conv2DBackpropInput")
def _transposed(
    value: Any,
    filter: Any,
    output_shape: Number,
    strides: Number,
    padding: Number,
    data_format: Number,
    dilations: Number,
) -> Any:
    return _unconvolved(2, value, filter, output_shape, strides, padding, data_format, dilations)


@operation("Conv2DBackpropInput", default="conv1d_transpose")
def _transposed_line(
    input: Any,
    filters: Any,
    output_shape: Number,
    strides: Number,
    padding: Number,
    data_format: Number,
    dilations: Number,
) -> Any:
    return _unconvolved(1, input, filters, output_shape, strides, padding, data_format, dilations)


@example(
    "x, filters = tf.ones([1, 2, 1]), tf.constant([[[1.0]], [[10.0]]])",
    "tf.squeeze(tf.nn.conv1d_transpose(x, filters, [1, 4, 1], 2))",
    "[ 1. 10.  1. 10.]",
)
def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The gradient of ``conv1d`` as an operation; ``filters`` are ``(width, out, in)``.

    Raises ShapeError where no convolution of ``output_shape`` has the shape of ``input``.
    """
    return _transposed_line(input, filters, output_shape, strides, padding, data_format, dilations, name=name)


@operation(
    "Conv3DBackpropInputV2",
    default="conv3d_transpose",
    name_at=6,
    older={"input": "value", "filters": "filter"},
)
@example(
    "x, filters = tf.zeros([1, 2, 2, 2, 3]), tf.zeros([2, 2, 2, 5, 3])",
    "print(tf.nn.conv3d_transpose(x, filters, [1, 4, 4, 4, 5], [1, 2, 2, 2, 1]).shape)",
    "(1, 4, 4, 4, 5)",
)
def conv3d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Number = None,
    strides: Number = None,
    padding: Number = "SAME",
    data_format: Number = "NDHWC",
    dilations: Number = None,
) -> Any:
    """The gradient of ``conv3d`` as an operation; ``filter`` is ``(depth, height, width, out, in)``.

    Raises ShapeError where no convolution of ``output_shape`` has the shape of ``value``.
    """
    return _unconvolved(3, value, filter, output_shape, strides, padding, data_format, dilations)


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


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Any:
    """The gradient of ``conv2d`` as an operation; ``filter`` is ``(height, width, out, in)``.

    Raises ShapeError where no convolution of ``output_shape`` has the shape of ``value``.

    >>> import twofold.static as tf
    >>> x, filters = tf.zeros([1, 2, 2, 3]), tf.zeros([2, 2, 5, 3])
    >>> tf.nn.conv2d_transpose(x, filters, [1, 4, 4, 5], [1, 2, 2, 1]).shape.as_list()
    [1, 4, 4, 5]
    """
    image, kernel = given_once(value=value, input=input), given_once(filter=filter, filters=filters)
    made = name or "conv2d_transpose"
    return _transposed(image, kernel, output_shape, strides, padding, data_format, dilations, name=made)


@example(
    "filters, gradient = tf.zeros([2, 2, 3, 5]), tf.zeros([1, 2, 2, 5])",
    'print(tf.nn.conv2d_backprop_input([1, 4, 4, 3], filters, gradient, [1, 2, 2, 1], "SAME").shape)',
    "(1, 4, 4, 3)",
)
def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
    filters: Any = None,
) -> Any:
    """The gradient of ``conv2d`` with respect to its input; ``filters`` is a later name of ``filter``.

    ``use_cudnn_on_gpu`` changes nothing.
    """
    made, kernel = name or "Conv2DBackpropInput", given_once(filter=filter, filters=filters)
    return _transposed(out_backprop, kernel, input_sizes, strides, padding, data_format, dilations, name=made)


@operation("DepthwiseConv2dNative")
def _depthwise(
    input: Any, filter: Any, strides: Number, padding: Number, rate: Number, data_format: Number
) -> Any:
    _need(input, "an input", 4)
    _need(filter, "a filter", 4)
    height, width, channels, several = filter.shape
    w = ops.reshape(ops.permute(filter, (2, 3, 0, 1)), (channels * several, 1, height, width))
    return _convolved(input, w, strides, padding, data_format, rate, channels)


@example(
    "x, filters = tf.zeros([1, 4, 4, 2]), tf.zeros([2, 2, 2, 3])",
    'print(tf.nn.depthwise_conv2d(x, filters, [1, 1, 1, 1], "SAME").shape)',
    "(1, 4, 4, 6)",
)
def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Any:
    """Each channel convolved on its own by ``(height, width, channels, filters of a channel)``."""
    apart = given_once(rate=rate, dilations=dilations)
    return _depthwise(input, filter, strides, padding, apart, data_format, name=name or "depthwise")


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


def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Any:
    """``depthwise_conv2d`` with its parameters in another order.

    >>> import twofold.static as tf
    >>> filters = tf.zeros([2, 2, 2, 3])
    >>> tf.nn.depthwise_conv2d_native(tf.zeros([1, 4, 4, 2]), filters, [1, 1, 1, 1], "SAME", "NHWC").shape.as_list()
    [1, 4, 4, 6]
    """
    made = name or "DepthwiseConv2dNative"
    return _depthwise(input, filter, strides, padding, dilations, data_format, name=made)


def convolution(
    input: Any,
    filter: Any = None,
    padding: str = "VALID",
    strides: Sequence[int] | None = None,
    dilation_rate: Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Any:
    """The convolution of as many spatial axes as ``filter`` has, one to three.

    ``filters`` and ``dilations`` are later names of ``filter`` and ``dilation_rate``.
    """
    value = convert_to_tensor(input)
    kernel = convert_to_tensor(given_once(filter=filter, filters=filters))
    dilation_rate = given_once(dilation_rate=dilation_rate, dilations=dilations)
    count = kernel.type_.ndim - 2
    functions: dict[int, Any] = {1: conv1d, 2: conv2d, 3: conv3d}
    if count not in functions:
        what = f"a filter of {kernel.type_.ndim} axes"
        raise failed("convolution", ArgumentError(what, "Give one to three spatial axes."))
    layout = data_format or LAYOUTS[count][0]
    steps, apart = [list(given or [1] * count) for given in (strides, dilation_rate)]
    options = {"data_format": layout, "dilations": apart, "name": name}
    return functions[count](value, kernel, steps, padding, **options)


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
    kernels = convert_to_tensor(given_once(filters=filters, filter=filter))
    count = kernels.type_.ndim - 2
    functions: dict[int, Any] = {
        1: conv1d_transpose,
        2: conv2d_transpose,
        3: conv3d_transpose,
    }
    if count not in functions:
        what = f"filters of {kernels.type_.ndim} axes"
        raise failed("conv_transpose", ArgumentError(what, "Give one to three spatial axes."))
    options: dict[str, Any] = {"data_format": data_format or LAYOUTS[count][0], "dilations": dilations}
    options["name"] = name or "conv_transpose"
    return functions[count](input, kernels, output_shape, strides, padding, **options)
