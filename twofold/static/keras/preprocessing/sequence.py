"""Sequences of different lengths as one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype
from twofold.static.keras.utils import Sequence as _Sequence


def pad_sequences(
    sequences: Sequence[Any],
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> numpy.ndarray:
    """An array ``[sequences, maxlen, ...]`` in whose rows stand the sequences, the rest filled with ``value``.

    Args:
        sequences: lists of numbers, or of arrays of one shape.
        maxlen: the length of a row; the longest sequence's unless given.
        dtype: of the array.
        padding: ``"pre"`` or ``"post"``: whether a row is filled before or behind its sequence.
        truncating: ``"pre"`` or ``"post"``: which end of a longer sequence is left out.
        value: what rows are filled with.

    Raises:
        ValueError: for another ``padding`` or ``truncating``, and for elements of different shapes.

    >>> import twofold.static as tf
    >>> tf.keras.preprocessing.sequence.pad_sequences([[1], [2, 3], [4, 5, 6]], maxlen=2).tolist()
    [[0, 1], [2, 3], [5, 6]]
    """
    for name, side in (("padding", padding), ("truncating", truncating)):
        if side not in ("pre", "post"):
            what = f"pad_sequences: {name} is {side!r}, at {here()}"
            raise ArgumentError(what, "Give 'pre' or 'post'.")
    arrays = [numpy.asarray(sequence) for sequence in sequences]
    length = max((len(array) for array in arrays), default=0) if maxlen is None else maxlen
    inner = {array.shape[1:] for array in arrays if len(array)}
    if len(inner) > 1:
        what = f"pad_sequences: elements of the shapes {sorted(inner)}, at {here()}"
        raise ArgumentError(what, "Give elements of one shape.")
    kind = numpy.dtype(object) if isinstance(value, str) else as_dtype(dtype).numpy
    rows = numpy.full((len(arrays), length, *(inner.pop() if inner else ())), value, kind)
    for row, array in zip(rows, arrays):
        kept = array[max(len(array) - length, 0) :] if truncating == "pre" else array[:length]
        if len(kept):
            row[(slice(length - len(kept), None) if padding == "pre" else slice(len(kept)))] = kept
    return rows


def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> numpy.ndarray:
    """How likely ``skipgrams`` keeps each word, numbered by how often it occurs: frequent ones less (Mikolov 2013).

    >>> import twofold.static as tf
    >>> tf.keras.preprocessing.sequence.make_sampling_table(3).round(5).tolist()
    [0.00315, 0.00315, 0.00548]
    """
    rank = numpy.maximum(numpy.arange(size), 1).astype(float)
    rarity = sampling_factor * (rank * (numpy.log(rank) + 0.577) + 0.5 - 1.0 / (12.0 * rank))
    found: numpy.ndarray = numpy.minimum(1.0, numpy.sqrt(rarity))
    return found


class TimeseriesGenerator(_Sequence):
    """Batches of windows of a series, each with the target behind its end.

    Args:
        data: The series, along the first axis.
        targets: A target for each step.
        length: How many steps a window covers.
        sampling_rate: Every how many steps of a window are given.
        stride: How far windows are apart.
        start_index, end_index: The first and last step that are used.
        shuffle: Whether windows are taken at random.
        reverse: Whether the last step of a window comes first.
        batch_size: How many windows a batch has.

    >>> import numpy
    >>> import twofold.static as tf
    >>> series = numpy.arange(6)
    >>> inputs, targets = tf.keras.preprocessing.sequence.TimeseriesGenerator(series, series, 3)[0]
    >>> inputs.tolist(), targets.tolist()
    ([[0, 1, 2], [1, 2, 3], [2, 3, 4]], [3, 4, 5])
    """

    def __init__(
        self,
        data: Any,
        targets: Any,
        length: int,
        sampling_rate: int = 1,
        stride: int = 1,
        start_index: int = 0,
        end_index: int | None = None,
        shuffle: bool = False,
        reverse: bool = False,
        batch_size: int = 128,
    ) -> None:
        if len(data) != len(targets):
            raise ValueError(
                f"Data and targets have to be of same length: {len(data)} and {len(targets)}, at {here()}."
            )
        self.data, self.targets, self.length = numpy.asarray(data), numpy.asarray(targets), length
        self.sampling_rate, self.stride, self.batch_size = sampling_rate, stride, batch_size
        self.start_index = start_index + length
        self.end_index = len(data) - 1 if end_index is None else end_index
        self.shuffle, self.reverse = shuffle, reverse
        if self.start_index > self.end_index:
            raise ValueError(
                f"`start_index + length` is {self.start_index}, above `end_index`, {self.end_index}, at {here()}. "
                "There is no window."
            )

    def __len__(self) -> int:
        each = self.batch_size * self.stride
        return (self.end_index - self.start_index + each) // each

    def __getitem__(self, index: int) -> tuple[numpy.ndarray, numpy.ndarray]:
        """A batch of windows and their targets."""
        if self.shuffle:
            rows = numpy.random.randint(self.start_index, self.end_index + 1, size=self.batch_size)  # noqa: NPY002
        else:
            start = self.start_index + self.batch_size * self.stride * index
            rows = numpy.arange(
                start, min(start + self.batch_size * self.stride, self.end_index + 1), self.stride
            )
        windows = numpy.array([self.data[row - self.length : row : self.sampling_rate] for row in rows])
        return (windows[:, ::-1] if self.reverse else windows), self.targets[rows]
