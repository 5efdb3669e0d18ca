"""Gradients of convolutions with respect to their kernels, and transposed convolutions of any number of axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.ops.base import apply, ops
from twofold.signatures import signature
from twofold.static.api.op_functions import Number, operation, sizes
from twofold.static.graph.docstrings import described, example
from twofold.static.nn.layouts import channels_behind_batch, padded_sides, spatial_numbers, with_depth
from twofold.static.nn.pooling import LAYOUTS


def _kernel_gradient(
    by_channel: bool,
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
) -> Any:
    """The gradient with respect to kernels ``(*sizes, in, out)``, ``by_channel`` ``(*sizes, channels, of each)``."""
    wanted = sizes(filter_sizes)
    count, (channels, several) = len(wanted) - 2, wanted[-2:]
    x, y = (channels_behind_batch(value, count, data_format) for value in (input, out_backprop))
    steps, apart = (
        spatial_numbers(name, value, count, data_format)
        for name, value in (("strides", strides), ("dilations", dilations))
    )
    last = data_format in (None, LAYOUTS[count][0])
    edges = padded_sides(padding, x.shape[2:], wanted[:-2], steps, apart, last)
    ones, none = (1,) * (3 - count), (0,) * (3 - count)
    window = ((*ones, *steps), (*none, *[low for low, _ in edges]), (*ones, *apart))
    attrs = (*window, channels if by_channel else 1, (*ones, *wanted[:-2]))
    made = apply("convolution_weight", with_depth(x), with_depth(y), attrs=attrs)
    if by_channel:
        made = ops.reshape(made, (channels, several, *wanted[:-2]))
        return ops.permute(made, (*range(2, count + 2), 0, 1))
    made = ops.reshape(made, (several, channels, *wanted[:-2]))
    return ops.permute(made, (*range(2, count + 2), 1, 0))


def _gradient(
    type: str, own: str, parameters: str, text: str, *shown: str, by_channel: bool = False, unused: str = ""
) -> Callable[..., Any]:
    """``tf.nn``'s function of such gradients called ``own``, of a row of ``parameters``; ``shown`` is its example."""

    def body(
        input: Any,
        filter_sizes: Number,
        out_backprop: Any,
        strides: Number,
        padding: Number,
        data_format: Number,
        dilations: Number,
    ) -> Any:
        window = (strides, padding, data_format, dilations)
        return _kernel_gradient(by_channel, input, filter_sizes, out_backprop, *window)

    row = f"input, filter_sizes, out_backprop, strides, padding, {parameters}, name=None"
    return operation(type, row=signature(row), unused=unused)(described(body, own, text, *shown))


conv2d_backprop_filter = _gradient(
    "Conv2DBackpropFilter",
    "conv2d_backprop_filter",
    "use_cudnn_on_gpu=True, data_format='NHWC', dilations=(1, 1, 1, 1)",
    "The gradient of ``conv2d`` with respect to its kernels.\n\n``use_cudnn_on_gpu`` changes nothing.",
    "x, gradient = tf.ones([1, 3, 3, 1]), tf.ones([1, 2, 2, 1])",
    'tf.squeeze(tf.nn.conv2d_backprop_filter(x, [2, 2, 1, 1], gradient, [1, 1, 1, 1], "VALID"))',
    "[[4. 4.]\n [4. 4.]]",
    unused="use_cudnn_on_gpu",
)
conv3d_backprop_filter = conv3d_backprop_filter_v2 = _gradient(
    "Conv3DBackpropFilterV2",
    "conv3d_backprop_filter_v2",
    "data_format='NDHWC', dilations=(1, 1, 1, 1, 1)",
    "The gradient of ``conv3d`` with respect to its kernels.",
    "x, gradient = tf.ones([1, 2, 3, 3, 1]), tf.ones([1, 2, 2, 2, 1])",
    "sizes, strides = [1, 2, 2, 1, 1], [1, 1, 1, 1, 1]",
    'tf.squeeze(tf.nn.conv3d_backprop_filter_v2(x, sizes, gradient, strides, "VALID"))',
    "[[8. 8.]\n [8. 8.]]",
)
depthwise_conv2d_backprop_filter = _gradient(
    "DepthwiseConv2dNativeBackpropFilter",
    "depthwise_conv2d_backprop_filter",
    "data_format='NHWC', dilations=(1, 1, 1, 1)",
    "The gradient of ``depthwise_conv2d`` with respect to its kernels.",
    "x, gradient = tf.ones([1, 3, 3, 1]), tf.ones([1, 2, 2, 1])",
    "sizes, strides = [2, 2, 1, 1], [1, 1, 1, 1]",
    'tf.squeeze(tf.nn.depthwise_conv2d_backprop_filter(x, sizes, gradient, strides, "VALID"))',
    "[[4. 4.]\n [4. 4.]]",
    by_channel=True,
)


@operation("DepthwiseConv2dNativeBackpropInput")
@example(
    "filters, gradient = tf.ones([2, 2, 1, 1]), tf.ones([1, 1, 1, 1])",
    "sizes, strides = [1, 2, 2, 1], [1, 1, 1, 1]",
    'tf.squeeze(tf.nn.depthwise_conv2d_backprop_input(sizes, filters, gradient, strides, "VALID"))',
    "[[1. 1.]\n [1. 1.]]",
)
def depthwise_conv2d_backprop_input(
    input_sizes: Number,
    filter: Any,
    out_backprop: Any,
    strides: Number,
    padding: Number,
    data_format: Number = "NHWC",
    dilations: Number = (1, 1, 1, 1),
) -> Any:
    """The gradient of ``depthwise_conv2d`` with respect to its input."""
    wanted = sizes(input_sizes)
    height, width, channels, several = filter.shape
    last = data_format in (None, "NHWC")
    image = wanted[1:3] if last else wanted[2:]
    y = channels_behind_batch(out_backprop, 2, data_format)
    steps, apart = (
        spatial_numbers(name, value, 2, data_format)
        for name, value in (("strides", strides), ("dilations", dilations))
    )
    edges = padded_sides(padding, image, (height, width), steps, apart, last)
    w = ops.reshape(ops.permute(filter, (2, 3, 0, 1)), (channels * several, 1, 1, height, width))
    window = ((1, *steps), (0, *[low for low, _ in edges]), (1, *apart))
    attrs = (*window, channels, (1, *image))
    made = ops.squeeze(apply("convolution_transposed", with_depth(y), w, attrs=attrs), 2)
    return ops.permute(made, (0, 2, 3, 1)) if last else made


depthwise_conv2d_native_backprop_filter = depthwise_conv2d_backprop_filter
depthwise_conv2d_native_backprop_input = depthwise_conv2d_backprop_input
