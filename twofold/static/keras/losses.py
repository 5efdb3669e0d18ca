"""Losses of Keras, one number for each element of a batch: ``tf.keras.losses``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import shape_ops
from twofold.static.autodiff import clipping
from twofold.static.graph.graph import operation_of
from twofold.static.keras.loss_objects import Loss as Loss
from twofold.static.keras.loss_objects import loss_of
from twofold.static.keras.named import CustomObjectScope, found_in, look_up
from twofold.static.keras.named import serialize as _serialize
from twofold.static.keras.state import settings


def _pair(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    found = convert_to_tensor(y_pred)
    return math.cast(convert_to_tensor(y_true), found.dtype), found


def _clipped(value: Any, low: float, high: float = float("inf")) -> Any:
    return clipping.clip_by_value(value, low, high)


def _last_mean(name: str, text: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The mean over the last axis of a function of labels and predictions."""

    def loss(y_true: Any, y_pred: Any) -> Any:
        return math.reduce_mean(function(*_pair(y_true, y_pred)), -1)

    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = text
    return loss


def logits_of(y_pred: Any, activation: str) -> Any:
    """What an activation was given that made the predictions, as Keras looks for it; None for other predictions."""
    if not getattr(y_pred, "_is_symbolic", False):
        return None
    made = operation_of(y_pred)
    while made.type == "Identity":
        made = operation_of(made.inputs[0])
    return made.inputs[0] if made.type == activation else None


def _smooth_classes(labels: Any, label_smoothing: Any) -> Any:
    count = labels.get_shape()[-1].value
    count = math.cast(shape_ops.shape(labels)[-1], labels.dtype) if count is None else float(count)
    return labels * (1.0 - label_smoothing) + label_smoothing / count


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0
) -> Any:
    """The cross entropy of probabilities (or logits) and rows of class probabilities."""
    labels, found = _pair(y_true, y_pred)
    if hasattr(label_smoothing, "type_") or label_smoothing:
        labels = _smooth_classes(labels, label_smoothing)
    return crossentropy_of_rows(labels, found, from_logits, -1)


def crossentropy_of_rows(target: Any, output: Any, from_logits: bool, axis: int) -> Any:
    """The cross entropy along ``axis`` of probabilities or logits and class probabilities."""
    logits = output if from_logits else logits_of(output, "Softmax")
    if logits is not None:
        return nn.softmax_cross_entropy_with_logits_v2(labels=target, logits=logits, axis=axis)
    tiny = settings.epsilon
    shares = output / math.reduce_sum(output, axis, keepdims=True)
    return -math.reduce_sum(target * math.log(_clipped(shares, tiny, 1 - tiny)), axis)


def classes_of(y_true: Any, y_pred: Any) -> Any:
    """Class numbers with one axis less than the predictions: a last axis of size 1 is left out."""
    labels = convert_to_tensor(y_true)
    ranks = labels.get_shape().ndims, y_pred.get_shape().ndims
    if ranks[0] is not None and ranks[0] == ranks[1]:
        labels = shape_ops.squeeze(labels, [-1])
    return math.cast(labels, "int64")


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, axis: int = -1
) -> Any:
    """The cross entropy of probabilities (or logits) along ``axis`` and class numbers."""
    found = convert_to_tensor(y_pred)
    logits = found if from_logits else logits_of(found, "Softmax")
    if logits is None:
        logits = math.log(_clipped(found, settings.epsilon, 1 - settings.epsilon))
    rank = logits.get_shape().ndims
    if axis != -1 and axis != rank - 1:
        order = [one for one in range(rank) if one != axis % rank]
        logits = shape_ops.transpose(logits, [*order, axis % rank])
    return nn.sparse_softmax_cross_entropy_with_logits(labels=classes_of(y_true, found), logits=logits)


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0
) -> Any:
    """The mean cross entropy of independent probabilities (or logits)."""
    labels, found = _pair(y_true, y_pred)
    if hasattr(label_smoothing, "type_") or label_smoothing:
        labels = labels * (1.0 - label_smoothing) + 0.5 * label_smoothing
    return math.reduce_mean(crossentropy_of_bools(labels, found, from_logits), -1)


def crossentropy_of_bools(target: Any, output: Any, from_logits: bool) -> Any:
    """The cross entropy of each probability or logit and the probability that it should be."""
    logits = output if from_logits else logits_of(output, "Sigmoid")
    if logits is not None:
        return nn.sigmoid_cross_entropy_with_logits(labels=target, logits=logits)
    tiny = settings.epsilon
    p = _clipped(output, tiny, 1 - tiny)
    return -(target * math.log(p + tiny) + (1.0 - target) * math.log(1.0 - p + tiny))


def huber_loss(y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    """Half the squares of differences up to ``delta``, and what goes on straight beyond it, of each number."""
    labels, found = _pair(y_true, y_pred)
    error = math.abs(found - labels)
    small = math.minimum(error, delta)
    return 0.5 * math.square(small) + delta * (error - small)


def cosine_proximity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """The cosine of the angle between both, with the sign that TensorFlow 1.15 gives it."""
    labels, found = _pair(y_true, y_pred)
    return math.reduce_sum(nn.l2_normalize(labels, axis) * nn.l2_normalize(found, axis), axis)


def _signs(labels: Any) -> Any:
    """Labels of 0 and 1 as -1 and 1, if all are; others as they are."""
    each = math.logical_or(math.equal(labels, 0.0), math.equal(labels, 1.0))
    binary = math.cast(math.reduce_all(each), labels.dtype)
    return labels * (1.0 + binary) - binary


def categorical_hinge(y_true: Any, y_pred: Any) -> Any:
    """How much the largest wrong prediction, and 1, is above that of the class of the row of labels."""
    labels, found = _pair(y_true, y_pred)
    right = math.reduce_sum(labels * found, -1)
    wrong = math.reduce_max((1.0 - labels) * found, -1)
    return math.maximum(wrong - right + 1.0, 0.0)


def kullback_leibler_divergence(y_true: Any, y_pred: Any) -> Any:
    """The sum of ``y * log(y / p)``."""
    y, p = (_clipped(one, settings.epsilon, 1.0) for one in _pair(y_true, y_pred))
    return math.reduce_sum(y * math.log(y / p), -1)


def _logarithms(value: Any) -> Any:
    return math.log(_clipped(value, settings.epsilon) + 1.0)


_MEANS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "mean_squared_error": ("The mean of squared differences.", lambda y, p: math.square(p - y)),
    "mean_absolute_error": ("The mean of absolute differences.", lambda y, p: math.abs(p - y)),
    "mean_absolute_percentage_error": (
        "The mean of absolute differences in percent of the labels.",
        lambda y, p: 100.0 * math.abs((y - p) / _clipped(math.abs(y), settings.epsilon)),
    ),
    "mean_squared_logarithmic_error": (
        "The mean of squared differences of ``log(1 + x)``.",
        lambda y, p: math.square(_logarithms(p) - _logarithms(y)),
    ),
    "hinge": (
        "The mean of ``max(1 - y * p, 0)``; labels that are all 0 or 1 stand for -1 and 1.",
        lambda y, p: math.maximum(1.0 - _signs(y) * p, 0.0),
    ),
    "squared_hinge": (
        "The mean of ``max(1 - y * p, 0) ** 2``; labels that are all 0 or 1 stand for -1 and 1.",
        lambda y, p: math.square(math.maximum(1.0 - _signs(y) * p, 0.0)),
    ),
    "poisson": ("The mean of ``p - y * log(p)``.", lambda y, p: p - y * math.log(p + settings.epsilon)),
    "logcosh": (
        "The mean of ``log(cosh(p - y))``.",
        lambda y, p: (p - y) + nn.softplus(-2.0 * (p - y)) - 0.6931471805599453,
    ),
}
_NAMED: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        binary_crossentropy,
        categorical_crossentropy,
        categorical_hinge,
        cosine_proximity,
        kullback_leibler_divergence,
        sparse_categorical_crossentropy,
    )
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **_NAMED,
    **{name: _last_mean(name, *row) for name, row in _MEANS.items()},
}
_SHORT = {
    "mse": "mean_squared_error",
    "mae": "mean_absolute_error",
    "mape": "mean_absolute_percentage_error",
    "msle": "mean_squared_logarithmic_error",
    "kld": "kullback_leibler_divergence",
}
FUNCTIONS |= {short: FUNCTIONS[name] for short, name in _SHORT.items()}
FUNCTIONS |= {short.upper(): FUNCTIONS[name] for short, name in _SHORT.items()}
FUNCTIONS |= {"cosine": cosine_proximity, "cosine_similarity": cosine_proximity}

_CLASSES: dict[str, type[Loss]] = {
    name: loss_of(name, FUNCTIONS.get(function) or huber_loss, function, **options)
    for name, function, options in (
        ("BinaryCrossentropy", "binary_crossentropy", {"from_logits": False, "label_smoothing": 0}),
        ("CategoricalCrossentropy", "categorical_crossentropy", {"from_logits": False, "label_smoothing": 0}),
        ("SparseCategoricalCrossentropy", "sparse_categorical_crossentropy", {"from_logits": False}),
        ("MeanSquaredError", "mean_squared_error", {}),
        ("MeanAbsoluteError", "mean_absolute_error", {}),
        ("MeanAbsolutePercentageError", "mean_absolute_percentage_error", {}),
        ("MeanSquaredLogarithmicError", "mean_squared_logarithmic_error", {}),
        ("Hinge", "hinge", {}),
        ("SquaredHinge", "squared_hinge", {}),
        ("CategoricalHinge", "categorical_hinge", {}),
        ("Poisson", "poisson", {}),
        ("LogCosh", "logcosh", {}),
        ("KLDivergence", "kullback_leibler_divergence", {}),
        ("CosineSimilarity", "cosine_proximity", {"axis": -1}),
        ("Huber", "huber_loss", {"delta": 1.0}),
    )
}


def deserialize(name: Any, custom_objects: Any = None) -> Any:
    """The loss of a name or configuration; ``custom_objects`` are the program's own by their names."""
    with CustomObjectScope(custom_objects or {}):
        return found_in({**FUNCTIONS, **_CLASSES}, "loss function", name)


def get(identifier: Any) -> Any:
    """The loss of a name or a configuration: a function, or an object; any other function is returned."""
    if identifier is None or callable(identifier):
        return identifier
    return deserialize(identifier)


def serialize(loss: Any) -> Any:
    """The name of a function, or the configuration of an object, from which ``deserialize`` makes it."""
    return _serialize(loss)


__getattr__, __dir__ = look_up(
    {**_CLASSES, **FUNCTIONS, "get": get, "serialize": serialize, "deserialize": deserialize, "Loss": Loss},
    __name__,
)


def as_loss(identifier: Any) -> Loss:
    """A loss as an object, from a name, a function or one that it is."""
    found = get(identifier)
    found = found() if isinstance(found, type) else found
    if isinstance(found, Loss) or not callable(found):
        if not callable(found):
            raise ValueError(
                f"Could not interpret loss function identifier: {identifier!r}. Give a function."
            )
        return found
    return loss_of("FunctionLoss", found, getattr(found, "__name__", None) or type(found).__name__)()


_OF_CLASS_NUMBERS, _OF_BOOLS = sparse_categorical_crossentropy, binary_crossentropy


def _is(loss: Loss, function: Callable[..., Any]) -> bool:
    return inspect.unwrap(getattr(type(loss), "function", _is)) is function


def takes_class_numbers(loss: Loss) -> bool:
    """Whether the labels of a loss are class numbers."""
    return _is(loss, _OF_CLASS_NUMBERS)


def takes_bools(loss: Loss) -> bool:
    """Whether each label of a loss is 0 or 1 on its own."""
    return _is(loss, _OF_BOOLS)
