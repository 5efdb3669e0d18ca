"""TensorFlow's checkpoint files: ``NAME.index`` and ``NAME.data-0000s-of-0000n``.

The index is a sorted table of LevelDB's format whose keys are names and whose values are messages (TensorFlow,
``tensor_bundle.proto``): dtype, shape, position and checksum of a tensor's bytes in a data file. TensorFlow reads the
files written here and the other way round.
"""

from __future__ import annotations

import contextlib
import glob
import os
import struct
from collections.abc import Iterator, Mapping

import numpy

from twofold import dtypes
from twofold.crc32c import crc32c, masked
from twofold.dtypes import DType
from twofold.files import atomic_write, remove_stale
from twofold.protobuf import fields, fixed32, nested, number, read_varint, varint
from twofold.static.protobuf.graph_def import CODES

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_CODES = {dtype: code for dtype, code in CODES.items() if dtype is not dtypes.string}
_DTYPES = {code: dtype for dtype, code in _CODES.items()}

Tensors = Mapping[str, tuple[DType, numpy.ndarray]]


def data_file(prefix: str, shard: int, shards: int) -> str:
    """The name of one data file of a checkpoint."""
    return f"{prefix}.data-{shard:05d}-of-{shards:05d}"


def write_bundle(prefix: str, tensors: Tensors) -> None:
    """Write a checkpoint; until its index is renamed into position, one of the same name stays as it was.

    Args:
        prefix: the path without endings.
        tensors: dtype and array of each, by name.
    """
    # A checkpoint in place keeps its data file until the new index stands: the new data get the other file name.
    shards = 2 if os.path.exists(data_file(prefix, 0, 1)) else 1
    entries: dict[bytes, bytes] = {b"": number(1, shards) + nested(3, number(1, 1))}
    offset = 0
    with atomic_write(data_file(prefix, 0, shards)) as file:
        for name in sorted(tensors, key=str.encode):
            dtype, array = tensors[name]
            content = numpy.ascontiguousarray(array).tobytes()
            shape = b"".join(nested(2, number(1, size)) for size in array.shape)
            position = number(4, offset) + number(5, len(content)) + fixed32(6, masked(crc32c(content)))
            entries[name.encode()] = number(1, _CODES[dtype]) + nested(2, shape) + position
            file.write(content)
            offset += len(content)
    with atomic_write(prefix + ".index") as file:
        file.write(_table(entries))
    for old in glob.glob(glob.escape(prefix) + ".data-*"):
        if old != data_file(prefix, 0, shards):
            with contextlib.suppress(OSError):
                os.unlink(old)


def clean_bundle(prefix: str) -> None:
    """Delete the temporary files that killed writers of a checkpoint left."""
    for path in (prefix + ".index", data_file(prefix, 0, 1), data_file(prefix, 0, 2)):
        remove_stale(path)


def read_bundle(prefix: str) -> dict[str, tuple[DType, numpy.ndarray]]:
    """Dtype and array of each tensor of a checkpoint, by name.

    Raises:
        OSError: a file is missing.
        ValueError: a file is damaged, or holds what this library does not have (strings, parts of variables).
    """
    with open(prefix + ".index", "rb") as file:
        entries = dict(_rows(file.read()))
    header = dict(fields(entries.pop(b"", b"")))
    shards = header.get(1, 1)
    found = {}
    for key, entry in entries.items():
        name = key.decode()
        found[name] = _tensor(prefix, int(shards), name, entry)
    return found


def _tensor(prefix: str, shards: int, name: str, entry: bytes) -> tuple[DType, numpy.ndarray]:
    values = dict(fields(entry))
    if 7 in values:
        raise ValueError(f"'{name}' is stored in slices")
    code, shard, offset, size = (int(values.get(field, 0)) for field in (1, 3, 4, 5))
    dtype, shape = _DTYPES.get(code), values.get(2, b"")
    if dtype is None:
        raise ValueError(f"'{name}' is of TensorFlow's dtype {code}")
    if not isinstance(shape, bytes):
        raise ValueError(f"the entry of '{name}' has no shape")
    sizes = []
    for field, dim in fields(shape):
        if field == 2 and isinstance(dim, bytes):
            sizes.append(int(dict(fields(dim)).get(1, 0)))
    if size != numpy.prod(sizes, dtype=object) * dtype.itemsize:
        raise ValueError(f"'{name}' has {size} bytes for shape {sizes} of {dtype.name}")
    with open(data_file(prefix, shard, shards), "rb") as file:
        file.seek(offset)
        content = file.read(size)
    if len(content) != size or masked(crc32c(content)) != values.get(6, 0):
        raise ValueError(f"the bytes of '{name}' do not have their checksum")
    return dtype, numpy.frombuffer(content, dtype.numpy).reshape(sizes).copy()


def _block(rows: list[tuple[bytes, bytes]]) -> bytes:
    """A block of a table: each key in full, so that each row is a restart point; then type and checksum."""
    content, restarts = bytearray(), []
    for key, value in rows:
        restarts.append(len(content))
        content += varint(0) + varint(len(key)) + varint(len(value)) + key + value
    for restart in restarts or [0]:
        content += struct.pack("<I", restart)
    content += struct.pack("<I", max(1, len(restarts)))
    typed = bytes(content) + b"\0"
    return typed + struct.pack("<I", masked(crc32c(typed)))


def _table(entries: Mapping[bytes, bytes]) -> bytes:
    rows = sorted(entries.items())
    data, empty = _block(rows), _block([])
    handle = varint(0) + varint(len(data) - 5)
    index = _block([(rows[-1][0], handle)])
    handles = varint(len(data)) + varint(len(empty) - 5)
    handles += varint(len(data) + len(empty)) + varint(len(index) - 5)
    footer = handles.ljust(_FOOTER - 8, b"\0") + struct.pack("<Q", _MAGIC)
    return data + empty + index + footer


def _rows(table: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a table; raises ValueError for a damaged one."""
    footer = table[-_FOOTER:]
    if len(footer) < _FOOTER or struct.unpack("<Q", footer[-8:])[0] != _MAGIC:
        raise ValueError("the index is no table")
    _, position = read_varint(footer, 0)
    _, position = read_varint(footer, position)
    for _, handle in _block_rows(table, footer[position:]):
        yield from _block_rows(table, handle)


def _block_rows(table: bytes, handle: bytes) -> Iterator[tuple[bytes, bytes]]:
    offset, position = read_varint(handle, 0)
    size, _ = read_varint(handle, position)
    block, trailer = table[offset : offset + size + 1], table[offset + size + 1 : offset + size + 5]
    if (
        len(block) != size + 1
        or len(trailer) != 4
        or struct.unpack("<I", trailer)[0] != masked(crc32c(block))
    ):
        raise ValueError("a block of the index does not have its checksum")
    if block[-1]:
        raise ValueError("a block of the index is compressed")
    restarts = struct.unpack("<I", block[-5:-1])[0]
    end, position, key = size - 4 * (restarts + 1), 0, b""
    while position < end:
        shared, position = read_varint(block, position)
        fresh, position = read_varint(block, position)
        length, position = read_varint(block, position)
        key = key[:shared] + block[position : position + fresh]
        position += fresh
        yield key, block[position : position + length]
        position += length
