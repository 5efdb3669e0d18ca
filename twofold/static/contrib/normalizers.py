"""Normalising layers of ``tf.contrib.layers``, which also serve as ``normalizer_fn`` of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.errors import ArgumentError
from twofold.ops.base import normalize_axis
from twofold.ops.shape.shapes import many_axes
from twofold.runtime.tracing import here
from twofold.static import initializers, math, nn
from twofold.static.api.op_functions import convert_to_tensor, refuse
from twofold.static.api.signatures import defaults_of
from twofold.static.arrays import shape_ops
from twofold.static.contrib.framework import add_arg_scope
from twofold.static.contrib.scopes import SHARED, layer
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.scopes import control_dependencies
from twofold.static.layers.normalization import batch_normalization, normalized
from twofold.static.nn.normalization import moments
from twofold.static.variables.variable_scope import get_variable


@layer(
    "BatchNorm",
    "decay=0.999, center=True, scale=False, epsilon=0.001, activation_fn=None, param_initializers=None, "
    f"param_regularizers=None, updates_collections={GraphKeys.UPDATE_OPS!r}, is_training=True, {SHARED}, "
    "batch_weights=None, fused=None, data_format='NHWC', zero_debias_moving_mean=False, scope=None, renorm=False, "
    "renorm_clipping=None, renorm_decay=0.99, adjustment=None",
)
@example(
    "y = tf.contrib.layers.batch_norm(tf.constant([[1.0], [3.0]]), updates_collections=None)",
    "session.run(tf.global_variables_initializer())",
    "print(session.run(y).round(2).tolist(), [variable.name for variable in tf.model_variables()])",
    "[[-1.0], [1.0]] ['BatchNorm/beta:0', 'BatchNorm/moving_mean:0', 'BatchNorm/moving_variance:0']",
)
def batch_norm(inputs: Any, **options: Any) -> Any:
    """Normalised by the batch in training, otherwise by moving averages.

    The updates of the averages are in ``updates_collections``; with None they are made before the result. Unless
    ``fused`` is False the moving variance over two or four axes is the unbiased one.
    """
    refuse("batch_norm", batch_weights=options["batch_weights"], adjustment=options["adjustment"])
    axis = 1 if options["data_format"].startswith("NC") else -1
    known = len(get_default_graph().get_collection_ref(GraphKeys.UPDATE_OPS))
    given = {name: options[name] for name in ("epsilon", "center", "scale", "trainable", "fused")}
    given |= {f"{name}_initializer": one for name, one in (options["param_initializers"] or {}).items()}
    given |= {f"{name}_regularizer": one for name, one in (options["param_regularizers"] or {}).items()}
    given |= {"momentum": options["decay"], "training": options["is_training"], "name": options["scope"]}
    given |= {"renorm": options["renorm"], "renorm_clipping": options["renorm_clipping"]}
    given |= {"renorm_momentum": options["renorm_decay"], "axis": axis}
    given = {**defaults_of(batch_normalization), **given}
    tensor, collections = convert_to_tensor(inputs), options["updates_collections"]
    debiased, flat = (
        options["zero_debias_moving_mean"],
        tensor.type_.ndim == 2 and options["fused"] is not False,
    )
    beta_first = (
        debiased or flat or collections != GraphKeys.UPDATE_OPS
    )  # otherwise it is the layer of tf.layers
    made = normalized(tensor, given, (2, 4), beta_first, debiased)
    return _updated(made, known, collections)


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


def _parameters(made: Any, shape: Sequence[int], aligned: Sequence[int], options: dict[str, Any]) -> Any:
    """Normalised values times ``gamma`` plus ``beta``, made in TensorFlow's order: variables of ``shape``, aligned."""
    first = {"beta": initializers.zeros_initializer(), "gamma": initializers.ones_initializer()}
    beta, gamma = (
        shape_ops.reshape(
            get_variable(name, shape, made.dtype, first[name], trainable=options["trainable"]), aligned
        )
        if options[asked]
        else None
        for name, asked in (("beta", "center"), ("gamma", "scale"))
    )
    made = made if gamma is None else made * gamma
    return made if beta is None else made + beta


def _standard(tensor: Any, axes: Sequence[int], epsilon: float) -> Any:
    mean, variance = moments(tensor, axes, keep_dims=True)
    return nn.batch_normalization(tensor, mean, variance, None, None, epsilon)


@layer(
    "LayerNorm",
    f"center=True, scale=True, activation_fn=None, {SHARED}, begin_norm_axis=1, begin_params_axis=-1, scope=None",
)
@example(
    "y = tf.contrib.layers.layer_norm(tf.constant([[1.0, 3.0], [2.0, 6.0]]))",
    "session.run(tf.global_variables_initializer())",
    "print(session.run(y).round(3).tolist())",
    "[[-1.0, 1.0], [-1.0, 1.0]]",
)
def layer_norm(inputs: Any, **options: Any) -> Any:
    """Each sample normalised over axes from ``begin_norm_axis`` on; parameters have those of ``begin_params_axis``."""
    tensor = convert_to_tensor(inputs)
    ndim = tensor.type_.ndim
    begin = normalize_axis(options["begin_norm_axis"], ndim)
    shape = tensor.type_.shape[normalize_axis(options["begin_params_axis"], ndim) :]
    return _parameters(_standard(tensor, list(range(begin, ndim)), 1e-12), shape, shape, options)


@layer(
    "InstanceNorm",
    "center=True, scale=True, epsilon=1e-6, activation_fn=None, param_initializers=None, "
    f"{SHARED}, data_format='NHWC', scope=None",
)
def instance_norm(inputs: Any, **options: Any) -> Any:
    """Each channel of each image normalised over its positions."""
    refuse("instance_norm", param_initializers=options["param_initializers"])
    tensor = convert_to_tensor(inputs)
    ndim = tensor.type_.ndim
    channel = 1 if options["data_format"].startswith("NC") else ndim - 1
    aligned = [-1 if axis == channel else 1 for axis in range(ndim)]
    made = _standard(tensor, [axis for axis in range(1, ndim) if axis != channel], options["epsilon"])
    return _parameters(made, [tensor.type_.shape[channel]], aligned, options)


@layer(
    "GroupNorm",
    "groups=32, channels_axis=-1, reduction_axes=(-3, -2), center=True, scale=True, epsilon=1e-6, activation_fn=None, "
    f"param_initializers=None, {SHARED}, scope=None, mean_close_to_zero=False",
)
def group_norm(inputs: Any, **options: Any) -> Any:
    """Groups of channels normalised over ``reduction_axes``; ``mean_close_to_zero`` is about rounding alone."""
    refuse("group_norm", param_initializers=options["param_initializers"])
    tensor, groups = convert_to_tensor(inputs), options["groups"]
    sizes, ndim = tensor.type_.shape, tensor.type_.ndim
    channel = normalize_axis(options["channels_axis"], ndim)
    if sizes[channel] % groups:
        what = f"group_norm: {sizes[channel]} channels in {groups} groups, at {here()}"
        raise ArgumentError(what, "Give a number of groups that divides the channels.")
    known = [shape_ops.shape(tensor)[axis] if size < 0 else size for axis, size in enumerate(sizes)]
    apart = [*known[:channel], groups, sizes[channel] // groups, *known[channel + 1 :]]
    over = [axis + (axis > channel) for axis in many_axes(options["reduction_axes"], ndim)]
    aligned = [-1 if axis == channel else 1 for axis in range(ndim)]
    made = _standard(shape_ops.reshape(tensor, apart), sorted([*over, channel + 1]), options["epsilon"])
    return _parameters(shape_ops.reshape(made, known), [sizes[channel]], aligned, options)


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Any:
    """Divided by the length along an axis."""
    tensor = convert_to_tensor(inputs)
    length = math.sqrt(math.reduce_sum(math.square(tensor), dim, keepdims=True) + epsilon)
    return math.div(tensor, length, name=scope)
