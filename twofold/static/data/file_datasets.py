"""Datasets of what files hold: lines, and records of ``tf.python_io``."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from twofold.dtypes import string
from twofold.errors import ArgumentError
from twofold.ir.types import tensor_type
from twofold.runtime.calls import failed
from twofold.runtime.pytree import flatten
from twofold.static.api.op_functions import refuse
from twofold.static.data.datasets import Dataset
from twofold.static.data.readers import fixed_records
from twofold.static.graph.string_table import bytes_array
from twofold.static.python_io import TFRecordOptions, tf_record_iterator
from twofold.static.strings.string_functions import as_string_tensor


class _Records(Dataset):
    """The strings that ``read`` gives for each file, the files one after the other."""

    def __init__(self, what: str, filenames: Any, read: Callable[[str], Iterator[Any]]) -> None:
        if isinstance(filenames, Dataset):
            raise failed(
                what, ArgumentError("the names are a dataset", "Give a list or a vector of strings.")
            )
        tensors = [as_string_tensor(what, filenames)] if hasattr(filenames, "type_") else []

        def make(fed: dict[int, Any]) -> Iterator[list[Any]]:
            names = bytes_array(fed[id(tensors[0])] if tensors else filenames)
            return ([record] for name in numpy.ravel(names) for record in read(name.decode()))

        super().__init__(make, [tensor_type(string)], flatten(0, "")[2], tensors)


def _kind(what: str, compression_type: Any) -> str:
    try:
        return TFRecordOptions(compression_type or "").compression_type
    except ValueError:
        fix = 'Use "", "ZLIB" or "GZIP".'
        raise failed(what, ArgumentError(f"compression_type is {compression_type!r}", fix)) from None


class TFRecordDataset(_Records):
    """The records of files, as strings.

    Args:
        filenames: a name, a list of names, or a tensor of strings.
        compression_type: ``""`` (or None), ``"ZLIB"`` or ``"GZIP"``.
        buffer_size: how many bytes are read ahead; changes nothing that is read.
        num_parallel_reads: None or 1: files are read one after the other.

    >>> import os, tempfile
    >>> import twofold.static as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "rows")
    >>> with tf.python_io.TFRecordWriter(path) as writer:
    ...     writer.write(b"one")
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     rows = tf.data.TFRecordDataset(path).make_one_shot_iterator()
    ...     print(session.run(rows.get_next()))
    b'one'
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:
        what = "TFRecordDataset"
        if num_parallel_reads not in (None, 1):
            problem = f"num_parallel_reads is {num_parallel_reads}"
            raise failed(what, ArgumentError(problem, "Leave it out: the order of records is that of files."))
        kind = _kind(what, compression_type)
        super().__init__(what, filenames, lambda path: tf_record_iterator(path, kind))


def _lines(path: str, kind: str) -> Iterator[bytes]:
    with gzip.open(path, "rb") if kind == "GZIP" else open(path, "rb") as file:
        source: Any = zlib.decompress(file.read()).splitlines() if kind == "ZLIB" else file
        for line in source:
            yield line.rstrip(b"\n").removesuffix(b"\r")


class TextLineDataset(_Records):
    """The lines of text files, as strings without their ends.

    Args:
        filenames: a name, a list of names, or a tensor of strings.
        compression_type: ``""`` (or None), ``"ZLIB"`` or ``"GZIP"``.
        buffer_size: how many bytes are read ahead; changes nothing that is read.

    >>> import os, tempfile
    >>> import twofold.static as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "words")
    >>> _ = open(path, "w").write("one\\ntwo\\n")
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     line = tf.data.TextLineDataset(path).make_one_shot_iterator().get_next()
    ...     print(session.run(line), session.run(line))
    b'one' b'two'
    """

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None) -> None:
        kind = _kind("TextLineDataset", compression_type)
        super().__init__("TextLineDataset", filenames, lambda path: _lines(path, kind))


class FixedLengthRecordDataset(_Records):
    """The records of equal length of files, as strings.

    Args:
        filenames: a name, a list of names, or a tensor of strings.
        record_bytes: the length of a record.
        header_bytes: how many bytes at the beginning of a file are left out.
        footer_bytes: how many bytes at its end are left out.
        buffer_size: how many bytes are read ahead; changes nothing that is read.
        compression_type: None or ``""``; raises ArgumentError for others.

    >>> import os, tempfile
    >>> import twofold.static as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "numbers")
    >>> _ = open(path, "w").write("onetwo")
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     record = tf.data.FixedLengthRecordDataset(path, 3).make_one_shot_iterator().get_next()
    ...     print(session.run(record), session.run(record))
    b'one' b'two'
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        buffer_size: Any = None,
        compression_type: Any = None,
    ) -> None:
        refuse("FixedLengthRecordDataset", compression_type=compression_type or None)
        sizes = record_bytes, header_bytes or 0, footer_bytes or 0
        super().__init__("FixedLengthRecordDataset", filenames, lambda path: fixed_records(path, *sizes))
