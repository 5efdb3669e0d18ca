"""Means, counts and confusion matrices over many runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.dtypes import DType, float32, float64, int64
from twofold.ops.base import ops
from twofold.static import math
from twofold.static.api.op_functions import Number, convert_to_tensor, counted, operation, whole
from twofold.static.api.signatures import defaults_of, with_parameters
from twofold.static.arrays import creation, shape_ops
from twofold.static.arrays.selection import confusion_matrix
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import START_LOCAL, example, with_example
from twofold.static.graph.graph import get_default_graph
from twofold.static.variables.variable import Variable, assign_add
from twofold.static.variables.variable_scope import variable_scope


def gathered(name: str, amount: Any, shape: Sequence[int] = (), dtype: DType = float32) -> tuple[Any, Any]:
    """A sum over all runs, and what adds ``amount`` to it."""
    keys = [GraphKeys.LOCAL_VARIABLES, "metric_variables"]
    total = Variable(lambda: creation.zeros(list(shape), dtype), False, keys, name=name)
    return total.value(), assign_add(total, amount)


def quotient(one: Sequence[Any], other: Sequence[Any]) -> tuple[Any, Any]:
    """The quotient of two sums that are ``gathered``, and that after their updates; 0 over 0 is 0."""
    (total, more), (count, many) = one, other
    value = math.divide_no_nan(total, count, name="value")
    return value, math.divide_no_nan(more, many, name="update_op")


def shares_of(values: Any, weights: Any) -> Any:
    """The weight of each of ``values``: 1 without ``weights``."""
    ones = creation.ones_like(values)
    return ones if weights is None else ones * math.cast(convert_to_tensor(weights), values.dtype)


def collected(value: Any, update: Any, metrics: Any, updates: Any) -> tuple[Any, Any]:
    """Both, entered in collections."""
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


COLLECTIONS = {"metrics_collections": None, "updates_collections": None, "name": None}


def _shown(function: Callable[..., Any], like: Callable[..., Any], example: Sequence[str], **own: Any) -> Any:
    """``function`` with the parameters of ``like``, ``own`` and the collections; ``example``: a call, its result."""
    if example:
        call, result = example
        setup = (f"value, update = tf.metrics.{call}", START_LOCAL)
        like.__doc__ = with_example(like.__doc__ or "", *setup, "update", result)
    return with_parameters(function, {**defaults_of(like), **own, **COLLECTIONS}, like)


def metric_of(kind: str, *example: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A metric made of a function that gives a value and its update, in a scope named ``kind`` by default."""

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        def metric(
            metrics_collections: Any, updates_collections: Any, name: str | None, **given: Any
        ) -> tuple[Any, Any]:
            with variable_scope(name, kind):
                value, update = body(**given)
            return collected(value, update, metrics_collections, updates_collections)

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
                value, update = average(found, weights)
            return collected(last(value), last(update), metrics_collections, updates_collections)

        return _shown(metric, values, example, weights=None)

    return decorate


def average(values: Any, weights: Any) -> tuple[Any, Any]:
    """The mean of all values, and the operation that takes in more."""
    given = convert_to_tensor(values)
    scale = None if weights is None else convert_to_tensor(weights)
    total = gathered("total", _weighted_sum(given, scale))
    return quotient(total, gathered("count", _weight(given, scale)))


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


def flat(value: Any) -> Any:
    """A tensor of one axis."""
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


@_mean_of(
    "mean_cosine_distance",
    "mean_cosine_distance([[1.0, 0.0]], [[0.5, 0.5]], 1)",
    "0.5",
    last=lambda value: 1.0 - value,
)
def mean_cosine_distance(labels: Any, predictions: Any, dim: int) -> Any:
    """The mean of 1 minus the scalar products along ``dim`` of vectors, which have length 1."""
    found, wanted = _same_shape(predictions, labels)
    return math.reduce_sum(math.multiply(found, wanted), [dim], keepdims=True)


@_mean_of("mean_relative_error", "mean_relative_error([1.0, 4.0], [2.0, 5.0], [1.0, 4.0])", "0.625")
def mean_relative_error(labels: Any, predictions: Any, normalizer: Any) -> Any:
    """The mean of absolute differences over ``normalizer``, 0 where that is 0."""
    found, wanted = _same_shape(predictions, labels)
    return math.divide_no_nan(math.abs(wanted - found), math.cast(convert_to_tensor(normalizer), found.dtype))


@metric_of("mean", "mean_tensor([1.0, 2.0])", "[1. 2.]")
def mean_tensor(values: Any, weights: Any = None) -> tuple[Any, Any]:
    """The (weighted) mean over runs of each element."""
    given = math.cast(convert_to_tensor(values), float32)
    shape = given.get_shape().as_list()
    share = shares_of(given, weights)
    total = gathered("total_tensor", given * share, shape)
    return quotient(total, gathered("count_tensor", share, shape))


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
        return gathered("count", _agreement(labels, predictions, weights, truth, found))

    counter.__name__ = counter.__qualname__ = kind
    counter.__doc__ = f"The weight of all {words}."
    return metric_of(kind, kind + example, "1.0")(counter)


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
    right, wrong = (kind(labels, predictions, weights) for kind in (true_positives, other))
    return quotient(right, tuple(one + two for one, two in zip(right, wrong, strict=True)))


@metric_of("precision", "precision([True, False], [True, True])", "0.5")
def precision(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """The share of true predictions whose label is true."""
    return _share(labels, predictions, weights, false_positives)


@metric_of("recall", "recall([True, True], [True, False])", "0.5")
def recall(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """The share of true labels whose prediction is true."""
    return _share(labels, predictions, weights, false_negatives)


@metric_of("mean_iou")
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
    scale = None if weights is None else flat(weights)
    counts = confusion_matrix(flat(labels), flat(predictions), num_classes, dtype, weights=scale)
    return gathered("total_confusion_matrix", counts, [num_classes, num_classes], dtype)


@operation("MeanIOU")
def _overlap(counts: Any) -> Any:
    both = ops.diagonal(counts)
    union = ops.subtract(ops.add(ops.sum(counts, 0), ops.sum(counts, 1)), both)
    present = ops.greater(union, 0)
    share = ops.where(present, ops.divide(both, ops.where(present, union, 1.0)), 0.0)
    return ops.divide(ops.sum(share), ops.maximum(ops.cast(ops.sum(ops.cast(present, int64)), float32), 1.0))


@metric_of("mean_accuracy", "mean_per_class_accuracy([0, 1, 1], [0, 1, 0], 2)", "[1.  0.5]")
def mean_per_class_accuracy(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None
) -> tuple[Any, Any]:
    """The mean over classes of the share of right predictions; ``update`` returns the share of each class."""
    wanted, found = math.cast(flat(labels), int64), math.cast(flat(predictions), int64)
    scale = None if weights is None else math.cast(flat(weights), float32)
    total, many = gathered("total", _by_class(wanted, wanted, scale, num_classes), [num_classes])
    count, more = gathered("count", _by_class(wanted, found, scale, num_classes), [num_classes])
    shares = math.divide_no_nan(count, total)
    return math.reduce_mean(shares, name="mean_accuracy"), math.divide_no_nan(more, many, name="update_op")


@operation("BincountOfHits")
def _by_class(labels: Any, predictions: Any, weights: Any, count: Number) -> Any:
    """The weight of the predictions of each class that are right."""
    right = ops.cast(ops.equal(labels, predictions), float32)
    scaled = right if weights is None else ops.multiply(right, weights)
    rows = ops.cast(ops.equal(ops.unsqueeze(labels, 1), counted(whole(count), labels)), float32)
    return ops.sum(ops.multiply(rows, ops.unsqueeze(scaled, 1)), 0)
