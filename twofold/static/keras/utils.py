"""Class numbers as rows, sequences of batches, and objects by their names: ``tf.keras.utils``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.runtime.pytree import flatten
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype
from twofold.static.keras.base_layer import call_of
from twofold.static.keras.named import CustomObjectScope as CustomObjectScope
from twofold.static.keras.named import custom_object_scope as custom_object_scope
from twofold.static.keras.named import found_in, serialize
from twofold.static.keras.named import get_custom_objects as get_custom_objects


class Sequence:
    """Base of data that are batches: ``__len__`` says how many there are, and ``__getitem__`` gives one.

    >>> import numpy
    >>> import twofold.static as tf
    >>> class Ones(tf.keras.utils.Sequence):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, index):
    ...         return numpy.ones([2, 4]), numpy.ones([2, 1])
    >>> len(list(Ones()))
    3
    """

    def __getitem__(self, index: int) -> Any:
        """A batch: inputs and labels, and weights if there are any."""
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__(index). Define it.")

    def __len__(self) -> int:
        """How many batches there are."""
        raise NotImplementedError(f"{type(self).__name__} has no __len__(). Define it.")

    def on_epoch_end(self) -> None:
        """Called after each epoch."""

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]


def normalize(x: Any, axis: int = -1, order: int = 2) -> numpy.ndarray:
    """An array divided by its norms along ``axis``; where these are 0 it stays.

    >>> import twofold.static as tf
    >>> tf.keras.utils.normalize([[3.0, 4.0], [0.0, 0.0]]).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    norms = numpy.atleast_1d(numpy.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    found: numpy.ndarray = numpy.asarray(x) / numpy.expand_dims(norms, axis)
    return found


def get_source_inputs(tensor: Any, layer: Any = None, node_index: Any = None) -> list[Any]:
    """The inputs of models that lead to a tensor.

    Args:
        tensor: What a layer made.
        layer, node_index: Unread: the call that made the tensor is known.
    """
    found: list[Any] = []
    waiting, seen = [tensor], set()
    while waiting:
        one = waiting.pop()
        call = call_of(one)
        before = flatten(call.inputs, "inputs")[0] if call is not None else []
        if not before:
            found.append(one)
        waiting += [item for item in reversed(before) if id(item) not in seen]
        seen |= {id(item) for item in before}
    return found


def serialize_keras_object(instance: Any) -> Any:
    """The name of a function, or the class and configuration of an object; None for None."""
    return None if instance is None else serialize(instance)


def deserialize_keras_object(
    identifier: Any,
    module_objects: Any = None,
    custom_objects: Any = None,
    printable_module_name: str = "object",
) -> Any:
    """The object of a name or a configuration, among the program's own and those of a dict."""
    if identifier is None:
        return None
    with CustomObjectScope(custom_objects or {}):
        return found_in(module_objects or {}, printable_module_name, identifier)


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
