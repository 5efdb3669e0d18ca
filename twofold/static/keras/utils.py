"""Class numbers as rows: ``tf.keras.utils``."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype
from twofold.static.keras.named import CustomObjectScope as CustomObjectScope
from twofold.static.keras.named import custom_object_scope as custom_object_scope
from twofold.static.keras.named import get_custom_objects as get_custom_objects


def to_categorical(y: Any, num_classes: int | None = None, dtype: Any = "float32") -> numpy.ndarray:
    """For each class number a row with a one there; a last axis of size 1 is left out first.

    Args:
        y: class numbers from 0 on.
        num_classes: the length of a row; one more than the largest number unless given.
        dtype: of the rows.

    Raises:
        ValueError: for a number outside.

    >>> import twofold.static as tf
    >>> tf.keras.utils.to_categorical([0, 2]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    numbers = numpy.asarray(y, int)
    shape = numbers.shape[:-1] if numbers.ndim > 1 and numbers.shape[-1] == 1 else numbers.shape
    count = int(numbers.max(initial=-1)) + 1 if num_classes is None else num_classes
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
        what = f"to_categorical: numbers from {numbers.min()} to {numbers.max()} for {count} classes, at {here()}"
        raise ArgumentError(what, "Give a larger num_classes.")
    return numpy.eye(count, dtype=as_dtype(dtype).numpy)[numbers.reshape(shape)]
