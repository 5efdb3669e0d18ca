"""Layers, initializers and penalties of ``tf.contrib.layers``.

Their variables are ``weights`` and ``biases``, and are in the collection of model variables.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from twofold.dtypes import float32
from twofold.runtime.tracing import here
from twofold.static import initializers, math, nn
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.arrays import shape_ops
from twofold.static.contrib.framework import add_arg_scope, model_variable
from twofold.static.contrib.layer_utils import collect_named_outputs, last_dimension
from twofold.static.contrib.normalizers import batch_norm as batch_norm
from twofold.static.contrib.normalizers import group_norm as group_norm
from twofold.static.contrib.normalizers import instance_norm as instance_norm
from twofold.static.contrib.normalizers import layer_norm as layer_norm
from twofold.static.contrib.normalizers import unit_norm as unit_norm
from twofold.static.contrib.optimizing import OPTIMIZER_CLS_NAMES as OPTIMIZER_CLS_NAMES
from twofold.static.contrib.optimizing import OPTIMIZER_SUMMARIES as OPTIMIZER_SUMMARIES
from twofold.static.contrib.optimizing import optimize_loss as optimize_loss
from twofold.static.contrib.scopes import SHARED, layer
from twofold.static.contrib.summaries import summarize_activation as summarize_activation
from twofold.static.contrib.summaries import summarize_activations as summarize_activations
from twofold.static.contrib.summaries import summarize_biases as summarize_biases
from twofold.static.contrib.summaries import summarize_collection as summarize_collection
from twofold.static.contrib.summaries import summarize_tensor as summarize_tensor
from twofold.static.contrib.summaries import summarize_tensors as summarize_tensors
from twofold.static.contrib.summaries import summarize_variables as summarize_variables
from twofold.static.contrib.summaries import summarize_weights as summarize_weights
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import described, example
from twofold.static.graph.graph import describe, get_default_graph
from twofold.static.graph.scopes import name_scope
from twofold.static.layers import dense
from twofold.static.layers import dropout as _dropout
from twofold.static.layers import flatten as _flatten
from twofold.static.layers.convolutional import conv1d as _conv1d
from twofold.static.layers.convolutional import conv2d as _conv2d
from twofold.static.layers.convolutional import conv2d_transpose as _conv2d_transpose
from twofold.static.layers.convolutional import conv3d as _conv3d
from twofold.static.layers.convolutional import conv3d_transpose as _conv3d_transpose
from twofold.static.layers.convolutional import separable_conv2d as _separable_conv2d
from twofold.static.nn import embeddings
from twofold.static.nn.embeddings import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse
from twofold.static.nn.pooling import average_pooling2d, average_pooling3d, max_pooling2d, max_pooling3d
from twofold.static.python.positions import enter
from twofold.static.variables.variable_scope import get_variable, get_variable_scope, variable_scope


@example("tf.contrib.layers.softmax(tf.zeros([1, 4]), scope='made')", "[[0.25 0.25 0.25 0.25]]")
@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Any:
    """``tf.nn.softmax`` over the last axis, as operations of ``scope``: the last is ``Reshape_1``."""
    given = convert_to_tensor(logits)
    with variable_scope(scope, "softmax", [given]):
        rows = shape_ops.reshape(given, [-1, last_dimension(given.get_shape(), 2)])
        made = shape_ops.reshape(nn.softmax(rows), shape_ops.shape(given))
        made.set_shape(given.get_shape())
        return made


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Any:
    """All axes but the first as one; the result goes into ``outputs_collections``."""
    with name_scope(scope, "Flatten", [inputs]) as full:
        return collect_named_outputs(outputs_collections, full, _flatten(inputs, name="flatten"))


def _floating(dtype: Any) -> Any:
    if as_dtype(dtype).kind != "f":
        raise TypeError(
            f"Cannot create initializer for non-floating point type {dtype}, at {here()}. Give another one."
        )
    return dtype


def xavier_initializer(uniform: bool = True, seed: int | None = None, dtype: Any = float32) -> Any:
    """Glorot's initializer, uniform or normal."""
    distribution = "uniform" if uniform else "truncated_normal"
    return initializers.VarianceScaling(1.0, "fan_avg", distribution, seed, _floating(dtype))


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
    return initializers.VarianceScaling(factor, mode.lower(), distribution, seed, _floating(dtype))


def _scale(scale: Any) -> float:
    """The factor of a penalty, which is no integer, in case an axis was meant."""
    if isinstance(scale, numbers.Integral):
        raise ValueError(f"scale cannot be an integer: {scale}, at {here()}. Give a float.")
    if isinstance(scale, numbers.Real) and scale < 0:
        raise ValueError(f"regularizer: a scale of {scale} is negative, at {here()}. Give one that is not.")
    return scale


def _no_penalty(weights: Any) -> None:
    """Nothing, which no collection has."""


def l1_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """``scale``, a float, times the sum of absolute values; none if it is 0."""
    if _scale(scale) == 0:
        return _no_penalty

    def l1(weights: Any) -> Any:
        with name_scope(scope, "l1_regularizer", [weights]) as name:
            return math.multiply(scale, math.reduce_sum(math.abs(weights)), name=name)

    return l1


def l2_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """``scale``, a float, times half the sum of squares; none if it is 0."""
    if _scale(scale) == 0:
        return _no_penalty

    def l2(weights: Any) -> Any:
        with name_scope(scope, "l2_regularizer", [weights]) as name:
            return math.multiply(scale, nn.l2_loss(weights), name=name)

    return l2


def l1_l2_regularizer(
    scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None
) -> Callable[[Any], Any]:
    """The sum of ``l1_regularizer`` and ``l2_regularizer``."""
    name = scope or "l1_l2_regularizer"
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], name) or _no_penalty


def sum_regularizer(regularizer_list: Any, scope: str | None = None) -> Callable[[Any], Any] | None:
    """The sum of several penalties; None among them counts nothing."""
    given = [one for one in regularizer_list if one is not None]
    if not given:
        return None

    def total(weights: Any) -> Any:
        with name_scope(scope, "sum_regularizer", [weights]) as name:
            found = [penalty for one in given if (penalty := one(weights)) is not None]
            return math.add_n(found, name=name) if found else None

    return total


def apply_regularization(regularizer: Callable[[Any], Any], weights_list: Any = None) -> Any:
    """The sum of a penalty over variables (default: all weights), which joins the collection of penalties too."""
    given = get_default_graph().get_collection(GraphKeys.WEIGHTS) if weights_list is None else weights_list
    found = [penalty for weights in given if (penalty := regularizer(weights)) is not None]
    total = math.add_n(found) if found else convert_to_tensor(0.0)
    get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total


_NAMES = {
    "kernel": "weights",
    "bias": "biases",
    "depthwise_kernel": "depthwise_weights",
    "pointwise_kernel": "pointwise_weights",
}
"""What variables of ``tf.layers`` are called here."""


def _weighted(default: str, own: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``layer`` of weights with ``own`` options; with ``normalizer_fn`` it has no bias."""
    options = (
        f"{own}activation_fn=None, normalizer_fn=None, normalizer_params=None, weights_initializer=None, "
        "weights_regularizer=None, biases_initializer=None, biases_regularizer=None, "
        f"{SHARED}, scope=None"
    )
    return layer(
        default, options, _NAMES, activation_fn=nn.relu, biases_initializer=initializers.zeros_initializer
    )


def _made(
    function: Callable[..., Any],
    inputs: Any,
    options: dict[str, Any],
    kernels: Sequence[str] = ("kernel",),
    **own: Any,
) -> Any:
    """What a layer of ``tf.layers`` makes with its ``own`` arguments and these ``options``, normalised."""
    normalize, bias = options["normalizer_fn"], options["biases_initializer"]
    first = options["weights_initializer"] or get_variable_scope().initializer or xavier_initializer()
    for kernel in kernels:
        own |= {f"{kernel}_initializer": first, f"{kernel}_regularizer": options["weights_regularizer"]}
    if "stride" in options:
        own |= {"kernel_size": options["kernel_size"], "strides": options["stride"]}
        own |= {"padding": options["padding"], "data_format": _channels(options["data_format"])}
    own |= {"use_bias": normalize is None and bias is not None, "bias_initializer": bias}
    own |= {"bias_regularizer": options["biases_regularizer"], "trainable": options["trainable"]}
    made = function(inputs, **own, name=options["scope"])
    return made if normalize is None else normalize(made, **(options["normalizer_params"] or {}))


_FORMATS: dict[str | None, str] = {
    None: "channels_last",
    **dict.fromkeys(["NWC", "NHWC", "NDHWC"], "channels_last"),
    **dict.fromkeys(["NCW", "NCHW", "NCDHW"], "channels_first"),
}


def _channels(data_format: str | None) -> str:
    """Where the channels are, in the words of ``tf.layers``."""
    if data_format not in _FORMATS:
        raise ValueError(f"data_format has to be either NCHW or NHWC, not {data_format!r}, at {here()}.")
    return _FORMATS[data_format]


@example(
    "y = tf.contrib.layers.fully_connected(tf.zeros([2, 3]), 4)",
    "print(y.shape, [variable.name for variable in tf.model_variables()])",
    "(2, 4) ['fully_connected/weights:0', 'fully_connected/biases:0']",
)
@_weighted("fully_connected")
def fully_connected(inputs: Any, num_outputs: int, **options: Any) -> Any:
    """``tf.layers.dense`` with relu and Glorot's initializer by default; with ``normalizer_fn`` without a bias.

    ``variables_collections`` is a list for all variables, or a dict with lists for "weights" and "biases".
    """
    return _made(dense, inputs, options, units=num_outputs)


_CONVOLUTIONS = {3: _conv1d, 4: _conv2d, 5: _conv3d}
_WINDOW = "stride=1, padding='SAME', "
_CONVOLUTION = _weighted("Conv", f"kernel_size, {_WINDOW}data_format=None, rate=1, ")


@example(
    "y = tf.contrib.layers.conv2d(tf.zeros([2, 8, 8, 3]), 4, [3, 3], stride=2)",
    "print(y.shape, [variable.name for variable in tf.model_variables()])",
    "(2, 4, 4, 4) ['Conv/weights:0', 'Conv/biases:0']",
)
@_CONVOLUTION
def convolution(inputs: Any, num_outputs: int, **options: Any) -> Any:
    """Convolution over all axes but batch and channels; see ``fully_connected`` for the other arguments."""
    tensor = convert_to_tensor(inputs)
    if tensor.type_.ndim not in _CONVOLUTIONS:
        raise ValueError(f"Convolution not supported for input with rank {tensor.type_.ndim}, at {here()}.")
    own = {"filters": num_outputs, "dilation_rate": options["rate"]}
    return _made(_CONVOLUTIONS[tensor.type_.ndim], tensor, options, **own)


def _convolution(axes: int) -> Callable[..., Any]:
    """``convolution`` over a number of axes, which has arguments from scopes of its own."""

    def body(inputs: Any, num_outputs: int, **options: Any) -> Any:
        tensor = convert_to_tensor(inputs)
        if tensor.type_.ndim != axes + 2:
            what = f"Convolution expects input with rank {axes + 2}, got {tensor.type_.ndim}"
            raise ValueError(f"{what}: {describe(tensor)}, at {here()}.")
        own = {"filters": num_outputs, "dilation_rate": options["rate"]}
        return _made(_CONVOLUTIONS[axes + 2], tensor, options, **own)

    body.__name__ = body.__qualname__ = f"convolution{axes}d"
    body.__doc__ = f"Convolution over {axes} axes; see ``fully_connected`` for the other arguments."
    return _CONVOLUTION(body)


conv1d, conv2d, conv3d = convolution1d, convolution2d, convolution3d = [
    _convolution(axes) for axes in (1, 2, 3)
]


@_weighted("Conv2d_transpose", f"kernel_size, {_WINDOW}data_format='NHWC', ")
def conv2d_transpose(inputs: Any, num_outputs: int, **options: Any) -> Any:
    """Transposed convolution; see ``convolution``."""
    return _made(_conv2d_transpose, inputs, options, filters=num_outputs)


convolution2d_transpose = conv2d_transpose


@_weighted("Conv3d_transpose", f"kernel_size, {_WINDOW}data_format='NDHWC', ")
def conv3d_transpose(inputs: Any, num_outputs: int, **options: Any) -> Any:
    """Transposed convolution of volumes; see ``convolution``."""
    return _made(_conv3d_transpose, inputs, options, filters=num_outputs)


convolution3d_transpose = conv3d_transpose


@example(
    "y = tf.contrib.layers.conv2d_in_plane(tf.zeros([2, 8, 8, 3]), [1, 2])",
    "print(y.shape, [variable.shape.as_list() for variable in tf.model_variables()])",
    "(2, 8, 8, 3) [[1, 2, 1, 1], [3]]",
)
@_weighted("ConvInPlane", f"kernel_size, {_WINDOW}")
def conv2d_in_plane(inputs: Any, **options: Any) -> Any:
    """All channels convolved on their own by one kernel; see ``convolution`` for the arguments."""
    tensor = convert_to_tensor(inputs)
    window, step = (
        list(one) if isinstance(one, (list, tuple)) else [one] * 2
        for one in (options["kernel_size"], options["stride"])
    )
    channels = tensor.get_shape()[-1].value
    first = options["weights_initializer"] or get_variable_scope().initializer or xavier_initializer()
    trained = options["trainable"]
    penalty = options["weights_regularizer"]
    weights = get_variable("weights", [*window, 1, 1], tensor.dtype, first, penalty, trained)
    made = nn.depthwise_conv2d(
        tensor, shape_ops.tile(weights, [1, 1, channels, 1]), [1, *step, 1], options["padding"]
    )
    if options["normalizer_fn"] is not None:
        return options["normalizer_fn"](made, **(options["normalizer_params"] or {}))
    if options["biases_initializer"] is None:
        return made
    start, penalty = options["biases_initializer"], options["biases_regularizer"]
    return nn.bias_add(made, get_variable("biases", [channels], tensor.dtype, start, penalty, trained))


convolution2d_in_plane = conv2d_in_plane


@_weighted("SeparableConv2d", f"kernel_size, depth_multiplier=1, {_WINDOW}data_format='NHWC', rate=1, ")
def separable_conv2d(inputs: Any, num_outputs: int | None, **options: Any) -> Any:
    """Each channel convolved on its own, then mixed unless ``num_outputs`` is None; see ``convolution``."""
    own = {"depth_multiplier": options["depth_multiplier"], "dilation_rate": options["rate"]}
    kernels = ("depthwise", "pointwise")
    return _made(_separable_conv2d, inputs, options, kernels, filters=num_outputs, **own)


separable_convolution2d = separable_conv2d


def _pool(name: str, title: str, text: str, pool: Callable[..., Any]) -> Callable[..., Any]:
    """Pooling whose result is called ``title/kind`` unless a scope is given; ``kind`` is that of its operation."""
    data_format, kind = ("NDHWC" if name.endswith("3d") else "NHWC"), title.removesuffix("2D")

    def layer(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: str = data_format,
        outputs_collections: Any = None,
        scope: Any = None,
    ) -> Any:
        with name_scope(scope, title, [inputs]) as full:
            made = pool(inputs, kernel_size, stride, padding, _channels(data_format), name=kind)
            return collect_named_outputs(outputs_collections, full, made)

    return add_arg_scope(described(layer, name, text))


max_pool2d = _pool("max_pool2d", "MaxPool2D", "The largest number of each window.", max_pooling2d)
avg_pool2d = _pool("avg_pool2d", "AvgPool2D", "The mean of each window.", average_pooling2d)
max_pool3d = _pool("max_pool3d", "MaxPool3D", "The largest number of each window.", max_pooling3d)
avg_pool3d = _pool("avg_pool3d", "AvgPool3D", "The mean of each window.", average_pooling3d)


@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: int | None = None,
) -> Any:
    """In training, numbers kept with ``keep_prob`` and divided by it, the others 0."""
    with variable_scope(scope, "Dropout") as full:
        made = _dropout(inputs, 1.0 - keep_prob, noise_shape, seed, is_training)
        return collect_named_outputs(outputs_collections, full.original_name_scope, made)


@layer(
    "BiasAdd",
    f"activation_fn=None, initializer=None, regularizer=None, {SHARED}, data_format='NHWC', scope=None",
    initializer=initializers.zeros_initializer,
)
def bias_add(inputs: Any, **options: Any) -> Any:
    """A variable ``biases`` added to the channels."""
    tensor, data_format = convert_to_tensor(inputs), options["data_format"]
    size = tensor.type_.shape[1 if data_format.startswith("NC") else -1]
    given = (options[name] for name in ("initializer", "regularizer", "trainable"))
    return nn.bias_add(tensor, get_variable("biases", [size], tensor.dtype, *given), data_format)


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """Rows of a variable ``embeddings`` for a batch of sequences; ``unique`` is about speed alone."""
    if not reuse and (vocab_size is None or embed_dim is None):
        raise ValueError("embed_sequence: give vocab_size and embed_dim, or reuse=True.")
    shape = None if vocab_size is None else [vocab_size, embed_dim]
    with variable_scope(scope, "EmbedSequence", reuse=reuse):
        table = model_variable("embeddings", shape, float32, initializer, regularizer, trainable)
        return embeddings.embedding_lookup(table, ids)


@add_arg_scope
def spatial_softmax(
    features: Any,
    temperature: Any = None,
    name: str | None = None,
    variables_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
) -> Any:
    """For each channel the mean row and column, from -1 to 1, of the softmax over the image: all rows and columns.

    The features are divided by a variable, which begins with ``temperature`` or 1.
    """
    if data_format not in ("NHWC", "NCHW"):
        raise ValueError(f"spatial_softmax: data_format {data_format!r}, at {here()}. Use 'NHWC' or 'NCHW'.")
    features = convert_to_tensor(features)
    if data_format == "NHWC":
        features = shape_ops.transpose(features, [0, 3, 1, 2])
    channels, height, width = features.shape.as_list()[1:]
    if None in (channels, height, width):
        raise ValueError(
            f"spatial_softmax: {features} has unknown sizes, at {here()}. Give all but the batch's."
        )
    with variable_scope(name, "spatial_softmax"):
        first = initializers.constant_initializer(1.0 if temperature is None else temperature)
        options = {"trainable": trainable, "collections": variables_collections}
        temperature = model_variable("temperature", [], float32, first, **options)
        weights = nn.softmax(shape_ops.reshape(features, [-1, height * width]) / temperature)
        rows, columns = math.linspace(-1.0, 1.0, height), math.linspace(-1.0, 1.0, width)
        weights = shape_ops.reshape(weights, [-1, height, width])
        means = [math.reduce_sum(weights * shape_ops.expand_dims(rows, 1), [1, 2])]
        means.append(math.reduce_sum(weights * columns, [1, 2]))
        return shape_ops.reshape(shape_ops.stack(means, 1), [-1, channels * 2])


@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: Any = 1.0,
    off_value: Any = 0.0,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """Rows with ``on_value`` at the class of each label."""
    with name_scope(scope, "OneHotEncoding", [labels]) as full:
        made = shape_ops.one_hot(labels, num_classes, on_value, off_value, name="one_hot")
        return collect_named_outputs(outputs_collections, full, made)


linear = functools.partial(fully_connected, activation_fn=None)
relu = functools.partial(fully_connected, activation_fn=nn.relu)
relu6 = functools.partial(fully_connected, activation_fn=nn.relu6)
elu = functools.partial(fully_connected, activation_fn=nn.elu)


def _name_of(layer: Callable[..., Any], default: str) -> str:
    """That of a function, which may be given some of its arguments."""
    named = layer if hasattr(layer, "__name__") else getattr(layer, "func", None)
    return str(getattr(named, "__name__", default))


def repeat(inputs: Any, repetitions: int, layer: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A layer applied ``repetitions`` times, in scopes ``scope/scope_1``, ``scope/scope_2`` and so on.

    Without a scope they are in ``Repeat``, and called after the layer.
    """
    scope = kwargs.pop("scope", None)
    name = scope or _name_of(layer, "repeat")
    with variable_scope(scope, "Repeat"):
        for number in range(repetitions):
            inputs = layer(inputs, *args, scope=f"{name}_{number + 1}", **kwargs)
        return inputs


def stack(inputs: Any, layer: Callable[..., Any], stack_args: Any, **kwargs: Any) -> Any:
    """A layer applied once with each of ``stack_args``, its arguments after the first."""
    scope = kwargs.pop("scope", None)
    name = scope or _name_of(layer, "stack")
    with variable_scope(scope, "Stack"):
        for number, args in enumerate(stack_args):
            given = args if isinstance(args, (list, tuple)) else [args]
            inputs = layer(inputs, *given, scope=f"{name}_{number + 1}", **kwargs)
        return inputs


@example("tf.contrib.layers.maxout(tf.constant([[1.0, 5.0, 2.0, 4.0]]), 2)", "[[5. 4.]]")
@add_arg_scope
def maxout(inputs: Any, num_units: int, axis: int = -1, scope: Any = None) -> Any:
    """The largest numbers of ``num_units`` groups of neighbours along an axis."""
    with name_scope(scope, "MaxOut", [inputs]):
        tensor = convert_to_tensor(inputs)
        sizes = tensor.shape.as_list()
        along = axis % len(sizes)
        if sizes[along] is None or sizes[along] % num_units:
            raise ValueError(
                f"number of features({sizes[along]}) is not a multiple of num_units({num_units}), at {here()}."
            )
        counts = [-1 if size is None else size for size in sizes]
        grouped = [*counts[:along], num_units, sizes[along] // num_units, *counts[along + 1 :]]
        return math.reduce_max(shape_ops.reshape(tensor, grouped), along + 1, name="Max")


enter(
    __name__,
    {
        "python.layers python.layers.layers python.layers.initializers python.layers.regularizers": "contrib.layers",
        "python.layers.utils": "contrib.layer_utils",
    },
)

_COLUMNS = frozenset(
    [
        "bucketized_column",
        "crossed_column",
        "embedding_column",
        "one_hot_column",
        "real_valued_column",
        "sparse_column_with_hash_bucket",
        "sparse_column_with_integerized_feature",
        "sparse_column_with_keys",
        "sparse_column_with_vocabulary_file",
        "weighted_sparse_column",
        "create_feature_spec_for_parsing",
    ]
)


def __getattr__(name: str) -> Any:
    """A function of columns of features."""
    if name in _COLUMNS:
        return getattr(import_module("twofold.static.contrib.feature_columns"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
