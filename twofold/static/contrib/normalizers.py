"""Normalising layers of ``tf.contrib.layers``, which also serve as ``normalizer_fn`` of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.errors import ArgumentError
from twofold.ops.base import normalize_axis
from twofold.ops.shape.shapes import many_axes
from twofold.runtime.tracing import here
from twofold.static import initializers, math, nn
from twofold.static.api.docstrings import example
from twofold.static.api.op_functions import convert_to_tensor, refuse
from twofold.static.arrays import shape_ops
from twofold.static.contrib.framework import add_arg_scope
from twofold.static.contrib.scopes import collected, layer_scope
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.scopes import control_dependencies
from twofold.static.layers.normalization import batch_normalization
from twofold.static.nn.normalization import moments
from twofold.static.variables.variable_scope import get_variable


@add_arg_scope
@example(
    "y = tf.contrib.layers.batch_norm(tf.constant([[1.0], [3.0]]), updates_collections=None)",
    "session.run(tf.global_variables_initializer())",
    "print(session.run(y).round(2).tolist(), [variable.name for variable in tf.model_variables()])",
    "[[-1.0], [1.0]] ['BatchNorm/beta:0', 'BatchNorm/moving_mean:0', 'BatchNorm/moving_variance:0']",
)
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    param_initializers: Any = None,
    param_regularizers: Any = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_decay: float = 0.99,
    adjustment: Any = None,
) -> Any:
    """Normalised by the batch in training, otherwise by moving averages.

    The updates of the averages are in ``updates_collections``; with None they are made before the result.
    """
    refuse(
        "batch_norm",
        batch_weights=batch_weights,
        zero_debias_moving_mean=zero_debias_moving_mean,
        renorm=renorm,
        renorm_clipping=renorm_clipping,
        renorm_decay=renorm_decay != 0.99,
        adjustment=adjustment,
    )
    axis = 1 if data_format.startswith("NC") else -1
    known = len(get_default_graph().get_collection_ref(GraphKeys.UPDATE_OPS))
    given = {f"{name}_initializer": one for name, one in (param_initializers or {}).items()}
    given |= {f"{name}_regularizer": one for name, one in (param_regularizers or {}).items()}
    with layer_scope(scope, "BatchNorm", reuse, variables_collections) as own:
        given |= {"training": is_training, "trainable": trainable, "name": own, "fused": fused}
        made = batch_normalization(inputs, axis, decay, epsilon, center, scale, **given)
        made = _updated(made, known, updates_collections)
        return collected(made if activation_fn is None else activation_fn(made), outputs_collections)


def _updated(made: Any, known: int, collections: Any) -> Any:
    """A layer's result; its updates, those behind the ``known`` ones, go to other collections or run before it."""
    updates = get_default_graph().get_collection_ref(GraphKeys.UPDATE_OPS)
    new = updates[known:]
    del updates[known:]
    if collections is None:
        with control_dependencies(new):
            return shape_ops.identity(made)
    for one in new:
        get_default_graph().add_to_collections(collections, one)
    return made


def _parameters(
    made: Any, shape: Sequence[int], aligned: Sequence[int], center: bool, scale: bool, trainable: bool
) -> Any:
    """Normalised values times ``gamma`` plus ``beta``: variables of ``shape``, reshaped to ``aligned``."""
    if scale:
        gamma = get_variable("gamma", shape, made.dtype, initializers.ones_initializer(), trainable=trainable)
        made = made * shape_ops.reshape(gamma, aligned)
    if center:
        beta = get_variable("beta", shape, made.dtype, initializers.zeros_initializer(), trainable=trainable)
        made = made + shape_ops.reshape(beta, aligned)
    return made


def _standard(tensor: Any, axes: Sequence[int], epsilon: float) -> Any:
    mean, variance = moments(tensor, axes, keep_dims=True)
    return nn.batch_normalization(tensor, mean, variance, None, None, epsilon)


@add_arg_scope
@example(
    "y = tf.contrib.layers.layer_norm(tf.constant([[1.0, 3.0], [2.0, 6.0]]))",
    "session.run(tf.global_variables_initializer())",
    "print(session.run(y).round(3).tolist())",
    "[[-1.0, 1.0], [-1.0, 1.0]]",
)
def layer_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    activation_fn: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> Any:
    """Each sample normalised over axes from ``begin_norm_axis`` on; parameters have those of ``begin_params_axis``."""
    tensor = convert_to_tensor(inputs)
    ndim = tensor.type_.ndim
    begin = normalize_axis(begin_norm_axis, ndim)
    shape = tensor.type_.shape[normalize_axis(begin_params_axis, ndim) :]
    with layer_scope(scope, "LayerNorm", reuse, variables_collections):
        made = _standard(tensor, list(range(begin, ndim)), 1e-12)
        made = _parameters(made, shape, shape, center, scale, trainable)
        return collected(made if activation_fn is None else activation_fn(made), outputs_collections)


@add_arg_scope
def instance_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """Each channel of each image normalised over its positions."""
    refuse("instance_norm", param_initializers=param_initializers)
    tensor = convert_to_tensor(inputs)
    ndim = tensor.type_.ndim
    channel = 1 if data_format.startswith("NC") else ndim - 1
    aligned = [-1 if axis == channel else 1 for axis in range(ndim)]
    with layer_scope(scope, "InstanceNorm", reuse, variables_collections):
        made = _standard(tensor, [axis for axis in range(1, ndim) if axis != channel], epsilon)
        made = _parameters(made, [tensor.type_.shape[channel]], aligned, center, scale, trainable)
        return collected(made if activation_fn is None else activation_fn(made), outputs_collections)


@add_arg_scope
def group_norm(
    inputs: Any,
    groups: int = 32,
    channels_axis: int = -1,
    reduction_axes: Any = (-3, -2),
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    mean_close_to_zero: bool = False,
) -> Any:
    """Groups of channels normalised over ``reduction_axes``; ``mean_close_to_zero`` is about rounding alone."""
    refuse("group_norm", param_initializers=param_initializers)
    tensor = convert_to_tensor(inputs)
    sizes, ndim = tensor.type_.shape, tensor.type_.ndim
    channel = normalize_axis(channels_axis, ndim)
    if sizes[channel] % groups:
        what = f"group_norm: {sizes[channel]} channels in {groups} groups, at {here()}"
        raise ArgumentError(what, "Give a number of groups that divides the channels.")
    known = [shape_ops.shape(tensor)[axis] if size < 0 else size for axis, size in enumerate(sizes)]
    apart = [*known[:channel], groups, sizes[channel] // groups, *known[channel + 1 :]]
    over = [axis + (axis > channel) for axis in many_axes(reduction_axes, ndim)]
    aligned = [-1 if axis == channel else 1 for axis in range(ndim)]
    with layer_scope(scope, "GroupNorm", reuse, variables_collections):
        made = _standard(shape_ops.reshape(tensor, apart), sorted([*over, channel + 1]), epsilon)
        made = shape_ops.reshape(made, known)
        made = _parameters(made, [sizes[channel]], aligned, center, scale, trainable)
        return collected(made if activation_fn is None else activation_fn(made), outputs_collections)


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Any:
    """Divided by the length along an axis."""
    tensor = convert_to_tensor(inputs)
    length = math.sqrt(math.reduce_sum(math.square(tensor), dim, keepdims=True) + epsilon)
    return math.div(tensor, length, name=scope)
