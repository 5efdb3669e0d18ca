"""Measures that gather over many runs: ``tf.metrics``.

Each returns ``(value, update)``: running ``update`` takes in one batch and returns the measure so far, ``value``
only reads it. What is gathered lies in local variables; ``tf.local_variables_initializer()`` starts over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.dtypes import float32, int64
from twofold.ops.base import ops
from twofold.static import array, filled, math
from twofold.static.define import (
    Number,
    convert_to_tensor,
    counted,
    operation,
    whole,
)
from twofold.static.docstrings import declared as _declared
from twofold.static.graph import get_default_graph
from twofold.static.keys import GraphKeys
from twofold.static.scopes import variable_scope
from twofold.static.selection import confusion_matrix
from twofold.static.variables import Variable, assign_add


def _gathered(name: str, amount: Any, shape: Sequence[int] = ()) -> tuple[Variable, Any]:
    """A sum over all runs, and what adds ``amount`` to it."""
    keys = [GraphKeys.LOCAL_VARIABLES, "metric_variables"]
    total = Variable(lambda: filled.zeros(list(shape)), False, keys, name=name)
    return total, assign_add(total, amount)


def _collected(value: Any, update: Any, metrics: Any, updates: Any) -> tuple[Any, Any]:
    graph = get_default_graph()
    for names, item in ((metrics, value), (updates, update)):
        for name in [names] if isinstance(names, str) else names or ():
            graph.add_to_collection(name, item)
    return value, update


@operation("Sum")
def _weighted_sum(values: Any, weights: Any) -> Any:
    found = ops.cast(values, float32)
    return ops.sum(
        found if weights is None else ops.multiply(found, ops.cast(_spread(weights, found), float32))
    )


@operation("Sum")
def _weight(values: Any, weights: Any) -> Any:
    if weights is None:
        return ops.sum(ops.full_like(values, 1, dtype=float32))
    return ops.sum(ops.broadcast_to(ops.cast(_spread(weights, values), float32), values.shape))


def _spread(weights: Any, values: Any) -> Any:
    """Weights of fewer axes weight whole slices."""
    if 0 < weights.ndim < values.ndim:
        return ops.reshape(weights, (*weights.shape, *[1] * (values.ndim - weights.ndim)))
    return weights


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The (weighted) mean of all values.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.placeholder(tf.float32, [None])
    ...     value, update = tf.metrics.mean(x)
    ...     session.run(tf.local_variables_initializer())
    ...     print(session.run(update, {x: [1.0, 2.0]}), session.run(update, {x: [6.0]}), session.run(value))
    1.5 3.0 3.0
    """
    return _mean("mean", values, weights, metrics_collections, updates_collections, name)


def _mean(
    kind: str, values: Any, weights: Any, metrics: Any, updates: Any, name: str | None
) -> tuple[Any, Any]:
    with variable_scope(name, kind):
        given = convert_to_tensor(values)
        scale = None if weights is None else convert_to_tensor(weights)
        total, more = _gathered("total", _weighted_sum(given, scale))
        count, many = _gathered("count", _weight(given, scale))
        value = math.divide_no_nan(total.value(), count.value(), name="value")
        return _collected(value, math.divide_no_nan(more, many, name="update_op"), metrics, updates)


def _flat(value: Any) -> Any:
    return array.reshape(convert_to_tensor(value), [-1])


def _same_shape(predictions: Any, labels: Any) -> tuple[Any, Any]:
    """Both as tensors; a last axis of size one that only one of them has is dropped."""
    one, two = convert_to_tensor(predictions), convert_to_tensor(labels)
    if one.type_.ndim == two.type_.ndim + 1:
        one = array.squeeze(one, [-1])
    elif two.type_.ndim == one.type_.ndim + 1:
        two = array.squeeze(two, [-1])
    return one, two


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """How often predictions equal labels.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     value, update = tf.metrics.accuracy([1, 2], [1, 3])
    ...     session.run(tf.local_variables_initializer())
    ...     print(session.run(update))
    0.5
    """
    found, wanted = _same_shape(predictions, labels)
    right = math.equal(math.cast(found, wanted.dtype), wanted)
    return _mean("accuracy", right, weights, metrics_collections, updates_collections, name)


def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The mean of absolute differences.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     value, update = tf.metrics.mean_absolute_error([1.0, 2.0], [1.0, 5.0])
    ...     session.run(tf.local_variables_initializer())
    ...     print(session.run(update))
    1.5
    """
    found, wanted = _same_shape(predictions, labels)
    error = math.abs(math.subtract(found, wanted))
    return _mean("mean_absolute_error", error, weights, metrics_collections, updates_collections, name)


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The mean of squared differences.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     value, update = tf.metrics.mean_squared_error([1.0, 2.0], [1.0, 5.0])
    ...     session.run(tf.local_variables_initializer())
    ...     print(session.run(update))
    4.5
    """
    found, wanted = _same_shape(predictions, labels)
    error = math.squared_difference(found, wanted)
    return _mean("mean_squared_error", error, weights, metrics_collections, updates_collections, name)


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The square root of ``mean_squared_error``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     value, update = tf.metrics.root_mean_squared_error([1.0, 1.0], [4.0, 4.0])
    ...     session.run(tf.local_variables_initializer())
    ...     print(session.run(update))
    3.0
    """
    found, wanted = _same_shape(predictions, labels)
    error = math.squared_difference(found, wanted)
    value, update = _mean("root_mean_squared_error", error, weights, None, None, name)
    return _collected(math.sqrt(value), math.sqrt(update), metrics_collections, updates_collections)


def percentage_below(
    values: Any,
    threshold: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The share of values below a threshold.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     value, update = tf.metrics.percentage_below([1.0, 5.0], 3.0)
    ...     session.run(tf.local_variables_initializer())
    ...     print(session.run(update))
    0.5
    """
    below = math.less(values, threshold)
    return _mean("percentage_below_threshold", below, weights, metrics_collections, updates_collections, name)


def _agreement(labels: Any, predictions: Any, weights: Any, truth: bool, found: bool) -> Any:
    """The weight of the predictions ``found`` whose label is ``truth``."""
    guessed, wanted = _same_shape(predictions, labels)
    both = _cases(guessed, wanted, found, truth)
    return _weighted_sum(both, None if weights is None else convert_to_tensor(weights))


@operation("LogicalAnd")
def _cases(guessed: Any, wanted: Any, found: Number, truth: Number) -> Any:
    one = ops.not_equal(guessed, 0) if found else ops.equal(guessed, 0)
    return ops.logical_and(one, ops.not_equal(wanted, 0) if truth else ops.equal(wanted, 0))


def _counter(kind: str, truth: bool, found: bool, words: str) -> Any:
    def counter(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        with variable_scope(name, kind):
            total, more = _gathered("count", _agreement(labels, predictions, weights, truth, found))
            return _collected(total.value(), more, metrics_collections, updates_collections)

    counter.__name__ = counter.__qualname__ = kind
    counter.__doc__ = _declared(f"The weight of all {words}.", counter.__name__)
    return counter


true_positives = _counter("true_positives", True, True, "true predictions whose label is true")
true_negatives = _counter("true_negatives", False, False, "false predictions whose label is false")
false_positives = _counter("false_positives", False, True, "true predictions whose label is false")
false_negatives = _counter("false_negatives", True, False, "false predictions whose label is true")


def _share(
    kind: str, labels: Any, predictions: Any, weights: Any, other: Any, metrics: Any, updates: Any, name: Any
) -> tuple[Any, Any]:
    """True positives over their sum with the count ``other``."""
    with variable_scope(name, kind):
        right, more = true_positives(labels, predictions, weights)
        wrong, also = other(labels, predictions, weights)
        value = math.divide_no_nan(right, right + wrong, name="value")
        return _collected(value, math.divide_no_nan(more, more + also, name="update_op"), metrics, updates)


def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The share of true predictions whose label is true.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     value, update = tf.metrics.precision([True, False], [True, True])
    ...     session.run(tf.local_variables_initializer())
    ...     print(session.run(update))
    0.5
    """
    places = metrics_collections, updates_collections
    return _share("precision", labels, predictions, weights, false_positives, *places, name)


def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The share of true labels whose prediction is true.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     value, update = tf.metrics.recall([True, True], [True, False])
    ...     session.run(tf.local_variables_initializer())
    ...     print(session.run(update))
    0.5
    """
    places = metrics_collections, updates_collections
    return _share("recall", labels, predictions, weights, false_negatives, *places, name)


@operation("Sum", several=list)
def _at_thresholds(labels: Any, predictions: Any, weights: Any, count: Number) -> Any:
    """True positives, false positives, true labels and false labels at each threshold."""
    total = whole(count)
    place = ops.cast(counted(total, predictions), float32)
    # the first and last are outside 0 to 1, so that everything is above the one and below the other
    inner = ops.divide(place, float(total - 1))
    limits = ops.where(ops.equal(place, 0), -1e-7, ops.where(ops.equal(place, total - 1), 1 + 1e-7, inner))
    weight = (
        ops.full_like(predictions, 1) if weights is None else ops.broadcast_to(weights, predictions.shape)
    )
    above = ops.greater(ops.unsqueeze(predictions, 0), ops.unsqueeze(limits, 1))
    truth = ops.unsqueeze(ops.not_equal(labels, 0), 0)
    rows = ops.unsqueeze(weight, 0)
    everywhere = ops.full_like(above, True)
    return [
        ops.sum(ops.where(ops.logical_and(chosen, kind), rows, 0.0), 1)
        for chosen, kind in (
            (above, truth),
            (above, ops.logical_not(truth)),
            (everywhere, truth),
            (everywhere, ops.logical_not(truth)),
        )
    ]


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
) -> tuple[Any, Any]:
    """The area under the curve of true over false positive rates, by the trapezoidal rule.

    Only the ROC curve is offered; raises ValueError for another one.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     value, update = tf.metrics.auc([True, False], [0.9, 0.1])
    ...     session.run(tf.local_variables_initializer())
    ...     print(session.run(tf.round(update)))
    1.0
    """
    if curve != "ROC" or summation_method != "trapezoidal":
        raise ValueError(f"auc: curve {curve!r} with {summation_method!r} is not offered. Use 'ROC'.")
    with variable_scope(name, "auc"):
        scale = None if weights is None else _flat(weights)
        found = _at_thresholds(_flat(labels), math.cast(_flat(predictions), float32), scale, num_thresholds)
        names = ("true_positives", "false_positives", "true_labels", "false_labels")
        pairs = [_gathered(key, part, [num_thresholds]) for key, part in zip(names, found)]
        value = _area(*[total.value() for total, _ in pairs], name="value")
        update = _area(*[more for _, more in pairs], name="update_op")
        return _collected(value, update, metrics_collections, updates_collections)


@operation("AUC")
def _area(right: Any, wrong: Any, true: Any, false: Any) -> Any:
    height, width = (ops.divide(a, ops.maximum(b, 1e-7)) for a, b in ((right, true), (wrong, false)))
    count = height.shape[0] - 1
    mean = ops.multiply(ops.add(ops.narrow(height, 0, 0, count), ops.narrow(height, 0, 1, count)), 0.5)
    return ops.sum(
        ops.multiply(mean, ops.subtract(ops.narrow(width, 0, 0, count), ops.narrow(width, 0, 1, count)))
    )


def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The mean over classes of intersection over union; ``update`` returns the confusion matrix.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     value, update = tf.metrics.mean_iou([0, 1], [0, 1], 2)
    ...     session.run(tf.local_variables_initializer())
    ...     session.run(update)
    ...     print(session.run(value))
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    1.0
    """
    with variable_scope(name, "mean_iou"):
        scale = None if weights is None else _flat(weights)
        counts = confusion_matrix(_flat(labels), _flat(predictions), num_classes, float32, weights=scale)
        total, more = _gathered("total_confusion_matrix", counts, [num_classes, num_classes])
        return _collected(
            _overlap(total.value(), name="mean_iou"), more, metrics_collections, updates_collections
        )


@operation("MeanIOU")
def _overlap(counts: Any) -> Any:
    both = ops.diagonal(counts)
    union = ops.subtract(ops.add(ops.sum(counts, 0), ops.sum(counts, 1)), both)
    present = ops.greater(union, 0)
    share = ops.where(present, ops.divide(both, ops.where(present, union, 1.0)), 0.0)
    return ops.divide(ops.sum(share), ops.maximum(ops.cast(ops.sum(ops.cast(present, int64)), float32), 1.0))
