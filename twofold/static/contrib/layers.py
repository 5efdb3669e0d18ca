"""Layers, initializers and penalties of ``tf.contrib.layers``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.dtypes import float32
from twofold.ops.base import ops
from twofold.static import array, initializers, math, nn
from twofold.static.define import convert_to_tensor, operation
from twofold.static.graph import get_default_graph
from twofold.static.layers import dense
from twofold.static.layers import flatten as _flatten
from twofold.static.scopes import get_variable_scope

relu = nn.relu
softmax = nn.softmax


def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Any:
    """All axes but the first as one; the result goes into ``outputs_collections``."""
    return _collected(_flatten(inputs, name=scope), outputs_collections)


def _collected(made: Any, collections: Any) -> Any:
    """What a layer made, entered in collections."""
    if collections is not None:
        get_default_graph().add_to_collections(collections, made)
    return made


def xavier_initializer(uniform: bool = True, seed: int | None = None, dtype: Any = float32) -> Any:
    """Glorot's initializer, uniform or normal."""
    distribution = "uniform" if uniform else "truncated_normal"
    return initializers.VarianceScaling(1.0, "fan_avg", distribution, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: Any = float32,
) -> Any:
    """Numbers of variance ``factor`` over the number of inputs, outputs, or their mean (``mode``)."""
    distribution = "uniform" if uniform else "truncated_normal"
    return initializers.VarianceScaling(factor, mode.lower(), distribution, seed, dtype)


@operation("Regularizer")
def _penalty(weights: Any, absolute: Any, squared: Any) -> Any:
    one, two = ops.sum(ops.abs(weights)), ops.multiply(ops.sum(ops.square(weights)), 0.5)
    return ops.add(ops.multiply(one, absolute), ops.multiply(two, squared))


def _regularizer(absolute: float, squared: float, scope: str | None) -> Callable[[Any], Any]:
    for scale in (absolute, squared):
        if scale < 0:
            raise ValueError(f"regularizer: a scale of {scale} is negative. Give one that is not.")

    def penalty(weights: Any) -> Any:
        return _penalty(convert_to_tensor(weights), float(absolute), float(squared), name=scope)

    return penalty


def l1_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """``scale`` times the sum of absolute values."""
    return _regularizer(scale, 0.0, scope)


def l2_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """``scale`` times half the sum of squares."""
    return _regularizer(0.0, scale, scope)


def l1_l2_regularizer(
    scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None
) -> Callable[[Any], Any]:
    """The sum of ``l1_regularizer`` and ``l2_regularizer``."""
    return _regularizer(scale_l1, scale_l2, scope)


def apply_regularization(regularizer: Callable[[Any], Any], weights_list: Any = None) -> Any:
    """The sum of a penalty over variables, which is added to the collection of penalties too."""
    graph = convert_to_tensor(weights_list[0]).graph
    total = math.add_n([regularizer(weights) for weights in weights_list])
    graph.add_to_collection("regularization_losses", total)
    return total


def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = initializers.zeros_initializer,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """``tf.layers.dense`` with relu and Glorot's initializer by default; with ``normalizer_fn`` without a bias.

    ``variables_collections`` is a list for all variables, or a dict with lists for "weights" and "biases".
    """
    first = weights_initializer or get_variable_scope().initializer or xavier_initializer()
    biased = normalizer_fn is None and biases_initializer is not None
    made = dense(
        inputs,
        num_outputs,
        None if normalizer_fn else activation_fn,
        biased,
        first,
        biases_initializer,
        weights_regularizer,
        biases_regularizer,
        trainable=trainable,
        name=scope,
        default_name="fully_connected",
        reuse=reuse,
        collections=variables_collections,
    )
    if normalizer_fn is not None:
        made = normalizer_fn(made, **(normalizer_params or {}))
        made = made if activation_fn is None else activation_fn(made)
    return _collected(made, outputs_collections)


def one_hot_encoding(labels: Any, num_classes: int, on_value: Any = 1.0, off_value: Any = 0.0) -> Any:
    """Rows with ``on_value`` at the class of each label."""
    return array.one_hot(labels, num_classes, on_value, off_value)


def linear(inputs: Any, num_outputs: int, **options: Any) -> Any:
    """``fully_connected`` without an activation."""
    return fully_connected(inputs, num_outputs, activation_fn=None, **options)
