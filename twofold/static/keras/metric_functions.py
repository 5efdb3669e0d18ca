"""How often predictions are right, one number for each element of a batch: the functions of ``tf.keras.metrics``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.keras.losses import FUNCTIONS as _LOSSES
from twofold.static.keras.losses import classes_of
from twofold.static.keras.state import settings


def accuracy(y_true: Any, y_pred: Any) -> Any:
    """Whether predictions equal labels."""
    labels = convert_to_tensor(y_true)
    return math.cast(math.equal(labels, math.cast(convert_to_tensor(y_pred), labels.dtype)), settings.floatx)


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Any:
    """How many predictions are on the right side of a threshold."""
    found = convert_to_tensor(y_pred)
    labels = math.cast(convert_to_tensor(y_true), found.dtype)
    right = math.equal(labels, math.cast(found > threshold, found.dtype))
    return math.reduce_mean(math.cast(right, settings.floatx), -1)


def categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Whether the likeliest class is that of the row of labels."""
    return math.cast(math.equal(math.argmax(y_true, -1), math.argmax(y_pred, -1)), settings.floatx)


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Whether the likeliest class is the one given."""
    found = convert_to_tensor(y_pred)
    return math.cast(math.equal(classes_of(y_true, found), math.argmax(found, -1)), settings.floatx)


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Any:
    """Whether the class of the row of labels is among the ``k`` likeliest."""
    return math.cast(nn.in_top_k(y_pred, math.argmax(y_true, -1), k), settings.floatx)


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Any:
    """Whether the class given is among the ``k`` likeliest."""
    found = convert_to_tensor(y_pred)
    return math.cast(nn.in_top_k(found, classes_of(y_true, found), k), settings.floatx)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **_LOSSES,
    **{
        one.__name__: one
        for one in (
            accuracy,
            binary_accuracy,
            categorical_accuracy,
            sparse_categorical_accuracy,
            sparse_top_k_categorical_accuracy,
            top_k_categorical_accuracy,
        )
    },
}
