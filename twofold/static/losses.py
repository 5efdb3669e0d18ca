"""Losses that are weighted, averaged and collected: ``tf.losses``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from twofold.dtypes import float32
from twofold.errors import ShapeError
from twofold.ir.sizes import index
from twofold.ops.axes import given_once
from twofold.ops.base import ops
from twofold.static import math, nn
from twofold.static.api.declared_shapes import need_compatible_shapes as _need_compatible_shapes
from twofold.static.api.op_functions import Number, as_tensor, convert_to_tensor, numbers, operation, whole
from twofold.static.api.signatures import REQUIRED, defaults_of, takes, with_parameters
from twofold.static.arrays import shape_ops
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.context import at_once as _at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.graph import operation_of as _operation_of
from twofold.static.graph.scopes import name_scope


class Reduction:
    """How a loss is made one number."""

    NONE = "none"
    SUM = "weighted_sum"
    MEAN = "weighted_mean"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS


@operation("WeightedLoss")
def _weighted(losses: Any, weights: Any, reduction: Any) -> Any:
    scale = ops.cast(weights, losses.dtype) if hasattr(weights, "dtype") else weights
    if hasattr(scale, "ndim") and 0 < scale.ndim < losses.ndim:
        scale = ops.reshape(scale, (*scale.shape, *[1] * (losses.ndim - scale.ndim)))
    rows = ops.multiply(losses, scale)
    if reduction == Reduction.NONE:
        return rows
    total = ops.sum(rows)
    if reduction == Reduction.SUM:
        return total
    each = ops.broadcast_to(scale, losses.shape) if hasattr(scale, "ndim") else ops.full_like(losses, scale)
    if reduction == Reduction.MEAN:
        count = ops.sum(each)
    elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
        return ops.mean(rows)
    else:
        count = ops.sum(ops.cast(ops.not_equal(each, 0), losses.dtype))
    return ops.where(ops.equal(count, 0), 0.0, ops.divide(total, ops.where(ops.equal(count, 0), 1.0, count)))


@operation("MeanLoss")
def _mean(losses: Any) -> Any:
    return ops.mean(losses)


def _finish(losses: Any, weights: Any, collection: str, reduction: str) -> Any:
    wide = math.cast(losses, float32)
    if _is_mean(weights, reduction):
        made = _mean(wide, name="value")
    else:
        made = _weighted(wide, as_tensor(weights), reduction, name="value")
    return _collected(math.cast(made, losses.dtype), collection)


def _is_mean(weights: Any, reduction: str) -> bool:
    plain = isinstance(weights, (int, float)) and weights == 1
    return plain and reduction not in (Reduction.NONE, Reduction.SUM)


def _collected(made: Any, collection: str) -> Any:
    if collection and not _at_once():
        _operation_of(made).graph.add_to_collection(collection, made)
    return made


_OPTIONS = {"scope": None, "loss_collection": GraphKeys.LOSSES, "reduction": Reduction.SUM_BY_NONZERO_WEIGHTS}


def _loss(default: str, **own: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A loss made of a function of two tensors that gives its rows; ``own`` are further parameters of both.

    ``default`` is the name of the scope.
    """

    def decorate(rows: Callable[..., Any]) -> Callable[..., Any]:
        def loss(weights: Any, scope: Any, loss_collection: str, reduction: str, **given: Any) -> Any:
            with name_scope(scope, default):
                return _finish(rows(**given), weights, loss_collection, reduction)

        pair = list(defaults_of(rows))[:2]
        return with_parameters(
            loss, {**dict.fromkeys(pair, REQUIRED), "weights": 1.0, **own, **_OPTIONS}, rows
        )

    return decorate


def _difference(type: str, **own: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A ``_loss`` of labels and predictions, as the operation whose body it decorates."""

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        declare = operation(type)(body)

        @functools.wraps(body)
        def rows(labels: Any, predictions: Any, **given: Any) -> Any:
            return declare(*_pair(body.__name__, labels, predictions), **given)

        return _loss(type, **own)(rows)

    return decorate


@example("tf.losses.compute_weighted_loss([1.0, 3.0], weights=[1.0, 0.5])", "1.25")
@takes(**_OPTIONS)
def compute_weighted_loss(losses: Any, weights: Any = 1.0, **options: Any) -> Any:
    """``losses * weights``, summed and divided by the number of weights that are not 0 (see ``Reduction``)."""
    with name_scope(options["scope"], "weighted_loss"):
        return _finish(convert_to_tensor(losses), weights, options["loss_collection"], options["reduction"])


@operation("SparseSoftmaxCrossEntropyLoss")
def _sparse_mean(labels: Any, logits: Any) -> Any:
    if labels.ndim == logits.ndim:
        labels = ops.squeeze(labels, -1)
    count = index(logits.shape[-1])
    flat = logits if logits.ndim == 2 else ops.reshape(logits, (-1, count))
    rows = labels if labels.ndim == 1 else ops.reshape(labels, (-1,))
    return ops.cross_entropy(flat, rows, reduction="mean")


@example("tf.losses.sparse_softmax_cross_entropy([0], [[2.0, 0.0]])", "0.12692805")
@takes(**_OPTIONS)
def sparse_softmax_cross_entropy(labels: Any, logits: Any, weights: Any = 1.0, **options: Any) -> Any:
    """Cross entropy with class numbers; unweighted, the very operation that ``nn.CrossEntropyLoss`` is."""
    collection, reduction = options["loss_collection"], options["reduction"]
    with name_scope(options["scope"], "sparse_softmax_cross_entropy_loss"):
        if _is_mean(weights, reduction):
            return _collected(_sparse_mean(convert_to_tensor(labels), logits, name="value"), collection)
        classes, scores = convert_to_tensor(labels), convert_to_tensor(logits)
        if (
            None not in (classes.shape.ndims, scores.shape.ndims)
            and classes.shape.ndims == scores.shape.ndims
        ):
            classes = shape_ops.squeeze(classes, [-1])
        rows = nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=scores)
        return _finish(rows, _without_last(weights, rows), collection, reduction)


def _without_last(weights: Any, rows: Any) -> Any:
    """Weights without the last axis, of size 1, where they have one axis more than the rows."""
    if isinstance(weights, (int, float)):
        return weights
    given = convert_to_tensor(weights)
    axes = given.shape.ndims
    return given if axes is None or axes - 1 != rows.shape.ndims else shape_ops.squeeze(given, [-1])


@_loss("softmax_cross_entropy_loss", label_smoothing=0)
@example("tf.losses.softmax_cross_entropy([[1.0, 0.0]], [[2.0, 0.0]])", "0.12692805")
def softmax_cross_entropy(onehot_labels: Any, logits: Any, label_smoothing: float) -> Any:
    """Cross entropy with rows of probabilities, through which no derivative flows."""
    scores = convert_to_tensor(logits)
    labels = math.cast(convert_to_tensor(onehot_labels), scores.dtype)
    if label_smoothing:
        classes = math.cast(shape_ops.shape(scores)[-1], scores.dtype)
        labels = math.add(math.multiply(labels, 1.0 - label_smoothing), label_smoothing / classes)
    return nn.softmax_cross_entropy_with_logits(labels=labels, logits=scores)


@_loss("sigmoid_cross_entropy_loss", label_smoothing=0)
@example("tf.losses.sigmoid_cross_entropy([[1.0]], [[0.0]])", "0.6931472")
def sigmoid_cross_entropy(multi_class_labels: Any, logits: Any, label_smoothing: float) -> Any:
    """Cross entropy of each element with ``sigmoid(logits)``."""
    scores = convert_to_tensor(logits)
    labels = math.cast(convert_to_tensor(multi_class_labels), scores.dtype)
    if label_smoothing:
        labels = math.add(math.multiply(labels, 1.0 - label_smoothing), 0.5 * label_smoothing)
    return nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=scores)


def _pair(name: str, labels: Any, predictions: Any) -> tuple[Any, Any]:
    """Both as float32, in which TensorFlow computes these losses whatever it is given.

    Raises ShapeError if their declared shapes cannot be equal; what these leave open, a run may broadcast.
    """
    wanted, value = convert_to_tensor(labels), convert_to_tensor(predictions)
    _need_compatible_shapes(name, wanted, value, "predictions")
    return math.cast(wanted, float32), math.cast(value, float32)


@_difference("mean_squared_error")
@example("tf.losses.mean_squared_error([1.0, 2.0], [1.0, 5.0])", "4.5")
def mean_squared_error(labels: Any, predictions: Any) -> Any:
    """Mean of squared differences."""
    return ops.square(ops.subtract(predictions, labels))


@_difference("absolute_difference")
@example("tf.losses.absolute_difference([1.0, 2.0], [1.0, 5.0])", "1.5")
def absolute_difference(labels: Any, predictions: Any) -> Any:
    """Mean of magnitudes of differences."""
    return ops.abs(ops.subtract(predictions, labels))


@_loss("hinge_loss")
@example("tf.losses.hinge_loss([1.0, 0.0], [0.5, 0.5])", "1.0")
def hinge_loss(labels: Any, logits: Any) -> Any:
    """max(0, 1 - y * logit), y = 2 * label - 1."""
    classes, scores = _pair("hinge_loss", labels, logits)
    return _hinge(classes, scores)


@operation("HingeLoss")
def _hinge(labels: Any, logits: Any) -> Any:
    signs = ops.subtract(ops.multiply(labels, 2.0), 1.0)
    return ops.relu(ops.subtract(1.0, ops.multiply(signs, logits)))


@_difference("huber_loss", delta=1.0)
@example("tf.losses.huber_loss([0.0, 0.0], [0.5, 4.0])", "1.8125")
def huber_loss(labels: Any, predictions: Any, delta: Number) -> Any:
    """Half the squares of differences up to ``delta``, the magnitudes of larger ones."""
    labels, predictions = ops.broadcast_tensors(labels, predictions)
    return ops.huber_loss(predictions, labels, reduction="none", delta=float(numbers(delta)))


@_difference("log_loss", epsilon=1e-7)
@example("tf.losses.log_loss([1.0, 0.0], [0.5, 0.5])", "0.69314694")
def log_loss(labels: Any, predictions: Any, epsilon: Any) -> Any:
    """Cross entropy of probabilities, ``epsilon`` away from the logarithm of zero."""
    one = ops.multiply(labels, ops.log(ops.add(predictions, epsilon)))
    other = ops.log(ops.add(ops.subtract(1.0, predictions), epsilon))
    return ops.negative(ops.add(one, ops.multiply(ops.subtract(1.0, labels), other)))


@example("tf.losses.mean_pairwise_squared_error([[0.0, 0.0]], [[1.0, 3.0]])", "4.0")
@takes(scope=None, loss_collection=GraphKeys.LOSSES)
def mean_pairwise_squared_error(labels: Any, predictions: Any, weights: Any = 1.0, **options: Any) -> Any:
    """The mean over samples of squared differences between the errors of all pairs of elements of a sample.

    ``weights`` are one number, or of the rank of the labels, of size 1 along other axes than the first; elements
    without weight are no parts of pairs.
    """
    with name_scope(options["scope"], "mean_pairwise_squared_error"):
        pairs = _pairwise(
            *_pair("mean_pairwise_squared_error", labels, predictions),
            math.cast(convert_to_tensor(weights), float32),
        )
        add_loss(pairs, options["loss_collection"])
        return pairs


@operation("MeanPairwiseSquaredError")
def _pairwise(labels: Any, predictions: Any, weights: Any) -> Any:
    error = ops.subtract(predictions, labels)
    if weights.ndim not in (0, error.ndim):
        what = f"weights of shape {tuple(weights.shape)} for errors of shape {tuple(error.shape)}"
        raise ShapeError(what, "Give one number, or one for each sample with the other axes of size 1.")
    axes = tuple(range(1, error.ndim))

    def total(values: Any) -> Any:
        return ops.sum(values, axes, True) if axes else values

    present = ops.cast(ops.not_equal(ops.broadcast_to(weights, error.shape), 0), float32)
    count = total(present)
    pairs = ops.multiply(count, ops.subtract(count, 1.0))
    spread = ops.subtract(ops.multiply(count, total(ops.square(error))), ops.square(total(error)))
    several = ops.greater(pairs, 0)
    each = ops.where(several, ops.divide(spread, ops.where(several, pairs, 1.0)), 0.0)
    return ops.sum(ops.multiply(ops.multiply(each, 2.0), weights))


@operation("cosine_distance")
def _cosine(labels: Any, predictions: Any, axis: Number) -> Any:
    return ops.subtract(1.0, ops.sum(ops.multiply(labels, predictions), whole(axis), True))


@example("tf.losses.cosine_distance([[1.0, 0.0]], [[0.6, 0.8]], 1)", "0.39999998")
@takes(**_OPTIONS, dim=None)
def cosine_distance(
    labels: Any, predictions: Any, axis: int | None = None, weights: Any = 1.0, **options: Any
) -> Any:
    """1 minus the products of vectors of norm 1 along ``axis``; raises ValueError without it."""
    along = given_once(dim=options["dim"], axis=axis)
    if along is None:
        raise ValueError("cosine_distance: axis is not given. Say along which axis the vectors lie.")
    with name_scope(options["scope"], "cosine_distance_loss"):
        rows = _cosine(*_pair("cosine_distance", labels, predictions), along)
        return _finish(rows, weights, options["loss_collection"], options["reduction"])


@example("tf.losses.add_loss(tf.constant(2.0))", "tf.losses.get_total_loss()", "2.0")
def add_loss(loss: Any, loss_collection: str = GraphKeys.LOSSES) -> None:
    """Put a loss in the collection of losses; none are collected where operations are computed at once."""
    if not _at_once():
        get_default_graph().add_to_collection(loss_collection, loss)


@example("tf.losses.add_loss(tf.constant(2.0))", "tf.losses.get_losses()", "[np.float32(2.0)]")
def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """The losses collected so far."""
    return get_default_graph().get_collection(loss_collection, scope)


@example("print(tf.losses.get_regularization_losses())", "[]")
def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The penalties of variables."""
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


@example("tf.losses.get_regularization_loss()", "0.0")
def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Any:
    """The sum of the penalties."""
    found = get_regularization_losses(scope)
    return math.add_n(found, name=name) if found else convert_to_tensor(0.0)


@example("tf.losses.add_loss(tf.constant(2.0))", "tf.losses.get_total_loss()", "2.0")
def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Any:
    """The sum of all losses collected, those whose names begin with ``scope`` if given."""
    more = get_regularization_losses(scope) if add_regularization_losses else []
    return math.add_n(get_losses(scope) + more, name=name)
