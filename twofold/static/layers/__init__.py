"""Layers as functions that make their variables: ``tf.layers``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static import nn
from twofold.static.api.op_functions import Number, convert_to_tensor, operation
from twofold.static.api.signatures import takes
from twofold.static.arrays import shape_ops
from twofold.static.control_flow.conditional import cond
from twofold.static.graph.docstrings import example
from twofold.static.layers.convolutional import Variables as _Variables
from twofold.static.layers.convolutional import conv1d as conv1d
from twofold.static.layers.convolutional import conv2d as conv2d
from twofold.static.layers.convolutional import conv2d_transpose as conv2d_transpose
from twofold.static.layers.convolutional import conv3d as conv3d
from twofold.static.layers.convolutional import conv3d_transpose as conv3d_transpose
from twofold.static.layers.convolutional import layer_parameters as _layer_parameters
from twofold.static.layers.convolutional import separable_conv1d as separable_conv1d
from twofold.static.layers.convolutional import separable_conv2d as separable_conv2d
from twofold.static.layers.layer import InputSpec as InputSpec
from twofold.static.layers.layer import Layer as Layer
from twofold.static.layers.layer import layer_of
from twofold.static.layers.normalization import batch_normalization as batch_normalization
from twofold.static.nn.pooling import average_pooling1d as average_pooling1d
from twofold.static.nn.pooling import average_pooling2d as average_pooling2d
from twofold.static.nn.pooling import average_pooling3d as average_pooling3d
from twofold.static.nn.pooling import max_pooling1d as max_pooling1d
from twofold.static.nn.pooling import max_pooling2d as max_pooling2d
from twofold.static.nn.pooling import max_pooling3d as max_pooling3d
from twofold.static.python import tensor_util as _tensor_util
from twofold.static.variables import variable_scope


@example("print(tf.layers.dense(tf.zeros([2, 3]), 5, activation=tf.nn.relu).shape)", "(2, 5)")
@takes(**_layer_parameters("kernel"))
def dense(inputs: Any, units: int, **options: Any) -> Any:
    """``activation(inputs @ kernel + bias)`` on the last axis, with variables ``kernel`` and ``bias`` of its own."""
    made = _Variables("dense", inputs, options)
    with variable_scope.layer_scope(options["name"], "dense", options["reuse"]):
        kernel = made.variable("kernel", [made.channels, int(units)])
        return made.finish(_product(made.tensor, kernel, name="MatMul"), int(units))


@operation("MatMul")
def _product(a: Any, b: Any) -> Any:
    return ops.matmul(a, b)


@operation("Flatten")
def _flatten(inputs: Any, first: Number) -> Any:
    if inputs.ndim == 1:
        return ops.reshape(inputs, (-1, 1))
    return ops.flatten(ops.movedim(inputs, 1, -1) if first and inputs.ndim > 2 else inputs, 1)


@example("print(tf.layers.flatten(tf.zeros([2, 3, 4])).shape)", "(2, 12)")
def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Any:
    """All axes but the first as one; with "channels_first" as if the channels came last."""
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(
            f"flatten: data_format {data_format!r}, at {here()}. Use 'channels_last' or 'channels_first'."
        )
    return _flatten(inputs, data_format == "channels_first", name=name or "flatten")


@example("tf.layers.dropout([1.0, 2.0], training=False)", "[1. 2.]")
def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Any:
    """``tf.nn.dropout`` while ``training`` is true (a Python value or a bool tensor)."""
    known = _tensor_util.smart_constant_value(training)
    if known is not None:
        if not known:
            return shape_ops.identity(inputs, name=name or "dropout")
        return nn.dropout(inputs, rate=rate, noise_shape=noise_shape, seed=seed, name=name)
    return cond(
        training,
        lambda: nn.dropout(inputs, rate=rate, noise_shape=noise_shape, seed=seed),
        lambda: convert_to_tensor(inputs),
        name=name or "dropout",
    )


OBJECTS: dict[str, tuple[Callable[..., Any], str, str, str]] = {
    "Dense": (dense, "(5)", "[2, 3]", "(2, 5)"),
    "BatchNormalization": (batch_normalization, "()", "[2, 3]", "(2, 3)"),
    "Conv1D": (conv1d, "(8, 3)", "[2, 9, 3]", "(2, 7, 8)"),
    "Conv2D": (conv2d, "(8, 3)", "[2, 9, 9, 3]", "(2, 7, 7, 8)"),
    "Conv3D": (conv3d, "(8, 3)", "[2, 5, 5, 5, 3]", "(2, 3, 3, 3, 8)"),
    "Conv2DTranspose": (conv2d_transpose, "(8, 2, strides=2)", "[2, 4, 4, 3]", "(2, 8, 8, 8)"),
    "Conv3DTranspose": (conv3d_transpose, "(8, 2, strides=2)", "[2, 3, 4, 4, 3]", "(2, 6, 8, 8, 8)"),
    "SeparableConv1D": (separable_conv1d, "(8, 3)", "[2, 4, 3]", "(2, 2, 8)"),
    "SeparableConv2D": (separable_conv2d, "(8, 3)", "[2, 4, 4, 3]", "(2, 2, 2, 8)"),
    "Flatten": (flatten, "()", "[2, 3, 4]", "(2, 12)"),
    "Dropout": (dropout, "(0.5)", "[2, 3]", "(2, 3)"),
    "MaxPooling1D": (max_pooling1d, "(2, 2)", "[1, 4, 3]", "(1, 2, 3)"),
    "MaxPooling2D": (max_pooling2d, "(2, 2)", "[1, 4, 4, 3]", "(1, 2, 2, 3)"),
    "MaxPooling3D": (max_pooling3d, "(2, 2)", "[1, 4, 4, 4, 3]", "(1, 2, 2, 2, 3)"),
    "AveragePooling1D": (average_pooling1d, "(2, 2)", "[1, 4, 3]", "(1, 2, 3)"),
    "AveragePooling2D": (average_pooling2d, "(2, 2)", "[1, 4, 4, 3]", "(1, 2, 2, 3)"),
    "AveragePooling3D": (average_pooling3d, "(2, 2)", "[1, 4, 4, 4, 3]", "(1, 2, 2, 2, 3)"),
}
"""By the names of classes, here and in Keras, their functions and examples: arguments, shapes of input and result."""

_of = {name: layer_of(name, *row) for name, row in OBJECTS.items()}
Dense, Flatten, Dropout = _of["Dense"], _of["Flatten"], _of["Dropout"]
BatchNormalization = _of["BatchNormalization"]
Conv1D, Conv2D, Conv3D = (_of[f"Conv{count}D"] for count in (1, 2, 3))
Conv2DTranspose, Conv3DTranspose = _of["Conv2DTranspose"], _of["Conv3DTranspose"]
SeparableConv1D, SeparableConv2D = _of["SeparableConv1D"], _of["SeparableConv2D"]
MaxPooling1D, MaxPooling2D, MaxPooling3D = (_of[f"MaxPooling{count}D"] for count in (1, 2, 3))
AveragePooling1D, AveragePooling2D, AveragePooling3D = (_of[f"AveragePooling{count}D"] for count in (1, 2, 3))
