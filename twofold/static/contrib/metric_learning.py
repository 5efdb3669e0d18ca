"""Losses of embeddings that bring equal labels together: ``tf.contrib.losses.metric_learning``."""

from __future__ import annotations

from typing import Any

from twofold.dtypes import float32
from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, selection, shape_ops
from twofold.static.functions.host_calls import Print
from twofold.static.graph.docstrings import example


def _squared_distances(embeddings: Any) -> Any:
    """The squares of the distances between all rows, exactly 0 of a row from itself."""
    squares = math.reduce_sum(math.square(embeddings), 1, keepdims=True)
    products = math.matmul(embeddings, embeddings, transpose_b=True)
    found = math.maximum(squares - 2.0 * products + shape_ops.transpose(squares), 0.0)
    return found * (1.0 - _unit(embeddings))


def _unit(embeddings: Any) -> Any:
    return creation.eye(shape_ops.shape(embeddings)[0], dtype=embeddings.dtype)


def _same(labels: Any) -> Any:
    """Whether the labels of two rows are equal."""
    column = shape_ops.reshape(convert_to_tensor(labels), [-1, 1])
    return math.equal(column, shape_ops.transpose(column))


@example(
    "points = tf.constant([[0.0], [1.0], [1.5]])",
    "tf.contrib.losses.metric_learning.triplet_semihard_loss([0, 0, 1], points)",
    "0.875",
)
def triplet_semihard_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Any:
    """The mean over pairs of equal labels of how much less than ``margin`` the nearest other label is farther away.

    Other labels count that are farther away than the pair is, the nearest of them; if there are none, the farthest of
    all others. Distances are squared. Source: Schroff et al. 2015.
    """
    values = convert_to_tensor(embeddings)
    distances, others = _squared_distances(values), math.logical_not(_same(labels))
    every = shape_ops.expand_dims(distances, 1)
    farther = math.logical_and(
        shape_ops.expand_dims(others, 1), math.greater(every, shape_ops.expand_dims(distances, 2))
    )
    least = math.reduce_min(distances, 1, keepdims=True)
    farthest = math.reduce_max(_chosen(others, distances, least), 1, keepdims=True)
    most = math.reduce_max(every, 2, keepdims=True)
    nearest = math.reduce_min(_chosen(farther, every, most), 2)
    negatives = _chosen(math.reduce_any(farther, 2), nearest, farthest)
    pairs = math.cast(_same(labels), values.dtype) - _unit(values)
    losses = math.maximum((margin + distances - negatives) * pairs, 0.0)
    return math.truediv(math.reduce_sum(losses), math.reduce_sum(pairs), name="triplet_semihard_loss")


def _chosen(condition: Any, values: Any, others: Any) -> Any:
    """``values`` where a condition holds, ``others`` elsewhere; all of them broadcast."""
    mask = math.cast(condition, values.dtype)
    whole = shape_ops.shape(mask)
    return selection.where(
        condition, creation.broadcast_to(values, whole), creation.broadcast_to(others, whole)
    )


@example(
    "anchors, others = tf.constant([[0.0], [1.0]]), tf.constant([[2.0], [1.5]])",
    "tf.contrib.losses.metric_learning.contrastive_loss([1, 0], anchors, others)",
    "2.125",
)
def contrastive_loss(
    labels: Any, embeddings_anchor: Any, embeddings_positive: Any, margin: float = 1.0
) -> Any:
    """The mean of squared distances where labels are 1, elsewhere of squares of how far they are below ``margin``."""
    difference = math.subtract(convert_to_tensor(embeddings_anchor), convert_to_tensor(embeddings_positive))
    distances = math.sqrt(math.reduce_sum(math.square(difference), 1))
    together = math.cast(convert_to_tensor(labels), distances.dtype)
    apart = math.square(math.maximum(margin - distances, 0.0))
    rows = together * math.square(distances) + (1.0 - together) * apart
    return math.reduce_mean(rows, name="contrastive_loss")


@example(
    "anchors, others = tf.constant([[1.0, 0.0], [0.0, 1.0]]), tf.constant([[2.0, 0.0], [0.0, 2.0]])",
    "tf.contrib.losses.metric_learning.npairs_loss([0, 1], anchors, others, reg_lambda=0.0)",
    "0.12692805",
)
def npairs_loss(
    labels: Any,
    embeddings_anchor: Any,
    embeddings_positive: Any,
    reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Any:
    """Cross entropy of the products of anchors and positives, of which those of equal labels are the wanted ones.

    A quarter of ``reg_lambda`` times the means of the squared norms is added.
    ``print_losses`` prints both. Source: Sohn 2016.
    """
    anchors, positives = convert_to_tensor(embeddings_anchor), convert_to_tensor(embeddings_positive)
    norms = [math.reduce_mean(math.reduce_sum(math.square(one), 1)) for one in (anchors, positives)]
    penalty = math.multiply(0.25 * reg_lambda, norms[0] + norms[1])
    wanted = math.cast(_same(labels), float32)
    wanted = wanted / math.reduce_sum(wanted, 1, keepdims=True)
    products = math.matmul(anchors, positives, transpose_b=True)
    entropy = math.reduce_mean(nn.softmax_cross_entropy_with_logits(labels=wanted, logits=products))
    if print_losses:
        entropy = Print(entropy, [entropy, penalty], "cross entropy and penalty: ")
    return penalty + entropy
