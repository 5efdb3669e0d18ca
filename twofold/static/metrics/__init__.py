"""Measures that gather over many runs: ``tf.metrics``.

Each returns ``(value, update)``: running ``update`` takes in one batch and returns the measure so far, ``value``
only reads it. What is gathered lies in local variables; ``tf.local_variables_initializer()`` starts over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach

if TYPE_CHECKING:
    from twofold.static.metrics.at_k import (
        average_precision_at_k,
        precision_at_k,
        precision_at_top_k,
        recall_at_k,
        recall_at_top_k,
        sparse_average_precision_at_k,
        sparse_precision_at_k,
    )
    from twofold.static.metrics.at_thresholds import (
        auc,
        false_negatives_at_thresholds,
        false_positives_at_thresholds,
        precision_at_thresholds,
        recall_at_thresholds,
        sensitivity_at_specificity,
        specificity_at_sensitivity,
        true_negatives_at_thresholds,
        true_positives_at_thresholds,
    )
    from twofold.static.metrics.streaming import (
        _streaming_confusion_matrix,
        accuracy,
        false_negatives,
        false_positives,
        mean,
        mean_absolute_error,
        mean_cosine_distance,
        mean_iou,
        mean_per_class_accuracy,
        mean_relative_error,
        mean_squared_error,
        mean_tensor,
        percentage_below,
        precision,
        recall,
        root_mean_squared_error,
        true_negatives,
        true_positives,
    )

__getattr__, __dir__ = _attach(__name__)
