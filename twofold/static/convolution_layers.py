"""Convolution layers that make their variables, as ``tf.layers`` has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.errors import GraphError
from twofold.runtime.tracing import here
from twofold.static import initializers, nn
from twofold.static.array import shape as shape_of
from twofold.static.define import convert_to_tensor
from twofold.static.docstrings import declared as _declared
from twofold.static.graph import describe
from twofold.static.layer_options import with_loss
from twofold.static.pooling import channels_first
from twofold.static.scopes import get_variable, variable_scope

_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def _each(value: Any, count: int) -> list[int]:
    return [int(item) for item in value] if isinstance(value, (list, tuple)) else [int(value)] * count


class _Layer:
    """The variables and the last steps of one layer; ``options`` are the arguments of its function."""

    def __init__(self, kind: str, inputs: Any, count: int, options: dict[str, Any]) -> None:
        self.tensor, self.count, self.options = convert_to_tensor(inputs), count, options
        self.last = not channels_first(kind, options["data_format"], count)
        self.data_format = (_LAST if self.last else _FIRST)[count]
        shape = self.tensor.type_.shape
        self.channels = shape[-1 if self.last else 1] if len(shape) == count + 2 else -1
        if self.channels < 0:
            raise GraphError(
                f"{kind}: the channels of {describe(self.tensor)} are unknown, at {here()}",
                f"Give the placeholder {count + 2} axes and the number of channels.",
            )

    def variable(self, name: str, shape: list[int], kind: str = "kernel") -> Any:
        """A variable of the layer with the options of its kind."""
        options = self.options
        first = options.get(f"{kind}_initializer")
        if first is None and kind == "bias":
            first = initializers.zeros_initializer()
        regularizer, trainable = options.get(f"{kind}_regularizer"), options.get("trainable", True)
        constraint = options.get(f"{kind}_constraint")
        return get_variable(
            name, shape, self.tensor.dtype, first, regularizer, trainable, constraint=constraint
        )

    def finish(self, made: Any, filters: int) -> Any:
        """Bias and activation."""
        if self.options.get("use_bias", True):
            bias = self.variable("bias", [filters], "bias")
            made = nn.bias_add(made, bias, self.data_format, name="BiasAdd")
        activation = self.options.get("activation")
        made = made if activation is None else activation(made)
        return with_loss(made, self.options.get("activity_regularizer"))


def _plain(count: int, convolve: Callable[..., Any]) -> Callable[..., Any]:
    def layer(
        inputs: Any,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        reuse: Any = None,
    ) -> Any:
        options = {
            "data_format": data_format,
            "activation": activation,
            "use_bias": use_bias,
            "kernel_initializer": kernel_initializer,
            "bias_initializer": bias_initializer,
            "kernel_regularizer": kernel_regularizer,
            "bias_regularizer": bias_regularizer,
            "activity_regularizer": activity_regularizer,
            "kernel_constraint": kernel_constraint,
            "bias_constraint": bias_constraint,
            "trainable": trainable,
        }
        made = _Layer(f"conv{count}d", inputs, count, options)
        with variable_scope(name, f"conv{count}d", reuse=reuse):
            kernel = made.variable("kernel", [*_each(kernel_size, count), made.channels, int(filters)])
            settings = {"data_format": made.data_format, "dilations": _each(dilation_rate, count)}
            step = _each(strides, count)
            result = convolve(made.tensor, kernel, step, padding.upper(), name=f"Conv{count}D", **settings)
            return made.finish(result, int(filters))

    layer.__name__ = layer.__qualname__ = f"conv{count}d"
    layer.__doc__ = _declared(
        f"Convolution over {count} axes with variables ``kernel`` and ``bias`` of its own.\n\n"
        "``padding`` is 'valid' or 'same'; initializers and regularizers go by name, such as\n"
        "``kernel_initializer``. Raises GraphError where the number of channels is unknown.",
        layer.__name__,
    )
    return layer


conv1d = _plain(1, nn.conv1d)
conv2d = _plain(2, nn.conv2d)
conv3d = _plain(3, nn.conv3d)


def conv2d_transpose(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: Any = None,
    reuse: Any = None,
) -> Any:
    """Transposed convolution with variables ``kernel`` (height, width, out, in) and ``bias`` of its own.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(tf.layers.conv2d_transpose(tf.zeros([2, 4, 4, 3]), 8, 2, strides=2).shape)
    (2, 8, 8, 8)
    """
    options = {
        "data_format": data_format,
        "activation": activation,
        "use_bias": use_bias,
        "kernel_initializer": kernel_initializer,
        "bias_initializer": bias_initializer,
        "kernel_regularizer": kernel_regularizer,
        "bias_regularizer": bias_regularizer,
        "activity_regularizer": activity_regularizer,
        "kernel_constraint": kernel_constraint,
        "bias_constraint": bias_constraint,
        "trainable": trainable,
    }
    made = _Layer("conv2d_transpose", inputs, 2, options)
    size, step = _each(kernel_size, 2), _each(strides, 2)
    with variable_scope(name, "conv2d_transpose", reuse=reuse):
        kernel = made.variable("kernel", [*size, int(filters), made.channels])
        extra = [0 if padding.lower() == "same" else max(k - s, 0) for k, s in zip(size, step, strict=True)]
        wanted = _wanted(made, step, extra, int(filters))
        result = nn.conv2d_transpose(
            made.tensor, kernel, wanted, step, padding.upper(), made.data_format, name="conv2d_transpose"
        )
        return made.finish(result, int(filters))


def _wanted(made: _Layer, strides: list[int], extra: list[int], filters: int) -> Any:
    """The shape of the result, whose batch may only be known when the graph is fed."""
    shape = made.tensor.type_.shape
    first = 1 if made.last else 2
    spatial = [n * s + e for n, s, e in zip(shape[first : first + 2], strides, extra, strict=True)]
    if min(shape[first : first + 2]) < 0:
        raise GraphError(
            f"conv2d_transpose: height and width of {describe(made.tensor)} are unknown, at {here()}",
            "Give the placeholder those sizes.",
        )
    batch = shape[0] if shape[0] >= 0 else shape_of(made.tensor)[0]
    return [batch, *spatial, filters] if made.last else [batch, filters, *spatial]


def separable_conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = (1, 1),
    depth_multiplier: int = 1,
    activation: Any = None,
    use_bias: bool = True,
    depthwise_initializer: Any = None,
    pointwise_initializer: Any = None,
    bias_initializer: Any = None,
    depthwise_regularizer: Any = None,
    pointwise_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    depthwise_constraint: Any = None,
    pointwise_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: Any = None,
    reuse: Any = None,
) -> Any:
    """Each channel convolved on its own, then mixed: variables ``depthwise_kernel``, ``pointwise_kernel``, ``bias``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(tf.layers.separable_conv2d(tf.zeros([2, 4, 4, 3]), 8, 3).shape)
    (2, 2, 2, 8)
    """
    options = {
        "data_format": data_format,
        "activation": activation,
        "use_bias": use_bias,
        "depthwise_initializer": depthwise_initializer,
        "pointwise_initializer": pointwise_initializer,
        "bias_initializer": bias_initializer,
        "depthwise_regularizer": depthwise_regularizer,
        "pointwise_regularizer": pointwise_regularizer,
        "bias_regularizer": bias_regularizer,
        "activity_regularizer": activity_regularizer,
        "depthwise_constraint": depthwise_constraint,
        "pointwise_constraint": pointwise_constraint,
        "bias_constraint": bias_constraint,
        "trainable": trainable,
    }
    made = _Layer("separable_conv2d", inputs, 2, options)
    with variable_scope(name, "separable_conv2d", reuse=reuse):
        apart = made.variable(
            "depthwise_kernel", [*_each(kernel_size, 2), made.channels, int(depth_multiplier)], "depthwise"
        )
        mix = made.variable(
            "pointwise_kernel", [1, 1, made.channels * int(depth_multiplier), int(filters)], "pointwise"
        )
        result = nn.separable_conv2d(
            made.tensor, apart, mix, _each(strides, 2), padding.upper(), _each(dilation_rate, 2), None, made.data_format
        )  # fmt: skip
        return made.finish(result, int(filters))
