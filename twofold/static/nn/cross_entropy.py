"""Cross entropies and other losses of classes, one number for each example."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from twofold.dtypes import int64
from twofold.errors import ArgumentError
from twofold.ops.axes import given_once
from twofold.ops.base import ops
from twofold.static import math
from twofold.static.api.declared_shapes import need_compatible_shapes as _need_compatible_shapes
from twofold.static.api.op_functions import Alone, Number, operation, whole
from twofold.static.graph.docstrings import example


def _operands_by_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which raises ValueError where labels or logits are given without their names.

    It is raised at once: the two were exchanged between versions of TensorFlow.
    """

    @functools.wraps(function)
    def checked(
        _sentinel: Any = None, *args: Any, labels: Any = None, logits: Any = None, **more: Any
    ) -> Any:
        _need_names(args or _sentinel, labels, logits)
        return function(labels=labels, logits=logits, **more)

    return checked


@_operands_by_name
@operation("SoftmaxCrossEntropyWithLogits", name_at=4, older={"dim": "axis"})
@example(
    "tf.nn.softmax_cross_entropy_with_logits_v2(labels=[[1.0, 0.0]], logits=[[2.0, 0.0]])", "[0.12692805]"
)
def softmax_cross_entropy_with_logits_v2(
    _sentinel: Number = None, labels: Any = None, logits: Any = None, axis: Number = None
) -> Any:
    """For each row minus the sum of ``labels * log(softmax(logits))``; derivatives flow to labels, too."""
    rows = ops.cast(labels, logits.dtype)
    return ops.softmax_cross_entropy_with_logits(rows, logits, -1 if axis is None else whole(axis))


@example("tf.nn.softmax_cross_entropy_with_logits(labels=[[1.0, 0.0]], logits=[[2.0, 0.0]])", "[0.12692805]")
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


@_operands_by_name
@operation("SparseSoftmaxCrossEntropyWithLogits")
@example("tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0], logits=[[2.0, 0.0]])", "[0.12692805]")
def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Number = None, labels: Alone = None, logits: Any = None
) -> Any:
    """Minus the logarithm of ``softmax(logits)`` at the class number of each row; IndexError for no class."""
    if labels.ndim != logits.ndim - 1:
        raise ArgumentError(
            f"labels of {labels.ndim} axes for logits of {logits.ndim}",
            "Labels have one axis less: one class number a row.",
        )
    return ops.sparse_softmax_cross_entropy_with_logits(labels, logits)


def _need_names(sentinel: Any, labels: Any, logits: Any) -> None:
    if sentinel is not None or labels is None or logits is None:
        raise ValueError("cross entropy takes labels= and logits= by name. Write both names.")


def _of_compatible_shapes(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` of labels and logits, which raises ShapeError where their declared shapes cannot be equal."""

    @functools.wraps(function)
    def checked(*, labels: Any, logits: Any, **more: Any) -> Any:
        _need_compatible_shapes(function.__name__, labels, logits)
        return function(labels=labels, logits=logits, **more)

    return checked


@_operands_by_name
@_of_compatible_shapes
@operation("SigmoidCrossEntropyWithLogits")
@example(
    "tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 1.0], logits=[0.0, 1000.0])",
    "[0.6931472 0.       ]",
)
def sigmoid_cross_entropy_with_logits(
    _sentinel: Number = None, labels: Alone = None, logits: Alone = None
) -> Any:
    """For each element the cross entropy of ``labels`` with ``sigmoid(logits)``.

    Their declared shapes are the same; where these leave a size or the number of axes open, a run may broadcast.
    """
    labels, logits = ops.broadcast_tensors(labels, logits)
    return ops.binary_cross_entropy_with_logits(logits, labels, reduction="none")


def _of_equal_shapes(targets: str, scores: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: ShapeError where declared shapes of the two cannot be equal; the first may have two names."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs).arguments
            wanted = next((given[name] for name in targets.split() if given.get(name) is not None), None)
            if wanted is not None and given.get(scores) is not None:
                _need_compatible_shapes(function.__name__, wanted, given[scores], scores)
            return function(*args, **kwargs)

        return checked

    return decorate


@_of_equal_shapes("targets labels", "logits")
@operation("WeightedCrossEntropyWithLogits", older={"labels": "targets"})
@example(
    "tf.nn.weighted_cross_entropy_with_logits([1.0, 0.0], [0.0, 0.0], pos_weight=2.0)",
    "[1.3862944 0.6931472]",
)
def weighted_cross_entropy_with_logits(
    targets: Any = None, logits: Any = None, pos_weight: Any = None
) -> Any:
    """``sigmoid_cross_entropy_with_logits`` with the positive labels weighted.

    Shapes of targets and logits that differ as declared raise ShapeError; ``pos_weight`` broadcasts.
    """
    weight = ops.add(ops.multiply(targets, pos_weight - 1.0), 1.0)
    soft = ops.softplus(ops.negative(logits))
    return ops.add(ops.multiply(ops.subtract(1.0, targets), logits), ops.multiply(weight, soft))


@_of_equal_shapes("targets", "log_input")
@operation("LogPoissonLoss")
@example("tf.nn.log_poisson_loss([1.0, 2.0], [0.0, 0.0])", "[1. 1.]")
def log_poisson_loss(targets: Alone, log_input: Alone, compute_full_loss: Number = False) -> Any:
    """``exp(log_input) - targets * log_input``; in full with Stirling's approximation of ``log(targets!)``.

    Shapes of targets and ``log_input`` that differ as declared raise ShapeError.
    """
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


@operation("InTopK")
@example("tf.nn.in_top_k([[0.1, 0.9, 0.5], [0.1, 0.9, 0.5]], [2, 0], 2)", "[ True False]")
def in_top_k(predictions: Any, targets: Alone, k: Number) -> Any:
    """Whether the score at each target is among the ``k`` largest of its row.

    It is not for a target that is no class, and in rows with a score that is not finite.
    """
    classes = ops.unsqueeze(ops.cast(targets, int64), -1)
    count = predictions.shape[-1]
    is_class = ops.logical_and(ops.greater_equal(classes, 0), ops.less(classes, count))
    wanted = ops.take_along_dim(predictions, ops.where(is_class, classes, 0), -1)
    larger = ops.less(ops.sum(ops.cast(ops.greater(predictions, wanted), int64), -1), whole(k))
    known = ops.logical_and(ops.squeeze(is_class, -1), ops.all(ops.isfinite(predictions), -1))
    return ops.logical_and(larger, known)
