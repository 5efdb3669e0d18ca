"""Measures that gather over many runs: ``tf.metrics``.

Each returns ``(value, update)``: running ``update`` takes in one batch and returns the measure so far, ``value``
only reads it. What is gathered lies in local variables; ``tf.local_variables_initializer()`` starts over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.dtypes import DType, float32, float64, int64
from twofold.ops.base import ops
from twofold.static import math
from twofold.static.api.op_functions import Number, convert_to_tensor, counted, operation, whole
from twofold.static.api.signatures import defaults_of, takes, with_parameters
from twofold.static.arrays import creation, shape_ops
from twofold.static.arrays.selection import confusion_matrix
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import START_LOCAL, example, with_example
from twofold.static.graph.graph import get_default_graph
from twofold.static.variables.variable import Variable, assign_add
from twofold.static.variables.variable_scope import variable_scope


def _gathered(
    name: str, amount: Any, shape: Sequence[int] = (), dtype: DType = float32
) -> tuple[Variable, Any]:
    """A sum over all runs, and what adds ``amount`` to it."""
    keys = [GraphKeys.LOCAL_VARIABLES, "metric_variables"]
    total = Variable(lambda: creation.zeros(list(shape), dtype), False, keys, name=name)
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
        found if weights is None else ops.multiply(found, ops.cast(_aligned(weights, found), float32))
    )


@operation("Sum")
def _weight(values: Any, weights: Any) -> Any:
    if weights is None:
        return ops.sum(ops.full_like(values, 1, dtype=float32))
    return ops.sum(ops.broadcast_to(ops.cast(_aligned(weights, values), float32), values.shape))


def _aligned(weights: Any, values: Any) -> Any:
    """Weights of fewer axes weight whole slices."""
    if 0 < weights.ndim < values.ndim:
        return ops.reshape(weights, (*weights.shape, *[1] * (values.ndim - weights.ndim)))
    return weights


_COLLECTIONS = {"metrics_collections": None, "updates_collections": None, "name": None}


def _shown(function: Callable[..., Any], like: Callable[..., Any], example: Sequence[str], **own: Any) -> Any:
    """``function`` with the parameters of ``like``, ``own`` and the collections; ``example``: a call, its result."""
    if example:
        call, result = example
        setup = (f"value, update = tf.metrics.{call}", START_LOCAL)
        like.__doc__ = with_example(like.__doc__ or "", *setup, "update", result)
    return with_parameters(function, {**defaults_of(like), **own, **_COLLECTIONS}, like)


def _metric(kind: str, *example: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A metric made of a function that gives a value and its update, in a scope named ``kind`` by default."""

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        def metric(
            metrics_collections: Any, updates_collections: Any, name: str | None, **given: Any
        ) -> tuple[Any, Any]:
            with variable_scope(name, kind):
                value, update = body(**given)
            return _collected(value, update, metrics_collections, updates_collections)

        return _shown(metric, body, example)

    return decorate


def _mean_of(
    kind: str, *example: str, last: Callable[[Any], Any] = lambda value: value
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A metric that is ``last`` of the weighted mean of the values that a function gives."""

    def decorate(values: Callable[..., Any]) -> Callable[..., Any]:
        def metric(
            weights: Any, metrics_collections: Any, updates_collections: Any, name: str | None, **given: Any
        ) -> tuple[Any, Any]:
            found = values(**given)
            with variable_scope(name, kind):
                value, update = _average(found, weights)
            return _collected(last(value), last(update), metrics_collections, updates_collections)

        return _shown(metric, values, example, weights=None)

    return decorate


def _average(values: Any, weights: Any) -> tuple[Any, Any]:
    given = convert_to_tensor(values)
    scale = None if weights is None else convert_to_tensor(weights)
    total, more = _gathered("total", _weighted_sum(given, scale))
    count, many = _gathered("count", _weight(given, scale))
    value = math.divide_no_nan(total.value(), count.value(), name="value")
    return value, math.divide_no_nan(more, many, name="update_op")


@_mean_of("mean")
@example(
    "x = tf.placeholder(tf.float32, [None])",
    "value, update = tf.metrics.mean(x)",
    START_LOCAL,
    "print(session.run(update, {x: [1.0, 2.0]}), session.run(update, {x: [6.0]}), session.run(value))",
    "1.5 3.0 3.0",
)
def mean(values: Any) -> Any:
    """The (weighted) mean of all values."""
    return values


def _flat(value: Any) -> Any:
    return shape_ops.reshape(convert_to_tensor(value), [-1])


def _same_shape(predictions: Any, labels: Any) -> tuple[Any, Any]:
    """Both as tensors; a last axis of size one that only one of them has is dropped."""
    one, two = convert_to_tensor(predictions), convert_to_tensor(labels)
    if one.type_.ndim == two.type_.ndim + 1:
        one = shape_ops.squeeze(one, [-1])
    elif two.type_.ndim == one.type_.ndim + 1:
        two = shape_ops.squeeze(two, [-1])
    return one, two


@_mean_of("accuracy", "accuracy([1, 2], [1, 3])", "0.5")
def accuracy(labels: Any, predictions: Any) -> Any:
    """How often predictions equal labels."""
    found, wanted = _same_shape(predictions, labels)
    return math.equal(math.cast(found, wanted.dtype), wanted)


@_mean_of("mean_absolute_error", "mean_absolute_error([1.0, 2.0], [1.0, 5.0])", "1.5")
def mean_absolute_error(labels: Any, predictions: Any) -> Any:
    """The mean of absolute differences."""
    return math.abs(math.subtract(*_same_shape(predictions, labels)))


@_mean_of("mean_squared_error", "mean_squared_error([1.0, 2.0], [1.0, 5.0])", "4.5")
def mean_squared_error(labels: Any, predictions: Any) -> Any:
    """The mean of squared differences."""
    return math.squared_difference(*_same_shape(predictions, labels))


@_mean_of("root_mean_squared_error", "root_mean_squared_error([1.0, 1.0], [4.0, 4.0])", "3.0", last=math.sqrt)
def root_mean_squared_error(labels: Any, predictions: Any) -> Any:
    """The square root of ``mean_squared_error``."""
    return math.squared_difference(*_same_shape(predictions, labels))


@_mean_of("percentage_below_threshold", "percentage_below([1.0, 5.0], 3.0)", "0.5")
def percentage_below(values: Any, threshold: Any) -> Any:
    """The share of values below a threshold."""
    return math.less(values, threshold)


def _agreement(labels: Any, predictions: Any, weights: Any, truth: bool, found: bool) -> Any:
    """The weight of the predictions ``found`` whose label is ``truth``."""
    guessed, wanted = _same_shape(predictions, labels)
    both = _cases(guessed, wanted, found, truth)
    return _weighted_sum(both, None if weights is None else convert_to_tensor(weights))


@operation("LogicalAnd")
def _cases(guessed: Any, wanted: Any, found: Number, truth: Number) -> Any:
    one = ops.not_equal(guessed, 0) if found else ops.equal(guessed, 0)
    return ops.logical_and(one, ops.not_equal(wanted, 0) if truth else ops.equal(wanted, 0))


def _counter(kind: str, truth: bool, found: bool, words: str, example: str) -> Callable[..., Any]:
    def counter(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
        total, more = _gathered("count", _agreement(labels, predictions, weights, truth, found))
        return total.value(), more

    counter.__name__ = counter.__qualname__ = kind
    counter.__doc__ = f"The weight of all {words}."
    return _metric(kind, kind + example, "1.0")(counter)


true_positives = _counter(
    "true_positives", True, True, "true predictions whose label is true", "([True, False], [True, True])"
)
true_negatives = _counter(
    "true_negatives", False, False, "false predictions whose label is false", "([True, False], [True, False])"
)
false_positives = _counter(
    "false_positives", False, True, "true predictions whose label is false", "([True, False], [True, True])"
)
false_negatives = _counter(
    "false_negatives", True, False, "false predictions whose label is true", "([True, False], [False, True])"
)


def _share(labels: Any, predictions: Any, weights: Any, other: Callable[..., Any]) -> tuple[Any, Any]:
    """True positives over their sum with the count ``other``."""
    right, more = true_positives(labels, predictions, weights)
    wrong, also = other(labels, predictions, weights)
    value = math.divide_no_nan(right, right + wrong, name="value")
    return value, math.divide_no_nan(more, more + also, name="update_op")


@_metric("precision", "precision([True, False], [True, True])", "0.5")
def precision(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """The share of true predictions whose label is true."""
    return _share(labels, predictions, weights, false_positives)


@_metric("recall", "recall([True, True], [True, False])", "0.5")
def recall(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """The share of true labels whose prediction is true."""
    return _share(labels, predictions, weights, false_negatives)


@operation("Sum", several=list)
def _at_thresholds(labels: Any, predictions: Any, weights: Any, count: Number) -> Any:
    """True positives, false positives, true labels and false labels at each threshold."""
    total = whole(count)
    position = ops.cast(counted(total, predictions), float32)
    # the first and last are outside 0 to 1, so that everything is above the one and below the other
    inner = ops.divide(position, float(total - 1))
    limits = ops.where(
        ops.equal(position, 0), -1e-7, ops.where(ops.equal(position, total - 1), 1 + 1e-7, inner)
    )
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


@example("value, update = tf.metrics.auc([True, False], [0.9, 0.1])", START_LOCAL, "tf.round(update)", "1.0")
@takes(
    metrics_collections=None, updates_collections=None, curve="ROC", name=None, summation_method="trapezoidal"
)
def auc(
    labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200, **options: Any
) -> tuple[Any, Any]:
    """The area under the curve of true over false positive rates, or with "PR" of precision over recall.

    It is found by the trapezoidal rule or, for "PR" with "careful_interpolation", between thresholds by the true and
    false positives as Davis and Goadrich 2006 interpolate them; raises ValueError for others.
    """
    curve, summation = options["curve"], options["summation_method"]
    careful = (curve, summation) == ("PR", "careful_interpolation")
    if not careful and (curve not in ("ROC", "PR") or summation != "trapezoidal"):
        raise ValueError(
            f"auc: curve {curve!r} with {summation!r} is not offered. Use 'ROC', or 'PR', with 'trapezoidal', "
            "or 'PR' with 'careful_interpolation'."
        )
    with variable_scope(options["name"], "auc"):
        scale = None if weights is None else _flat(weights)
        found = _at_thresholds(_flat(labels), math.cast(_flat(predictions), float32), scale, num_thresholds)
        names = ("true_positives", "false_positives", "true_labels", "false_labels")
        pairs = [_gathered(key, part, [num_thresholds]) for key, part in zip(names, found)]
        area = _interpolated_area if careful else _precision_area if curve == "PR" else _area
        value = area(*[total.value() for total, _ in pairs], name="value")
        update = area(*[more for _, more in pairs], name="update_op")
        return _collected(value, update, options["metrics_collections"], options["updates_collections"])


def _ends(values: Any) -> tuple[Any, Any]:
    """The values at the lower and at the upper threshold of each interval."""
    count = values.shape[0] - 1
    return ops.narrow(values, 0, 0, count), ops.narrow(values, 0, 1, count)


def _trapezoids(height: Any, width: Any) -> Any:
    return ops.sum(ops.multiply(ops.multiply(ops.add(*_ends(height)), 0.5), ops.subtract(*_ends(width))))


@operation("AUC")
def _area(right: Any, wrong: Any, true: Any, false: Any) -> Any:
    return _trapezoids(*(ops.divide(a, ops.maximum(b, 1e-7)) for a, b in ((right, true), (wrong, false))))


@operation("PrecisionRecallAUC")
def _precision_area(right: Any, wrong: Any, true: Any, false: Any) -> Any:
    raised = ops.add(right, 1e-6)
    return _trapezoids(ops.divide(raised, ops.add(raised, wrong)), ops.divide(raised, ops.add(true, 1e-6)))


@operation("InterpolatedAUC")
def _interpolated_area(right: Any, wrong: Any, true: Any, false: Any) -> Any:
    low, high = _ends(ops.add(right, wrong))
    more = ops.subtract(*_ends(right))
    slope = _quotient(more, ops.subtract(low, high))
    above = ops.subtract(_ends(right)[1], ops.multiply(slope, high))
    both = ops.logical_and(ops.greater(low, 0), ops.greater(high, 0))
    ratio = ops.where(both, _quotient(low, high), 1.0)
    return ops.sum(
        _quotient(ops.multiply(slope, ops.add(more, ops.multiply(above, ops.log(ratio)))), _ends(true)[1])
    )


def _quotient(one: Any, two: Any) -> Any:
    fine = ops.greater(two, 0)
    return ops.where(fine, ops.divide(one, ops.where(fine, two, 1.0)), 0.0)


@_metric("mean_iou")
@example(
    "value, update = tf.metrics.mean_iou([0, 1], [0, 1], 2)",
    START_LOCAL,
    "session.run(update)",
    "value",
    "array([[1., 0.],\n       [0., 1.]], dtype=float32)\n1.0",
)
def mean_iou(labels: Any, predictions: Any, num_classes: int, weights: Any = None) -> tuple[Any, Any]:
    """The mean over classes of intersection over union; ``update`` returns the confusion matrix."""
    total, more = _streaming_confusion_matrix(labels, predictions, num_classes, weights, float32)
    return _overlap(total, name="mean_iou"), more


def _streaming_confusion_matrix(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None, dtype: DType = float64
) -> tuple[Any, Any]:
    """The confusion matrix of all runs, and what adds that of one; programs import it from ``metrics_impl``."""
    scale = None if weights is None else _flat(weights)
    counts = confusion_matrix(_flat(labels), _flat(predictions), num_classes, dtype, weights=scale)
    total, more = _gathered("total_confusion_matrix", counts, [num_classes, num_classes], dtype)
    return total.value(), more


@operation("MeanIOU")
def _overlap(counts: Any) -> Any:
    both = ops.diagonal(counts)
    union = ops.subtract(ops.add(ops.sum(counts, 0), ops.sum(counts, 1)), both)
    present = ops.greater(union, 0)
    share = ops.where(present, ops.divide(both, ops.where(present, union, 1.0)), 0.0)
    return ops.divide(ops.sum(share), ops.maximum(ops.cast(ops.sum(ops.cast(present, int64)), float32), 1.0))
