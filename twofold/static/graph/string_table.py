"""Strings as graphs hold them: the elements of a ``tf.string`` tensor are indices into one table of byte strings."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy

from twofold import _core, dtypes
from twofold.errors import ArgumentError, GraphError
from twofold.runtime.tracing import here

_MOST = 1 << 20  # strings that are kept without being constants of a graph


class StringTable:
    """Interned byte strings: equal strings have one index; the latest million keep theirs, constants always.

    >>> table = StringTable()
    >>> table.index_of(b"a"), table.index_of(b"b"), table.index_of(b"a"), table.string_at(1)
    (0, 1, 0, b'b')
    """

    def __init__(self) -> None:
        self._indices: OrderedDict[bytes, int] = OrderedDict()
        self._strings: dict[int, bytes] = {}
        self._constants: set[bytes] = set()
        self._next = 0
        self._lock = threading.Lock()

    def index_of(self, string: bytes, constant: bool = False) -> int:
        """The index of a string; that of a ``constant`` is never given up."""
        with self._lock:
            index = self._indices.pop(string, None)
            if index is None:
                index, self._next = self._next, self._next + 1
            self._indices[string], self._strings[index] = index, string
            if constant:
                self._constants.add(string)
            while len(self._indices) > _MOST + len(self._constants):
                old, gone = self._indices.popitem(last=False)
                if old in self._constants:
                    self._indices[old] = gone
                else:
                    del self._strings[gone]
        return index

    def string_at(self, index: int) -> bytes:
        """The string of an index; raises GraphError for one that has been given up."""
        try:
            return self._strings[index]
        except KeyError:
            what = f"string {index} of the string table is no longer kept, at {here()}"
            raise GraphError(what, "Use a string in the run that reads it.") from None


TABLE = StringTable()


def holds_strings(value: Any) -> bool:
    """Whether a value is a string, an array of strings, or nested lists of strings."""
    if isinstance(value, (str, bytes)):
        return True
    if isinstance(value, numpy.ndarray):
        return value.dtype.kind in "SUT" or (
            value.dtype.kind == "O" and all(isinstance(item, (str, bytes)) for item in value.flat)
        )
    return isinstance(value, (list, tuple)) and len(value) > 0 and holds_strings(value[0])


def bytes_array(value: Any) -> numpy.ndarray:
    """Strings as an object array of bytes (NumPy's own strings drop zero bytes at the end).

    Raises ArgumentError for anything that is no string.
    """
    array = numpy.asarray(value, dtype=object)
    strings = numpy.empty(array.shape, object)
    for position, item in enumerate(array.flat):
        if not isinstance(item, (str, bytes)):
            raise ArgumentError(
                f"a value of type {type(item).__name__} among strings, at {here()}",
                "Give strings only, in lists of equal lengths.",
            )
        strings.flat[position] = item.encode() if isinstance(item, str) else bytes(item)
    return strings


def stack(values: Sequence[Any]) -> numpy.ndarray:
    """``numpy.stack`` of numbers or strings."""
    return bytes_array(list(values)) if isinstance(values[0], (str, bytes)) else numpy.stack(values)


def encode(value: Any, constant: bool = False) -> Any:
    """Strings as a bound tensor of ``tf.string``; raises ArgumentError for anything that is no string."""
    strings = bytes_array(value)
    indices = numpy.empty(strings.shape, numpy.int64)
    for position, string in enumerate(strings.flat):
        indices.flat[position] = TABLE.index_of(string, constant)
    return _core.from_array(indices, False, dtypes.string.code)


def decode(indices: Any) -> Any:
    """The byte strings of a fetched ``tf.string`` value: an object array, or ``bytes`` for a scalar."""
    array = numpy.asarray(indices)
    if not array.ndim:
        return TABLE.string_at(int(array))
    strings = numpy.empty(array.shape, object)
    for position, index in enumerate(array.flat):
        strings.flat[position] = TABLE.string_at(int(index))
    return strings
