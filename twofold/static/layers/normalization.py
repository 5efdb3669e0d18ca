"""Batch normalisation: the layer with its variables, and the function over images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.errors import ArgumentError
from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static import initializers, math, nn
from twofold.static.api.docstrings import example
from twofold.static.api.op_functions import convert_to_tensor, refuse
from twofold.static.arrays import shape_ops
from twofold.static.control_flow.conditional import cond
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.graph import get_default_graph
from twofold.static.nn.normalization import moments
from twofold.static.nn.pooling import channels_first
from twofold.static.variables.variable import update
from twofold.static.variables.variable_scope import get_variable, variable_scope


@example("print(tf.layers.batch_normalization(tf.zeros([2, 3]), training=True).shape)", "(2, 3)")
def batch_normalization(
    inputs: Any,
    axis: Any = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = None,
    gamma_initializer: Any = None,
    moving_mean_initializer: Any = None,
    moving_variance_initializer: Any = None,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: Any = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Any = None,
) -> Any:
    """Normalised over all axes but ``axis``; in training by the batch, otherwise by moving averages.

    The updates of the averages are in the collection ``GraphKeys.UPDATE_OPS``; run them with the training step. Over
    images (``fused``: for four axes unless False) the moving variance is the unbiased one, as TensorFlow's is.
    """
    refuse(
        "batch_normalization",
        renorm=renorm,
        renorm_clipping=renorm_clipping,
        renorm_momentum=renorm_momentum != 0.99,
        virtual_batch_size=virtual_batch_size,
        adjustment=adjustment,
    )
    tensor = convert_to_tensor(inputs)
    position = _axis(axis, tensor.type_.ndim)
    unbiased = tensor.type_.ndim == 4 if fused is None else fused
    with variable_scope(name, "batch_normalization", reuse=reuse):
        layer = _Layer(tensor, position, epsilon, unbiased)
        gamma = (gamma_initializer, 1.0, trainable, gamma_regularizer, gamma_constraint)
        layer.gamma = layer.variable("gamma", *gamma) if scale else None
        beta = (beta_initializer, 0.0, trainable, beta_regularizer, beta_constraint)
        layer.beta = layer.variable("beta", *beta) if center else None
        layer.mean = layer.variable("moving_mean", moving_mean_initializer)
        layer.variance = layer.variable("moving_variance", moving_variance_initializer, 1.0)
        return layer.made(training, momentum)


def _axis(axis: Any, ndim: int) -> int:
    given = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    if len(given) != 1 or not -ndim <= given[0] < ndim:
        what = f"batch_normalization: axis {axis} of {ndim} axes, at {here()}"
        raise ArgumentError(what, "Give the one that is kept, that of the channels.")
    return int(given[0]) % ndim


class _Layer:
    mean: Any
    variance: Any
    gamma: Any
    beta: Any

    def __init__(self, tensor: Any, axis: int, epsilon: float, unbiased: bool) -> None:
        self.tensor, self.axis, self.epsilon, self.unbiased = tensor, axis, epsilon, unbiased
        self.ndim = tensor.type_.ndim
        self.over = [position for position in range(self.ndim) if position != axis]

    def variable(
        self,
        name: str,
        initializer: Any,
        first: float = 0.0,
        trainable: bool = False,
        regularizer: Any = None,
        constraint: Any = None,
    ) -> Any:
        shape = [self.tensor.type_.shape[self.axis]]
        start = initializer or initializers.constant_initializer(first)
        return get_variable(
            name, shape, self.tensor.dtype, start, regularizer, trainable, constraint=constraint
        )

    def _wide(self, value: Any) -> Any:
        if value is None or self.axis == self.ndim - 1:
            return value
        return shape_ops.reshape(value, [-1 if position == self.axis else 1 for position in range(self.ndim)])

    def _normalized(self, mean: Any, variance: Any) -> Any:
        mean, variance, beta, gamma = map(self._wide, (mean, variance, self.beta, self.gamma))
        return nn.batch_normalization(self.tensor, mean, variance, beta, gamma, self.epsilon)

    def _by_batch(self) -> list[Any]:
        mean, variance = moments(self.tensor, self.over)
        kept = _unbiased(self.tensor, self.axis, variance) if self.unbiased else variance
        return [self._normalized(mean, variance), mean, kept]

    def _by_average(self) -> list[Any]:
        return [self._normalized(self.mean, self.variance), self.mean.value(), self.variance.value()]

    def made(self, training: Any, momentum: float) -> Any:
        if isinstance(training, (bool, int)):
            found = self._by_batch() if training else self._by_average()
        else:
            found = cond(training, self._by_batch, self._by_average)
        if not isinstance(training, (bool, int)) or training:
            for average, value in ((self.mean, found[1]), (self.variance, found[2])):
                kept = update("AssignMovingAvg", [average], _moved, [value], {"momentum": momentum}, None)
                get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, kept)
        return found[0]


def _moved(state: Any, value: Any, momentum: float) -> Any:
    return ops.add(ops.multiply(state, momentum), ops.multiply(value, 1.0 - momentum))


def _unbiased(tensor: Any, axis: int, variance: Any) -> Any:
    count = math.cast(shape_ops.size(tensor) // shape_ops.shape(tensor)[axis], variance.dtype)
    return variance * (count / math.maximum(count - 1.0, 1.0))


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Any, Any, Any]:
    """Images normalised by channel, and mean and (in training, unbiased) variance of the batch.

    With an ``exponential_avg_factor`` below 1 in training, these are that share of the batch's and the rest of ``mean``
    and ``variance``.
    """
    value = convert_to_tensor(x)
    axis = (
        1 if channels_first("fused_batch_norm", data_format, value.type_.ndim - 2) else value.type_.ndim - 1
    )
    shape: Sequence[int] = [-1 if position == axis else 1 for position in range(value.type_.ndim)]

    def normalized(centre: Any, deviation: Any) -> Any:
        given = (centre, deviation, offset, scale)
        centre, deviation, beta, gamma = (shape_ops.reshape(convert_to_tensor(v), shape) for v in given)
        return nn.batch_normalization(value, centre, deviation, beta, gamma, epsilon, name)

    if not is_training:
        if mean is None or variance is None:
            what = f"fused_batch_norm: mean and variance are needed without training, at {here()}"
            raise ArgumentError(what, "Give both.")
        return normalized(mean, variance), convert_to_tensor(mean), convert_to_tensor(variance)
    centre, deviation = moments(value, [position for position in range(value.type_.ndim) if position != axis])
    made, kept = normalized(centre, deviation), _unbiased(value, axis, deviation)
    if exponential_avg_factor != 1.0:
        rest = 1.0 - exponential_avg_factor
        centre = centre * exponential_avg_factor + convert_to_tensor(mean) * rest
        kept = kept * exponential_avg_factor + convert_to_tensor(variance) * rest
    return made, centre, kept
