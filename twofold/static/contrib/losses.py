"""Losses with the computed values before the wanted ones: ``tf.contrib.losses``, ``slim.losses``."""

from __future__ import annotations

from typing import Any

from twofold.static import losses as _losses
from twofold.static import nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.graph.docstrings import example
from twofold.static.graph.scopes import name_scope
from twofold.static.losses import add_loss as add_loss
from twofold.static.losses import get_losses as get_losses
from twofold.static.losses import get_regularization_losses as get_regularization_losses
from twofold.static.losses import get_total_loss as get_total_loss
from twofold.static.python.positions import enter

__all__ = [
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


@example("tf.contrib.losses.compute_weighted_loss([1.0, 3.0], [1.0, 0.5])", "1.25")
def compute_weighted_loss(losses: Any, weights: Any = 1.0) -> Any:
    """The sum of weighted losses, over how many have a weight; it is in the collection of losses."""
    return _losses.compute_weighted_loss(losses, weights)


@example("tf.contrib.losses.absolute_difference([1.0, 5.0], [1.0, 2.0])", "1.5")
def absolute_difference(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Any:
    """``tf.losses.absolute_difference``, the predictions first."""
    return _losses.absolute_difference(labels, predictions, weights, scope)


@example("tf.contrib.losses.mean_squared_error([1.0, 5.0], [1.0, 2.0])", "4.5")
def mean_squared_error(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Any:
    """``tf.losses.mean_squared_error``, the predictions first."""
    return _losses.mean_squared_error(labels, predictions, weights, scope)


@example("tf.contrib.losses.mean_pairwise_squared_error([[1.0, 3.0]], [[0.0, 0.0]])", "4.0")
def mean_pairwise_squared_error(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None
) -> Any:
    """``tf.losses.mean_pairwise_squared_error``, the predictions first."""
    return _losses.mean_pairwise_squared_error(labels, predictions, weights, scope=scope)


@example("tf.contrib.losses.log_loss([0.5, 0.25], [1.0, 1.0])", "1.0397205")
def log_loss(
    predictions: Any, labels: Any = None, weights: Any = 1.0, epsilon: float = 1e-7, scope: Any = None
) -> Any:
    """``tf.losses.log_loss``, the predictions first."""
    return _losses.log_loss(labels, predictions, weights, epsilon, scope)


@example("tf.contrib.losses.cosine_distance([[0.6, 0.8]], [[1.0, 0.0]], 1)", "0.39999998")
def cosine_distance(
    predictions: Any,
    labels: Any = None,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: Any = None,
    dim: int | None = None,
) -> Any:
    """``tf.losses.cosine_distance``, the predictions first."""
    return _losses.cosine_distance(labels, predictions, axis, weights, scope=scope, dim=dim)


@example("tf.contrib.losses.softmax_cross_entropy([[2.0, 0.0]], [[1.0, 0.0]])", "0.12692805")
def softmax_cross_entropy(
    logits: Any, onehot_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: Any = None
) -> Any:
    """``tf.losses.softmax_cross_entropy``, the logits first."""
    return _losses.softmax_cross_entropy(onehot_labels, logits, weights, label_smoothing, scope)


@example("tf.contrib.losses.sigmoid_cross_entropy([[0.0]], [[1.0]])", "0.6931472")
def sigmoid_cross_entropy(
    logits: Any, multi_class_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: Any = None
) -> Any:
    """``tf.losses.sigmoid_cross_entropy``, the logits first."""
    return _losses.sigmoid_cross_entropy(multi_class_labels, logits, weights, label_smoothing, scope)


@example("tf.contrib.losses.sparse_softmax_cross_entropy([[2.0, 0.0]], [0])", "0.12692805")
def sparse_softmax_cross_entropy(logits: Any, labels: Any, weights: Any = 1.0, scope: Any = None) -> Any:
    """``tf.losses.sparse_softmax_cross_entropy``, the logits first."""
    return _losses.sparse_softmax_cross_entropy(labels, logits, weights, scope)


@example("tf.contrib.losses.hinge_loss([0.5, 0.5], [1.0, 0.0])", "[0.5 1.5]")
def hinge_loss(logits: Any, labels: Any = None, scope: Any = None) -> Any:
    """The hinge loss of each element; unlike others it is in no collection."""
    with name_scope(scope or "hinge_loss"):
        values = convert_to_tensor(logits)
        signs = 2 * convert_to_tensor(labels, values.dtype) - 1
        return nn.relu(1 - signs * values)


enter(
    __name__,
    {"metric_learning": "contrib.metric_learning", "python.losses.loss_ops": "contrib.losses"},
)
