"""Weighted cross entropy of sequences: ``tf.contrib.seq2seq.sequence_loss`` and the older forms over lists."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor, is_tensor_like
from twofold.static.arrays import shape_ops
from twofold.static.graph.docstrings import example
from twofold.static.graph.scopes import name_scope

_LITTLE = 1e-12


def _losses(function: Callable[..., Any] | None, labels: Any, logits: Any) -> Any:
    if function is None:
        return nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    named = inspect.signature(function).parameters
    if "logits" in named or any(one.kind is one.VAR_KEYWORD for one in named.values()):
        return function(labels=labels, logits=logits)
    return function(labels, logits)  # the order of TensorFlow 1.0 and 1.1


def _count(weights: Any, axis: Any = None) -> Any:
    """How many weights are not 0, at least 1 where the sum that it divides is 0 too."""
    found = math.reduce_sum(math.cast(math.not_equal(weights, 0.0), weights.dtype), axis)
    return math.maximum(found, 1.0)


@example(
    "loss = tf.contrib.seq2seq.sequence_loss(tf.zeros([2, 3, 4]), tf.zeros([2, 3], tf.int32), tf.ones([2, 3]))",
    "print(session.run(loss).round(4))",
    "1.3863",
)
def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """The weighted cross entropy of ``logits`` (batch, time, classes) with ``targets`` (batch, time).

    Averaged over steps, over the batch, or both: weighted sums over sums of weights. ``sum_over_...`` instead
    divide by the number of weights that are not 0. Without either an axis stays.
    """
    scores, labels, scale = (convert_to_tensor(one) for one in (logits, targets, weights))
    _check(scores, labels, scale)
    steps, batch = (average_across_timesteps, sum_over_timesteps), (average_across_batch, sum_over_batch)
    if all(steps) or all(batch):
        fix = "Choose one of them for an axis."
        raise ArgumentError(f"sequence_loss: an axis is both averaged and summed, at {here()}", fix)
    with name_scope(name, "sequence_loss", [scores, labels, scale]):
        classes = shape_ops.shape(scores)[2] if scores.type_.shape[2] < 0 else scores.type_.shape[2]
        flat = shape_ops.reshape(scores, [-1, classes])
        found = _losses(softmax_loss_function, shape_ops.reshape(labels, [-1]), flat)
        found = found * shape_ops.reshape(scale, [-1])
        if average_across_timesteps and average_across_batch:
            return math.reduce_sum(found) / (math.reduce_sum(scale) + _LITTLE)
        if sum_over_timesteps and sum_over_batch:
            return math.reduce_sum(found) / _count(scale)
        found = shape_ops.reshape(found, shape_ops.shape(scores)[:2])
        for axis, (averaged, summed) in ((1, steps), (0, batch)):
            if averaged:
                return math.reduce_sum(found, axis) / (math.reduce_sum(scale, axis) + _LITTLE)
            if summed:
                return math.reduce_sum(found, axis) / _count(scale, axis)
        return found


def _check(logits: Any, targets: Any, weights: Any) -> None:
    for what, value, ndim in (("logits", logits, 3), ("targets", targets, 2), ("weights", weights, 2)):
        if value.type_.ndim not in (ndim, -1):
            fix = "Give logits (batch, time, classes), targets and weights (batch, time)."
            raise ArgumentError(f"sequence_loss: {what} have {value.type_.ndim} axes, at {here()}", fix)


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """The weighted cross entropy of each sample; the lists hold what belongs to each step."""
    if not len(logits) == len(targets) == len(weights):
        what = f"{len(logits)} logits, {len(targets)} targets, {len(weights)} weights"
        raise ArgumentError(f"sequence_loss_by_example: {what}, at {here()}", "Give as many of each.")
    with name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        found = []
        for one, label, weight in zip(logits, targets, weights, strict=True):
            flat = shape_ops.reshape(label, [-1])
            losses = _losses(softmax_loss_function, flat, one)
            own = weight if is_tensor_like(weight) else convert_to_tensor(weight, losses.dtype)
            found.append(losses * own)
        total = math.add_n(found)
        if average_across_timesteps:
            total = total / (math.add_n([convert_to_tensor(weight) for weight in weights]) + _LITTLE)
        return total


def sequence_loss_of_lists(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """``sequence_loss_by_example`` of the whole batch, divided by its size with ``average_across_batch``."""
    with name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        each = sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function
        )
        total = math.reduce_sum(each)
        if average_across_batch:
            total = total / math.cast(shape_ops.shape(targets[0])[0], total.dtype)
        return total
