"""Keras's layers: ``tf.keras.layers``, rows of a table over the functions of ``tf.layers`` and ``tf.nn``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from twofold.runtime.tracing import here
from twofold.static import layers, math, nn, random
from twofold.static.api.signatures import defaults_of, takes, with_parameters
from twofold.static.arrays import creation, shape_ops
from twofold.static.control_flow.conditional import cond
from twofold.static.keras import backend_shapes, masking, regularizers
from twofold.static.keras.attention import AdditiveAttention as AdditiveAttention
from twofold.static.keras.attention import Attention as Attention
from twofold.static.keras.base_layer import Layer as Layer
from twofold.static.keras.base_layer import made_from
from twofold.static.keras.conv_recurrent import ConvLSTM2D as ConvLSTM2D
from twofold.static.keras.local_layers import locally_connected
from twofold.static.keras.merge_layers import Add as Add
from twofold.static.keras.merge_layers import Average as Average
from twofold.static.keras.merge_layers import Concatenate as Concatenate
from twofold.static.keras.merge_layers import Dot as Dot
from twofold.static.keras.merge_layers import Maximum as Maximum
from twofold.static.keras.merge_layers import Minimum as Minimum
from twofold.static.keras.merge_layers import Multiply as Multiply
from twofold.static.keras.merge_layers import Subtract as Subtract
from twofold.static.keras.merge_layers import add as add
from twofold.static.keras.merge_layers import average as average
from twofold.static.keras.merge_layers import concatenate as concatenate
from twofold.static.keras.merge_layers import dot as dot
from twofold.static.keras.merge_layers import maximum as maximum
from twofold.static.keras.merge_layers import minimum as minimum
from twofold.static.keras.merge_layers import multiply as multiply
from twofold.static.keras.merge_layers import subtract as subtract
from twofold.static.keras.models import Input as Input
from twofold.static.keras.models import InputLayer as InputLayer
from twofold.static.keras.named import found_in
from twofold.static.keras.named import serialize as serialize
from twofold.static.keras.recurrent import GRU as GRU
from twofold.static.keras.recurrent import LSTM as LSTM
from twofold.static.keras.recurrent import Bidirectional as Bidirectional
from twofold.static.keras.recurrent import GRUCell as GRUCell
from twofold.static.keras.recurrent import LSTMCell as LSTMCell
from twofold.static.keras.recurrent import SimpleRNN as SimpleRNN
from twofold.static.keras.recurrent import SimpleRNNCell as SimpleRNNCell
from twofold.static.keras.recurrent import TimeDistributed as TimeDistributed
from twofold.static.keras.recurrent import Wrapper as Wrapper
from twofold.static.keras.stepping import RNN as RNN
from twofold.static.keras.stepping import AbstractRNNCell as AbstractRNNCell
from twofold.static.keras.stepping import StackedRNNCells as StackedRNNCells
from twofold.static.keras.table import layer_of
from twofold.static.layers.convolutional import Variables, for_each_axis, layer_parameters
from twofold.static.layers.graph_collections import with_loss
from twofold.static.layers.layer import InputSpec as InputSpec
from twofold.static.nn.batch_statistics import batch_moments
from twofold.static.nn.embeddings import embedding_lookup
from twofold.static.variables.variable_scope import get_variable


def _of_layers(name: str, **defaults: Any) -> Any:
    function, *example = layers.OBJECTS[name]
    return layer_of(
        name, function, f"``tf.layers.{function.__name__}`` as Keras has it.", *example, **defaults
    )


def _transposed(name: str, count: int) -> Any:
    """The transposed convolution of ``tf.layers``, with padding of the output at Keras's place among the parameters."""
    function, *example = layers.OBJECTS[name]
    own = dict(list(defaults_of(function).items()))
    first = ("inputs", "filters", "kernel_size", "strides", "padding")
    between = {"output_padding": None, "data_format": None, **({"dilation_rate": 1} if count == 2 else {})}
    rest = {key: value for key, value in own.items() if key not in (*first, "data_format")}
    convolve = inspect.unwrap(function)

    def body(**given: Any) -> Any:
        rate = given.pop("dilation_rate", 1)
        if for_each_axis(rate, count) != [1] * count:
            raise ValueError(f"{name}: dilation_rate is not offered, at {here()}. Leave it out.")
        return _call(convolve, given)

    taken = with_parameters(body, {**{key: own[key] for key in first}, **between, **rest}, function)
    return layer_of(name, taken, f"``tf.layers.{function.__name__}`` as Keras has it.", *example)


def _call(function: Callable[..., Any], given: dict[str, Any]) -> Any:
    return function(given.pop("inputs"), **given)


Dense, BatchNormalization, Flatten, Dropout = map(
    _of_layers, ("Dense", "BatchNormalization", "Flatten", "Dropout")
)
Conv1D, Conv2D, Conv3D = (_of_layers(f"Conv{count}D") for count in (1, 2, 3))
Conv2DTranspose, Conv3DTranspose = _transposed("Conv2DTranspose", 2), _transposed("Conv3DTranspose", 3)
SeparableConv1D, SeparableConv2D = _of_layers("SeparableConv1D"), _of_layers("SeparableConv2D")


@takes(**layer_parameters("depthwise"))
def _depthwise_conv2d(
    inputs: Any,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    depth_multiplier: int = 1,
    data_format: str = "channels_last",
    **options: Any,
) -> Any:
    made = Variables("DepthwiseConv2D", inputs, options, 2, data_format)
    shape = [*for_each_axis(kernel_size, 2), made.channels, depth_multiplier]
    kernel = made.variable("depthwise_kernel", shape, "depthwise")
    steps = for_each_axis(strides, 2)
    result = nn.depthwise_conv2d(made.tensor, kernel, steps, padding.upper(), data_format=made.data_format)
    return made.finish(result, made.channels * depth_multiplier)


DepthwiseConv2D = layer_of(
    "DepthwiseConv2D",
    _depthwise_conv2d,
    "Each channel convolved on its own: variables ``depthwise_kernel`` and ``bias``.",
    "(3)",
    "[2, 4, 4, 3]",
    "(2, 2, 2, 3)",
)


_VARIABLES = "reuse=None, trainable=True, name=None"


def _variable(key: str, shape: list[Any], dtype: Any, options: dict[str, Any]) -> Any:
    """A variable with the options of its name."""
    first, penalty = options[f"{key}_initializer"], options[f"{key}_regularizer"]
    more = {"trainable": options["trainable"], "constraint": options[f"{key}_constraint"]}
    return get_variable(key, shape, dtype, first, penalty, **more)


@takes(
    "axis=-1, epsilon=0.001, center=True, scale=True, beta_initializer='zeros', gamma_initializer='ones', "
    "beta_regularizer=None, gamma_regularizer=None, beta_constraint=None, gamma_constraint=None, "
    f"{_VARIABLES}"
)
def _layer_normalization(inputs: Any, **options: Any) -> Any:
    sizes, axis = inputs.type_.shape, options["axis"]
    axes = sorted(one % len(sizes) for one in ([axis] if isinstance(axis, int) else axis))
    own = [sizes[k] for k in axes]
    broadcast = [size if k in axes else 1 for k, size in enumerate(sizes)]
    gamma, beta = (
        shape_ops.reshape(_variable(key, own, inputs.dtype, options), broadcast) if options[wanted] else None
        for key, wanted in (("gamma", "scale"), ("beta", "center"))
    )
    mean, variance = batch_moments(inputs, axes, True)
    return nn.batch_normalization(inputs, mean, variance, beta, gamma, options["epsilon"])


LayerNormalization = layer_of(
    "LayerNormalization",
    _layer_normalization,
    "Mean 0 and variance 1 of each sample over ``axis``, times ``gamma`` plus ``beta`` (Ba et al., 2016).",
    "()",
    "[2, 3]",
    "(2, 3)",
)
_WINDOWS = {"pool_size": 2, "strides": None}
MaxPooling1D, MaxPooling2D, MaxPooling3D = (
    _of_layers(f"MaxPooling{count}D", **_WINDOWS) for count in (1, 2, 3)
)
AveragePooling1D, AveragePooling2D, AveragePooling3D = (
    _of_layers(f"AveragePooling{count}D", **_WINDOWS) for count in (1, 2, 3)
)


def _overall(name: str, reduce: Callable[..., Any], words: str, count: int) -> Any:
    def function(inputs: Any, data_format: Any = None, mask: Any = None) -> Any:
        first = 1 if data_format == "channels_last" else 2
        if mask is not None and name == "GlobalAveragePooling1D":
            return masking.mean_of_steps(inputs, first, mask)
        return reduce(inputs, list(range(first, first + count)))

    shape = ", ".join(["2", *["4"] * count, "3"])
    return layer_of(
        name, function, f"The {words} over all {count} axes of positions.", "()", f"[{shape}]", "(2, 3)"
    )


GlobalAveragePooling1D = _overall("GlobalAveragePooling1D", math.reduce_mean, "mean", 1)
GlobalAveragePooling2D = _overall("GlobalAveragePooling2D", math.reduce_mean, "mean", 2)
GlobalMaxPooling1D = _overall("GlobalMaxPooling1D", math.reduce_max, "largest element", 1)
GlobalMaxPooling2D = _overall("GlobalMaxPooling2D", math.reduce_max, "largest element", 2)
GlobalAveragePooling3D = _overall("GlobalAveragePooling3D", math.reduce_mean, "mean", 3)
GlobalMaxPooling3D = _overall("GlobalMaxPooling3D", math.reduce_max, "largest element", 3)


def _rows(inputs: Any) -> Any:
    size = inputs.type_.shape[0]
    return size if size >= 0 else shape_ops.shape(inputs)[0]


def _reshape(inputs: Any, target_shape: Any) -> Any:
    given, wanted = inputs.type_.shape[1:], [int(size) for size in target_shape]
    if -1 in wanted and min(given, default=0) >= 0:
        total, others = functools.reduce(int.__mul__, given, 1), -functools.reduce(int.__mul__, wanted, 1)
        wanted[wanted.index(-1)] = total // max(others, 1)
    return shape_ops.reshape(inputs, [_rows(inputs), *wanted])


def _pairs(widths: Any, count: int) -> list[list[int]]:
    given = [widths] * count if isinstance(widths, int) else list(widths)
    return [[one, one] if isinstance(one, int) else list(one) for one in given]


def _padding(count: int) -> Callable[..., Any]:
    def function(inputs: Any, padding: Any = 1, data_format: Any = None) -> Any:
        given = padding if count > 1 or isinstance(padding, int) else [padding]
        widths = _pairs(given, count)
        sides = [[0, 0], *widths] if data_format == "channels_first" else [*widths, [0, 0]]
        return creation.pad(inputs, [[0, 0], *sides])

    return _without_format(function) if count == 1 else function


def _without_format(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of steps, whose channels come last."""
    own = {key: value for key, value in defaults_of(function).items() if key != "data_format"}
    return with_parameters(lambda **given: function(data_format="channels_last", **given), own)


def _cropping(count: int) -> Callable[..., Any]:
    def function(inputs: Any, cropping: Any = 1 if count < 2 else 0, data_format: Any = None) -> Any:
        given = cropping if count > 1 or isinstance(cropping, int) else [cropping]
        first = [slice(None)] * (2 if data_format == "channels_first" else 1)
        return inputs[(*first, *[slice(low, -high or None) for low, high in _pairs(given, count)])]

    return _without_format(function) if count == 1 else function


def _up_sampling1d(inputs: Any, size: int = 2) -> Any:
    return shape_ops.repeat(inputs, int(size), 1)


def _up_sampling2d(
    inputs: Any, size: Any = (2, 2), data_format: Any = None, interpolation: str = "nearest"
) -> Any:
    rows, columns = for_each_axis(size, 2)
    return backend_shapes.resize_images(inputs, rows, columns, data_format, interpolation)


def _up_sampling3d(inputs: Any, size: Any = (2, 2, 2), data_format: Any = None) -> Any:
    depth, rows, columns = for_each_axis(size, 3)
    return backend_shapes.resize_volumes(inputs, depth, rows, columns, data_format)


Activation = layer_of(
    "Activation",
    lambda inputs, activation: activation(inputs),
    "A function of each element.",
    "('relu')",
    "[2]",
    "(2,)",
)
Reshape = layer_of(
    "Reshape", _reshape, "Each element of a batch in another shape.", "((3, 2))", "[4, 6]", "(4, 3, 2)"
)
Permute = layer_of(
    "Permute",
    lambda inputs, dims: shape_ops.transpose(inputs, [0, *dims]),
    "Axes in another order; 1 is the first one behind the batch.",
    "((2, 1))",
    "[4, 2, 3]",
    "(4, 3, 2)",
)
RepeatVector = layer_of(
    "RepeatVector",
    lambda inputs, n: shape_ops.tile(shape_ops.expand_dims(inputs, 1), [1, n, 1]),
    "Each vector ``n`` times.",
    "(3)",
    "[4, 2]",
    "(4, 3, 2)",
)


def _edges(name: str, function: Callable[..., Any], words: str, count: int, size: int) -> Any:
    """The layer that changes the sizes of ``count`` axes, which are 4 in its example, to ``size``."""
    shapes = [", ".join(["1", *[str(one)] * count, "3"]) for one in (4, size)]
    return layer_of(f"{name}{count}D", function, words, "()", f"[{shapes[0]}]", f"({shapes[1]})")


ZeroPadding1D, ZeroPadding2D, ZeroPadding3D = (
    _edges("ZeroPadding", _padding(count), "Zeros around.", count, 6) for count in (1, 2, 3)
)
Cropping1D, Cropping2D, Cropping3D = (
    _edges("Cropping", _cropping(count), "Without edges.", count, 2 if count < 2 else 4)
    for count in (1, 2, 3)
)
UpSampling1D, UpSampling3D = (
    _edges("UpSampling", function, "Each element ``size`` times along each axis.", count, 8)
    for count, function in ((1, _up_sampling1d), (3, _up_sampling3d))
)
UpSampling2D = layer_of(
    "UpSampling2D",
    _up_sampling2d,
    "Larger images: each element repeated, or interpolated.",
    "(2)",
    "[1, 2, 2, 3]",
    "(1, 4, 4, 3)",
)


def _relu(inputs: Any, max_value: Any = None, negative_slope: Any = 0.0, threshold: Any = 0.0) -> Any:
    return backend_shapes.relu(inputs, negative_slope, max_value, threshold)


def _elu(inputs: Any, alpha: float = 1.0) -> Any:
    return math.maximum(inputs, 0.0) + alpha * math.expm1(math.minimum(inputs, 0.0))


ReLU = layer_of("ReLU", _relu, "``max(x, 0)``, up to ``max_value``.", "()", "[2]", "(2,)")
LeakyReLU = layer_of(
    "LeakyReLU",
    lambda inputs, alpha=0.3: nn.leaky_relu(inputs, alpha),
    "``max(x, alpha * x)``.",
    "()",
    "[2]",
    "(2,)",
)


@takes(
    f"alpha_initializer='zeros', alpha_regularizer=None, alpha_constraint=None, shared_axes=None, {_VARIABLES}"
)
def _prelu(inputs: Any, **options: Any) -> Any:
    given = options["shared_axes"]
    shared = [given] if isinstance(given, int) else given or []
    shape = [1 if axis in shared else size for axis, size in enumerate(inputs.type_.shape) if axis]
    return nn.relu(inputs) - _variable("alpha", shape, inputs.dtype, options) * nn.relu(-inputs)


PReLU = layer_of(
    "PReLU",
    _prelu,
    "``x``, below zero ``alpha * x`` with a variable (He et al. 2015).",
    "()",
    "[2, 3]",
    "(2, 3)",
)
ThresholdedReLU = layer_of(
    "ThresholdedReLU",
    lambda inputs, theta=1.0: inputs * math.cast(math.greater(inputs, theta), inputs.dtype),
    "``x`` where it is above ``theta``, else 0 (Konda et al. 2015).",
    "()",
    "[2]",
    "(2,)",
)
ELU = layer_of("ELU", _elu, "``x``, below zero ``alpha * (exp(x) - 1)``.", "()", "[2]", "(2,)")
Softmax = layer_of(
    "Softmax", lambda inputs, axis=-1: nn.softmax(inputs, axis), "``tf.nn.softmax``.", "()", "[2]", "(2,)"
)


def _while_training(change: Callable[[Any], Any], inputs: Any, training: Any) -> Any:
    if isinstance(training, (bool, int)):
        return change(inputs) if training else inputs
    return cond(training, lambda: change(inputs), lambda: shape_ops.identity(inputs))


def _normal(inputs: Any, mean: float, stddev: Any) -> Any:
    return random.random_normal(shape_ops.shape(inputs), mean, stddev, inputs.dtype)


def _noisy(inputs: Any, stddev: Any, training: Any = None) -> Any:
    return _while_training(lambda value: value + _normal(value, 0.0, stddev), inputs, training)


def _scaled(inputs: Any, rate: float, training: Any = None) -> Any:
    stddev = (rate / (1.0 - rate)) ** 0.5
    return _while_training(lambda value: value * _normal(value, 1.0, stddev), inputs, training)


def _dropped_channels(inputs: Any, rate: float, training: Any = None) -> Any:
    sizes = shape_ops.shape(inputs)
    kept = [sizes[0], *[1] * (inputs.type_.ndim - 2), sizes[-1]]
    return _while_training(lambda value: nn.dropout(value, rate=rate, noise_shape=kept), inputs, training)


GaussianNoise = layer_of("GaussianNoise", _noisy, "Normal noise while training.", "(0.1)", "[2, 3]", "(2, 3)")
GaussianDropout = layer_of(
    "GaussianDropout",
    _scaled,
    "Normal factors of mean 1 and variance ``rate / (1 - rate)`` while training.",
    "(0.1)",
    "[2, 3]",
    "(2, 3)",
)
SpatialDropout1D, SpatialDropout2D, SpatialDropout3D = (
    layer_of(
        f"SpatialDropout{count}D",
        _dropped_channels,
        "Whole channels of zeros while training.",
        "(0.1)",
        shape,
        wanted,
    )
    for count, shape, wanted in (
        (1, "[2, 4, 3]", "(2, 4, 3)"),
        (2, "[2, 4, 4, 3]", "(2, 4, 4, 3)"),
        (3, "[2, 4, 4, 4, 3]", "(2, 4, 4, 4, 3)"),
    )
)


@takes(
    "embeddings_initializer='uniform', embeddings_regularizer=None, activity_regularizer=None, "
    "embeddings_constraint=None, mask_zero=False, "
    f"{_VARIABLES}"
)
def _embedding(inputs: Any, input_dim: int, output_dim: int, **options: Any) -> Any:
    table = _variable("embeddings", [input_dim, output_dim], None, options)
    return with_loss(embedding_lookup(table, math.cast(inputs, "int32")), options["activity_regularizer"])


Embedding = layer_of("Embedding", _embedding, "Rows of a table by number.", "(10, 4)", "[2, 3]", "(2, 3, 4)")


class Lambda(Layer):
    """A function as a layer."""

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        mask: Any = None,
        arguments: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._function, self._arguments, self._mask = function, dict(arguments or {}), mask
        try:
            taken: Any = inspect.signature(function).parameters
        except ValueError:  # of a function in C
            taken = {}
        self.takes_training, self.takes_mask = (
            key in taken and key not in self._arguments for key in ("training", "mask")
        )

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask that was given, or what a function that was makes of the inputs and theirs."""
        return self._mask(inputs, mask) if callable(self._mask) else self._mask

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer; raises ArgumentError for a function without a name."""
        kind = {"function_type": "function", "output_shape": None, "output_shape_type": "raw"}
        own = {"function": serialize(self._function), "arguments": self._arguments, **kind}
        return {**self._base_config(), **own}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The layer of a configuration, whose function ``custom_objects`` have under its name."""
        known = ("name", "trainable", "dtype", "batch_input_shape", "arguments")
        function = found_in({}, "function", config["function"])
        return cls(function, **{key: config[key] for key in known if key in config})

    def call(self, inputs: Any, **more: Any) -> Any:
        """What the function makes of the inputs."""
        return self._function(inputs, **self._arguments, **more)


deserialize = made_from
MaxPool1D, MaxPool2D, AvgPool1D, AvgPool2D = MaxPooling1D, MaxPooling2D, AveragePooling1D, AveragePooling2D
GlobalAvgPool1D, GlobalAvgPool2D = GlobalAveragePooling1D, GlobalAveragePooling2D
GlobalMaxPool1D, GlobalMaxPool2D = GlobalMaxPooling1D, GlobalMaxPooling2D
AvgPool3D, MaxPool3D = AveragePooling3D, MaxPooling3D
GlobalAvgPool3D, GlobalMaxPool3D = GlobalAveragePooling3D, GlobalMaxPooling3D
Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
Convolution2DTranspose, Convolution3DTranspose = Conv2DTranspose, Conv3DTranspose
SeparableConvolution1D, SeparableConvolution2D = SeparableConv1D, SeparableConv2D


LocallyConnected1D = layer_of(
    "LocallyConnected1D",
    locally_connected(1),
    "A convolution over steps with a kernel and a bias for each position.",
    "(8, 3)",
    "[2, 9, 3]",
    "(2, 7, 8)",
)
LocallyConnected2D = layer_of(
    "LocallyConnected2D",
    locally_connected(2),
    "A convolution of images with a kernel and a bias for each position.",
    "(8, 3)",
    "[2, 5, 5, 3]",
    "(2, 3, 3, 8)",
)


def _masking(inputs: Any, mask_value: float = 0.0) -> Any:
    kept = math.reduce_any(math.not_equal(inputs, mask_value), -1, keepdims=True)
    made = inputs * math.cast(kept, inputs.dtype)
    made._keras_mask = shape_ops.squeeze(kept, [-1])
    return made


Masking = layer_of(
    "Masking",
    _masking,
    "Steps all of whose numbers are ``mask_value`` do not count for the layers behind; they are set to 0.",
    "()",
    "[2, 4, 3]",
    "(2, 4, 3)",
)


def _with_activity(inputs: Any, l1: float = 0.0, l2: float = 0.0) -> Any:
    return with_loss(shape_ops.identity(inputs), regularizers.l1_l2(l1, l2))


ActivityRegularization = layer_of(
    "ActivityRegularization",
    _with_activity,
    "The inputs, which add a penalty to the loss.",
    "()",
    "[2]",
    "(2,)",
)


def _alpha_dropout(
    inputs: Any, rate: float, noise_shape: Any = None, seed: int | None = None, training: Any = None
) -> Any:
    low, q = -1.7580993408473766, 1.0 - rate  # minus the scale of SELU times its alpha
    a = (q * (1.0 + rate * low * low)) ** -0.5
    b = -a * low * rate

    def dropped(value: Any) -> Any:
        shape = shape_ops.shape(value) if noise_shape is None else noise_shape
        kept = math.cast(random.random_uniform(shape, seed=seed) >= rate, value.dtype)
        return a * (value * kept + low * (1.0 - kept)) + b

    return _while_training(dropped, inputs, training) if 0.0 < rate < 1.0 else inputs


AlphaDropout = layer_of(
    "AlphaDropout",
    _alpha_dropout,
    "Dropout that keeps mean and variance of what SELU puts out, while training (Klambauer et al. 2017).",
    "(0.1)",
    "[2, 3]",
    "(2, 3)",
)

_KEEPING = (
    Activation, ActivityRegularization, AlphaDropout, BatchNormalization, Dense, Dropout, ELU, GaussianDropout,
    GaussianNoise, LayerNormalization, LeakyReLU, PReLU, Softmax, SpatialDropout1D, SpatialDropout2D,
    SpatialDropout3D, ThresholdedReLU,
)  # fmt: skip
for _one in _KEEPING:
    _one.supports_masking = True
setattr(Embedding, "compute_mask", masking.of_numbers)  # noqa: B010
