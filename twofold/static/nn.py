"""Neural-network functions under TensorFlow's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twofold.dtypes import int64
from twofold.errors import ArgumentError, ShapeError
from twofold.lazy import attach as _attach
from twofold.ops.axes import given_once
from twofold.ops.base import apply, ops
from twofold.ops.random.sampling import sample_uniform
from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.array import reshape
from twofold.static.define import (
    Alone,
    Number,
    as_tensor,
    axis_of,
    convert_to_tensor,
    define,
    operation,
    sizes,
    whole,
)
from twofold.static.docstrings import example
from twofold.static.filled import top_k as top_k
from twofold.static.math import log_sigmoid as log_sigmoid
from twofold.static.math import sigmoid as sigmoid
from twofold.static.math import softplus as softplus
from twofold.static.math import tanh as tanh
from twofold.static.random import next_key
from twofold.static.renamed import renamed
from twofold.tracebacks import prepared as _prepared

if TYPE_CHECKING:
    from twofold.static import rnn_cell as rnn_cell
    from twofold.static.convolution import atrous_conv2d as atrous_conv2d
    from twofold.static.convolution import conv1d as conv1d
    from twofold.static.convolution import conv2d as conv2d
    from twofold.static.convolution import conv2d_backprop_input as conv2d_backprop_input
    from twofold.static.convolution import conv2d_transpose as conv2d_transpose
    from twofold.static.convolution import conv3d as conv3d
    from twofold.static.convolution import convolution as convolution
    from twofold.static.convolution import depthwise_conv2d as depthwise_conv2d
    from twofold.static.convolution import depthwise_conv2d_native as depthwise_conv2d_native
    from twofold.static.convolution import separable_conv2d as separable_conv2d
    from twofold.static.ctc import ctc_greedy_decoder as ctc_greedy_decoder
    from twofold.static.ctc import ctc_loss as ctc_loss
    from twofold.static.embeddings import embedding_lookup as embedding_lookup
    from twofold.static.embeddings import embedding_lookup_sparse as embedding_lookup_sparse
    from twofold.static.embeddings import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse
    from twofold.static.moments import moments as moments
    from twofold.static.moments import normalize_moments as normalize_moments
    from twofold.static.moments import sufficient_statistics as sufficient_statistics
    from twofold.static.moments import weighted_moments as weighted_moments
    from twofold.static.normalization_layers import fused_batch_norm as fused_batch_norm
    from twofold.static.pooling import avg_pool as avg_pool
    from twofold.static.pooling import avg_pool1d as avg_pool1d
    from twofold.static.pooling import avg_pool2d as avg_pool2d
    from twofold.static.pooling import avg_pool3d as avg_pool3d
    from twofold.static.pooling import local_response_normalization as local_response_normalization
    from twofold.static.pooling import lrn as lrn
    from twofold.static.pooling import max_pool as max_pool
    from twofold.static.pooling import max_pool1d as max_pool1d
    from twofold.static.pooling import max_pool2d as max_pool2d
    from twofold.static.pooling import max_pool3d as max_pool3d
    from twofold.static.pooling import max_pool_with_argmax as max_pool_with_argmax
    from twofold.static.pooling import pool as pool
    from twofold.static.random import multinomial as multinomial
    from twofold.static.raw_rnn import raw_rnn as raw_rnn
    from twofold.static.reordering import batch_to_space as batch_to_space
    from twofold.static.reordering import depth_to_space as depth_to_space
    from twofold.static.reordering import space_to_batch as space_to_batch
    from twofold.static.reordering import space_to_depth as space_to_depth
    from twofold.static.rnn import bidirectional_dynamic_rnn as bidirectional_dynamic_rnn
    from twofold.static.rnn import dynamic_rnn as dynamic_rnn
    from twofold.static.rnn import static_bidirectional_rnn as static_bidirectional_rnn
    from twofold.static.rnn import static_rnn as static_rnn
    from twofold.static.sampling import log_uniform_candidate_sampler as log_uniform_candidate_sampler
    from twofold.static.sampling import nce_loss as nce_loss
    from twofold.static.sampling import sampled_softmax_loss as sampled_softmax_loss
    from twofold.static.sampling import uniform_candidate_sampler as uniform_candidate_sampler

__getattr__, __dir__ = _attach(__name__, _prepared)

relu = renamed("Relu", "relu", "features")
relu6 = renamed("Relu6", "relu6", "features")
elu = renamed("Elu", "elu", "features")
selu = renamed("Selu", "selu", "features")
softsign = renamed("Softsign", "softsign", "features")
swish = renamed("Swish", "silu", "features")


@operation("ZeroFraction")
@example("tf.nn.zero_fraction([0.0, 1.0, 0.0, 3.0])", "0.5")
def zero_fraction(value: Any) -> Any:
    """The share of elements that are zero."""
    return ops.mean(ops.cast(ops.equal(value, 0), "float32"))


@operation("QuantizedReluX")
def quantized_relu_x(features: Any, max_value: Any) -> Any:
    """``features`` limited to 0 ... ``max_value``."""
    return ops.minimum(ops.relu(features), max_value)


@operation("LeakyRelu")
@example("tf.nn.leaky_relu([-1.0, 2.0])", "[-0.2  2. ]")
def leaky_relu(features: Any, alpha: Any = 0.2) -> Any:
    """x, or ``alpha * x`` below 0."""
    return ops.leaky_relu(features, alpha)


@operation("CRelu")
@example("tf.nn.crelu([-1.0, 2.0])", "[0. 2. 1. 0.]")
def crelu(features: Any) -> Any:
    """relu(x) beside relu(-x)."""
    return ops.concat([ops.relu(features), ops.relu(ops.negative(features))], -1)


@operation("Softmax", older={"dim": "axis"})
@example("tf.nn.softmax([[0.0, 0.0], [5.0, 5.0]])", "[[0.5 0.5]\n [0.5 0.5]]")
def softmax(logits: Any, axis: Number = None) -> Any:
    """exp(x) over the sum of exp(x) along ``axis`` (the last unless given)."""
    return ops.softmax(logits, -1 if axis is None else axis_of(axis))


@operation("LogSoftmax", older={"dim": "axis"})
@example("tf.nn.log_softmax([0.0, 0.0])", "[-0.6931472 -0.6931472]")
def log_softmax(logits: Any, axis: Number = None) -> Any:
    """The logarithm of ``softmax``."""
    return ops.log_softmax(logits, -1 if axis is None else axis_of(axis))


@operation("SoftmaxCrossEntropyWithLogits", name_at=4, older={"dim": "axis"})
@example(
    "tf.nn.softmax_cross_entropy_with_logits_v2(labels=[[1.0, 0.0]], logits=[[2.0, 0.0]])",
    "[0.12692805]",
)
def softmax_cross_entropy_with_logits_v2(
    _sentinel: Number = None, labels: Any = None, logits: Any = None, axis: Number = None
) -> Any:
    """For each row minus the sum of ``labels * log(softmax(logits))``; derivatives flow to labels, too."""
    _need_names(_sentinel, labels, logits)
    rows = ops.cast(labels, logits.dtype)
    return ops.softmax_cross_entropy_with_logits(rows, logits, -1 if axis is None else whole(axis))


@example(
    "tf.nn.softmax_cross_entropy_with_logits(labels=[[1.0, 0.0]], logits=[[2.0, 0.0]])",
    "[0.12692805]",
)
def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: Any = -1,
    name: str | None = None,
    axis: Any = None,
) -> Any:
    """As ``softmax_cross_entropy_with_logits_v2``, but no derivative flows to ``labels``."""
    _need_names(_sentinel, labels, logits)
    along = given_once(dim=None if dim == -1 else dim, axis=axis)
    return softmax_cross_entropy_with_logits_v2(
        labels=math.stop_gradient(labels), logits=logits, axis=-1 if along is None else along, name=name
    )


@operation("SparseSoftmaxCrossEntropyWithLogits")
@example(
    "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0], logits=[[2.0, 0.0]])",
    "[0.12692805]",
)
def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Number = None, labels: Alone = None, logits: Any = None
) -> Any:
    """Minus the logarithm of ``softmax(logits)`` at the class number of each row; IndexError for no class."""
    _need_names(_sentinel, labels, logits)
    if labels.ndim != logits.ndim - 1:
        raise ArgumentError(
            f"labels of {labels.ndim} axes for logits of {logits.ndim}",
            "Labels have one axis less: one class number a row.",
        )
    return ops.sparse_softmax_cross_entropy_with_logits(labels, logits)


def _need_names(sentinel: Any, labels: Any, logits: Any) -> None:
    if sentinel is not None or labels is None or logits is None:
        raise ValueError("cross entropy takes labels= and logits= by name. Write both names.")


@operation("SigmoidCrossEntropyWithLogits")
@example(
    "tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 1.0], logits=[0.0, 1000.0])",
    "[0.6931472 0.       ]",
)
def sigmoid_cross_entropy_with_logits(
    _sentinel: Number = None, labels: Alone = None, logits: Alone = None
) -> Any:
    """For each element the cross entropy of ``labels`` with ``sigmoid(logits)``."""
    _need_names(_sentinel, labels, logits)
    return ops.binary_cross_entropy_with_logits(logits, labels, reduction="none")


@operation("WeightedCrossEntropyWithLogits", older={"labels": "targets"})
@example(
    "tf.nn.weighted_cross_entropy_with_logits([1.0, 0.0], [0.0, 0.0], pos_weight=2.0)",
    "[1.3862944 0.6931472]",
)
def weighted_cross_entropy_with_logits(
    targets: Any = None, logits: Any = None, pos_weight: Any = None
) -> Any:
    """``sigmoid_cross_entropy_with_logits`` with the positive labels weighted."""
    weight = ops.add(ops.multiply(targets, pos_weight - 1.0), 1.0)
    soft = ops.softplus(ops.negative(logits))
    return ops.add(ops.multiply(ops.subtract(1.0, targets), logits), ops.multiply(weight, soft))


@operation("LogPoissonLoss")
@example("tf.nn.log_poisson_loss([1.0, 2.0], [0.0, 0.0])", "[1. 1.]")
def log_poisson_loss(targets: Alone, log_input: Alone, compute_full_loss: Number = False) -> Any:
    """``exp(log_input) - targets * log_input``; in full with Stirling's approximation of ``log(targets!)``."""
    targets = ops.cast(targets, log_input.dtype)
    loss = ops.subtract(ops.exp(log_input), ops.multiply(log_input, targets))
    if not compute_full_loss:
        return loss
    near = ops.add(
        ops.subtract(ops.multiply(targets, ops.log(targets)), targets),
        ops.multiply(ops.log(ops.multiply(targets, 6.283185307179586)), 0.5),
    )
    inside = ops.logical_and(ops.greater_equal(targets, 0.0), ops.less_equal(targets, 1.0))
    return ops.add(loss, ops.where(inside, 0.0, near))


@operation("L2Loss")
@example("tf.nn.l2_loss([3.0, 4.0])", "12.5")
def l2_loss(t: Any) -> Any:
    """Half the sum of squares."""
    return ops.multiply(ops.sum(ops.square(t)), 0.5)


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


def _dropped(value: Any, rate: Any, shape: Any, key: int, counter: Any) -> Any:
    if shape is None:
        return apply("random_dropout", value, key, counter, rate)
    kept = ops.greater_equal(sample_uniform(key, counter, sizes(shape), value.dtype), rate)
    return ops.where(kept, ops.divide(value, ops.subtract(1.0, rate)), 0.0)


@example("tf.nn.dropout([1.0, 2.0], keep_prob=1.0)", "[1. 2.]")
def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Any:
    """Each element kept with probability ``keep_prob`` and divided by it, else 0; new in every run.

    Raises ValueError unless exactly one of ``keep_prob`` and ``rate`` is given.
    """
    if (keep_prob is None) == (rate is None):
        raise ValueError("dropout: give exactly one of keep_prob and rate.")
    if rate is None:
        rate = 1.0 - keep_prob if isinstance(keep_prob, (int, float)) else math.subtract(1.0, keep_prob)
    # a scalar, whatever is known of it: otherwise a rate of unknown rank would hide the shape of the result
    rate = float(rate) if isinstance(rate, (int, float)) else reshape(as_tensor(rate), [])
    if isinstance(rate, float) and not 0 <= rate <= 1:
        raise ValueError(f"dropout: a probability of {1 - rate} is outside 0 to 1. Use one inside.")
    keywords = {"value": convert_to_tensor(x), "rate": rate, "shape": noise_shape, "key": next_key(seed)}
    return define("Dropout", _dropped, (), keywords, name or "dropout", frozenset({"shape"}), True).outputs[0]


@operation("BatchNormalization", default="batchnorm")
@example("tf.nn.batch_normalization([1.0, 3.0], 2.0, 1.0, None, None, 0.0)", "[-1.  1.]")
def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any
) -> Any:
    """``scale * (x - mean) / sqrt(variance + epsilon) + offset``."""
    factor = ops.rsqrt(ops.add(variance, variance_epsilon))
    factor = factor if scale is None else ops.multiply(factor, scale)
    shift = ops.multiply(ops.negative(mean), factor)
    return ops.add(ops.multiply(x, factor), shift if offset is None else ops.add(offset, shift))


def batch_norm_with_global_normalization(
    t: Any,
    m: Any,
    v: Any,
    beta: Any,
    gamma: Any,
    variance_epsilon: float,
    scale_after_normalization: bool,
    name: str | None = None,
) -> Any:
    """``batch_normalization`` with ``gamma`` only where it is wanted."""
    return batch_normalization(
        t, m, v, beta, gamma if scale_after_normalization else None, variance_epsilon, name
    )


@operation("L2Normalize", older={"dim": "axis"})
@example("tf.nn.l2_normalize([3.0, 4.0], 0)", "[0.6 0.8]")
def l2_normalize(x: Any, axis: Number = None, epsilon: Any = 1e-12) -> Any:
    """``x`` over its norm along ``axis``."""
    total = ops.sum(ops.square(x), axis_of(axis), True)
    return ops.multiply(x, ops.rsqrt(ops.maximum(total, epsilon)))


@operation("InTopK")
@example("tf.nn.in_top_k([[0.1, 0.9, 0.5], [0.1, 0.9, 0.5]], [2, 0], 2)", "[ True False]")
def in_top_k(predictions: Any, targets: Alone, k: Number) -> Any:
    """Whether the score at each target is among the ``k`` largest of its row."""
    wanted = ops.take_along_dim(predictions, ops.unsqueeze(ops.cast(targets, int64), -1), -1)
    return ops.less(ops.sum(ops.cast(ops.greater(predictions, wanted), int64), -1), whole(k))


@example("tf.nn.xw_plus_b([[1.0, 2.0]], [[1.0], [1.0]], [10.0])", "[[13.]]")
def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """``matmul(x, weights) + biases``."""
    return bias_add(math.matmul(x, weights), biases, name=name or "xw_plus_b")


@example("tf.nn.relu_layer([[1.0, 2.0]], [[1.0, -1.0], [1.0, -1.0]], [0.5, 0.5])", "[[3.5 0. ]]")
def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """``relu(matmul(x, weights) + biases)``."""
    return relu(xw_plus_b(x, weights, biases), name=name or "relu_layer")
