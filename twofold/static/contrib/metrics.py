"""Metrics under their older names and with predictions first: ``tf.contrib.metrics``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.dtypes import float32
from twofold.static import math, metrics
from twofold.static.arrays.selection import confusion_matrix as _confusion_matrix
from twofold.static.graph.docstrings import described, example
from twofold.static.python.positions import enter


@example("tf.contrib.metrics.accuracy([1, 2], [1, 3])", "0.5")
def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Any:
    """The share of predictions that equal their labels, of this batch alone."""
    right = math.cast(math.equal(predictions, labels), float32)
    if weights is None:
        return math.reduce_mean(right, name=name)
    shares = math.cast(weights, float32)
    return math.divide(math.reduce_sum(right * shares), math.reduce_sum(shares), name=name)


def _streaming(name: str) -> Callable[..., Any]:
    """The metric of ``tf.metrics`` with predictions before labels."""
    function = getattr(metrics, name)

    def streaming(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Any:
        return function(labels, predictions, *args, **kwargs)

    text = f"``tf.metrics.{name}`` with predictions first: the value, and the operation that updates it."
    own = f"streaming_sparse_{name}" if name.endswith("_at_k") else f"streaming_{name}"
    return described(streaming, own, text)


streaming_accuracy = _streaming("accuracy")
streaming_precision = _streaming("precision")
streaming_recall = _streaming("recall")
streaming_auc = _streaming("auc")
streaming_mean_absolute_error = _streaming("mean_absolute_error")
streaming_mean_squared_error = _streaming("mean_squared_error")
streaming_root_mean_squared_error = _streaming("root_mean_squared_error")
streaming_mean_iou = _streaming("mean_iou")
streaming_mean = metrics.mean
streaming_percentage_less = metrics.percentage_below
streaming_sparse_precision_at_k = _streaming("precision_at_k")
streaming_sparse_recall_at_k = _streaming("recall_at_k")
streaming_sparse_average_precision_at_k = _streaming("average_precision_at_k")
streaming_precision_at_thresholds = _streaming("precision_at_thresholds")
streaming_recall_at_thresholds = _streaming("recall_at_thresholds")
streaming_mean_relative_error = _streaming("mean_relative_error")
streaming_mean_cosine_distance = _streaming("mean_cosine_distance")
confusion_matrix = _confusion_matrix
enter(__name__, {"python.ops.metric_ops python.ops.set_ops": "contrib.metrics"})
