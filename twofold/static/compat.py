"""Text and bytes for both, and TensorFlow 1 under its later name: ``tf.compat``."""

from __future__ import annotations

import numbers
import os
import sys
from typing import Any

import numpy

from twofold.static.graph.tensor_shape import Dimension

v1 = sys.modules["twofold.static"]
sys.modules[f"{__name__}.v1"] = v1

integral_types = (numbers.Integral, numpy.integer)
real_types = (numbers.Real, numpy.integer, numpy.floating)
complex_types = (numbers.Complex, numpy.number)
bytes_or_text_types = (bytes, str)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """The bytes of a text; bytes as they are. Raises TypeError for anything else.

    >>> import twofold.static as tf
    >>> tf.compat.as_bytes("a"), tf.compat.as_text(b"a")
    (b'a', 'a')
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    raise TypeError(f"as_bytes: {bytes_or_text!r} is neither text nor bytes. Give one of them.")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """The text of bytes; a text as it is. Raises TypeError for anything else."""
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes_or_text.decode(encoding)
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    raise TypeError(f"as_text: {bytes_or_text!r} is neither text nor bytes. Give one of them.")


as_str = as_text


def as_str_any(value: Any) -> str:
    """The text of bytes; of anything else ``str`` of it."""
    return as_text(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """The text of a path; anything else as it is."""
    return as_str_any(os.fspath(path)) if hasattr(path, "__fspath__") else path


def dimension_value(dimension: Any) -> int | None:
    """A size as a number, None where it is not known.

    >>> import twofold.static as tf
    >>> tf.compat.dimension_value(tf.TensorShape([3])[0]), tf.compat.dimension_value(3)
    (3, 3)
    """
    return getattr(dimension, "value", dimension)


def dimension_at_index(shape: Any, index: int) -> Any:
    """The size of an axis, unknown where the number of axes is.

    >>> import twofold.static as tf
    >>> tf.compat.dimension_at_index(tf.TensorShape([3, None]), 0)
    Dimension(3)
    """
    return Dimension(None) if shape.dims is None else shape.dims[index]
