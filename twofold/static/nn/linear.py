"""Products with weights, and biases."""

from __future__ import annotations

from typing import Any

from twofold.errors import ShapeError
from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.api.op_functions import Number, operation
from twofold.static.graph.docstrings import example
from twofold.static.nn.activations import relu


@operation("BiasAdd")
def _bias_add(value: Any, bias: Any, first: Number) -> Any:
    axis = 1 if first else -1
    if getattr(bias, "ndim", 0) != 1 or value.ndim < 2 or value.shape[axis] != bias.shape[0]:
        raise ShapeError(
            f"a bias of shape {tuple(getattr(bias, 'shape', ()))} for values of shape {tuple(value.shape)}",
            "Give one number for each channel.",
        )
    return ops.add(value, ops.reshape(bias, (-1, *(1,) * (value.ndim - 2))) if first else bias)


@example("tf.nn.bias_add([[1.0, 2.0], [3.0, 4.0]], [10.0, 20.0])", "[[11. 22.]\n [13. 24.]]")
def bias_add(value: Any, bias: Any, data_format: Any = None, name: str | None = None) -> Any:
    """``bias`` added to the channels: along the last axis or, with a ``data_format`` as "NCHW", the second."""
    if data_format is not None and data_format not in ("NHWC", "NCHW", "NWC", "NCW", "NDHWC", "NCDHW"):
        raise ValueError(f"bias_add: data_format {data_format!r}, at {here()}. Use 'NHWC' or 'NCHW'.")
    first = data_format is not None and data_format.startswith("NC")
    return _bias_add(value, bias, first, name=name)


@example("tf.nn.xw_plus_b([[1.0, 2.0]], [[1.0], [1.0]], [10.0])", "[[13.]]")
def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """``matmul(x, weights) + biases``."""
    return bias_add(math.matmul(x, weights), biases, name=name or "xw_plus_b")


@example("tf.nn.relu_layer([[1.0, 2.0]], [[1.0, -1.0], [1.0, -1.0]], [0.5, 0.5])", "[[3.5 0. ]]")
def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """``relu(matmul(x, weights) + biases)``."""
    return relu(xw_plus_b(x, weights, biases), name=name or "relu_layer")
