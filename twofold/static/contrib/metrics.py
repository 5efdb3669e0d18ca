"""Metrics under their older names and with predictions first: ``tf.contrib.metrics``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.dtypes import bool_, float32, float64, int64
from twofold.static import linalg, math, metrics, sets
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import selection
from twofold.static.arrays.selection import confusion_matrix as _confusion_matrix
from twofold.static.contrib.assigning import local_variable
from twofold.static.graph.docstrings import described, example
from twofold.static.metrics.streaming import flat, gathered, metric_of, shares_of
from twofold.static.python.positions import enter
from twofold.static.variables.variable import assign_add


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
    return described(streaming, f"streaming_{'sparse_' * name.endswith(('_at_k', 'top_k'))}{name}", text)


_CASES = ("true_positives", "true_negatives", "false_positives", "false_negatives")
streaming_accuracy = _streaming("accuracy")
streaming_precision = _streaming("precision")
streaming_recall = _streaming("recall")
streaming_auc = _streaming("auc")
streaming_mean_absolute_error = _streaming("mean_absolute_error")
streaming_mean_squared_error = _streaming("mean_squared_error")
streaming_root_mean_squared_error = _streaming("root_mean_squared_error")
streaming_mean_iou = _streaming("mean_iou")
streaming_mean = metrics.mean
streaming_mean_tensor = metrics.mean_tensor
streaming_percentage_less = metrics.percentage_below
streaming_sparse_precision_at_k = _streaming("precision_at_k")
streaming_sparse_recall_at_k = _streaming("recall_at_k")
streaming_sparse_average_precision_at_k = _streaming("average_precision_at_k")
streaming_precision_at_thresholds = _streaming("precision_at_thresholds")
streaming_recall_at_thresholds = _streaming("recall_at_thresholds")
streaming_mean_relative_error = _streaming("mean_relative_error")
streaming_mean_cosine_distance = _streaming("mean_cosine_distance")
streaming_sensitivity_at_specificity = _streaming("sensitivity_at_specificity")
streaming_specificity_at_sensitivity = _streaming("specificity_at_sensitivity")
(
    streaming_true_positives,
    streaming_true_negatives,
    streaming_false_positives,
    streaming_false_negatives,
) = map(_streaming, _CASES)
(
    streaming_true_positives_at_thresholds,
    streaming_true_negatives_at_thresholds,
    streaming_false_positives_at_thresholds,
    streaming_false_negatives_at_thresholds,
) = (_streaming(f"{case}_at_thresholds") for case in _CASES)


@example("print(tf.contrib.metrics.aggregate_metrics((1, 2), (3, 4)))", "([1, 3], [2, 4])")
def aggregate_metrics(*value_update_tuples: tuple[Any, Any]) -> tuple[list[Any], list[Any]]:
    """The values and the updates of several metrics."""
    if not value_update_tuples:
        raise ValueError("aggregate_metrics: no metrics are given. Give at least one.")
    values, updates = zip(*value_update_tuples)
    return list(values), list(updates)


@example("print(tf.contrib.metrics.aggregate_metric_map({'a': (1, 2)}))", "({'a': 1}, {'a': 2})")
def aggregate_metric_map(
    names_to_tuples: dict[str, tuple[Any, Any]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values and the updates of several metrics by their names."""
    values, updates = zip(*names_to_tuples.values())
    return dict(zip(names_to_tuples, values)), dict(zip(names_to_tuples, updates))


@metric_of("count")
def count(values: Any, weights: Any = None) -> tuple[Any, Any]:
    """How many values there are, or their weight."""
    given = math.cast(convert_to_tensor(values), float32)
    return gathered("count", math.reduce_sum(shares_of(given, weights)))


def _rate(own: str, wrong: Callable[..., Any], right: Callable[..., Any]) -> Callable[..., Any]:
    """``wrong`` over the sum of ``wrong`` and ``right``."""

    def body(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
        found, wanted = (math.cast(convert_to_tensor(one), bool_) for one in (predictions, labels))
        ones, others = (kind(wanted, found, weights) for kind in (wrong, right))
        value, update = (math.divide_no_nan(one, one + other) for one, other in zip(ones, others))
        return value, update

    words = own.replace("_", " ")
    return metric_of(own)(described(body, f"streaming_{own}", f"The {words} of predictions."))


streaming_false_negative_rate = _rate("false_negative_rate", metrics.false_negatives, metrics.true_positives)
streaming_false_positive_rate = _rate("false_positive_rate", metrics.false_positives, metrics.true_negatives)


@metric_of("covariance")
def streaming_covariance(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
    """The unbiased covariance of predictions and labels over all runs (the update of Schubert and Gertz, 2018)."""
    one, two = (math.cast(convert_to_tensor(value), float32) for value in (predictions, labels))
    shares = shares_of(two, weights)
    batch = math.reduce_sum(shares)
    total, more = gathered("count", batch)
    before = more - batch
    means, steps, centred = [], [], []
    for name, value in (("mean_prediction", one), ("mean_label", two)):
        own = math.divide_no_nan(math.reduce_sum(value * shares), batch)
        mean = local_variable(0.0, name=name)
        step = math.divide_no_nan((own - mean) * batch, more)
        moved = assign_add(mean, step)
        means.append(own)
        steps.append(moved - step)
        centred.append(value - own)
    own = math.reduce_sum(centred[0] * centred[1] * shares)
    apart = (steps[0] - means[0]) * (steps[1] - means[1])
    comoment, moved = gathered("comoment", own + apart * math.divide_no_nan(before * batch, more))
    value, update = (
        selection.where(math.less_equal(count, 1.0), float("nan"), math.truediv(found, count - 1.0))
        for found, count in ((comoment, total), (moved, more))
    )
    return value, update


@metric_of("pearson_r")
def streaming_pearson_correlation(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
    """The coefficient of correlation of predictions and labels over all runs."""
    names = ("covariance", "variance_predictions", "variance_labels")
    pairs = ((predictions, labels), (predictions, predictions), (labels, labels))
    found = [streaming_covariance(*pair, weights, name=name) for pair, name in zip(pairs, names)]
    value, update = (
        math.truediv(both, math.sqrt(one) * math.sqrt(two)) for both, one, two in zip(*found, strict=True)
    )
    return value, update


@metric_of("cohen_kappa")
def cohen_kappa(labels: Any, predictions_idx: Any, num_classes: int, weights: Any = None) -> tuple[Any, Any]:
    """Cohen's coefficient: how much better than by chance predictions agree with labels."""
    if num_classes < 2:
        raise ValueError(f"cohen_kappa: num_classes is {num_classes}. Give at least 2.")
    scale = None if weights is None else flat(weights)
    kind = int64 if scale is None or scale.dtype.is_integer else float32
    table = _confusion_matrix(flat(labels), flat(predictions_idx), num_classes, kind, weights=scale)
    parts = {"po": linalg.tensor_diag_part(table), "pe_row": math.reduce_sum(table, 0)}
    parts["pe_col"] = math.reduce_sum(table, 1)
    pairs = [gathered(name, part, [num_classes], kind) for name, part in parts.items()]

    def coefficient(name: str, agreed: Any, rows: Any, columns: Any) -> Any:
        right, total = (math.cast(math.reduce_sum(one), float64) for one in (agreed, rows))
        chance = math.reduce_sum(math.divide_no_nan(math.cast(rows * columns, float64), total))
        return math.divide_no_nan(right - chance, total - chance, name=name)

    values, updates = zip(*pairs)
    return coefficient("value", *values), coefficient("update_op", *updates)


set_difference, set_intersection, set_size, set_union = (
    sets.set_difference,
    sets.set_intersection,
    sets.set_size,
    sets.set_union,
)
confusion_matrix = _confusion_matrix
enter(__name__, {"python.ops.metric_ops python.ops.set_ops": "contrib.metrics"})
