"""Batch normalisation: the layer with its variables, and the function over images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.dtypes import float32
from twofold.errors import ArgumentError, GraphError
from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static import initializers, math, nn
from twofold.static.api.op_functions import convert_to_tensor, refuse
from twofold.static.api.signatures import takes
from twofold.static.arrays import shape_ops
from twofold.static.control_flow.conditional import cond
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import describe, get_default_graph
from twofold.static.graph.graph_elements import importable
from twofold.static.graph.scopes import control_dependencies
from twofold.static.nn.batch_statistics import batch_moments
from twofold.static.nn.normalization import moments
from twofold.static.nn.pooling import channels_first
from twofold.static.optimizers.moving_averages import assign_moving_average
from twofold.static.python import tensor_util
from twofold.static.variables.variable import assign, update
from twofold.static.variables.variable_scope import get_variable, layer_scope


@example("print(tf.layers.batch_normalization(tf.zeros([2, 3]), training=True).shape)", "(2, 3)")
@takes(
    "axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True, beta_initializer=None, gamma_initializer=None, "
    "moving_mean_initializer=None, moving_variance_initializer=None, beta_regularizer=None, gamma_regularizer=None, "
    "beta_constraint=None, gamma_constraint=None, training=False, trainable=True, name=None, reuse=None, "
    "renorm=False, renorm_clipping=None, renorm_momentum=0.99, fused=None, virtual_batch_size=None, adjustment=None"
)
def batch_normalization(inputs: Any, **options: Any) -> Any:
    """Normalised over all axes but ``axis``; in training by the batch, otherwise by moving averages.

    ``axis`` may be several axes, such as ``[1, 2]``: then the variables have as many axes as ``inputs``, of size 1
    where it is normalised. The updates of the averages are in the collection ``GraphKeys.UPDATE_OPS``; run them with
    the training step. Over images (``fused``: for four axes, of which the second or the last is kept, unless False)
    the moving variance is the unbiased one, as TensorFlow's is. With
    ``renorm`` (Ioffe, 2017) training corrects towards averages of ``renorm_momentum``, which the updates move too;
    ``renorm_clipping`` limits the corrections by ``rmin``, ``rmax`` and ``dmax``.
    """
    return normalized(inputs, options)


def normalized(
    inputs: Any,
    options: dict[str, Any],
    fused_ranks: Sequence[int] = (4,),
    beta_first: bool = False,
    debiased: bool = False,
) -> Any:
    """``batch_normalization``.

    Args:
        inputs: The values.
        options: The arguments of ``batch_normalization`` by name.
        fused_ranks: How many axes there may be where ``fused`` has an effect.
        beta_first: Whether ``beta`` is made before ``gamma``.
        debiased: Whether the moving mean counts as started from zeros (``assign_moving_average``).
    """
    own = {name: options[name] for name in ("virtual_batch_size", "adjustment")}
    refuse("batch_normalization", **own)
    tensor, fused, renorm = convert_to_tensor(inputs), options["fused"], options["renorm"]
    if renorm and fused:
        raise ValueError(f"batch_normalization: both fused and renorm, at {here()}. Leave one out.")
    ndim = tensor.type_.ndim
    kept = _axes(options["axis"], ndim)
    for position in kept:
        if tensor.type_.shape[position] < 0:
            what = f"axis {position} of {describe(tensor)}, its channels, is of unknown size, at {here()}"
            raise GraphError(f"batch_normalization: {what}", "Give the placeholder all axes, and that size.")
    over_images = kept in ([1], [ndim - 1])
    if fused and not over_images:
        what = f"batch_normalization: fused=True with axis {options['axis']} of {ndim} axes, at {here()}"
        raise ValueError(f"{what}. Keep the second axis or the last one, or leave fused out.")
    fused = fused is not False and not renorm and over_images and ndim in fused_ranks
    with layer_scope(options["name"], "batch_normalization", options["reuse"]):
        kind = _Renormalized if renorm else _Layer
        layer = kind(tensor, kept, options["epsilon"], fused, options)
        parameters = [("gamma", "scale", 1.0), ("beta", "center", 0.0)]
        for name, wanted, first in reversed(parameters) if beta_first else parameters:
            made = layer.variable(name, first, options["trainable"]) if options[wanted] else None
            setattr(layer, name, made)
        layer.mean, layer.variance = (
            layer.variable("moving_mean", 0.0),
            layer.variable("moving_variance", 1.0),
        )
        layer.begin()
        return layer.made(options["training"], options["momentum"], debiased)


def _axes(axis: Any, ndim: int) -> list[int]:
    given = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    kept = [int(one) % ndim for one in given]
    if not kept or len(set(kept)) != len(kept) or not all(-ndim <= one < ndim for one in given):
        what = f"batch_normalization: axis {axis} of {ndim} axes, at {here()}"
        raise ArgumentError(
            what, "Give the one that is kept, that of the channels, or several different ones."
        )
    return kept


class _Layer:
    mean: Any
    variance: Any
    gamma: Any
    beta: Any

    def __init__(
        self, tensor: Any, axes: list[int], epsilon: float, fused: bool, options: dict[str, Any]
    ) -> None:
        self.tensor, self.axes, self.epsilon, self.fused = tensor, axes, epsilon, fused
        self.ndim, self._options = tensor.type_.ndim, options
        self.over = [position for position in range(self.ndim) if position not in axes]
        sizes = tensor.type_.shape
        wide = [sizes[position] if position in axes else 1 for position in range(self.ndim)]
        self.shape = [sizes[axes[0]]] if len(axes) == 1 else wide

    def variable(self, name: str, first: float, trainable: bool = False) -> Any:
        """A variable with the options of its name, that begins with a number unless an initializer is given."""
        start, regularizer, constraint = (
            self._options.get(f"{name}_{what}") for what in ("initializer", "regularizer", "constraint")
        )
        start = start or initializers.constant_initializer(first)
        return get_variable(
            name, self.shape, self.tensor.dtype, start, regularizer, trainable, constraint=constraint
        )

    def begin(self) -> None:
        """Make what further variables there are."""

    def _wide(self, value: Any) -> Any:
        if value is None or self.axes == [self.ndim - 1] or len(self.axes) > 1:
            return value
        return shape_ops.reshape(value, [-1 if position in self.axes else 1 for position in range(self.ndim)])

    def _normalized(self, mean: Any, variance: Any) -> Any:
        mean, variance, beta, gamma = map(self._wide, (mean, variance, self.beta, self.gamma))
        return nn.batch_normalization(self.tensor, mean, variance, beta, gamma, self.epsilon)

    def _moments(self) -> Any:
        """Mean and variance of the batch, of the shape of the variables."""
        found = (batch_moments if self.fused else moments)(self.tensor, self.over)
        return found if len(self.axes) == 1 else [shape_ops.reshape(one, self.shape) for one in found]

    def _by_batch(self) -> list[Any]:
        """The result, and what the averages move towards."""
        mean, variance = self._moments()
        kept = _unbiased(self.tensor, self.axes[0], variance) if self.fused else variance
        return [self._normalized(mean, variance), mean, kept]

    def _by_average(self) -> list[Any]:
        return [self._normalized(self.mean, self.variance), self.mean.value(), self.variance.value()]

    def made(self, training: Any, momentum: float, debiased: bool) -> Any:
        known = tensor_util.smart_constant_value(training)
        if known is not None:
            found = self._by_batch() if known else self._by_average()
        else:
            found = cond(training, self._by_batch, self._by_average)
        if known is not False:
            if debiased and known is None:
                what = f"batch_norm: zero_debias_moving_mean where a run tells is_training, at {here()}"
                raise ArgumentError(what, "Give is_training as a bool.")
            for kept in self._updates(found[1:], momentum, debiased):
                if not at_once():
                    get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, kept)
        return found[0]

    def _updates(self, values: Sequence[Any], momentum: float, debiased: bool) -> list[Any]:
        """What moves the averages."""
        mean, variance = values
        if debiased:
            first = assign_moving_average(self.mean, mean, momentum).op
        else:
            first = _moving(self.mean, mean, momentum)
        return [first, _moving(self.variance, variance, momentum)]


class _Renormalized(_Layer):
    """A layer whose training corrects towards averages (Ioffe, 2017)."""

    def begin(self) -> None:
        def deviation(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            first = self._options["moving_variance_initializer"] or initializers.ones_initializer()
            return math.sqrt(first(shape, dtype))

        def made(name: str, first: Any) -> Any:
            return get_variable(name, self.shape, self.tensor.dtype, first, None, False)

        self.deviation = made("moving_stddev", deviation)
        zeros = self._options["moving_mean_initializer"] or initializers.zeros_initializer()
        self.near = made("renorm_mean", zeros), made("renorm_stddev", deviation)

    def _by_batch(self) -> list[Any]:
        mean, variance = self._moments()
        deviation = math.sqrt(variance + self.epsilon)
        limits = self._options["renorm_clipping"] or {}
        if unknown := set(limits) - {"rmin", "rmax", "dmax"}:
            raise ValueError(f"batch_normalization: renorm_clipping has {sorted(unknown)}, at {here()}.")
        centre, width = self.near[0].value(), math.maximum(self.near[1].value(), self.epsilon**0.5)
        ratio, shift = deviation / width, (mean - centre) / width
        if limits.get("rmin") is not None:
            ratio = math.maximum(ratio, limits["rmin"])
        if limits.get("rmax") is not None:
            ratio = math.minimum(ratio, limits["rmax"])
        if limits.get("dmax") is not None:
            shift = math.minimum(math.maximum(shift, -limits["dmax"]), limits["dmax"])
        ratio, shift = math.stop_gradient(ratio), math.stop_gradient(shift)
        own = self.gamma, self.beta
        try:
            if self.gamma is not None:
                ratio, shift = ratio * self.gamma, shift * self.gamma
            self.gamma, self.beta = ratio, shift if self.beta is None else shift + self.beta
            return [self._normalized(mean, variance), mean, deviation]
        finally:
            self.gamma, self.beta = own

    def _by_average(self) -> list[Any]:
        return [self._normalized(self.mean, self.variance), self.mean.value(), self.deviation.value()]

    def _updates(self, values: Sequence[Any], momentum: float, debiased: bool) -> list[Any]:
        mean, deviation = values
        slow = self._options["renorm_momentum"]
        known = tensor_util.smart_constant_value(self._options["training"])
        towards = [mean, deviation]
        if known is None:  # without training the averages stay
            own = lambda: [one.value() for one in self.near]
            towards = cond(
                self._options["training"], lambda: [math.add(one, 0) for one in (mean, deviation)], own
            )
        near = [_moving(one, value, slow) for one, value in zip(self.near, towards)]
        with control_dependencies(near):
            first = _moving(self.mean, mean, momentum)
            wide = _moving(self.deviation, deviation, momentum)
            with control_dependencies([wide]):
                squared = math.square(self.deviation.value()) - self.epsilon
                found = math.maximum(squared, 0)
                if known is None:
                    found = cond(self._options["training"], lambda: math.add(found, 0), self.variance.value)
                return [first, assign(self.variance, found).op]


def _moving(average: Any, value: Any, momentum: float) -> Any:
    return update("AssignMovingAvg", [average], _moved, [value], {"momentum": momentum}, None)


@importable
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

    Halves are normalised in float32, of which the statistics, ``scale`` and ``offset`` are.

    With an ``exponential_avg_factor`` below 1 in training, these are that share of the batch's and the rest of ``mean``
    and ``variance``.
    """
    given = convert_to_tensor(x)
    value = math.cast(given, float32) if given.dtype.itemsize == 2 else given
    axis = (
        1 if channels_first("fused_batch_norm", data_format, value.type_.ndim - 2) else value.type_.ndim - 1
    )
    shape: Sequence[int] = [-1 if position == axis else 1 for position in range(value.type_.ndim)]

    def normalized(centre: Any, deviation: Any) -> Any:
        parts = (centre, deviation, offset, scale)
        centre, deviation, beta, gamma = (
            shape_ops.reshape(convert_to_tensor(part, value.dtype), shape) for part in parts
        )
        return math.cast(
            nn.batch_normalization(value, centre, deviation, beta, gamma, epsilon, name), given.dtype
        )

    if not is_training:
        if mean is None or variance is None:
            what = f"fused_batch_norm: mean and variance are needed without training, at {here()}"
            raise ArgumentError(what, "Give both.")
        return normalized(mean, variance), convert_to_tensor(mean), convert_to_tensor(variance)
    centre, deviation = batch_moments(
        value, [position for position in range(value.type_.ndim) if position != axis]
    )
    made, kept = normalized(centre, deviation), _unbiased(value, axis, deviation)
    if exponential_avg_factor != 1.0:
        rest = 1.0 - exponential_avg_factor
        centre = centre * exponential_avg_factor + convert_to_tensor(mean) * rest
        kept = kept * exponential_avg_factor + convert_to_tensor(variance) * rest
    return made, centre, kept
