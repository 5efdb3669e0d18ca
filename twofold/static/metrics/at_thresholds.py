"""Measures of predictions above thresholds: counts, precision, recall, and the area under their curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.dtypes import float32
from twofold.ops.base import ops
from twofold.static import math
from twofold.static.api.op_functions import Number, constant, convert_to_tensor, counted, operation, whole
from twofold.static.api.signatures import takes
from twofold.static.graph.docstrings import START_LOCAL, example
from twofold.static.metrics.streaming import collected, flat, gathered, metric_of
from twofold.static.variables.variable_scope import variable_scope

_CASES = ("true_positives", "false_positives", "false_negatives", "true_negatives")
_TINY = 1e-7


@operation("Thresholds")
def _spaced(count: Number, beside: Any) -> Any:
    """Limits from 0 to 1; the first and last are outside, so that everything is above the one and below the other."""
    total = whole(count)
    position = ops.cast(counted(total, beside), float32)
    inner = ops.divide(position, float(total - 1))
    return ops.where(
        ops.equal(position, 0), -_TINY, ops.where(ops.equal(position, total - 1), 1 + _TINY, inner)
    )


@operation("Sum", several=list)
def _at_limits(labels: Any, predictions: Any, weights: Any, limits: Any) -> Any:
    """The weights of the four cases at each threshold."""
    weight = (
        ops.full_like(predictions, 1) if weights is None else ops.broadcast_to(weights, predictions.shape)
    )
    above = ops.greater(ops.unsqueeze(predictions, 0), ops.unsqueeze(limits, 1))
    truth = ops.unsqueeze(ops.not_equal(labels, 0), 0)
    scale = ops.unsqueeze(weight, 0)
    below, other = ops.logical_not(above), ops.logical_not(truth)
    return [
        ops.sum(ops.where(ops.logical_and(chosen, kind), scale, 0.0), 1)
        for chosen, kind in ((above, truth), (above, other), (below, truth), (below, other))
    ]


def _counts(
    labels: Any, predictions: Any, weights: Any, limits: Any, count: int, cases: Sequence[str] = _CASES
) -> list[tuple[Any, Any]]:
    """For each of ``cases`` what was gathered, and what is once a batch is taken in."""
    scale = None if weights is None else math.cast(flat(weights), float32)
    found = _at_limits(flat(labels), math.cast(flat(predictions), float32), scale, limits)
    return [gathered(key, part, [count]) for key, part in zip(_CASES, found) if key in cases]


def _applied(function: Callable[..., Any], pairs: list[tuple[Any, Any]], *others: Any) -> tuple[Any, Any]:
    """A function of the cases, of what was gathered and of what is then."""
    value = function(*[one for one, _ in pairs], *others, name="value")
    return value, function(*[one for _, one in pairs], *others, name="update_op")


_EXAMPLE = "([True, False, True], [0.9, 0.6, 0.3], [0.5])"


def _measure_at_thresholds(kind: str, text: str, result: str, cases: Sequence[str]) -> Callable[..., Any]:
    """The weight of the one of ``cases`` at thresholds, or the share of the first in both."""

    def measured(labels: Any, predictions: Any, thresholds: Any, weights: Any = None) -> tuple[Any, Any]:
        limits = constant(list(thresholds), float32)
        pairs = _counts(labels, predictions, weights, limits, len(thresholds), cases)
        return pairs[0] if len(pairs) == 1 else _applied(_ratio, pairs)

    name = f"{kind}_at_thresholds"
    measured.__name__ = measured.__qualname__ = name
    measured.__doc__ = f"{text} at each of ``thresholds``: a prediction is true where it is above."
    return metric_of(name if kind in ("precision", "recall") else kind, name + _EXAMPLE, result)(measured)


@operation("RatioAtThresholds")
def _ratio(right: Any, wrong: Any) -> Any:
    return ops.divide(right, ops.add(_TINY, ops.add(right, wrong)))


(
    true_positives_at_thresholds,
    false_positives_at_thresholds,
    false_negatives_at_thresholds,
    true_negatives_at_thresholds,
) = (
    _measure_at_thresholds(kind, f"The weight of all {kind.replace('_', ' ')}", result, [kind])
    for kind, result in zip(_CASES, ("[1.]", "[1.]", "[1.]", "[0.]"))
)
precision_at_thresholds = _measure_at_thresholds(
    "precision", "The share of true predictions whose label is true", "[0.5]", _CASES[:2]
)
recall_at_thresholds = _measure_at_thresholds(
    "recall", "The share of true labels whose prediction is true", "[0.5]", (_CASES[0], _CASES[2])
)


def _in_unit_interval(what: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{what} is {value}. Give a number from 0 to 1.")


def _rates(right: Any, wrong: Any, missed: Any, rejected: Any) -> tuple[Any, Any]:
    """Sensitivity and specificity at each threshold."""
    return _ratio_of(right, missed), _ratio_of(rejected, wrong)


def _ratio_of(one: Any, other: Any) -> Any:
    return ops.divide(one, ops.add(ops.add(one, other), _TINY))


@operation("SensitivityAtSpecificity")
def _sensitivity(right: Any, wrong: Any, missed: Any, rejected: Any, wanted: Number) -> Any:
    sensitivity, specificity = _rates(right, wrong, missed, rejected)
    first = ops.argmin(ops.abs(ops.subtract(specificity, float(wanted))), 0)
    return ops.squeeze(ops.index_select(sensitivity, 0, ops.unsqueeze(first, 0)), 0)


@operation("SpecificityAtSensitivity")
def _specificity(right: Any, wrong: Any, missed: Any, rejected: Any, wanted: Number) -> Any:
    sensitivity, specificity = _rates(right, wrong, missed, rejected)
    away = ops.flip(ops.abs(ops.subtract(sensitivity, float(wanted))), 0)
    last = ops.argmin(away, 0)  # of equally near thresholds the highest one
    return ops.squeeze(ops.index_select(ops.flip(specificity, 0), 0, ops.unsqueeze(last, 0)), 0)


def _trade_off(kind: str, given: str, function: Callable[..., Any], result: str) -> Callable[..., Any]:
    def measured(
        labels: Any, predictions: Any, wanted: float, weights: Any, num_thresholds: int
    ) -> tuple[Any, Any]:
        _in_unit_interval(given, wanted)
        limits = _spaced(num_thresholds, convert_to_tensor(predictions))
        return _applied(function, _counts(labels, predictions, weights, limits, num_thresholds), wanted)

    def shown(labels: Any, predictions: Any, **options: Any) -> tuple[Any, Any]:
        return measured(labels, predictions, options[given], options["weights"], options["num_thresholds"])

    name = f"{kind}_at_{given}"
    shown.__name__ = shown.__qualname__ = name
    shown.__doc__ = f"The {kind} at the threshold whose {given} is nearest to the one wanted, from 0 to 1."
    body = takes(f"{given}, weights=None, num_thresholds=200")(shown)
    return metric_of(name, f"{name}([True, False, True], [0.9, 0.6, 0.3], 0.5)", result)(body)


sensitivity_at_specificity = _trade_off("sensitivity", "specificity", _sensitivity, "0.5")
specificity_at_sensitivity = _trade_off("specificity", "sensitivity", _specificity, "0.9999999")


@example("value, update = tf.metrics.auc([True, False], [0.9, 0.1])", START_LOCAL, "tf.round(update)", "1.0")
@takes(
    metrics_collections=None,
    updates_collections=None,
    curve="ROC",
    name=None,
    summation_method="trapezoidal",
    thresholds=None,
)
def auc(
    labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200, **options: Any
) -> tuple[Any, Any]:
    """The area under the curve of true over false positive rates, or with "PR" of precision over recall.

    It is found by the trapezoidal rule or, for "PR" with "careful_interpolation", between thresholds by the true and
    false positives as Davis and Goadrich 2006 interpolate them; raises ValueError for other values. ``thresholds`` may
    be given instead of their number.
    """
    curve, summation = options["curve"], options["summation_method"]
    careful = (curve, summation) == ("PR", "careful_interpolation")
    if not careful and (curve not in ("ROC", "PR") or summation != "trapezoidal"):
        raise ValueError(
            f"auc: curve {curve!r} with {summation!r} is not offered. Use 'ROC', or 'PR', with 'trapezoidal', "
            "or 'PR' with 'careful_interpolation'."
        )
    own = options["thresholds"]
    with variable_scope(options["name"], "auc"):
        if own is None:
            limits = _spaced(num_thresholds, convert_to_tensor(predictions))
        else:
            num_thresholds = len(own) + 2
            limits = constant([-_TINY, *own, 1 + _TINY], float32)
        pairs = _counts(labels, predictions, weights, limits, num_thresholds)
        area = _interpolated_area if careful else _precision_area if curve == "PR" else _area
        value, update = _applied(area, pairs)
        return collected(value, update, options["metrics_collections"], options["updates_collections"])


def _ends(values: Any) -> tuple[Any, Any]:
    """The values at the lower and at the upper threshold of each interval."""
    count = values.shape[0] - 1
    return ops.narrow(values, 0, 0, count), ops.narrow(values, 0, 1, count)


def _trapezoids(height: Any, width: Any) -> Any:
    return ops.sum(ops.multiply(ops.multiply(ops.add(*_ends(height)), 0.5), ops.subtract(*_ends(width))))


def _recall(right: Any, missed: Any) -> Any:
    return ops.divide(ops.add(right, 1e-6), ops.add(ops.add(right, missed), 1e-6))


@operation("AUC")
def _area(right: Any, wrong: Any, missed: Any, rejected: Any) -> Any:
    rate = ops.divide(wrong, ops.add(ops.add(wrong, rejected), 1e-6))
    return _trapezoids(_recall(right, missed), rate)


@operation("PrecisionRecallAUC")
def _precision_area(right: Any, wrong: Any, missed: Any, rejected: Any) -> Any:
    precision = ops.divide(ops.add(right, 1e-6), ops.add(ops.add(right, wrong), 1e-6))
    return _trapezoids(precision, _recall(right, missed))


@operation("InterpolatedAUC")
def _interpolated_area(right: Any, wrong: Any, missed: Any, rejected: Any) -> Any:
    low, high = _ends(ops.add(right, wrong))
    more = ops.subtract(*_ends(right))
    slope = _quotient(more, ops.subtract(low, high))
    above = ops.subtract(_ends(right)[1], ops.multiply(slope, high))
    both = ops.logical_and(ops.greater(low, 0), ops.greater(high, 0))
    ratio = ops.where(both, _quotient(low, high), 1.0)
    true = _ends(ops.add(right, missed))[1]
    return ops.sum(_quotient(ops.multiply(slope, ops.add(more, ops.multiply(above, ops.log(ratio)))), true))


def _quotient(one: Any, two: Any) -> Any:
    fine = ops.greater(two, 0)
    return ops.where(fine, ops.divide(one, ops.where(fine, two, 1.0)), 0.0)
