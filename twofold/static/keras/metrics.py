"""Metrics of Keras, functions and what gathers over batches: ``tf.keras.metrics``."""

from __future__ import annotations

from typing import Any

from twofold.static import math
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.keras import metric_counts as _counts
from twofold.static.keras.loss_objects import matched
from twofold.static.keras.metric_functions import FUNCTIONS
from twofold.static.keras.metric_objects import Mean, MeanOfFunction, Metric, Sum, metric_of
from twofold.static.keras.named import CustomObjectScope, found_in, look_up
from twofold.static.keras.named import serialize as _serialize


class RootMeanSquaredError(Mean):
    """The square root of the mean of squared differences.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default():
    ...     error = tf.keras.metrics.RootMeanSquaredError()([2.0, 4.0], [5.0, 7.0])
    ...     print(tf.keras.backend.get_session().run(error))
    3.0
    """

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        """Take in labels and predictions, and their weights."""
        pair = [math.cast(convert_to_tensor(one), self.dtype) for one in (y_true, y_pred)]
        return super().update_state(math.squared_difference(*matched(*pair)), sample_weight)

    def result(self) -> Any:
        """The error."""
        return math.sqrt(super().result())


class MeanRelativeError(Mean):
    """The mean of absolute differences by ``normalizer``, numbers of the predictions' shape."""

    def __init__(self, normalizer: Any, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name, dtype)
        self.normalizer = normalizer

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        """Take in labels and predictions, and their weights."""
        labels, found, scale = (
            math.cast(convert_to_tensor(one), self.dtype) for one in (y_true, y_pred, self.normalizer)
        )
        labels, found = matched(labels, found)
        scale, found = matched(scale, found)
        return super().update_state(math.divide_no_nan(math.abs(labels - found), scale), sample_weight)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal metric."""
        return {**super().get_config(), "normalizer": self.normalizer}


_OF_FUNCTIONS = {
    "Accuracy": ("accuracy", "name='accuracy', dtype=None"),
    "BinaryAccuracy": ("binary_accuracy", "name='binary_accuracy', dtype=None, threshold=0.5"),
    "CategoricalAccuracy": ("categorical_accuracy", "name='categorical_accuracy', dtype=None"),
    "SparseCategoricalAccuracy": (
        "sparse_categorical_accuracy",
        "name='sparse_categorical_accuracy', dtype=None",
    ),
    "TopKCategoricalAccuracy": (
        "top_k_categorical_accuracy",
        "k=5, name='top_k_categorical_accuracy', dtype=None",
    ),
    "SparseTopKCategoricalAccuracy": (
        "sparse_top_k_categorical_accuracy",
        "k=5, name='sparse_top_k_categorical_accuracy', dtype=None",
    ),
    "BinaryCrossentropy": (
        "binary_crossentropy",
        "name='binary_crossentropy', dtype=None, from_logits=False, label_smoothing=0",
    ),
    "CategoricalCrossentropy": (
        "categorical_crossentropy",
        "name='categorical_crossentropy', dtype=None, from_logits=False, label_smoothing=0",
    ),
    "SparseCategoricalCrossentropy": (
        "sparse_categorical_crossentropy",
        "name='sparse_categorical_crossentropy', dtype=None, from_logits=False, axis=-1",
    ),
    "CosineSimilarity": ("cosine_proximity", "name='cosine_similarity', dtype=None, axis=-1"),
    "MeanAbsoluteError": ("mean_absolute_error", "name='mean_absolute_error', dtype=None"),
    "MeanAbsolutePercentageError": (
        "mean_absolute_percentage_error",
        "name='mean_absolute_percentage_error', dtype=None",
    ),
    "MeanSquaredError": ("mean_squared_error", "name='mean_squared_error', dtype=None"),
    "MeanSquaredLogarithmicError": (
        "mean_squared_logarithmic_error",
        "name='mean_squared_logarithmic_error', dtype=None",
    ),
    "Hinge": ("hinge", "name='hinge', dtype=None"),
    "SquaredHinge": ("squared_hinge", "name='squared_hinge', dtype=None"),
    "CategoricalHinge": ("categorical_hinge", "name='categorical_hinge', dtype=None"),
    "LogCoshError": ("logcosh", "name='logcosh', dtype=None"),
    "Poisson": ("poisson", "name='poisson', dtype=None"),
    "KLDivergence": ("kullback_leibler_divergence", "name='kullback_leibler_divergence', dtype=None"),
}
CLASSES: dict[str, type[Metric]] = {
    name: metric_of(name, FUNCTIONS[function], text) for name, (function, text) in _OF_FUNCTIONS.items()
}
CLASSES |= {one.__name__: one for one in (Metric, Mean, Sum, MeanRelativeError, RootMeanSquaredError)}
CLASSES |= {
    name: value
    for name, value in vars(_counts).items()
    if isinstance(value, type) and issubclass(value, Metric) and name[0] != "_" and value is not Metric
}


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The metric of a name or configuration; ``custom_objects`` are the program's own by their names."""
    with CustomObjectScope(custom_objects or {}):
        return found_in({**FUNCTIONS, **CLASSES}, "metric function", config)


def serialize(metric: Any) -> Any:
    """The name of a function, or the configuration of an object, from which ``deserialize`` makes it."""
    return _serialize(metric)


def get(identifier: Any) -> Any:
    """The metric of a name or a configuration: a function, or an object; any other function is returned."""
    return identifier if callable(identifier) else deserialize(identifier)


__getattr__, __dir__ = look_up(
    {**CLASSES, **FUNCTIONS, "get": get, "serialize": serialize, "deserialize": deserialize}, __name__
)


def as_metric(identifier: Any, name: str | None = None) -> Metric:
    """A metric as an object, from a name, a function or one that it is."""
    found = get(identifier)
    found = found() if isinstance(found, type) else found
    if isinstance(found, Metric):
        return found
    return MeanOfFunction(found, name or getattr(found, "__name__", None) or type(found).__name__)
