"""Arrays as batches of tensors: ``tf.estimator.inputs``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy

from twofold.dtypes import string
from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype
from twofold.static.errors import OutOfRangeError
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.string_table import bytes_array, holds_strings
from twofold.static.random import next_key


def _order(count: int, epochs: int | None, random: Any) -> Iterator[int]:
    """Row numbers of all epochs (None: without end), each in an order of its own with ``random``."""
    for _ in itertools.count() if epochs is None else range(epochs):
        yield from range(count) if random is None else random.permutation(count).tolist()


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """A function that declares the next batch of arrays: features, or a pair of features and labels.

    Batches go on across the ends of epochs; a run raises OutOfRangeError after the last one, which may be smaller.
    ``queue_capacity`` and ``num_threads`` change nothing: rows are taken when a run asks for them.

    Args:
        x: An array, or a dict of arrays with one length.
        y: Labels: None, an array, or a dict of arrays.
        batch_size: How many rows a batch has.
        num_epochs: How often each row comes; None: without end.
        shuffle: Whether each epoch has an order of its own; it has to be said.
        queue_capacity: Of TensorFlow's queue.
        num_threads: Of TensorFlow's queue.

    Raises:
        ValueError: Where ``shuffle`` is not said, there are no arrays, or their lengths differ.

    >>> import twofold.static as tf
    >>> batch = tf.estimator.inputs.numpy_input_fn(numpy.arange(3), batch_size=2, shuffle=False)
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     rows = batch()
    ...     print(session.run(rows), session.run(rows))
    [0 1] [2]
    """
    if not isinstance(shuffle, bool):
        what = f"numpy_input_fn: shuffle is {shuffle!r}, at {here()}"
        raise ArgumentError(what, "Say True for training, False else.")
    parts = [part if isinstance(part, Mapping) else {None: part} for part in (x, y) if part is not None]
    arrays = [_array(value) for part in parts for value in part.values()]
    _check_lengths(x, arrays)

    def declared() -> Any:
        random = numpy.random.default_rng(next_key(None)) if shuffle else None
        left = _order(len(arrays[0]), num_epochs, random)

        def batch() -> list[Any]:
            rows = list(itertools.islice(left, batch_size))
            if not rows:
                raise OutOfRangeError("all epochs are done", "Catch this error to end.")
            return [array[rows] for array in arrays]

        types = [string if array.dtype == object else as_dtype(array.dtype) for array in arrays]
        shapes = [(None, *array.shape[1:]) for array in arrays]
        tensors = iter(in_python("NumpyInput", batch, [], list(zip(types, shapes)), None))
        made = [{name: next(tensors) for name in part} for part in parts]
        found = [part.get(None, part) for part in made]
        return found[0] if y is None else tuple(found)

    return declared


def _check_lengths(x: Any, arrays: list[Any]) -> None:
    lengths = {len(array) for array in arrays}
    if x is None or len(lengths) != 1:
        what = f"numpy_input_fn: arrays of the lengths {sorted(lengths)}, at {here()}"
        raise ArgumentError(what, "Give arrays of one length.")


def _array(value: Any) -> Any:
    return bytes_array(value) if holds_strings(value) else numpy.asarray(value)
