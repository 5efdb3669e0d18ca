"""Losses and metrics of Keras, one number for each element of a batch: ``tf.keras.losses``, ``tf.keras.metrics``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import shape_ops
from twofold.static.autodiff import clipping
from twofold.static.graph.graph import operation_of
from twofold.static.keras.named import found_in, look_up

_EPSILON = 1e-7


def _pair(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    found = convert_to_tensor(y_pred)
    return math.cast(convert_to_tensor(y_true), found.dtype), found


def _last_mean(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The mean over the last axis of a function of labels and predictions."""
    return lambda y_true, y_pred: math.reduce_mean(function(*_pair(y_true, y_pred)), -1)


def _logits_of(y_pred: Any, activation: str) -> Any:
    """What an activation was given that made the predictions, as Keras looks for it; None for other predictions."""
    if not getattr(y_pred, "_is_symbolic", False):
        return None
    made = operation_of(y_pred)
    return made.inputs[0] if made.type == activation else None


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0
) -> Any:
    """The cross entropy of probabilities (or logits) and rows of class probabilities."""
    labels, found = _pair(y_true, y_pred)
    if label_smoothing:
        labels = labels * (1.0 - label_smoothing) + label_smoothing / float(int(found.shape[-1]))
    logits = found if from_logits else _logits_of(found, "Softmax")
    if logits is not None:
        return nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    shares = found / math.reduce_sum(found, -1, keepdims=True)
    return -math.reduce_sum(labels * math.log(clipping.clip_by_value(shares, _EPSILON, 1 - _EPSILON)), -1)


def _classes(y_true: Any, y_pred: Any) -> Any:
    """Class numbers without a last axis of size 1."""
    labels = convert_to_tensor(y_true)
    if labels.type_.ndim == y_pred.type_.ndim:
        labels = shape_ops.squeeze(labels, [-1])
    return math.cast(labels, "int64")


def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False) -> Any:
    """The cross entropy of probabilities (or logits) and class numbers."""
    found = convert_to_tensor(y_pred)
    logits = found if from_logits else _logits_of(found, "Softmax")
    if logits is None:
        logits = math.log(clipping.clip_by_value(found, _EPSILON, 1 - _EPSILON))
    return nn.sparse_softmax_cross_entropy_with_logits(labels=_classes(y_true, found), logits=logits)


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0
) -> Any:
    """The mean cross entropy of independent probabilities (or logits)."""
    labels, found = _pair(y_true, y_pred)
    if label_smoothing:
        labels = labels * (1.0 - label_smoothing) + 0.5 * label_smoothing
    logits = found if from_logits else _logits_of(found, "Sigmoid")
    if logits is not None:
        return math.reduce_mean(nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits), -1)
    p = clipping.clip_by_value(found, _EPSILON, 1 - _EPSILON)
    made = labels * math.log(p + _EPSILON) + (1.0 - labels) * math.log(1.0 - p + _EPSILON)
    return -math.reduce_mean(made, -1)


def categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Whether the likeliest class is that of the row of labels."""
    return math.cast(math.equal(math.argmax(y_true, -1), math.argmax(y_pred, -1)), "float32")


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Whether the likeliest class is the one given."""
    found = convert_to_tensor(y_pred)
    return math.cast(math.equal(_classes(y_true, found), math.argmax(found, -1)), "float32")


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Any:
    """How many predictions are on the right side of a threshold."""
    labels, found = _pair(y_true, y_pred)
    return math.reduce_mean(
        math.cast(math.equal(labels, math.cast(found > threshold, found.dtype)), "float32"), -1
    )


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Any:
    """Whether the class of the row of labels is among the ``k`` likeliest."""
    return math.cast(nn.in_top_k(y_pred, math.argmax(y_true, -1), k), "float32")


def huber_loss(y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    """Squares of small differences, absolute values of large ones."""
    labels, found = _pair(y_true, y_pred)
    error = math.abs(found - labels)
    small = math.minimum(error, delta)
    return math.reduce_mean(0.5 * math.square(small) + delta * (error - small), -1)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """Minus the cosine of the angle between both."""
    labels, found = _pair(y_true, y_pred)
    return -math.reduce_sum(nn.l2_normalize(labels, axis) * nn.l2_normalize(found, axis), axis)


mean_squared_error = _last_mean(lambda y, p: math.square(p - y))
mean_absolute_error = _last_mean(lambda y, p: math.abs(p - y))
mean_absolute_percentage_error = _last_mean(
    lambda y, p: 100.0 * math.abs((y - p) / math.maximum(math.abs(y), _EPSILON))
)
mean_squared_logarithmic_error = _last_mean(
    lambda y, p: math.square(math.log1p(math.maximum(p, _EPSILON)) - math.log1p(math.maximum(y, _EPSILON)))
)
hinge = _last_mean(lambda y, p: math.maximum(1.0 - y * p, 0.0))
squared_hinge = _last_mean(lambda y, p: math.square(math.maximum(1.0 - y * p, 0.0)))
poisson = _last_mean(lambda y, p: p - y * math.log(p + _EPSILON))
logcosh = _last_mean(lambda y, p: (p - y) + nn.softplus(-2.0 * (p - y)) - 0.6931471805599453)


def kullback_leibler_divergence(y_true: Any, y_pred: Any) -> Any:
    """The sum of ``y * log(y / p)``."""
    y, p = (clipping.clip_by_value(one, _EPSILON, 1.0) for one in _pair(y_true, y_pred))
    return math.reduce_sum(y * math.log(y / p), -1)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: value
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_") and getattr(value, "__module__", "") == __name__
}
_SHORT = {
    "mse": "mean_squared_error",
    "mae": "mean_absolute_error",
    "mape": "mean_absolute_percentage_error",
    "msle": "mean_squared_logarithmic_error",
    "kld": "kullback_leibler_divergence",
}
FUNCTIONS |= {short: FUNCTIONS[name] for short, name in _SHORT.items()}
mse, mae, mape, msle, kld = (FUNCTIONS[name] for name in _SHORT)
_OF_NUMBERS = (sparse_categorical_crossentropy, sparse_categorical_accuracy)


class Loss:
    """A loss as an object, with the options of its function: ``tf.keras.losses.Huber(delta=2.0)``."""

    function: Callable[..., Any]

    def __init__(self, reduction: Any = "auto", name: str | None = None, **options: Any) -> None:
        if reduction not in ("auto", "sum_over_batch_size"):
            raise ValueError(f"{type(self).__name__}: reduction {reduction!r} is not offered. Leave it out.")
        self.name, self._options = name, options

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal loss."""
        return {"name": self.name, **self._options}

    def each(self, y_true: Any, y_pred: Any) -> Any:
        """One number for each element of a batch."""
        return type(self).function(y_true, y_pred, **self._options)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """The (weighted) mean over the batch."""
        found = self.each(y_true, y_pred)
        return math.reduce_mean(found if sample_weight is None else found * sample_weight)


def _objects(**functions: Callable[..., Any]) -> dict[str, type[Loss]]:
    return {
        name: type(
            name,
            (Loss,),
            {"function": staticmethod(function), "__doc__": function.__doc__, "__module__": __name__},
        )
        for name, function in functions.items()
    }


_CLASSES = _objects(
    BinaryCrossentropy=binary_crossentropy,
    CategoricalCrossentropy=categorical_crossentropy,
    SparseCategoricalCrossentropy=sparse_categorical_crossentropy,
    MeanSquaredError=mean_squared_error,
    MeanAbsoluteError=mean_absolute_error,
    Huber=huber_loss,
    Hinge=hinge,
)


__getattr__, __dir__ = look_up({**_CLASSES, **FUNCTIONS}, __name__)


def each_of(identifier: Any) -> Callable[..., Any]:
    """A function that gives one number for each element, from a name, a function or an object."""
    found = found_in({**FUNCTIONS, **_CLASSES}, "loss function", identifier)
    return found.each if isinstance(found, Loss) else found


def takes_class_numbers(function: Callable[..., Any]) -> bool:
    """Whether the labels of a function, or of a loss's ``each``, are class numbers."""
    return getattr(getattr(function, "__self__", None), "function", function) in _OF_NUMBERS


get = each_of
