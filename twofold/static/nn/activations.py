"""Activations, softmax and dropout."""

from __future__ import annotations

from typing import Any

from twofold.ops.base import apply, ops
from twofold.ops.random.sampling import sample_uniform
from twofold.static import math
from twofold.static.api.aliases import renamed
from twofold.static.api.op_functions import (
    Number,
    as_tensor,
    axis_of,
    convert_to_tensor,
    define,
    operation,
    sizes,
    whole,
)
from twofold.static.arrays.shape_ops import reshape
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph_elements import importable
from twofold.static.random import next_key

relu = renamed("Relu", "relu", "features")
relu6 = renamed("Relu6", "relu6", "features")
elu = renamed("Elu", "elu", "features")
softsign = renamed("Softsign", "softsign", "features")
swish = renamed("Swish", "silu", "features")


_SELU_SCALE = 1.0507009873554804934193349852946


@operation("Selu")
@example("tf.nn.selu([-1.0, 2.0])", "[-1.1113307  2.101402 ]")
def selu(features: Any) -> Any:
    """Scaled exponential linear units: ``scale * x``, below 0 ``scale * alpha * (exp(x) - 1)``.

    At 0 the derivative is ``scale``.
    """
    return ops.where(ops.less(features, 0), ops.selu(features), ops.multiply(features, _SELU_SCALE))


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


@operation("CRelu", name_at=1)
@example("tf.nn.crelu([-1.0, 2.0])", "[0. 2. 1. 0.]")
def crelu(features: Any, axis: Number = -1) -> Any:
    """relu(x) beside relu(-x) along ``axis``."""
    return ops.concat([ops.relu(features), ops.relu(ops.negative(features))], whole(axis))


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


@importable
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
