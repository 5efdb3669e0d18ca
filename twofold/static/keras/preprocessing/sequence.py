"""Sequences of different lengths as one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype


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
