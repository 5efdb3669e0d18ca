"""Layers as functions that make their variables: ``tf.layers``."""

from __future__ import annotations

from typing import Any

from twofold.errors import GraphError
from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static import array, initializers, nn
from twofold.static.control import cond
from twofold.static.convolution_layers import conv1d as conv1d
from twofold.static.convolution_layers import conv2d as conv2d
from twofold.static.convolution_layers import conv2d_transpose as conv2d_transpose
from twofold.static.convolution_layers import conv3d as conv3d
from twofold.static.convolution_layers import separable_conv2d as separable_conv2d
from twofold.static.define import Number, convert_to_tensor, operation
from twofold.static.graph import describe as _describe
from twofold.static.layer_objects import Layer as Layer
from twofold.static.layer_objects import layer_of
from twofold.static.layer_options import with_loss
from twofold.static.normalization_layers import batch_normalization as batch_normalization
from twofold.static.pooling import average_pooling1d as average_pooling1d
from twofold.static.pooling import average_pooling2d as average_pooling2d
from twofold.static.pooling import average_pooling3d as average_pooling3d
from twofold.static.pooling import max_pooling1d as max_pooling1d
from twofold.static.pooling import max_pooling2d as max_pooling2d
from twofold.static.pooling import max_pooling3d as max_pooling3d
from twofold.static.scopes import get_variable, variable_scope


def dense(
    inputs: Any,
    units: int,
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
    """``activation(inputs @ kernel + bias)`` on the last axis, with variables ``kernel`` and ``bias`` of its own.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(tf.layers.dense(tf.zeros([2, 3]), 5, activation=tf.nn.relu).shape)
    (2, 5)
    """
    tensor = convert_to_tensor(inputs)
    width = tensor.type_.shape[-1] if tensor.type_.ndim else -1
    if width < 0:
        raise GraphError(
            f"dense: the last axis of {_describe(tensor)} is unknown, at {here()}",
            "Give the placeholder that size.",
        )
    with variable_scope(name, "dense", reuse=reuse):
        kernel = get_variable(
            "kernel",
            [width, int(units)],
            tensor.dtype,
            kernel_initializer,
            kernel_regularizer,
            trainable,
            constraint=kernel_constraint,
        )
        made = _product(tensor, kernel, name="MatMul")
        if use_bias:
            first = bias_initializer or initializers.zeros_initializer()
            bias = get_variable(
                "bias",
                [int(units)],
                tensor.dtype,
                first,
                bias_regularizer,
                trainable,
                constraint=bias_constraint,
            )
            made = nn.bias_add(made, bias, name="BiasAdd")
        return with_loss(made if activation is None else activation(made), activity_regularizer)


@operation("MatMul")
def _product(a: Any, b: Any) -> Any:
    return ops.matmul(a, b)


@operation("Flatten")
def _flatten(inputs: Any, first: Number) -> Any:
    return ops.flatten(ops.movedim(inputs, 1, -1) if first and inputs.ndim > 2 else inputs, 1)


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Any:
    """All axes but the first as one; with "channels_first" as if the channels came last.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(tf.layers.flatten(tf.zeros([2, 3, 4])).shape)
    (2, 12)
    """
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(
            f"flatten: data_format {data_format!r}, at {here()}. Use 'channels_last' or 'channels_first'."
        )
    return _flatten(inputs, data_format == "channels_first", name=name or "flatten")


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Any:
    """``tf.nn.dropout`` while ``training`` is true (a Python value or a bool tensor).

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.layers.dropout([1.0, 2.0], training=False)))
    [1. 2.]
    """
    if isinstance(training, (bool, int)):
        if not training:
            return array.identity(inputs, name=name or "dropout")
        return nn.dropout(inputs, rate=rate, noise_shape=noise_shape, seed=seed, name=name)
    return cond(
        training,
        lambda: nn.dropout(inputs, rate=rate, noise_shape=noise_shape, seed=seed),
        lambda: convert_to_tensor(inputs),
        name=name or "dropout",
    )


Dense, BatchNormalization = layer_of("Dense", dense), layer_of("BatchNormalization", batch_normalization)
Conv1D, Conv2D, Conv3D = layer_of("Conv1D", conv1d), layer_of("Conv2D", conv2d), layer_of("Conv3D", conv3d)
Conv2DTranspose = layer_of("Conv2DTranspose", conv2d_transpose)
SeparableConv2D = layer_of("SeparableConv2D", separable_conv2d)
Flatten, Dropout = layer_of("Flatten", flatten, False), layer_of("Dropout", dropout, False)
MaxPooling1D = layer_of("MaxPooling1D", max_pooling1d, False)
MaxPooling2D = layer_of("MaxPooling2D", max_pooling2d, False)
MaxPooling3D = layer_of("MaxPooling3D", max_pooling3d, False)
AveragePooling1D = layer_of("AveragePooling1D", average_pooling1d, False)
AveragePooling2D = layer_of("AveragePooling2D", average_pooling2d, False)
AveragePooling3D = layer_of("AveragePooling3D", average_pooling3d, False)
