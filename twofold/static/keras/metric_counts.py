"""Metrics of Keras that count right and wrong predictions, above thresholds and by classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.dtypes import float32, float64
from twofold.runtime.tracing import here
from twofold.static import math, nn
from twofold.static.api.op_functions import constant, convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.arrays.selection import confusion_matrix, where
from twofold.static.control_flow.dependencies import group
from twofold.static.debugging import assert_greater_equal, assert_less_equal
from twofold.static.graph.context import at_once
from twofold.static.graph.scopes import control_dependencies
from twofold.static.keras.loss_objects import aligned, matched
from twofold.static.keras.metric_objects import Metric, spread
from twofold.static.keras.state import settings
from twofold.static.variables.variable import Variable

_LOWEST = -1e10
_CASES = ("true_positives", "false_positives", "false_negatives", "true_negatives")


def _grouped(updates: Sequence[Any]) -> Any:
    return None if at_once() else group(*updates)


def _limits(thresholds: Any, otherwise: float) -> list[float]:
    found = list(thresholds) if isinstance(thresholds, (list, tuple)) else [thresholds]
    found = [otherwise] if thresholds is None else found
    wrong = [one for one in found if thresholds is not None and (one is None or not 0 <= one <= 1)]
    if wrong:
        raise ValueError(f"Threshold values must be in [0, 1]. Invalid values: {wrong}, at {here()}.")
    return [float(one) for one in found]


def _checked(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Labels and predictions as float32, of equally many axes; predictions outside [0, 1] raise in the run."""
    labels, found = (math.cast(convert_to_tensor(one), float32) for one in (y_true, y_pred))
    checks = [
        assert_greater_equal(found, 0.0, message="predictions must be >= 0"),
        assert_less_equal(found, 1.0, message="predictions must be <= 1"),
    ]
    with control_dependencies([one for one in checks if one is not None]):
        return matched(labels, shape_ops.identity(found))


def _only_largest(found: Any, k: int) -> Any:
    """Predictions, of which all but the ``k`` largest of each row are lower than any threshold."""
    _, indices = nn.top_k(found, k)
    kept = math.reduce_sum(shape_ops.one_hot(indices, found.get_shape()[-1].value), -2)
    return found * kept + _LOWEST * (1.0 - kept)


class _Counts(Metric):
    """Weights of predictions above and below thresholds whose labels are true or false, in variables by their cases."""

    def __init__(self, cases: Sequence[str], thresholds: Sequence[float], name: Any, dtype: Any) -> None:
        super().__init__(name=name, dtype=dtype)
        self.thresholds = list(thresholds)
        self._counted: dict[str, Variable] = {}
        for case in cases:
            self._counted[case] = self.add_weight(self._variable(case), [len(self.thresholds)])
            setattr(self, self._variable(case), self._counted[case])

    top_k: int | None = None
    class_id: int | None = None

    def _variable(self, case: str) -> str:
        return case

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Take in labels, predictions between 0 and 1, and their weights."""
        labels, found = _checked(y_true, y_pred)
        weights = None if sample_weight is None else aligned(sample_weight, found)
        found = found if self.top_k is None else _only_largest(found, self.top_k)
        if self.class_id is not None:
            labels, found = labels[..., self.class_id], found[..., self.class_id]
        shares = creation.ones_like(found)
        shares = shape_ops.reshape(shares if weights is None else shares * weights, [1, -1])
        limits = constant(self.thresholds, float32, [len(self.thresholds), 1])
        above = shape_ops.reshape(found, [1, -1]) > limits
        true = math.not_equal(shape_ops.reshape(labels, [1, -1]), 0.0)
        updates = []
        for case, variable in self._counted.items():
            positive = above if case.endswith("positives") else math.logical_not(above)
            wanted = true if case in ("true_positives", "false_negatives") else math.logical_not(true)
            each = math.cast(math.logical_and(positive, wanted), float32) * shares
            updates.append(variable.assign_add(math.cast(math.reduce_sum(each, 1), variable.dtype)))
        return _grouped(updates)

    def _of(self, case: str) -> Any:
        return convert_to_tensor(self._counted[case])

    def _share(self, case: str, other: str) -> Any:
        return math.divide_no_nan(self._of(case), self._of(case) + self._of(other))


class _OneCount(_Counts):
    """Base of the metrics that are the weight of one case."""

    case = ""

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        self._given = thresholds
        super().__init__([self.case], _limits(thresholds, 0.5), name, dtype)

    def _variable(self, case: str) -> str:
        return "accumulator"

    def result(self) -> Any:
        """The weight, or those at each threshold."""
        found = self._of(self.case)
        return found[0] if len(self.thresholds) == 1 else shape_ops.identity(found)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal metric."""
        return {**super().get_config(), "thresholds": self._given}


def _count_of(class_name: str, case: str) -> type[_OneCount]:
    words = case.replace("_", " ")
    text = f"The weight of all {words}: predictions above a threshold (0.5 unless given) are positive."
    return type(class_name, (_OneCount,), {"case": case, "__doc__": text, "__module__": __name__})


TruePositives, FalsePositives, FalseNegatives, TrueNegatives = (
    _count_of("".join(part.capitalize() for part in case.split("_")), case) for case in _CASES
)


class _Share(_Counts):
    """Base of the metrics that are the share of true positives in both of two cases."""

    cases = ("true_positives", "false_positives")

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        self._given, self.top_k, self.class_id = thresholds, top_k, class_id
        super().__init__(self.cases, _limits(thresholds, 0.5 if top_k is None else _LOWEST), name, dtype)

    def result(self) -> Any:
        """The share, or those at each threshold; 0 where there is none."""
        found = self._share(*self.cases)
        return found[0] if len(self.thresholds) == 1 else found

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal metric."""
        own = {"thresholds": self._given, "top_k": self.top_k, "class_id": self.class_id}
        return {**super().get_config(), **own}


class Precision(_Share):
    """The share of positive predictions whose label is true.

    Args:
        thresholds: A prediction is positive above it, 0.5 unless given; for several there are several results.
        top_k: How many of the largest predictions of each row may be positive; then the threshold is below all.
        class_id: The only class that is looked at.
        name: After the class unless given.
        dtype: Of the result.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     share = tf.keras.metrics.Precision()([0, 1, 1, 1], [1.0, 0.0, 1.0, 1.0])
    ...     print(round(float(tf.keras.backend.get_session().run(share)), 4))
    0.6667
    """


class Recall(_Share):
    """The share of true labels whose prediction is positive; arguments as those of ``Precision``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     share = tf.keras.metrics.Recall()([0, 1, 1, 1], [1.0, 0.0, 1.0, 0.2])
    ...     print(round(float(tf.keras.backend.get_session().run(share)), 4))
    0.3333
    """

    cases = ("true_positives", "false_negatives")


def _spaced(count: int) -> list[float]:
    return [(k + 1) / (count - 1) for k in range(count - 2)]


class _TradeOff(_Counts):
    """Base of the metrics that are one share where another one is nearest to a value."""

    wanted = ""
    result_share, wanted_share = ("true_positives", "false_negatives"), ("true_negatives", "false_positives")

    def __init__(self, value: float, num_thresholds: int, name: str | None, dtype: Any) -> None:
        if not 0 <= value <= 1 or num_thresholds <= 0:
            raise ValueError(
                f"{type(self).__name__}: {self.wanted} {value} at {num_thresholds} thresholds, at {here()}. Give a "
                "value in the range [0, 1], and a positive number."
            )
        self.value, self.num_thresholds = value, num_thresholds
        limits = [0.5] if num_thresholds == 1 else [0.0, *_spaced(num_thresholds), 1.0]
        super().__init__(_CASES, limits, name, dtype)

    def result(self) -> Any:
        """The share at the first threshold where the other one is nearest."""
        best = math.argmin(math.abs(self._share(*self.wanted_share) - self.value), 0)
        return shape_ops.gather(self._share(*self.result_share), best)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal metric."""
        return {**super().get_config(), "num_thresholds": self.num_thresholds, self.wanted: self.value}


class SensitivityAtSpecificity(_TradeOff):
    """The share of true labels that are found, at the threshold whose ``specificity`` is nearest to the one wanted."""

    wanted = "specificity"

    def __init__(
        self, specificity: float, num_thresholds: int = 200, name: str | None = None, dtype: Any = None
    ) -> None:
        super().__init__(specificity, num_thresholds, name, dtype)


class SpecificityAtSensitivity(_TradeOff):
    """The share of false labels that are found, at the threshold whose ``sensitivity`` is nearest to the one wanted."""

    wanted = "sensitivity"
    result_share, wanted_share = _TradeOff.wanted_share, _TradeOff.result_share

    def __init__(
        self, sensitivity: float, num_thresholds: int = 200, name: str | None = None, dtype: Any = None
    ) -> None:
        super().__init__(sensitivity, num_thresholds, name, dtype)


_HEIGHTS: dict[str, Callable[[Any, Any], Any]] = {
    "interpolation": lambda low, high: (low + high) / 2.0,
    "minoring": math.minimum,
    "majoring": math.maximum,
}


class AUC(_Counts):
    """The area under the curve of true over false positive rates, or with "PR" of precision over recall.

    Args:
        num_thresholds: How many thresholds, evenly spaced.
        curve: "ROC" or "PR".
        summation_method: "interpolation" (for "PR" that of Davis and Goadrich 2006), or the lower ("minoring") or
            higher ("majoring") end of each interval.
        name: After the class unless given.
        dtype: Of the result.
        thresholds: The thresholds themselves, between 0 and 1.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     area = tf.keras.metrics.AUC(num_thresholds=3)([0, 0, 1, 1], [0.0, 0.5, 0.3, 0.9])
    ...     print(tf.keras.backend.get_session().run(area))
    0.75
    """

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: Any = None,
        thresholds: Sequence[float] | None = None,
    ) -> None:
        if curve not in ("ROC", "PR") or summation_method not in _HEIGHTS:
            raise ValueError(
                f"AUC: curve {curve!r} with {summation_method!r}, at {here()}. Use 'ROC' or 'PR', and one of "
                f"{', '.join(_HEIGHTS)}."
            )
        inner = _spaced(num_thresholds) if thresholds is None else sorted(thresholds)
        if thresholds is None and num_thresholds <= 1:
            raise ValueError(f"AUC: num_thresholds must be > 1, not {num_thresholds}, at {here()}.")
        self.num_thresholds = len(inner) + 2
        self.curve, self.summation_method = curve, summation_method
        super().__init__(_CASES, [-settings.epsilon, *inner, 1.0 + settings.epsilon], name, dtype)

    def result(self) -> Any:
        """The area."""
        recall = self._share("true_positives", "false_negatives")
        if self.curve == "ROC":
            x, y = self._share("false_positives", "true_negatives"), recall
        elif self.summation_method == "interpolation":
            return self._interpolated()
        else:
            x, y = recall, self._share("true_positives", "false_positives")
        heights = _HEIGHTS[self.summation_method](y[:-1], y[1:])
        return math.reduce_sum((x[:-1] - x[1:]) * heights)

    def _interpolated(self) -> Any:
        """The area where true and all positives, but not their ratio, are linear between thresholds."""
        true, positive = self._of("true_positives"), self._of("true_positives") + self._of("false_positives")
        gained, low, high = true[:-1] - true[1:], positive[:-1], positive[1:]
        slope = math.divide_no_nan(gained, math.maximum(low - high, 0.0))
        both = math.logical_and(low > 0.0, high > 0.0)
        ratio = where(both, math.divide_no_nan(low, math.maximum(high, 0.0)), creation.ones_like(high))
        part = slope * (gained + (true[1:] - slope * high) * math.log(ratio))
        every = math.maximum((true + self._of("false_negatives"))[1:], 0.0)
        return math.reduce_sum(math.divide_no_nan(part, every))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal metric."""
        own = {"num_thresholds": self.num_thresholds, "curve": self.curve}
        own |= {"summation_method": self.summation_method, "thresholds": self.thresholds[1:-1]}
        return {**super().get_config(), **own}


class MeanIoU(Metric):
    """The mean over classes of how many elements are of a class by label and prediction, by how many by either.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     share = tf.keras.metrics.MeanIoU(num_classes=2)([0, 0, 1, 1], [0, 1, 0, 1])
    ...     print(round(float(tf.keras.backend.get_session().run(share)), 4))
    0.3333
    """

    def __init__(self, num_classes: int, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.num_classes = num_classes
        self.total_cm = self.add_weight(
            "total_confusion_matrix", [num_classes, num_classes], dtype=float64, initializer="zeros"
        )

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Take in class numbers by label and prediction, and their weights."""
        labels, found = (
            shape_ops.reshape(math.cast(convert_to_tensor(one), "int64"), [-1]) for one in (y_true, y_pred)
        )
        weights = (
            None
            if sample_weight is None
            else math.cast(shape_ops.reshape(convert_to_tensor(sample_weight), [-1]), float64)
        )
        seen = confusion_matrix(labels, found, self.num_classes, dtype=float64, weights=weights)
        return _grouped([self.total_cm.assign_add(seen)])

    def result(self) -> Any:
        """The mean over the classes that there are."""
        seen = math.cast(convert_to_tensor(self.total_cm), self.dtype)
        both = creation.diag_part(seen)
        either = math.reduce_sum(seen, 0) + math.reduce_sum(seen, 1) - both
        count = math.reduce_sum(math.cast(math.not_equal(either, 0.0), self.dtype))
        return math.divide_no_nan(math.reduce_sum(math.divide_no_nan(both, either)), count)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal metric."""
        return {**super().get_config(), "num_classes": self.num_classes}


class MeanTensor(Metric):
    """The (weighted) mean of each element over batches of one shape."""

    def __init__(self, name: str | None = "mean_tensor", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.total: Any = None
        self.count: Any = None

    def update_state(self, values: Any, sample_weight: Any = None) -> Any:
        """Take in values, and their weights."""
        found = math.cast(convert_to_tensor(values), self.dtype)
        sizes = found.get_shape().as_list()
        if self.total is None:
            self.total, self.count = self.add_weight("total", sizes), self.add_weight("count", sizes)
        elif self.total.get_shape().as_list() != sizes:
            raise ValueError(
                f"MeanTensor input values must always have the same shape, {self.total.shape}, not {found.shape}, "
                f"at {here()}."
            )
        shares = creation.ones_like(found)
        if sample_weight is not None:
            found, shares = spread(sample_weight, found, math.reduce_mean)
        return _grouped([self.total.assign_add(found * shares), self.count.assign_add(shares)])

    def result(self) -> Any:
        """The means; raises ValueError before there are any values."""
        if self.total is None:
            raise ValueError(
                f"MeanTensor does not have any result yet, at {here()}. Call update_state first."
            )
        return math.divide_no_nan(convert_to_tensor(self.total), convert_to_tensor(self.count))
