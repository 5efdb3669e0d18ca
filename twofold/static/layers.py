"""Layers as functions that make their variables: ``tf.layers``."""

from __future__ import annotations

from typing import Any

from twofold.errors import GraphError
from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static import initializers, nn
from twofold.static.control import cond
from twofold.static.convolution_layers import conv1d as conv1d
from twofold.static.convolution_layers import conv2d as conv2d
from twofold.static.convolution_layers import conv2d_transpose as conv2d_transpose
from twofold.static.convolution_layers import conv3d as conv3d
from twofold.static.convolution_layers import separable_conv2d as separable_conv2d
from twofold.static.define import convert_to_tensor, operation
from twofold.static.graph import GraphKeys, describe, get_default_graph
from twofold.static.layer_objects import Layer as Layer
from twofold.static.layer_objects import layer_of
from twofold.static.pooling import average_pooling1d as average_pooling1d
from twofold.static.pooling import average_pooling2d as average_pooling2d
from twofold.static.pooling import average_pooling3d as average_pooling3d
from twofold.static.pooling import max_pooling1d as max_pooling1d
from twofold.static.pooling import max_pooling2d as max_pooling2d
from twofold.static.pooling import max_pooling3d as max_pooling3d
from twofold.static.scopes import get_variable, variable_scope
from twofold.static.variables import update


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
    name: str | None = None,
    reuse: Any = None,
    default_name: str = "dense",
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
            f"dense: the last axis of {describe(tensor)} is unknown, at {here()}",
            "Give the placeholder that size.",
        )
    with variable_scope(name, default_name, reuse=reuse):
        kernel = get_variable(
            "kernel", [width, int(units)], tensor.dtype, kernel_initializer, kernel_regularizer, trainable
        )
        made = _product(tensor, kernel, name="MatMul")
        if use_bias:
            first = bias_initializer or initializers.zeros_initializer()
            bias = get_variable("bias", [int(units)], tensor.dtype, first, bias_regularizer, trainable)
            made = nn.bias_add(made, bias, name="BiasAdd")
        return made if activation is None else activation(made)


@operation("MatMul")
def _product(a: Any, b: Any) -> Any:
    return ops.matmul(a, b)


@operation("Flatten")
def _flatten(inputs: Any) -> Any:
    return ops.flatten(inputs, 1)


def flatten(inputs: Any, name: str | None = None, data_format: Any = None) -> Any:
    """All axes but the first as one.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(tf.layers.flatten(tf.zeros([2, 3, 4])).shape)
    (2, 12)
    """
    return _flatten(inputs, name=name or "flatten")


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
        return (
            nn.dropout(inputs, rate=rate, noise_shape=noise_shape, seed=seed, name=name)
            if training
            else convert_to_tensor(inputs)
        )
    return cond(
        training,
        lambda: nn.dropout(inputs, rate=rate, noise_shape=noise_shape, seed=seed),
        lambda: convert_to_tensor(inputs),
        name=name or "dropout",
    )


def batch_normalization(
    inputs: Any,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = None,
    gamma_initializer: Any = None,
    moving_mean_initializer: Any = None,
    moving_variance_initializer: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    **options: Any,
) -> Any:
    """Normalised over all axes but the last; in training by the batch, otherwise by moving averages.

    The updates of the averages are in the collection ``GraphKeys.UPDATE_OPS``; run them with the training step.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(tf.layers.batch_normalization(tf.zeros([2, 3]), training=True).shape)
    (2, 3)
    """
    tensor = convert_to_tensor(inputs)
    ndim = tensor.type_.ndim
    if axis % ndim != ndim - 1:
        raise GraphError(f"batch_normalization: axis {axis} is not the last, at {here()}", "Transpose first.")

    def variable(kind: str, initializer: Any, changes: bool) -> Any:
        return get_variable(kind, [tensor.type_.shape[-1]], tensor.dtype, initializer, trainable=changes)

    one, zero = initializers.ones_initializer(), initializers.zeros_initializer()
    with variable_scope(name, "batch_normalization", reuse=reuse):
        gamma = variable("gamma", gamma_initializer or one, trainable) if scale else None
        beta = variable("beta", beta_initializer or zero, trainable) if center else None
        mean = variable("moving_mean", moving_mean_initializer or zero, False)
        variance = variable("moving_variance", moving_variance_initializer or one, False)

        def by_batch() -> list[Any]:
            centre, spread = nn.moments(tensor, list(range(ndim - 1)))
            return [nn.batch_normalization(tensor, centre, spread, beta, gamma, epsilon), centre, spread]

        def by_average() -> list[Any]:
            made = nn.batch_normalization(tensor, mean, variance, beta, gamma, epsilon)
            return [made, mean.value(), variance.value()]

        if isinstance(training, (bool, int)):
            made, centre, spread = by_batch() if training else by_average()
        else:
            made, centre, spread = cond(training, by_batch, by_average)
        if training is not False:
            for average, value in ((mean, centre), (variance, spread)):
                kept = update("AssignMovingAvg", [average], _moved, [value], {"momentum": momentum}, None)
                get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, kept)
    return made


def _moved(state: Any, value: Any, momentum: float) -> Any:
    return ops.add(ops.multiply(state, momentum), ops.multiply(value, 1.0 - momentum))


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
