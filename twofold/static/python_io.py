"""Files of records: ``tf.python_io``.

Source: TensorFlow's ``record_writer.cc``: the length, its checksum, the record, its checksum; whole files may be
compressed by zlib (RFC 1950) or gzip (RFC 1952).
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from twofold.crc32c import crc32c, masked
from twofold.runtime.tracing import here
from twofold.static.errors import DataLossError


class TFRecordCompressionType:
    """How files of records are compressed."""

    NONE, ZLIB, GZIP = 0, 1, 2


_KINDS = {None: "", "": "", 0: "", 1: "ZLIB", 2: "GZIP", "ZLIB": "ZLIB", "GZIP": "GZIP"}


class TFRecordOptions:
    """How a file of records is compressed: ``""``, ``"ZLIB"`` or ``"GZIP"``, or one of ``TFRecordCompressionType``.

    >>> import twofold.static as tf
    >>> tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP).compression_type
    'GZIP'
    """

    def __init__(self, compression_type: Any = None) -> None:
        if compression_type not in _KINDS:
            raise ValueError(
                f'TFRecordOptions: compression_type is {compression_type!r}, at {here()}. Use "", "ZLIB" or "GZIP".'
            )
        self.compression_type = _KINDS[compression_type]


def _kind(options: Any) -> str:
    return (options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)).compression_type


class TFRecordWriter:
    """Writes records, strings of bytes, to a file.

    >>> import os, tempfile
    >>> import twofold.static as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "rows.tfrecords")
    >>> with tf.python_io.TFRecordWriter(path) as writer:
    ...     writer.write(b"first")
    ...     writer.write(b"second")
    >>> list(tf.python_io.tf_record_iterator(path))
    [b'first', b'second']
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        self._kind = _kind(options)
        self._file: Any = open(os.fspath(path), "wb")  # noqa: SIM115 (closed by close)
        self._packed = {"ZLIB": zlib.compressobj(), "GZIP": zlib.compressobj(wbits=31)}.get(self._kind)

    def write(self, record: bytes | str) -> None:
        """Add a record."""
        data = record.encode() if isinstance(record, str) else bytes(record)
        length = struct.pack("<Q", len(data))
        ends = [struct.pack("<I", masked(crc32c(part))) for part in (length, data)]
        content = length + ends[0] + data + ends[1]
        self._file.write(content if self._packed is None else self._packed.compress(content))

    def flush(self) -> None:
        """Let readers see the records; those of a compressed file only up to the last whole block."""
        if self._packed is not None:
            self._file.write(self._packed.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self) -> None:
        """Write everything, and close the file."""
        if not self._file.closed:
            if self._packed is not None:
                self._file.write(self._packed.flush())
            self._file.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """The records of a file, one after the other; raises DataLossError where one is cut off or its checksum is wrong.

    ``options`` is a ``TFRecordOptions`` or a name of a compression.
    """
    name, kind = os.fspath(path), _kind(options)
    with gzip.open(name, "rb") if kind == "GZIP" else open(name, "rb") as file:
        source: Any = file
        if kind == "ZLIB":
            source = _Bytes(zlib.decompress(file.read()))
        while head := source.read(12):
            data = _checked(name, head, 8, 4)
            size = struct.unpack("<Q", data)[0]
            yield _checked(name, source.read(size + 4), size, 4)


class _Bytes:
    def __init__(self, content: bytes) -> None:
        self._content, self._position = content, 0

    def read(self, count: int) -> bytes:
        found = self._content[self._position : self._position + count]
        self._position += len(found)
        return found


def _checked(name: str, content: bytes, size: int, end: int) -> bytes:
    """The first ``size`` bytes, whose checksum follows."""
    data = content[:size]
    if len(content) != size + end or content[size:] != struct.pack("<I", masked(crc32c(data))):
        raise DataLossError(f"{name}: a record is cut off or its checksum is wrong", "Write the file anew.")
    return data
